// Every kind of audit record and the fields it may bear: an allow-list, so that no secret can slip in by a new member.
// Identifiers, names, counts and states only; never a credential, a key, an input or an output.

import { canonicalJson } from '../base/bytes.ts';
import { toRfc3339 } from '../base/clock.ts';

export const auditKinds = {
  'service.started': ['version', 'rootEpoch', 'fileSystem', 'erasure'],
  'service.stopped': [],
  'tenant.created': ['name'],
  'vault.created': ['name', 'kind'],
  'vault.enabled': ['name'],
  'vault.disabled': ['name'],
  'vault.deleted': ['name'],
  'key.created': [
    'name',
    'kind',
    'vaultId',
    'algorithm',
    'bits',
    'usages',
    'origin',
    'label',
    'applicationId',
    'appId',
    'host',
    'process',
  ],
  'key.enabled': ['name'],
  'key.disabled': ['name'],
  'key.rotated': ['name', 'version'],
  'key.deleted': ['name', 'kind', 'vaultCopy'],
  'key.reimported': ['name', 'applicationId', 'appId', 'host', 'process'],
  'key.destroyed': ['name', 'kind', 'label', 'applicationId', 'appId', 'host', 'process', 'destroyedAt', 'blastRadius'],
  'key.unrecoverable': ['name', 'destroyedAt', 'unrecoverableAt', 'erasure'],
  /** A copy of the key's record did not open, and was made anew from the other one. */
  'key.repaired': ['name', 'version', 'copy', 'from'],
  'key.wrapped': ['applicationId', 'appId', 'host', 'process', 'mechanism', 'wrappedKeyId', 'class', 'sensitive'],
  /** A key that was unwrapped or derived went, sealed, to a session of the agent that asked. */
  'key.handed-out': [
    'applicationId',
    'appId',
    'host',
    'process',
    'operation',
    'mechanism',
    'class',
    'algorithm',
    'bits',
  ],
  /** A key that has wrapped a sensitive key never decrypts again: set before the wrapped bytes leave. */
  'key.decryption-ended': ['applicationId', 'appId', 'host', 'process'],
  /** A key that is extractable left: `form` is `wrapped`, or `clear` for one that is not sensitive. */
  'key.exported': ['applicationId', 'appId', 'host', 'process', 'form', 'mechanism', 'wrappingKeyId'],
  'key.denied': ['applicationId', 'appId', 'host', 'process', 'operation', 'reason'],
  'row.tampered': ['table'],
  'erasure.started': ['rootEpoch', 'keys'],
  /** The turn waits: `records` do not open, and would never again after it. */
  'erasure.held': ['rootEpoch', 'records', 'subjects'],
  'erasure.finished': ['rootEpoch', 'keys', 'records'],
  'group.created': ['name', 'vaultId'],
  'application.registered': ['name', 'groupId', 'appId'],
  'application.enabled': ['name'],
  'application.disabled': ['name'],
  'access-guid.added': ['accessGuidId'],
  'access-guid.removed': ['accessGuidId'],
  'instance.first-used': [
    'accessGuidId',
    'appId',
    'host',
    'process',
    'osUser',
    'libraryVersion',
    'agentVersion',
    'pid',
  ],
  'application.used': ['from', 'to', 'operations', 'failures'],
  'object.created': ['class', 'label', 'handle', 'appId', 'host', 'process'],
  'object.updated': ['class', 'label', 'handle', 'changed', 'appId', 'host', 'process'],
  'object.destroyed': ['class', 'label', 'handle', 'appId', 'host', 'process'],
  'endpoint.created': ['name', 'prefix', 'vaultId', 'keyId'],
  'endpoint.enabled': ['name'],
  'endpoint.disabled': ['name'],
  'endpoint.settings-changed': ['name', 'operatorProbes', 'rate', 'clientCertificate', 'rules'],
  'endpoint.deleted': ['name', 'prefix'],
  'endpoint.credential-added': ['accessKeyId'],
  'endpoint.credential-removed': ['accessKeyId'],
  'request-log.exported': ['format', 'filter'],
  'audit-log.exported': ['size'],
  /** An operator took a database that is older than, or not, what the checkpoint beside the root key says. */
  'audit-log.accepted': ['state', 'size', 'expected'],
  'external-key-store.registered': ['name', 'customKeyStoreId', 'region', 'endpointId'],
  'external-key-store.state-changed': ['name', 'from', 'to', 'errorCode', 'source'],
  'external-key-store.removed': ['name', 'customKeyStoreId'],
  'token.created': ['name', 'kind', 'expiresAt'],
  'token.revoked': ['name'],
  'authentication.failed': ['channel', 'reason', 'count'],
} as const satisfies Record<string, readonly string[]>;

export type AuditKind = keyof typeof auditKinds;
export type AuditField<K extends AuditKind> = (typeof auditKinds)[K][number];
/** JSON values without secrets, moments as RFC 3339; canonical JSON is stored. */
export type AuditValue =
  | string
  | number
  | boolean
  | null
  | readonly AuditValue[]
  | { readonly [name: string]: AuditValue };
export type AuditDetails<K extends AuditKind> = { readonly [F in AuditField<K>]?: AuditValue };

export type SubjectKind =
  | 'service'
  | 'tenant'
  | 'vault'
  | 'key'
  | 'group'
  | 'application'
  | 'object'
  | 'endpoint'
  | 'external-key-store'
  | 'token';

/** A stored record. `sequence` gives the order; `at` is for people. */
export interface AuditEvent {
  readonly sequence: number;
  readonly at: number;
  readonly kind: AuditKind;
  readonly actorKind: 'administrator' | 'application' | 'service';
  readonly actorId: string;
  readonly actorName: string;
  readonly peer: string | null;
  readonly tenantId: string;
  readonly subjectKind: SubjectKind;
  readonly subjectId: string;
  readonly requestId: string;
  readonly details: { readonly [name: string]: AuditValue };
}

/** The one text of a record: what the log's tree is made of, what is exported, and what anybody can check. */
export const auditEntry = ({ at, ...record }: AuditEvent): string => canonicalJson({ at: toRfc3339(at), ...record });

export const isAuditKind = (text: string): text is AuditKind => Object.hasOwn(auditKinds, text);
