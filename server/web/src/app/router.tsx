// The pages' addresses: each mirrors the path of the API resource it shows. Every page is a chunk
// of its own, loaded when it is first opened (or pointed at).

import { createRootRoute, createRoute, createRouter, Link, lazyRouteComponent } from '@tanstack/react-router';
import { requestFilters } from '../components/endpoints/request-filters.ts';
import { keyFilters } from '../components/keys/key-filters.ts';
import { Page, Panel } from '../components/page/page.tsx';
import { EmptyState, ProblemView } from '../components/page/problem-view.tsx';
import { Shell } from './shell.tsx';

const root = createRootRoute({
  component: Shell,
  notFoundComponent: () => (
    <Page title="Page not found">
      <Panel>
        <EmptyState title="No page has this address">
          Go to the{' '}
          <Link to="/" className="link">
            overview
          </Link>{' '}
          or choose from the navigation.
        </EmptyState>
      </Panel>
    </Page>
  ),
});

/** A text in the address; anything else is ignored. */
const text = (value: unknown): string | undefined => {
  if (typeof value === 'string' && value !== '') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;
};

/** Keeps the named filters of an address, leaving out the absent ones. */
const readFilters =
  <Name extends string>(...names: readonly Name[]) =>
  (search: Record<string, unknown>): { [name in Name]?: string | undefined } => {
    const filters: { [name in Name]?: string | undefined } = {};
    for (const name of names) {
      const value = text(search[name]);
      if (value !== undefined) filters[name] = value;
    }
    return filters;
  };

const overview = createRoute({
  getParentRoute: () => root,
  path: '/',
  component: lazyRouteComponent(() => import('../pages/overview.tsx'), 'OverviewPage'),
});
const notifications = createRoute({
  getParentRoute: () => root,
  path: '/notifications',
  validateSearch: readFilters('state', 'acknowledged', 'minSeverity', 'kind'),
  component: lazyRouteComponent(() => import('../pages/notifications.tsx'), 'NotificationsPage'),
});
const setUp = createRoute({
  getParentRoute: () => root,
  path: '/setup',
  component: lazyRouteComponent(() => import('../pages/setup.tsx'), 'SetupPage'),
});
const nodes = createRoute({
  getParentRoute: () => root,
  path: '/nodes',
  component: lazyRouteComponent(() => import('../pages/nodes.tsx'), 'NodesPage'),
});
const vaults = createRoute({
  getParentRoute: () => root,
  path: '/vaults',
  component: lazyRouteComponent(() => import('../pages/vaults.tsx'), 'VaultsPage'),
});
const keys = createRoute({
  getParentRoute: () => root,
  path: '/keys',
  validateSearch: readFilters(...keyFilters),
  component: lazyRouteComponent(() => import('../pages/keys.tsx'), 'KeysPage'),
});
const inventory = createRoute({
  getParentRoute: () => root,
  path: '/keys/export',
  validateSearch: readFilters('kind', 'state', 'vaultId', 'tag', 'createdAfter', 'createdBefore', 'format', 'tenants'),
  component: lazyRouteComponent(() => import('../pages/inventory.tsx'), 'InventoryPage'),
});
const key = createRoute({
  getParentRoute: () => root,
  path: '/keys/$id',
  component: lazyRouteComponent(() => import('../pages/key.tsx'), 'KeyPage'),
});
const groups = createRoute({
  getParentRoute: () => root,
  path: '/tde/groups',
  component: lazyRouteComponent(() => import('../pages/tde-groups.tsx'), 'TdeGroupsPage'),
});
const applications = createRoute({
  getParentRoute: () => root,
  path: '/tde/applications',
  validateSearch: readFilters('groupId'),
  component: lazyRouteComponent(() => import('../pages/tde-applications.tsx'), 'TdeApplicationsPage'),
});
const application = createRoute({
  getParentRoute: () => root,
  path: '/tde/applications/$id',
  component: lazyRouteComponent(() => import('../pages/tde-application.tsx'), 'TdeApplicationPage'),
});
const applicationRunbooks = createRoute({
  getParentRoute: () => root,
  path: '/tde/applications/$id/runbooks',
  validateSearch: readFilters('runbook', 'release', 'containers'),
  component: lazyRouteComponent(() => import('../pages/application-runbooks.tsx'), 'ApplicationRunbooksPage'),
});
const runbookRun = createRoute({
  getParentRoute: () => root,
  path: '/tde/applications/$id/runbook-runs/$runId',
  component: lazyRouteComponent(() => import('../pages/runbook-run.tsx'), 'RunbookRunPage'),
});
const runbooks = createRoute({
  getParentRoute: () => root,
  path: '/runbooks',
  component: lazyRouteComponent(() => import('../pages/runbooks.tsx'), 'RunbooksPage'),
});
const endpoints = createRoute({
  getParentRoute: () => root,
  path: '/endpoints',
  component: lazyRouteComponent(() => import('../pages/endpoints.tsx'), 'EndpointsPage'),
});
const endpoint = createRoute({
  getParentRoute: () => root,
  path: '/endpoints/$id',
  validateSearch: readFilters(...requestFilters),
  component: lazyRouteComponent(() => import('../pages/endpoint.tsx'), 'EndpointPage'),
});
const endpointDiagnostics = createRoute({
  getParentRoute: () => root,
  path: '/endpoints/$id/diagnostics',
  component: lazyRouteComponent(() => import('../pages/endpoint-diagnostics.tsx'), 'EndpointDiagnosticsPage'),
});
const endpointSetup = createRoute({
  getParentRoute: () => root,
  path: '/endpoints/$id/setup',
  component: lazyRouteComponent(() => import('../pages/endpoint-setup.tsx'), 'EndpointSetupPage'),
});
const endpointRules = createRoute({
  getParentRoute: () => root,
  path: '/endpoints/$id/rules',
  component: lazyRouteComponent(() => import('../pages/endpoint-rules.tsx'), 'EndpointRulesPage'),
});
const endpointCredentials = createRoute({
  getParentRoute: () => root,
  path: '/endpoints/$id/credentials',
  component: lazyRouteComponent(() => import('../pages/endpoint-credentials.tsx'), 'EndpointCredentialsPage'),
});
const applicationSetup = createRoute({
  getParentRoute: () => root,
  path: '/tde/applications/$id/setup',
  component: lazyRouteComponent(() => import('../pages/application-setup.tsx'), 'ApplicationSetupPage'),
});
const diagnostics = createRoute({
  getParentRoute: () => root,
  path: '/diagnostics',
  component: lazyRouteComponent(() => import('../pages/diagnostics.tsx'), 'DiagnosticsPage'),
});
const requests = createRoute({
  getParentRoute: () => root,
  path: '/requests',
  validateSearch: readFilters('endpointId', ...requestFilters),
  component: lazyRouteComponent(() => import('../pages/requests.tsx'), 'RequestsPage'),
});
const externalKeyStores = createRoute({
  getParentRoute: () => root,
  path: '/external-key-stores',
  component: lazyRouteComponent(() => import('../pages/external-key-stores.tsx'), 'ExternalKeyStoresPage'),
});
const audit = createRoute({
  getParentRoute: () => root,
  path: '/audit',
  validateSearch: readFilters('kind', 'severity', 'actorId', 'subjectId', 'requestId', 'from', 'to'),
  component: lazyRouteComponent(() => import('../pages/audit.tsx'), 'AuditPage'),
});
const auditVerification = createRoute({
  getParentRoute: () => root,
  path: '/audit/verification',
  component: lazyRouteComponent(() => import('../pages/audit-verification.tsx'), 'AuditVerificationPage'),
});
const auditMigrations = createRoute({
  getParentRoute: () => root,
  path: '/audit/migrations',
  component: lazyRouteComponent(() => import('../pages/audit-migrations.tsx'), 'AuditMigrationsPage'),
});
const auditSinks = createRoute({
  getParentRoute: () => root,
  path: '/audit/sinks',
  component: lazyRouteComponent(() => import('../pages/audit-sinks.tsx'), 'AuditSinksPage'),
});
const roles = createRoute({
  getParentRoute: () => root,
  path: '/roles',
  component: lazyRouteComponent(() => import('../pages/roles.tsx'), 'RolesPage'),
});
const users = createRoute({
  getParentRoute: () => root,
  path: '/users',
  component: lazyRouteComponent(() => import('../pages/users.tsx'), 'UsersPage'),
});
const user = createRoute({
  getParentRoute: () => root,
  path: '/users/$id',
  component: lazyRouteComponent(() => import('../pages/user.tsx'), 'UserPage'),
});
const sessions = createRoute({
  getParentRoute: () => root,
  path: '/sessions',
  component: lazyRouteComponent(() => import('../pages/users.tsx'), 'SessionsPage'),
});
const profile = createRoute({
  getParentRoute: () => root,
  path: '/profile',
  component: lazyRouteComponent(() => import('../pages/profile.tsx'), 'ProfilePage'),
});
const device = createRoute({
  getParentRoute: () => root,
  path: '/device',
  component: lazyRouteComponent(() => import('../pages/device.tsx'), 'DevicePage'),
});
const tenants = createRoute({
  getParentRoute: () => root,
  path: '/tenants',
  component: lazyRouteComponent(() => import('../pages/tenants.tsx'), 'TenantsPage'),
});
const approvals = createRoute({
  getParentRoute: () => root,
  path: '/approvals',
  validateSearch: readFilters('state'),
  component: lazyRouteComponent(() => import('../pages/approvals.tsx'), 'ApprovalsPage'),
});
const snapshots = createRoute({
  getParentRoute: () => root,
  path: '/snapshots',
  component: lazyRouteComponent(() => import('../pages/snapshots.tsx'), 'SnapshotsPage'),
});
const snapshotRestore = createRoute({
  getParentRoute: () => root,
  path: '/snapshots/$id/restore',
  component: lazyRouteComponent(() => import('../pages/snapshot-restore.tsx'), 'SnapshotRestorePage'),
});
const settings = createRoute({
  getParentRoute: () => root,
  path: '/settings',
  component: lazyRouteComponent(() => import('../pages/settings.tsx'), 'SettingsPage'),
});
const tokens = createRoute({
  getParentRoute: () => root,
  path: '/tokens',
  component: lazyRouteComponent(() => import('../pages/tokens.tsx'), 'TokensPage'),
});
const reference = createRoute({
  getParentRoute: () => root,
  path: '/reference',
  validateSearch: readFilters('find', 'operation'),
  component: lazyRouteComponent(() => import('../pages/reference.tsx'), 'ReferencePage'),
});
const role = createRoute({
  getParentRoute: () => root,
  path: '/roles/$id',
  component: lazyRouteComponent(() => import('../pages/role.tsx'), 'RolePage'),
});
const token = createRoute({
  getParentRoute: () => root,
  path: '/tokens/$id',
  component: lazyRouteComponent(() => import('../pages/token.tsx'), 'TokenPage'),
});
const node = createRoute({
  getParentRoute: () => root,
  path: '/nodes/$id',
  component: lazyRouteComponent(() => import('../pages/node.tsx'), 'NodePage'),
});
const connectCloud = createRoute({
  getParentRoute: () => root,
  path: '/connect/cloud',
  component: lazyRouteComponent(() => import('../pages/connect.tsx'), 'ConnectCloudPage'),
});
const connectDatabase = createRoute({
  getParentRoute: () => root,
  path: '/connect/database',
  component: lazyRouteComponent(() => import('../pages/connect.tsx'), 'ConnectDatabasePage'),
});

const notificationTargets = createRoute({
  getParentRoute: () => root,
  path: '/notifications/targets',
  component: lazyRouteComponent(() => import('../pages/notification-targets.tsx'), 'NotificationTargetsPage'),
});
const service = createRoute({
  getParentRoute: () => root,
  path: '/service',
  component: lazyRouteComponent(() => import('../pages/service.tsx'), 'ServicePage'),
});
const jobs = createRoute({
  getParentRoute: () => root,
  path: '/service/jobs',
  component: lazyRouteComponent(() => import('../pages/jobs.tsx'), 'JobsPage'),
});
const serviceKeys = createRoute({
  getParentRoute: () => root,
  path: '/service/keys',
  component: lazyRouteComponent(() => import('../pages/service-keys.tsx'), 'ServiceKeysPage'),
});
const requestVerification = createRoute({
  getParentRoute: () => root,
  path: '/requests/verification',
  component: lazyRouteComponent(() => import('../pages/request-verification.tsx'), 'RequestVerificationPage'),
});
const vault = createRoute({
  getParentRoute: () => root,
  path: '/vaults/$id',
  component: lazyRouteComponent(() => import('../pages/vault.tsx'), 'VaultPage'),
});

export const router = createRouter({
  routeTree: root.addChildren([
    overview,
    notifications,
    nodes,
    setUp,
    vaults,
    keys,
    inventory,
    key,
    groups,
    applications,
    application,
    applicationRunbooks,
    runbookRun,
    runbooks,
    endpoints,
    endpoint,
    endpointDiagnostics,
    endpointSetup,
    endpointCredentials,
    endpointRules,
    applicationSetup,
    diagnostics,
    requests,
    externalKeyStores,
    audit,
    auditVerification,
    auditMigrations,
    auditSinks,
    roles,
    settings,
    users,
    user,
    sessions,
    profile,
    device,
    tenants,
    approvals,
    snapshots,
    snapshotRestore,
    tokens,
    reference,
    role,
    token,
    node,
    connectCloud,
    connectDatabase,
    notificationTargets,
    service,
    jobs,
    serviceKeys,
    requestVerification,
    vault,
  ]),
  defaultPreload: 'intent',
  defaultPreloadStaleTime: 0,
  scrollRestoration: true,
  defaultErrorComponent: ({ error, reset }) => (
    <Page title="This page cannot be shown">
      <ProblemView error={error} onRetry={reset} />
    </Page>
  ),
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
