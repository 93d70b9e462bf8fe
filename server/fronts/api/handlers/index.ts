// One handler a row of the contract: it calls one operation and represents what came back. One file
// a resource.

import { ServiceError } from '../../../base/service-error.ts';
import type { Operations } from '../../../operations/index.ts';
import { applicationsHandlers } from './applications-handlers.ts';
import { approvalsHandlers } from './approvals-handlers.ts';
import { auditHandlers } from './audit-handlers.ts';
import { clockHandlers } from './clock-handlers.ts';
import { copiesHandlers } from './copies-handlers.ts';
import { deviceSignInHandlers } from './device-sign-in-handlers.ts';
import { diagnosticsHandlers } from './diagnostics-handlers.ts';
import { endpointsHandlers } from './endpoints-handlers.ts';
import { externalKeyStoresHandlers } from './external-key-stores-handlers.ts';
import type { Handlers } from './handler.ts';
import { keysHandlers } from './keys-handlers.ts';
import { masterKeysHandlers } from './master-keys-handlers.ts';
import { nodesHandlers } from './nodes-handlers.ts';
import { notificationsHandlers } from './notifications-handlers.ts';
import { overviewHandlers, settingsHandlers } from './overview-handlers.ts';
import { packagesHandlers } from './packages-handlers.ts';
import { profileHandlers } from './profile-handlers.ts';
import { recoveryKeysHandlers } from './recovery-keys-handlers.ts';
import { requestsHandlers } from './requests-handlers.ts';
import { quarantineHandlers, rootHandlers } from './root-handlers.ts';
import { runbooksHandlers } from './runbooks-handlers.ts';
import { searchHandlers } from './search-handlers.ts';
import { sessionHandlers } from './session-handlers.ts';
import { sessionsHandlers } from './sessions-handlers.ts';
import { setupHandlers } from './setup-handlers.ts';
import { snapshotsHandlers } from './snapshots-handlers.ts';
import { statusHandlers } from './status-handlers.ts';
import { tdeGroupsHandlers } from './tde-groups-handlers.ts';
import { tenantsHandlers } from './tenants-handlers.ts';
import { tokensHandlers } from './tokens-handlers.ts';
import { usersHandlers } from './users-handlers.ts';
import { vaultsHandlers } from './vaults-handlers.ts';

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
