// Users: names, roles and sign-in methods. A new user gets an invitation, shown once.

import { useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { usersPath as path } from '../api/paths.ts';
import type { InvitedUser, User } from '../api/types.ts';
import { CheckField, SelectField, TextField } from '../ui/fields/field.tsx';
import { FormDialog } from '../ui/forms/form.tsx';
import { Button } from '../ui/page/button.tsx';
import { ActionMenu } from '../ui/page/menu.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { Time } from '../ui/page/time.tsx';
import { BulkActions, type RowsAction } from '../ui/table/bulk-actions.tsx';
import { ListView, useList } from '../ui/table/list-view.tsx';
import { PersonFields } from './invitation.tsx';
import { PeopleTabs } from './people-tabs.tsx';
import { titled } from './role-names.ts';
import { SessionList } from './session-list.tsx';
import { useRoles, useUserActions } from './user-actions.tsx';
import { UserFactors, UserState } from './user-facts.tsx';

/** What a screen reader and the status line say when the invitation is not shown. */
const tellMailed = ({ user, mailed }: InvitedUser): string =>
  mailed === null
    ? `“${user.name}” invited`
    : mailed.failure === null
      ? `Invitation sent to ${mailed.to}`
      : `“${user.name}” was created, but ${mailed.failure}. Reset the password to invite the user again.`;

const CreateUser = ({ onInvited, onClose }: { onInvited: (invited: InvitedUser) => void; onClose: () => void }) => {
  const client = useQueryClient();
  const [name, setName] = useState('');
  const [displayName, setDisplayName] = useState('');
  const [email, setEmail] = useState('');
  const [byMail, setByMail] = useState(false);
  const [role, setRole] = useState('auditor');
  const roles = useRoles();
  return (
    <FormDialog<InvitedUser>
      title="Invite a user"
      call={{
        method: 'POST',
        path,
        body: {
          name,
          ...(displayName === '' ? {} : { displayName }),
          ...(email === '' ? {} : { email, ...(byMail ? { deliver: 'mail' } : {}) }),
          grants: [{ role, scope: null }],
        },
      }}
      creates
      submitLabel="Invite user"
      done={tellMailed}
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
          {email !== '' && (
            <CheckField
              label="Send the invitation to this address"
              help="Then it is not shown here. The service needs a mail server for invitations (people.invitation_target)."
              checked={byMail}
              onValue={setByMail}
            />
          )}
          <SelectField
            label="Role"
            value={role}
            onValue={setRole}
            fault={fault('grants')}
            help={roles.find((each) => each.role === role)?.description}
            choices={roles
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

const nameOf = ({ displayName, name }: User): string => `${displayName} ${name}`;

const disable: RowsAction<User> = {
  ...{ verb: 'Disable', needs: 'users:manage', danger: true },
  text: 'Their sessions end and their tokens stop working until they are enabled again.',
  callOf: ({ id }) => ({ method: 'POST', path: `${path}/${encodeURIComponent(id)}/disable` }),
};

export const UsersPage = () => {
  const list = useList<User>(path);
  const [creating, setCreating] = useState(false);
  const { actionsOf, onInvited, dialog } = useUserActions();
  const create = (
    <Button tone="primary" icon="plus" creates needs="users:manage" opens onClick={() => setCreating(true)}>
      Invite a user
    </Button>
  );
  return (
    <Page title="Users" description="People who can sign in, and their roles." actions={create}>
      <PeopleTabs />
      <Panel flush>
        <ListView
          list={list}
          endless
          caption="Users"
          rowKey={(user) => user.id}
          nameOf={nameOf}
          bulk={(rows, onDone) => (
            <BulkActions
              rows={rows}
              actions={[disable]}
              nouns={['user', 'users']}
              nameOf={nameOf}
              renews={[path]}
              onDone={onDone}
            />
          )}
          columns={[
            {
              key: 'name',
              header: 'Name',
              names: true,
              sort: nameOf,
              cell: (user) => (
                <span>
                  <Link to="/users/$id" params={{ id: user.id }} className="link">
                    {user.displayName}
                  </Link>{' '}
                  {user.displayName !== user.name && <code className="text-muted">{user.name}</code>}
                </span>
              ),
            },
            {
              key: 'state',
              header: 'State',
              cell: (user) => <UserState user={user} />,
            },
            { key: 'roles', header: 'Roles', cell: (user) => user.grants.map(({ role }) => titled(role)).join(', ') },
            { key: 'factors', header: 'Signs in with', cell: (user) => <UserFactors user={user} /> },
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
            onInvited(result);
          }}
          onClose={() => setCreating(false)}
        />
      )}
      {dialog}
    </Page>
  );
};

export const SessionsPage = () => (
  <Page title="Sessions" description="Who is signed in to the console, from where, and how.">
    <PeopleTabs />
    <SessionList listPath="/api/sessions" />
  </Page>
);
