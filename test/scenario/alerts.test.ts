// Every alert rule fires: promtool evaluates the rules over numbers that the real service gave in that state, as if the state lasted. Where a
// state cannot be had here (weeks, several hosts, a full table of files), single numbers of a real answer are replaced: `edit`.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../support/daemon.ts';
import { type ExpositionSample, readExposition } from '../support/exposition.ts';
import { until } from '../support/host.ts';
import { type Site, startSite } from '../support/site.ts';
import { mountSmallDisk } from '../support/small-disk.ts';
import { createXksEndpoint } from '../support/xks-call.ts';

const rulesFile = resolve(import.meta.dirname, '../../docs/monitoring/alerts.yaml');
const rules = readFileSync(rulesFile, 'utf8')
  .split(/\n {6}- alert: /)
  .slice(1)
  .map((text) => {
    const [, count = '0', unit = 'm'] = /^ {8}for: (\d+)([mhd])$/m.exec(text) ?? [];
    const minutes = Number(count) * { m: 1, h: 60, d: 1440 }[unit as 'm' | 'h' | 'd'];
    return { name: /^\w+/.exec(text)?.[0] ?? '', text, minutes };
  });

interface Scrape {
  readonly at: number;
  readonly samples: readonly ExpositionSample[];
}
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
  const [answer] = (await once(sent, 'response')) as [import('node:http').IncomingMessage];
  const text = Buffer.concat(await answer.toArray()).toString('utf8');
  expect(answer.statusCode, text).toBe(200);
  return { at: Date.now() / 1000, samples: readExposition(text).samples };
};
const numberOf = ({ samples }: Scrape, name: string): number | undefined =>
  samples.find((sample) => sample.name === name)?.value;
/** The state holds when `is` says so of an answer. */
const reach = async (name: string, first: Scrape, is: (now: Scrape) => boolean): Promise<void> => {
  const last = await until(name, async () => {
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
  // What was begun by a change of the last minute has no checkpoint yet.
  await reach('running', first, (now) => (numberOf(now, 'dke_audit_unsealed_records') ?? 0) > 0);
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
  // Prometheus itself says so of a target that does not answer.
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
  /** The state lasts for so long before the rule is evaluated, beside its own `for`. */
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
  DkeClockJumped: { ...shared, edit: { dke_clock_doubted: { value: 1 } } },
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
  DkeErasureHeld: { ...shared, edit: { dke_erasure_state: { labels: { state: 'held' }, value: 1 } } },
  DkeErasureLate: { ...shared, edit: { dke_erasure_pending_keys: { value: 1 } } },
  DkeNoRecoveryKey: shared,
  DkeSnapshotNone: shared,
  DkeSnapshotOld: {
    ...shared,
    edit: { dke_snapshot_made_timestamp_seconds: { labels: { tenant: 't' }, value: -9 * day } },
  },
  DkeSnapshotUnopened: { ...shared, edit: { dke_snapshots_held: { labels: { tenant: 't' }, value: 1 } } },
  DkeCertificateEnds: {
    ...shared,
    edit: { dke_certificate_expiry_timestamp_seconds: { labels: { name: 'n' }, value: 20 * day } },
  },
  DkeCertificateEndsSoon: {
    ...shared,
    edit: { dke_certificate_expiry_timestamp_seconds: { labels: { name: 'n' }, value: 5 * day } },
  },
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
  DkeNodeSilent: { ...shared, minutes: 5 },
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
const seriesOf = (
  { first, last }: State,
  edit: Edit,
  text: string,
  minutes: number,
): readonly { readonly series: string; readonly values: string }[] => {
  const isUsed = ({ name }: ExpositionSample): boolean => new RegExp(`\\b${name}\\b`).test(text);
  const before = new Map(first.samples.map((sample) => [keyOf(sample), sample.value]));
  const write = (name: string, labels: Readonly<Record<string, string>>, value: number, perMinute: number) => {
    const all = Object.entries({ instance: 'node', ...labels }).map(([label, of]) => `${label}=${JSON.stringify(of)}`);
    const step = perMinute < 0 ? `${perMinute}` : `+${perMinute}`;
    return { series: `${name.trim()}{${all.join(',')}}`, values: `${value}${step}x${minutes}` };
  };
  const edited = new Set(Object.keys(edit).map((name) => name.trim()));
  const real = last.samples
    .filter((sample) => isUsed(sample) && !edited.has(sample.name))
    .map((sample) => {
      const { name, labels, value } = sample;
      const own = name.startsWith('process_') ? { job: 'dke', ...labels } : labels;
      // The clock of promtool begins at 0.
      if (name.endsWith('_timestamp_seconds')) return write(name, own, value - last.at, 0);
      if (!/_(total|bucket|sum|count)$/.test(name)) return write(name, own, value, 0);
      const grown = (value - (before.get(keyOf(sample)) ?? 0)) / Math.max(1, last.at - first.at);
      return write(name, own, 0, grown * 60);
    });
  return [
    ...real,
    ...Object.entries(edit).map(([name, { labels = {}, value, perMinute = 0 }]) =>
      write(name, labels, value, perMinute),
    ),
  ];
};

test('there is a state for each rule', () => {
  expect(Object.keys(cases)).toEqual(rules.map(({ name }) => name));
});

/** Rules that wait for days are evaluated in steps of minutes: each in a file with a step that fits. */
const ruleFile = (chosen: typeof rules): string => {
  const file = join(site.folder, 'rules.yaml');
  const texts = chosen.map(({ text }) => `      - alert: ${text.split(/\n+ {2}- name:/)[0]}`);
  writeFileSync(file, `groups:\n  - name: chosen\n    rules:\n${texts.join('\n')}\n`);
  return file;
};

/** Evaluates rules over series that last; promtool says which of them did not fire (or did). */
const evaluate = (chosen: typeof rules, step: number, fires: boolean, of: (name: string) => Case): string => {
  const tests = chosen.map(({ name, text, minutes }) => {
    const own = of(name);
    const state = states.get(own.state);
    if (state === undefined) throw new Error(`no state ${own.state}`);
    const end = minutes + (own.minutes ?? 0) + 30;
    const firing = `count(ALERTS{alertname="${name}",alertstate="firing"})`;
    return {
      name,
      interval: '1m',
      input_series: seriesOf(state, own.edit ?? {}, text, end),
      promql_expr_test: [
        {
          ...{ expr: `${firing} > bool 0`, eval_time: `${end - 1}m` },
          exp_samples: fires ? [{ labels: '{}', value: 1 }] : [],
        },
      ],
    };
  });
  const file = join(site.folder, 'rules.test.yaml');
  writeFileSync(file, JSON.stringify({ rule_files: [ruleFile(chosen)], evaluation_interval: `${step}m`, tests }));
  try {
    execFileSync('promtool', ['test', 'rules', file], { encoding: 'utf8', stdio: 'pipe' });
    return '';
  } catch (error) {
    const { code, stdout, stderr } = error as { code?: string; stdout: string; stderr: string };
    if (code === 'ENOENT') throw new Error('no promtool on the PATH: apt-get install prometheus');
    return stdout + stderr;
  }
};

describe('promtool says that', () => {
  test('every rule fires in its state', () => {
    const of = (name: string): Case => cases[name] ?? shared;
    const days = rules.filter(({ minutes }) => minutes > 60);
    expect(
      evaluate(
        rules.filter((rule) => !days.includes(rule)),
        1,
        true,
        of,
      ),
    ).toBe('');
    expect(evaluate(days, 4, true, of)).toBe('');
  });

  test('the rules of real states do not fire in a service that runs well', () => {
    const quiet = Object.keys(cases).filter((name) => {
      const { state, edit } = cases[name] ?? shared;
      return edit === undefined && !['running', 'stopped', 'unreachable sink'].includes(state);
    });
    expect(quiet.length).toBeGreaterThan(7);
    expect(
      evaluate(
        rules.filter(({ name }) => quiet.includes(name)),
        1,
        false,
        () => shared,
      ),
    ).toBe('');
  });
});
