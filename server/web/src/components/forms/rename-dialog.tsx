// Gives a resource another name. What refers to it does so by its id, so nothing else changes.

import { NameField } from '../fields/field.tsx';
import { EditDialog } from './edit-dialog.tsx';

interface Named {
  readonly name: string;
}

export const RenameDialog = ({
  kind,
  name,
  help,
  path,
  own = false,
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
      <NameField help={help} value={body.name} onValue={(next) => onBody({ name: next })} fault={fault('name')} />
    )}
  </EditDialog>
);
