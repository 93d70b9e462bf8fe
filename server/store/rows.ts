// Rows to entities and back, and the authentication code of each row. The policy columns of a table are those whose change
// from outside would change what somebody may do; they are bound with the table's name under the service's row key. Use
// counters and last-use times are not policy.

import type { Selectable } from 'kysely';
import { canonicalJson } from '../base/bytes.ts';
import type { CompatibilitySwitch } from '../base/compatibility.ts';
import { ServiceError } from '../base/errors.ts';
import type { Grant } from '../domain/access.ts';
import type { TokenKind } from '../domain/api-token.ts';
import type { AuditEvent, AuditKind, SubjectKind } from '../domain/audit-event.ts';
import type { DualControlRule } from '../domain/dual-control.ts';
import {
  defaultSettings,
  type Endpoint,
  type EndpointCredential,
  type EndpointSettings,
  type EndpointState,
} from '../domain/endpoint.ts';
import { type Connection, type ExternalKeyStore, neverLooked } from '../domain/external-key-store.ts';
import type { Key, KeyAlgorithm, KeyUsage } from '../domain/key.ts';
import type { KeyState } from '../domain/lifecycle.ts';
import type { RotationProfile } from '../domain/notification.ts';
import {
  type ApplicationCallers,
  type ApplicationState,
  anyCaller,
  type Instance,
  isAnyCaller,
  type ObjectClass,
  type TdeApplication,
  type TdeGroup,
} from '../domain/tde.ts';
import type { Integrity, Vault, VaultState } from '../domain/vault.ts';
import type { RecordClass } from '../ports/key-ring.ts';
import type { StoredAccessGuid, StoredDiagnosis, StoredObject, StoredRecord, StoredToken } from '../ports/store.ts';
import type { XksRequestRecord } from '../ports/xks-directory.ts';
import { readDocument } from './documents.ts';
import type { Schema } from './schema.ts';

/** Writing a row back would give it a fresh authentication code: a tampered one must not get it. */
export const refuseTampered = (entity: { readonly integrity: 'ok' | 'tampered' }): void => {
  if (entity.integrity !== 'ok')
    throw new ServiceError('key-tampered', 'the stored record was changed from outside', {
      hint: 'compare the database with a backup; the audit log has an alarm that names the record',
    });
};

/** A driver's bytes, not copied. */
export const toBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** Undefined when it was wiped. */
export const toRecord = (row: Schema['key_records']): StoredRecord | undefined =>
  row.record === null
    ? undefined
    : {
        tenantId: row.tenant_id,
        objectId: row.object_id,
        version: row.version,
        class: row.class as RecordClass,
        attributes: row.attributes,
        epoch: row.epoch,
        record: toBuffer(row.record),
      };

/** Computes the authentication code of a row's text: 64 hexadecimal digits. */
export type RowAuthenticator = (text: string) => string;

export const policyColumns = {
  tenants: [
    'id',
    'name',
    'state',
    'created_at',
    'suspended_at',
    'deleted_at',
    'purge_at',
    'purged_at',
    'unrecoverable_at',
  ],
  vaults: ['id', 'tenant_id', 'name', 'kind', 'state', 'created_at', 'dual_control', 'profile'],
  keys: [
    'id',
    'tenant_id',
    'vault_id',
    'name',
    'kind',
    'algorithm',
    'bits',
    'usages',
    'state',
    'disabled_at',
    'current_version',
    'created_at',
    'deleted_at',
    'reimported_at',
    'destroyed_at',
    'unrecoverable_at',
    'application_id',
    'tags',
    'copy_of',
  ],
  tde_groups: ['id', 'tenant_id', 'name', 'vault_id', 'created_at'],
  tde_applications: [
    'id',
    'tenant_id',
    'group_id',
    'name',
    'app_id',
    'state',
    'created_at',
    'compatibility',
    'callers',
  ],
  access_guids: ['id', 'application_id', 'hash', 'created_at', 'removed_at'],
  tde_objects: [
    'handle',
    'id',
    'tenant_id',
    'group_id',
    'application_id',
    'class',
    'label',
    'algorithm',
    'bits',
    'usages',
    'sensitive',
    'extractable',
    'always_sensitive',
    'never_extractable',
    'modifiable',
    'destroyable',
    'local',
    'private',
    'check_value',
    'public_key',
    'wrapped_sensitive',
    'attributes',
    'created_at',
    'destroyed_at',
  ],
  endpoints: ['id', 'tenant_id', 'name', 'prefix', 'vault_id', 'key_id', 'state', 'settings', 'created_at'],
  endpoint_credentials: ['id', 'endpoint_id', 'access_key_id', 'created_at'],
  external_key_stores: ['id', 'tenant_id', 'name', 'custom_key_store_id', 'region', 'endpoint_id', 'created_at'],
  recovery_keys: ['id', 'name', 'public_key', 'created_at', 'removed_at'],
  snapshots: [
    'id',
    'tenant_id',
    'origin',
    'created_at',
    'audit_size',
    'recovery_key_ids',
    'signer',
    'state',
    'deleted_at',
    'purged_at',
  ],
  approvals: [
    'id',
    'tenant_id',
    'kind',
    'subject_kind',
    'subject_id',
    'state',
    'requested_by',
    'requested_at',
    'expires_at',
    'ended_at',
    'document',
  ],
  api_tokens: [
    'id',
    'tenant_id',
    'kind',
    'name',
    'grants',
    'hash',
    'created_at',
    'expires_at',
    'revoked_at',
    'owner_id',
  ],
  users: [
    'id',
    'tenant_id',
    'name',
    'folded_name',
    'display_name',
    'email',
    'grants',
    'state',
    'password',
    'password_changed_at',
    'must_change_password',
    'subject',
    'invitation_hash',
    'invited_until',
    'created_at',
  ],
  idempotency_keys: ['id', 'fingerprint', 'request_id', 'run', 'created_at', 'location', 'body'],
  user_factors: ['id', 'user_id', 'kind', 'name', 'data', 'confirmed_at', 'created_at', 'counter'],
  sessions: [
    'id',
    'tenant_id',
    'hash',
    'holder_kind',
    'holder_id',
    'method',
    'proved',
    'created_at',
    'expires_at',
    'peer',
    'agent',
  ],
} as const satisfies { readonly [T in keyof Schema]?: readonly (keyof Schema[T])[] };

export type PolicyTable = keyof typeof policyColumns;
type Row<T extends keyof Schema> = Selectable<Schema[T]>;

/** Columns that rows written before them do not have: where there is nothing in one, the code is what it was without it. */
const later: ReadonlySet<string> = new Set(['tags', 'compatibility', 'copy_of', 'callers']);

/** Columns that are under the code of rows that carry a version (row-set.ts), and of no row written before. */
const sinceVersions: { readonly [T in PolicyTable]?: ReadonlySet<string> } = {
  snapshots: new Set(['state', 'deleted_at', 'purged_at']),
  user_factors: new Set(['counter']),
};

const rowText = (table: PolicyTable, row: { readonly [column: string]: unknown }): string => {
  const version = Number(row.row_version ?? 0);
  const columns: readonly string[] = policyColumns[table];
  const values = columns
    .filter((column) => version > 0 || sinceVersions[table]?.has(column) !== true)
    .flatMap((column) => (later.has(column) && row[column] == null ? [] : [row[column]]));
  return canonicalJson([table, ...values, ...(version > 0 ? [{ version }] : [])]);
};

/** The authentication code of a row: 64 hexadecimal digits. */
export const authenticationCode = (
  authenticate: RowAuthenticator,
  table: PolicyTable,
  row: { readonly [column: string]: unknown },
): string => authenticate(rowText(table, row));

/** The row with its authentication code. */
export const sealRow = <R extends { readonly [column: string]: unknown }>(
  authenticate: RowAuthenticator,
  table: PolicyTable,
  row: R,
): R & { readonly row_mac: string } => ({ ...row, row_mac: authenticate(rowText(table, row)) });

/** Whether the row still is what the service wrote. */
export const rowIntegrity = (
  authenticate: RowAuthenticator,
  table: PolicyTable,
  row: { readonly row_mac: string; readonly [column: string]: unknown },
): Integrity => {
  try {
    return authenticate(rowText(table, row)) === row.row_mac ? 'ok' : 'tampered';
  } catch (error) {
    // A value that canonical JSON cannot hold was not written by us.
    if (error instanceof RangeError) return 'tampered';
    throw error;
  }
};

const flag = (value: boolean): number => (value ? 1 : 0);
const bytes = (value: Uint8Array | null): Buffer | null =>
  value === null ? null : Buffer.from(value.buffer, value.byteOffset, value.byteLength);

/** Lists in a tampered row may be no JSON at all; such a row is refused by its integrity, so an empty list does. */
const parseUsages = (text: string): readonly KeyUsage[] => {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? (value as readonly KeyUsage[]) : [];
  } catch {
    return [];
  }
};

/** Of a tampered row there may be none. */
export const parseTags = (text: string | null): readonly string[] => {
  try {
    const value: unknown = JSON.parse(text ?? '[]');
    return Array.isArray(value) ? value.filter((tag) => typeof tag === 'string') : [];
  } catch {
    return [];
  }
};

/** A rule that is no JSON stands in a tampered row, which is refused. */
const parseRule = (text: string | null): DualControlRule | null => {
  try {
    return text === null ? null : (JSON.parse(text) as DualControlRule);
  } catch {
    return null;
  }
};

/** Only a tampered row, which is refused, has anything else here. */
const parseCallers = (text: string | null): ApplicationCallers => {
  try {
    if (text === null) return anyCaller;
    const { networks, certificates } = JSON.parse(text) as Partial<ApplicationCallers>;
    return Array.isArray(networks) && Array.isArray(certificates) ? { networks, certificates } : anyCaller;
  } catch {
    return anyCaller;
  }
};

export const vaultRow = (vault: Vault) => ({
  id: vault.id,
  tenant_id: vault.tenantId,
  name: vault.name,
  kind: vault.kind,
  state: vault.state,
  created_at: vault.createdAt,
  dual_control: vault.dualControl === null ? null : canonicalJson({ ...vault.dualControl }),
  profile: vault.profile,
});
export const toVault = (row: Row<'vaults'>, integrity: Integrity): Vault => ({
  id: row.id,
  tenantId: row.tenant_id,
  name: row.name,
  kind: row.kind as Vault['kind'],
  state: row.state as VaultState,
  createdAt: row.created_at,
  dualControl: parseRule(row.dual_control),
  profile: row.profile as RotationProfile,
  integrity,
});

/** Without the times of its use, which are no policy and are written by themselves. */
export const keyRow = (key: Key) => ({
  id: key.id,
  tenant_id: key.tenantId,
  vault_id: key.vaultId,
  name: key.name,
  kind: key.kind,
  algorithm: key.algorithm,
  bits: key.bits,
  usages: canonicalJson(key.usages),
  state: key.state,
  disabled_at: key.disabledAt,
  current_version: key.currentVersion,
  created_at: key.createdAt,
  deleted_at: key.deletedAt,
  reimported_at: key.reimportedAt,
  destroyed_at: key.destroyedAt,
  unrecoverable_at: key.unrecoverableAt,
  application_id: key.applicationId,
  tags: key.tags.length === 0 ? null : canonicalJson(key.tags),
  copy_of: key.copyOf,
});
export const toKey = (row: Row<'keys'>, integrity: Integrity): Key => ({
  id: row.id,
  tenantId: row.tenant_id,
  vaultId: row.vault_id,
  name: row.name,
  kind: row.kind as Key['kind'],
  algorithm: row.algorithm as KeyAlgorithm,
  bits: row.bits,
  usages: parseUsages(row.usages),
  state: row.state as KeyState,
  disabledAt: row.disabled_at,
  currentVersion: row.current_version,
  createdAt: row.created_at,
  deletedAt: row.deleted_at,
  reimportedAt: row.reimported_at,
  destroyedAt: row.destroyed_at,
  unrecoverableAt: row.unrecoverable_at,
  copyOf: row.copy_of,
  applicationId: row.application_id,
  tags: parseTags(row.tags),
  firstUsedAt: row.first_used_at,
  lastUsedAt: row.last_used_at,
  integrity,
});

export const groupRow = (group: TdeGroup) => ({
  id: group.id,
  tenant_id: group.tenantId,
  name: group.name,
  vault_id: group.vaultId,
  created_at: group.createdAt,
});
export const toGroup = (row: Row<'tde_groups'>, integrity: Integrity): TdeGroup => ({
  id: row.id,
  tenantId: row.tenant_id,
  name: row.name,
  vaultId: row.vault_id,
  createdAt: row.created_at,
  integrity,
});

export const applicationRow = (application: TdeApplication) => ({
  id: application.id,
  tenant_id: application.tenantId,
  group_id: application.groupId,
  name: application.name,
  app_id: application.appId,
  state: application.state,
  compatibility: application.compatibility.length === 0 ? null : canonicalJson(application.compatibility),
  callers: isAnyCaller(application.callers) ? null : canonicalJson({ ...application.callers }),
  created_at: application.createdAt,
});
export const toApplication = (row: Row<'tde_applications'>, integrity: Integrity): TdeApplication => ({
  id: row.id,
  tenantId: row.tenant_id,
  groupId: row.group_id,
  name: row.name,
  appId: row.app_id,
  state: row.state as ApplicationState,
  compatibility: parseTags(row.compatibility) as readonly CompatibilitySwitch[],
  callers: parseCallers(row.callers),
  createdAt: row.created_at,
  integrity,
});

export const accessGuidRow = (accessGuid: StoredAccessGuid) => ({
  id: accessGuid.id,
  application_id: accessGuid.applicationId,
  hash: accessGuid.hash,
  created_at: accessGuid.createdAt,
  removed_at: accessGuid.removedAt,
  last_used_at: accessGuid.lastUsedAt,
});
export const toAccessGuid = (row: Row<'access_guids'>, integrity: Integrity): StoredAccessGuid => ({
  id: row.id,
  applicationId: row.application_id,
  hash: row.hash,
  createdAt: row.created_at,
  removedAt: row.removed_at,
  lastUsedAt: row.last_used_at,
  integrity,
});

export const instanceRow = (instance: Instance): Row<'instances'> => ({
  id: instance.id,
  application_id: instance.applicationId,
  access_guid_id: instance.accessGuidId,
  app_id: instance.appId,
  host: instance.host,
  process: instance.process,
  os_user: instance.osUser,
  library_version: instance.libraryVersion,
  agent_version: instance.agentVersion,
  pid: instance.pid,
  first_used_at: instance.firstUsedAt,
  last_used_at: instance.lastUsedAt,
  uses: instance.uses,
});
export const toInstance = (row: Row<'instances'>): Instance => ({
  id: row.id,
  applicationId: row.application_id,
  accessGuidId: row.access_guid_id,
  appId: row.app_id,
  host: row.host,
  process: row.process,
  osUser: row.os_user,
  libraryVersion: row.library_version,
  agentVersion: row.agent_version,
  pid: row.pid,
  firstUsedAt: row.first_used_at,
  lastUsedAt: row.last_used_at,
  uses: row.uses,
});

export const objectRow = (object: StoredObject) => ({
  handle: object.handle,
  id: object.id,
  tenant_id: object.tenantId,
  group_id: object.groupId,
  application_id: object.applicationId,
  class: object.class,
  label: object.label,
  algorithm: object.algorithm,
  bits: object.bits,
  usages: canonicalJson(object.usages),
  sensitive: flag(object.sensitive),
  extractable: flag(object.extractable),
  always_sensitive: flag(object.alwaysSensitive),
  never_extractable: flag(object.neverExtractable),
  modifiable: flag(object.modifiable),
  destroyable: flag(object.destroyable),
  local: flag(object.local),
  private: flag(object.private),
  check_value: object.checkValue,
  public_key: object.publicKey,
  wrapped_sensitive: flag(object.wrappedSensitive),
  attributes: object.attributes,
  created_at: object.createdAt,
  destroyed_at: object.destroyedAt,
  content: object.content,
});
export const toObject = (row: Row<'tde_objects'>, state: KeyState, integrity: Integrity): StoredObject => ({
  handle: row.handle,
  id: row.id,
  tenantId: row.tenant_id,
  groupId: row.group_id,
  applicationId: row.application_id,
  class: row.class as ObjectClass,
  label: row.label,
  algorithm: row.algorithm as KeyAlgorithm | null,
  bits: row.bits,
  usages: parseUsages(row.usages),
  sensitive: row.sensitive === 1,
  extractable: row.extractable === 1,
  alwaysSensitive: row.always_sensitive === 1,
  neverExtractable: row.never_extractable === 1,
  modifiable: row.modifiable === 1,
  destroyable: row.destroyable === 1,
  local: row.local === 1,
  private: row.private === 1,
  checkValue: row.check_value,
  publicKey: row.public_key,
  wrappedSensitive: row.wrapped_sensitive === 1,
  attributes: row.attributes,
  createdAt: row.created_at,
  destroyedAt: row.destroyed_at,
  content: bytes(row.content),
  state,
  integrity,
});

/** What was seen of a connection is no policy: text that cannot be read is as if nobody had looked. */
const parseConnection = (text: string): Connection => {
  try {
    return { ...neverLooked, ...(JSON.parse(text) as Connection) };
  } catch {
    return neverLooked;
  }
};
export const externalKeyStoreRow = (store: ExternalKeyStore) => ({
  id: store.id,
  tenant_id: store.tenantId,
  name: store.name,
  custom_key_store_id: store.customKeyStoreId,
  region: store.region,
  endpoint_id: store.endpointId,
  created_at: store.createdAt,
  connection: JSON.stringify(store.connection),
  looked_at: store.connection.checkedAt,
});
export const toExternalKeyStore = (row: Row<'external_key_stores'>, integrity: Integrity): ExternalKeyStore => ({
  id: row.id,
  tenantId: row.tenant_id,
  name: row.name,
  customKeyStoreId: row.custom_key_store_id,
  region: row.region,
  endpointId: row.endpoint_id,
  createdAt: row.created_at,
  connection: parseConnection(row.connection),
  integrity,
});

export const diagnosisRow = (diagnosis: StoredDiagnosis) => ({
  id: diagnosis.id,
  endpoint_id: diagnosis.endpointId,
  at: diagnosis.at,
  results: JSON.stringify(diagnosis.results),
  request_ids: JSON.stringify(diagnosis.requestIds),
});
const resultExample = { id: '', layer: '', title: '', state: '', evidence: '' };
export const toDiagnosis = (row: Row<'diagnoses'>): StoredDiagnosis => ({
  id: row.id,
  endpointId: row.endpoint_id,
  at: row.at,
  results: readDocument<StoredDiagnosis['results']>(row.results, [resultExample], []),
  requestIds: readDocument<StoredDiagnosis['requestIds']>(row.request_ids, [''], []),
});

/** Settings in a tampered row may be no JSON at all; such a row is refused by its integrity, so the defaults do. */
const parseSettings = (text: string): EndpointSettings => {
  try {
    return { ...defaultSettings, ...(JSON.parse(text) as EndpointSettings) };
  } catch {
    return defaultSettings;
  }
};

/** Without the time of its use, which is no policy and is written by itself. */
export const endpointRow = (endpoint: Endpoint) => ({
  id: endpoint.id,
  tenant_id: endpoint.tenantId,
  name: endpoint.name,
  prefix: endpoint.prefix,
  vault_id: endpoint.vaultId,
  key_id: endpoint.keyId,
  state: endpoint.state,
  settings: canonicalJson(endpoint.settings),
  created_at: endpoint.createdAt,
});
export const toEndpoint = (
  row: Row<'endpoints'>,
  credentials: readonly EndpointCredential[],
  integrity: Integrity,
): Endpoint => ({
  id: row.id,
  tenantId: row.tenant_id,
  name: row.name,
  prefix: row.prefix,
  vaultId: row.vault_id,
  keyId: row.key_id,
  state: row.state as EndpointState,
  settings: parseSettings(row.settings),
  createdAt: row.created_at,
  credentials,
  integrity,
});

export const credentialRow = (credential: EndpointCredential) => ({
  id: credential.id,
  endpoint_id: credential.endpointId,
  access_key_id: credential.accessKeyId,
  created_at: credential.createdAt,
  last_used_at: credential.lastUsedAt,
});
export const toCredential = (row: Row<'endpoint_credentials'>): EndpointCredential => ({
  id: row.id,
  endpointId: row.endpoint_id,
  accessKeyId: row.access_key_id,
  createdAt: row.created_at,
  lastUsedAt: row.last_used_at,
});

/** A row that was changed from outside gives no roles, whatever stands in it. */
export const parseGrants = (text: string, integrity: Integrity): readonly Grant[] =>
  integrity === 'ok' ? (JSON.parse(text) as readonly Grant[]) : [];

export const tokenRow = (token: StoredToken) => ({
  id: token.id,
  tenant_id: token.tenantId,
  kind: token.kind,
  name: token.name,
  grants: canonicalJson(token.grants),
  hash: token.hash,
  created_at: token.createdAt,
  expires_at: token.expiresAt,
  revoked_at: token.revokedAt,
  last_used_at: token.lastUsedAt,
  owner_id: token.ownerId,
});
export const toToken = (row: Row<'api_tokens'>, integrity: Integrity): StoredToken => ({
  id: row.id,
  tenantId: row.tenant_id,
  kind: row.kind as TokenKind,
  name: row.name,
  grants: parseGrants(row.grants, integrity),
  hash: row.hash,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  revokedAt: row.revoked_at,
  lastUsedAt: row.last_used_at,
  ownerId: row.owner_id,
  integrity,
});

export const toAuditEvent = (row: Row<'audit_events'>): AuditEvent => ({
  sequence: row.sequence,
  at: row.at,
  kind: row.kind as AuditKind,
  actorKind: row.actor_kind as AuditEvent['actorKind'],
  actorId: row.actor_id,
  actorName: row.actor_name,
  peer: row.peer,
  tenantId: row.tenant_id,
  subjectKind: row.subject_kind as SubjectKind,
  subjectId: row.subject_id,
  requestId: row.request_id,
  // What is no document any more is found by the verification of the log: it is shown without.
  details: readDocument<AuditEvent['details']>(row.details, {}, {}),
});

export const requestRow = (entry: XksRequestRecord) => ({
  at: entry.at,
  endpoint_id: entry.endpointId,
  operation: entry.operation,
  status: entry.status,
  error_name: entry.errorName,
  request_id: entry.requestId,
  kms_operation: entry.kmsOperation,
  kms_request_id: entry.kmsRequestId,
  principal: entry.principal,
  kms_key_arn: entry.kmsKeyArn,
  external_key_id: entry.externalKeyId,
  credential_id: entry.credentialId,
  duration_ms: entry.durationMs,
  read_ms: entry.phases.readMs,
  auth_ms: entry.phases.authMs,
  crypto_ms: entry.phases.cryptoMs,
  reason: entry.reason,
  peer: entry.peer,
});
/** The values of requestRow in its order, without an object between: this is done for every request of the data path. */
export const pushRequest = (values: unknown[], entry: XksRequestRecord): void => {
  values.push(
    entry.at,
    entry.endpointId,
    entry.operation,
    entry.status,
    entry.errorName,
    entry.requestId,
    entry.kmsOperation,
    entry.kmsRequestId,
    entry.principal,
    entry.kmsKeyArn,
    entry.externalKeyId,
    entry.credentialId,
    entry.durationMs,
    entry.phases.readMs,
    entry.phases.authMs,
    entry.phases.cryptoMs,
    entry.reason,
    entry.peer,
  );
};
export const toRequest = (row: Row<'request_log'>): XksRequestRecord & { readonly sequence: number } => ({
  sequence: row.sequence,
  at: row.at,
  endpointId: row.endpoint_id,
  operation: row.operation,
  status: row.status,
  errorName: row.error_name,
  requestId: row.request_id,
  kmsOperation: row.kms_operation,
  kmsRequestId: row.kms_request_id,
  principal: row.principal,
  kmsKeyArn: row.kms_key_arn,
  externalKeyId: row.external_key_id,
  credentialId: row.credential_id,
  durationMs: row.duration_ms,
  phases: { readMs: row.read_ms, authMs: row.auth_ms, cryptoMs: row.crypto_ms },
  reason: row.reason,
  peer: row.peer,
});
