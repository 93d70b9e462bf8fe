// One user: who they are, what they may do, where they are signed in, and the tokens that act for
// them.

import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { send } from '../api/client.ts';
import { userPath, usersPath } from '../api/paths.ts';
import type { Right, User } from '../api/types.ts';
import { useMay } from '../session/may.ts';
import { Async } from '../ui/page/async.tsx';
import { Copyable } from '../ui/page/copy.tsx';
import { ActionMenu } from '../ui/page/menu.tsx';
import { Facts, Page, Panel } from '../ui/page/page.tsx';
import { Time } from '../ui/page/time.tsx';
import { DataTable } from '../ui/table/data-table.tsx';
import { Rights } from './rights.tsx';
import { titled } from './role-names.ts';
import { SessionList } from './session-list.tsx';
import { TokenList } from './token-list.tsx';
import { useUserActions } from './user-actions.tsx';
import { UserFactors, UserState } from './user-facts.tsx';

const route = getRouteApi('/users/$id');

const Roles = ({ grants }: Pick<User, 'grants'>) => (
  <Panel title="Roles" flush>
    <DataTable
      caption="Roles"
      rows={grants}
      rowKey={({ role, scope, tenantId }) => `${role} ${scope?.id ?? ''} ${tenantId ?? ''}`}
      columns={[
        { key: 'role', header: 'Role', names: true, cell: ({ role }) => titled(role) },
        {
          key: 'where',
          header: 'Where',
          cell: ({ scope, tenantId }) =>
            scope === null ? (
              tenantId === null ? (
                'The whole platform'
              ) : (
                'In one tenant'
              )
            ) : scope.kind === 'application' ? (
              <Link to="/tde/applications/$id" params={{ id: scope.id }} className="link">
                One application
              </Link>
            ) : (
              <Link to="/endpoints/$id" params={{ id: scope.id }} className="link">
                One endpoint
              </Link>
            ),
        },
      ]}
    />
  </Panel>
);

const Permissions = ({ id }: { id: string }) => {
  const query = useQuery({
    queryKey: [usersPath, id, 'permissions'],
    queryFn: ({ signal }) =>
      send<{ readonly permissions: readonly Right[] }>(
        { method: 'GET', path: `${userPath(id)}/permissions` },
        { signal },
      ),
  });
  return (
    <Panel title="Permissions" description="What the roles allow together.">
      <Async query={query}>{({ permissions }) => <Rights rights={permissions} />}</Async>
    </Panel>
  );
};

export const UserPage = () => {
  const { id } = route.useParams();
  const may = useMay();
  const { actionsOf, dialog } = useUserActions();
  const query = useQuery({
    queryKey: [usersPath, id],
    queryFn: ({ signal }) => send<User>({ method: 'GET', path: userPath(id) }, { signal }),
  });
  const user = query.data;
  return (
    <Page
      title={user?.displayName ?? 'User'}
      crumbs={[{ text: 'Users', to: '/users' }]}
      badge={user !== undefined && <UserState user={user} />}
      actions={user !== undefined && <ActionMenu label="Actions on this user" actions={actionsOf(user)} />}
    >
      <Panel>
        <Async query={query}>
          {(value) => (
            <Facts
              items={[
                ['User name', <code key="name">{value.name}</code>],
                ['Full name', value.displayName],
                ['E-mail', value.email ?? '–'],
                ['Signs in with', <UserFactors key="factors" user={value} />],
                ...(value.subject === null
                  ? []
                  : [['Subject at the OpenID provider', <code key="subject">{value.subject}</code>] as const]),
                ['Created', <Time key="created" value={value.createdAt} />],
                ['Last sign-in', <Time key="seen" value={value.lastSignInAt} distance />],
                ['Password changed', <Time key="password" value={value.passwordChangedAt} />],
                ...(value.mustChangePassword ? [['Next sign-in', 'Requires a new password'] as const] : []),
                ...(value.invitedUntil === null
                  ? []
                  : [['Invitation expires', <Time key="invited" value={value.invitedUntil} />] as const]),
                ['Id', <Copyable key="id" value={value.id} label="user id" />],
                ...(may('audit:read')
                  ? [
                      [
                        'Actions of this user',
                        <Link key="actions" to="/audit" search={{ actorId: value.id }} className="link">
                          In the audit log
                        </Link>,
                      ] as const,
                      [
                        'Changes of this user',
                        <Link key="changes" to="/audit" search={{ subjectId: value.id }} className="link">
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
      {user !== undefined && (
        <>
          <Roles grants={user.grants} />
          <SessionList listPath="/api/sessions" filters={{ userId: id }} title="Sessions" />
          {may('tokens:read') && <TokenList listPath="/api/tokens" filters={{ userId: id }} title="Tokens" />}
          <Permissions id={id} />
        </>
      )}
      {dialog}
    </Page>
  );
};
