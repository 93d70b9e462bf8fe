// Snapshots of tenants: created, verified, deleted and undeleted; and the recovery keys that open
// them. A restore has a page of its own.

import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { send } from '../api/client.ts';
import { snapshotPath, snapshotsPath } from '../api/paths.ts';
import type { Snapshot, SnapshotSchedule } from '../api/types.ts';
import { OutsideCopies } from '../keys/outside-copies.tsx';
import { usePlatformRight } from '../session/current-session.ts';
import { ActionDialog } from '../ui/forms/action-dialog.tsx';
import { Async } from '../ui/page/async.tsx';
import { Button } from '../ui/page/button.tsx';
import type { IconName } from '../ui/page/icon.tsx';
import { ActionMenu, type MenuAction } from '../ui/page/menu.tsx';
import { Facts, Page, Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { Badge, type StateTone } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import type { Column } from '../ui/table/data-table.tsx';
import { ListView, useList } from '../ui/table/list-view.tsx';
import { RecoveryKeys, RecoveryKeysOfOperators } from './recovery-keys.tsx';
import { formatSize, Verified } from './snapshot-facts.tsx';
import { ImportSnapshotDialog } from './snapshot-import.tsx';

const path = snapshotsPath;

const looks: Readonly<Record<Snapshot['state'], readonly [StateTone, IconName, string]>> = {
  creating: ['quiet', 'clock', 'In progress'],
  available: ['ok', 'snapshot', 'Available'],
  deleted: ['quiet', 'trash', 'Deleted'],
  purged: ['quiet', 'destroyed', 'Purged'],
  failed: ['danger', 'warning', 'Failed'],
  missing: ['danger', 'warning', 'File missing'],
};

interface Action {
  readonly kind: 'create' | 'verify' | 'delete' | 'undelete';
  readonly snapshot: Snapshot | null;
}
const texts = {
  create: [
    'Create a snapshot?',
    'Create snapshot',
    'Snapshot created',
    'A consistent online snapshot of the tenant. DKE seals it to every recovery key and verifies it.',
  ],
  verify: [
    'Verify this snapshot?',
    'Verify snapshot',
    'Snapshot verified',
    'Checks signature, structure, digest and counts. With a recovery key, the command also opens every row.',
  ],
  delete: [
    'Delete this snapshot?',
    'Delete snapshot',
    'Snapshot deleted',
    'You can undelete it for a limited time. Then its file is removed.',
  ],
  undelete: [
    'Undelete this snapshot?',
    'Undelete snapshot',
    'Snapshot undeleted',
    'It becomes available again, unchanged.',
  ],
} as const satisfies Record<Action['kind'], readonly [title: string, label: string, done: string, text: string]>;

const callOf = ({ kind, snapshot }: Action) => {
  if (snapshot === null) return { method: 'POST', path, body: {} } as const;
  const own = snapshotPath(snapshot.id);
  if (kind === 'delete') return { method: 'DELETE', path: own } as const;
  return kind === 'verify'
    ? ({ method: 'POST', path: `${own}/verify`, body: {} } as const)
    : ({ method: 'POST', path: `${own}/undelete` } as const);
};

const ActDialog = ({ action, onClose }: { action: Action; onClose: () => void }) => {
  const [title, label, done, text] = texts[action.kind];
  return (
    <ActionDialog<Snapshot>
      title={title}
      call={callOf(action)}
      creates={action.kind === 'create'}
      submitLabel={label}
      danger={action.kind === 'delete'}
      renews={[path]}
      done={done}
      onClose={onClose}
    >
      <p>{text}</p>
    </ActionDialog>
  );
};

/** `restore` is absent if only operators can restore. */
const actionsOf = (
  snapshot: Snapshot,
  act: (action: Action) => void,
  restore?: (id: string) => void,
): readonly MenuAction[] => {
  const item = (text: string, icon: IconName, kind: Action['kind'], danger = false): MenuAction => ({
    text,
    needs: 'snapshots:manage',
    icon,
    danger,
    onSelect: () => act({ kind, snapshot }),
  });
  if (snapshot.state === 'deleted') return [item('Undelete', 'refresh', 'undelete')];
  if (snapshot.state !== 'available') return [];
  return [
    item('Verify now', 'check', 'verify'),
    ...(restore === undefined
      ? []
      : [
          {
            text: 'Restore',
            needs: 'snapshots:restore',
            icon: 'refresh',
            onSelect: () => restore(snapshot.id),
          } as const,
        ]),
    item('Delete', 'trash', 'delete', true),
  ];
};

const State = ({ state }: { state: Snapshot['state'] }) => {
  const [tone, icon, word] = looks[state];
  return (
    <Badge tone={tone} icon={icon}>
      {word}
    </Badge>
  );
};

const columns = (menu: (snapshot: Snapshot) => readonly MenuAction[]): readonly Column<Snapshot>[] => [
  { key: 'at', header: 'Time', names: true, cell: ({ at }) => <Time value={at} seconds /> },
  { key: 'state', header: 'State', cell: ({ state }) => <State state={state} /> },
  { key: 'verified', header: 'Verified', cell: (snapshot) => <Verified snapshot={snapshot} /> },
  { key: 'keys', header: 'Keys', cell: ({ keys }) => keys.toLocaleString('en-GB') },
  { key: 'size', header: 'Size', nowrap: true, cell: ({ size }) => formatSize(size) },
  {
    key: 'actions',
    header: 'Actions',
    end: true,
    actions: true,
    cell: (snapshot) => <ActionMenu label={`Actions on the snapshot of ${snapshot.at}`} actions={menu(snapshot)} />,
  },
];

const Detail = ({ snapshot }: { snapshot: Snapshot }) => (
  <Facts
    items={[
      ['Id', <code key="id">{snapshot.id}</code>],
      ['Origin', snapshot.origin],
      ['Opened by', snapshot.recoveryKeyIds.join(', ')],
      ['Omitted damaged rows', String(snapshot.omitted)],
      ['Removed destroyed keys', String(snapshot.erased)],
      ...(snapshot.failure === null ? [] : [['Failure', snapshot.failure] as const]),
      ...Object.entries(snapshot.rows).map(([table, count]) => [table, count.toLocaleString('en-GB')] as const),
    ]}
  />
);

const keptText = ({ keepCount, keepDays }: SnapshotSchedule): string => {
  const parts = [
    ...(keepCount === null ? [] : [`the newest ${keepCount}`]),
    ...(keepDays === null ? [] : [`${keepDays} days`]),
  ];
  return parts.join(', ') || 'until you delete them';
};

const Schedule = () => {
  const schedule = useQuery({
    queryKey: ['/api/snapshot-schedule'],
    queryFn: ({ signal }) => send<SnapshotSchedule>({ method: 'GET', path: '/api/snapshot-schedule' }, { signal }),
  });
  return (
    <Panel title="Schedule">
      <Async query={schedule} lines={2}>
        {(value) => (
          <Facts
            items={[
              ['Created', value.schedule ?? 'on demand only'],
              ['Next', <Time key="next" value={value.next} absent="–" />],
              ...(value.directory === null
                ? []
                : [
                    [
                      'Folder',
                      <code key="where" className="wrap-anywhere">
                        {value.directory}
                      </code>,
                    ] as const,
                  ]),
              ['Kept', keptText(value)],
              ['Undelete within', `${value.undeleteDays} days`],
            ]}
          />
        )}
      </Async>
    </Panel>
  );
};

export const SnapshotsPage = () => {
  const list = useList<Snapshot>(path);
  const navigate = useNavigate();
  const [action, act] = useState<Action | null>(null);
  const [importing, setImporting] = useState(false);
  const ofPlatform = usePlatformRight('snapshots:read');
  const restore = (id: string) => void navigate({ to: '/snapshots/$id/restore', params: { id } });
  const create = (
    <Button
      needs="snapshots:manage"
      tone="primary"
      icon="snapshot"
      onClick={() => act({ kind: 'create', snapshot: null })}
    >
      Create snapshot{' '}
    </Button>
  );
  return (
    <Page
      title="Snapshots"
      description="Complete states of a tenant, sealed to recovery keys that the service does not have. A restore cannot recover a destroyed key."
      actions={
        <>
          {ofPlatform === true && (
            <Button needs="snapshots:restore" icon="refresh" onClick={() => setImporting(true)} opens>
              Restore from a file
            </Button>
          )}
          {create}
        </>
      }
    >
      <Schedule />
      <Panel title="Snapshots" flush>
        <ListView
          list={list}
          caption="Snapshots"
          rowKey={({ id }) => id}
          columns={columns((snapshot) => actionsOf(snapshot, act, ofPlatform === true ? restore : undefined))}
          detail={(snapshot) => <Detail snapshot={snapshot} />}
          empty={
            <EmptyState title="No snapshots yet" action={create}>
              {ofPlatform === false
                ? 'Each is a consistent state of this tenant, sealed to the recovery keys that the operators registered.'
                : 'Register a recovery key, create a snapshot, and test a restore soon.'}
            </EmptyState>
          }
        />
      </Panel>
      <OutsideCopies />
      {ofPlatform === true && <RecoveryKeys />}
      {ofPlatform === false && <RecoveryKeysOfOperators />}
      {importing && <ImportSnapshotDialog onClose={() => setImporting(false)} />}
      {action !== null && <ActDialog action={action} onClose={() => act(null)} />}
    </Page>
  );
};
