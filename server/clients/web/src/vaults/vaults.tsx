// Vaults: list, create, enable, disable, delete. A vault holds keys; disabling one stops every use
// of its keys at once.

import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { vaultsPath as path } from '../api/paths.ts';
import type { Vault } from '../api/types.ts';
import { CreateDialog } from '../ui/forms/create-dialog.tsx';
import { Button } from '../ui/page/button.tsx';
import { ActionMenu } from '../ui/page/menu.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { StateBadge, stateWord } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { ListView, useList } from '../ui/table/list-view.tsx';
import { DualControlButton } from './dual-control.tsx';
import { useVaultActions } from './vault-actions.tsx';

const nameOf = ({ name }: Vault): string => name;

export const VaultsPage = () => {
  const list = useList<Vault>(path);
  const [creating, setCreating] = useState(false);
  const { actionsOf, dialog } = useVaultActions();
  const create = (
    <Button tone="primary" icon="plus" creates needs="vaults:manage" opens onClick={() => setCreating(true)}>
      Create vault
    </Button>
  );
  return (
    <Page
      title="Vaults"
      description="Vaults contain keys. Each key is in exactly one vault, and each key store endpoint uses one vault."
      actions={create}
    >
      <Panel flush>
        <ListView
          list={list}
          endless
          caption="Vaults"
          rowKey={(vault) => vault.id}
          nameOf={nameOf}
          columns={[
            {
              key: 'name',
              header: 'Name',
              names: true,
              sort: nameOf,
              cell: (vault) => (
                <Link to="/vaults/$id" params={{ id: vault.id }} className="link">
                  {vault.name}
                </Link>
              ),
            },
            {
              key: 'state',
              header: 'State',
              cell: (vault) => <StateBadge state={vault.state} integrity={vault.integrity} />,
              sort: ({ state }) => state,
              pick: stateWord,
            },
            {
              key: 'kind',
              header: 'Purpose',
              nowrap: true,
              cell: (vault) => (vault.kind === 'tde' ? 'Database encryption' : 'General purpose'),
            },
            {
              key: 'dual',
              header: 'Dual control',
              cell: (vault) => (vault.state === 'deleted' ? '–' : <DualControlButton vault={vault} />),
            },
            { key: 'created', header: 'Created', cell: (vault) => <Time value={vault.createdAt} /> },
            {
              key: 'actions',
              header: 'Actions',
              end: true,
              actions: true,
              cell: (vault) => <ActionMenu label={`Actions on vault ${vault.name}`} actions={actionsOf(vault)} />,
            },
          ]}
          empty={
            <EmptyState title="No vaults yet" action={create}>
              Create a vault first. Then create keys in it, and an endpoint for a cloud key store.
            </EmptyState>
          }
        />
      </Panel>
      {creating && (
        <CreateDialog
          kind="vault"
          help="For example, the purpose or the owner of its keys."
          path={path}
          onClose={() => setCreating(false)}
        />
      )}
      {dialog}
    </Page>
  );
};
