// The recovery keys that open snapshots: lists, registers and removes them.

import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { send } from '../api/client.ts';
import type { RecoveryKey } from '../api/types.ts';
import { NameField, TextField } from '../ui/fields/field.tsx';
import { ActionDialog } from '../ui/forms/action-dialog.tsx';
import { FormDialog } from '../ui/forms/form.tsx';
import { Async } from '../ui/page/async.tsx';
import { Button } from '../ui/page/button.tsx';
import { ActionMenu } from '../ui/page/menu.tsx';
import { Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { Badge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { type Column, DataTable } from '../ui/table/data-table.tsx';

const path = '/api/recovery-keys';

const State = ({ recoveryKey: { tampered, removedAt } }: { recoveryKey: RecoveryKey }) => {
  if (tampered)
    return (
      <Badge tone="danger" icon="warning">
        Tampered with
      </Badge>
    );
  return removedAt === null ? (
    <Badge tone="ok" icon="active">
      In use
    </Badge>
  ) : (
    <Badge tone="quiet" icon="trash">
      Removed
    </Badge>
  );
};

const snapshotsOf = (count: number): string => (count === 1 ? '1 snapshot' : `${count} snapshots`);

const columns = (remove: (key: RecoveryKey) => void): readonly Column<RecoveryKey>[] => [
  { key: 'name', header: 'Name', names: true, cell: (key) => key.name },
  { key: 'id', header: 'Id', cell: ({ id }) => <code>{id}</code> },
  { key: 'state', header: 'State', cell: (key) => <State recoveryKey={key} /> },
  { key: 'created', header: 'Registered', cell: ({ createdAt }) => <Time value={createdAt} /> },
  { key: 'snapshots', header: 'Opens', cell: ({ snapshotCount }) => snapshotsOf(snapshotCount) },
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
            ? [
                {
                  text: 'Remove',
                  needs: 'recovery-keys:manage',
                  icon: 'trash',
                  danger: true,
                  onSelect: () => remove(key),
                },
              ]
            : []
        }
      />
    ),
  },
];

const RegisterDialog = ({ onClose }: { onClose: () => void }) => {
  const [name, setName] = useState('');
  const [publicKey, setPublicKey] = useState('');
  return (
    <FormDialog<RecoveryKey>
      title="Register a recovery key"
      call={{ method: 'POST', path, body: { name, publicKey: publicKey.trim() } }}
      creates
      submitLabel="Register recovery key"
      onCancel={onClose}
      renews={[path]}
      done={(key) => `Recovery key “${key.name}” registered`}
    >
      {(fault) => (
        <>
          <NameField help="Its owner, or where it is stored." value={name} onValue={setName} fault={fault('name')} />
          <TextField
            label="Public half"
            mono
            help={
              <>
                The output of <code>dke recovery-key show recovery.key</code>.
              </>
            }
            value={publicKey}
            onValue={setPublicKey}
            fault={fault('publicKey')}
          />
        </>
      )}
    </FormDialog>
  );
};

export const RecoveryKeys = () => {
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<RecoveryKey | null>(null);
  const query = useQuery({
    queryKey: [path],
    queryFn: ({ signal }) => send<{ readonly items: readonly RecoveryKey[] }>({ method: 'GET', path }, { signal }),
  });
  return (
    <Panel
      title="Recovery keys"
      description="Snapshots are sealed to each of them. The service has only the public halves. Keep the files elsewhere."
      actions={
        <Button needs="recovery-keys:manage" icon="plus" opens onClick={() => setAdding(true)}>
          Register recovery key
        </Button>
      }
      flush={query.data !== undefined}
    >
      <Async query={query} lines={2}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState title="No recovery keys yet">
              <p>
                Snapshots need a recovery key. Create one on another machine, with{' '}
                <code>dke recovery-key create --out recovery.key</code>. Keep the file in a safe place, and register its
                public half here.
              </p>
            </EmptyState>
          ) : (
            <DataTable caption="Recovery keys" rows={items} rowKey={({ id }) => id} columns={columns(setRemoving)} />
          )
        }
      </Async>
      {adding && <RegisterDialog onClose={() => setAdding(false)} />}
      {removing !== null && (
        <ActionDialog
          title={`Remove the recovery key “${removing.name}”?`}
          call={{ method: 'DELETE', path: `${path}/${encodeURIComponent(removing.id)}` }}
          submitLabel="Remove recovery key"
          danger
          renews={[path]}
          done="Recovery key removed"
          onClose={() => setRemoving(null)}
        >
          <p>
            New snapshots are not sealed to it. It still opens {snapshotsOf(removing.snapshotCount)}
            {removing.snapshotCount > 0 &&
              ', which the record of the removal names: keep its file as long as you keep them'}
            .
          </p>
        </ActionDialog>
      )}
    </Panel>
  );
};

/** Shown to users of one tenant instead of the recovery keys, which belong to the platform. */
export const RecoveryKeysOfOperators = () => (
  <Panel title="Recovery keys">
    <p className="max-w-prose">
      Snapshots of this tenant are sealed to the recovery keys of the service's operators. Operators register the keys,
      restore snapshots and import snapshot files. Ask them for a restore.
    </p>
  </Panel>
);
