// One role: its purpose, its permissions, and who has it.

import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { send } from '../api/client.ts';
import type { RoleDescription, Token, User } from '../api/types.ts';
import { useEvery } from '../session/every.ts';
import { Async } from '../ui/page/async.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { Badge } from '../ui/page/state-badge.tsx';
import { titled } from './role-names.ts';

const route = getRouteApi('/roles/$id');

export const RolePage = () => {
  const { id } = route.useParams();
  const query = useQuery({
    queryKey: ['/api/roles'],
    queryFn: ({ signal }) =>
      send<{ readonly items: readonly RoleDescription[] }>({ method: 'GET', path: '/api/roles' }, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const users = useEvery<User>('/api/users', 'users:read');
  const tokens = useEvery<Token>('/api/tokens', 'tokens:read');
  const has = ({ grants }: Pick<User, 'grants'>): boolean => grants.some(({ role }) => role === id);
  const tokensWithIt = tokens?.filter((token) => has(token) && token.revokedAt === null);
  const usersWithIt = users?.filter(has);
  return (
    <Page title={titled(id)} crumbs={[{ text: 'Roles', to: '/roles' }]}>
      <Async query={query} lines={4}>
        {({ items }) => {
          const role = items.find((each) => each.role === id);
          if (role === undefined)
            return (
              <Panel>
                <EmptyState title="There is no role with this name">Choose one from the list of roles.</EmptyState>
              </Panel>
            );
          return (
            <>
              <Panel title="Purpose">
                <p className="max-w-prose">{role.description}</p>
                {role.scoped && (
                  <p className="mt-2">
                    <Badge tone="quiet" icon="key">
                      For one resource
                    </Badge>
                  </p>
                )}
              </Panel>
              <Panel title={`Permissions (${role.permissions.length})`}>
                <ul className="grid gap-x-6 gap-y-1 sm:grid-cols-2 lg:grid-cols-3">
                  {role.permissions.toSorted().map((permission) => (
                    <li key={permission}>
                      <code>{permission}</code>
                    </li>
                  ))}
                </ul>
              </Panel>
            </>
          );
        }}
      </Async>
      {usersWithIt !== undefined && (
        <Panel title={`Users with this role (${usersWithIt.length} of ${users?.length ?? 0})`}>
          {usersWithIt.length === 0 ? (
            <p className="text-muted">None.</p>
          ) : (
            <ul className="space-y-1">
              {usersWithIt.map((user) => (
                <li key={user.id}>
                  {user.displayName} <span className="text-muted">{user.name}</span>
                </li>
              ))}
            </ul>
          )}
        </Panel>
      )}
      {tokensWithIt !== undefined && (
        <Panel title={`Valid tokens with this role (${tokensWithIt.length} of ${tokens?.length ?? 0} tokens)`}>
          {tokensWithIt.length === 0 ? (
            <p className="text-muted">None.</p>
          ) : (
            <ul className="space-y-1">
              {tokensWithIt.map((token) => (
                <li key={token.id}>
                  <Link to="/tokens/$id" params={{ id: token.id }} className="link">
                    {token.name}
                  </Link>
                </li>
              ))}
            </ul>
          )}
        </Panel>
      )}
    </Page>
  );
};
