// Gathers the numbers of domain/metrics.ts when they are asked for. Most come from memory; nodes,
// notifications, snapshots and the like are read from the store, and health is at most ten seconds
// old. A part that cannot be read leaves its metrics out, and the others stay: a database that is
// away is when the numbers are needed.

import { serviceTenantId } from '../../base/ids.ts';
import { type LimitRefusals, limitNames } from '../../base/limit-refusals.ts';
import { auditSeverities } from '../../domain/audit-event.ts';
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
import { type DiskSpace, type ProcessFacts, type ServedCertificate, signInResults } from '../../ports/meter.ts';
import type { NotificationTargetState } from '../../ports/notification-target.ts';
import type { Ports } from '../../ports/ports.ts';
import type { TelemetryState } from '../../ports/telemetry.ts';
import { newestBackup } from '../copies/take-receipts.ts';
import { coveredUntil } from '../root/conclude-erasure.ts';
import { listSnapshots } from '../snapshots/erase-destroyed.ts';
import { lastOpenedAt } from '../snapshots/last-opening.ts';
import type { Health } from './service-operations.ts';

export interface MetricsSources {
  readonly health: () => Promise<Health>;
  readonly quarantined: () => boolean;
  readonly processFacts: () => ProcessFacts;
  readonly diskSpace: () => Promise<readonly DiskSpace[]>;
  readonly certificates: () => readonly ServedCertificate[];
  /** Why the next start could not serve what is in the files. */
  readonly certificateFaults: () => Promise<readonly string[]>;
  readonly auditSinks: () => Promise<readonly LogSinkState[]>;
  readonly notificationTargets: () => Promise<readonly NotificationTargetState[]>;
  readonly logState: () => LogState;
  readonly accessLogState: () => LogState;
  readonly telemetryState: () => TelemetryState;
  readonly refusals: Pick<LimitRefusals, 'totals'>;
}
type MetricsPorts = Pick<
  Ports,
  'store' | 'core' | 'directory' | 'erasure' | 'identity' | 'clock' | 'deadlines' | 'meter' | 'root' | 'fleet' | 'log'
>;

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
const erasureStates = ['idle', 'waiting', 'running', 'blocked', 'failed'] as const;
const nodeStates = ['active', 'draining', 'stopped', 'offline'] as const;

type Add = <N extends MetricName>(name: N, labels: Labels<N>, value: ValueOf<N>) => void;
type Part = (add: Add) => void | Promise<void>;

const readXks =
  ({ meter, directory }: MetricsPorts): Part =>
  (add) => {
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
    const { queued, dropped } = directory.requestLog();
    add('dke_request_log_queued', {}, queued);
    add('dke_request_log_dropped_total', {}, dropped);
  };

const readExternalKeyStores =
  ({ store }: MetricsPorts): Part =>
  async (add) => {
    for (const own of await store.read.externalKeyStores.list(everyTenant, { limit: largestPageSize }))
      for (const state of connectionStates)
        add(
          'dke_external_key_store_state',
          { endpoint: own.endpointId, custom_key_store_id: own.customKeyStoreId, key_store: own.name, state },
          flag(own.connection.state === state),
        );
  };

const readTdeAndApi =
  ({ meter }: MetricsPorts, { refusals }: MetricsSources): Part =>
  (add) => {
    for (const limit of limitNames) add('dke_limit_refusals_total', { limit }, refusals.totals()[limit]);
    for (const { operation, duration, results } of meter.tde()) {
      for (const { status, count } of results)
        add('dke_tde_requests_total', { operation, status: String(status) }, count);
      add('dke_tde_request_duration_seconds', { operation }, duration);
    }
    add('dke_access_guid_renewal_failures_total', {}, meter.hashesNotRenewed());
    for (const { method, duration, results } of meter.api()) {
      for (const { route, status, count } of results)
        add('dke_api_requests_total', { method, route, status: String(status) }, count);
      add('dke_api_request_duration_seconds', { method }, duration);
    }
  };

const readSignIns =
  ({ meter, store, clock }: MetricsPorts): Part =>
  async (add) => {
    const signIns = meter.signIns();
    for (const result of signInResults) add('dke_sign_ins_total', { result }, signIns[result]);
    add('dke_sign_in_locked', {}, await store.read.failures.countLocked(clock.now()));
  };

const readNotifications =
  ({ store }: MetricsPorts, { notificationTargets }: MetricsSources): Part =>
  async (add) => {
    const open = await store.read.notifications.countOpen();
    const platform = auditSeverities.map((severity) => ({ tenantId: serviceTenantId, severity, count: 0 }));
    const all = new Map([...platform, ...open].map((each) => [`${each.tenantId} ${each.severity}`, each]));
    for (const { tenantId: tenant, severity, count } of all.values())
      add('dke_notifications_open', { tenant, severity }, count);
    for (const { name: target, waiting, failure } of await notificationTargets()) {
      add('dke_notification_target_waiting', { target }, waiting);
      add('dke_notification_target_failing', { target }, flag(failure !== null));
    }
  };

const readNodes =
  ({ fleet }: MetricsPorts): Part =>
  async (add) => {
    add('dke_node_in_contact', {}, flag(fleet.inContact()));
    const nodes = (await fleet.nodes()).filter(({ state }) => state !== 'removed');
    for (const state of nodeStates) add('dke_nodes', { state }, nodes.filter((node) => node.state === state).length);
    // Two nodes of one name are told apart by the later heartbeat: a label value is given once.
    const running = nodes
      .filter(({ state }) => state !== 'stopped')
      .sort((one, other) => other.heartbeatAt - one.heartbeatAt);
    for (const { name: node, heartbeatAt, behind } of new Map(running.map((each) => [each.name, each])).values()) {
      add('dke_node_heartbeat_timestamp_seconds', { node }, seconds(heartbeatAt));
      add('dke_node_pending_changes', { node }, behind);
    }
  };

const readHealth =
  ({ root, store, deadlines }: MetricsPorts, { health, quarantined }: MetricsSources): Part =>
  async (add) => {
    add('dke_sealed', {}, 0);
    add('dke_quarantined', {}, flag(quarantined()));
    add('dke_root_epoch', {}, root.current.epoch);
    add('dke_store_writes_waiting', {}, store.waiting());
    const { healthy, checks } = await health();
    add('dke_healthy', {}, flag(healthy));
    for (const check of checks) add('dke_health_check', { check: check.name }, flag(check.healthy));
    add('dke_clock_jumped', {}, flag((await deadlines.state()).doubt !== null));
    add('dke_root_backup_epoch', {}, (await newestBackup(store.read, 'root-backup'))?.rootEpoch ?? 0);
    if (store.dialect === 'sqlite')
      add('dke_backup_timestamp_seconds', {}, seconds((await newestBackup(store.read, 'service-backup'))?.at ?? 0));
  };

const readCertificates =
  ({ certificates, certificateFaults }: MetricsSources): Part =>
  async (add) => {
    add('dke_certificate_file_failing', {}, flag((await certificateFaults()).length > 0));
    const named = new Set<string>();
    for (const { names, endsAt } of certificates())
      for (const name of names) {
        // The first certificate that has a name is the one that is served for it.
        if (named.has(name)) continue;
        named.add(name);
        add('dke_certificate_expiry_timestamp_seconds', { name }, seconds(endsAt));
      }
  };

const readLogs =
  ({ logState, accessLogState, telemetryState, diskSpace }: MetricsSources): Part =>
  async (add) => {
    const log = logState();
    add('dke_log_lost_lines_total', {}, log.lost);
    add('dke_log_failing', {}, flag(log.failure !== null));
    const access = accessLogState();
    add('dke_access_log_lost_lines_total', {}, access.lost);
    add('dke_access_log_failing', {}, flag(access.failure !== null));
    const telemetry = telemetryState();
    for (const signal of ['traces', 'metrics'] as const) {
      for (const cause of ['queue', 'export'] as const)
        add('dke_telemetry_dropped_total', { signal, cause }, telemetry[signal].dropped[cause]);
      add('dke_telemetry_failing', { signal }, flag(telemetry[signal].failing));
    }
    for (const { place, space } of await diskSpace()) {
      if (space === null) continue;
      add('dke_disk_free_bytes', { place }, space.free);
      add('dke_disk_size_bytes', { place }, space.size);
    }
  };

const readAudit =
  ({ store }: MetricsPorts, { auditSinks }: MetricsSources): Part =>
  async (add) => {
    const size = await store.read.audit.size();
    const latest = await store.read.audit.latestCheckpoint();
    add('dke_audit_records', {}, size);
    add('dke_audit_unsealed_records', {}, Math.max(0, size - (latest?.size ?? 0)));
    add('dke_audit_sealed_timestamp_seconds', {}, seconds(latest?.at ?? 0));
    for (const { name: sink, log, lag, lost, failure } of await auditSinks()) {
      add('dke_audit_sink_lag_records', { sink, log }, lag);
      add('dke_audit_sink_failing', { sink, log }, flag(failure !== null));
      add('dke_audit_sink_lost_records_total', { sink, log }, lost);
    }
  };

const readSnapshots =
  ({ store }: MetricsPorts): Part =>
  async (add) => {
    const recoveryKeys = (await store.read.recoveryKeys.list()).filter(({ removedAt }) => removedAt === null);
    add('dke_recovery_keys', {}, recoveryKeys.length);
    const held = Map.groupBy(await listSnapshots(store.read, ['available']), ({ tenantId }) => tenantId);
    const tenants = (await store.read.tenants.list()).filter(
      ({ state }) => state === 'active' || state === 'suspended',
    );
    for (const tenant of new Set([...tenants.map(({ id }) => id), ...held.keys()])) {
      const own = held.get(tenant) ?? [];
      add('dke_snapshots_available', { tenant }, own.length);
      const opened = await lastOpenedAt(store.read, tenant, own);
      if (opened !== null) add('dke_snapshot_verified_timestamp_seconds', { tenant, depth: 'opened' }, seconds(opened));
      if (own.length === 0) continue;
      add('dke_snapshot_made_timestamp_seconds', { tenant }, seconds(Math.max(...own.map((each) => each.createdAt))));
      const verified = own.flatMap(({ verifiedAt }) => verifiedAt ?? []);
      if (verified.length > 0)
        add('dke_snapshot_verified_timestamp_seconds', { tenant, depth: 'sealed' }, seconds(Math.max(...verified)));
    }
  };

const readKeys =
  ({ core, erasure, store }: MetricsPorts): Part =>
  async (add) => {
    const memory = core.memoryStatus();
    add('dke_keys_in_memory', {}, memory.keys);
    add('dke_key_memory_used_bytes', {}, memory.used);
    add('dke_key_memory_capacity_bytes', {}, memory.capacity);
    add('dke_key_memory_locked', {}, flag(memory.locked));
    const { state } = await erasure.state();
    for (const each of erasureStates) add('dke_erasure_state', { state: each }, flag(each === state));
    const covered = await coveredUntil(store.read);
    const { pending, waiting } = await store.read.keys.erasable(covered);
    add('dke_erasure_pending_keys', {}, pending);
    add('dke_erasure_pending_objects', {}, await store.read.objects.countEnded(covered));
    add('dke_erasure_waiting_keys', {}, waiting);
  };

const readProcess =
  ({ core, meter, identity }: MetricsPorts, { processFacts }: MetricsSources): Part =>
  (add) => {
    add('dke_event_loop_delay_seconds', {}, meter.eventLoopDelay);
    add('dke_event_loop_active_seconds_total', {}, seconds(performance.eventLoopUtilization().active));
    const libcrypto = core.libcryptoVersion();
    add('dke_build_info', { version: identity.version, node: process.versions.node, libcrypto }, 1);
    const { user, system } = process.cpuUsage();
    const { rss, heapUsed } = process.memoryUsage();
    const { openFiles, mostFiles } = processFacts();
    add('process_cpu_seconds_total', {}, (user + system) / 1_000_000);
    add('process_resident_memory_bytes', {}, rss);
    add('process_start_time_seconds', {}, startedAt);
    add('process_open_fds', {}, openFiles);
    add('process_max_fds', {}, mostFiles);
    add('nodejs_heap_used_bytes', {}, heapUsed);
  };

/** Every metric of the table, with the samples there are now. */
export const readMetrics = (ports: MetricsPorts, sources: MetricsSources): (() => Promise<readonly MetricFamily[]>) => {
  const parts: readonly Part[] = [
    readXks(ports),
    readExternalKeyStores(ports),
    readTdeAndApi(ports, sources),
    readSignIns(ports),
    readNotifications(ports, sources),
    readNodes(ports),
    readHealth(ports, sources),
    readCertificates(sources),
    readLogs(sources),
    readAudit(ports, sources),
    readSnapshots(ports),
    readKeys(ports),
    readProcess(ports, sources),
  ];
  let isReported = false;
  return async () => {
    const found = new Map<MetricName, MetricSample[]>();
    const add: Add = (name, labels, value) => {
      const sample = { labels, value: typeof value === 'number' ? value : distributionOf(value) };
      const own = found.get(name);
      if (own === undefined) found.set(name, [sample]);
      else own.push(sample);
    };
    let failure: unknown;
    for (const part of parts)
      try {
        await part(add);
      } catch (error) {
        failure ??= error;
      }
    add('dke_metrics_incomplete', {}, flag(failure !== undefined));
    // Once, not at every scrape: what fails is often the database for minutes.
    if (failure !== undefined && !isReported) ports.log.warn('some metrics could not be read', { error: failure });
    isReported = failure !== undefined;
    const names = Object.keys(metrics) as MetricName[];
    return names.map((name) => ({
      name,
      type: metrics[name].type,
      help: metrics[name].help,
      samples: found.get(name) ?? [],
    }));
  };
};
