// Gathers the numbers of domain/metrics.ts at the moment somebody asks. Most come from memory; external key stores and
// the keys that wait for erasure are read from the store, and health is at most ten seconds old.

import type { ConnectionState } from '../../domain/external-key-store.ts';
import {
  distributionOf,
  type Labels,
  type MetricFamily,
  type MetricName,
  type MetricSample,
  metrics,
  type ValueOf,
} from '../../domain/metrics.ts';
import { largestPageSize } from '../../domain/page.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { LogState } from '../../ports/log.ts';
import type { LogSinkState } from '../../ports/log-sink.ts';
import type { ProcessFacts, ServedCertificate } from '../../ports/meter.ts';
import type { Ports } from '../../ports/ports.ts';
import { readRootBackup } from '../root/root-backup.ts';
import { listSnapshots } from '../snapshots/erase-destroyed.ts';
import { lastOpenedAt } from '../snapshots/opened.ts';
import type { Health } from './interface.ts';

export interface MetricsSources {
  readonly health: () => Promise<Health>;
  readonly processFacts: () => ProcessFacts;
  readonly certificates: () => readonly ServedCertificate[];
  readonly auditSinks: () => Promise<readonly LogSinkState[]>;
  readonly logState: () => LogState;
}

const seconds = (ms: number): number => ms / 1000;
/** Once: the clock may be set while the process runs. */
const startedAt = Date.now() / 1000 - process.uptime();
const flag = (value: boolean): number => (value ? 1 : 0);
const connectionStates = [
  'CONNECTED',
  'CONNECTING',
  'DISCONNECTING',
  'DISCONNECTED',
  'FAILED',
] as const satisfies ConnectionState[];
const erasureStates = ['idle', 'waiting', 'running', 'held', 'failed'] as const;

type Add = <N extends MetricName>(name: N, labels: Labels<N>, value: ValueOf<N>) => void;

/** Every metric of the table, with the samples there are now. */
export const readMetrics =
  (
    {
      store,
      core,
      directory,
      erasure,
      identity,
      clock,
      deadlines,
      meter,
      root,
    }: Pick<Ports, 'store' | 'core' | 'directory' | 'erasure' | 'identity' | 'clock' | 'deadlines' | 'meter' | 'root'>,
    sources: MetricsSources,
  ): (() => Promise<readonly MetricFamily[]>) =>
  async () => {
    const found = new Map<MetricName, MetricSample[]>();
    const add: Add = (name, labels, value) => {
      const sample = { labels, value: typeof value === 'number' ? value : distributionOf(value) };
      const own = found.get(name);
      if (own === undefined) found.set(name, [sample]);
      else own.push(sample);
    };

    const series = meter.xks();
    for (const { endpointId, operation, duration, results } of series) {
      const endpoint = endpointId ?? 'none';
      for (const { status, errorName, count } of results)
        add('dke_xks_requests_total', { endpoint, operation, status: String(status), error: errorName ?? '' }, count);
      add('dke_xks_request_duration_seconds', { endpoint, operation }, duration);
    }
    for (const { id, name, prefix, state, credentials } of directory.endpoints()) {
      const own = series.filter(({ endpointId }) => endpointId === id);
      for (const cause of ['rate', 'load'] as const) {
        const count = own.reduce((sum, { throttled }) => sum + throttled[cause], 0);
        add('dke_xks_throttled_total', { endpoint: id, cause }, count);
      }
      add('dke_xks_endpoint_info', { endpoint: id, name, prefix, state }, 1);
      for (const { id: credentialId, accessKeyId, createdAt, lastUsedAt } of credentials) {
        const labels = { endpoint: id, access_key_id: accessKeyId };
        add('dke_xks_credential_created_timestamp_seconds', labels, seconds(createdAt));
        const used = Math.max(meter.credentialUse(credentialId) ?? 0, lastUsedAt ?? 0);
        if (used > 0) add('dke_xks_credential_last_used_timestamp_seconds', labels, seconds(used));
      }
    }

    for (const own of await store.read.externalKeyStores.list(everyTenant, { limit: largestPageSize }))
      for (const state of connectionStates)
        add(
          'dke_external_key_store_state',
          { endpoint: own.endpointId, custom_key_store_id: own.customKeyStoreId, key_store: own.name, state },
          flag(own.connection.state === state),
        );

    for (const { operation, duration, results } of meter.tde()) {
      for (const { status, count } of results)
        add('dke_tde_requests_total', { operation, status: String(status) }, count);
      add('dke_tde_request_duration_seconds', { operation }, duration);
    }

    const named = new Set<string>();
    for (const { names, endsAt } of sources.certificates())
      for (const name of names) {
        // The first certificate that has a name is the one that is served for it.
        if (named.has(name)) continue;
        named.add(name);
        add('dke_certificate_expiry_timestamp_seconds', { name }, seconds(endsAt));
      }

    const { healthy, checks } = await sources.health();
    add('dke_healthy', {}, flag(healthy));
    for (const check of checks) add('dke_health_check', { check: check.name }, flag(check.healthy));

    add('dke_root_epoch', {}, root.current.epoch);
    add('dke_root_backup_epoch', {}, (await readRootBackup(store.read))?.epoch ?? 0);
    add('dke_clock_doubted', {}, flag((await deadlines.state()).doubt !== null));
    const { queued, dropped } = directory.requestLog();
    add('dke_request_log_queued', {}, queued);
    add('dke_request_log_dropped_total', {}, dropped);
    add('dke_store_writes_waiting', {}, store.waiting());

    const { lost, failure: logFailure } = sources.logState();
    add('dke_log_lost_lines_total', {}, lost);
    add('dke_log_failing', {}, flag(logFailure !== null));

    for (const { name, log, lag, lost, failure } of await sources.auditSinks()) {
      add('dke_audit_sink_lag_records', { sink: name, log }, lag);
      add('dke_audit_sink_failing', { sink: name, log }, flag(failure !== null));
      add('dke_audit_sink_lost_records_total', { sink: name, log }, lost);
    }

    add(
      'dke_recovery_keys',
      {},
      (await store.read.recoveryKeys.list()).filter(({ removedAt }) => removedAt === null).length,
    );
    const held = Map.groupBy(await listSnapshots(store.read, ['held']), ({ tenantId }) => tenantId);
    const tenants = (await store.read.tenants.list()).filter(
      ({ state }) => state === 'active' || state === 'suspended',
    );
    for (const tenant of new Set([...tenants.map(({ id }) => id), ...held.keys()])) {
      const own = held.get(tenant) ?? [];
      add('dke_snapshots_held', { tenant }, own.length);
      const opened = await lastOpenedAt(store.read, tenant, own);
      if (opened !== null) add('dke_snapshot_verified_timestamp_seconds', { tenant, depth: 'opened' }, seconds(opened));
      if (own.length === 0) continue;
      add('dke_snapshot_made_timestamp_seconds', { tenant }, seconds(Math.max(...own.map((each) => each.createdAt))));
      const verified = own.flatMap(({ verifiedAt }) => verifiedAt ?? []);
      if (verified.length > 0)
        add('dke_snapshot_verified_timestamp_seconds', { tenant, depth: 'sealed' }, seconds(Math.max(...verified)));
    }

    const memory = core.memoryStatus();
    add('dke_keys_in_memory', {}, memory.keys);
    add('dke_key_memory_used_bytes', {}, memory.used);
    add('dke_key_memory_capacity_bytes', {}, memory.capacity);
    add('dke_key_memory_locked', {}, flag(memory.locked));

    const { state } = erasure.state();
    for (const each of erasureStates) add('dke_erasure_state', { state: each }, flag(each === state));
    add('dke_erasure_pending_keys', {}, (await store.read.keys.erasable(clock.now() + 1)).count);

    add('dke_event_loop_delay_seconds', {}, meter.eventLoopDelay);
    add('dke_event_loop_active_seconds_total', {}, seconds(performance.eventLoopUtilization().active));
    add('dke_build_info', { version: identity.version, node: process.versions.node }, 1);

    const { user, system } = process.cpuUsage();
    const { rss, heapUsed } = process.memoryUsage();
    const { openFiles, mostFiles } = sources.processFacts();
    add('process_cpu_seconds_total', {}, (user + system) / 1_000_000);
    add('process_resident_memory_bytes', {}, rss);
    add('process_start_time_seconds', {}, startedAt);
    add('process_open_fds', {}, openFiles);
    add('process_max_fds', {}, mostFiles);
    add('nodejs_heap_used_bytes', {}, heapUsed);

    const names = Object.keys(metrics) as MetricName[];
    return names.map((name) => ({
      name,
      type: metrics[name].type,
      help: metrics[name].help,
      samples: found.get(name) ?? [],
    }));
  };
