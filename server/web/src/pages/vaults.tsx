// Vaults: list, create, enable, disable, delete. A vault holds keys; disabling one stops every use of its keys at once.

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { waysBack } from '../../../base/way-back.ts';
import { send } from '../api/client.ts';
import type { Approval, Vault } from '../api/types.ts';
import { ActionDialog } from '../components/forms/action-dialog.tsx';
import { CreateDialog } from '../components/forms/create-dialog.tsx';
import { DeleteDialog } from '../components/forms/delete-dialog.tsx';
import { DualControlButton } from '../components/keys/dual-control.tsx';
import { ImpactView } from '../components/keys/impact.tsx';
import { keysPath } from '../components/keys/keys.ts';
import { vaultsPath as path } from '../components/keys/vaults.ts';
import { Async } from '../components/page/async.tsx';
import { Button } from '../components/page/button.tsx';
import { ActionMenu } from '../components/page/menu.tsx';
import { Page, Panel } from '../components/page/page.tsx';
import { EmptyState } from '../components/page/problem-view.tsx';
import { StateBadge } from '../components/page/state-badge.tsx';
import { Time } from '../components/page/time.tsx';
import { ListView, useList } from '../components/table/list-view.tsx';

const SwitchVault = ({ vault, onClose }: { vault: Vault; onClose: () => void }) => {
  const disable = vault.state === 'enabled';
  return (
    <ActionDialog<Vault>
      title={disable ? `Disable “${vault.name}”?` : `Enable “${vault.name}”?`}
      call={{ method: 'POST', path: `${path}/${encodeURIComponent(vault.id)}/${disable ? 'disable' : 'enable'}` }}
      submitLabel={disable ? 'Disable vault' : 'Enable vault'}
      danger={disable}
      renews={[path, keysPath]}
      done={disable ? `Vault “${vault.name}” disabled` : `Vault “${vault.name}” enabled`}
      onClose={onClose}
    >
      {disable ? (
        <p>Cloud key stores and databases cannot use its keys until you enable the vault again. No key is lost.</p>
      ) : (
        <p>Its enabled keys can be used again at once.</p>
      )}
    </ActionDialog>
  );
};

/** What the dry run of a deletion finds. */
interface Found {
  readonly plan?: Pick<Approval, 'impact'>;
}

const DeleteVault = ({ vault, onClose }: { vault: Vault; onClose: () => void }) => {
  const itsPath = `${path}/${encodeURIComponent(vault.id)}`;
  const found = useQuery({
    queryKey: [path, vault.id, 'deletion'],
    queryFn: () => send<Found>({ method: 'DELETE', path: itsPath, query: { dryRun: true } }),
    staleTime: 0,
  });
  return (
    <DeleteDialog
      kind="vault"
      name={vault.name}
      path={itsPath}
      renews={[path, keysPath]}
      ready={found.data !== undefined}
      onClose={onClose}
    >
      <p>
        Its keys become unavailable: endpoints that use them answer “key not found”. A vault that still contains live
        master keys of databases cannot be deleted. {waysBack['vault-deleted'].way}
      </p>
      <Async query={found} lines={2}>
        {({ plan }) => <ImpactView impact={plan?.impact ?? {}} />}
      </Async>
    </DeleteDialog>
  );
};

export const VaultsPage = () => {
  const list = useList<Vault>(path);
  const [creating, setCreating] = useState(false);
  const [switching, setSwitching] = useState<Vault | null>(null);
  const [deleting, setDeleting] = useState<Vault | null>(null);
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
          columns={[
            {
              key: 'name',
              header: 'Name',
              names: true,
              cell: (vault) => (
                <Link to="/keys" search={{ vaultId: vault.id }} className="link" title="Show the keys of this vault">
                  {vault.name}
                </Link>
              ),
            },
            {
              key: 'state',
              header: 'State',
              cell: (vault) => <StateBadge state={vault.state} integrity={vault.integrity} />,
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
              cell: (vault) => (
                <ActionMenu
                  label={`Actions on vault ${vault.name}`}
                  actions={
                    vault.state === 'deleted'
                      ? []
                      : [
                          vault.state === 'enabled'
                            ? {
                                text: 'Disable',
                                needs: 'vaults:manage',
                                icon: 'pause',
                                onSelect: () => setSwitching(vault),
                              }
                            : {
                                text: 'Enable',
                                needs: 'vaults:manage',
                                icon: 'active',
                                onSelect: () => setSwitching(vault),
                              },
                          {
                            text: 'Delete',
                            needs: 'vaults:manage',
                            icon: 'trash',
                            danger: true,
                            onSelect: () => setDeleting(vault),
                          },
                        ]
                  }
                />
              ),
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
      {deleting !== null && <DeleteVault vault={deleting} onClose={() => setDeleting(null)} />}
      {switching !== null && <SwitchVault vault={switching} onClose={() => setSwitching(null)} />}
    </Page>
  );
};
