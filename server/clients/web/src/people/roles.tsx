// The roles and their permissions, side by side; the caller's own are marked.

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { send } from '../api/client.ts';
import type { RoleDescription } from '../api/types.ts';
import { sessionQuery } from '../session/current-session.ts';
import { Async } from '../ui/page/async.tsx';
import { Icon } from '../ui/page/icon.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { Badge } from '../ui/page/state-badge.tsx';
import { titled } from './role-names.ts';

const Matrix = ({ roles, own }: { roles: readonly RoleDescription[]; own: ReadonlySet<string> }) => {
  const permissions = [...new Set(roles.flatMap((role) => role.permissions))].sort();
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
    <section className="relative overflow-x-auto" tabIndex={0} aria-label="Permissions of the roles">
      <table className="w-full border-collapse text-left text-xs">
        <caption className="sr-only">Permissions of the roles</caption>
        <thead>
          <tr className="border-b border-line align-bottom">
            <th scope="col" className="sticky left-0 z-10 bg-surface px-4 py-2.5 font-medium text-muted">
              Permission
            </th>
            {roles.map(({ role }) => (
              <th key={role} scope="col" className="px-2 py-2.5 text-center font-medium text-muted">
                {titled(role)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {permissions.map((permission) => (
            <tr key={permission} className="border-line not-first:border-t hover:bg-hover">
              <th scope="row" className="sticky left-0 z-10 bg-surface px-4 py-1.5 font-normal">
                <code>{permission}</code>
              </th>
              {roles.map((role) => {
                const may = role.permissions.includes(permission);
                return (
                  <td
                    key={role.role}
                    className={`px-2 py-1.5 text-center ${own.has(role.role) ? 'bg-accent-soft' : ''}`}
                  >
                    {may ? (
                      <>
                        <Icon name="check" className="inline size-4 text-ok" />
                        <span className="sr-only">yes</span>
                      </>
                    ) : (
                      <>
                        <span aria-hidden="true" className="text-muted">
                          ·
                        </span>
                        <span className="sr-only">no</span>
                      </>
                    )}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
};

export const RolesPage = () => {
  const session = useQuery(sessionQuery).data;
  const own = new Set(session?.grants.map(({ role }) => role as string) ?? []);
  const query = useQuery({
    queryKey: ['/api/roles'],
    queryFn: ({ signal }) =>
      send<{ readonly items: readonly RoleDescription[] }>({ method: 'GET', path: '/api/roles' }, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <Page
      title="Roles"
      description="Separation of duties: users who create keys cannot destroy them, users who give roles cannot use keys, and auditors cannot change anything."
    >
      <Panel title="Purpose of each role">
        <Async query={query}>
          {({ items }) => (
            <dl className="grid gap-x-8 gap-y-4 md:grid-cols-2">
              {items.map(({ role, description, scoped }) => (
                <div key={role}>
                  <dt className="flex flex-wrap items-center gap-2 font-medium">
                    <Link to="/roles/$id" params={{ id: role }} className="link">
                      {titled(role)}
                    </Link>
                    {scoped && (
                      <Badge tone="quiet" icon="key">
                        For one resource
                      </Badge>
                    )}
                    {own.has(role) && (
                      <Badge tone="ok" icon="active">
                        Yours
                      </Badge>
                    )}
                  </dt>
                  <dd className="mt-0.5 text-muted">{description}</dd>
                </div>
              ))}
            </dl>
          )}
        </Async>
      </Panel>
      {query.data !== undefined && (
        <Panel title="Permissions of each role" flush>
          <Matrix roles={query.data.items} own={own} />
        </Panel>
      )}
    </Page>
  );
};
