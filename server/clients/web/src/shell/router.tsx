// The pages' addresses: each mirrors the path of the API resource it shows. Every page is a chunk
// of its own, loaded when it is first opened (or pointed at).

import { createRootRoute, createRoute, createRouter, Link, lazyRouteComponent } from '@tanstack/react-router';
import { requestFilters } from '../endpoints/request-filters.ts';
import { keyFilters } from '../keys/key-filters.ts';
import { Page, Panel } from '../ui/page/page.tsx';
import { EmptyState, ProblemView } from '../ui/page/problem-view.tsx';
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
  component: lazyRouteComponent(() => import('../service/overview.tsx'), 'OverviewPage'),
});
const notifications = createRoute({
  getParentRoute: () => root,
  path: '/notifications',
  validateSearch: readFilters('state', 'acknowledged', 'minSeverity', 'kind'),
  component: lazyRouteComponent(() => import('../service/notifications.tsx'), 'NotificationsPage'),
});
const setUp = createRoute({
  getParentRoute: () => root,
  path: '/setup',
  component: lazyRouteComponent(() => import('../service/setup.tsx'), 'SetupPage'),
});
const nodes = createRoute({
  getParentRoute: () => root,
  path: '/nodes',
  component: lazyRouteComponent(() => import('../service/nodes.tsx'), 'NodesPage'),
});
const vaults = createRoute({
  getParentRoute: () => root,
  path: '/vaults',
  component: lazyRouteComponent(() => import('../vaults/vaults.tsx'), 'VaultsPage'),
});
const keys = createRoute({
  getParentRoute: () => root,
  path: '/keys',
  validateSearch: readFilters(...keyFilters),
  component: lazyRouteComponent(() => import('../keys/keys.tsx'), 'KeysPage'),
});
const inventory = createRoute({
  getParentRoute: () => root,
  path: '/keys/export',
  validateSearch: readFilters('kind', 'state', 'vaultId', 'tag', 'createdAfter', 'createdBefore', 'format', 'tenants'),
  component: lazyRouteComponent(() => import('../keys/inventory.tsx'), 'InventoryPage'),
});
const key = createRoute({
  getParentRoute: () => root,
  path: '/keys/$id',
  component: lazyRouteComponent(() => import('../keys/key.tsx'), 'KeyPage'),
});
const groups = createRoute({
  getParentRoute: () => root,
  path: '/tde/groups',
  component: lazyRouteComponent(() => import('../applications/tde-groups.tsx'), 'TdeGroupsPage'),
});
const applications = createRoute({
  getParentRoute: () => root,
  path: '/tde/applications',
  validateSearch: readFilters('groupId'),
  component: lazyRouteComponent(() => import('../applications/tde-applications.tsx'), 'TdeApplicationsPage'),
});
const application = createRoute({
  getParentRoute: () => root,
  path: '/tde/applications/$id',
  component: lazyRouteComponent(() => import('../applications/tde-application.tsx'), 'TdeApplicationPage'),
});
const applicationRunbooks = createRoute({
  getParentRoute: () => root,
  path: '/tde/applications/$id/runbooks',
  validateSearch: readFilters('runbook', 'release', 'containers'),
  component: lazyRouteComponent(() => import('../runbooks/application-runbooks.tsx'), 'ApplicationRunbooksPage'),
});
const runbookRun = createRoute({
  getParentRoute: () => root,
  path: '/tde/applications/$id/runbook-runs/$runId',
  component: lazyRouteComponent(() => import('../runbooks/runbook-run.tsx'), 'RunbookRunPage'),
});
const runbooks = createRoute({
  getParentRoute: () => root,
  path: '/runbooks',
  component: lazyRouteComponent(() => import('../runbooks/runbooks.tsx'), 'RunbooksPage'),
});
const endpoints = createRoute({
  getParentRoute: () => root,
  path: '/endpoints',
  component: lazyRouteComponent(() => import('../endpoints/endpoints.tsx'), 'EndpointsPage'),
});
const endpoint = createRoute({
  getParentRoute: () => root,
  path: '/endpoints/$id',
  validateSearch: readFilters(...requestFilters),
  component: lazyRouteComponent(() => import('../endpoints/endpoint.tsx'), 'EndpointPage'),
});
const endpointDiagnostics = createRoute({
  getParentRoute: () => root,
  path: '/endpoints/$id/diagnostics',
  component: lazyRouteComponent(() => import('../endpoints/endpoint-diagnostics.tsx'), 'EndpointDiagnosticsPage'),
});
const endpointSetup = createRoute({
  getParentRoute: () => root,
  path: '/endpoints/$id/setup',
  component: lazyRouteComponent(() => import('../endpoints/endpoint-setup.tsx'), 'EndpointSetupPage'),
});
const endpointRules = createRoute({
  getParentRoute: () => root,
  path: '/endpoints/$id/rules',
  component: lazyRouteComponent(() => import('../endpoints/endpoint-rules.tsx'), 'EndpointRulesPage'),
});
const endpointCredentials = createRoute({
  getParentRoute: () => root,
  path: '/endpoints/$id/credentials',
  component: lazyRouteComponent(() => import('../endpoints/endpoint-credentials.tsx'), 'EndpointCredentialsPage'),
});
const applicationSetup = createRoute({
  getParentRoute: () => root,
  path: '/tde/applications/$id/setup',
  component: lazyRouteComponent(() => import('../applications/application-setup.tsx'), 'ApplicationSetupPage'),
});
const diagnostics = createRoute({
  getParentRoute: () => root,
  path: '/diagnostics',
  component: lazyRouteComponent(() => import('../endpoints/diagnostics.tsx'), 'DiagnosticsPage'),
});
const requests = createRoute({
  getParentRoute: () => root,
  path: '/requests',
  validateSearch: readFilters('endpointId', ...requestFilters),
  component: lazyRouteComponent(() => import('../endpoints/requests.tsx'), 'RequestsPage'),
});
const externalKeyStores = createRoute({
  getParentRoute: () => root,
  path: '/external-key-stores',
  component: lazyRouteComponent(() => import('../endpoints/external-key-stores.tsx'), 'ExternalKeyStoresPage'),
});
const audit = createRoute({
  getParentRoute: () => root,
  path: '/audit',
  validateSearch: readFilters('kind', 'severity', 'actorId', 'subjectId', 'requestId', 'from', 'to'),
  component: lazyRouteComponent(() => import('../audit/audit.tsx'), 'AuditPage'),
});
const auditVerification = createRoute({
  getParentRoute: () => root,
  path: '/audit/verification',
  component: lazyRouteComponent(() => import('../audit/audit-verification.tsx'), 'AuditVerificationPage'),
});
const auditMigrations = createRoute({
  getParentRoute: () => root,
  path: '/audit/migrations',
  component: lazyRouteComponent(() => import('../audit/audit-migrations.tsx'), 'AuditMigrationsPage'),
});
const auditSinks = createRoute({
  getParentRoute: () => root,
  path: '/audit/sinks',
  component: lazyRouteComponent(() => import('../audit/audit-sinks.tsx'), 'AuditSinksPage'),
});
const roles = createRoute({
  getParentRoute: () => root,
  path: '/roles',
  component: lazyRouteComponent(() => import('../people/roles.tsx'), 'RolesPage'),
});
const users = createRoute({
  getParentRoute: () => root,
  path: '/users',
  component: lazyRouteComponent(() => import('../people/users.tsx'), 'UsersPage'),
});
const user = createRoute({
  getParentRoute: () => root,
  path: '/users/$id',
  component: lazyRouteComponent(() => import('../people/user.tsx'), 'UserPage'),
});
const sessions = createRoute({
  getParentRoute: () => root,
  path: '/sessions',
  component: lazyRouteComponent(() => import('../people/users.tsx'), 'SessionsPage'),
});
const profile = createRoute({
  getParentRoute: () => root,
  path: '/profile',
  component: lazyRouteComponent(() => import('../people/profile.tsx'), 'ProfilePage'),
});
const device = createRoute({
  getParentRoute: () => root,
  path: '/device',
  component: lazyRouteComponent(() => import('../people/device.tsx'), 'DevicePage'),
});
const tenants = createRoute({
  getParentRoute: () => root,
  path: '/tenants',
  component: lazyRouteComponent(() => import('../vaults/tenants.tsx'), 'TenantsPage'),
});
const approvals = createRoute({
  getParentRoute: () => root,
  path: '/approvals',
  validateSearch: readFilters('state'),
  component: lazyRouteComponent(() => import('../people/approvals.tsx'), 'ApprovalsPage'),
});
const snapshots = createRoute({
  getParentRoute: () => root,
  path: '/snapshots',
  component: lazyRouteComponent(() => import('../snapshots/snapshots.tsx'), 'SnapshotsPage'),
});
const snapshotRestore = createRoute({
  getParentRoute: () => root,
  path: '/snapshots/$id/restore',
  component: lazyRouteComponent(() => import('../snapshots/snapshot-restore.tsx'), 'SnapshotRestorePage'),
});
const settings = createRoute({
  getParentRoute: () => root,
  path: '/settings',
  component: lazyRouteComponent(() => import('../service/settings.tsx'), 'SettingsPage'),
});
const tokens = createRoute({
  getParentRoute: () => root,
  path: '/tokens',
  component: lazyRouteComponent(() => import('../people/tokens.tsx'), 'TokensPage'),
});
const reference = createRoute({
  getParentRoute: () => root,
  path: '/reference',
  validateSearch: readFilters('find', 'operation'),
  component: lazyRouteComponent(() => import('../reference/reference.tsx'), 'ReferencePage'),
});
const role = createRoute({
  getParentRoute: () => root,
  path: '/roles/$id',
  component: lazyRouteComponent(() => import('../people/role.tsx'), 'RolePage'),
});
const token = createRoute({
  getParentRoute: () => root,
  path: '/tokens/$id',
  component: lazyRouteComponent(() => import('../people/token.tsx'), 'TokenPage'),
});
const node = createRoute({
  getParentRoute: () => root,
  path: '/nodes/$id',
  component: lazyRouteComponent(() => import('../service/node.tsx'), 'NodePage'),
});
const connectCloud = createRoute({
  getParentRoute: () => root,
  path: '/connect/cloud',
  component: lazyRouteComponent(() => import('../service/connect.tsx'), 'ConnectCloudPage'),
});
const connectDatabase = createRoute({
  getParentRoute: () => root,
  path: '/connect/database',
  component: lazyRouteComponent(() => import('../service/connect.tsx'), 'ConnectDatabasePage'),
});

const notificationTargets = createRoute({
  getParentRoute: () => root,
  path: '/notifications/targets',
  component: lazyRouteComponent(() => import('../service/notification-targets.tsx'), 'NotificationTargetsPage'),
});
const service = createRoute({
  getParentRoute: () => root,
  path: '/service',
  component: lazyRouteComponent(() => import('../service/service.tsx'), 'ServicePage'),
});
const jobs = createRoute({
  getParentRoute: () => root,
  path: '/service/jobs',
  component: lazyRouteComponent(() => import('../service/jobs.tsx'), 'JobsPage'),
});
const serviceKeys = createRoute({
  getParentRoute: () => root,
  path: '/service/keys',
  component: lazyRouteComponent(() => import('../service/service-keys.tsx'), 'ServiceKeysPage'),
});
const requestVerification = createRoute({
  getParentRoute: () => root,
  path: '/requests/verification',
  component: lazyRouteComponent(() => import('../endpoints/request-verification.tsx'), 'RequestVerificationPage'),
});
const vault = createRoute({
  getParentRoute: () => root,
  path: '/vaults/$id',
  component: lazyRouteComponent(() => import('../vaults/vault.tsx'), 'VaultPage'),
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
