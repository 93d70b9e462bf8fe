// The actions on a vault, in its row and on its page, with the dialog of the chosen one.

import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { waysBack } from '../../../../base/way-back.ts';
import { send } from '../api/client.ts';
import { keysPath, vaultPath, vaultsPath } from '../api/paths.ts';
import type { Vault } from '../api/types.ts';
import { SelectField } from '../ui/fields/field.tsx';
import { ActionDialog } from '../ui/forms/action-dialog.tsx';
import { DeleteDialog } from '../ui/forms/delete-dialog.tsx';
import { EditDialog } from '../ui/forms/edit-dialog.tsx';
import { RenameDialog } from '../ui/forms/rename-dialog.tsx';
import { Async } from '../ui/page/async.tsx';
import type { MenuAction } from '../ui/page/menu.tsx';
import { Facts } from '../ui/page/page.tsx';
import { Time } from '../ui/page/time.tsx';

export const profileNames: Readonly<Record<Vault['profile'], string>> = {
  standard: 'Standard: every 6 to 12 months',
  'high-security': 'High security: every 3 to 6 months',
};

const RotationProfile = ({ vault, onClose }: { vault: Vault; onClose: () => void }) => (
  <EditDialog<Vault, Pick<Vault, 'profile'>>
    title={`Rotation profile of “${vault.name}”`}
    path={vaultPath(vault.id)}
    bodyOf={({ profile }) => ({ profile })}
    callOf={(body) => ({ method: 'PUT', path: `${vaultPath(vault.id)}/profile`, body })}
    names={{ profile: 'Rotation profile' }}
    submitLabel="Save profile"
    onClose={onClose}
    renews={[vaultsPath]}
    done={({ name, profile }) => `Rotation profile of “${name}”: ${profile}`}
  >
    {({ body, onBody, fault }) => (
      <SelectField
        label="Rotation profile"
        help="Notifications about keys that are due for rotation use it."
        value={body.profile}
        onValue={(profile) => onBody({ profile: profile === 'high-security' ? 'high-security' : 'standard' })}
        fault={fault('profile')}
        choices={Object.entries(profileNames).map(([value, text]) => ({ value, text }))}
      />
    )}
  </EditDialog>
);

const SwitchVault = ({ vault, onClose }: { vault: Vault; onClose: () => void }) => {
  const disable = vault.state === 'enabled';
  return (
    <ActionDialog<Vault>
      title={disable ? `Disable “${vault.name}”?` : `Enable “${vault.name}”?`}
      call={{ method: 'POST', path: `${vaultPath(vault.id)}/${disable ? 'disable' : 'enable'}` }}
      submitLabel={disable ? 'Disable vault' : 'Enable vault'}
      danger={disable}
      renews={[vaultsPath, keysPath]}
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
  readonly plan?: {
    readonly impact: {
      readonly keys?: number;
      readonly endpoints?: readonly string[];
      readonly lastUsedAt?: string | null;
      readonly lastUsedBy?: string | null;
    };
  };
}

const DeleteVault = ({ vault, onClose }: { vault: Vault; onClose: () => void }) => {
  const itsPath = vaultPath(vault.id);
  const found = useQuery({
    queryKey: [vaultsPath, vault.id, 'deletion'],
    queryFn: () => send<Found>({ method: 'DELETE', path: itsPath, query: { dryRun: true } }),
    staleTime: 0,
  });
  return (
    <DeleteDialog
      kind="vault"
      name={vault.name}
      path={itsPath}
      renews={[vaultsPath, keysPath]}
      ready={found.data !== undefined}
      onClose={onClose}
    >
      <p>
        Its keys become unavailable: endpoints that use them answer “key not found”. A vault that still contains live
        master keys of databases cannot be deleted. {waysBack['vault-deleted'].way}
      </p>
      <Async query={found} lines={2}>
        {({ plan }) => (
          <Facts
            items={[
              ['Keys', String(plan?.impact.keys ?? 0)],
              ['Key store endpoints', plan?.impact.endpoints?.join(', ') || 'none'],
              ['Last use of a key', <Time key="used" value={plan?.impact.lastUsedAt ?? null} distance />],
              ['Used by', plan?.impact.lastUsedBy ?? '–'],
            ]}
          />
        )}
      </Async>
    </DeleteDialog>
  );
};

type Action = 'rename' | 'profile' | 'switch' | 'delete';

export const useVaultActions = (): {
  readonly actionsOf: (vault: Vault) => readonly MenuAction[];
  readonly dialog: ReactNode;
} => {
  const [acting, setActing] = useState<{ readonly vault: Vault; readonly action: Action } | null>(null);
  const close = () => setActing(null);
  const actionsOf = (vault: Vault): readonly MenuAction[] => {
    if (vault.state === 'deleted') return [];
    const item = (text: string, icon: MenuAction['icon'], action: Action, danger = false): MenuAction => ({
      ...{ text, icon, danger },
      needs: 'vaults:manage',
      onSelect: () => setActing({ vault, action }),
    });
    return [
      // The vault of a group has the name of the group.
      ...(vault.kind === 'tde' ? [] : [item('Rename', 'gear', 'rename')]),
      item('Rotation profile', 'refresh', 'profile'),
      vault.state === 'enabled' ? item('Disable', 'pause', 'switch') : item('Enable', 'active', 'switch'),
      item('Delete', 'trash', 'delete', true),
    ];
  };
  return {
    actionsOf,
    dialog: acting !== null && (
      <>
        {acting.action === 'rename' && (
          <RenameDialog
            kind="vault"
            name={acting.vault.name}
            help="Its id and its keys stay."
            path={vaultPath(acting.vault.id)}
            vaultId={acting.vault.id}
            renews={[vaultsPath, keysPath]}
            onClose={close}
          />
        )}
        {acting.action === 'profile' && <RotationProfile vault={acting.vault} onClose={close} />}
        {acting.action === 'switch' && <SwitchVault vault={acting.vault} onClose={close} />}
        {acting.action === 'delete' && <DeleteVault vault={acting.vault} onClose={close} />}
      </>
    ),
  };
};
