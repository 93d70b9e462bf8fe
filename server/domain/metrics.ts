// The metrics of the service: one row each. The numbers are gathered in
// operations/service/read-metrics.ts, written by fronts/metrics.ts and adapters/telemetry/otlp.ts,
// and explained in docs/monitoring.md; tests keep dashboard, alerts and page to this table.
//
// Labels have few values: what is configured (endpoints, credentials, certificates, nodes) or one
// of a fixed list. What callers send (principals, keys, paths) is never a label. No value and no
// label is a secret.

export interface Metric {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
}

export const metrics = {
  dke_xks_requests_total: {
    type: 'counter',
    help: 'Requests to the XKS proxy. endpoint none: the request matched no endpoint; error empty: the request succeeded.',
    labels: ['endpoint', 'operation', 'status', 'error'],
  },
  dke_xks_request_duration_seconds: {
    type: 'histogram',
    help: 'From the first byte of a request to the XKS proxy to its answer. The cloud key service gives up after 0.25 s.',
    labels: ['endpoint', 'operation'],
  },
  dke_xks_throttled_total: {
    type: 'counter',
    help: 'Requests to the XKS proxy answered 429. cause rate: above the rate of the endpoint; load: the service was busy.',
    labels: ['endpoint', 'cause'],
  },
  dke_xks_endpoint_info: {
    type: 'gauge',
    help: 'Always 1: name and state of a key store endpoint.',
    labels: ['endpoint', 'name', 'prefix', 'state'],
  },
  dke_xks_credential_created_timestamp_seconds: {
    type: 'gauge',
    help: 'When a SigV4 credential was created.',
    labels: ['endpoint', 'access_key_id'],
  },
  dke_xks_credential_last_used_timestamp_seconds: {
    type: 'gauge',
    help: 'When a SigV4 credential last signed a request; absent: never.',
    labels: ['endpoint', 'access_key_id'],
  },
  dke_external_key_store_state: {
    type: 'gauge',
    help: 'A registered external key store. 1 for the state of its connection: CONNECTED, CONNECTING, DISCONNECTING, DISCONNECTED or FAILED.',
    labels: ['endpoint', 'custom_key_store_id', 'key_store', 'state'],
  },
  dke_limit_refusals_total: {
    type: 'counter',
    help: 'Connections and requests that a limit has refused or ended. The log names the addresses.',
    labels: ['limit'],
  },
  dke_request_log_queued: {
    type: 'gauge',
    help: 'Records of the request log that wait to be written.',
    labels: [],
  },
  dke_request_log_dropped_total: {
    type: 'counter',
    help: 'Signed requests without a record in the request log, because too many records waited.',
    labels: [],
  },
  dke_log_lost_lines_total: {
    type: 'counter',
    help: 'Lines of the log of the service that were lost because its destination could not be written.',
    labels: [],
  },
  dke_log_failing: {
    type: 'gauge',
    help: '1: the last write to the log of the service failed.',
    labels: [],
  },
  dke_access_log_lost_lines_total: {
    type: 'counter',
    help: 'Lines of the access log that were lost because its file could not be written; 0 if the log is off.',
    labels: [],
  },
  dke_access_log_failing: {
    type: 'gauge',
    help: '1: the last write to the access log failed.',
    labels: [],
  },
  dke_telemetry_dropped_total: {
    type: 'counter',
    help: 'Spans and metric exports that were not delivered to the OpenTelemetry receiver. cause queue: too many waited; export: the receiver was unreachable, too slow or refused them.',
    labels: ['signal', 'cause'],
  },
  dke_telemetry_failing: {
    type: 'gauge',
    help: '1: the last export to the OpenTelemetry receiver failed.',
    labels: ['signal'],
  },
  dke_disk_free_bytes: {
    type: 'gauge',
    help: 'Free space of a file system that the service writes to. place: data, log, access-log or snapshots; absent: it did not answer.',
    labels: ['place'],
  },
  dke_disk_size_bytes: {
    type: 'gauge',
    help: 'Size of a file system that the service writes to.',
    labels: ['place'],
  },
  dke_snapshot_made_timestamp_seconds: {
    type: 'gauge',
    help: 'When the newest stored snapshot of a tenant was created; absent: there is none.',
    labels: ['tenant'],
  },
  dke_snapshot_verified_timestamp_seconds: {
    type: 'gauge',
    help: 'When a snapshot of a tenant was last verified successfully. depth opened: with a recovery key, every key compared; absent: never. depth sealed: in any way.',
    labels: ['tenant', 'depth'],
  },
  dke_snapshots_available: {
    type: 'gauge',
    help: 'Stored snapshots of a tenant.',
    labels: ['tenant'],
  },
  dke_recovery_keys: {
    type: 'gauge',
    help: 'Recovery keys that new snapshots are sealed to. 0: no snapshot can be created.',
    labels: [],
  },
  dke_audit_records: {
    type: 'gauge',
    help: 'Records of the audit log.',
    labels: [],
  },
  dke_audit_unsealed_records: {
    type: 'gauge',
    help: 'Audit records that no signed checkpoint covers yet. A checkpoint is created every minute.',
    labels: [],
  },
  dke_audit_sealed_timestamp_seconds: {
    type: 'gauge',
    help: 'When the newest checkpoint of the audit log was created; 0: there is none.',
    labels: [],
  },
  dke_audit_sink_lag_records: {
    type: 'gauge',
    help: 'Records that a sink does not have yet. log: audit or requests.',
    labels: ['sink', 'log'],
  },
  dke_audit_sink_failing: {
    type: 'gauge',
    help: '1: the last attempt to reach a sink failed.',
    labels: ['sink', 'log'],
  },
  dke_audit_sink_lost_records_total: {
    type: 'counter',
    help: 'Records of the request log that were removed before a sink received them; kept across restarts.',
    labels: ['sink', 'log'],
  },
  dke_tde_requests_total: {
    type: 'counter',
    help: 'Requests of agents on database hosts.',
    labels: ['operation', 'status'],
  },
  dke_tde_request_duration_seconds: {
    type: 'histogram',
    help: 'From the first byte of a request of an agent to its answer.',
    labels: ['operation'],
  },
  dke_api_requests_total: {
    type: 'counter',
    help: 'Requests to the API. route: the pattern of the path, or unknown.',
    labels: ['method', 'route', 'status'],
  },
  dke_api_request_duration_seconds: {
    type: 'histogram',
    help: 'From the first byte of a request to the API to its answer.',
    labels: ['method'],
  },
  dke_sign_ins_total: {
    type: 'counter',
    help: 'Attempts to sign in. result: succeeded, failed, or locked (refused because of earlier failures).',
    labels: ['result'],
  },
  dke_access_guid_renewal_failures_total: {
    type: 'counter',
    help: 'Attempts to store the hash of an access_guid of an earlier version in its new form that failed. DKE repeats each after a minute.',
    labels: [],
  },
  dke_sign_in_locked: {
    type: 'gauge',
    help: 'Users, addresses and networks that cannot sign in now because of failed attempts.',
    labels: [],
  },
  dke_notifications_open: {
    type: 'gauge',
    help: 'Open notifications that are not acknowledged.',
    labels: ['tenant', 'severity'],
  },
  dke_notification_target_waiting: {
    type: 'gauge',
    help: 'Notification events that a target does not have yet.',
    labels: ['target'],
  },
  dke_notification_target_failing: {
    type: 'gauge',
    help: '1: the last attempt to reach a notification target failed, as seen by this node.',
    labels: ['target'],
  },
  dke_nodes: {
    type: 'gauge',
    help: 'Nodes of the service by state. offline: no heartbeat for some seconds.',
    labels: ['state'],
  },
  dke_node_heartbeat_timestamp_seconds: {
    type: 'gauge',
    help: 'Last heartbeat of a node that is not stopped.',
    labels: ['node'],
  },
  dke_node_pending_changes: {
    type: 'gauge',
    help: 'Changes that a node has not confirmed yet.',
    labels: ['node'],
  },
  dke_node_in_contact: {
    type: 'gauge',
    help: '1: the data in the memory of this node is recent enough to use keys.',
    labels: [],
  },
  dke_certificate_expiry_timestamp_seconds: {
    type: 'gauge',
    help: 'When the certificate that is served for a name expires; the earliest of its chain.',
    labels: ['name'],
  },
  dke_certificate_file_failing: {
    type: 'gauge',
    help: '1: the next start cannot serve the certificate files, or clients would refuse them. Until then, the certificate in memory is served.',
    labels: [],
  },
  dke_healthy: {
    type: 'gauge',
    help: '1: all health checks passed.',
    labels: [],
  },
  dke_health_check: {
    type: 'gauge',
    help: '1: this health check passed.',
    labels: ['check'],
  },
  dke_sealed: {
    type: 'gauge',
    help: '1: the root key is not open. A sealed service has only this metric, dke_healthy and dke_limit_refusals_total.',
    labels: [],
  },
  dke_quarantined: {
    type: 'gauge',
    help: '1: the database does not match its last checkpoint, and changes are refused (dke quarantine show).',
    labels: [],
  },
  dke_metrics_incomplete: {
    type: 'gauge',
    help: '1: some metrics could not be read this time and are absent.',
    labels: [],
  },
  dke_clock_jumped: {
    type: 'gauge',
    help: '1: the clock has jumped, and deadlines are paused (docs/clock.md).',
    labels: [],
  },
  dke_root_epoch: {
    type: 'gauge',
    help: 'Epoch of the root key: each erasure run and each rotation begins a new one.',
    labels: [],
  },
  dke_root_backup_epoch: {
    type: 'gauge',
    help: 'Epoch of the root key in the newest backup (dke root backup); 0: there is none. A backup of an older epoch opens nothing.',
    labels: [],
  },
  dke_backup_timestamp_seconds: {
    type: 'gauge',
    help: 'Time of the newest backup of the service (dke backup create); 0: none was created. Absent with PostgreSQL, which has its own.',
    labels: [],
  },
  dke_keys_in_memory: {
    type: 'gauge',
    help: 'Keys that are open in locked memory.',
    labels: [],
  },
  dke_key_memory_used_bytes: {
    type: 'gauge',
    help: 'Locked memory that open keys use.',
    labels: [],
  },
  dke_key_memory_capacity_bytes: {
    type: 'gauge',
    help: 'Locked memory that is available for keys.',
    labels: [],
  },
  dke_key_memory_locked: {
    type: 'gauge',
    help: '1: memory for keys is locked; 0: keys may reach the swap space.',
    labels: [],
  },
  dke_erasure_pending_keys: {
    type: 'gauge',
    help: 'Destroyed keys that no erasure run has covered yet.',
    labels: [],
  },
  dke_erasure_pending_objects: {
    type: 'gauge',
    help: 'Token objects whose replaced or destroyed values no erasure run has covered yet.',
    labels: [],
  },
  dke_erasure_waiting_keys: {
    type: 'gauge',
    help: 'Destroyed keys that are not unrecoverable because of copies that the service knows (dke copy list --left).',
    labels: [],
  },
  dke_erasure_state: {
    type: 'gauge',
    help: '1 for the state of the erasure run: idle, waiting, running, held or failed.',
    labels: ['state'],
  },
  dke_store_writes_waiting: {
    type: 'gauge',
    help: 'Units of work that wait for the one writer of the store.',
    labels: [],
  },
  dke_event_loop_delay_seconds: {
    type: 'histogram',
    help: 'How late a timer of the event loop fires, measured fifty times a second.',
    labels: [],
  },
  dke_event_loop_active_seconds_total: {
    type: 'counter',
    help: 'Time in which the event loop had work; its rate is the share of one core that it uses.',
    labels: [],
  },
  dke_build_info: {
    type: 'gauge',
    help: 'Always 1: the version of the service, of Node, and of OpenSSL in the core.',
    labels: ['version', 'node', 'libcrypto'],
  },
  process_cpu_seconds_total: {
    type: 'counter',
    help: 'CPU time of the process, user and system.',
    labels: [],
  },
  process_resident_memory_bytes: {
    type: 'gauge',
    help: 'Resident memory.',
    labels: [],
  },
  process_start_time_seconds: {
    type: 'gauge',
    help: 'When the process started.',
    labels: [],
  },
  process_open_fds: {
    type: 'gauge',
    help: 'Open file descriptors.',
    labels: [],
  },
  process_max_fds: {
    type: 'gauge',
    help: 'How many file descriptors the process may open.',
    labels: [],
  },
  nodejs_heap_used_bytes: {
    type: 'gauge',
    help: 'Memory of JavaScript objects.',
    labels: [],
  },
} as const satisfies Record<string, Metric>;

export type MetricName = keyof typeof metrics;
export type Labels<N extends MetricName> = { readonly [L in (typeof metrics)[N]['labels'][number]]: string };
/** A number of a counter or gauge; the histogram of one. */
export type ValueOf<N extends MetricName> = (typeof metrics)[N]['type'] extends 'histogram' ? Histogram : number;

/** What is written out of a metric. */
export interface MetricFamily extends Omit<Metric, 'labels'> {
  readonly name: string;
  readonly samples: readonly MetricSample[];
}
export interface MetricSample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number | Distribution;
}
/** How many were at most so long, bound by bound; `sum` in seconds. */
export interface Distribution {
  readonly buckets: readonly { readonly bound: number; readonly count: number }[];
  readonly sum: number;
  readonly count: number;
}

/** Upper bounds in seconds; the cloud key service reports 100 ms as slow and gives up after 250. */
export const durationBuckets = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.5, 1] as const;

/** Counts by bucket, one more than there are bounds: what was longer than all. */
export interface Histogram {
  readonly counts: Float64Array;
  /** Milliseconds. */
  sumMs: number;
}

export const newHistogram = (): Histogram => ({ counts: new Float64Array(durationBuckets.length + 1), sumMs: 0 });

const bucketsMs = Float64Array.from(durationBuckets, (bound) => bound * 1000);

export const observe = (histogram: Histogram, ms: number): void => {
  let at = 0;
  while (at < bucketsMs.length && ms > (bucketsMs[at] ?? 0)) at += 1;
  histogram.counts[at] = (histogram.counts[at] ?? 0) + 1;
  histogram.sumMs += ms;
};

export const distributionOf = ({ counts, sumMs }: Histogram): Distribution => {
  let count = 0;
  const buckets = durationBuckets.map((bound, at) => {
    count += counts[at] ?? 0;
    return { bound, count };
  });
  return { buckets, sum: sumMs / 1000, count: count + (counts[durationBuckets.length] ?? 0) };
};
