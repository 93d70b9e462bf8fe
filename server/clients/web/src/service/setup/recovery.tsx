// First setup: a recovery key, a schedule of snapshots, and the first one that was opened.

import { useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { command } from '../../../../../base/command-line.ts';
import { setupPath } from '../../api/paths.ts';
import type { RecoveryKey, Snapshot, SnapshotSchedule } from '../../api/types.ts';
import { NewRecoveryKeyDialog } from '../../snapshots/new-recovery-key.tsx';
import { ActionDialog } from '../../ui/forms/action-dialog.tsx';
import { Async } from '../../ui/page/async.tsx';
import { Button, buttonClass } from '../../ui/page/button.tsx';
import { ConfigLines, Lines, tomlTable } from '../../ui/page/config-lines.tsx';
import { Facts } from '../../ui/page/page.tsx';
import { Time } from '../../ui/page/time.tsx';
import type { ListPage } from '../../ui/table/list-view.tsx';
import { AcceptRisk, Finding, type Step, useWatched } from './shared.tsx';

export const Recovery = ({ step }: { step: Step }) => {
  const [making, setMaking] = useState(false);
  const keys = useWatched<{ readonly items: readonly RecoveryKey[] }>('/api/recovery-keys');
  return (
    <>
      <p className="max-w-prose text-muted">
        Snapshots are sealed to recovery keys that the service does not have. An attacker who controls the host cannot
        open them. With a recovery key, you can restore everything on another host.
      </p>
      <Async query={keys} lines={1}>
        {({ items }) => (
          <>
            {items.filter(({ removedAt }) => removedAt === null).length > 0 && (
              <ul className="space-y-1">
                {items
                  .filter(({ removedAt }) => removedAt === null)
                  .map(({ id, name, createdAt }) => (
                    <li key={id} className="wrap-anywhere">
                      <strong>{name}</strong>, <code>{id}</code>, <Time value={createdAt} distance />
                    </li>
                  ))}
              </ul>
            )}
            <Button
              needs="recovery-keys:manage"
              icon="key"
              tone={step.state === 'open' ? 'primary' : 'plain'}
              opens
              onClick={() => setMaking(true)}
            >
              {step.state === 'open' ? 'Create a recovery key' : 'Create another key'}
            </Button>
          </>
        )}
      </Async>
      <div className="space-y-1">
        <p className="text-muted">Or use the command on a separate machine:</p>
        <Lines
          label="commands"
          value={[
            command`dke recovery-key create --out recovery.key --passphrase`,
            command`dke recovery-key register --name 'safe of the bank' recovery.key`,
          ].join('\n')}
        />
      </div>
      {making && <NewRecoveryKeyDialog onClose={() => setMaking(false)} />}
    </>
  );
};

export const FirstSnapshot = ({ step, ready }: { step: Step; ready: boolean }) => {
  const client = useQueryClient();
  const [making, setMaking] = useState(false);
  const newest = useWatched<ListPage<Snapshot>>('/api/snapshots', { limit: 1 }).data?.items[0];
  return (
    <>
      <p className="max-w-prose text-muted">
        A consistent online snapshot. DKE verifies its signature, structure, digest and counts when it creates it. The
        check with the recovery key opens each row and compares each key.
      </p>
      <Finding>{step.finding}</Finding>
      {newest !== undefined && (
        <p className="wrap-anywhere">
          <Time value={newest.at} seconds />: {newest.keys} keys,{' '}
          {newest.verification === null
            ? (newest.failure ?? 'not verified')
            : newest.verification.valid
              ? 'valid'
              : (newest.verification.finding ?? 'not valid')}
          .
        </p>
      )}
      <div className="flex flex-wrap gap-2">
        <Button
          icon="snapshot"
          tone={step.state === 'done' ? 'plain' : 'primary'}
          disabled={!ready}
          opens
          onClick={() => setMaking(true)}
        >
          Create snapshot
        </Button>
        <Link to="/snapshots" className={buttonClass()}>
          Snapshots
        </Link>
      </div>
      {!ready && <p className="text-muted">Register a recovery key first.</p>}
      {newest !== undefined && (
        <div className="space-y-1">
          <p>Verify the snapshot with the recovery key, on the machine with its file. This completes the step:</p>
          <Lines label="command" value={command`dke snapshot verify --recovery-key recovery.key ${newest.id}`} />
        </div>
      )}
      {making && (
        <ActionDialog<Snapshot>
          title="Create the first snapshot?"
          call={{ method: 'POST', path: '/api/snapshots', body: {} }}
          creates
          submitLabel="Create snapshot"
          renews={['/api/snapshots', setupPath]}
          done="The snapshot is created and verified"
          onClose={() => {
            setMaking(false);
            void client.invalidateQueries({ queryKey: [setupPath] });
          }}
        >
          <p>DKE seals it to every recovery key, writes it and verifies it.</p>
        </ActionDialog>
      )}
    </>
  );
};

export const Schedule = ({ step }: { step: Step }) => {
  const schedule = useWatched<SnapshotSchedule>('/api/snapshot-schedule');
  return (
    <>
      <Finding>{step.finding}</Finding>
      <Async query={schedule} lines={2}>
        {({ directory, schedule: cron, next }) => (
          <>
            <Facts
              items={[
                ...(directory === null
                  ? []
                  : [
                      [
                        'Folder',
                        <code key="directory" className="wrap-anywhere">
                          {directory}
                        </code>,
                      ] as const,
                    ]),
                ['Schedule', cron ?? 'on demand only'],
                ['Next', <Time key="next" value={next} absent="–" />],
              ]}
            />
            {cron === null && (
              <details open className="rounded-lg border border-line">
                <summary className="min-h-9 px-3 py-2 font-medium">On another disk, every night</summary>
                <div className="space-y-3 border-t border-line p-3">
                  <ConfigLines
                    value={tomlTable('[snapshots]', {
                      directory: '/var/lib/dke-snapshots',
                      schedule: '0 3 * * *',
                      keep_count: 14,
                    })}
                  />
                  <Lines label="commands" value="systemctl restart dke-server" />
                </div>
              </details>
            )}
          </>
        )}
      </Async>
      <AcceptRisk step={step} text="Accept the risk: no schedule for snapshots" />
    </>
  );
};
