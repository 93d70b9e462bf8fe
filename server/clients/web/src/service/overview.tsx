// Overview: notifications, latency of the key stores, databases last seen, and recent sensitive
// changes.

import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { send } from '../api/client.ts';
import { applicationPath, applicationsPath, endpointsPath, keysPath, nodesPath, vaultsPath } from '../api/paths.ts';
import type { Application, AuditRecord, Instance, Node, Permission, Status } from '../api/types.ts';
import { auditTable } from '../audit/audit-table.tsx';
import { LatencyPanel } from '../endpoints/latency.tsx';
import { usePlatformRight } from '../session/current-session.ts';
import { useMay } from '../session/may.ts';
import { Async } from '../ui/page/async.tsx';
import { Icon, type IconName } from '../ui/page/icon.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import { StateBadge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { DataTable, TableSkeleton } from '../ui/table/data-table.tsx';
import type { ListPage } from '../ui/table/list-view.tsx';
import { HeardOf, NodeState } from './node-state.tsx';
import { TodayPanel } from './notification-list.tsx';
import { ConnectLinks } from './setup/connect-links.tsx';
import { SetupPanel } from './setup-panel.tsx';

const refreshEvery = 15_000;
const countedAtMost = 100;

const gone: ReadonlySet<string> = new Set(['deleted', 'soft-deleted', 'destroyed', 'removed']);
/** How many entries a list has that are still there: exact up to a hundred, then "100+". */
const useCount = (path: string): string | undefined => {
  const query = useQuery({
    queryKey: [path, 'count'],
    queryFn: ({ signal }) =>
      send<ListPage<{ readonly state?: string }>>({ method: 'GET', path, query: { limit: countedAtMost } }, { signal }),
    select: ({ items, next }) => {
      const there = items.filter(({ state = '' }) => !gone.has(state)).length;
      return next === null ? String(there) : `${there}+`;
    },
    staleTime: 30_000,
  });
  return query.error === null ? query.data : '–';
};

const Count = ({
  path,
  to,
  text,
  icon,
}: {
  path: string;
  to: '/vaults' | '/keys' | '/tde/applications' | '/endpoints';
  text: string;
  icon: IconName;
}) => {
  const count = useCount(path);
  return (
    <li>
      <Link
        to={to}
        className="flex h-full items-center gap-3 rounded-xl border border-line bg-surface px-4 py-3 shadow-raised transition-colors hover:border-line-strong"
      >
        <Icon name={icon} className="size-5 text-accent" />
        <span className="flex min-w-0 items-baseline gap-2">
          <span className="min-h-6 text-lg leading-6 font-semibold tabular-nums">{count}</span>
          <span className="text-muted">{text}</span>
        </span>
      </Link>
    </li>
  );
};

/** Rows of a panel, or a placeholder until they are loaded. */
const Rows = <Data,>({
  query,
  lines = 5,
  children,
}: {
  query: UseQueryResult<Data>;
  lines?: number;
  children: (data: Data) => ReactNode;
}) => (
  <Async query={query} skeleton={<TableSkeleton rows={lines} />} inset>
    {children}
  </Async>
);

const mostApplications = 6;

const LastSeen = ({ id }: { id: string }) => {
  const latest = useQuery({
    queryKey: [applicationsPath, id, 'instances'],
    queryFn: ({ signal }) =>
      send<{ readonly items: readonly Instance[] }>(
        { method: 'GET', path: `${applicationPath(id)}/instances` },
        { signal },
      ),
  }).data?.items[0];
  if (latest === undefined) return <span className="text-muted">never</span>;
  return (
    <span>
      <Time value={latest.lastUsedAt} distance /> <span className="text-muted">on {latest.host}</span>
    </span>
  );
};

const Applications = () => {
  const query = useQuery({
    queryKey: [applicationsPath, 'newest'],
    queryFn: ({ signal }) =>
      send<ListPage<Application>>(
        { method: 'GET', path: applicationsPath, query: { limit: mostApplications } },
        { signal },
      ),
  });
  return (
    <Panel
      title="Newest databases"
      asOf={query.dataUpdatedAt}
      flush
      actions={
        <Link to="/tde/applications" className="link">
          All applications
        </Link>
      }
    >
      <Rows query={query} lines={3}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState title="No databases yet">
              <Link to="/tde/applications" className="link">
                Register a TDE application
              </Link>{' '}
              for each database. The database then creates its own master key.
            </EmptyState>
          ) : (
            <DataTable
              caption="Newest databases"
              rows={items}
              rowKey={({ id }) => id}
              columns={[
                {
                  key: 'name',
                  header: 'Application',
                  names: true,
                  cell: ({ id, name }) => (
                    <Link to="/tde/applications/$id" params={{ id }} className="link">
                      {name}
                    </Link>
                  ),
                },
                {
                  key: 'state',
                  header: 'State',
                  cell: ({ state, integrity }) => <StateBadge state={state} integrity={integrity} />,
                },
                { key: 'seen', header: 'Last seen', cell: ({ id }) => <LastSeen id={id} /> },
              ]}
            />
          )
        }
      </Rows>
    </Panel>
  );
};

/** From here on a record is shown here: what changes who can do what, or what ends something. */
const severity = 'medium';
const mostChanges = 8;

const Changes = () => {
  const query = useQuery({
    queryKey: ['/api/audit', 'latest'],
    queryFn: ({ signal }) =>
      send<ListPage<AuditRecord>>(
        { method: 'GET', path: '/api/audit', query: { severity, limit: mostChanges } },
        { signal },
      ),
    refetchInterval: refreshEvery,
  });
  return (
    <Panel
      title="Recent sensitive changes"
      asOf={query.dataUpdatedAt}
      flush
      actions={
        <Link to="/audit" search={{ severity }} className="link">
          Open the audit log
        </Link>
      }
    >
      <Rows query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState title="No recent changes">
              Destroyed, exported and disabled keys, credentials, tokens and refused sign-ins appear here.
            </EmptyState>
          ) : (
            <DataTable {...auditTable} rows={items} />
          )
        }
      </Rows>
    </Panel>
  );
};

const Nodes = () => {
  const query = useQuery({
    queryKey: [nodesPath],
    queryFn: ({ signal }) => send<{ readonly items: readonly Node[] }>({ method: 'GET', path: nodesPath }, { signal }),
    refetchInterval: refreshEvery,
  });
  return (
    <Panel
      title="Nodes"
      asOf={query.dataUpdatedAt}
      flush
      actions={
        <Link to="/nodes" className="link">
          View all nodes
        </Link>
      }
    >
      <Rows query={query} lines={1}>
        {({ items }) => (
          <DataTable
            caption="Nodes"
            rows={items.filter(({ state }) => state !== 'removed')}
            rowKey={({ id }) => id}
            columns={[
              { key: 'name', header: 'Name', names: true, cell: ({ name }) => name },
              { key: 'state', header: 'State', cell: ({ state }) => <NodeState state={state} /> },
              { key: 'version', header: 'Version', cell: ({ version }) => version },
              { key: 'heard', header: 'Last heartbeat', cell: (node) => <HeardOf {...node} /> },
            ]}
          />
        )}
      </Rows>
    </Panel>
  );
};

export const OverviewPage = () => {
  const mayReadNodes = usePlatformRight('nodes:read');
  const ask = useMay();
  const may = (permission: Permission): boolean => ask(permission, { scoped: false });
  const status = useQuery({
    queryKey: ['/api/status'],
    queryFn: ({ signal }) => send<Status>({ method: 'GET', path: '/api/status' }, { signal }),
    refetchInterval: refreshEvery,
    enabled: may('status:read'),
  });
  return (
    <Page
      title="Overview"
      badge={status.data !== undefined && <StateBadge state={status.data.health.healthy ? 'ok' : 'fail'} />}
    >
      {may('status:read') && <SetupPanel />}
      <ConnectLinks />
      {may('notifications:read') && <TodayPanel />}
      {may('endpoints:read') && <LatencyPanel />}
      <ul className="grid grid-cols-[repeat(auto-fit,minmax(11rem,1fr))] gap-3">
        {may('vaults:read') && <Count path={vaultsPath} to="/vaults" text="Vaults" icon="vault" />}
        {may('keys:read') && <Count path={keysPath} to="/keys" text="Keys" icon="key" />}
        {may('applications:read') && (
          <Count path={applicationsPath} to="/tde/applications" text="TDE applications" icon="application" />
        )}
        {may('endpoints:read') && (
          <Count path={endpointsPath} to="/endpoints" text="Key store endpoints" icon="endpoint" />
        )}
      </ul>
      {may('applications:read') && <Applications />}
      {may('audit:read') && <Changes />}
      {mayReadNodes === true && <Nodes />}
    </Page>
  );
};
