// Files that left the service with its keys: lists those that are not confirmed as destroyed, and
// confirms it.

import { useState } from 'react';
import { keysPath } from '../api/paths.ts';
import type { Copy } from '../api/types.ts';
import { ActionDialog } from '../ui/forms/action-dialog.tsx';
import { ActionMenu } from '../ui/page/menu.tsx';
import { Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { Badge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import type { Column } from '../ui/table/data-table.tsx';
import { ListView, useList } from '../ui/table/list-view.tsx';

const path = '/api/copies';
const words: Readonly<Record<Copy['kind'], string>> = {
  'exported-snapshot': 'Exported snapshot',
  'service-backup': 'Backup of the service',
  'root-backup': 'Backup of the root key',
};

const columns = (confirm: (copy: Copy) => void): readonly Column<Copy>[] => [
  { key: 'at', header: 'Time', names: true, cell: ({ at }) => <Time value={at} seconds /> },
  {
    key: 'kind',
    header: 'Kind',
    cell: ({ kind, tampered }) =>
      tampered ? (
        <Badge tone="danger" icon="warning">
          Tampered with
        </Badge>
      ) : (
        words[kind]
      ),
  },
  { key: 'by', header: 'By', cell: ({ actorName }) => actorName },
  { key: 'id', header: 'Id', cell: ({ id }) => <code>{id}</code> },
  {
    key: 'actions',
    header: 'Actions',
    end: true,
    actions: true,
    cell: (copy) => (
      <ActionMenu
        label={`Actions on the copy of ${copy.at}`}
        actions={
          copy.tampered
            ? []
            : [
                {
                  text: 'Confirm destruction',
                  needs: 'snapshots:manage',
                  icon: 'destroyed',
                  danger: true,
                  onSelect: () => confirm(copy),
                },
              ]
        }
      />
    ),
  },
];

export const OutsideCopies = () => {
  const list = useList<Copy>(path, { left: 'true' });
  const [confirming, confirm] = useState<Copy | null>(null);
  return (
    <Panel
      title="Copies outside the service"
      description="Files that left the service. Destroyed keys that are in one of them do not count as unrecoverable."
      flush
    >
      <ListView
        list={list}
        caption="Copies outside the service"
        rowKey={({ id }) => id}
        columns={columns(confirm)}
        empty={
          <EmptyState title="No copies outside the service">
            Exported snapshots, and backups that commands on the host made, are listed here.
          </EmptyState>
        }
      />
      {confirming !== null && (
        <ActionDialog
          title="Confirm that this file is destroyed?"
          call={{ method: 'POST', path: `${path}/${encodeURIComponent(confirming.id)}/confirm-destroyed`, body: {} }}
          submitLabel="Confirm destruction"
          danger
          renews={[path, keysPath]}
          done="Destruction confirmed"
          onClose={() => confirm(null)}
        >
          <p>
            {words[confirming.kind]} of <Time value={confirming.at} seconds />. You state that this file and all copies
            of it are destroyed. The service cannot check it. The audit log records your name, and this cannot be
            undone.
          </p>
        </ActionDialog>
      )}
    </Panel>
  );
};
