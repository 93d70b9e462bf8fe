// The one place where adapters meet operations and fronts. Opens the data directory in an order that writes nothing before
// everything that is there has been recognised: lock, root key, store, keys, then set-up. Errors leave as StartError.

import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { rootCertificates } from 'node:tls';
import { Cron } from 'croner';
import { Hono } from 'hono';
import { CoreError } from '../../addon/core.ts';
import { systemClock } from '../base/clock.ts';
import { ServiceError } from '../base/errors.ts';
import { createExclusion } from '../base/exclusion.ts';
import { newId, serviceTenantId } from '../base/ids.ts';
import { createProbeMarks } from '../base/probe-mark.ts';
import { StartError } from '../base/start-error.ts';
import { openAwsReader } from '../clouds/aws.ts';
import { type AuditSinkConfig, type Config, checkFile, type NotificationTargetConfig } from '../config.ts';
import { readRunbooks } from '../content/runbooks.ts';
import { createEndpointDiagnosis } from '../diagnostics/endpoint/run.ts';
import { createKeyStoreProbe } from '../diagnostics/key-store-probe.ts';
import { type Role, roleNames, rowOf } from '../domain/access.ts';
import { serviceActor } from '../domain/actor.ts';
import type { Changes } from '../domain/changes.ts';
import { everyTenant } from '../domain/tenant.ts';
import { type ApiFrontOptions, createApiFront } from '../fronts/api/app.ts';
import { addClosedDataPaths, addClosedHealth, createSealedApp } from '../fronts/closed.ts';
import { createHealthApp } from '../fronts/health.ts';
import { createMetricsApp } from '../fronts/metrics.ts';
import { serveConsole } from '../fronts/shared/console-pages.ts';
import { createDispatch, type RawFront } from '../fronts/shared/dispatch.ts';
import { createTdeFront, type TdeFront } from '../fronts/tde/app.ts';
import { createXksFront, type XksFront } from '../fronts/xks/app.ts';
import { createOpenId, type OpenIdOptions } from '../identity/open-id.ts';
import { createPasskeys } from '../identity/passkeys.ts';
import type { TlsMaterial } from '../listener/listener.ts';
import { openCore } from '../native/core.ts';
import { createKeyRing } from '../native/key-ring.ts';
import { type Argon2Parameters, createPasswordHashes } from '../native/password-hashes.ts';
import { readHostUptime, readProcessFacts } from '../native/process-facts.ts';
import { readServedCertificate } from '../native/served-certificates.ts';
import { createAccess } from '../operations/access/access.ts';
import {
  authenticateAdmin,
  authenticateMetrics,
  createToken,
  listTokens,
  revokeToken,
} from '../operations/access/manage-tokens.ts';
import { createGroup } from '../operations/applications/create-group.ts';
import { moveApplication } from '../operations/applications/move-application.ts';
import { readApplications } from '../operations/applications/read-applications.ts';
import { readGroups } from '../operations/applications/read-groups.ts';
import { registerApplication } from '../operations/applications/register-application.ts';
import { removeAccessGuid } from '../operations/applications/remove-access-guid.ts';
import { rotateAccessGuid } from '../operations/applications/rotate-access-guid.ts';
import { setCallers } from '../operations/applications/set-callers.ts';
import { setCompatibility } from '../operations/applications/set-compatibility.ts';
import { switchApplication } from '../operations/applications/switch-application.ts';
import { type Approvals, createApprovals } from '../operations/approvals/approvals.ts';
import { dualControl } from '../operations/approvals/dual-control.ts';
import { createLogForwarding, type LogForwarding } from '../operations/audit/forward-logs.ts';
import { readAudit } from '../operations/audit/read-audit.ts';
import { type AuditSealer, createAuditSealer, type Unsound } from '../operations/audit/seal-audit-log.ts';
import { createDirectory } from '../operations/data-path/directory.ts';
import { createMeter } from '../operations/data-path/meter.ts';
import { createUsageLog } from '../operations/data-path/usage-log.ts';
import { addEndpointCredential } from '../operations/endpoints/add-endpoint-credential.ts';
import { changeEndpoint } from '../operations/endpoints/change-endpoint.ts';
import { createEndpoint } from '../operations/endpoints/create-endpoint.ts';
import { diagnoseEndpoint } from '../operations/endpoints/diagnose-endpoint.ts';
import { changeEndpointSettings } from '../operations/endpoints/endpoint-settings.ts';
import { createKeyStoreWatch, externalKeyStores } from '../operations/endpoints/external-key-stores.ts';
import { readEndpoints } from '../operations/endpoints/read-endpoints.ts';
import { removeEndpointCredential } from '../operations/endpoints/remove-endpoint-credential.ts';
import { simulateRules } from '../operations/endpoints/simulate-rules.ts';
import type { Operations } from '../operations/index.ts';
import { changeKey } from '../operations/keys/change-key.ts';
import { createKey } from '../operations/keys/create-key.ts';
import { destroyMasterKey } from '../operations/keys/destroy-master-key.ts';
import { readKeys } from '../operations/keys/read-keys.ts';
import { readMasterKeys } from '../operations/keys/read-master-keys.ts';
import { rotateKey } from '../operations/keys/rotate-key.ts';
import { softDeleteKey } from '../operations/keys/soft-delete-key.ts';
import { switchKey } from '../operations/keys/switch-key.ts';
import { createFleet } from '../operations/nodes/fleet.ts';
import { manageNodes } from '../operations/nodes/manage-nodes.ts';
import { createNotificationDelivery, type NotificationDelivery } from '../operations/notifications/deliver.ts';
import { inbox } from '../operations/notifications/inbox.ts';
import { createSources } from '../operations/notifications/sources.ts';
import { createNotificationWatch } from '../operations/notifications/watch.ts';
import { createPeople } from '../operations/people/index.ts';
import { readRequests } from '../operations/requests/read-requests.ts';
import { createRequestMinutes } from '../operations/requests/request-minutes.ts';
import { createXksLatency } from '../operations/requests/xks-latency.ts';
import { createAwaitCopies } from '../operations/root/await-copies.ts';
import { manageRoot } from '../operations/root/manage-root.ts';
import { createRootBackups } from '../operations/root/root-backup.ts';
import { createErasureScheduler, type ErasureScheduler } from '../operations/root/run-erasure.ts';
import { createRootSpread, type RootSpread } from '../operations/root/spread-root.ts';
import { createUnsealing } from '../operations/root/unseal.ts';
import { followRunbook } from '../operations/runbooks/follow-runbook.ts';
import { createSearchOperation } from '../operations/search/search.ts';
import { checkHealth } from '../operations/service/check-health.ts';
import { createDeadlines } from '../operations/service/deadline-clock.ts';
import { setUp } from '../operations/service/first-start.ts';
import { createHousekeeping } from '../operations/service/housekeeping.ts';
import { createMinuteJobs } from '../operations/service/minute-jobs.ts';
import { createMissingRecords } from '../operations/service/missing-records.ts';
import { createQuarantine, type Quarantine } from '../operations/service/quarantine.ts';
import { readMetrics } from '../operations/service/read-metrics.ts';
import { readOverview } from '../operations/service/read-overview.ts';
import { readStatus } from '../operations/service/read-status.ts';
import { setUpSteps } from '../operations/service/set-up-steps.ts';
import { findDefaultTenant } from '../operations/shared/find.ts';
import { createIdempotency } from '../operations/shared/idempotency.ts';
import { createPreconditions } from '../operations/shared/preconditions.ts';
import { findSnapshot } from '../operations/snapshots/find-snapshot.ts';
import { createSnapshotFolder, type SnapshotFolder } from '../operations/snapshots/folder.ts';
import { makeSnapshot } from '../operations/snapshots/make-snapshot.ts';
import { manageSnapshots } from '../operations/snapshots/manage-snapshots.ts';
import { createOpenings } from '../operations/snapshots/openings.ts';
import { recoverMissing } from '../operations/snapshots/recover-missing.ts';
import { recoveryKeys } from '../operations/snapshots/recovery-keys.ts';
import { restoreSnapshot } from '../operations/snapshots/restore-snapshot.ts';
import { type SnapshotSchedule, scheduleSnapshots } from '../operations/snapshots/schedule-snapshots.ts';
import { verifySnapshot } from '../operations/snapshots/verify-snapshot.ts';
import { authenticateApplication } from '../operations/tde/authenticate-application.ts';
import {
  createTokenObject,
  generateTokenKey,
  generateTokenKeyPair,
  importTokenKey,
} from '../operations/tde/create-token-object.ts';
import { destroyTokenObject } from '../operations/tde/destroy-token-object.ts';
import { deriveTokenKey, unwrapTokenKey } from '../operations/tde/make-token-key.ts';
import { readTokenObjects } from '../operations/tde/read-token-object.ts';
import { updateTokenObject } from '../operations/tde/update-token-object.ts';
import { tokenKeyUses } from '../operations/tde/use-token-key.ts';
import { withdrawRequest } from '../operations/tde/withdraw-request.ts';
import { wrapTokenKey } from '../operations/tde/wrap-token-key.ts';
import { changeTenant, type TenantRules } from '../operations/tenants/change-tenant.ts';
import { createTenant } from '../operations/tenants/create-tenant.ts';
import { createTenantRetention, purgeTenant, type TenantRetention } from '../operations/tenants/purge-tenant.ts';
import { readTenants } from '../operations/tenants/read-tenants.ts';
import { changeVault, deleteVault, setVaultProfile } from '../operations/vaults/change-vault.ts';
import { createVault } from '../operations/vaults/create-vault.ts';
import { readVaults } from '../operations/vaults/read-vaults.ts';
import { RootKeyError } from '../ports/key-ring.ts';
import type { Log, LogState } from '../ports/log.ts';
import type { AuditSinkSource, LogSink } from '../ports/log-sink.ts';
import type { ServedCertificate } from '../ports/meter.ts';
import type { NotificationTarget } from '../ports/notification-target.ts';
import type { Ports } from '../ports/ports.ts';
import type { Repositories, Store } from '../ports/store.ts';
import { type OpenRoot, openRoot, type SealedRoot } from '../roots/open.ts';
import type { AskPassphrase } from '../roots/ways.ts';
import { openEmail } from '../sinks/email.ts';
import { openFileSink, readFileSink } from '../sinks/file.ts';
import { openHttpsSink } from '../sinks/https.ts';
import { openSyslogSink } from '../sinks/syslog.ts';
import { openWebhook } from '../sinks/webhook.ts';
import { openArchive } from '../snapshots/archive.ts';
import { StoreError } from '../store/errors.ts';
import type { PostgresOptions } from '../store/postgres/engine.ts';
import { type DirectoryLock, lockDirectory } from '../store/sqlite/lock.ts';
import { openPostgresStore, openStore } from '../store/store.ts';
import { openTlsFiles, readPem } from './tls-files.ts';

/** The built pages: beside what was built of this file, or in the sources' `dist`. */
const pagesDirectory =
  ['../../web', '../../dist/web']
    .map((path) => join(import.meta.dirname, path))
    .find((path) => existsSync(join(path, 'index.html'))) ?? join(import.meta.dirname, '../../dist/web');

export interface ServiceOptions {
  readonly config: Config;
  readonly version: string;
  readonly log: Log;
  /** Whether its lines reach their destination. */
  readonly logState: () => LogState;
  /** Take a database that is not what the checkpoint beside the root key says: an operator has decided so. */
  readonly acceptDatabase: boolean;
  /** The address that databases and people are given; known only once the listener has its port. */
  readonly publicUrl: () => string;
  /** Where this node's own listener is. */
  readonly listening: () => { readonly host: string; readonly port: number };
  /** Asks a person for a root provider's passphrase; absent: nobody is there to be asked. */
  readonly ask?: AskPassphrase | undefined;
  /** The root key is not open: whoever listens answers by this meanwhile. Absent: the service does not wait for it. */
  readonly onSealed?: (sealed: Pick<Service, 'handle' | 'readTls' | 'certificatePath'>) => Promise<void>;
  /** Ends the waiting for a root key. */
  readonly signal?: AbortSignal | undefined;
  /** One line for people who have the service's host. */
  readonly say?: ((line: string) => void) | undefined;
  /** The store failed under the service: what was confirmed is safe, nothing more can be. */
  readonly onFatal: (error: StartError) => void;
  /** Of Argon2id; the usual ones when absent. */
  readonly passwordParameters?: Argon2Parameters;
  /** How the console's front learns of the peer and of the end of an answer: the listener's business. */
  readonly connection: Pick<ApiFrontOptions, 'peerOf' | 'afterSent'>;
}

export interface Service {
  readonly operations: Operations;
  /** Looks now at everything that notifications tell of. */
  lookAround(): Promise<void>;
  /** Answers one request, whatever it is for. */
  readonly handle: RawFront['handle'];
  readonly xks: XksFront;
  readonly tde: TdeFront;
  /** PEM file of the first certificate. */
  readonly certificatePath: string;
  /** The value of the first administrator token, when this was the first start. */
  readonly adminToken: string | undefined;
  readonly requestId: () => string;
  /** Reads certificates and keys from their files, and the authorities of client certificates. */
  readTls(): TlsMaterial;
  /** The same, to replace what is served: throws StartError 'config' when the new certificates are worse than the present ones. */
  renewTls(present: TlsMaterial): TlsMaterial;
  /** The same certificates, with today's authorities of client certificates. */
  withAuthorities(present: TlsMaterial): TlsMaterial;
  /** The listener serves these from now on. */
  tlsTaken(material: TlsMaterial): void;
  /** What purges deleted tenants by the clock. */
  readonly tenantRetention: Pick<TenantRetention, 'turn'>;
  /** Tells when endpoints want client certificates of other authorities than before. */
  onClientAuthorities(tell: () => void): void;
  /** From now on health is bad: whoever spreads requests sends them elsewhere. */
  announceStop(): void;
  /** Writes what waits and gives everything back. Throws `StartError` when the store did not take all of it; everything is given back all the same. */
  stop(): Promise<void>;
}

/** Everything that the operations need, and what they are built of here. */
export const createOperations = (
  ports: Ports,
  sealer: AuditSealer,
  forwarding: LogForwarding,
  approvals: Approvals,
  quarantine: Quarantine,
  snapshots: Operations['snapshots'],
  rules: { readonly tenants: TenantRules; readonly snapshots: { readonly schedule: string | null } },
  ofProcess: Pick<Operations, 'health' | 'idempotency' | 'preconditions' | 'overview' | 'settings' | 'setup' | 'clock'>,
  delivery: NotificationDelivery,
): Operations => ({
  tenants: {
    ...readTenants(ports),
    ...changeTenant(ports, rules.tenants, approvals),
    create: createTenant(ports),
    purge: purgeTenant(ports, approvals),
  },
  nodes: manageNodes(ports),
  observe: ports.fleet.observe,
  confirm: ports.fleet.confirm,
  vaults: {
    ...readVaults(ports),
    create: createVault(ports),
    enable: changeVault(ports, 'enabled'),
    disable: changeVault(ports, 'disabled'),
    setProfile: setVaultProfile(ports),
    ...deleteVault(ports, approvals),
  },
  keys: {
    ...readKeys(ports),
    create: createKey(ports),
    change: changeKey(ports),
    enable: switchKey(ports, 'enable'),
    disable: switchKey(ports, 'disable'),
    ...softDeleteKey(ports, approvals),
    rotate: rotateKey(ports),
  },
  tdeGroups: { ...readGroups(ports), create: createGroup(ports) },
  applications: {
    ...readApplications(ports),
    ...moveApplication(ports, approvals),
    register: registerApplication(ports),
    enable: switchApplication(ports, 'enabled'),
    disable: switchApplication(ports, 'disabled'),
    setCompatibility: setCompatibility(ports),
    setCallers: setCallers(ports),
    rotateAccessGuid: rotateAccessGuid(ports),
    removeAccessGuid: removeAccessGuid(ports),
  },
  masterKeys: { ...readMasterKeys(ports), ...destroyMasterKey(ports, approvals) },
  endpoints: {
    ...readEndpoints(ports),
    create: createEndpoint(ports),
    enable: changeEndpoint(ports, 'enabled'),
    disable: changeEndpoint(ports, 'disabled'),
    delete: changeEndpoint(ports, 'deleted'),
    changeSettings: changeEndpointSettings(ports),
    simulateRules: simulateRules(ports),
    addCredential: addEndpointCredential(ports),
    removeCredential: removeEndpointCredential(ports),
  },
  runbooks: followRunbook(ports, readRunbooks()),
  ...ofProcess,
  diagnostics: diagnoseEndpoint(ports, ports.diagnosis),
  requests: readRequests(ports),
  externalKeyStores: externalKeyStores(ports),
  snapshots,
  recoveryKeys: recoveryKeys(ports, rules.snapshots),
  audit: readAudit(ports, sealer, forwarding),
  approvals: approvals.operations,
  notifications: inbox(ports, delivery),
  dualControl: dualControl(ports, approvals),
  search: createSearchOperation(ports),
  access: createAccess(ports),
  root: manageRoot(ports),
  quarantine,
  tokens: { create: createToken(ports), list: listTokens(ports), revoke: revokeToken(ports) },
  tde: {
    ...readTokenObjects(ports),
    ...tokenKeyUses(ports),
    authenticate: authenticateApplication(ports),
    generateKey: generateTokenKey(ports),
    generateKeyPair: generateTokenKeyPair(ports),
    createObject: createTokenObject(ports),
    importKey: importTokenKey(ports),
    wrap: wrapTokenKey(ports),
    unwrap: unwrapTokenKey(ports),
    derive: deriveTokenKey(ports),
    updateObject: updateTokenObject(ports),
    destroyObject: destroyTokenObject(ports),
    withdraw: withdrawRequest(ports),
  },
  ...createPeople(ports, authenticateAdmin(ports)),
  authenticateAdmin: authenticateAdmin(ports),
  authenticateMetrics: authenticateMetrics(ports),
  status: readStatus(ports),
});

interface Snapshots {
  readonly operations: Operations['snapshots'];
  readonly schedule: SnapshotSchedule;
  /** Before anything is made. */
  settle(): Promise<void>;
}

const openSnapshots = (
  ports: Ports,
  approvals: Approvals,
  settings: Config['snapshots'],
  folder: SnapshotFolder,
): Snapshots => {
  const { store, log } = ports;
  const make = makeSnapshot(ports);
  const manage = manageSnapshots(ports, approvals, settings);
  const openings = createOpenings(ports);
  const verify = verifySnapshot(ports);
  const restore = restoreSnapshot(ports, approvals, settings);
  const schedule = scheduleSnapshots(ports, make, manage, (expression, due) => {
    const job = new Cron(
      expression,
      {
        timezone: 'UTC',
        protect: true,
        unref: true,
        catch: (error: unknown) => log.error('scheduled snapshots failed', { error }),
      },
      due,
    );
    return { next: () => job.nextRun()?.getTime() ?? null, stop: () => job.stop() };
  });
  return {
    schedule,
    // What another folder has is another node's to settle.
    settle: async () => {
      if (folder.reached()) await manage.settle();
    },
    operations: {
      create: async (actor, tenantId) => {
        folder.require();
        if (actor.reach === everyTenant)
          return make(actor, tenantId ?? (await findDefaultTenant(store.read)).id, 'asked');
        if (tenantId !== null && tenantId !== actor.reach) throw new ServiceError('not-found', 'no such tenant');
        return make(actor, actor.reach, 'asked');
      },
      list: manage.list,
      get: manage.get,
      exports: manage.exports,
      delete: manage.delete,
      undelete: manage.undelete,
      export: manage.export,
      import: manage.import,
      beginOpening: openings.begin,
      verify: async (actor, id, answer) => {
        folder.require();
        // Opening a snapshot is a right for the whole platform, whichever tenant is acted in.
        await findSnapshot(store.read, id, undefined, answer === null ? actor.reach : everyTenant);
        const key = answer === null ? null : await openings.take(actor, id, answer.openingId, answer.sealedKey);
        return verify(actor, id, key);
      },
      restore: async (actor, id, answer, request) => {
        folder.require();
        return restore(actor, id, await openings.take(actor, id, answer.openingId, answer.sealedKey), request);
      },
      schedule: () => Promise.resolve({ settings, next: schedule.next() }),
      ofKey: manage.ofKey,
    },
  };
};

/** Where the database of a configuration is, in words that an operator can follow. */
const databaseOf = ({ postgresql, dataDirectory }: Config): string =>
  postgresql === undefined
    ? join(dataDirectory, 'dke.db')
    : `the database ${postgresql.database} on ${postgresql.host}`;

export const toStartError = (error: unknown, config: Config): unknown => {
  if (error instanceof StoreError) return new StartError('store', error.message, { cause: error });
  if (error instanceof RootKeyError)
    return new StartError(
      'root-key',
      `${databaseOf(config)} and the root key ${config.root.path} do not belong together, or one of them is damaged: ${error.message}; ` +
        'nothing was changed',
      { cause: error },
    );
  if (error instanceof ServiceError && error.code === 'key-tampered')
    return new StartError('store', `${databaseOf(config)}: ${error.message}: restore the database from a backup`, {
      cause: error,
    });
  if (error instanceof CoreError) {
    if (error.code === 'memory-lock') return new StartError('memory', error.message, { cause: error });
    if (error.code === 'permission') return new StartError('permission', error.message, { cause: error });
    if (error.code === 'format' || error.code === 'authentication-failed')
      return new StartError('root-key', error.message, { cause: error });
    if (error.code === 'io') return new StartError('root-key', error.message, { cause: error });
  }
  return error;
};

/** Makes the data directory, or checks that it is the service's alone. */
const openDataDirectory = (path: string): void => {
  try {
    if (!existsSync(path)) mkdirSync(path, { recursive: true, mode: 0o700 });
    const state = statSync(path);
    const own = process.getuid?.() ?? 0;
    if (!state.isDirectory()) throw new StartError('permission', `${path} is not a directory`);
    if (state.uid !== own)
      throw new StartError('permission', `${path} belongs to user ${state.uid}: it must belong to user ${own}`);
    if ((state.mode & 0o077) !== 0)
      throw new StartError('permission', `${path} has mode ${(state.mode & 0o777).toString(8)}: it must have mode 700`);
  } catch (error) {
    if (error instanceof StartError) throw error;
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
    throw new StartError('permission', `${path} cannot be used as data directory (${code})`, { cause: error });
  }
};

/**
 * A root key without a database is a store that was lost (a volume that is not mounted, a file that was cut to nothing), not
 * a first start: a first start makes the database before the root key.
 */
const refuseLostDatabase = (databasePath: string, rootPath: string): void => {
  const size = statSync(databasePath, { throwIfNoEntry: false })?.size ?? 0;
  if (size > 0 || !existsSync(rootPath)) return;
  throw new StartError(
    'store',
    `${databasePath} is missing or empty, but its root key ${rootPath} is there: put the database back; to begin anew, move the root key away; nothing was changed`,
  );
};

/** The folder of the root key is made by who decides where the key lies: perhaps a disk is not mounted. */
const checkRootFolder = (rootPath: string): void => {
  const folder = dirname(rootPath);
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true) return;
  throw new StartError(
    'permission',
    `${folder}, the folder of the root key ([root] path), is missing: mount the disk that it is on, or make it: install -d -m 700 ${folder}; nothing was changed`,
  );
};

/** The certificates of a PEM file, one by one. */
const readAuthorities = (path: string | undefined): readonly string[] =>
  path === undefined ? [] : (readPem(path).match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []);

const readOpenId = ({ clientSecretFile, ca, roles, ...rest }: NonNullable<Config['oidc']>): OpenIdOptions => {
  if (clientSecretFile !== undefined) checkFile(clientSecretFile, 'secret');
  if (ca !== undefined) checkFile(ca, 'public');
  const known = new Map<string, Role>();
  for (const [value, name] of Object.entries(roles)) {
    const role = roleNames.find((each) => each === name);
    if (role === undefined || rowOf(role).scoped === true || role === 'break-glass')
      throw new StartError(
        'config',
        `oidc.roles: ${name} is no role that a claim can give: dke token roles lists them`,
      );
    known.set(value, role);
  }
  return {
    ...rest,
    roles: known,
    clientSecret: clientSecretFile === undefined ? undefined : () => readFileSync(clientSecretFile, 'utf8').trim(),
    ca: ca === undefined ? undefined : readPem(ca),
  };
};

const begunSetting = 'begun';

/** The node's id: made at the first start, and its own for ever. A copy of the data directory is another node: without this file. */
const readNodeId = (path: string, make: () => string): string => {
  const known = existsSync(path) ? readFileSync(path, 'utf8').trim() : '';
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(known)) return known;
  const id = make();
  writeFileSync(path, `${id}\n`, { mode: 0o600 });
  return id;
};

export const readPostgresql = ({ passwordFile, ca, ...place }: NonNullable<Config['postgresql']>): PostgresOptions => {
  if (passwordFile !== undefined) checkFile(passwordFile, 'secret');
  if (ca !== undefined) checkFile(ca, 'public');
  return {
    ...place,
    // Read at every connection, so that it can be changed while the service runs. The protocol's client takes text.
    password: passwordFile === undefined ? undefined : () => readFileSync(passwordFile, 'utf8').trim(),
    ca: ca === undefined ? undefined : readPem(ca),
  };
};

/** Two processes under one id would answer for each other. One that was killed a moment ago is given the time to be gone. */
const claimNode = async ({ link }: Store, id: string, path: string): Promise<void> => {
  const until = performance.now() + 5_000;
  for (;;) {
    const claim = await link?.claim(id, directoryOf(path));
    if (claim === undefined || claim.state === 'claimed') return;
    if (claim.state === 'copy')
      throw new StartError(
        'store',
        `this data directory is not the one that this node ran in last, and that node may still use keys${Number.isFinite(claim.forMs) ? ` for ${Math.ceil(claim.forMs / 1000)} s` : ''}: ` +
          `if this is a copy, delete ${path}, and it joins as a node of its own; if it takes the place of the other one, stop that one ` +
          `${Number.isFinite(claim.forMs) ? 'and start again after this time' : `or run dke node remove, and delete ${path}`}; nothing was changed`,
      );
    if (performance.now() > until) throw copiedFault(path);
    await setTimeout(200);
  }
};

const copiedFault = (path: string): StartError =>
  new StartError(
    'store',
    `another server runs as this node: if this data directory is a copy, delete ${path}, and it joins as a node of its own; nothing was changed`,
  );

/** What tells a data directory from a copy of it: the file of the node's id, as its file system knows it. */
const directoryOf = (path: string): string => {
  const { ino, birthtimeMs } = statSync(path);
  return `${ino} ${Math.floor(birthtimeMs)}`;
};

/** What a sink's files must be, before anything is started. */
const checkSinkFiles = (sink: AuditSinkConfig, source: string | null): void => {
  if (sink.type === 'file') {
    if (!existsSync(dirname(sink.path)))
      throw new StartError(
        'permission',
        `${source ?? 'embedded defaults'}: audit.sinks: ${dirname(sink.path)}, the folder of audit sink ${sink.name}, is missing: make it, or name another path`,
      );
    return;
  }
  for (const path of [sink.ca, sink.certificate]) if (path !== undefined) checkFile(path, 'public');
  const secrets = sink.type === 'https' ? [sink.key, sink.tokenFile] : [sink.key];
  for (const path of secrets) if (path !== undefined) checkFile(path, 'secret');
};

/** What a target's files must be, before anything is started. */
const checkTargetFiles = (target: NotificationTargetConfig): void => {
  if (target.ca !== undefined) checkFile(target.ca, 'public');
  const secret = target.type === 'webhook' ? target.secretFile : target.passwordFile;
  if (secret !== undefined) checkFile(secret, 'secret');
};

const openTarget = (target: NotificationTargetConfig, version: string, now: () => number): NotificationTarget =>
  target.type === 'webhook' ? openWebhook({ ...target, version, now }) : openEmail(target);

const openSink = (sink: AuditSinkConfig, version: string): LogSink => {
  if (sink.type === 'file') return openFileSink(sink);
  return sink.type === 'syslog' ? openSyslogSink(sink) : openHttpsSink({ ...sink, version });
};

const sinkSource = (sink: AuditSinkConfig): AuditSinkSource => {
  const { name, type } = sink;
  if (type === 'file')
    return { name, type, target: sink.path, read: (log, after) => readFileSink(sink.path, log, after) };
  return { name, type, target: type === 'syslog' ? `${sink.host}:${sink.port}` : sink.url, read: undefined };
};

export const openService = async (options: ServiceOptions): Promise<Service> => {
  const { config, version, log, logState, acceptDatabase, publicUrl, onFatal, connection } = options;
  const clock = systemClock;
  const requestId = (): string => newId(clock.now());
  const undo: (() => void | Promise<void>)[] = [];
  const fail = async (error: unknown): Promise<never> => {
    for (const step of undo.reverse()) await Promise.resolve(step()).catch(() => undefined);
    throw toStartError(error, config);
  };

  try {
    openDataDirectory(config.dataDirectory);
    const lock: DirectoryLock = lockDirectory(join(config.dataDirectory, 'lock'));
    undo.push(() => lock.release());

    const { lockedBytes, allowUnlocked } = config.memory;
    const { core, raw, memory } = openCore({
      allowUnlocked,
      ...(lockedBytes === undefined ? {} : { arenaBytes: lockedBytes }),
    });
    if (!memory.locked) log.warn('memory for keys is not locked: keys may reach the swap space');

    const databasePath = join(config.dataDirectory, 'dke.db');
    const { postgresql } = config;
    checkRootFolder(config.root.path);
    if (postgresql === undefined) refuseLostDatabase(databasePath, config.root.path);
    const ring = createKeyRing(raw);
    let showLate = (_changes: Changes): void => undefined;
    const surroundings = {
      clock,
      authenticateRow: (text: string) => ring.authenticateRow(text),
      onFatal: (error: StoreError) => onFatal(new StartError('store', error.message, { cause: error })),
      onKeks: (tx: Repositories) => ring.refresh(tx),
      onLate: (changes: Changes) => showLate(changes),
    };
    const whole =
      postgresql === undefined
        ? await openStore({ path: databasePath, ...surroundings })
        : await openPostgresStore({ postgres: readPostgresql(postgresql), ...surroundings });
    if (postgresql === undefined) chmodSync(databasePath, 0o600);
    undo.push(() => whole.close());
    const nodePath = join(config.dataDirectory, 'node');
    const nodeId = readNodeId(nodePath, requestId);
    await claimNode(whole, nodeId, nodePath);
    for (const standby of (await whole.link?.asynchronousStandbys().catch(() => [])) ?? [])
      log.warn(
        'a standby of the database is asynchronous: when it takes over, confirmed changes may be lost (docs/postgresql.md, High availability)',
        { standby },
      );
    // A first start that was cut off has a database in which nothing is sealed yet: it is finished here.
    const isEmpty = (await whole.read.keks.list()).length === 0;
    // What follows may take long: somebody is asked for a passphrase, perhaps. Other nodes wait for a first start alone.
    if (!isEmpty) await whole.started();
    // A first start that was cut off has begun to use the database; any other empty one is not that of the root key.
    const hasBegun = (await whole.read.settings.get(begunSetting)) !== undefined;
    if (isEmpty && !hasBegun && postgresql !== undefined && existsSync(config.root.path))
      throw new StartError(
        'store',
        `${databaseOf(config)} is empty, but its root key ${config.root.path} is there: name the ` +
          'right database, or put its contents back; to begin anew, move the root key away; nothing was changed',
      );
    if (isEmpty) await whole.write((tx) => tx.settings.set(begunSetting, 'yes'));
    const ownCertificate = join(config.dataDirectory, 'tls.crt');
    const certificatePath = config.tls.main?.certificate ?? ownCertificate;
    const keyPath = config.tls.main?.key ?? join(config.dataDirectory, 'tls.key');
    const makeCertificate = (): void => {
      if (config.tls.main !== undefined || existsSync(certificatePath)) return;
      const names = [...config.server.publicNames];
      writeFileSync(certificatePath, raw.createSelfSignedCertificate({ keyPath, names, days: 825 }), { mode: 0o644 });
      log.info('a self-signed certificate was made', { certificatePath, names });
    };
    const tlsFiles = openTlsFiles(
      [{ certificate: certificatePath, key: keyPath }, ...config.tls.additional],
      { ownCertificate, dataDirectory: config.dataDirectory, publicNames: config.server.publicNames },
      log,
    );
    const { readPairs } = tlsFiles;

    const rootOptions = {
      core: raw,
      root: config.root,
      ask: options.ask ?? (() => Promise.resolve(undefined)),
      readDescriptor: (descriptor: number) => readFileSync(descriptor),
    };
    const openedRoot = await openRoot(rootOptions, isEmpty);
    let failedUnseals = 0;
    const waitForRoot = async (sealed: SealedRoot): Promise<OpenRoot['root']> => {
      const why = sealed.reasons.map(({ name, reason }) => `${name}: ${reason}`).join('; ');
      if (options.onSealed === undefined)
        throw new StartError('root-key', `the root key ${config.root.path} is not opened: ${why}`);
      const unsealing = createUnsealing(sealed, { clock, log });
      const app = createSealedApp({ state: 'sealed', requestId, unseal: unsealing.unseal });
      makeCertificate();
      log.warn('the service is sealed: its root key is not open', { reasons: sealed.reasons });
      await options.onSealed({
        handle: createDispatch(app, []),
        certificatePath,
        readTls: () => ({ pairs: readPairs(), clientAuthorities: config.tls.clientCertificates ? [] : undefined }),
      });
      const stopped = new Promise<never>((_, reject) => {
        const stop = (): void => reject(new StartError('root-key', `stopped while sealed: ${why}`));
        if (options.signal?.aborted === true) stop();
        options.signal?.addEventListener('abort', stop);
      });
      try {
        return await Promise.race([unsealing.root, stopped]);
      } finally {
        failedUnseals = unsealing.failures();
        unsealing.stop();
      }
    };
    const root = openedRoot.state === 'open' ? openedRoot.root : await waitForRoot(openedRoot);
    undo.push(() => root.release());
    if (openedRoot.state === 'open') for (const remark of openedRoot.remarks) log.warn(remark);
    if (!root.erasure.overwritesInPlace)
      log.warn('erasure is best effort here: this file system keeps copies of what is overwritten', {
        fileSystem: root.erasure.fileSystem,
      });
    await ring.unlock(whole, root);
    for (const sink of config.auditSinks) checkSinkFiles(sink, config.source);
    for (const target of config.notificationTargets) checkTargetFiles(target);
    const removedFault = (): StartError =>
      new StartError(
        'store',
        'this node was removed: to join again, copy the root key file of a node that runs, and delete the file node in the data directory',
      );
    let erasure: ErasureScheduler | undefined;
    let spread: RootSpread | undefined;
    let folder: SnapshotFolder | undefined;
    let joinFault: StartError | undefined;
    let enterQuarantine: (found: Unsound) => void = () => undefined;
    const fleet = createFleet(
      { store: whole, ring, clock, log },
      {
        ...{ id: nodeId, name: config.node.name, version },
        ...{ contactMs: postgresql?.contactMs ?? 0, directory: directoryOf(nodePath) },
      },
      {
        removed: () => {
          joinFault = removedFault();
          onFatal(joinFault);
        },
        copied: () => {
          joinFault = copiedFault(nodePath);
          onFatal(joinFault);
        },
        lost: () => enterQuarantine({ state: 'lost-changes' }),
        destroyed: () => erasure?.schedule(),
        turned: (turn) => spread?.follow(turn) ?? Promise.resolve(),
        mayTendSnapshots: () => folder?.mayTend() ?? Promise.resolve(true),
        mayLead: (turn) => spread?.mayLead(turn) ?? Promise.resolve(true),
        took: (duty) => {
          if (duty === 'erasure')
            erasure?.resume().catch((error: unknown) => log.error('the erasure turn could not be resumed', { error }));
        },
      },
    );
    const fenced = fleet.duties.fence(whole);
    const sealer = createAuditSealer({
      store: fenced,
      ring,
      root,
      clock,
      log,
      perform: (work) => fleet.perform('audit', work),
      onChanged: (found) => enterQuarantine(found),
    });
    const finding = await sealer.inspect();
    if (finding.state !== 'sound' && acceptDatabase) await sealer.accept(finding);
    const place = postgresql === undefined ? databasePath : `${postgresql.database} on ${postgresql.host}`;
    const quarantine = createQuarantine(fenced, sealer, {
      finding: acceptDatabase ? { state: 'sound' } : finding,
      place,
      core,
      log,
      missing: createMissingRecords(
        { store: whole, ring },
        config.auditSinks.filter(({ log: forwarded }) => forwarded === 'audit').map(sinkSource),
      ),
    });
    // From here on nothing is written while an operator has not looked at the database.
    const idempotency = createIdempotency(quarantine.store, { clock, log, ring, fleet });
    const preconditions = createPreconditions(idempotency.store);
    const { store } = preconditions;

    // What the service writes by itself, whoever's request it is that makes it, is no part of what was asked for.
    const ownStore = quarantine.store;
    const ownDirectory = createDirectory(
      { store: ownStore, core, ring, clock, log },
      { objects: config.limits.cachedObjects, requests: config.limits.queuedRequests },
    );
    const directory = fleet.over(ownDirectory);
    showLate = (changes) => {
      log.warn('a commit has ended that was waited for too long: what it changed is shown now');
      fleet.show(changes).catch((error: unknown) => log.error('a late change could not be shown', { error }));
    };
    const usage = createUsageLog({ store: ownStore, clock, log }, config.limits.instancesPerApplication);
    const deadlines = createDeadlines({ store: ownStore, clock, log }, readHostUptime);
    const meter = createMeter(clock);
    const ownFolder = createSnapshotFolder({ store, clock, log }, openArchive(raw, config.snapshots.directory), fleet);
    folder = ownFolder;
    const { archive } = ownFolder;
    archive.prepare();
    const exclusion = createExclusion();
    const ownSpread = createRootSpread({ core, root, ring, store, clock, log, fleet });
    spread = ownSpread;
    erasure = createErasureScheduler(
      {
        ...{ store, core, ring, root, clock, log, archive, exclusion, fleet },
        spread: ownSpread,
        awaitCopies: createAwaitCopies({ store, root, clock }, postgresql?.replicaLagMs ?? 0),
        missingSnapshots: config.erasure.missingSnapshots,
      },
      { gatherMs: config.erasure.gatherMs, retryMs: 30_000, heldMs: 2_000 },
    );
    const turns = erasure;
    let stopping = false;
    const identity = {
      version,
      startedAt: clock.now(),
      asksClientCertificates: config.tls.clientCertificates,
      stopping: () => stopping,
      publicUrl,
    };

    const trustedAuthorities = readAuthorities(config.diagnostics.trustedAuthorities);
    const marks = createProbeMarks(
      (text) => ring.authenticateRow(text),
      () => clock.now(),
    );
    const keyStoreProbe = createKeyStoreProbe(
      { store, directory, clock, identity },
      { crypto: raw, marks, node: options.listening, trust: [...rootCertificates, ...trustedAuthorities] },
    );
    const cloud = config.aws.read ? openAwsReader(config.aws, log) : undefined;
    const diagnosis = createEndpointDiagnosis(
      { store, directory, clock, identity, cloud },
      {
        crypto: raw,
        marks,
        node: options.listening,
        servedCertificate: () => readPem(certificatePath),
        trustedAuthorities,
        cloudNetworks: config.diagnostics.cloudNetworks,
      },
    );
    const ports: Ports = {
      store,
      core,
      archive,
      exclusion,
      root,
      ring,
      directory,
      fleet,
      clock,
      deadlines,
      log,
      erasure: turns,
      usage,
      meter,
      identity,
      passwords: createPasswordHashes(options.passwordParameters),
      people: config.people,
      passkeys: createPasskeys(publicUrl),
      provider: config.oidc === undefined ? undefined : createOpenId(readOpenId(config.oidc), log),
      diagnosis,
      keyStoreProbe,
      cloud,
    };
    undo.push(() => fleet.stop());
    undo.push(() => directory.close());

    const forwarding = createLogForwarding(
      { store, clock, log, fleet },
      config.auditSinks.map((sink) => ({ sink: openSink(sink, version), log: sink.log, endpoints: sink.endpoints })),
    );
    const approvals = createApprovals(ports, { expireMs: config.approvals.expireMs });
    const snapshots = openSnapshots(ports, approvals, config.snapshots, ownFolder);
    let certificates: readonly ServedCertificate[] = [];
    const latency = createXksLatency({ store, clock, deadlines });
    const health = checkHealth(ports);
    const delivery = createNotificationDelivery(
      ports,
      config.notificationTargets.map((target) => openTarget(target, version, () => clock.now())),
    );
    const operations = createOperations(
      ports,
      sealer,
      forwarding,
      approvals,
      quarantine.operations,
      snapshots.operations,
      { tenants: { retentionMs: config.tenants.retentionDays * 86_400_000 }, snapshots: config.snapshots },
      {
        health,
        overview: readOverview(ports, latency),
        idempotency: idempotency.operations,
        preconditions: preconditions.operations,
        setup: setUpSteps(ports, forwarding),
        clock: { get: deadlines.state, confirm: deadlines.confirm },
        settings: async () => ({ source: config.source, items: config.settings }),
      },
      delivery,
    );
    const notifications = createNotificationWatch(
      ports,
      createSources(ports, {
        certificates: () => certificates,
        forwarding,
        latency,
        health,
        logState,
        folder: ownFolder,
        schedule: config.snapshots.schedule,
      }),
    );
    const metrics = readMetrics(ports, {
      health: operations.health,
      processFacts: readProcessFacts,
      certificates: () => certificates,
      auditSinks: () => forwarding.state(),
      logState,
    });
    const rootBackups = createRootBackups(ports);
    const housekeeping = createHousekeeping(
      ports,
      { requestLogDays: config.limits.requestLogDays, requestLogRows: config.limits.requestLogRows },
      operations.health,
      async () => {
        await sealer.turn();
        await rootBackups.turn();
      },
      (all) => latency.flush(all),
      forwarding.requestsRemoved,
    );

    const tde = createTdeFront({
      operations,
      core,
      log,
      requestId,
      epoch: () => directory.epoch(),
      observe: meter.tdeRequest,
    });
    const xks = createXksFront({
      core: raw,
      directory: {
        ...directory,
        record: (entry, isOwnProbe) => {
          if (!isOwnProbe) {
            meter.xksRequest(entry);
            latency.record(entry);
          }
          directory.record(entry, isOwnProbe);
        },
      },
      isOwnProbe: marks.isValid,
      clock: () => clock.now(),
      requestId,
      product: { vendor: 'DKE', name: 'DKE', version, node: config.node.name },
      onError: (error, id) => log.error('an XKS request failed', { requestId: id, error }),
    });
    const app = new Hono();
    app.route('/health', createHealthApp({ operations }));
    app.route(
      '/metrics',
      createMetricsApp({ operations, metrics, loopback: config.metrics.loopback, requestId, ...connection }),
    );
    app.route('/api', createApiFront({ operations, clock, log, version, ...connection }));
    app.route('/', serveConsole(pagesDirectory));

    makeCertificate();
    const withAuthorities = (pairs: TlsMaterial['pairs']): TlsMaterial => ({
      pairs,
      clientAuthorities: config.tls.clientCertificates ? directory.clientAuthorities() : undefined,
    });
    const retention = createTenantRetention(ports);
    const requestMinutes = createRequestMinutes(ports);
    const minutes = createMinuteJobs(ports, {
      // First: what follows is destroyed by it.
      'the clock': deadlines.turn,
      'the file of the database': () => whole.checkFile(),
      'requests for approval': approvals.expire,
      'deleted tenants': retention.turn,
      'missing snapshots': recoverMissing(ports),
      notifications: notifications.turn,
      'the request log': requestMinutes.turn,
    });
    const watch = createKeyStoreWatch(ports, config.externalKeyStores.probeSeconds * 1000);
    let adminToken: string | undefined;
    let begun = false;
    let handle = createDispatch(app, [xks, tde]);
    const serving = handle;
    const begin = async (): Promise<void> => {
      ({ adminToken } = await setUp(ports)());
      await whole.started();
      await deadlines.turn();
      await ownFolder.settle();
      await snapshots.settle();
      await turns.resume();
      await fleet.join(ownSpread.face());
      if (joinFault !== undefined) throw joinFault;
      await store.write((tx) =>
        tx.audit.append({
          kind: 'service.started',
          actor: serviceActor(requestId()),
          tenantId: serviceTenantId,
          subject: { kind: 'service', id: 'service' },
          details: {
            node: fleet.name,
            version,
            rootEpoch: root.current.epoch,
            rootProvider: root.ways.find(({ opened }) => opened)?.name ?? 'passphrase',
            failedUnseals,
            fileSystem: root.erasure.fileSystem,
            erasure: root.erasure.overwritesInPlace ? 'overwrites in place' : 'best effort',
          },
        }),
      );
      housekeeping.start();
      watch.start();
      minutes.start();
      delivery.start();
      snapshots.schedule.start();
      forwarding.start();
      meter.start();
      begun = true;
      handle = serving;
    };
    const close = (): void => {
      const closed = quarantine.closed();
      if (closed === undefined) return;
      const closedApp = new Hono();
      addClosedHealth(closedApp, { state: 'quarantine', requestId });
      addClosedDataPaths(closedApp, { state: 'quarantine', requestId });
      closedApp.route('/', app);
      handle = createDispatch(closedApp, []);
      directory.setHealthy(false);
      log.error('the service is in quarantine', { reason: closed.reason });
      options.say?.(`quarantine: ${closed.reason}`);
      options.say?.(`quarantine confirmation code: ${closed.code}`);
    };
    if (quarantine.closed() === undefined) await begin();
    else {
      close();
      await directory.loadTenants();
      quarantine.onConfirmed(begin);
    }
    enterQuarantine = (found) => {
      if (!begun || quarantine.closed() !== undefined) return;
      quarantine.enter(found);
      quarantine.onConfirmed(async () => {
        await fleet.resume();
        handle = serving;
      });
      close();
    };

    return {
      operations,
      lookAround: () => notifications.turn(true),
      handle: (incoming, outgoing) => {
        const settled = fleet.settle();
        if (settled === undefined) handle(incoming, outgoing);
        else void settled.then(() => handle(incoming, outgoing));
      },
      xks,
      tde,
      certificatePath,
      adminToken,
      tenantRetention: retention,
      requestId,
      readTls: () => withAuthorities(readPairs()),
      renewTls: ({ pairs }) =>
        withAuthorities(tlsFiles.renewPairs(pairs, [...rootCertificates, ...trustedAuthorities])),
      withAuthorities: ({ pairs }) => withAuthorities(pairs),
      tlsTaken: ({ pairs }) => {
        certificates = pairs.map(({ certificate }) => readServedCertificate(certificate));
        tlsFiles.logTaken(pairs);
      },
      onClientAuthorities: (tell) => directory.onClientAuthorities(tell),
      announceStop: () => {
        stopping = true;
        directory.setHealthy(false);
      },
      stop: async () => {
        if (!begun) {
          directory.close();
          await whole.close();
          root.release();
          lock.release();
          return;
        }
        // The store may be away, or its disk full: everything is given back all the same, in this order, and the first failure told.
        const failures: unknown[] = [];
        // In quarantine nothing is written.
        const isClosed = quarantine.closed() !== undefined;
        const recordEnd = () =>
          isClosed ||
          store.write((tx) =>
            tx.audit.append({
              kind: 'service.stopped',
              actor: serviceActor(requestId()),
              tenantId: serviceTenantId,
              subject: { kind: 'service', id: 'service' },
              details: { node: fleet.name },
            }),
          );
        const steps: readonly (() => unknown)[] = [
          () => snapshots.schedule.stop(),
          () => watch.stop(),
          () => requestMinutes.stop(),
          () => minutes.stop(),
          () => delivery.stop(2_000),
          () => turns.stop(),
          () => housekeeping.stop(),
          () => meter.stop(),
          recordEnd,
          // Nobody waits for the last checkpoint, and the next one makes up for it.
          () =>
            isClosed ||
            sealer.checkpoint().catch((error: unknown) => log.error('the last checkpoint failed', { error })),
          () => forwarding.stop(2_000),
          () => fleet.stop(),
          () => directory.close(),
          () => store.close(),
          () => root.release(),
          () => lock.release(),
        ];
        for (const step of steps)
          try {
            await step();
          } catch (error) {
            failures.push(error);
          }
        const [first] = failures;
        if (first !== undefined)
          throw new StartError(
            'store',
            `stopped, but the store did not take the last records (${first instanceof Error ? first.message : 'it failed'}): ` +
              (first instanceof ServiceError && first.hint !== undefined
                ? first.hint
                : 'what was confirmed is stored; repair the store before the next start'),
            { cause: first },
          );
      },
    };
  } catch (error) {
    return fail(error);
  }
};
