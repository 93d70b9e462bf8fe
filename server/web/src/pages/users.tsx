// Users: names, roles and sign-in methods. A new user gets an invitation, shown once.

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { send } from '../api/client.ts';
import type { InvitedUser, OpenSession, RoleDescription, User } from '../api/types.ts';
import { CheckField, SelectField, TextField } from '../components/fields/field.tsx';
import { ActionDialog } from '../components/forms/action-dialog.tsx';
import { DeleteDialog } from '../components/forms/delete-dialog.tsx';
import { FormDialog } from '../components/forms/form.tsx';
import { Button } from '../components/page/button.tsx';
import { ActionMenu, type MenuAction } from '../components/page/menu.tsx';
import { Facts, Page, Panel } from '../components/page/page.tsx';
import { EmptyState } from '../components/page/problem-view.tsx';
import { Badge, StateBadge } from '../components/page/state-badge.tsx';
import { Time } from '../components/page/time.tsx';
import { InvitationDialog, PersonFields } from '../components/people/invitation.tsx';
import { PeopleTabs } from '../components/people/people-tabs.tsx';
import { titled } from '../components/people/roles.ts';
import { ListView, useList } from '../components/table/list-view.tsx';

const path = '/api/users';
const userPath = (id: string): string => `${path}/${encodeURIComponent(id)}`;

const CreateUser = ({ onInvited, onClose }: { onInvited: (invited: InvitedUser) => void; onClose: () => void }) => {
  const client = useQueryClient();
  const [name, setName] = useState('');
  const [displayName, setDisplayName] = useState('');
  const [email, setEmail] = useState('');
  const [role, setRole] = useState('auditor');
  const roles = useQuery({
    queryKey: ['/api/roles'],
    queryFn: ({ signal }) =>
      send<{ readonly items: readonly RoleDescription[] }>({ method: 'GET', path: '/api/roles' }, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  }).data?.items;
  return (
    <FormDialog<InvitedUser>
      title="Invite a user"
      call={{
        method: 'POST',
        path,
        body: {
          name,
          ...(displayName === '' ? {} : { displayName }),
          ...(email === '' ? {} : { email }),
          grants: [{ role, scope: null }],
        },
      }}
      creates
      submitLabel="Invite user"
      onCancel={onClose}
      onDone={async (invited) => {
        onInvited(invited);
        await client.invalidateQueries({ queryKey: [path] });
      }}
    >
      {(fault) => (
        <>
          <PersonFields
            name={name}
            onName={setName}
            displayName={displayName}
            onDisplayName={setDisplayName}
            fault={fault}
          />
          <TextField label="E-mail" optional type="email" value={email} onValue={setEmail} fault={fault('email')} />
          <SelectField
            label="Role"
            value={role}
            onValue={setRole}
            fault={fault('grants')}
            help={roles?.find((each) => each.role === role)?.description}
            choices={(roles ?? [])
              // A user does not expire, and break-glass does: it is given as a token.
              .filter(({ scoped, role: each }) => !scoped && each !== 'break-glass')
              .map((each) => ({ value: each.role, text: titled(each.role) }))}
          />
          <p className="text-muted">The user gets a single-use invitation to choose a password.</p>
        </>
      )}
    </FormDialog>
  );
};

type Action = 'enable' | 'disable' | 'unlock' | 'reset' | 'factors' | 'sessions' | 'delete';

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

const factorNames = { totp: 'one-time code', passkey: 'passkey', 'recovery-code': 'recovery codes' } as const;

const Factors = ({ user }: { user: User }) => {
  const kinds = [...new Set(user.factors.filter(({ confirmedAt }) => confirmedAt !== null).map(({ kind }) => kind))];
  if (kinds.length > 0)
    return (
      <Badge tone="ok" icon="shield">
        {kinds.map((kind) => factorNames[kind]).join(', ')}
      </Badge>
    );
  return (
    <Badge tone={user.invitedUntil === null ? 'warn' : 'quiet'} icon={user.invitedUntil === null ? 'warning' : 'clock'}>
      {user.invitedUntil === null ? 'Password only' : 'Invited'}
    </Badge>
  );
};

export const UsersPage = () => {
  const list = useList<User>(path);
  const [creating, setCreating] = useState(false);
  const [invited, setInvited] = useState<InvitedUser | null>(null);
  const [acting, setActing] = useState<{ readonly user: User; readonly action: Action } | null>(null);
  const create = (
    <Button tone="primary" icon="plus" creates needs="users:manage" opens onClick={() => setCreating(true)}>
      Invite a user
    </Button>
  );
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
      ...(user.lockedUntil === null ? [] : [item('Unlock', 'key', 'unlock')]),
      item('Reset password', 'refresh', 'reset'),
      ...(user.factors.length === 0 ? [] : [item('Remove second factors', 'shield', 'factors', true)]),
      item('End sessions', 'signOut', 'sessions'),
      user.state === 'active' ? item('Disable', 'pause', 'disable') : item('Enable', 'active', 'enable'),
      item('Delete', 'trash', 'delete', true),
    ];
  };
  return (
    <Page title="Users" description="People who can sign in, and their roles." actions={create}>
      <PeopleTabs />
      <Panel flush>
        <ListView
          list={list}
          endless
          caption="Users"
          rowKey={(user) => user.id}
          columns={[
            {
              key: 'name',
              header: 'Name',
              names: true,
              cell: (user) => (
                <span>
                  {user.displayName} {user.displayName !== user.name && <code className="text-muted">{user.name}</code>}
                </span>
              ),
            },
            {
              key: 'state',
              header: 'State',
              cell: (user) =>
                user.lockedUntil === null ? (
                  <StateBadge
                    state={user.state === 'active' && user.invitedUntil !== null ? 'invited' : user.state}
                    integrity={user.integrity}
                  />
                ) : (
                  <Badge tone="danger" icon="blocked">
                    Locked
                  </Badge>
                ),
            },
            { key: 'roles', header: 'Roles', cell: (user) => user.grants.map(({ role }) => titled(role)).join(', ') },
            { key: 'factors', header: 'Signs in with', cell: (user) => <Factors user={user} /> },
            { key: 'seen', header: 'Last sign-in', cell: (user) => <Time value={user.lastSignInAt} distance /> },
            {
              key: 'actions',
              header: 'Actions',
              end: true,
              actions: true,
              cell: (user) => <ActionMenu label={`Actions on user ${user.name}`} actions={actionsOf(user)} />,
            },
          ]}
          empty={
            <EmptyState title="No users yet" action={create}>
              Invite your colleagues, each with the roles that they need. Then revoke the first token.
            </EmptyState>
          }
        />
      </Panel>
      {creating && (
        <CreateUser
          onInvited={(result) => {
            setCreating(false);
            setInvited(result.invitation === null ? null : result);
          }}
          onClose={() => setCreating(false)}
        />
      )}
      {invited !== null && <InvitationDialog invited={invited} onClose={() => setInvited(null)} />}
      {acting !== null && (
        <UserDialog
          {...acting}
          onInvited={(result) => {
            setActing(null);
            setInvited(result.invitation === null ? null : result);
          }}
          onClose={() => setActing(null)}
        />
      )}
    </Page>
  );
};

const methodNames: Readonly<Record<OpenSession['method'], string>> = {
  password: 'Password',
  invitation: 'Invitation',
  passkey: 'Passkey',
  openid: 'OpenID',
  token: 'Token',
};

export const SessionList = ({ listPath, endPath }: { listPath: string; endPath: (id: string) => string }) => {
  const list = useList<OpenSession>(listPath);
  const [ending, setEnding] = useState<OpenSession | null>(null);
  return (
    <Panel flush>
      <ListView
        list={list}
        endless
        caption="Sessions"
        rowKey={({ id }) => id}
        columns={[
          { key: 'who', header: 'User', names: true, cell: ({ holder }) => holder.name },
          {
            key: 'method',
            header: 'Signed in with',
            cell: ({ method, secondFactor }) => `${methodNames[method]}${secondFactor ? ', second factor' : ''}`,
          },
          { key: 'peer', header: 'Address', cell: ({ peer }) => <code>{peer ?? '–'}</code> },
          { key: 'used', header: 'Last used', cell: ({ usedAt }) => <Time value={usedAt} distance /> },
          { key: 'ends', header: 'Expires', cell: ({ expiresAt }) => <Time value={expiresAt} /> },
          {
            key: 'actions',
            header: 'Actions',
            end: true,
            actions: true,
            cell: (session) => (
              <Button
                needs="users:manage"
                aria-label={`End… the session of ${session.holder.name}`}
                onClick={() => setEnding(session)}
                opens
              >
                End
              </Button>
            ),
          },
        ]}
        detail={({ id, agent, createdAt }) => (
          <Facts
            items={[
              ['Id', <code key="id">{id}</code>],
              ['Since', <Time key="since" value={createdAt} seconds />],
              [
                'Browser',
                <span key="agent" className="wrap-anywhere">
                  {agent ?? '–'}
                </span>,
              ],
            ]}
          />
        )}
        empty={<EmptyState title="No sessions">Sessions of the console appear here.</EmptyState>}
      />
      {ending !== null && (
        <ActionDialog
          title={`End the session of “${ending.holder.name}”?`}
          call={{ method: 'DELETE', path: endPath(encodeURIComponent(ending.id)) }}
          submitLabel="End session"
          danger
          renews={[listPath]}
          done="Session ended"
          onClose={() => setEnding(null)}
        >
          <p>The user must sign in again in that browser.</p>
        </ActionDialog>
      )}
    </Panel>
  );
};

export const SessionsPage = () => (
  <Page title="Sessions" description="Who is signed in to the console, from where, and how.">
    <PeopleTabs />
    <SessionList listPath="/api/sessions" endPath={(id) => `/api/sessions/${id}`} />
  </Page>
);
