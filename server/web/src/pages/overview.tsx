// Overview: whether the service is well, how much it holds, and what changed last.

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { send } from '../api/client.ts';
import type { AuditRecord, Status } from '../api/types.ts';
import { applicationsPath } from '../components/applications.ts';
import { Async } from '../components/async.tsx';
import { auditTable } from '../components/audit-table.tsx';
import { DataTable, TableSkeleton } from '../components/data-table.tsx';
import { endpointsPath } from '../components/endpoints.ts';
import { Icon, type IconName } from '../components/icon.tsx';
import { keysPath } from '../components/key-actions.tsx';
import type { ListPage } from '../components/list-view.tsx';
import { Notice } from '../components/notice.tsx';
import { Facts, Page, Panel } from '../components/page.tsx';
import { EmptyState, ProblemView } from '../components/problem-view.tsx';
import { StateBadge } from '../components/state-badge.tsx';
import { Time } from '../components/time.tsx';
import { vaultsPath } from '../components/vaults.ts';

const refreshEvery = 15_000;
const countedAtMost = 100;

/** How many a list holds: exact up to a hundred, "100+" beyond. */
const useCount = (path: string): string | undefined => {
  const query = useQuery({
    queryKey: [path, 'count'],
    queryFn: ({ signal }) =>
      send<ListPage<unknown>>({ method: 'GET', path, query: { limit: countedAtMost } }, { signal }),
    select: (page) => (page.next === null ? String(page.items.length) : `${page.items.length}+`),
    staleTime: 30_000,
  });
  return query.error === null ? query.data : '–';
};

const Count = ({
  path,
  to,
  text,
  icon,
}: {
  path: string;
  to: '/vaults' | '/keys' | '/tde/applications' | '/endpoints';
  text: string;
  icon: IconName;
}) => {
  const count = useCount(path);
  return (
    <li>
      <Link
        to={to}
        className="flex h-full items-center gap-3 rounded-xl border border-line bg-surface p-4 shadow-raised transition-colors hover:border-line-strong"
      >
        <span className="flex size-10 shrink-0 items-center justify-center rounded-lg bg-accent-soft text-accent">
          <Icon name={icon} className="size-5" />
        </span>
        <span className="min-w-0">
          <span className="block min-h-7 text-xl leading-7 font-semibold tabular-nums">{count}</span>
          <span className="block text-muted">{text}</span>
        </span>
      </Link>
    </li>
  );
};

const checkNames: Readonly<Record<Status['health']['checks'][number]['name'], string>> = {
  store: 'Store',
  'root-key': 'Root key',
  'round-trip': 'Encrypt and decrypt',
};

const formatKeys = (count: number): string => (count === 1 ? '1 key' : `${count} keys`);
const mebibytes = (bytes: number): string => `${(bytes / 1_048_576).toFixed(1)} MiB`;

const Warnings = ({ status }: { status: Status }): ReactNode => (
  <>
    {!status.memory.locked && (
      <Notice tone="warn" title="Key memory is not locked">
        Keys could reach swap. Raise the memory lock limit of the service (<code>LimitMEMLOCK</code>) and start it
        again.
      </Notice>
    )}
    {!status.erasure.overwritesInPlace && (
      <Notice tone="warn" title="Erasure is best effort on this file system">
        {status.erasure.fileSystem} may keep copies of overwritten blocks. Move the root key file to ext4 or xfs.
      </Notice>
    )}
    {status.erasure.hold !== null && (
      <Notice tone="warn" title="Destroyed keys wait: the erasure turn is held back">
        These stored records do not open, and never would again after the turn. Put back a backup of the store that was
        made since the last turn; or give them up: delete or destroy the key, remove the credential, destroy the object.
        The turn then goes on by itself.
        <ul className="mt-2 list-disc space-y-1 pl-5">
          {status.erasure.hold.records.slice(0, 20).map(({ kind, id, name, version, copy }) => (
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
      <Notice tone="warn" title="The erasure turn failed and is tried again">
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

const Health = ({ status }: { status: Status }) => (
  <div className="space-y-4">
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
        ['Waiting for erasure', status.erasure.pendingKeys === 0 ? 'nothing' : formatKeys(status.erasure.pendingKeys)],
      ]}
    />
  </div>
);

export const OverviewPage = () => {
  const status = useQuery({
    queryKey: ['/api/status'],
    queryFn: ({ signal }) => send<Status>({ method: 'GET', path: '/api/status' }, { signal }),
    refetchInterval: refreshEvery,
  });
  const latest = useQuery({
    queryKey: ['/api/audit', 'latest'],
    queryFn: ({ signal }) =>
      send<ListPage<AuditRecord>>({ method: 'GET', path: '/api/audit', query: { limit: 8 } }, { signal }),
    refetchInterval: refreshEvery,
  });
  return (
    <Page title="Overview">
      {status.data !== undefined && <Warnings status={status.data} />}
      <ul className="grid grid-cols-[repeat(auto-fit,minmax(12rem,1fr))] gap-3">
        <Count path={vaultsPath} to="/vaults" text="Vaults" icon="vault" />
        <Count path={keysPath} to="/keys" text="Keys" icon="key" />
        <Count path={applicationsPath} to="/tde/applications" text="TDE applications" icon="application" />
        <Count path={endpointsPath} to="/endpoints" text="Key store endpoints" icon="endpoint" />
      </ul>
      <Panel
        title="Health"
        actions={status.data !== undefined && <StateBadge state={status.data.health.healthy ? 'ok' : 'fail'} />}
      >
        <Async query={status}>{(data) => <Health status={data} />}</Async>
      </Panel>
      <Panel
        title="Latest changes"
        flush
        actions={
          <Link to="/audit" className="link">
            Open the audit log
          </Link>
        }
      >
        {latest.data === undefined ? (
          latest.error === null ? (
            <TableSkeleton />
          ) : (
            <div className="p-4">
              <ProblemView error={latest.error} onRetry={() => void latest.refetch()} />
            </div>
          )
        ) : latest.data.items.length === 0 ? (
          <EmptyState title="No record yet">The first change is the first record.</EmptyState>
        ) : (
          <DataTable {...auditTable} rows={latest.data.items} />
        )}
      </Panel>
    </Page>
  );
};
