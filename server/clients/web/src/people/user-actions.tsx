// The actions on a user, in their row and on their page, with the dialog of the chosen one.

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { send } from '../api/client.ts';
import { usersPath as path, userPath } from '../api/paths.ts';
import type { InvitedUser, RoleDescription, User } from '../api/types.ts';
import { CheckField, TextField } from '../ui/fields/field.tsx';
import { ActionDialog } from '../ui/forms/action-dialog.tsx';
import { DeleteDialog } from '../ui/forms/delete-dialog.tsx';
import { EditDialog, type Fields } from '../ui/forms/edit-dialog.tsx';
import { FormDialog } from '../ui/forms/form.tsx';
import type { MenuAction } from '../ui/page/menu.tsx';
import { InvitationDialog } from './invitation.tsx';
import { titled } from './role-names.ts';

interface UserBody {
  readonly displayName: string;
  readonly email: string | null;
  readonly subject: string | null;
  readonly mustChangePassword: boolean;
  readonly grants: readonly (Omit<User['grants'][number], 'tenantId'> & { readonly tenantId?: string | null })[];
}

export const useRoles = (): readonly RoleDescription[] =>
  useQuery({
    queryKey: ['/api/roles'],
    queryFn: ({ signal }) =>
      send<{ readonly items: readonly RoleDescription[] }>({ method: 'GET', path: '/api/roles' }, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  }).data?.items ?? [];

const UserFields = ({ body, onBody, fault }: Fields<User, UserBody>) => {
  // Roles for one resource stay as they are; break-glass is given as a token.
  const roles = useRoles().filter(({ role, scoped }) => !scoped && role !== 'break-glass');
  const has = (role: string): boolean => body.grants.some((grant) => grant.role === role);
  return (
    <>
      <TextField
        label="Full name"
        value={body.displayName}
        onValue={(displayName) => onBody({ ...body, displayName })}
        fault={fault('displayName')}
      />
      <TextField
        label="E-mail"
        optional
        type="email"
        value={body.email ?? ''}
        onValue={(email) => onBody({ ...body, email: email === '' ? null : email })}
        fault={fault('email')}
      />
      <fieldset className="space-y-1">
        <legend className="font-medium">Roles</legend>
        <p className="text-muted">Other roles end the sessions of the user. Roles for one resource stay.</p>
        {roles.map(({ role }) => (
          <CheckField
            key={role}
            label={titled(role)}
            checked={has(role)}
            onValue={(given) => {
              const others = body.grants.filter((grant) => grant.role !== role);
              onBody({ ...body, grants: given ? [...others, { role, scope: null }] : others });
            }}
          />
        ))}
        {fault('grants') !== undefined && <p className="text-danger">{fault('grants')}</p>}
      </fieldset>
      <CheckField
        label="Require a new password at the next sign-in"
        checked={body.mustChangePassword}
        onValue={(mustChangePassword) => onBody({ ...body, mustChangePassword })}
      />
    </>
  );
};

const EditUser = ({ user, onClose }: { user: User; onClose: () => void }) => (
  <EditDialog<User, UserBody>
    title={`Edit “${user.displayName}”`}
    path={userPath(user.id)}
    bodyOf={({ displayName, email, subject, mustChangePassword, grants }) => ({
      ...{ displayName, email, subject, mustChangePassword },
      grants,
    })}
    callOf={(body) => ({ method: 'PUT', path: userPath(user.id), body })}
    names={{
      displayName: 'Full name',
      email: 'E-mail',
      subject: 'Subject at the OpenID provider',
      mustChangePassword: 'New password required',
      grants: 'Roles',
    }}
    submitLabel="Save user"
    onClose={onClose}
    renews={[path]}
    done={(changed) => `User “${changed.displayName}” saved`}
  >
    {(fields) => <UserFields {...fields} />}
  </EditDialog>
);

type Action = 'edit' | 'enable' | 'disable' | 'unlock' | 'reset' | 'factors' | 'sessions' | 'delete';

const UserDialog = ({
  user,
  action,
  onInvited,
  onClose,
}: {
  user: User;
  action: Action;
  onInvited: (invited: InvitedUser) => void;
  onClose: () => void;
}) => {
  const client = useQueryClient();
  const own = userPath(user.id);
  const [revokeTokens, setRevokeTokens] = useState(false);
  const shared = { renews: [path], onClose };
  switch (action) {
    case 'edit':
      return <EditUser user={user} onClose={onClose} />;
    case 'delete':
      return (
        <DeleteDialog kind="user" name={user.name} path={own} renews={[path]} onClose={onClose}>
          <p>Their sessions end at once. This cannot be undone. The audit log still names them.</p>
        </DeleteDialog>
      );
    case 'reset':
      return (
        <FormDialog<InvitedUser>
          title={`Reset the password of “${user.displayName}”?`}
          call={{ method: 'POST', path: `${own}/invitation`, body: { revokeTokens } }}
          creates
          submitLabel="Reset password"
          submitTone="danger"
          onCancel={onClose}
          onDone={async (invited) => {
            onInvited(invited);
            await client.invalidateQueries({ queryKey: [path] });
          }}
        >
          {() => (
            <>
              <p>Removes the current password and ends their sessions. You get a new invitation for the user.</p>
              <CheckField label="Also revoke their API tokens" checked={revokeTokens} onValue={setRevokeTokens} />
            </>
          )}
        </FormDialog>
      );
    case 'factors':
      return (
        <ActionDialog
          {...shared}
          title={`Remove the second factors of “${user.displayName}”?`}
          call={{ method: 'DELETE', path: `${own}/factors` }}
          submitLabel="Remove factors"
          danger
          done="Second factors removed"
        >
          <p>For a user who lost them. The next sign-in requires a new one.</p>
        </ActionDialog>
      );
    case 'sessions':
      return (
        <ActionDialog
          {...shared}
          title={`End every session of “${user.displayName}”?`}
          call={{ method: 'DELETE', path: `${own}/sessions` }}
          submitLabel="End sessions"
          danger
          done="Sessions ended"
        >
          <p>They must sign in again everywhere.</p>
        </ActionDialog>
      );
    case 'unlock':
      return (
        <ActionDialog
          {...shared}
          title={`Unlock “${user.displayName}”?`}
          call={{ method: 'POST', path: `${own}/unlock` }}
          submitLabel="Unlock user"
          done="User unlocked"
        >
          <p>Too many sign-in attempts failed. Confirm the identity of the user first.</p>
        </ActionDialog>
      );
    default:
      return (
        <ActionDialog
          {...shared}
          title={action === 'disable' ? `Disable “${user.displayName}”?` : `Enable “${user.displayName}”?`}
          call={{ method: 'POST', path: `${own}/${action}` }}
          submitLabel={action === 'disable' ? 'Disable' : 'Enable'}
          danger={action === 'disable'}
          done={action === 'disable' ? 'Disabled' : 'Enabled'}
        >
          {action === 'disable' ? (
            <p>Their sessions end and their tokens stop working until they are enabled again.</p>
          ) : (
            <p>They can sign in again at once.</p>
          )}
        </ActionDialog>
      );
  }
};

export interface UserActions {
  readonly actionsOf: (user: User) => readonly MenuAction[];
  /** Shows an invitation, once. */
  readonly onInvited: (invited: InvitedUser) => void;
  readonly dialog: ReactNode;
}

export const useUserActions = (): UserActions => {
  const [invited, setInvited] = useState<InvitedUser | null>(null);
  const [acting, setActing] = useState<{ readonly user: User; readonly action: Action } | null>(null);
  const onInvited = (result: InvitedUser): void => setInvited(result.invitation === null ? null : result);
  const actionsOf = (user: User): readonly MenuAction[] => {
    if (user.state === 'deleted') return [];
    const item = (text: string, icon: MenuAction['icon'], action: Action, danger = false): MenuAction => ({
      text,
      needs: 'users:manage',
      icon,
      danger,
      onSelect: () => setActing({ user, action }),
    });
    return [
      item('Edit', 'gear', 'edit'),
      ...(user.lockedUntil === null ? [] : [item('Unlock', 'key', 'unlock')]),
      item('Reset password', 'refresh', 'reset'),
      ...(user.factors.length === 0 ? [] : [item('Remove second factors', 'shield', 'factors', true)]),
      item('End sessions', 'signOut', 'sessions'),
      user.state === 'active' ? item('Disable', 'pause', 'disable') : item('Enable', 'active', 'enable'),
      item('Delete', 'trash', 'delete', true),
    ];
  };
  return {
    actionsOf,
    onInvited,
    dialog: (
      <>
        {invited !== null && <InvitationDialog invited={invited} onClose={() => setInvited(null)} />}
        {acting !== null && (
          <UserDialog
            {...acting}
            onInvited={(result) => {
              setActing(null);
              onInvited(result);
            }}
            onClose={() => setActing(null)}
          />
        )}
      </>
    ),
  };
};
