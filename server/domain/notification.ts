// Warnings before harm is done: one table of kinds. A notification is about one thing and is raised
// once; its severity rises with its stages, and it ends automatically when its cause has ended.
// Pure: operations/notifications finds the facts.

import type { AuditSeverity, AuditValue } from './audit-event.ts';

export const dayMs = 86_400_000;

interface NotificationRow {
  /** What is so; `{name}` is the thing's name. */
  readonly text: string;
  /** What to do about it. */
  readonly fix: string;
  /** When it is resolved. `unit/operations/notification-ends` has each kind begin and end. */
  readonly end: string;
  /**
   * The fix in a few words, and the page of the console that it begins on; `{id}` is the thing's.
   */
  readonly action: string;
  readonly page: string;
  /**
   * How many days before the harm the notification is raised, and raised again; descending. Empty:
   * there is harm as soon as the condition is met.
   */
  readonly leadDays: readonly number[];
  /**
   * Details that say what it is because of, where there may be several causes: a list, a count, or
   * a text. One that was not there before ends the acknowledgement, which was of those that were
   * known.
   */
  readonly causes?: readonly string[];
  /** One for each lead time, and the last one for when the harm is there. */
  readonly severities: readonly [AuditSeverity, ...AuditSeverity[]];
}

export const notificationKinds = {
  'key.rotation-due': {
    text: 'keys of the vault {name} are due for rotation',
    fix: 'run dke key rotate; older versions still decrypt what they encrypted',
    end: 'all keys of the vault have a newer version',
    action: 'View keys',
    page: '/keys?vaultId={id}',
    leadDays: [183, 30],
    severities: ['low', 'medium', 'high'],
  },
  'master-key.rotation-due': {
    text: 'the master key of {name} is due for rotation',
    fix: 'set a new key in the database (ADMINISTER KEY MANAGEMENT SET KEY); for the steps, run dke runbook show rotate',
    end: 'the database has set a new master key',
    action: 'Follow the runbook',
    page: '/tde/applications/{id}/runbooks?runbook=rotate',
    leadDays: [183, 30],
    severities: ['low', 'medium', 'high'],
  },
  'master-key.unreadable': {
    text: 'the master key {name} cannot decrypt: its database cannot read what it encrypted with it',
    fix: 'run dke tde key allow-decryption; if it refuses, set a new master key in the database at once',
    end: 'the key may decrypt, or is destroyed',
    action: 'Open the key',
    page: '/keys/{id}',
    leadDays: [],
    severities: ['critical'],
  },
  'endpoint.credential-due': {
    text: 'a credential of the endpoint {name} is due for rotation: quarterly is recommended',
    fix: 'run dke endpoint credential add, enter the new credential at the cloud key service, then remove the old one',
    end: 'the old credential is removed',
    action: 'Rotate the credential',
    page: '/endpoints/{id}/credentials',
    leadDays: [14],
    causes: ['due'],
    severities: ['low', 'medium'],
  },
  'application.access-guid-due': {
    text: 'an access_guid of {name} is due for rotation: quarterly is recommended',
    fix: 'run dke tde app rotate-guid, install the new pkcs11.toml, then remove the old access_guid',
    end: 'the old access_guid is removed, or the application is disabled',
    action: 'Open the application',
    page: '/tde/applications/{id}',
    leadDays: [14],
    causes: ['due'],
    severities: ['low', 'medium'],
  },
  'tls.certificate-expiring': {
    text: 'the certificate for {name} expires',
    fix: 'replace its file, then run systemctl reload dke-server; if it is self-signed, run dke server renew-certificate',
    end: 'a certificate that is valid for longer is served',
    action: 'View settings',
    page: '/settings',
    leadDays: [30, 7, 1],
    severities: ['low', 'medium', 'high', 'critical'],
  },
  'tls.certificate-old': {
    text: 'the certificate for {name} is about a year old: yearly renewal is recommended',
    fix: 'replace it, with a new key; if it is self-signed, run dke server renew-certificate',
    end: 'a newer certificate is served',
    action: 'View settings',
    page: '/settings',
    leadDays: [30],
    severities: ['info', 'low'],
  },
  'tls.file-unusable': {
    text: 'the next start cannot serve the certificate, or clients would refuse it: {name}',
    fix: 'before a restart, put the file back, then run systemctl reload dke-server; until then, the certificate in memory is served',
    end: 'the files can be served and trusted',
    action: 'View settings',
    page: '/settings',
    leadDays: [],
    causes: ['faults'],
    severities: ['high'],
  },
  'tls.certificate-created': {
    text: 'at its start, the service found no certificate and created a self-signed one, which clients do not trust: {name}',
    fix: 'copy the new tls.crt to clients (ca_file in pkcs11.toml, --ca-file of dke), or stop the service and restore tls.crt and tls.key from a backup',
    end: 'its node no longer serves it, or is removed; otherwise after 30 days',
    action: 'View settings',
    page: '/settings',
    leadDays: [],
    severities: ['high'],
  },
  'tls.issuer-changed': {
    text: 'the certificate has another issuer than the one before, so clients that trust only that one refuse it: {name}',
    fix: 'copy the certificate of the new issuer to clients (ca_file in pkcs11.toml, --ca-file of dke, the trust store of the cloud), or put the former certificate back and run systemctl reload dke-server',
    end: 'its node no longer serves it, or is removed; otherwise after 30 days',
    action: 'View settings',
    page: '/settings',
    leadDays: [],
    severities: ['medium'],
  },
  'client-authority.expiring': {
    text: 'an authority of client certificates of the endpoint {name} expires',
    fix: 'run dke endpoint set --client-ca FILE with a bundle that also contains the new authority',
    end: 'the authorities of the endpoint are valid for longer',
    action: 'Open the endpoint',
    page: '/endpoints/{id}',
    leadDays: [30, 7, 1],
    causes: ['expired', 'expiring'],
    severities: ['low', 'medium', 'high', 'critical'],
  },
  'client-certificate.expiring': {
    text: 'a client certificate of the application {name} expires',
    fix: 'run dke tde app callers --add-certificate FILE with a new one, then set client_certificate and client_key in pkcs11.toml',
    end: 'the certificate is replaced or removed from the allowed callers',
    action: 'Open the application',
    page: '/tde/applications/{id}',
    leadDays: [30, 7, 1],
    causes: ['expired', 'expiring'],
    severities: ['low', 'medium', 'high', 'critical'],
  },
  'token.expiring': {
    text: 'the API token {name} expires',
    fix: 'if it is still used, create a new one with the same roles; then revoke this one',
    end: 'the token is revoked; otherwise a week after it expired',
    action: 'View tokens',
    page: '/tokens',
    leadDays: [30, 7, 1],
    severities: ['info', 'low', 'medium', 'medium'],
  },
  'token.old': {
    text: 'the API token {name} is old and never expires',
    fix: 'run dke token create with the same roles and --expires, use the new token, then run dke token revoke',
    end: 'the token is revoked',
    action: 'View tokens',
    page: '/tokens',
    leadDays: [],
    severities: ['low'],
  },
  'token.key-old': {
    text: 'the key that hashes API tokens is due for rotation',
    fix: 'run dke token rotate-key; tokens stay valid. After all have been used, run dke token end-former-key',
    end: 'the key is rotated',
    action: 'View tokens',
    page: '/tokens',
    leadDays: [30],
    severities: ['info', 'low'],
  },
  'token.former-key': {
    text: 'API tokens are still accepted under a former key, a month after its rotation',
    fix: 'run dke token end-former-key; it names the tokens that have not been used since',
    end: 'the former key is ended',
    action: 'View tokens',
    page: '/tokens',
    leadDays: [],
    severities: ['low'],
  },
  'session.key-old': {
    text: 'the key that hashes sessions is due for rotation',
    fix: 'run dke session rotate-key; everyone must sign in again',
    end: 'the key is rotated',
    action: 'View settings',
    page: '/settings',
    leadDays: [30],
    severities: ['info', 'low'],
  },
  'administrator.recovered': {
    text: 'an administrator token was created on the host of the service: {name}',
    fix: 'confirm with the operators of the host that this was intended; if not, revoke the token and run dke audit list --kind administrator.recovered',
    end: 'the token is revoked by a user or a token that it has not created, changed or invited; otherwise after 30 days',
    action: 'View tokens',
    page: '/tokens',
    leadDays: [],
    severities: ['critical'],
  },
  'key-store.disconnected': {
    text: 'the external key store {name} is not connected',
    fix: 'run dke doctor endpoint; it names the first layer that fails',
    end: 'the cloud reports that it is connected, or it is removed',
    action: 'View key stores',
    page: '/external-key-stores',
    leadDays: [],
    severities: ['critical'],
  },
  'endpoint.failing': {
    text: 'the endpoint {name} refuses requests',
    fix: 'run dke endpoint requests --result refused, then dke doctor endpoint',
    end: 'fewer than 10 requests are refused within 5 minutes',
    action: 'Run the diagnostics',
    page: '/endpoints/{id}/diagnostics',
    leadDays: [],
    severities: ['high'],
  },
  'endpoint.late': {
    text: 'the endpoint {name} answers too late: some requests of the last hour took longer than the 250 ms after which the cloud gives up',
    fix: 'run dke latency to see since when, and dke doctor endpoint to find the slow phase',
    end: 'no request of the last hour took longer than 250 ms',
    action: 'Run the diagnostics',
    page: '/endpoints/{id}/diagnostics',
    leadDays: [],
    severities: ['critical'],
  },
  'endpoint.slow': {
    text: 'the endpoint {name} is slow: more than 1 % of the last hour took longer than 100 ms',
    fix: 'run dke latency to see since when, and dke doctor endpoint to find the slow phase',
    end: 'at most 1 % of the last hour took longer than 100 ms',
    action: 'Run the diagnostics',
    page: '/endpoints/{id}/diagnostics',
    leadDays: [],
    severities: ['medium'],
  },
  'endpoint.tampered': {
    text: 'the endpoint {name} was changed from outside: every request is refused',
    fix: 'compare the database with a backup; the audit log names the record',
    end: 'its record is authentic again, or it is deleted',
    action: 'Run the diagnostics',
    page: '/endpoints/{id}/diagnostics',
    leadDays: [],
    severities: ['critical'],
  },
  'endpoint.credential-unused': {
    text: 'the new credential of the endpoint {name} has not signed a request yet',
    fix: 'enter it at the cloud key service, then remove the old one',
    end: 'the new credential has signed a request, or only one is left',
    action: 'Continue the rotation',
    page: '/endpoints/{id}/credentials',
    leadDays: [7],
    severities: ['low', 'medium'],
  },
  'approval.pending': {
    text: 'the approval request for {name} is pending',
    fix: 'run dke approval show, then approve or reject it',
    end: 'it is decided, withdrawn, or has expired',
    action: 'View approvals',
    page: '/approvals',
    leadDays: [],
    severities: ['medium'],
  },
  'dual-control.unsatisfiable': {
    text: 'there are too few approvers for the dual control of the vault {name}',
    fix: 'give the role key-approver to more users; until then, no operation under this rule can be approved',
    end: 'there are enough approvers, or the rule is removed',
    action: 'View users',
    page: '/users',
    leadDays: [],
    severities: ['high'],
  },
  'audit.sink-behind': {
    text: 'a forwarded log does not reach its sink {name}',
    fix: 'run dke audit sinks for the reason; audit records are kept until they are delivered, request records only as long as the request log keeps them',
    end: 'the sink takes records again',
    action: 'View sinks',
    page: '/audit/sinks',
    leadDays: [],
    severities: ['high'],
  },
  'audit.sink-forked': {
    text: 'the sink {name} has other records of the same numbers: an older state of the service was put back, or a copy of it runs',
    fix: 'make sure that no copy of the data directory runs (docs/operations.md); both histories are kept: compare the files that were set aside, and repeat missing revocations',
    end: '7 days after it was found',
    action: 'View sinks',
    page: '/audit/sinks',
    leadDays: [],
    severities: ['critical'],
  },
  'audit.checkpoint-stale': {
    text: 'records of the audit log wait for a signed checkpoint',
    fix: "check the server's log, and the free space on the disk of the root key",
    end: 'a checkpoint covers all records',
    action: 'View the audit log',
    page: '/audit/verification',
    leadDays: [],
    severities: ['high'],
  },
  'audit.key-old': {
    text: 'the key that signs the audit log is due for rotation',
    fix: 'run dke audit rotate-key, store the new verifierKey, then run dke root backup --out FILE',
    end: 'the key is rotated',
    action: 'View the audit log',
    page: '/audit/verification',
    leadDays: [30],
    severities: ['low', 'medium'],
  },
  'snapshot.failed': {
    text: 'the last snapshot of {name} is unusable',
    fix: 'run dke snapshot show for the reason, then dke snapshot create',
    end: 'a newer snapshot is valid, or it is deleted',
    action: 'View snapshots',
    page: '/snapshots',
    leadDays: [],
    severities: ['high'],
  },
  'snapshot.old': {
    text: 'the last valid snapshot of {name} was verified more than a week ago',
    fix: 'run dke snapshot create, or set [snapshots] schedule in dke.toml; regularly run dke snapshot verify with the recovery key',
    end: 'a snapshot was verified within a week',
    action: 'View snapshots',
    page: '/snapshots',
    leadDays: [],
    severities: ['medium'],
  },
  'snapshot.none': {
    text: 'there is no snapshot of {name}',
    fix: 'run dke recovery-key create, dke recovery-key register, then dke snapshot create',
    end: 'there is a snapshot, or no key',
    action: 'View snapshots',
    page: '/snapshots',
    leadDays: [],
    severities: ['high'],
  },
  'snapshot.unopened': {
    text: 'no snapshot of {name} was opened with a recovery key recently: a restore may not be possible',
    fix: 'run dke snapshot verify with the recovery key, within a week of the first snapshot and then every six months',
    end: 'a snapshot was opened with a recovery key',
    action: 'View snapshots',
    page: '/snapshots',
    leadDays: [],
    severities: ['medium'],
  },
  'snapshot.folder-missing': {
    text: 'the snapshot folder {name} is missing: its disk is not mounted, or it is the wrong folder',
    fix: 'mount it; until then, no snapshots are created, and the erasure of destroyed keys waits or reports them ([erasure] missing_snapshots)',
    end: 'the folder is there',
    action: 'View snapshots',
    page: '/snapshots',
    leadDays: [],
    severities: ['high'],
  },
  'backup.old': {
    text: 'the service has no recent backup: {name}',
    fix: 'on its host, run systemctl enable --now dke-backup.timer for a backup every night, and systemctl start dke-backup.service for one now (docs/backup.md)',
    end: 'there is a recent backup',
    action: 'View settings',
    page: '/settings',
    leadDays: [],
    severities: ['high'],
  },
  'root.backup-old': {
    text: 'the backup of the root key is useless: the root key has been replaced since',
    fix: 'on the host of the service, run dke root backup --out FILE, then dke snapshot create',
    end: 'there is a backup of the current root key',
    action: 'View the setup',
    page: '/setup',
    leadDays: [],
    severities: ['high'],
  },
  'setup.risk-accepted': {
    text: 'risks of the setup are accepted: {name}',
    fix: 'complete these steps; dke setup show says how far each is',
    end: 'the steps are done, or opened again',
    action: 'View the setup',
    page: '/setup',
    leadDays: [],
    causes: ['steps'],
    severities: ['medium'],
  },
  'erasure.blocked': {
    text: 'the erasure of destroyed keys is blocked by damaged records, nodes, standbys of the database, or missing snapshots',
    fix: 'run dke status for the cause: restore a backup made since the last run or give up the key; start or remove the node; bring the standby up to date or drop its slot; restore or delete the snapshots',
    end: 'the run is no longer blocked',
    action: 'View what blocks it',
    page: '/settings',
    leadDays: [],
    causes: ['records', 'recordIds', 'nodes', 'standbys', 'snapshots'],
    severities: ['critical'],
  },
  'erasure.failed': {
    text: 'the erasure run of destroyed keys failed and will be retried',
    fix: 'run dke status for the reason; until it succeeds, old copies of the database may still contain destroyed keys',
    end: 'a run succeeds',
    action: 'View the reason',
    page: '/settings',
    leadDays: [],
    severities: ['high'],
  },
  'erasure.copies-left': {
    text: 'destroyed keys can still be recovered, because the service knows copies that open them: {name}',
    fix: 'run dke copy list --left; destroy the files that you do not need, and run dke copy confirm-destroyed; dke snapshot of-key shows the copies of one key',
    end: 'the copies are destroyed and confirmed',
    action: 'View copies',
    page: '/snapshots',
    leadDays: [],
    causes: ['keys'],
    severities: ['medium'],
  },
  'health.failing': {
    text: 'the service failed its own check: {name}',
    fix: "run dke status, on the node that is named, to see what failed; the server's log names the reason",
    end: 'the check passes',
    action: 'View the service state',
    page: '/settings',
    leadDays: [],
    severities: ['critical'],
  },
  'memory.unlocked': {
    text: 'key memory is not locked: keys could be written to swap',
    fix: 'raise LimitMEMLOCK of the service and restart it',
    end: 'key memory is locked',
    action: 'View settings',
    page: '/settings',
    leadDays: [],
    severities: ['medium'],
  },
  'requests.sink-lost': {
    text: 'records never reach the sink {name}: it refuses them, or they were removed before',
    fix: 'run dke audit sinks; the log of the service names records that the sink refuses: raise the limits of the sink; for removed ones, make the sink reachable or faster, or keep the request log longer (limits.request_log_rows, limits.request_log_days)',
    end: 'a day after the last loss',
    action: 'View sinks',
    page: '/audit/sinks',
    leadDays: [],
    severities: ['medium'],
  },
  'requests.dropped': {
    text: 'records of the request log were dropped since the start: the store could not keep up',
    fix: 'no request failed, and the audit log is complete; use a faster disk or send fewer requests',
    end: 'the service is restarted',
    action: 'View the request log',
    page: '/requests',
    leadDays: [],
    severities: ['low'],
  },
  'clock.jumped': {
    text: 'the clock has jumped: until it is confirmed, nothing is purged, deleted or pruned by a deadline',
    fix: 'correct the clock of the host; when it is right, run dke clock confirm --time TIME with the time of a clock that you trust',
    end: 'the clock is confirmed',
    action: 'View the service state',
    page: '/settings',
    leadDays: [],
    severities: ['critical'],
  },
  'log.failing': {
    text: 'the log of the service cannot be written',
    fix: 'free space on the disk of [log] destination in dke.toml; writing then continues automatically, and dke_log_lost_lines_total counts lost lines',
    end: 'the log can be written',
    action: 'View settings',
    page: '/settings',
    leadDays: [],
    severities: ['medium'],
  },
  'node.offline': {
    text: 'the node {name} is offline',
    fix: 'check its host; start the node, or remove it if it does not come back: dke node remove',
    end: 'the node is back, or is removed',
    action: 'View nodes',
    page: '/nodes',
    leadDays: [],
    severities: ['high'],
  },
} as const satisfies Record<string, NotificationRow>;
export type NotificationKind = keyof typeof notificationKinds;
export const notificationKindNames = Object.keys(notificationKinds) as NotificationKind[];
/** One whose row was changed from outside, or written by a newer version. */
const unknownKind: NotificationRow = {
  text: 'this kind of notification is unknown to this version: {name}',
  fix: 'check it, then acknowledge it',
  end: 'it is acknowledged',
  action: 'View notifications',
  page: '/notifications',
  leadDays: [],
  severities: ['low'],
};
export const notificationRow = (kind: NotificationKind): NotificationRow => notificationKinds[kind] ?? unknownKind;

/** Something that is so now. */
export interface Condition {
  readonly kind: NotificationKind;
  /** The service's own tenant where it is about the platform. */
  readonly tenantId: string;
  readonly subject: { readonly kind: string; readonly id: string; readonly name: string };
  /** When it does harm; null: it does. */
  readonly harmAt: number | null;
  /** In place of those of the kind. */
  readonly leadDays?: readonly number[];
  readonly details: { readonly [name: string]: AuditValue };
}

export interface Notification {
  readonly id: string;
  readonly kind: NotificationKind;
  readonly tenantId: string;
  readonly subject: Condition['subject'];
  readonly severity: AuditSeverity;
  /** Counts up from 1. */
  readonly stage: number;
  readonly harmAt: number;
  readonly details: Condition['details'];
  readonly raisedAt: number;
  readonly resolvedAt: number | null;
  readonly acknowledgedAt: number | null;
  readonly acknowledgedBy: string | null;
}

/** 0: it is too early to say anything. */
export const stageOf = (
  { kind, harmAt, leadDays = notificationRow(kind).leadDays }: Condition,
  now: number,
): number => {
  if (leadDays.length === 0) return 1;
  if (harmAt === null || harmAt <= now) return leadDays.length + 1;
  return leadDays.filter((days) => harmAt - now <= days * dayMs).length;
};

/** Whether it is so because of something that was not known before. */
export const hasNewCause = (
  { kind, details }: Pick<Condition, 'kind' | 'details'>,
  before: Condition['details'],
): boolean =>
  (notificationRow(kind).causes ?? []).some((name) => {
    const [now, known] = [details[name], before[name]];
    // An older version did not tell it.
    if (known === undefined || now === undefined) return false;
    if (Array.isArray(now)) {
      const all = new Set<unknown>(Array.isArray(known) ? known : []);
      return now.some((each) => !all.has(each));
    }
    return typeof now === 'number' && typeof known === 'number' ? now > known : now !== known;
  });

export const severityOf = (kind: NotificationKind, stage: number): AuditSeverity => {
  const { severities } = notificationRow(kind);
  return severities[Math.min(stage, severities.length) - 1] ?? severities[0];
};

export const textOf = ({ kind, subject }: Pick<Notification, 'kind' | 'subject'>): string =>
  notificationRow(kind).text.replace('{name}', subject.name);

/** Where in the console something is done about it. */
export const placeOf = ({ kind, subject }: Pick<Notification, 'kind' | 'subject'>): string =>
  notificationRow(kind).page.replace('{id}', encodeURIComponent(subject.id));

const order: readonly AuditSeverity[] = ['info', 'low', 'medium', 'high', 'critical'];
export const isAtLeast = (severity: AuditSeverity, least: AuditSeverity): boolean =>
  order.indexOf(severity) >= order.indexOf(least);
export const severitiesFrom = (least: AuditSeverity): readonly AuditSeverity[] => order.slice(order.indexOf(least));

export interface NotificationFilter {
  readonly kind?: NotificationKind | undefined;
  /** The lowest severity that matches; higher ones match too. */
  readonly minSeverity?: AuditSeverity | undefined;
  /** Whether it is acknowledged. */
  readonly acknowledged?: boolean | undefined;
}

/**
 * How often the keys of a vault are to be rotated: asked for from the first on, overdue from the
 * last on.
 */
export const rotationProfiles = {
  standard: { fromDays: 183, toDays: 365 },
  'high-security': { fromDays: 91, toDays: 183 },
} as const;
export type RotationProfile = keyof typeof rotationProfiles;
/** Every quarter. */
export const credentialDays = 91;
export const certificateDays = 365;
/** NIST SP 800-57: a private signature key signs for one to three years. */
export const auditKeyDays = 730;
