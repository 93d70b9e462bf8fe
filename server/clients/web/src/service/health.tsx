// The health of the service, from its own checks.

import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Status } from '../api/types.ts';
import { Notice } from '../ui/page/notice.tsx';
import { Facts } from '../ui/page/page.tsx';
import { StateBadge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';

const checkNames: Readonly<Record<Status['health']['checks'][number]['name'], string>> = {
  store: 'Store',
  'root-key': 'Root key',
  'round-trip': 'Encrypt and decrypt',
  clock: 'Clock',
  disk: 'Disk of the data directory',
  database: 'Settings of the database',
};

const formatKeys = (count: number): string => (count === 1 ? '1 key' : `${count} keys`);
const waitingText = ({ pendingKeys, pendingObjects }: Status['erasure']): string =>
  [
    ...(pendingKeys === 0 ? [] : [formatKeys(pendingKeys)]),
    ...(pendingObjects === 0 ? [] : [pendingObjects === 1 ? '1 value' : `${pendingObjects} values`]),
  ].join(', ') || 'nothing';
const waitsForTexts: Readonly<Record<NonNullable<Status['erasure']['waitsFor']>, string>> = {
  destructions: 'The run starts in a few seconds, with further destructions',
  copies: 'The run waits for the WAL archive, or for the lag of copies',
  node: 'The run waits for the node with the duty “Erasure runs”',
};
const runText = ({ state, waitsFor }: Status['erasure']): string =>
  waitsFor === null
    ? { idle: 'No run', waiting: 'Waiting', running: 'In progress', blocked: 'Blocked', failed: 'Failed' }[state]
    : waitsForTexts[waitsFor];
const mebibytes = (bytes: number): string => `${(bytes / 1_048_576).toFixed(1)} MiB`;

const Warnings = ({ status }: { status: Status }): ReactNode => (
  <>
    {!status.memory.locked && (
      <Notice tone="warn" title="Key memory is not locked">
        Keys could reach swap. Raise the memory lock limit of the service (<code>LimitMEMLOCK</code>) and restart it.
      </Notice>
    )}
    {!status.erasure.overwritesInPlace && (
      <Notice tone="warn" title="Erasure is best effort on this file system">
        {status.erasure.fileSystem} may keep copies of overwritten blocks. Move the root key file to ext4 or xfs.
      </Notice>
    )}
    {status.erasure.blockers !== null && status.erasure.blockers.standbys.length > 0 && (
      <Notice tone="warn" title="Erasure waits for copies of the database">
        These standbys, replication slots or archives have not stored the records under the new root key. Bring them up
        to date, or drop the slots of standbys that will not return. The erasure run then continues.
        <ul className="mt-2 list-disc space-y-1 pl-5">
          {status.erasure.blockers.standbys.map((name) => (
            <li key={name} className="break-words">
              {name}
            </li>
          ))}
        </ul>
      </Notice>
    )}
    {status.erasure.blockers !== null && status.erasure.blockers.snapshots.length > 0 && (
      <Notice tone="warn" title="Erasure waits for missing snapshots">
        The files of these snapshots are missing, and may contain destroyed keys. Restore the files and verify the
        snapshots, or delete the snapshots if their files are lost. The erasure run then continues.
        <ul className="mt-2 list-disc space-y-1 pl-5">
          {status.erasure.blockers.snapshots.slice(0, 20).map((id) => (
            <li key={id}>
              <Link to="/snapshots" className="underline">
                {id}
              </Link>
            </li>
          ))}
        </ul>
      </Notice>
    )}
    {status.erasure.blockers !== null && status.erasure.blockers.records.length > 0 && (
      <Notice tone="warn" title="The erasure run is blocked">
        These stored records cannot be opened, and the run would make this permanent. Restore a backup of the store that
        was created after the last run. To give up the records instead, delete or destroy the key, remove the
        credential, or destroy the object. The run then continues.
        <ul className="mt-2 list-disc space-y-1 pl-5">
          {status.erasure.blockers.records.slice(0, 20).map(({ kind, id, name, version, copy }) => (
            <li key={`${id} ${version} ${copy}`} className="break-words">
              {kind === 'key' ? (
                <Link to="/keys/$id" params={{ id }} className="underline">
                  {name ?? id}
                </Link>
              ) : (
                `${kind} ${name ?? id}`
              )}
              , {copy}, version {version}
            </li>
          ))}
        </ul>
      </Notice>
    )}
    {status.erasure.failure !== null && (
      <Notice tone="warn" title="The erasure run failed and is retried">
        {status.erasure.failure}
      </Notice>
    )}
    {status.requestLog.dropped > 0 && (
      <Notice tone="warn" title={`${status.requestLog.dropped} request log entries were dropped`}>
        The store did not keep up with the requests. The audit log is not affected.
      </Notice>
    )}
  </>
);

export const HealthView = ({ status }: { status: Status }) => (
  <div className="space-y-4">
    <Warnings status={status} />
    <ul className="divide-y divide-line">
      {status.health.checks.map((check) => (
        <li key={check.name} className="flex flex-wrap items-center justify-between gap-x-4 gap-y-1 py-2 first:pt-0">
          <span>
            <span className="font-medium">{checkNames[check.name]}</span>{' '}
            <span className="break-words text-muted">{check.detail}</span>
          </span>
          <span className="flex items-center gap-3">
            <span className="text-xs text-muted tabular-nums">{check.durationMs.toFixed(1)} ms</span>
            <StateBadge state={check.healthy ? 'ok' : 'fail'} />
          </span>
        </li>
      ))}
    </ul>
    <Facts
      items={[
        ['Version', status.version],
        ['Running since', <Time key="started" value={status.startedAt} />],
        ['Root key epoch', String(status.rootEpoch)],
        ['Store', status.store.dialect],
        [
          'Key memory',
          `${mebibytes(status.memory.used)} of ${mebibytes(status.memory.capacity)}, ${formatKeys(status.memory.keys)}`,
        ],
        ['Waiting for erasure', waitingText(status.erasure)],
        ['Erasure run', runText(status.erasure)],
      ]}
    />
  </div>
);
