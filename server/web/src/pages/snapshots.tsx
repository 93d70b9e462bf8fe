// Snapshots of tenants: made, verified, deleted and brought back; and the recovery keys that open them. A restore has a page of its own.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { type ApiCall, send, sendFile } from '../api/client.ts';
import type { RecoveryKey, Snapshot, SnapshotSchedule } from '../api/types.ts';
import { usePlatformRight } from '../app/session.ts';
import { ActionDialog } from '../components/action-dialog.tsx';
import { useAnnounce } from '../components/announce.tsx';
import { ApiCallView } from '../components/api-call.tsx';
import { Async } from '../components/async.tsx';
import { Button } from '../components/button.tsx';
import { DataTable } from '../components/data-table.tsx';
import { Dialog, DialogActions } from '../components/dialog.tsx';
import { FileField, NameField, TextField } from '../components/field.tsx';
import { FormDialog } from '../components/form.tsx';
import type { IconName } from '../components/icon.tsx';
import { ListView, useList } from '../components/list-view.tsx';
import { ActionMenu, type MenuAction } from '../components/menu.tsx';
import { Facts, Page, Panel } from '../components/page.tsx';
import { EmptyState, ProblemView } from '../components/problem-view.tsx';
import { formatSize, snapshotPath, snapshotsPath, Verified } from '../components/snapshot-facts.tsx';
import { Badge, type StateTone } from '../components/state-badge.tsx';
import { Time } from '../components/time.tsx';

const path = snapshotsPath;
const keysPath = '/api/recovery-keys';
const own = snapshotPath;

const looks: Readonly<Record<Snapshot['state'], readonly [StateTone, IconName, string]>> = {
  making: ['quiet', 'clock', 'In progress'],
  held: ['ok', 'snapshot', 'Available'],
  deleted: ['quiet', 'trash', 'Deleted'],
  purged: ['quiet', 'destroyed', 'Purged'],
  failed: ['danger', 'warning', 'Failed'],
  missing: ['danger', 'warning', 'File missing'],
};

/** What is wrong with a file that is to be sent as a snapshot. A recovery key, above all, must not be. */
const faultOf = async (file: File): Promise<string | undefined> => {
  const start = await file.slice(0, 8).text();
  if (start === 'DKE-RECV') return 'This is a recovery key. It was not sent: it never leaves this browser.';
  return start === 'DKE-SNAP' ? undefined : 'This file is not a snapshot.';
};

/** A copy that left a service comes in; then it is restored like one that was here. */
const ImportDialog = ({ onClose }: { onClose: () => void }) => {
  const client = useQueryClient();
  const navigate = useNavigate();
  const announce = useAnnounce();
  const [file, setFile] = useState<File>();
  const [fault, setFault] = useState<string>();
  const choose = async (chosen: File | undefined): Promise<void> => {
    setFile(undefined);
    const wrong = chosen === undefined ? undefined : await faultOf(chosen);
    setFault(wrong);
    if (wrong === undefined) setFile(chosen);
  };
  const [signer, setSigner] = useState('');
  const call: ApiCall = {
    method: 'POST',
    path: '/api/snapshot-imports',
    ...(signer.trim() === '' ? {} : { query: { signer: signer.trim() } }),
  };
  const bring = useMutation({
    mutationFn: () => sendFile<Snapshot>(call, file ?? new Blob(), { idempotencyKey: crypto.randomUUID() }),
    onSuccess: async ({ id }) => {
      await client.invalidateQueries({ queryKey: [path] });
      announce('Snapshot imported');
      onClose();
      await navigate({ to: '/snapshots/$id/restore', params: { id } });
    },
  });
  return (
    <Dialog title="Restore from a file" onClose={onClose} locked={bring.isPending}>
      <form
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (file !== undefined && !bring.isPending) bring.mutate();
        }}
      >
        <p>
          DKE first imports the file, and removes from it the keys that are destroyed here. Nothing is restored yet.
        </p>
        <FileField
          label="Snapshot file"
          help="An exported copy. Its name ends in .dkesnap."
          fault={fault}
          onFile={(chosen) => void choose(chosen)}
        />
        <TextField
          label="Verifier key of the service that created it"
          optional
          mono
          help={
            <>
              Only if another service created it: the key that <code>dke audit log</code> shows there.
            </>
          }
          value={signer}
          onValue={setSigner}
        />
        {bring.error !== null && <ProblemView error={bring.error} compact />}
        <ApiCallView call={call} />
        <DialogActions>
          <Button disabled={bring.isPending} onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" tone="primary" busy={bring.isPending} disabled={file === undefined}>
            Import snapshot
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
};

const RecoveryKeys = () => {
  const client = useQueryClient();
  const announce = useAnnounce();
  const [adding, setAdding] = useState(false);
  const [name, setName] = useState('');
  const [publicKey, setPublicKey] = useState('');
  const [removing, setRemoving] = useState<RecoveryKey | null>(null);
  const query = useQuery({
    queryKey: [keysPath],
    queryFn: ({ signal }) =>
      send<{ readonly items: readonly RecoveryKey[] }>({ method: 'GET', path: keysPath }, { signal }),
  });
  return (
    <Panel
      title="Recovery keys"
      description="Snapshots are sealed to each of them. The service has only the public halves. People keep the files elsewhere."
      actions={
        <Button icon="plus" onClick={() => setAdding(true)}>
          Register recovery key
        </Button>
      }
      flush={query.data !== undefined}
    >
      <Async query={query} lines={2}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState title="No recovery keys yet: no snapshot can be created">
              <p>
                Create one on another machine, with <code>dke recovery-key create --out recovery.key</code>. Keep the
                file in a safe place, and register its public half here.
              </p>
            </EmptyState>
          ) : (
            <DataTable
              caption="Recovery keys"
              rows={items}
              rowKey={({ id }) => id}
              columns={[
                { key: 'name', header: 'Name', names: true, cell: (key) => key.name },
                { key: 'id', header: 'Id', cell: ({ id }) => <code>{id}</code> },
                {
                  key: 'state',
                  header: 'State',
                  cell: ({ tampered, removedAt }) =>
                    tampered ? (
                      <Badge tone="danger" icon="warning">
                        Tampered with
                      </Badge>
                    ) : removedAt === null ? (
                      <Badge tone="ok" icon="active">
                        In use
                      </Badge>
                    ) : (
                      <Badge tone="quiet" icon="trash">
                        Removed
                      </Badge>
                    ),
                },
                { key: 'created', header: 'Registered', cell: ({ createdAt }) => <Time value={createdAt} /> },
                {
                  key: 'actions',
                  header: 'Actions',
                  end: true,
                  actions: true,
                  cell: (key) => (
                    <ActionMenu
                      label={`Actions on recovery key ${key.name}`}
                      actions={
                        key.removedAt === null
                          ? [{ text: 'Remove…', icon: 'trash', danger: true, onSelect: () => setRemoving(key) }]
                          : []
                      }
                    />
                  ),
                },
              ]}
            />
          )
        }
      </Async>
      {adding && (
        <FormDialog<RecoveryKey>
          title="Register a recovery key"
          call={{ method: 'POST', path: keysPath, body: { name, publicKey: publicKey.trim() } }}
          creates
          submitLabel="Register"
          onCancel={() => setAdding(false)}
          onDone={async (key) => {
            await client.invalidateQueries({ queryKey: [keysPath] });
            announce(`Recovery key “${key.name}” registered`);
            setAdding(false);
          }}
        >
          {(fault) => (
            <>
              <NameField
                help="Its owner, or where it is stored."
                value={name}
                onValue={setName}
                fault={fault('name')}
              />
              <TextField
                label="Public half"
                mono
                help={
                  <>
                    As <code>dke recovery-key show recovery.key</code> prints it.
                  </>
                }
                value={publicKey}
                onValue={setPublicKey}
                fault={fault('publicKey')}
              />
            </>
          )}
        </FormDialog>
      )}
      {removing !== null && (
        <ActionDialog
          title={`Remove the recovery key “${removing.name}”?`}
          call={{ method: 'DELETE', path: `${keysPath}/${encodeURIComponent(removing.id)}` }}
          submitLabel="Remove"
          danger
          renews={[keysPath]}
          done="Recovery key removed"
          onClose={() => setRemoving(null)}
        >
          <p>New snapshots are not sealed to it. It still opens older ones: keep its file as long as you keep them.</p>
        </ActionDialog>
      )}
    </Panel>
  );
};

/** What people of one tenant see in the place of the recovery keys, which are the platform's. */
const KeptByOthers = () => (
  <Panel title="Recovery keys">
    <p className="max-w-prose">
      Snapshots of this tenant are sealed to the recovery keys of the service's operators. Operators register the keys,
      restore snapshots and import snapshot files. Ask them for a restore.
    </p>
  </Panel>
);

type Action = 'verify' | 'delete' | 'undelete' | 'create';

export const SnapshotsPage = () => {
  const list = useList<Snapshot>(path);
  const [acting, setActing] = useState<{ readonly action: Action; readonly snapshot: Snapshot | null } | null>(null);
  const navigate = useNavigate();
  const [importing, setImporting] = useState(false);
  const ofPlatform = usePlatformRight('snapshots:read');
  const schedule = useQuery({
    queryKey: ['/api/snapshot-schedule'],
    queryFn: ({ signal }) => send<SnapshotSchedule>({ method: 'GET', path: '/api/snapshot-schedule' }, { signal }),
  });
  const create = (
    <Button tone="primary" icon="snapshot" onClick={() => setActing({ action: 'create', snapshot: null })}>
      Create snapshot{' '}
    </Button>
  );
  const actionsOf = (snapshot: Snapshot): readonly MenuAction[] => {
    const item = (text: string, icon: IconName, action: Action, danger = false): MenuAction => ({
      text,
      icon,
      danger,
      onSelect: () => setActing({ action, snapshot }),
    });
    if (snapshot.state === 'deleted') return [item('Undelete…', 'refresh', 'undelete')];
    if (snapshot.state !== 'held') return [];
    return [
      item('Verify now…', 'check', 'verify'),
      ...(ofPlatform === true
        ? [
            {
              text: 'Restore…',
              icon: 'refresh',
              onSelect: () => void navigate({ to: '/snapshots/$id/restore', params: { id: snapshot.id } }),
            } as const,
          ]
        : []),
      item('Delete…', 'trash', 'delete', true),
    ];
  };
  const texts = {
    create: [
      'Create a snapshot?',
      'Create snapshot',
      'A consistent online snapshot of the tenant. DKE seals it to every recovery key and verifies it.',
    ],
    verify: [
      'Verify this snapshot?',
      'Verify snapshot',
      'Checks signature, structure, digest and counts. With a recovery key, the command also opens every row.',
    ],
    delete: [
      'Delete this snapshot?',
      'Delete snapshot',
      'You can undelete it for a limited time. Then its file is removed.',
    ],
    undelete: ['Undelete this snapshot?', 'Undelete snapshot', 'It becomes available again, unchanged.'],
  } as const satisfies Record<Action, readonly [string, string, string]>;
  const callOf = (action: Action, id: string | undefined) => {
    if (id === undefined) return { method: 'POST', path, body: {} } as const;
    if (action === 'delete') return { method: 'DELETE', path: own(id) } as const;
    return action === 'verify'
      ? ({ method: 'POST', path: `${own(id)}/verify`, body: {} } as const)
      : ({ method: 'POST', path: `${own(id)}/undelete` } as const);
  };
  return (
    <Page
      title="Snapshots"
      description="Complete states of a tenant, sealed to recovery keys that the service does not have. No restore brings a destroyed key back."
      actions={
        <>
          {ofPlatform === true && (
            <Button icon="refresh" onClick={() => setImporting(true)}>
              Restore from a file…
            </Button>
          )}
          {create}
        </>
      }
    >
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
                [
                  'Kept',
                  [
                    value.keepCount === null ? '' : `${value.keepCount} of them`,
                    value.keepDays === null ? '' : `${value.keepDays} days`,
                  ]
                    .filter((part) => part !== '')
                    .join(', ') || 'until you delete them',
                ],
                ['Undelete within', `${value.undeleteDays} days`],
              ]}
            />
          )}
        </Async>
      </Panel>
      <Panel title="Snapshots" flush>
        <ListView
          list={list}
          caption="Snapshots"
          rowKey={({ id }) => id}
          columns={[
            { key: 'at', header: 'Time', names: true, cell: ({ at }) => <Time value={at} seconds /> },
            {
              key: 'state',
              header: 'State',
              cell: ({ state }) => {
                const [tone, icon, word] = looks[state];
                return (
                  <Badge tone={tone} icon={icon}>
                    {word}
                  </Badge>
                );
              },
            },
            { key: 'verified', header: 'Verified', cell: (snapshot) => <Verified snapshot={snapshot} /> },
            { key: 'keys', header: 'Keys', cell: ({ keys }) => keys.toLocaleString() },
            { key: 'size', header: 'Size', nowrap: true, cell: ({ size }) => formatSize(size) },
            {
              key: 'actions',
              header: 'Actions',
              end: true,
              actions: true,
              cell: (snapshot) => (
                <ActionMenu label={`Actions on the snapshot of ${snapshot.at}`} actions={actionsOf(snapshot)} />
              ),
            },
          ]}
          detail={(snapshot) => (
            <Facts
              items={[
                ['Id', <code key="id">{snapshot.id}</code>],
                ['Origin', snapshot.origin],
                ['Opened by', snapshot.recoveryKeyIds.join(', ')],
                ['Damaged, left out', String(snapshot.leftOut)],
                ['Destroyed since, removed', String(snapshot.erased)],
                ...(snapshot.failure === null ? [] : [['Failure', snapshot.failure] as const]),
                ...Object.entries(snapshot.rows).map(([table, count]) => [table, count.toLocaleString()] as const),
              ]}
            />
          )}
          empty={
            <EmptyState title="No snapshots yet" action={create}>
              {ofPlatform === false
                ? 'Each is a consistent state of this tenant, sealed to the recovery keys that the operators registered.'
                : 'Register a recovery key, create a snapshot, and test a restore soon.'}
            </EmptyState>
          }
        />
      </Panel>
      {ofPlatform === true && <RecoveryKeys />}
      {ofPlatform === false && <KeptByOthers />}
      {importing && <ImportDialog onClose={() => setImporting(false)} />}
      {acting !== null && (
        <ActionDialog<Snapshot>
          title={texts[acting.action][0]}
          call={callOf(acting.action, acting.snapshot?.id)}
          creates={acting.action === 'create'}
          submitLabel={texts[acting.action][1]}
          danger={acting.action === 'delete'}
          renews={[path]}
          done={`${texts[acting.action][1]}: done`}
          onClose={() => setActing(null)}
        >
          <p>{texts[acting.action][2]}</p>
        </ActionDialog>
      )}
    </Page>
  );
};
