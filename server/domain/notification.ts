// What people are told before it does harm: one table of kinds. A notification is about one thing and is raised once; it grows worse with
// its stages, and ends by itself when its cause is gone. Pure: what is so is found out elsewhere (operations/notifications).

import type { AuditSeverity, AuditValue } from './audit-event.ts';

export const dayMs = 86_400_000;

interface NotificationRow {
  /** What is so; `{name}` is the thing's name. */
  readonly text: string;
  /** What to do about it. */
  readonly cure: string;
  /** The same in a few words, and the page of the console that it begins on; `{id}` is the thing's. */
  readonly action: string;
  readonly page: string;
  /** So many days before the harm it is raised, and raised again; descending. Empty: there is harm as soon as it is so. */
  readonly leadDays: readonly number[];
  /** One for each lead time, and the last one for when the harm is there. */
  readonly severities: readonly [AuditSeverity, ...AuditSeverity[]];
}

export const notificationKinds = {
  'key.rotation-due': {
    text: 'keys of the vault {name} are due for rotation',
    cure: 'rotate them: dke key rotate; older versions go on opening what they sealed',
    action: 'See its keys',
    page: '/keys?vaultId={id}',
    leadDays: [183, 30],
    severities: ['low', 'medium', 'high'],
  },
  'master-key.rotation-due': {
    text: 'the master key of {name} is due for rotation',
    cure: 'set a new one at the database (ADMINISTER KEY MANAGEMENT SET KEY); dke runbook show rotate tells how',
    action: 'Follow the runbook',
    page: '/tde/applications/{id}/runbooks?runbook=rotate',
    leadDays: [183, 30],
    severities: ['low', 'medium', 'high'],
  },
  'endpoint.credential-due': {
    text: 'a credential of the endpoint {name} is due for exchange: quarterly is recommended',
    cure: 'dke endpoint credential add, give it to the cloud, then remove the old one',
    action: 'Rotate the credential',
    page: '/endpoints/{id}/credentials',
    leadDays: [14],
    severities: ['low', 'medium'],
  },
  'application.access-guid-due': {
    text: 'an access_guid of {name} is due for exchange: quarterly is recommended',
    cure: 'dke tde app rotate-guid, lay the new pkcs11.toml down, then remove the old one',
    action: 'Open the application',
    page: '/tde/applications/{id}',
    leadDays: [14],
    severities: ['low', 'medium'],
  },
  'tls.certificate-ending': {
    text: 'the certificate for {name} ends',
    cure: 'put a new one in its place, then systemctl reload dke-server; self-signed: dke server renew-certificate',
    action: 'See the settings',
    page: '/settings',
    leadDays: [30, 7, 1],
    severities: ['low', 'medium', 'high', 'critical'],
  },
  'tls.certificate-old': {
    text: 'the certificate for {name} is about a year old: yearly renewal is recommended',
    cure: 'put a new one, with a new key, in its place; self-signed: dke server renew-certificate',
    action: 'See the settings',
    page: '/settings',
    leadDays: [30],
    severities: ['info', 'low'],
  },
  'tls.file-unusable': {
    text: 'the next start cannot serve the certificate: {name}',
    cure: 'put the file back before a restart, then systemctl reload dke-server; clients are served from memory until then',
    action: 'See the settings',
    page: '/settings',
    leadDays: [],
    severities: ['high'],
  },
  'client-authority.ending': {
    text: 'an authority of client certificates of the endpoint {name} ends',
    cure: 'dke endpoint set --client-ca with a bundle that has the new one too',
    action: 'Open the endpoint',
    page: '/endpoints/{id}',
    leadDays: [30, 7, 1],
    severities: ['low', 'medium', 'high', 'critical'],
  },
  'client-certificate.ending': {
    text: 'a client certificate of the application {name} expires',
    cure: 'dke tde app callers --add-certificate with a new one, then client_certificate and client_key in pkcs11.toml',
    action: 'Open the application',
    page: '/tde/applications/{id}',
    leadDays: [30, 7, 1],
    severities: ['low', 'medium', 'high', 'critical'],
  },
  'token.expiring': {
    text: 'the API token {name} expires',
    cure: 'create another with the same roles where it is still used, and revoke this one',
    action: 'See the tokens',
    page: '/tokens',
    leadDays: [30, 7, 1],
    severities: ['info', 'low', 'medium', 'medium'],
  },
  'token.old': {
    text: 'the API token {name} has no end and has become old',
    cure: 'dke token create with the same roles and --expires, use the new token, then dke token revoke',
    action: 'See the tokens',
    page: '/tokens',
    leadDays: [],
    severities: ['low'],
  },
  'token.key-old': {
    text: 'the key that hashes API tokens is due for rotation',
    cure: 'dke token rotate-key; tokens stay valid. When all were used: dke token end-former-key',
    action: 'See the tokens',
    page: '/tokens',
    leadDays: [30],
    severities: ['info', 'low'],
  },
  'token.former-key': {
    text: 'API tokens are accepted under a former key a month after its rotation',
    cure: 'dke token end-former-key; it names the tokens that were not used since',
    action: 'See the tokens',
    page: '/tokens',
    leadDays: [],
    severities: ['low'],
  },
  'session.key-old': {
    text: 'the key that hashes sessions is due for rotation',
    cure: 'dke session rotate-key; everyone signs in again',
    action: 'See the settings',
    page: '/settings',
    leadDays: [30],
    severities: ['info', 'low'],
  },
  'administrator.recovered': {
    text: 'an administrator token was created on the host of the service: {name}',
    cure: 'check with who runs the host that this was intended; if not, revoke the token and see dke audit list --kind administrator.recovered',
    action: 'See the tokens',
    page: '/tokens',
    leadDays: [],
    severities: ['critical'],
  },
  'key-store.disconnected': {
    text: 'the external key store {name} is not connected',
    cure: 'dke doctor endpoint names the first layer that fails',
    action: 'See the key stores',
    page: '/external-key-stores',
    leadDays: [],
    severities: ['critical'],
  },
  'endpoint.failing': {
    text: 'the endpoint {name} refuses requests',
    cure: 'dke endpoint requests --result refused, then dke doctor endpoint',
    action: 'Run the diagnostics',
    page: '/endpoints/{id}/diagnostics',
    leadDays: [],
    severities: ['high'],
  },
  'endpoint.late': {
    text: 'the endpoint {name} answers too late: some requests of the last hour took longer than 250 ms, where the cloud gives up',
    cure: 'dke latency shows since when; dke doctor endpoint names the phase that is slow',
    action: 'Run the diagnostics',
    page: '/endpoints/{id}/diagnostics',
    leadDays: [],
    severities: ['critical'],
  },
  'endpoint.slow': {
    text: 'the endpoint {name} is slow: more than 1 % of the last hour took longer than 100 ms',
    cure: 'dke latency shows since when; dke doctor endpoint names the phase that is slow',
    action: 'Run the diagnostics',
    page: '/endpoints/{id}/diagnostics',
    leadDays: [],
    severities: ['medium'],
  },
  'endpoint.tampered': {
    text: 'the endpoint {name} was changed from outside: every request is refused',
    cure: 'compare the database with a backup; the audit log names the record',
    action: 'Run the diagnostics',
    page: '/endpoints/{id}/diagnostics',
    leadDays: [],
    severities: ['critical'],
  },
  'endpoint.credential-unused': {
    text: 'the new credential of the endpoint {name} signs nothing yet',
    cure: 'enter it at the cloud key service, then remove the old one',
    action: 'Go on with the rotation',
    page: '/endpoints/{id}/credentials',
    leadDays: [7],
    severities: ['low', 'medium'],
  },
  'approval.pending': {
    text: 'the request for approval about {name} waits',
    cure: 'dke approval show, then approve or refuse it',
    action: 'See the approvals',
    page: '/approvals',
    leadDays: [],
    severities: ['medium'],
  },
  'dual-control.unsatisfiable': {
    text: 'there are too few approvers for the dual control of the vault {name}',
    cure: 'give others the role key-approver; until then nothing that the rule governs can be done',
    action: 'See the users',
    page: '/users',
    leadDays: [],
    severities: ['high'],
  },
  'audit.sink-behind': {
    text: 'a forwarded log does not reach its sink {name}',
    cure: 'run dke audit sinks for the reason; audit records are kept until the sink takes them, request records as long as the request log keeps them',
    action: 'See the sinks',
    page: '/audit/sinks',
    leadDays: [],
    severities: ['high'],
  },
  'audit.checkpoint-stale': {
    text: 'records of the audit log wait for a signed checkpoint',
    cure: 'look in the log of the service, and at the room on the disk of the root key',
    action: 'See the log',
    page: '/audit/verification',
    leadDays: [],
    severities: ['high'],
  },
  'audit.key-old': {
    text: 'the key that signs the audit log is due for rotation',
    cure: 'dke audit rotate-key; then keep the new verifierKey, and make a new backup of the root key (dke root backup --out FILE)',
    action: 'See the log',
    page: '/audit/verification',
    leadDays: [30],
    severities: ['low', 'medium'],
  },
  'snapshot.failed': {
    text: 'the last snapshot, of {name}, is unusable',
    cure: 'dke snapshot show names the reason; then dke snapshot create',
    action: 'See the snapshots',
    page: '/snapshots',
    leadDays: [],
    severities: ['high'],
  },
  'snapshot.old': {
    text: 'the last sound snapshot, of {name}, was verified more than a week ago',
    cure: 'dke snapshot create, or [snapshots] schedule in dke.toml; dke snapshot verify with the recovery key from time to time',
    action: 'See the snapshots',
    page: '/snapshots',
    leadDays: [],
    severities: ['medium'],
  },
  'snapshot.none': {
    text: 'there is no snapshot of {name}',
    cure: 'register a recovery key (dke recovery-key create, then dke recovery-key register), then dke snapshot create',
    action: 'See the snapshots',
    page: '/snapshots',
    leadDays: [],
    severities: ['high'],
  },
  'snapshot.unopened': {
    text: 'no snapshot of {name} was opened with a recovery key recently: a restore may not be possible',
    cure: 'dke snapshot verify with the recovery key, within a week of the first snapshot and every six months',
    action: 'See the snapshots',
    page: '/snapshots',
    leadDays: [],
    severities: ['medium'],
  },
  'snapshot.folder-away': {
    text: 'the folder of snapshots {name} is missing: its disk is not mounted, or it is another folder',
    cure: 'mount it; until then no snapshot is made, and destroyed keys wait or are named ([erasure] missing_snapshots)',
    action: 'See the snapshots',
    page: '/snapshots',
    leadDays: [],
    severities: ['high'],
  },
  'backup.old': {
    text: 'the service has no recent backup: {name}',
    cure: 'on its host: dke backup create --out FILE; a timer can run it every night (docs/backup.md)',
    action: 'See the settings',
    page: '/settings',
    leadDays: [],
    severities: ['high'],
  },
  'root.backup-old': {
    text: 'the copy of the root key is useless: the root key was replaced since',
    cure: 'make a new one on the host of the service: dke root backup --out FILE; then dke snapshot create',
    action: 'See the first steps',
    page: '/set-up',
    leadDays: [],
    severities: ['high'],
  },
  'erasure.held': {
    text: 'the erasure of destroyed keys is held back: by damaged records, nodes, standbys of the database, or missing snapshots',
    cure: 'dke status names them: put back a backup made since the last run or give the key up; start or remove the node; bring the standby up to date or drop its slot',
    action: 'See what it waits for',
    page: '/settings',
    leadDays: [],
    severities: ['critical'],
  },
  'erasure.failed': {
    text: 'the erasure run of destroyed keys failed; it is tried again',
    cure: 'dke status says why; until it is done old copies of the database may still hold destroyed keys',
    action: 'See why',
    page: '/settings',
    leadDays: [],
    severities: ['high'],
  },
  'health.failing': {
    text: 'the service does not pass its own check: {name}',
    cure: 'dke status says what failed; the log of the service names the reason',
    action: 'See the state of the service',
    page: '/settings',
    leadDays: [],
    severities: ['critical'],
  },
  'memory.unlocked': {
    text: 'the memory of keys is not locked: keys could reach swap',
    cure: 'raise LimitMEMLOCK of the service and start it again',
    action: 'See the settings',
    page: '/settings',
    leadDays: [],
    severities: ['medium'],
  },
  'requests.sink-lost': {
    text: 'request records were removed before the sink {name} took them',
    cure: 'run dke audit sinks; make the sink reachable or faster, or keep more of the request log (limits.request_log_rows, limits.request_log_days)',
    action: 'See the sinks',
    page: '/audit/sinks',
    leadDays: [],
    severities: ['medium'],
  },
  'requests.dropped': {
    text: 'entries of the request log were dropped since the start: the store did not keep up',
    cure: 'requests were answered and the audit log is whole; a faster disk, or fewer requests, ends it',
    action: 'See the request log',
    page: '/requests',
    leadDays: [],
    severities: ['low'],
  },
  'clock.doubted': {
    text: 'the clock has jumped: until it is confirmed nothing is purged, deleted or pruned by its deadline',
    cure: 'correct the clock of the host; when it is right, dke clock confirm --time TIME, with the time that your own clock shows',
    action: 'See the state of the service',
    page: '/settings',
    leadDays: [],
    severities: ['critical'],
  },
  'log.failing': {
    text: 'the log of the service cannot be written',
    cure: 'free space on the disk of [log] destination in dke.toml; writing continues by itself, and dke_log_lost_lines_total counts lost lines',
    action: 'See the settings',
    page: '/settings',
    leadDays: [],
    severities: ['medium'],
  },
  'node.silent': {
    text: 'the node {name} is offline',
    cure: 'check its host; start the node, or remove it if it does not come back: dke node remove',
    action: 'See the nodes',
    page: '/nodes',
    leadDays: [],
    severities: ['high'],
  },
} as const satisfies Record<string, NotificationRow>;
export type NotificationKind = keyof typeof notificationKinds;
export const notificationKindNames = Object.keys(notificationKinds) as NotificationKind[];
/** One whose row was changed from outside, or written by a newer version. */
const unknownKind: NotificationRow = {
  text: 'this version does not know this kind of notification: {name}',
  cure: 'check it, then acknowledge it',
  action: 'See the notifications',
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
  /** And all above it. */
  readonly leastSeverity?: AuditSeverity | undefined;
  /** Whether it is acknowledged. */
  readonly taken?: boolean | undefined;
}

/** How often the keys of a vault are to be rotated: asked for from the first on, overdue from the last on. */
export const rotationProfiles = {
  standard: { fromDays: 183, toDays: 365 },
  'high-security': { fromDays: 91, toDays: 183 },
} as const;
export type RotationProfile = keyof typeof rotationProfiles;
/** Quarterly (specification section 5). */
export const credentialDays = 91;
export const certificateDays = 365;
/** NIST SP 800-57: a private signature key signs for one to three years. */
export const auditKeyDays = 730;
