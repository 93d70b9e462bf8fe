// Creates a resource that needs only a name: a tenant, a vault, a TDE group.

import { useState } from 'react';
import { NameField } from '../fields/field.tsx';
import { FormDialog } from './form.tsx';

export const CreateDialog = ({
  kind,
  help,
  path,
  renews = [path],
  onClose,
}: {
  /** "tenant", "vault", "group". */
  kind: string;
  /** Below the field of the name. */
  help: string;
  path: string;
  /** First parts of the query keys that the creation changes. */
  renews?: readonly string[];
  onClose: () => void;
}) => {
  const [name, setName] = useState('');
  return (
    <FormDialog<{ readonly name: string }>
      title={`Create a ${kind}`}
      call={{ method: 'POST', path, body: { name } }}
      creates
      submitLabel={`Create ${kind}`}
      onCancel={onClose}
      renews={renews}
      done={(created) => `${kind.charAt(0).toUpperCase()}${kind.slice(1)} “${created.name}” created`}
    >
      {(fault) => <NameField help={help} value={name} onValue={setName} fault={fault('name')} />}
    </FormDialog>
  );
};
