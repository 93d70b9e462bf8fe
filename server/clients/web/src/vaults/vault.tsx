// One vault: its state, rotation profile and dual control, and what depends on it.

import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { send } from '../api/client.ts';
import { vaultPath, vaultsPath } from '../api/paths.ts';
import type { Vault } from '../api/types.ts';
import { VaultMap } from '../map/maps.tsx';
import { useMay } from '../session/may.ts';
import { Async } from '../ui/page/async.tsx';
import { Copyable } from '../ui/page/copy.tsx';
import { ActionMenu } from '../ui/page/menu.tsx';
import { Facts, Page, Panel } from '../ui/page/page.tsx';
import { StateBadge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { DualControlButton } from './dual-control.tsx';
import { profileNames, useVaultActions } from './vault-actions.tsx';

const route = getRouteApi('/vaults/$id');

export const VaultPage = () => {
  const { id } = route.useParams();
  const may = useMay();
  const { actionsOf, dialog } = useVaultActions();
  const query = useQuery({
    queryKey: [vaultsPath, id],
    queryFn: ({ signal }) => send<Vault>({ method: 'GET', path: vaultPath(id) }, { signal }),
  });
  const vault = query.data;
  return (
    <Page
      title={vault?.name ?? 'Vault'}
      crumbs={[{ text: 'Vaults', to: '/vaults' }]}
      badge={vault !== undefined && <StateBadge state={vault.state} integrity={vault.integrity} />}
      actions={vault !== undefined && <ActionMenu label="Actions on this vault" actions={actionsOf(vault)} />}
    >
      <Panel>
        <Async query={query}>
          {(value) => (
            <Facts
              items={[
                ['Id', <Copyable key="id" value={value.id} label="vault id" />],
                ['Contains', value.kind === 'tde' ? 'TDE master keys' : 'General-purpose keys'],
                ['Rotation profile', profileNames[value.profile]],
                ['Dual control', value.state === 'deleted' ? '–' : <DualControlButton key="dual" vault={value} />],
                ['Created', <Time key="created" value={value.createdAt} />],
                [
                  'Keys',
                  <Link key="keys" to="/keys" search={{ vaultId: value.id }} className="link">
                    Show the keys of this vault
                  </Link>,
                ],
                ...(may('audit:read')
                  ? [
                      [
                        'History',
                        <Link key="history" to="/audit" search={{ subjectId: value.id }} className="link">
                          In the audit log
                        </Link>,
                      ] as const,
                    ]
                  : []),
              ]}
            />
          )}
        </Async>
      </Panel>
      {vault !== undefined && <VaultMap vault={vault} />}
      {dialog}
    </Page>
  );
};
