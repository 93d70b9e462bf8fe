// Gives a resource another name. What refers to it does so by its id, so nothing else changes.

import { useQuery } from '@tanstack/react-query';
import { send } from '../../api/client.ts';
import { vaultPath } from '../../api/paths.ts';
import type { VaultDualControl } from '../../api/types.ts';
import { NameField } from '../fields/field.tsx';
import { Notice } from '../page/notice.tsx';
import { EditDialog } from './edit-dialog.tsx';

interface Named {
  readonly name: string;
}

/** A vault under a rule gets another name when others have approved it. */
const NeedsApproval = ({ vaultId }: { vaultId: string }) => {
  const path = `${vaultPath(vaultId)}/dual-control`;
  const { data } = useQuery({
    queryKey: [path],
    queryFn: ({ signal }) => send<VaultDualControl>({ method: 'GET', path }, { signal }),
    staleTime: 0,
  });
  if (data === undefined || data.rule === null) return null;
  return (
    <Notice tone="info" title={`Under dual control: ${data.rule.required} must approve the new name`}>
      {data.approvers.length === 0
        ? 'There are no eligible approvers.'
        : `Eligible approvers: ${data.approvers.map(({ name }) => name).join(', ')}.`}
    </Notice>
  );
};

export const RenameDialog = ({
  kind,
  name,
  help,
  path,
  own = false,
  vaultId,
  renews,
  onClose,
}: {
  /** "vault", "group". */
  kind: string;
  /** The name that it has. */
  name: string;
  /** Below the field of the name. */
  help: string;
  /** Where the resource is read. */
  path: string;
  /**
   * The name is all that the resource itself takes; otherwise it is changed at a place of its own.
   */
  own?: boolean;
  /** The vault that is renamed: its dual control governs it. */
  vaultId?: string;
  /** First parts of the query keys that the change concerns. */
  renews: readonly string[];
  onClose: () => void;
}) => (
  <EditDialog<Named, Named>
    title={`Rename “${name}”`}
    path={path}
    bodyOf={(resource) => ({ name: resource.name })}
    callOf={(body) => ({ method: 'PUT', path: own ? path : `${path}/name`, body })}
    names={{ name: 'Name' }}
    submitLabel={`Rename ${kind}`}
    onClose={onClose}
    renews={renews}
    done={(renamed) => `“${name}” is now “${renamed.name}”`}
  >
    {({ body, onBody, fault }) => (
      <>
        <NameField help={help} value={body.name} onValue={(next) => onBody({ name: next })} fault={fault('name')} />
        {vaultId !== undefined && <NeedsApproval vaultId={vaultId} />}
      </>
    )}
  </EditDialog>
);
