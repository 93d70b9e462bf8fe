// One handler a row of the contract: it calls one operation and represents what came back. One file
// a resource.

import { ServiceError } from '../../../base/errors.ts';
import type { Operations } from '../../../operations/index.ts';
import { applicationsHandlers } from './applications.ts';
import { approvalsHandlers } from './approvals.ts';
import { auditHandlers } from './audit.ts';
import { clockHandlers } from './clock.ts';
import { copiesHandlers } from './copies.ts';
import { deviceSignInHandlers } from './device-sign-in.ts';
import { diagnosticsHandlers } from './diagnostics.ts';
import { endpointsHandlers } from './endpoints.ts';
import { externalKeyStoresHandlers } from './external-key-stores.ts';
import type { Handlers } from './handler.ts';
import { keysHandlers } from './keys.ts';
import { masterKeysHandlers } from './master-keys.ts';
import { nodesHandlers } from './nodes.ts';
import { notificationsHandlers } from './notifications.ts';
import { overviewHandlers, settingsHandlers } from './overview.ts';
import { packagesHandlers } from './packages.ts';
import { profileHandlers } from './profile.ts';
import { recoveryKeysHandlers } from './recovery-keys.ts';
import { requestsHandlers } from './requests.ts';
import { quarantineHandlers, rootHandlers } from './root.ts';
import { runbooksHandlers } from './runbooks.ts';
import { searchHandlers } from './search.ts';
import { sessionHandlers } from './session.ts';
import { sessionsHandlers } from './sessions.ts';
import { setupHandlers } from './setup.ts';
import { snapshotsHandlers } from './snapshots.ts';
import { statusHandlers } from './status.ts';
import { tdeGroupsHandlers } from './tde-groups.ts';
import { tenantsHandlers } from './tenants.ts';
import { tokensHandlers } from './tokens.ts';
import { usersHandlers } from './users.ts';
import { vaultsHandlers } from './vaults.ts';

export const createHandlers = (operations: Operations): Handlers => ({
  tenants: tenantsHandlers(operations),
  vaults: vaultsHandlers(operations),
  keys: keysHandlers(operations),
  tdeGroups: tdeGroupsHandlers(operations),
  applications: applicationsHandlers(operations),
  packages: packagesHandlers(operations),
  masterKeys: masterKeysHandlers(operations),
  endpoints: endpointsHandlers(operations),
  requests: requestsHandlers(operations),
  diagnostics: diagnosticsHandlers(operations),
  externalKeyStores: externalKeyStoresHandlers(operations),
  runbooks: runbooksHandlers(operations),
  approvals: approvalsHandlers(operations),
  snapshots: snapshotsHandlers(operations),
  copies: copiesHandlers(operations),
  recoveryKeys: recoveryKeysHandlers(operations),
  notifications: notificationsHandlers(operations),
  audit: auditHandlers(operations),
  tokens: tokensHandlers(operations),
  users: usersHandlers(operations),
  sessions: sessionsHandlers(operations),
  profile: profileHandlers(operations),
  session: sessionHandlers(operations),
  deviceSignIn: deviceSignInHandlers(operations),
  nodes: nodesHandlers(operations),
  status: statusHandlers(operations),
  clock: clockHandlers(operations),
  root: rootHandlers(operations),
  quarantine: quarantineHandlers(operations),
  search: searchHandlers(operations),
  overview: overviewHandlers(operations),
  settings: settingsHandlers(operations),
  setup: setupHandlers(operations),
});

/**
 * For routes that the table promises and the handlers lack: cannot happen while both come from the
 * same types.
 */
export const missingHandler = (name: string): ServiceError => new ServiceError('internal', `no handler for ${name}`);
