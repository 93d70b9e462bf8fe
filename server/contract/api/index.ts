// Every route of the console's API, by resource.

import { approvalRoutes } from './approvals-routes.ts';
import { auditRoutes } from './audit-routes.ts';
import { clockRoutes } from './clock-routes.ts';
import { copyRoutes } from './copies-routes.ts';
import { deviceSignInRoutes } from './device-sign-in-routes.ts';
import { diagnosticsRoutes } from './diagnostics-routes.ts';
import { endpointRoutes } from './endpoints-routes.ts';
import { externalKeyStoreRoutes } from './external-key-stores-routes.ts';
import { keyRoutes } from './keys-routes.ts';
import { masterKeyRoutes } from './master-keys-routes.ts';
import { nodeRoutes } from './nodes-routes.ts';
import { notificationRoutes } from './notifications-routes.ts';
import { overviewRoutes } from './overview-routes.ts';
import { packageRoutes } from './packages-routes.ts';
import { profileRoutes } from './profile-routes.ts';
import { quarantineRoutes } from './quarantine-routes.ts';
import { recoveryKeyRoutes } from './recovery-keys-routes.ts';
import { requestRoutes } from './requests-routes.ts';
import { rootRoutes } from './root-routes.ts';
import type { RouteGroup } from './row.ts';
import { runbookRoutes } from './runbooks-routes.ts';
import { searchRoutes } from './search-routes.ts';
import { sessionsRoutes } from './session-routes.ts';
import { settingsRoutes } from './settings-routes.ts';
import { setupRoutes } from './setup-routes.ts';
import { sessionRoutes } from './sign-in-routes.ts';
import { snapshotRoutes } from './snapshots-routes.ts';
import { statusRoutes } from './status-routes.ts';
import { applicationRoutes } from './tde-applications-routes.ts';
import { tdeGroupRoutes } from './tde-groups-routes.ts';
import { tenantRoutes } from './tenants-routes.ts';
import { tokenRoutes } from './tokens-routes.ts';
import { userRoutes } from './users-routes.ts';
import { vaultRoutes } from './vaults-routes.ts';

export const apiRoutes = {
  tenants: tenantRoutes,
  vaults: vaultRoutes,
  keys: keyRoutes,
  tdeGroups: tdeGroupRoutes,
  applications: applicationRoutes,
  packages: packageRoutes,
  masterKeys: masterKeyRoutes,
  endpoints: endpointRoutes,
  diagnostics: diagnosticsRoutes,
  requests: requestRoutes,
  runbooks: runbookRoutes,
  externalKeyStores: externalKeyStoreRoutes,
  approvals: approvalRoutes,
  snapshots: snapshotRoutes,
  copies: copyRoutes,
  recoveryKeys: recoveryKeyRoutes,
  notifications: notificationRoutes,
  audit: auditRoutes,
  tokens: tokenRoutes,
  users: userRoutes,
  sessions: sessionsRoutes,
  profile: profileRoutes,
  session: sessionRoutes,
  deviceSignIn: deviceSignInRoutes,
  nodes: nodeRoutes,
  status: statusRoutes,
  clock: clockRoutes,
  root: rootRoutes,
  quarantine: quarantineRoutes,
  search: searchRoutes,
  overview: overviewRoutes,
  settings: settingsRoutes,
  setup: setupRoutes,
} as const satisfies { readonly [resource: string]: RouteGroup };

export type ApiRoutes = typeof apiRoutes;
