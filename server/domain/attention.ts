// What needs somebody today: each finding with when it does harm and the one thing to do about it. Pure: what is known goes in, rows
// come out, the soonest harm first.

import type { LatencySummary } from './latency.ts';

const day = 86_400_000;

/** How long before the harm it is told, and how old things may become. */
export const attentionRules = {
  certificateDays: 30,
  certificateUrgentDays: 10,
  tokenDays: 14,
  /** The quarterly rotation of credentials. */
  credentialDays: 90,
  /** Master keys are rotated every 6 to 12 months. */
  masterKeyDays: 365,
  masterKeyNoticeDays: 30,
  /** A new credential is used within this, or the change-over is stuck. */
  unusedCredentialDays: 7,
} as const;

export type AttentionKind =
  | 'health'
  | 'endpoint-failing'
  | 'endpoint-slow'
  | 'key-store-disconnected'
  | 'certificate-expiring'
  | 'erasure-held'
  | 'memory-unlocked'
  | 'audit-sink-failing'
  | 'requests-dropped'
  | 'master-key-due'
  | 'credential-due'
  | 'credential-unused'
  | 'token-expiring'
  | 'row-tampered';

export interface AttentionItem {
  readonly kind: AttentionKind;
  readonly severity: 'critical' | 'warning' | 'notice';
  readonly title: string;
  readonly detail: string;
  /** When it does harm; null: it does now. */
  readonly dueAt: number | null;
  readonly subject: { readonly kind: string; readonly id: string; readonly name: string } | null;
  /** What to do, and the page of the console that it is done on. */
  readonly action: string;
  readonly page: string;
}

export interface AttentionFacts {
  readonly now: number;
  /** Null: the caller sees one tenant, not the platform. */
  readonly platform: {
    readonly failedChecks: readonly { readonly name: string; readonly detail: string }[];
    readonly certificates: readonly { readonly names: readonly string[]; readonly endsAt: number }[];
    readonly erasure: { readonly state: string; readonly failure: string | null };
    readonly memoryLocked: boolean;
    readonly droppedRequests: number;
    readonly sinks: readonly {
      readonly name: string;
      readonly lag: number;
      readonly failure: { readonly since: number; readonly message: string } | null;
    }[];
  } | null;
  readonly endpoints: readonly {
    readonly id: string;
    readonly name: string;
    readonly state: string;
    readonly tampered: boolean;
    readonly credentials: readonly {
      readonly accessKeyId: string;
      readonly createdAt: number;
      readonly lastUsedAt: number | null;
    }[];
    /** Of the last hour. */
    readonly latency: LatencySummary;
  }[];
  readonly keyStores: readonly {
    readonly id: string;
    readonly name: string;
    readonly state: string;
    readonly errorCode: string | null;
    readonly since: number | null;
  }[];
  readonly masterKeys: readonly {
    readonly applicationId: string;
    readonly applicationName: string;
    readonly createdAt: number;
  }[];
  readonly tokens: readonly { readonly id: string; readonly name: string; readonly expiresAt: number }[];
}

const severities = ['critical', 'warning', 'notice'] as const;
const share = (part: number, whole: number): string =>
  `${((part / whole) * 100).toFixed(part / whole < 0.1 ? 1 : 0)} %`;

const ofPlatform = (now: number, facts: NonNullable<AttentionFacts['platform']>): readonly AttentionItem[] => [
  ...facts.failedChecks.map(
    ({ name, detail }): AttentionItem => ({
      kind: 'health',
      severity: 'critical',
      title: `The health check ${name} fails`,
      detail,
      dueAt: null,
      subject: null,
      action: 'Look at the state of the service',
      page: '/settings',
    }),
  ),
  ...facts.certificates
    .filter(({ endsAt }) => endsAt - now < attentionRules.certificateDays * day)
    .map(
      ({ names, endsAt }): AttentionItem => ({
        kind: 'certificate-expiring',
        severity: endsAt - now < attentionRules.certificateUrgentDays * day ? 'critical' : 'warning',
        title: endsAt <= now ? 'The TLS certificate has expired' : 'The TLS certificate expires',
        detail: `${names.slice(0, 3).join(', ')}: clouds and databases refuse the connection from then on`,
        dueAt: endsAt <= now ? null : endsAt,
        subject: null,
        action: 'Put the new certificate in place',
        page: '/settings',
      }),
    ),
  ...(facts.erasure.state === 'held' || facts.erasure.state === 'failed'
    ? [
        {
          kind: 'erasure-held',
          severity: 'critical',
          title: facts.erasure.state === 'held' ? 'The erasure turn is held back' : 'The erasure turn failed',
          detail: facts.erasure.failure ?? 'stored records do not open; destroyed keys wait for it',
          dueAt: null,
          subject: null,
          action: 'See which records',
          page: '/settings',
        } satisfies AttentionItem,
      ]
    : []),
  ...(facts.memoryLocked
    ? []
    : [
        {
          kind: 'memory-unlocked',
          severity: 'warning',
          title: 'Key memory is not locked',
          detail: 'keys could reach swap; raise LimitMEMLOCK of the service and start it again',
          dueAt: null,
          subject: null,
          action: 'See the settings',
          page: '/settings',
        } satisfies AttentionItem,
      ]),
  ...facts.sinks
    .filter(({ failure }) => failure !== null)
    .map(
      ({ name, lag, failure }): AttentionItem => ({
        kind: 'audit-sink-failing',
        severity: 'warning',
        title: `The audit sink ${name} does not take records`,
        detail: `${failure?.message ?? ''}; ${lag} records wait, none is lost`,
        dueAt: null,
        subject: null,
        action: 'See the sinks',
        page: '/audit/sinks',
      }),
    ),
  ...(facts.droppedRequests === 0
    ? []
    : [
        {
          kind: 'requests-dropped',
          severity: 'notice',
          title: `${facts.droppedRequests} request log entries were dropped`,
          detail: 'the store did not keep up; requests were answered, and the audit log is not affected',
          dueAt: null,
          subject: null,
          action: 'See the request log',
          page: '/requests',
        } satisfies AttentionItem,
      ]),
];

const ofEndpoint = (now: number, endpoint: AttentionFacts['endpoints'][number]): readonly AttentionItem[] => {
  const { id, name, latency } = endpoint;
  const subject = { kind: 'endpoint', id, name };
  const diagnose = { subject, action: 'Run the diagnostics', page: `/endpoints/${id}/diagnostics` } as const;
  const newest = endpoint.credentials.reduce<number>((latest, { createdAt }) => Math.max(latest, createdAt), 0);
  const found: AttentionItem[] = [];
  if (endpoint.tampered)
    found.push({
      kind: 'row-tampered',
      severity: 'critical',
      title: `${name} was changed from outside`,
      detail: 'its stored row does not hold; every request is refused',
      dueAt: null,
      ...diagnose,
    });
  if (endpoint.state !== 'enabled') return found;
  if (latency.overLost > 0)
    found.push({
      kind: 'endpoint-slow',
      severity: 'critical',
      title: `${name} answers too late`,
      detail: `${share(latency.overLost, latency.requests)} of the last hour took longer than 250 ms, where the cloud gives up`,
      dueAt: null,
      ...diagnose,
    });
  else if (latency.requests > 0 && latency.overSlow / latency.requests > 0.01)
    found.push({
      kind: 'endpoint-slow',
      severity: 'warning',
      title: `${name} is slow`,
      detail: `${share(latency.overSlow, latency.requests)} of the last hour took longer than 100 ms`,
      dueAt: null,
      ...diagnose,
    });
  if (latency.requests > 0 && latency.errors / latency.requests > 0.01)
    found.push({
      kind: 'endpoint-failing',
      severity: latency.errors / latency.requests > 0.5 ? 'critical' : 'warning',
      title: `${name} refuses requests`,
      detail: `${latency.errors} of ${latency.requests} of the last hour`,
      dueAt: null,
      ...diagnose,
    });
  for (const { accessKeyId, createdAt, lastUsedAt } of endpoint.credentials) {
    const due = createdAt + attentionRules.credentialDays * day;
    const rotate = { subject, action: 'Rotate the credential', page: `/endpoints/${id}/credentials` } as const;
    if (createdAt === newest && due - now < 7 * day)
      found.push({
        kind: 'credential-due',
        severity: due <= now ? 'warning' : 'notice',
        title: `A credential of ${name} is due for rotation`,
        detail: `${accessKeyId}, every ${attentionRules.credentialDays} days`,
        dueAt: due,
        ...rotate,
      });
    if (endpoint.credentials.length > 1 && createdAt === newest && lastUsedAt === null)
      found.push({
        kind: 'credential-unused',
        severity: 'notice',
        title: `The new credential of ${name} signs nothing yet`,
        detail: `${accessKeyId}: enter it at the cloud key service, then remove the old one`,
        dueAt: createdAt + attentionRules.unusedCredentialDays * day,
        ...rotate,
      });
  }
  return found;
};

/** The soonest harm first; among those of now the worst. */
export const findAttention = (facts: AttentionFacts): readonly AttentionItem[] => {
  const { now } = facts;
  const found: AttentionItem[] = [
    ...(facts.platform === null ? [] : ofPlatform(now, facts.platform)),
    ...facts.endpoints.flatMap((endpoint) => ofEndpoint(now, endpoint)),
    ...facts.keyStores
      .filter(({ state }) => state === 'FAILED' || state === 'DISCONNECTED')
      .map(
        ({ id, name, state, errorCode }): AttentionItem => ({
          kind: 'key-store-disconnected',
          severity: state === 'FAILED' ? 'critical' : 'warning',
          title: `${name} is ${state === 'FAILED' ? 'not connected' : 'disconnected'}`,
          detail: errorCode ?? 'the cloud uses no key behind it',
          dueAt: null,
          subject: { kind: 'external-key-store', id, name },
          action: 'See the key stores',
          page: '/external-key-stores',
        }),
      ),
    ...facts.masterKeys.flatMap(({ applicationId, applicationName, createdAt }): readonly AttentionItem[] => {
      const due = createdAt + attentionRules.masterKeyDays * day;
      if (due - now > attentionRules.masterKeyNoticeDays * day) return [];
      return [
        {
          kind: 'master-key-due',
          severity: due <= now ? 'warning' : 'notice',
          title: `The master key of ${applicationName} is due for rotation`,
          detail: 'every 6 to 12 months; 3 to 6 where security is high',
          dueAt: due,
          subject: { kind: 'application', id: applicationId, name: applicationName },
          action: 'Follow the runbook',
          page: `/tde/applications/${applicationId}/runbooks?runbook=rotate`,
        },
      ];
    }),
    ...facts.tokens
      .filter(({ expiresAt }) => expiresAt > now && expiresAt - now < attentionRules.tokenDays * day)
      .map(
        ({ id, name, expiresAt }): AttentionItem => ({
          kind: 'token-expiring',
          severity: 'notice',
          title: `The token ${name} expires`,
          detail: 'what uses it is refused from then on',
          dueAt: expiresAt,
          subject: { kind: 'token', id, name },
          action: 'Make a new one',
          page: '/tokens',
        }),
      ),
  ];
  return found.sort(
    (a, b) => (a.dueAt ?? now) - (b.dueAt ?? now) || severities.indexOf(a.severity) - severities.indexOf(b.severity),
  );
};
