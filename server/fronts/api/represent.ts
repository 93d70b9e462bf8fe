// From the service's own records to the contract's: times as RFC 3339 text, and member by member,
// so that a new column is not shown by accident.

import { X509Certificate } from 'node:crypto';
import { toPem } from '../../base/bytes.ts';
import type { CheckResult } from '../../base/diagnostic-checks.ts';
import { toRfc3339 } from '../../base/time.ts';
import type * as audit from '../../contract/api/audit-routes.ts';
import type { ClockState } from '../../contract/api/clock-routes.ts';
import type * as diagnostics from '../../contract/api/diagnostics-routes.ts';
import type * as endpoints from '../../contract/api/endpoints-routes.ts';
import type * as externalKeyStores from '../../contract/api/external-key-stores-routes.ts';
import type * as keys from '../../contract/api/keys-routes.ts';
import type * as masterKeys from '../../contract/api/master-keys-routes.ts';
import type { Node } from '../../contract/api/nodes-routes.ts';
import type * as requests from '../../contract/api/requests-routes.ts';
import type * as status from '../../contract/api/status-routes.ts';
import type * as applications from '../../contract/api/tde-applications-routes.ts';
import type * as groups from '../../contract/api/tde-groups-routes.ts';
import type * as tenants from '../../contract/api/tenants-routes.ts';
import type * as tokens from '../../contract/api/tokens-routes.ts';
import type * as vaults from '../../contract/api/vaults-routes.ts';
import type { ApiToken } from '../../domain/api-token.ts';
import type { AuditEvent } from '../../domain/audit-event.ts';
import type { KeyCopies } from '../../domain/copies.ts';
import type { EndpointCredential, EndpointDiagnosisRecord } from '../../domain/endpoint.ts';
import type { ExternalKeyStore } from '../../domain/external-key-store.ts';
import type { Key, KeyUse, KeyVersion, ShownKey } from '../../domain/key.ts';
import type { FleetNode } from '../../domain/node.ts';
import type { Page } from '../../domain/page.ts';
import type {
  AccessGuid,
  ApplicationMove,
  BlastRadius,
  Instance,
  MasterKey,
  TdeApplication,
  TdeGroup,
} from '../../domain/tde.ts';
import type { Tenant } from '../../domain/tenant.ts';
import type { Vault } from '../../domain/vault.ts';
import { readableDetails } from '../../operations/audit/read-audit.ts';
import type { ShownEndpoint } from '../../operations/endpoints/endpoints-operations.ts';
import type {
  AccessOperations,
  CorrelatedRequests,
  Health,
  LoggedRequest,
  ServiceStatus,
} from '../../operations/index.ts';
import type { JobState } from '../../operations/shared/job-board.ts';
import type { DeadlineState } from '../../ports/deadlines.ts';
import type { LogSinkState } from '../../ports/log-sink.ts';
import type { StoredCheckpoint } from '../../ports/store.ts';

const moment = toRfc3339;
const momentOrNull = (at: number | null): string | null => (at === null ? null : toRfc3339(at));

export const representPage = <T, W>(
  page: Page<T>,
  represent: (item: T) => W,
): { items: W[]; next: string | null; total?: number } => ({
  items: page.items.map(represent),
  next: page.next,
  ...(page.total === undefined ? {} : { total: page.total }),
});

export const representNode = (node: FleetNode): Node => ({
  ...node,
  startedAt: toRfc3339(node.startedAt),
  heartbeatAt: toRfc3339(node.heartbeatAt),
  usesKeysUntil: node.usesKeysUntil === null ? null : toRfc3339(node.usesKeysUntil),
});

export const representTenant = (tenant: Tenant): tenants.Tenant => ({
  id: tenant.id,
  name: tenant.name,
  state: tenant.state,
  createdAt: moment(tenant.createdAt),
  suspendedAt: momentOrNull(tenant.suspendedAt),
  deletedAt: momentOrNull(tenant.deletedAt),
  purgeAt: momentOrNull(tenant.purgeAt),
  purgedAt: momentOrNull(tenant.purgedAt),
  unrecoverableAt: momentOrNull(tenant.unrecoverableAt),
  integrity: tenant.integrity,
});

export const representVault = (vault: Vault): vaults.Vault => ({
  id: vault.id,
  tenantId: vault.tenantId,
  name: vault.name,
  kind: vault.kind,
  state: vault.state,
  dualControl: vault.dualControl,
  profile: vault.profile,
  createdAt: moment(vault.createdAt),
  integrity: vault.integrity,
});

/**
 * What a key is, for people: `AES-256`, `RSA-3072`, `P-384`, `Ed25519`,
 * `generic secret of 160 bits`.
 */
const nameKeyType = ({ algorithm, bits }: Pick<Key, 'algorithm' | 'bits'>): string => {
  switch (algorithm) {
    case 'aes':
    case 'rsa':
      return `${algorithm.toUpperCase()}-${bits}`;
    case 'ec':
      return `P-${bits}`;
    case 'brainpool':
      return `brainpoolP${bits}r1`;
    case 'secp256k1':
      return 'secp256k1';
    case 'ed25519':
    case 'ed448':
    case 'x25519':
    case 'x448':
      return `${algorithm[0]?.toUpperCase()}${algorithm.slice(1)}`;
    case 'generic':
      return `generic secret of ${bits} bits`;
  }
};

export const representKey = (key: ShownKey): keys.Key => ({
  id: key.id,
  tenantId: key.tenantId,
  vaultId: key.vaultId,
  name: key.name,
  kind: key.kind,
  algorithm: key.algorithm,
  bits: key.bits,
  type: nameKeyType(key),
  usages: key.usages,
  state: key.state,
  effectiveState: key.effectiveState,
  disabledAt: momentOrNull(key.disabledAt),
  currentVersion: key.currentVersion,
  createdAt: moment(key.createdAt),
  deletedAt: momentOrNull(key.deletedAt),
  reimportedAt: momentOrNull(key.reimportedAt),
  destroyedAt: momentOrNull(key.destroyedAt),
  unrecoverableAt: momentOrNull(key.unrecoverableAt),
  applicationId: key.applicationId,
  tags: key.tags,
  firstUsedAt: momentOrNull(key.firstUsedAt),
  lastUsedAt: momentOrNull(key.lastUsedAt),
  integrity: key.integrity,
});

export const representCopies = ({ count, items }: KeyCopies): keys.KeyCopies => ({
  count,
  items: items.map((copy) => ({ ...copy, at: toRfc3339(copy.at) })),
});

export const representKeyUse = (use: KeyUse): keys.KeyUse => ({
  keyId: use.keyId,
  firstUsedAt: momentOrNull(use.firstUsedAt),
  lastUsedAt: momentOrNull(use.lastUsedAt),
  copies: representCopies(use.copies),
  endpoints: use.endpoints.map(({ id, name, state, lastUsedAt, lastRequestAt }) => ({
    ...{ id, name, state },
    lastUsedAt: momentOrNull(lastUsedAt),
    lastRequestAt: momentOrNull(lastRequestAt),
  })),
  application: use.application,
});

export const representKeyVersion = (version: KeyVersion): keys.KeyVersion => ({
  keyId: version.keyId,
  version: version.version,
  createdAt: moment(version.createdAt),
  vaultCopy: version.vaultCopy,
});

export const representGroup = (group: TdeGroup): groups.TdeGroup => ({
  id: group.id,
  tenantId: group.tenantId,
  name: group.name,
  vaultId: group.vaultId,
  createdAt: moment(group.createdAt),
  integrity: group.integrity,
});

/** Nothing of what a changed row has in its place. */
const representCertificate = (pem: string): readonly applications.CallerCertificate[] => {
  try {
    const { fingerprint256, subject, validTo } = new X509Certificate(pem);
    const name = (subject ?? '').replaceAll('\n', ', ');
    return [{ pem, fingerprint: fingerprint256, subject: name, expiresAt: moment(Date.parse(validTo)) }];
  } catch {
    return [];
  }
};

export const representApplication = (application: TdeApplication): applications.Application => ({
  id: application.id,
  tenantId: application.tenantId,
  groupId: application.groupId,
  name: application.name,
  appId: application.appId,
  tokenLabel: application.tokenLabel,
  state: application.state,
  compatibility: application.compatibility,
  callers: {
    networks: application.callers.networks,
    certificates: application.callers.certificates.flatMap(representCertificate),
  },
  createdAt: moment(application.createdAt),
  integrity: application.integrity,
});

export const representAccessGuid = (record: AccessGuid): applications.AccessGuid => ({
  id: record.id,
  applicationId: record.applicationId,
  createdAt: moment(record.createdAt),
  removedAt: momentOrNull(record.removedAt),
  lastUsedAt: momentOrNull(record.lastUsedAt),
  integrity: record.integrity,
});

export const representInstance = (instance: Instance): applications.Instance => ({
  id: instance.id,
  applicationId: instance.applicationId,
  accessGuidId: instance.accessGuidId,
  appId: instance.appId,
  host: instance.host,
  process: instance.process,
  osUser: instance.osUser,
  libraryVersion: instance.libraryVersion,
  agentVersion: instance.agentVersion,
  pid: instance.pid,
  firstUsedAt: moment(instance.firstUsedAt),
  lastUsedAt: moment(instance.lastUsedAt),
  uses: instance.uses,
});

export const representMasterKey = (key: MasterKey): masterKeys.MasterKey => ({
  ...representKey(key),
  kind: key.kind,
  applicationId: key.applicationId,
  groupId: key.groupId,
  handle: key.handle,
  label: key.label,
  origin: key.origin,
  class: key.class,
  sensitive: key.sensitive,
  extractable: key.extractable,
  neverDecrypts: key.neverDecrypts,
  checkValue: key.checkValue,
  publicKey: key.publicKey === null ? null : toPem('PUBLIC KEY', key.publicKey),
  newest: key.newest,
  sealedCopy: key.sealedCopy,
  vaultCopy: key.vaultCopy,
});

export const representMove = (move: ApplicationMove): applications.ApplicationMove => ({
  ...move,
  leaves: move.leaves.map((other) => ({ ...other, instances: other.instances.map(representInstance) })),
  instances: move.instances.map(representInstance),
});

export const representBlastRadius = (radius: BlastRadius): masterKeys.BlastRadius => ({
  keyId: radius.keyId,
  applicationId: radius.applicationId,
  applicationName: radius.applicationName,
  instances: radius.instances.map(representInstance),
  groupApplications: radius.groupApplications.map(({ id, name, instances }) => ({
    id,
    name,
    instances: instances.map(representInstance),
  })),
  appIds: radius.appIds,
  hosts: radius.hosts,
  lastUsedAt: momentOrNull(radius.lastUsedAt),
  copies: representCopies(radius.copies),
});

const representCredential = (credential: EndpointCredential): endpoints.EndpointCredential => ({
  id: credential.id,
  endpointId: credential.endpointId,
  accessKeyId: credential.accessKeyId,
  createdAt: moment(credential.createdAt),
  lastUsedAt: momentOrNull(credential.lastUsedAt),
});

/** XksProxyUriPath: what the cloud key service is given. */
export const uriPathOf = (prefix: string): string => `/xks/${prefix}/kms/xks/v1`;

export const representEndpoint = (endpoint: ShownEndpoint, uriEndpoint: string): endpoints.Endpoint => ({
  id: endpoint.id,
  tenantId: endpoint.tenantId,
  name: endpoint.name,
  prefix: endpoint.prefix,
  uriEndpoint,
  uriPath: uriPathOf(endpoint.prefix),
  vaultId: endpoint.vaultId,
  keyId: endpoint.keyId,
  keyState: endpoint.keyState,
  state: endpoint.state,
  settings: endpoint.settings,
  createdAt: moment(endpoint.createdAt),
  credentials: endpoint.credentials.map(representCredential),
  integrity: endpoint.integrity,
});

export const representRequest = (entry: LoggedRequest): requests.EndpointRequest => ({
  sequence: entry.sequence,
  at: moment(entry.at),
  requestId: entry.requestId,
  endpointId: entry.endpointId,
  operation: entry.operation,
  kmsOperation: entry.kmsOperation,
  kmsRequestId: entry.kmsRequestId,
  principal: entry.principal,
  kmsKeyArn: entry.kmsKeyArn,
  awsSourceVpc: entry.awsSourceVpc,
  awsSourceVpce: entry.awsSourceVpce,
  kmsViaService: entry.kmsViaService,
  externalKeyId: entry.externalKeyId,
  credentialId: entry.credentialId,
  status: entry.status,
  errorName: entry.errorName,
  durationMs: entry.durationMs,
  phases: { readMs: entry.phases.readMs, authMs: entry.phases.authMs, cryptoMs: entry.phases.cryptoMs },
  reason: entry.reason,
  peer: entry.peer,
});

export const representExternalKeyStore = (store: ExternalKeyStore): externalKeyStores.ExternalKeyStore => ({
  id: store.id,
  tenantId: store.tenantId,
  name: store.name,
  customKeyStoreId: store.customKeyStoreId,
  region: store.region,
  endpointId: store.endpointId,
  createdAt: moment(store.createdAt),
  connection: {
    state: store.connection.state,
    errorCode: store.connection.errorCode,
    detail: store.connection.detail,
    source: store.connection.source,
    since: momentOrNull(store.connection.since),
    checkedAt: momentOrNull(store.connection.checkedAt),
  },
  integrity: store.integrity,
});

export const representCheck = ({
  id,
  layer,
  title,
  state,
  evidence,
  fix,
  predicts,
  reports,
  durationMs,
}: CheckResult): diagnostics.CheckResult => ({
  id,
  layer,
  title,
  state,
  evidence,
  ...(fix === undefined ? {} : { fix }),
  ...(predicts === undefined ? {} : { predicts }),
  ...(reports === undefined ? {} : { reports }),
  durationMs,
});

export const representDiagnosis = (diagnosis: EndpointDiagnosisRecord): diagnostics.Diagnosis => ({
  id: diagnosis.id,
  endpointId: diagnosis.endpointId,
  at: moment(diagnosis.at),
  results: diagnosis.results.map(representCheck),
});

export const representCorrelated = (found: CorrelatedRequests): requests.CorrelatedRequests => ({
  kmsRequestIds: found.kmsRequestIds,
  items: found.items.map(representRequest),
  oldest: momentOrNull(found.oldest),
});

export const representAuditEvent = (event: AuditEvent): audit.AuditRecord => ({
  sequence: event.sequence,
  at: moment(event.at),
  kind: event.kind,
  actorKind: event.actorKind,
  actorId: event.actorId,
  actorName: event.actorName,
  peer: event.peer,
  tenantId: event.tenantId,
  subjectKind: event.subjectKind,
  subjectId: event.subjectId,
  requestId: event.requestId,
  details: readableDetails(event.details) as audit.AuditRecord['details'],
});

export const representCheckpoint = ({ size, at, note }: StoredCheckpoint): audit.AuditCheckpoint => ({
  size,
  at: moment(at),
  note,
});

export const representSink = ({ deliveredAt, failure, lostAt, fork, ...sink }: LogSinkState): audit.AuditSink => ({
  name: sink.name,
  type: sink.type,
  target: sink.target,
  log: sink.log,
  endpoints: sink.endpoints,
  forwarded: sink.forwarded,
  lag: sink.lag,
  lost: sink.lost,
  lostAt: momentOrNull(lostAt),
  fork: fork === null ? null : { record: fork.record, at: moment(fork.at) },
  deliveredAt: momentOrNull(deliveredAt),
  failure: failure === null ? null : { since: moment(failure.since), message: failure.message },
});

export const representRole = ({
  permissions,
  ...role
}: ReturnType<AccessOperations['roles']>[number]): tokens.RoleDescription => ({
  role: role.role,
  description: role.description,
  scoped: role.scoped,
  reach: role.reach,
  permissions: [...permissions],
});

export const representToken = (token: ApiToken): tokens.Token => ({
  id: token.id,
  kind: token.kind,
  name: token.name,
  grants: token.grants,
  createdAt: moment(token.createdAt),
  expiresAt: momentOrNull(token.expiresAt),
  revokedAt: momentOrNull(token.revokedAt),
  lastUsedAt: momentOrNull(token.lastUsedAt),
  ownerId: token.ownerId,
  integrity: token.integrity,
});

export const representClock = ({ now, clock, doubt }: DeadlineState): ClockState => ({
  clock: moment(clock),
  deadlines: moment(now),
  jumped: doubt !== null,
  since: momentOrNull(doubt?.since ?? null),
  aheadSeconds: doubt === null ? null : Math.round(doubt.ahead / 1000),
  agreedSeconds: doubt === null ? null : Math.round(doubt.agreedMs / 1000),
});

export const representJob =
  (nodes: readonly FleetNode[]) =>
  ({ duty, everyMs, failure, ...job }: JobState): status.Job => {
    const node = nodes.find(({ duties }) => duties.includes(duty));
    const here = node?.self === true;
    return {
      name: job.name,
      everySeconds: everyMs === null ? null : everyMs / 1000,
      node: node?.name ?? null,
      here,
      running: job.running,
      startedAt: momentOrNull(job.startedAt),
      durationMs: job.durationMs,
      succeededAt: momentOrNull(job.succeededAt),
      failure: failure === null ? null : { since: moment(failure.since), message: failure.message },
      nextAt: momentOrNull(here ? job.nextAt : null),
    };
  };

export const representStatus = (service: ServiceStatus, health: Health): status.Status => ({
  version: service.version,
  nodeVersion: service.nodeVersion,
  libcryptoVersion: service.libcryptoVersion,
  startedAt: moment(service.startedAt),
  rootEpoch: service.rootEpoch,
  health: {
    healthy: health.healthy,
    at: moment(health.at),
    checks: health.checks.map(({ name, healthy, detail, durationMs }) => ({ name, healthy, detail, durationMs })),
  },
  erasure: {
    fileSystem: service.erasure.fileSystem,
    overwritesInPlace: service.erasure.overwritesInPlace,
    pendingKeys: service.erasure.pendingKeys,
    waitingKeys: service.erasure.waitingKeys,
    pendingObjects: service.erasure.pendingObjects,
    state: service.erasure.state,
    failure: service.erasure.failure,
    waitsFor: service.erasure.waitsFor,
    blockers:
      service.erasure.blockers === null
        ? null
        : {
            since: moment(service.erasure.blockers.since),
            records: service.erasure.blockers.records,
            nodes: service.erasure.blockers.nodes,
            standbys: service.erasure.blockers.standbys,
            snapshots: service.erasure.blockers.snapshots,
          },
  },
  clock: representClock(service.clock),
  store: { dialect: service.store.dialect, path: service.store.path },
  memory: {
    capacity: service.memory.capacity,
    used: service.memory.used,
    keys: service.memory.keys,
    locked: service.memory.locked,
  },
  requestLog: { ...service.requestLog },
});
