// What needs somebody today: each finding has its moment of harm and one thing to do; the soonest comes first.
import { describe, expect, test } from 'vitest';
import { type AttentionFacts, attentionRules, findAttention } from '../../../server/domain/attention.ts';
import { newLatencyCounts, summarizeLatency } from '../../../server/domain/latency.ts';

const day = 86_400_000;
const now = Date.UTC(2026, 10, 21);
const quiet = summarizeLatency(newLatencyCounts());
const well: NonNullable<AttentionFacts['platform']> = {
  failedChecks: [],
  certificates: [{ names: ['keys.example.com'], endsAt: now + 200 * day }],
  erasure: { state: 'idle', failure: null },
  memoryLocked: true,
  droppedRequests: 0,
  sinks: [{ name: 'siem', lag: 0, failure: null }],
};
const nothing: AttentionFacts = {
  now,
  platform: well,
  endpoints: [],
  keyStores: [],
  masterKeys: [],
  tokens: [],
};
const endpoint: AttentionFacts['endpoints'][number] = {
  id: 'e1',
  name: 'aws-eu',
  state: 'enabled',
  tampered: false,
  credentials: [{ accessKeyId: 'A', createdAt: now - 10 * day, lastUsedAt: now - 1000 }],
  latency: { ...quiet, requests: 1000 },
};
const kinds = (facts: Partial<AttentionFacts>) => findAttention({ ...nothing, ...facts }).map(({ kind }) => kind);

describe('what needs somebody', () => {
  test('is nothing while all is well', () => {
    expect(
      kinds({
        endpoints: [endpoint],
        keyStores: [{ id: 'k', name: 'k', state: 'CONNECTED', errorCode: null, since: now }],
      }),
    ).toEqual([]);
  });

  test.each([
    ['a health check fails', { failedChecks: [{ name: 'store', detail: 'gone' }] }, 'health'],
    [
      'a certificate ends in 29 days',
      { certificates: [{ names: ['a'], endsAt: now + 29 * day }] },
      'certificate-expiring',
    ],
    ['the erasure turn is held', { erasure: { state: 'held', failure: null } }, 'erasure-held'],
    ['memory is not locked', { memoryLocked: false }, 'memory-unlocked'],
    ['requests were dropped', { droppedRequests: 3 }, 'requests-dropped'],
    [
      'a sink fails',
      { sinks: [{ name: 's', lag: 9, failure: { since: now, message: 'refused' } }] },
      'audit-sink-failing',
    ],
  ] as const)('%s: it is told to those who see the platform, and to nobody else', (_, change, kind) => {
    expect(kinds({ platform: { ...well, ...change } })).toEqual([kind]);
    expect(kinds({ platform: null })).toEqual([]);
  });

  test.each([
    [
      'one request took longer than 250 ms',
      { ...quiet, requests: 1000, overSlow: 1, overLost: 1 },
      'endpoint-slow',
      'critical',
    ],
    ['more than 1 % took longer than 100 ms', { ...quiet, requests: 1000, overSlow: 11 }, 'endpoint-slow', 'warning'],
    ['more than 1 % were refused', { ...quiet, requests: 1000, errors: 11 }, 'endpoint-failing', 'warning'],
    ['most were refused', { ...quiet, requests: 10, errors: 6 }, 'endpoint-failing', 'critical'],
  ] as const)('%s: the endpoint is told, and its diagnostics are the thing to do', (_, latency, kind, severity) => {
    expect(findAttention({ ...nothing, endpoints: [{ ...endpoint, latency }] })).toMatchObject([
      { kind, severity, dueAt: null, page: '/endpoints/e1/diagnostics' },
    ]);
    expect(kinds({ endpoints: [{ ...endpoint, latency, state: 'disabled' }] })).toEqual([]);
  });

  test('the newest credential is due a quarter after it was made; an older one beside it is on its way out', () => {
    const old = { accessKeyId: 'O', createdAt: now - 100 * day, lastUsedAt: now };
    expect(kinds({ endpoints: [{ ...endpoint, credentials: [old] }] })).toEqual(['credential-due']);
    expect(kinds({ endpoints: [{ ...endpoint, credentials: [old, ...endpoint.credentials] }] })).toEqual([]);
    const unused = { accessKeyId: 'N', createdAt: now - day, lastUsedAt: null };
    expect(kinds({ endpoints: [{ ...endpoint, credentials: [old, unused] }] })).toEqual(['credential-unused']);
  });

  test('a master key is due a year after it was made, and told a month before', () => {
    const made = (days: number) => ({
      masterKeys: [{ applicationId: 'a', applicationName: 'erp', createdAt: now - days * day }],
    });
    expect(kinds(made(attentionRules.masterKeyDays - attentionRules.masterKeyNoticeDays - 1))).toEqual([]);
    expect(findAttention({ ...nothing, ...made(340) })).toMatchObject([
      { kind: 'master-key-due', severity: 'notice', page: '/tde/applications/a/runbooks?runbook=rotate' },
    ]);
    expect(findAttention({ ...nothing, ...made(400) })).toMatchObject([{ severity: 'warning' }]);
  });

  test('the soonest harm comes first, and of what harms now the worst', () => {
    const found = findAttention({
      ...nothing,
      platform: { ...well, certificates: [{ names: ['a'], endsAt: now + 5 * day }] },
      keyStores: [
        { id: 'd', name: 'd', state: 'DISCONNECTED', errorCode: null, since: now },
        { id: 'f', name: 'f', state: 'FAILED', errorCode: 'XKS_PROXY_NOT_REACHABLE', since: now },
      ],
      tokens: [{ id: 't', name: 't', expiresAt: now + 2 * day }],
    });
    expect(found.map(({ kind, severity }) => `${kind} ${severity}`)).toEqual([
      'key-store-disconnected critical',
      'key-store-disconnected warning',
      'token-expiring notice',
      'certificate-expiring critical',
    ]);
  });
});
