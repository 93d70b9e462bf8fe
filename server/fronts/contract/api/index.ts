// Every route of the console's API, by resource.

import { approvalRoutes } from './approvals.ts';
import { auditRoutes } from './audit.ts';
import { clockRoutes } from './clock.ts';
import { copyRoutes } from './copies.ts';
import { deviceSignInRoutes } from './device-sign-in.ts';
import { diagnosticsRoutes } from './diagnostics.ts';
import { endpointRoutes } from './endpoints.ts';
import { externalKeyStoreRoutes } from './external-key-stores.ts';
import { keyRoutes } from './keys.ts';
import { masterKeyRoutes } from './master-keys.ts';
import { nodeRoutes } from './nodes.ts';
import { notificationRoutes } from './notifications.ts';
import { overviewRoutes } from './overview.ts';
import { packageRoutes } from './packages.ts';
import { profileRoutes } from './profile.ts';
import { quarantineRoutes } from './quarantine.ts';
import { recoveryKeyRoutes } from './recovery-keys.ts';
import { requestRoutes } from './requests.ts';
import { rootRoutes } from './root.ts';
import type { RouteGroup } from './row.ts';
import { runbookRoutes } from './runbooks.ts';
import { searchRoutes } from './search.ts';
import { sessionRoutes } from './session.ts';
import { sessionsRoutes } from './sessions.ts';
import { settingsRoutes } from './settings.ts';
import { setupRoutes } from './setup.ts';
import { snapshotRoutes } from './snapshots.ts';
import { statusRoutes } from './status.ts';
import { applicationRoutes } from './tde-applications.ts';
import { tdeGroupRoutes } from './tde-groups.ts';
import { tenantRoutes } from './tenants.ts';
import { tokenRoutes } from './tokens.ts';
import { userRoutes } from './users.ts';
import { vaultRoutes } from './vaults.ts';

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
