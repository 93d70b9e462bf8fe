// Every alert rule fires: the rules are evaluated over numbers that the real service gave in that
// state, as if the state lasted. Where a test cannot reach a state (weeks, several hosts, a full
// table of files), it replaces single numbers of a real answer: `edit`.
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AlertRule, compileRule, readAlertRules, type Scrape } from '../support/alert-rules.ts';
import { freePort } from '../support/daemon.ts';
import { type ExpositionSample, readExposition } from '../support/exposition.ts';
import { until } from '../support/host.ts';
import { type Site, startSite } from '../support/site.ts';
import { mountSmallDisk } from '../support/small-disk.ts';
import { createXksEndpoint } from '../support/xks-call.ts';

const rules = readAlertRules();

/** What the service answered at the beginning of a state and later in it. */
interface State {
  readonly first: Scrape;
  readonly last: Scrape;
}
const none: Scrape = { at: 0, samples: [] };
const states = new Map<string, State>();

let site: Site;
const scrape = async (): Promise<Scrape> => {
  const sent = request(new URL('/metrics', site.server.url), { ca: readFileSync(site.server.caFile), agent: false });
  sent.end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  const text = Buffer.concat(await answer.toArray()).toString('utf8');
  expect(answer.statusCode, text).toBe(200);
  return { at: Date.now() / 1000, samples: readExposition(text).samples };
};
const numberOf = ({ samples }: Scrape, name: string): number | undefined =>
  samples.find((sample) => sample.name === name)?.value;
/** The state is reached when `is` returns true for an answer. */
const reach = async (
  name: string,
  first: Scrape,
  is: (now: Scrape) => boolean,
  before?: () => Promise<unknown>,
): Promise<void> => {
  const last = await until(name, async () => {
    await before?.();
    const now = await scrape();
    return is(now) ? now : undefined;
  });
  states.set(name, { first, last });
};

const disk = mountSmallDisk('4m');
const passphrase = '[[root.providers]]\nname = "people"\ntype = "passphrase"\n';
const toml = (more: string): string => `${passphrase}${more}
[snapshots]
directory = ${JSON.stringify(typeof disk === 'string' ? 'snapshots' : disk.folder)}
[[audit.sinks]]
name = "collector"
type = "https"
url = "https://127.0.0.1:${closedPort}/"
`;
let closedPort: number;

beforeAll(async () => {
  closedPort = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'dke-alerts-'));
  writeFileSync(join(folder, 'passphrase'), 'correct horse battery staple\n', { mode: 0o600 });
  site = await startSite({ folder, toml: toml('file = "passphrase"') });
  const database = join(site.server.dataDirectory, 'dke.db');
  await site.stopServer();
  copyFileSync(database, `${database}.old`);
  await site.startServer();

  const first = await scrape();
  const endpoint = await createXksEndpoint(site, 'watched');
  expect((await endpoint.encrypt(Buffer.alloc(32, 7))).status).toBe(200);
  // A change of the last minute has no checkpoint yet.
  let changes = 0;
  await reach(
    'running',
    first,
    (now) => (numberOf(now, 'dke_audit_unsealed_records') ?? 0) > 0,
    () => site.api.call('POST', '/api/vaults', { name: `change ${++changes}` }),
  );
  await reach('unreachable sink', first, ({ samples }) =>
    samples.some(({ name, value }) => name === 'dke_audit_sink_failing' && value === 1),
  );
  const open = { authorization: '', origin: site.server.url };
  for (let count = 0; count < 6; count += 1)
    await site.api.send('POST', '/api/session', { user: 'ada', password: 'a wrong one, long enough' }, open);
  await reach('guessing', first, (now) => (numberOf(now, 'dke_sign_in_locked') ?? 0) > 0);
  if (typeof disk !== 'string') {
    disk.fill();
    await reach('full disk', first, ({ samples }) =>
      samples.some(
        ({ name, labels, value }) => name === 'dke_disk_free_bytes' && labels.place === 'snapshots' && value === 0,
      ),
    );
    disk.free();
  }
  await site.stopServer();

  for (const end of ['-wal', '-shm']) rmSync(`${database}${end}`, { force: true });
  copyFileSync(`${database}.old`, database);
  await site.startServer();
  const before = await scrape();
  expect((await site.api.send('POST', '/api/vaults', { name: 'refused' })).status).toBe(503);
  await reach(
    'quarantined',
    before,
    (now) => numberOf(now, 'dke_quarantined') === 1 && numberOf(now, 'dke_healthy') === 0,
  );
  await site.stopServer();
  await site.startServer(toml(''));
  await reach('sealed', none, (now) => numberOf(now, 'dke_sealed') === 1);
  await site.stopServer();
  // Prometheus itself adds this number for a target that does not answer.
  states.set('stopped', { first: none, last: { at: 0, samples: [{ name: 'up', labels: { job: 'dke' }, value: 0 }] } });
});
afterAll(async () => {
  await site?.end();
  if (site !== undefined) rmSync(site.folder, { recursive: true, force: true });
  if (typeof disk !== 'string') disk.end();
});

type Edit = Readonly<
  Record<
    string,
    { readonly labels?: Readonly<Record<string, string>>; readonly value: number; readonly perMinute?: number }
  >
>;
interface Case {
  readonly state: string;
  /** Replaces the samples of a name. */
  readonly edit?: Edit;
  /** How long the state lasts before the rule is evaluated, next to its own `for`. */
  readonly minutes?: number;
}
const day = 86_400;
const grows = (labels: Readonly<Record<string, string>> = {}) => ({ labels, value: 0, perMinute: 10 });
const xks = { endpoint: 'e', operation: 'encrypt' };
const shared: Case = { state: 'running' };

const cases: Readonly<Record<string, Case>> = {
  DkeDown: { state: 'stopped' },
  DkeUnhealthy: { state: 'quarantined' },
  DkeSealed: { state: 'sealed' },
  DkeQuarantined: { state: 'quarantined' },
  DkeMetricsIncomplete: { ...shared, edit: { dke_metrics_incomplete: { value: 1 } } },
  DkeRootBackupOld: shared,
  DkeBackupOld: shared,
  DkeClockJumped: { ...shared, edit: { dke_clock_jumped: { value: 1 } } },
  DkeRestarts: { ...shared, edit: { process_start_time_seconds: { labels: { job: 'dke' }, value: 0, perMinute: 5 } } },
  DkeEventLoopBusy: { ...shared, edit: { dke_event_loop_active_seconds_total: { value: 0, perMinute: 55 } } },
  DkeEventLoopBlocked: {
    ...shared,
    edit: {
      dke_event_loop_delay_seconds_bucket: { labels: { le: '0.05' }, value: 0, perMinute: 2900 },
      dke_event_loop_delay_seconds_count: { value: 0, perMinute: 3000 },
    },
  },
  DkeStoreSlow: { ...shared, edit: { dke_store_writes_waiting: { value: 150 } } },
  DkeDiskFillsUp:
    typeof disk === 'string'
      ? { ...shared, edit: { dke_disk_free_bytes: { labels: { place: 'data' }, value: 1 } } }
      : { state: 'full disk' },
  DkeDiskFull:
    typeof disk === 'string'
      ? { ...shared, edit: { dke_disk_free_bytes: { labels: { place: 'data' }, value: 1 } } }
      : { state: 'full disk' },
  DkeFilesRunOut: { ...shared, edit: { process_open_fds: { labels: { job: 'dke' }, value: 1e9 } } },
  DkeRequestLogDrops: { ...shared, edit: { dke_request_log_dropped_total: grows() } },
  DkeLogFailing: { ...shared, edit: { dke_log_failing: { value: 1 } } },
  DkeLogLost: { ...shared, edit: { dke_log_lost_lines_total: grows() } },
  DkeAccessLogFailing: { ...shared, edit: { dke_access_log_failing: { value: 1 } } },
  DkeAccessLogLost: { ...shared, edit: { dke_access_log_lost_lines_total: grows() } },
  DkeTelemetryFailing: { ...shared, edit: { dke_telemetry_failing: { labels: { signal: 'traces' }, value: 1 } } },
  DkeAuditUnsealed: { ...shared, minutes: 20 },
  DkeAuditSinkBehind: {
    ...shared,
    edit: { dke_audit_sink_lag_records: { labels: { sink: 'collector', log: 'audit' }, value: 2000 } },
  },
  DkeAuditSinkFailing: { state: 'unreachable sink' },
  DkeSinkLosing: {
    ...shared,
    edit: { dke_audit_sink_lost_records_total: grows({ sink: 'collector', log: 'requests' }) },
  },
  DkeKeyMemoryFull: { ...shared, edit: { dke_key_memory_used_bytes: { value: 1e12 } } },
  DkeKeyMemoryNotLocked: { ...shared, edit: { dke_key_memory_locked: { value: 0 } } },
  DkeErasureBlocked: { ...shared, edit: { dke_erasure_state: { labels: { state: 'blocked' }, value: 1 } } },
  DkeErasureLate: { ...shared, edit: { dke_erasure_pending_keys: { value: 1 } } },
  DkeNoRecoveryKey: shared,
  DkeSnapshotNone: shared,
  DkeSnapshotOld: {
    ...shared,
    edit: { dke_snapshot_made_timestamp_seconds: { labels: { tenant: 't' }, value: -9 * day } },
  },
  DkeSnapshotUnopened: { ...shared, edit: { dke_snapshots_available: { labels: { tenant: 't' }, value: 1 } } },
  DkeCertificateEnds: {
    ...shared,
    edit: { dke_certificate_expiry_timestamp_seconds: { labels: { name: 'n' }, value: 20 * day } },
  },
  DkeCertificateEndsSoon: {
    ...shared,
    edit: { dke_certificate_expiry_timestamp_seconds: { labels: { name: 'n' }, value: 5 * day } },
  },
  DkeCertificateFileFailing: { ...shared, edit: { dke_certificate_file_failing: { value: 1 } } },
  DkeXksFaults: {
    ...shared,
    edit: { dke_xks_requests_total: grows({ ...xks, status: '500', error: 'InternalException' }) },
  },
  DkeXksSlow: {
    ...shared,
    edit: {
      dke_xks_request_duration_seconds_bucket: { labels: { ...xks, le: '0.1' }, value: 0, perMinute: 90 },
      dke_xks_request_duration_seconds_count: { labels: xks, value: 0, perMinute: 100 },
    },
  },
  DkeXksTooSlow: {
    ...shared,
    edit: {
      dke_xks_request_duration_seconds_bucket: { labels: { ...xks, le: '0.25' }, value: 0, perMinute: 90 },
      dke_xks_request_duration_seconds_count: { labels: xks, value: 0, perMinute: 100 },
    },
  },
  DkeXksThrottled: { ...shared, edit: { dke_xks_throttled_total: grows({ endpoint: 'e', cause: 'rate' }) } },
  DkeXksSignaturesRefused: {
    ...shared,
    edit: { dke_xks_requests_total: grows({ ...xks, status: '401', error: 'AuthenticationFailedException' }) },
  },
  DkeXksKeyUnusable: {
    ...shared,
    edit: { dke_xks_requests_total: grows({ ...xks, status: '404', error: 'KeyNotFoundException' }) },
  },
  DkeExternalKeyStoreFailed: {
    ...shared,
    edit: {
      dke_external_key_store_state: {
        labels: { endpoint: 'e', custom_key_store_id: 'c', key_store: 'k', state: 'FAILED' },
        value: 1,
      },
    },
  },
  DkeXksCredentialOld: {
    ...shared,
    edit: {
      dke_xks_credential_created_timestamp_seconds: { labels: { endpoint: 'e', access_key_id: 'a' }, value: -91 * day },
    },
  },
  DkeXksCredentialUnused: {
    ...shared,
    edit: {
      dke_xks_credential_last_used_timestamp_seconds: {
        labels: { endpoint: 'e', access_key_id: 'a' },
        value: -8 * day,
      },
      dke_xks_credential_created_timestamp_seconds: { labels: { endpoint: 'e', access_key_id: 'a' }, value: -9 * day },
      // The second credential of the endpoint.
      'dke_xks_credential_created_timestamp_seconds ': {
        labels: { endpoint: 'e', access_key_id: 'b' },
        value: -9 * day,
      },
    },
  },
  DkeTdeFaults: { ...shared, edit: { dke_tde_requests_total: grows({ operation: 'encrypt', status: '500' }) } },
  DkeTdeDenied: { ...shared, edit: { dke_tde_requests_total: grows({ operation: 'unknown', status: '401' }) } },
  DkeTdeSlow: {
    ...shared,
    edit: {
      dke_tde_request_duration_seconds_bucket: {
        labels: { operation: 'encrypt', le: '0.25' },
        value: 0,
        perMinute: 90,
      },
      dke_tde_request_duration_seconds_count: { labels: { operation: 'encrypt' }, value: 0, perMinute: 100 },
    },
  },
  // The heartbeat of the last answer grows old.
  DkeNodeOffline: { ...shared, minutes: 5 },
  DkeNodeOutOfContact: { ...shared, edit: { dke_node_in_contact: { value: 0 } } },
  DkeNodePending: { ...shared, edit: { dke_node_pending_changes: { labels: { node: 'n' }, value: 3 } } },
  DkeNotificationsUndelivered: {
    ...shared,
    edit: { dke_notification_target_failing: { labels: { target: 'pager' }, value: 1 } },
  },
  DkeNotificationsWaiting: {
    ...shared,
    edit: { dke_notification_target_waiting: { labels: { target: 'pager' }, value: 4 } },
  },
  DkeNotificationCritical: {
    ...shared,
    edit: { dke_notifications_open: { labels: { severity: 'critical' }, value: 1 } },
  },
  DkeSignInsFail: { state: 'guessing' },
  DkeSignInLocked: { state: 'guessing' },
  DkeApiFaults: { state: 'quarantined' },
  DkeApiSlow: {
    ...shared,
    edit: {
      dke_api_request_duration_seconds_bucket: { labels: { method: 'POST', le: '1' }, value: 0, perMinute: 80 },
      dke_api_request_duration_seconds_count: { labels: { method: 'POST' }, value: 0, perMinute: 100 },
    },
  },
};

const keyOf = ({ name, labels }: Pick<ExpositionSample, 'name' | 'labels'>): string => JSON.stringify([name, labels]);

/**
 * Scrapes a minute apart of a state that lasts: gauges stay, counters continue as between its two
 * scrapes.
 */
const lasting = ({ first, last }: State, { edit = {}, minutes = 0 }: Case, rule: AlertRule): readonly Scrape[] => {
  const base = last.at === 0 ? Date.now() / 1000 : last.at;
  const edited = new Set(Object.keys(edit).map((name) => name.trim()));
  const before = new Map(first.samples.map((sample) => [keyOf(sample), sample.value]));
  const isUsed = ({ name }: ExpositionSample): boolean =>
    !edited.has(name) && new RegExp(`\\b${name}\\b`).test(rule.expression);
  const series = [
    ...last.samples.filter(isUsed).map(({ name, labels, value }) => {
      const own = name.startsWith('process_') ? { job: 'dke', ...labels } : labels;
      if (!/_(total|bucket|sum|count)$/.test(name)) return { name, labels: own, value, perMinute: 0 };
      const grown = value - (before.get(keyOf({ name, labels })) ?? 0);
      return { name, labels: own, value: 0, perMinute: (grown * 60) / Math.max(1, last.at - first.at) };
    }),
    ...Object.entries(edit).map(([given, { labels = {}, value, perMinute = 0 }]) => {
      const name = given.trim();
      return { name, labels, value: name.endsWith('_timestamp_seconds') ? base + value : value, perMinute };
    }),
  ];
  return Array.from({ length: rule.minutes + minutes + 30 }, (_, minute) => ({
    at: base + minute * 60,
    samples: series.map(({ name, labels, value, perMinute }) => ({
      name,
      labels: { instance: 'node', ...labels },
      value: value + perMinute * minute,
    })),
  }));
};

const fires = (rule: AlertRule, { state, ...own }: Case): boolean => {
  const found = states.get(state);
  if (found === undefined) throw new Error(`no state ${state}`);
  return compileRule(rule)(lasting(found, { state, ...own }, rule));
};

test('there is a state for each rule', () => {
  expect(Object.keys(cases)).toEqual(rules.map(({ name }) => name));
});

test.each(rules)('$name fires in its state', (rule) => {
  expect(fires(rule, cases[rule.name] ?? shared)).toBe(true);
});

test('the rules of real states do not fire in a service that runs well', () => {
  const quiet = rules.filter(({ name }) => {
    const { state, edit } = cases[name] ?? shared;
    return edit === undefined && !['running', 'stopped', 'unreachable sink'].includes(state);
  });
  expect(quiet.length).toBeGreaterThan(7);
  expect(quiet.filter((rule) => fires(rule, shared)).map(({ name }) => name)).toEqual([]);
});
