// The actions on a key, in its row and on its page: enable, disable, rotate, delete. Destruction is
// not here: it belongs to the master keys of a database application, with their blast radius.

import { type ReactNode, useState } from 'react';
import { waysBack } from '../../../../base/way-back.ts';
import { applicationsPath, keyPath, keysPath } from '../api/paths.ts';
import type { DeletedKey, Key } from '../api/types.ts';
import { NameField } from '../ui/fields/field.tsx';
import { ActionDialog } from '../ui/forms/action-dialog.tsx';
import { DeleteDialog } from '../ui/forms/delete-dialog.tsx';
import { EditDialog, type Fields } from '../ui/forms/edit-dialog.tsx';
import { ActionMenu, type MenuAction } from '../ui/page/menu.tsx';
import { LastUse, useKeyUse } from './key-use.tsx';
import { readTags, TagsField } from './tags.tsx';

type Action = 'edit' | 'enable' | 'disable' | 'rotate' | 'delete';

/** The actions that the key's state allows, and the dialog of the chosen one. */
export const useKeyActions = (key: Key | undefined): { actions: readonly MenuAction[]; dialog: ReactNode } => {
  const [action, setAction] = useState<Action | null>(null);
  if (key === undefined) return { actions: [], dialog: null };
  const actions: MenuAction[] = [];
  if (key.state !== 'destroyed')
    actions.push({ text: 'Edit', needs: 'keys:manage', icon: 'gear', onSelect: () => setAction('edit') });
  if (key.state === 'active' && key.kind === 'general') {
    actions.push({ text: 'Rotate', needs: 'keys:manage', icon: 'refresh', onSelect: () => setAction('rotate') });
  }
  if (key.state === 'active')
    actions.push({ text: 'Disable', needs: 'keys:manage', icon: 'pause', onSelect: () => setAction('disable') });
  if (key.state === 'disabled')
    actions.push({ text: 'Enable', needs: 'keys:manage', icon: 'active', onSelect: () => setAction('enable') });
  if (key.state === 'active' || key.state === 'disabled') {
    actions.push({
      text: 'Delete',
      needs: 'keys:delete',
      icon: 'trash',
      danger: true,
      onSelect: () => setAction('delete'),
    });
  }
  return {
    actions,
    dialog: action !== null && <KeyDialog target={key} action={action} onClose={() => setAction(null)} />,
  };
};

export const KeyRowMenu = ({ target: key }: { target: Key }) => {
  const { actions, dialog } = useKeyActions(key);
  return (
    <>
      <ActionMenu label={`Actions on key ${key.name}`} actions={actions} />
      {dialog}
    </>
  );
};

const KeyDialog = ({ target: key, action, onClose }: { target: Key; action: Action; onClose: () => void }) => {
  const path = keyPath(key.id);
  const shared = { renews: [keysPath, applicationsPath], onClose };
  if (action === 'edit') return <EditKey target={key} onClose={onClose} />;
  if (action === 'enable') {
    return (
      <ActionDialog
        {...shared}
        title={`Enable “${key.name}”?`}
        call={{ method: 'POST', path: `${path}/enable` }}
        submitLabel="Enable key"
        done={`Key “${key.name}” enabled`}
      >
        <p>It can be used again at once.</p>
      </ActionDialog>
    );
  }
  if (action === 'disable') {
    return (
      <ActionDialog
        {...shared}
        title={`Disable “${key.name}”?`}
        call={{ method: 'POST', path: `${path}/disable` }}
        submitLabel="Disable key"
        danger
        done={`Key “${key.name}” disabled`}
      >
        <p>Requests that use this key will fail until you enable it again. No data is lost.</p>
      </ActionDialog>
    );
  }
  if (action === 'rotate') {
    return (
      <ActionDialog
        {...shared}
        title={`Rotate “${key.name}”?`}
        call={{ method: 'POST', path: `${path}/rotate` }}
        submitLabel="Rotate key"
        done={`Key “${key.name}” rotated`}
      >
        <p>
          New data is encrypted with a new version. Version {key.currentVersion} and earlier versions can still decrypt
          their data.
        </p>
      </ActionDialog>
    );
  }
  return <DeleteKey target={key} onClose={onClose} />;
};

interface KeyBody {
  readonly name: string;
  readonly tags: readonly string[];
}

const KeyFields = ({ resource: key, first, body, onBody, fault }: Fields<Key, KeyBody>) => {
  const [tags, setTags] = useState(first.tags.join(' '));
  return (
    <>
      {key.kind === 'general' ? (
        <NameField value={body.name} onValue={(name) => onBody({ ...body, name })} fault={fault('name')} />
      ) : (
        <p className="text-muted">The name of a master key is its label. The database sets it.</p>
      )}
      <TagsField
        value={tags}
        onValue={(text) => {
          setTags(text);
          onBody({ ...body, tags: readTags(text) });
        }}
        fault={fault}
      />
    </>
  );
};

const EditKey = ({ target: key, onClose }: { target: Key; onClose: () => void }) => (
  <EditDialog<Key, KeyBody>
    title={`Edit “${key.name}”`}
    path={keyPath(key.id)}
    bodyOf={({ name, tags }) => ({ name, tags })}
    callOf={(body) => ({ method: 'PUT', path: keyPath(key.id), body })}
    names={{ name: 'Name', tags: 'Tags' }}
    submitLabel="Save key"
    onClose={onClose}
    renews={[keysPath, applicationsPath]}
    done={(changed) => `Key “${changed.name}” saved`}
  >
    {(fields) => <KeyFields {...fields} />}
  </EditDialog>
);

const DeleteKey = ({ target: key, onClose }: { target: Key; onClose: () => void }) => {
  const use = useKeyUse(key.id);
  return (
    <DeleteDialog<DeletedKey>
      kind="key"
      name={key.name}
      path={keyPath(key.id)}
      renews={[keysPath, applicationsPath]}
      ready={use.data !== undefined}
      announcement={({ vaultCopyCleared }) =>
        vaultCopyCleared
          ? `Deleted key “${key.name}”`
          : `Deleted key “${key.name}”, but its vault copy was not cleared: see the audit log`
      }
      onClose={onClose}
    >
      {key.kind === 'master' ? (
        <p>
          The record stays, and its shared vault copy is cleared. {waysBack['deleted-master'].way} To end its use
          permanently, destroy it on the application's page.
        </p>
      ) : (
        <p>
          The record is kept for audit, and the vault copy is cleared. Requests for this key will get “key not found”,
          and data encrypted under it can no longer be read. {waysBack.deleted.way}
        </p>
      )}
      <LastUse query={use} goesOn={key.kind === 'master'} />
    </DeleteDialog>
  );
};
