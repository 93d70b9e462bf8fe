// What people are told before it does harm: one table of kinds. A notification is about one thing and is raised once; it grows worse with
// its stages, and ends by itself when its cause is gone. Pure: what is so is found out elsewhere (operations/notifications).

import type { AuditSeverity, AuditValue } from './audit-event.ts';

export const dayMs = 86_400_000;

interface NotificationRow {
  /** What is so; `{name}` is the thing's name. */
  readonly text: string;
  /** What to do about it. */
  readonly cure: string;
  /** So many days before the harm it is raised, and raised again; descending. Empty: there is harm as soon as it is so. */
  readonly leadDays: readonly number[];
  /** One for each lead time, and the last one for when the harm is there. */
  readonly severities: readonly [AuditSeverity, ...AuditSeverity[]];
}

export const notificationKinds = {
  'key.rotation-due': {
    text: 'keys of the vault {name} are due for rotation',
    cure: 'rotate them: dke key rotate; older versions go on opening what they sealed',
    leadDays: [183, 30],
    severities: ['low', 'medium', 'high'],
  },
  'master-key.rotation-due': {
    text: 'the master key of {name} is due for rotation',
    cure: 'set a new one at the database (ADMINISTER KEY MANAGEMENT SET KEY); dke runbook show rotate tells how',
    leadDays: [183, 30],
    severities: ['low', 'medium', 'high'],
  },
  'endpoint.credential-due': {
    text: 'a credential of the endpoint {name} is due for exchange: quarterly is recommended',
    cure: 'dke endpoint credential add, give it to the cloud, then remove the old one',
    leadDays: [14],
    severities: ['low', 'medium'],
  },
  'application.access-guid-due': {
    text: 'an access_guid of {name} is due for exchange: quarterly is recommended',
    cure: 'dke tde app rotate-guid, lay the new pkcs11.toml down, then remove the old one',
    leadDays: [14],
    severities: ['low', 'medium'],
  },
  'tls.certificate-ending': {
    text: 'the certificate for {name} ends',
    cure: 'put a new one in its place: it is taken without a restart (SIGHUP)',
    leadDays: [30, 7, 1],
    severities: ['low', 'medium', 'high', 'critical'],
  },
  'tls.certificate-old': {
    text: 'the certificate for {name} is about a year old: yearly renewal is recommended',
    cure: 'put a new one, with a new key, in its place',
    leadDays: [30],
    severities: ['info', 'low'],
  },
  'client-authority.ending': {
    text: 'an authority of client certificates of the endpoint {name} ends',
    cure: 'dke endpoint set --client-ca with a bundle that has the new one too',
    leadDays: [30, 7, 1],
    severities: ['low', 'medium', 'high', 'critical'],
  },
  'token.expiring': {
    text: 'the API token {name} expires',
    cure: 'create another with the same roles where it is still used, and revoke this one',
    leadDays: [30, 7, 1],
    severities: ['info', 'low', 'medium', 'medium'],
  },
  'key-store.disconnected': {
    text: 'the external key store {name} is not connected',
    cure: 'dke doctor endpoint names the first layer that fails',
    leadDays: [],
    severities: ['critical'],
  },
  'endpoint.failing': {
    text: 'the endpoint {name} refuses requests',
    cure: 'dke endpoint requests --result refused, then dke doctor endpoint',
    leadDays: [],
    severities: ['high'],
  },
  'approval.pending': {
    text: 'the request for approval about {name} waits',
    cure: 'dke approval show, then approve or refuse it',
    leadDays: [],
    severities: ['medium'],
  },
  'dual-control.unsatisfiable': {
    text: 'there are too few approvers for the dual control of the vault {name}',
    cure: 'give others the role key-approver; until then nothing that the rule governs can be done',
    leadDays: [],
    severities: ['high'],
  },
  'audit.sink-behind': {
    text: 'the audit log does not reach its sink {name}',
    cure: 'dke audit sinks names the reason; nothing is lost, it is sent again',
    leadDays: [],
    severities: ['high'],
  },
  'audit.checkpoint-stale': {
    text: 'records of the audit log wait for a signed checkpoint',
    cure: 'look in the log of the service, and at the room on the disk of the root key',
    leadDays: [],
    severities: ['high'],
  },
  'snapshot.failed': {
    text: 'the last snapshot, of {name}, is of no use',
    cure: 'dke snapshot show names the reason; then dke snapshot create',
    leadDays: [],
    severities: ['high'],
  },
  'snapshot.old': {
    text: 'the last sound snapshot, of {name}, was verified more than a week ago',
    cure: 'dke snapshot create, or [snapshots] schedule in dke.toml; dke snapshot verify with the recovery key from time to time',
    leadDays: [],
    severities: ['medium'],
  },
  'erasure.held': {
    text: 'a damaged record holds back the erasure of destroyed keys',
    cure: 'dke status names it: put back a backup made since the last turn, or give the key up',
    leadDays: [],
    severities: ['critical'],
  },
} as const satisfies Record<string, NotificationRow>;
export type NotificationKind = keyof typeof notificationKinds;
export const notificationKindNames = Object.keys(notificationKinds) as NotificationKind[];
export const notificationRow = (kind: NotificationKind): NotificationRow => notificationKinds[kind];

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

const order: readonly AuditSeverity[] = ['info', 'low', 'medium', 'high', 'critical'];
export const isAtLeast = (severity: AuditSeverity, least: AuditSeverity): boolean =>
  order.indexOf(severity) >= order.indexOf(least);

/** How often the keys of a vault are to be rotated: asked for from the first on, overdue from the last on. */
export const rotationProfiles = {
  standard: { fromDays: 183, toDays: 365 },
  'high-security': { fromDays: 91, toDays: 183 },
} as const;
export type RotationProfile = keyof typeof rotationProfiles;
/** Quarterly (specification section 5). */
export const credentialDays = 91;
export const certificateDays = 365;
