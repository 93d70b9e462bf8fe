// Every kind of audit record, how much it matters, and the fields it may have: an allow-list, so
// that no secret can slip in by a new member. Identifiers, names, counts and states only; never a
// credential, a key, an input or an output.

import { canonicalJson } from '../base/bytes.ts';
import { toRfc3339 } from '../base/time.ts';
import { textOfLabel } from './label.ts';

/** How much it matters: what an alarm is set on. */
export const auditSeverities = ['info', 'low', 'medium', 'high', 'critical'] as const;
export type AuditSeverity = (typeof auditSeverities)[number];
/** What was done with the subject, in the words that log platforms share. */
export type AuditActivity =
  | 'create'
  | 'read'
  | 'update'
  | 'delete'
  | 'enable'
  | 'disable'
  | 'start'
  | 'stop'
  | 'sign-in'
  | 'refuse'
  | 'other';
interface AuditRow {
  readonly severity: AuditSeverity;
  readonly activity: AuditActivity;
  readonly fields: readonly string[];
}

const approvalFields = ['operation', 'subjectKind', 'subjectId', 'name', 'requestedBy'] as const;
/** What there was in a tenant when it stopped. */
const tenantContents = ['vaults', 'keys', 'endpoints', 'applications', 'tokens', 'copies'] as const;

export const auditKinds = {
  'service.started': {
    severity: 'info',
    activity: 'start',
    /** `host`: hashes that tell this host from another one. */
    fields: ['node', 'host', 'version', 'rootEpoch', 'rootProvider', 'failedUnseals', 'fileSystem', 'erasure'],
  },
  'service.stopped': { severity: 'info', activity: 'stop', fields: ['node'] },
  /** In place of a former one, which clients may trust. */
  'tls.certificate-created': {
    severity: 'high',
    activity: 'create',
    fields: ['node', 'names', 'expiresAt', 'fingerprint'],
  },
  /** A certificate that was read while the service runs, of another issuer than the one before. */
  'tls.issuer-changed': {
    severity: 'high',
    activity: 'update',
    fields: ['node', 'names', 'expiresAt', 'fingerprint', 'reason'],
  },
  /** The clocks of the service differ from the time that has passed: deadlines wait. */
  'clock.jumped': { severity: 'high', activity: 'disable', fields: ['expected', 'clock'] },
  /**
   * The time was confirmed by an operator, or by the service when the clocks have agreed for a day.
   */
  'clock.confirmed': { severity: 'high', activity: 'enable', fields: ['expected', 'clock'] },
  /** A server that shares this store. */
  'node.drained': { severity: 'low', activity: 'disable', fields: ['name'] },
  'node.resumed': { severity: 'info', activity: 'enable', fields: ['name'] },
  'node.removed': { severity: 'medium', activity: 'delete', fields: ['name'] },
  'tenant.created': { severity: 'info', activity: 'create', fields: ['name'] },
  'tenant.renamed': { severity: 'info', activity: 'update', fields: ['name', 'from'] },
  'tenant.suspended': { severity: 'high', activity: 'disable', fields: ['name', ...tenantContents] },
  'tenant.resumed': { severity: 'medium', activity: 'enable', fields: ['name'] },
  'tenant.deleted': { severity: 'high', activity: 'delete', fields: ['name', 'purgeAt', ...tenantContents] },
  'tenant.restored': { severity: 'high', activity: 'enable', fields: ['name', 'state'] },
  'tenant.purged': { severity: 'critical', activity: 'delete', fields: ['name', ...tenantContents] },
  /** What a purge leaves to be cleared is cleared. */
  'tenant.cleared': { severity: 'info', activity: 'delete', fields: ['name'] },
  'tenant.unrecoverable': {
    severity: 'high',
    activity: 'delete',
    fields: ['name', 'purgedAt', 'unrecoverableAt', 'erasure', 'except', 'rootBackups'],
  },
  'vault.created': { severity: 'info', activity: 'create', fields: ['name', 'kind'] },
  'vault.enabled': { severity: 'info', activity: 'enable', fields: ['name'] },
  'vault.disabled': { severity: 'medium', activity: 'disable', fields: ['name'] },
  'vault.deleted': { severity: 'medium', activity: 'delete', fields: ['name'] },
  'key.created': {
    severity: 'info',
    activity: 'create',
    fields: [
      'name',
      'kind',
      'vaultId',
      'algorithm',
      'bits',
      'usages',
      'origin',
      'tags',
      'label',
      'applicationId',
      'appId',
      'host',
      'process',
    ],
  },
  'key.changed': { severity: 'info', activity: 'update', fields: ['name', 'from', 'tags', 'tagsBefore'] },
  'key.enabled': { severity: 'info', activity: 'enable', fields: ['name'] },
  'key.disabled': { severity: 'medium', activity: 'disable', fields: ['name'] },
  'key.rotated': { severity: 'info', activity: 'update', fields: ['name', 'version'] },
  'key.deleted': { severity: 'medium', activity: 'delete', fields: ['name', 'kind', 'vaultCopy'] },
  'key.reimported': {
    severity: 'info',
    activity: 'update',
    fields: ['name', 'applicationId', 'appId', 'host', 'process'],
  },
  'key.destroyed': {
    severity: 'high',
    activity: 'delete',
    fields: ['name', 'kind', 'label', 'applicationId', 'appId', 'host', 'process', 'destroyedAt', 'blastRadius'],
  },
  'key.unrecoverable': {
    severity: 'high',
    activity: 'delete',
    fields: ['name', 'destroyedAt', 'unrecoverableAt', 'erasure', 'except', 'rootBackups'],
  },
  /** A copy of the key's record did not open, and was restored from the other one. */
  'key.repaired': { severity: 'high', activity: 'update', fields: ['name', 'version', 'copy', 'from'] },
  'key.wrapped': {
    severity: 'low',
    activity: 'other',
    fields: ['applicationId', 'appId', 'host', 'process', 'mechanism', 'wrappedKeyId', 'class', 'sensitive'],
  },
  /** A key that was unwrapped or derived went, sealed, to a session of the agent that asked. */
  'key.sent': {
    severity: 'low',
    activity: 'read',
    fields: ['applicationId', 'appId', 'host', 'process', 'operation', 'mechanism', 'class', 'algorithm', 'bits'],
  },
  /**
   * A key that has wrapped a sensitive key never decrypts again: set before the wrapped bytes
   * leave.
   */
  'key.decryption-ended': {
    severity: 'low',
    activity: 'update',
    fields: ['applicationId', 'appId', 'host', 'process'],
  },
  /** A person repaired a master key that could only encrypt. */
  'key.decryption-allowed': { severity: 'medium', activity: 'update', fields: ['name', 'label', 'applicationId'] },
  /**
   * A key that is extractable left: `form` is `wrapped`; for one that is not sensitive also `clear`
   * or `sealed`.
   */
  'key.exported': {
    severity: 'high',
    activity: 'read',
    fields: ['applicationId', 'appId', 'host', 'process', 'form', 'mechanism', 'wrappingKeyId'],
  },
  /** `count`: so many more of the same since the record before. */
  'key.denied': {
    severity: 'medium',
    activity: 'refuse',
    fields: ['name', 'label', 'applicationId', 'appId', 'host', 'process', 'operation', 'reason', 'count'],
  },
  'row.tampered': { severity: 'critical', activity: 'other', fields: ['table'] },
  /**
   * A person asked for new keys under which everything is sealed; the run that creates them
   * follows.
   */
  'root.rotation-requested': { severity: 'medium', activity: 'other', fields: ['rootEpoch'] },
  'root.rotated': { severity: 'medium', activity: 'update', fields: ['rootEpoch', 'records'] },
  'tenant.key-rotation-requested': { severity: 'low', activity: 'other', fields: ['epoch'] },
  'tenant.key-rotated': { severity: 'low', activity: 'update', fields: ['epoch', 'records'] },
  /** What opens the root key was changed, by an operator on the service's host. */
  'service.backed-up': { severity: 'info', activity: 'create', fields: ['backupId', 'at', 'size', 'digest'] },
  'root.backed-up': { severity: 'medium', activity: 'create', fields: ['rootEpoch', 'at'] },
  'root.provider-added': { severity: 'high', activity: 'create', fields: ['name', 'type'] },
  'root.provider-removed': { severity: 'high', activity: 'delete', fields: ['name', 'type'] },
  'root.provider-rewrapped': { severity: 'high', activity: 'update', fields: ['name', 'type'] },
  'erasure.started': { severity: 'info', activity: 'other', fields: ['rootEpoch', 'keys'] },
  /**
   * The run waits: `records` do not open, and never would after it; or for nodes, copies of the
   * database, or missing snapshots.
   */
  'erasure.blocked': {
    severity: 'critical',
    activity: 'other',
    fields: ['rootEpoch', 'records', 'subjects', 'nodes', 'standbys', 'snapshots'],
  },
  'erasure.copy-released': { severity: 'high', activity: 'update', fields: ['rootEpoch', 'name'] },
  /** `objects`: whose replaced or destroyed values it covers. */
  'erasure.finished': { severity: 'info', activity: 'other', fields: ['rootEpoch', 'keys', 'records', 'objects'] },
  /**
   * A sink has other records of the same numbers: the log went back, or a copy of the service
   * writes to it.
   */
  'audit.sink-forked': { severity: 'critical', activity: 'other', fields: ['name', 'record'] },
  'recovery-key.registered': { severity: 'high', activity: 'create', fields: ['name', 'recoveryKeyId'] },
  /** With the snapshots that it still opens. */
  'recovery-key.removed': {
    severity: 'high',
    activity: 'delete',
    fields: ['name', 'recoveryKeyId', 'snapshots', 'snapshotCount'],
  },
  'snapshot.created': {
    severity: 'info',
    activity: 'create',
    /**
     * `digest`: of the file; an erasure does not change it. `rotate`: applications whose
     * access_guid must be rotated if the snapshot is restored on another service.
     */
    fields: ['origin', 'keys', 'units', 'omitted', 'size', 'recoveryKeys', 'digest', 'rotate'],
  },
  'snapshot.failed': { severity: 'high', activity: 'create', fields: ['origin', 'reason'] },
  'snapshot.imported': { severity: 'high', activity: 'create', fields: ['signer', 'units', 'erased'] },
  'snapshot.verified': { severity: 'low', activity: 'read', fields: ['depth', 'valid', 'finding'] },
  'snapshot.deleted': { severity: 'medium', activity: 'delete', fields: ['origin', 'purgeAt'] },
  'snapshot.undeleted': { severity: 'medium', activity: 'update', fields: ['origin'] },
  'snapshot.purged': { severity: 'medium', activity: 'delete', fields: ['origin'] },
  /** A copy left the service: from here on a destroyed key may be in it. */
  'snapshot.exported': { severity: 'high', activity: 'read', fields: ['size'] },
  /**
   * An operator has confirmed it of a file that left the service, or the command that made it
   * failed.
   */
  'copy.destroyed': { severity: 'high', activity: 'delete', fields: ['copyKind', 'at', 'snapshotId', 'reason'] },
  /** Destroyed keys were erased from a snapshot that the service stores. */
  'snapshot.keys-erased': { severity: 'info', activity: 'delete', fields: ['keys'] },
  /** The service was given the key of one snapshot, for one use of it. */
  'snapshot.opening-started': { severity: 'high', activity: 'read', fields: ['recoveryKeyId'] },
  'snapshot.restored': {
    severity: 'critical',
    activity: 'update',
    fields: [
      'tenantId',
      'newTenant',
      'newIds',
      'created',
      'changed',
      'unchanged',
      'stayDestroyed',
      'withoutValue',
      'activated',
      'activatedCount',
    ],
  },
  'group.renamed': { severity: 'medium', activity: 'update', fields: ['name', 'from'] },
  'group.created': { severity: 'info', activity: 'create', fields: ['name', 'vaultId'] },
  'application.registered': { severity: 'info', activity: 'create', fields: ['name', 'groupId', 'appId'] },
  'application.renamed': { severity: 'info', activity: 'update', fields: ['name', 'from'] },
  'application.enabled': { severity: 'info', activity: 'enable', fields: ['name'] },
  'application.disabled': { severity: 'medium', activity: 'disable', fields: ['name'] },
  'application.compatibility-changed': { severity: 'high', activity: 'update', fields: ['name', 'on', 'off'] },
  'application.callers-changed': {
    severity: 'high',
    activity: 'update',
    fields: ['name', 'networks', 'certificates'],
  },
  'application.moved': {
    severity: 'medium',
    activity: 'update',
    fields: [
      'name',
      'fromGroupId',
      'fromGroup',
      'toGroupId',
      'toGroup',
      'keys',
      'objects',
      'keysLost',
      'leaves',
      'joins',
    ],
  },
  'access-guid.added': { severity: 'medium', activity: 'create', fields: ['accessGuidId'] },
  'access-guid.removed': { severity: 'medium', activity: 'delete', fields: ['accessGuidId'] },
  'runbook.started': {
    severity: 'info',
    activity: 'start',
    fields: ['name', 'runbook', 'release', 'containers', 'runId', 'steps'],
  },
  'runbook.step-completed': {
    severity: 'info',
    activity: 'update',
    fields: ['runbook', 'runId', 'step', 'title', 'outcome', 'note'],
  },
  'runbook.step-reopened': { severity: 'info', activity: 'update', fields: ['runbook', 'runId', 'step', 'title'] },
  'runbook.finished': {
    severity: 'info',
    activity: 'stop',
    fields: ['runbook', 'runId', 'outcome', 'completed', 'open', 'note'],
  },
  'instance.first-used': {
    severity: 'info',
    activity: 'other',
    fields: [
      'accessGuidId',
      'appId',
      'host',
      'process',
      'osUser',
      'libraryVersion',
      'agentVersion',
      'pid',
      // In a summary: how many more there were, this the last.
      'count',
      // Older ones that gave way, since the last record.
      'replaced',
    ],
  },
  'application.used': { severity: 'info', activity: 'other', fields: ['from', 'to', 'operations', 'failures'] },
  'object.created': {
    severity: 'info',
    activity: 'create',
    fields: ['class', 'label', 'handle', 'appId', 'host', 'process'],
  },
  'object.updated': {
    severity: 'info',
    activity: 'update',
    fields: ['class', 'label', 'handle', 'changed', 'appId', 'host', 'process'],
  },
  'object.destroyed': {
    severity: 'medium',
    activity: 'delete',
    fields: ['class', 'label', 'handle', 'appId', 'host', 'process'],
  },
  'endpoint.created': { severity: 'info', activity: 'create', fields: ['name', 'prefix', 'vaultId', 'keyId'] },
  'endpoint.renamed': { severity: 'info', activity: 'update', fields: ['name', 'from'] },
  'endpoint.enabled': { severity: 'info', activity: 'enable', fields: ['name'] },
  'endpoint.disabled': { severity: 'medium', activity: 'disable', fields: ['name'] },
  'endpoint.settings-changed': {
    severity: 'medium',
    activity: 'update',
    fields: ['name', 'operatorProbes', 'rate', 'clientCertificate', 'rules'],
  },
  'endpoint.deleted': { severity: 'medium', activity: 'delete', fields: ['name', 'prefix'] },
  'endpoint.credential-added': { severity: 'medium', activity: 'create', fields: ['accessKeyId'] },
  'endpoint.credential-removed': { severity: 'medium', activity: 'delete', fields: ['accessKeyId'] },
  'vault.renamed': { severity: 'medium', activity: 'update', fields: ['name', 'from'] },
  'vault.profile-changed': { severity: 'low', activity: 'update', fields: ['name', 'profile'] },
  'notification.acknowledged': {
    severity: 'info',
    activity: 'update',
    fields: ['notification', 'name', 'severity'],
  },
  'notification.released': {
    severity: 'info',
    activity: 'update',
    fields: ['notification', 'name', 'severity'],
  },
  /** A person's statement about a step of the first setup. */
  'setup.confirmed': { severity: 'info', activity: 'update', fields: ['step', 'confirmed'] },
  'notification.tested': { severity: 'info', activity: 'other', fields: ['targets', 'failed'] },
  'dual-control.changed': { severity: 'high', activity: 'update', fields: ['name', 'before', 'after'] },
  'approval.requested': {
    severity: 'medium',
    activity: 'create',
    fields: [...approvalFields, 'vaults', 'required', 'expiresAt'],
  },
  'approval.approved': { severity: 'medium', activity: 'update', fields: [...approvalFields, 'comment', 'missing'] },
  'approval.rejected': { severity: 'medium', activity: 'refuse', fields: [...approvalFields, 'comment'] },
  'approval.withdrawn': { severity: 'info', activity: 'delete', fields: approvalFields },
  'approval.expired': { severity: 'low', activity: 'delete', fields: approvalFields },
  /** What it was about had changed: nothing was done. */
  'approval.outdated': { severity: 'medium', activity: 'delete', fields: approvalFields },
  /** The operation's own records have the same request id. */
  'approval.completed': { severity: 'high', activity: 'update', fields: [...approvalFields, 'approvers'] },
  'key-inventory.exported': { severity: 'low', activity: 'read', fields: ['format', 'filter'] },
  'request-log.exported': { severity: 'low', activity: 'read', fields: ['format', 'filter'] },
  /**
   * The records of one minute (docs/audit.md), by space; `late`: those that came when it had been
   * hashed; `dropped`: requests without a record.
   */
  'request-log.minute': {
    severity: 'info',
    activity: 'other',
    fields: ['minute', 'count', 'late', 'dropped', 'droppedUnsigned', 'parts'],
  },
  /**
   * Retention has removed records; `through`: the newest one's number; `space`: of this space only.
   */
  'request-log.pruned': { severity: 'info', activity: 'delete', fields: ['count', 'through', 'space'] },
  /**
   * `records`: the number of the tenant's records, including this one, if only the tenant's part
   * was exported.
   */
  'audit-log.exported': { severity: 'low', activity: 'read', fields: ['size', 'records'] },
  /**
   * An operator accepted a database that is older than the checkpoint stored with the root key, or
   * another database.
   */
  'audit-log.accepted': { severity: 'critical', activity: 'update', fields: ['state', 'size', 'expected', 'former'] },
  /** The last record that the former key signs. Both are verifier keys (base/checkpoint.ts). */
  'audit-log.key-rotated': { severity: 'high', activity: 'update', fields: ['former', 'next'] },
  'external-key-store.registered': {
    severity: 'info',
    activity: 'create',
    fields: ['name', 'customKeyStoreId', 'region', 'endpointId'],
  },
  'external-key-store.state-changed': {
    severity: 'info',
    activity: 'update',
    fields: ['name', 'from', 'to', 'errorCode', 'source'],
  },
  'external-key-store.removed': { severity: 'info', activity: 'delete', fields: ['name', 'customKeyStoreId'] },
  'user.created': { severity: 'medium', activity: 'create', fields: ['name', 'roles', 'subject'] },
  'user.changed': { severity: 'medium', activity: 'update', fields: ['name', 'changed', 'roles', 'sessionsEnded'] },
  'user.enabled': { severity: 'info', activity: 'enable', fields: ['name'] },
  'user.disabled': { severity: 'medium', activity: 'disable', fields: ['name', 'sessionsEnded'] },
  /** The name and the e-mail address of a user that an earlier version deleted were removed. */
  'user.cleared': { severity: 'info', activity: 'update', fields: [] },
  'user.deleted': { severity: 'medium', activity: 'delete', fields: ['name', 'sessionsEnded'] },
  'user.locked': { severity: 'medium', activity: 'refuse', fields: ['name', 'failures', 'until'] },
  'user.unlocked': { severity: 'low', activity: 'update', fields: ['name'] },
  'invitation.issued': {
    severity: 'medium',
    activity: 'create',
    fields: ['name', 'expiresAt', 'sessionsEnded', 'delivery'],
  },
  'password.changed': { severity: 'low', activity: 'update', fields: ['name', 'by', 'sessionsEnded'] },
  'second-factor.added': { severity: 'low', activity: 'create', fields: ['name', 'kind', 'factor'] },
  'second-factor.removed': { severity: 'medium', activity: 'delete', fields: ['name', 'kind', 'factor', 'by'] },
  'recovery-codes.created': { severity: 'low', activity: 'create', fields: ['name', 'count'] },
  'recovery-code.used': { severity: 'medium', activity: 'other', fields: ['name', 'left'] },
  'session.started': { severity: 'info', activity: 'sign-in', fields: ['name', 'method', 'proved'] },
  'session.ended': { severity: 'info', activity: 'stop', fields: ['name', 'sessionId', 'by'] },
  'session.key-rotated': { severity: 'high', activity: 'update', fields: ['sessionsEnded'] },
  'sign-in.refused': { severity: 'low', activity: 'refuse', fields: ['method', 'reason', 'name'] },
  /**
   * A command asks for a token in the browser of a person: `request` names what the records belong
   * to.
   */
  'device-sign-in.requested': { severity: 'info', activity: 'other', fields: ['request', 'host', 'roles', 'hours'] },
  'device-sign-in.approved': {
    severity: 'medium',
    activity: 'enable',
    fields: ['request', 'name', 'host', 'peer', 'roles', 'hours'],
  },
  'device-sign-in.refused': { severity: 'low', activity: 'refuse', fields: ['request', 'host', 'reason', 'name'] },
  'device-sign-in.issued': {
    severity: 'medium',
    activity: 'sign-in',
    fields: ['request', 'name', 'host', 'tokenId', 'expiresAt'],
  },
  'token.key-rotated': { severity: 'high', activity: 'update', fields: ['tokensEnded', 'tokensLeft'] },
  'token.former-key-ended': { severity: 'high', activity: 'delete', fields: ['tokensEnded'] },
  'token.created': { severity: 'medium', activity: 'create', fields: ['name', 'kind', 'roles', 'expiresAt'] },
  /** A person may do everything for a limited time. */
  'break-glass.created': { severity: 'critical', activity: 'create', fields: ['name', 'expiresAt'] },
  /** On the service's host, by an operator who can open its root key. */
  'administrator.recovered': { severity: 'critical', activity: 'create', fields: ['name', 'expiresAt'] },
  'token.revoked': { severity: 'medium', activity: 'delete', fields: ['name'] },
  /** The application is known when its access_guid was removed, or when it is disabled. */
  'authentication.failed': {
    severity: 'medium',
    activity: 'sign-in',
    fields: ['channel', 'reason', 'count', 'applicationId', 'name', 'lastRequestId'],
  },
} as const satisfies Record<string, AuditRow>;

/** The kinds that matter at least so much. */
export const kindsFrom = (least: AuditSeverity): readonly AuditKind[] =>
  (Object.keys(auditKinds) as AuditKind[]).filter(
    (kind) => auditSeverities.indexOf(auditKinds[kind].severity) >= auditSeverities.indexOf(least),
  );
export type AuditKind = keyof typeof auditKinds;
export const auditKindNames = Object.keys(auditKinds) as AuditKind[];
export type AuditField<K extends AuditKind> = (typeof auditKinds)[K]['fields'][number];
/** JSON values without secrets, moments as RFC 3339; canonical JSON is stored. */
export type AuditValue =
  | string
  | number
  | boolean
  | null
  | readonly AuditValue[]
  | { readonly [name: string]: AuditValue };
export type AuditDetails<K extends AuditKind> = { readonly [F in AuditField<K>]?: AuditValue };

export const subjectKinds = [
  'service',
  'tenant',
  'vault',
  'key',
  'group',
  'application',
  'object',
  'endpoint',
  'external-key-store',
  'snapshot',
  'copy',
  'recovery-key',
  'token',
  'approval',
  'user',
  'session',
  'notification',
] as const;
export type SubjectKind = (typeof subjectKinds)[number];

/** A stored record. `sequence` gives the order; `at` is for people. */
export interface AuditEvent {
  readonly sequence: number;
  readonly at: number;
  readonly kind: AuditKind;
  readonly actorKind: 'user' | 'administrator' | 'application' | 'service';
  readonly actorId: string;
  readonly actorName: string;
  readonly peer: string | null;
  readonly tenantId: string;
  readonly subjectKind: SubjectKind;
  readonly subjectId: string;
  readonly requestId: string;
  readonly details: { readonly [name: string]: AuditValue };
}

/**
 * The one text of a record: what the log's tree contains, what is exported, and what anyone can
 * verify.
 */
export const auditEntry = ({ at, ...record }: AuditEvent): string => canonicalJson({ at: toRfc3339(at), ...record });

/**
 * For people: records keep labels as the bytes that they are, and so are signed. A label that is
 * not text stays Base64.
 */
export const readableDetails = (details: AuditEvent['details']): AuditEvent['details'] =>
  typeof details.label === 'string' ? { ...details, label: textOfLabel(details.label) ?? details.label } : details;
