// The tables as Kysely sees them. Portable types only: text, integers below 2^53, bytes. Flags are 0 or 1, lists and
// details canonical JSON, instants milliseconds since the epoch. `row_mac` authenticates the policy columns (rows.ts); `row_version` is the version of the row set in which
// the row was written (row-set.ts).

import type { Generated } from 'kysely';

export interface Schema {
  settings: { name: string; value: string };
  tenants: {
    id: string;
    name: string;
    state: string;
    created_at: number;
    suspended_at: number | null;
    deleted_at: number | null;
    purge_at: number | null;
    purged_at: number | null;
    unrecoverable_at: number | null;
    row_mac: string;
    row_version: number;
  };
  tenant_keks: { tenant_id: string; epoch: number; root_epoch: number; record: Uint8Array };
  key_records: {
    object_id: string;
    version: number;
    class: string;
    tenant_id: string;
    epoch: number;
    attributes: string;
    /** Null after it was wiped. */
    record: Uint8Array | null;
  };
  vaults: {
    id: string;
    tenant_id: string;
    name: string;
    kind: string;
    state: string;
    created_at: number;
    /** Canonical JSON of the rule; null: none. */
    dual_control: string | null;
    /** How often its keys are to be rotated. */
    profile: string;
    row_mac: string;
    row_version: number;
  };
  keys: {
    id: string;
    tenant_id: string;
    vault_id: string;
    name: string;
    kind: string;
    algorithm: string;
    bits: number;
    usages: string;
    state: string;
    disabled_at: number | null;
    current_version: number;
    created_at: number;
    deleted_at: number | null;
    reimported_at: number | null;
    destroyed_at: number | null;
    unrecoverable_at: number | null;
    application_id: string | null;
    /** Canonical JSON; null: none. */
    tags: string | null;
    /** Of a restored copy: the key in the tenant that the snapshot was of, or what that one was a copy of. */
    copy_of: string | null;
    first_used_at: number | null;
    last_used_at: number | null;
    row_mac: string;
    row_version: number;
  };
  /** Where the list of keys of a tag looks: made of what stands in `keys`. */
  key_tags: { tenant_id: string; tag: string; key_id: string };
  key_versions: { key_id: string; version: number; created_at: number };
  tde_groups: {
    id: string;
    tenant_id: string;
    name: string;
    vault_id: string;
    created_at: number;
    row_mac: string;
    row_version: number;
  };
  tde_applications: {
    id: string;
    tenant_id: string;
    group_id: string;
    name: string;
    app_id: string;
    state: string;
    /** Canonical JSON; null: none. */
    compatibility: string | null;
    /** Canonical JSON; null: any. */
    callers: string | null;
    created_at: number;
    row_mac: string;
    row_version: number;
  };
  access_guids: {
    id: string;
    application_id: string;
    hash: string;
    created_at: number;
    removed_at: number | null;
    last_used_at: number | null;
    row_mac: string;
    row_version: number;
  };
  instances: {
    id: string;
    application_id: string;
    access_guid_id: string;
    app_id: string;
    host: string;
    process: string;
    os_user: string;
    library_version: string;
    agent_version: string;
    pid: number;
    first_used_at: number;
    last_used_at: number;
    uses: number;
  };
  tde_objects: {
    handle: number;
    id: string;
    tenant_id: string;
    group_id: string;
    application_id: string;
    class: string;
    label: string;
    algorithm: string | null;
    bits: number | null;
    usages: string;
    sensitive: number;
    extractable: number;
    always_sensitive: number;
    never_extractable: number;
    modifiable: number;
    destroyable: number;
    local: number;
    private: number;
    check_value: string | null;
    public_key: string | null;
    wrapped_sensitive: number;
    attributes: string;
    created_at: number;
    destroyed_at: number | null;
    content: Uint8Array | null;
    row_mac: string;
    row_version: number;
  };
  endpoints: {
    id: string;
    tenant_id: string;
    name: string;
    prefix: string;
    vault_id: string;
    key_id: string;
    state: string;
    settings: string;
    created_at: number;
    /** When its key was last used through it. */
    last_used_at: number | null;
    row_mac: string;
    row_version: number;
  };
  endpoint_credentials: {
    id: string;
    endpoint_id: string;
    access_key_id: string;
    created_at: number;
    last_used_at: number | null;
    row_mac: string;
    row_version: number;
  };
  api_tokens: {
    id: string;
    tenant_id: string | null;
    kind: string;
    name: string;
    grants: string;
    hash: string;
    created_at: number;
    expires_at: number | null;
    revoked_at: number | null;
    last_used_at: number | null;
    /** The user whose token it is; null: the service's. */
    owner_id: string | null;
    row_mac: string;
    row_version: number;
  };
  users: {
    id: string;
    tenant_id: string | null;
    name: string;
    /** Null when deleted. */
    folded_name: string | null;
    display_name: string;
    email: string | null;
    grants: string;
    state: string;
    password: string | null;
    password_changed_at: number | null;
    must_change_password: number;
    subject: string | null;
    invitation_hash: string | null;
    invited_until: number | null;
    created_at: number;
    last_sign_in_at: number | null;
    row_mac: string;
    row_version: number;
  };
  user_factors: {
    id: string;
    user_id: string;
    kind: string;
    name: string;
    data: string;
    counter: number;
    confirmed_at: number | null;
    created_at: number;
    last_used_at: number | null;
    row_mac: string;
    row_version: number;
  };
  sessions: {
    id: string;
    tenant_id: string | null;
    hash: string;
    holder_kind: string;
    holder_id: string;
    method: string;
    proved: number;
    created_at: number;
    used_at: number;
    expires_at: number;
    peer: string | null;
    agent: string | null;
    row_mac: string;
    row_version: number;
  };
  sign_in_attempts: { hash: string; kind: string; user_id: string | null; data: string; expires_at: number };
  sign_in_failures: { id: string; failures: number; failed_at: number; locked_until: number | null };
  audit_events: {
    sequence: number;
    at: number;
    kind: string;
    actor_kind: string;
    actor_id: string;
    actor_name: string;
    peer: string | null;
    tenant_id: string;
    subject_kind: string;
    subject_id: string;
    request_id: string;
    details: string;
    leaf_hash: Uint8Array;
  };
  /** One row: how many records there are. Whoever appends one holds it until the end of the transaction. */
  audit_head: { id: number; size: number };
  /** Of the log's Merkle tree, above the leaves: every eighth level, which is a tile of 256 hashes of the one below. */
  audit_nodes: { level: number; position: number; hash: Uint8Array };
  audit_checkpoints: { size: number; at: number; note: string };
  recovery_keys: {
    id: string;
    name: string;
    public_key: string;
    created_at: number;
    removed_at: number | null;
    row_mac: string;
    row_version: number;
  };
  snapshots: {
    id: string;
    tenant_id: string;
    origin: string;
    state: string;
    created_at: number;
    audit_size: number;
    size: number | null;
    counts: string | null;
    recovery_key_ids: string;
    signer: string | null;
    verification: string | null;
    verified_at: number | null;
    deleted_at: number | null;
    purged_at: number | null;
    failure: string | null;
    row_mac: string;
    row_version: number;
  };
  snapshot_openings: { id: string; snapshot_id: string; actor_id: string; expires_at: number };
  snapshot_exports: { id: string; snapshot_id: string; at: number; actor_id: string; actor_name: string };
  /** Of keys that came from a snapshot of another tenant: what their XKS ciphertexts are bound to. */
  key_bindings: { key_id: string; binding: Uint8Array };
  external_key_stores: {
    id: string;
    tenant_id: string;
    name: string;
    custom_key_store_id: string;
    region: string;
    endpoint_id: string;
    created_at: number;
    connection: string;
    looked_at: number | null;
    row_mac: string;
    row_version: number;
  };
  diagnoses: {
    id: string;
    endpoint_id: string;
    at: number;
    results: string;
    request_ids: string;
  };
  xks_latency: {
    minute: number;
    endpoint_id: string;
    node: string;
    counts: string;
    errors: number;
  };
  runbook_runs: {
    id: string;
    tenant_id: string;
    application_id: string;
    runbook: string;
    /** JSON: what was shown. */
    content: string;
    started_at: number;
    started_by: string;
    finished_at: number | null;
    finished_by: string | null;
    outcome: string | null;
  };
  runbook_ticks: {
    run_id: string;
    step: string;
    outcome: string;
    at: number;
    actor_id: string;
    actor_name: string;
    note: string | null;
  };
  notifications: {
    id: string;
    tenant_id: string;
    kind: string;
    subject_kind: string;
    subject_id: string;
    subject_name: string;
    severity: string;
    stage: number;
    harm_at: number;
    details: string;
    raised_at: number;
    resolved_at: number | null;
    acknowledged_at: number | null;
    acknowledged_by: string | null;
  };
  notification_events: {
    sequence: Generated<number>;
    event: string;
    at: number;
    notification_id: string;
    document: string;
  };
  approvals: {
    id: string;
    tenant_id: string;
    kind: string;
    subject_kind: string;
    subject_id: string;
    state: string;
    requested_by: string;
    requested_at: number;
    expires_at: number;
    ended_at: number | null;
    /** Canonical JSON of what is only read as a whole. */
    document: string;
    row_mac: string;
    row_version: number;
  };
  nodes: {
    id: string;
    name: string;
    version: string;
    state: string;
    started_at: number;
    heartbeat_at: number;
    contact_ms: number;
    epoch: number;
    clock_ahead_ms: number;
    root_epoch: number;
    oldest_root_epoch: number;
    public_key: Uint8Array;
    proof: Uint8Array;
    /** Of the data directory; empty: not known. */
    directory: Generated<string>;
  };
  /** See operations/shared/idempotency.ts. */
  idempotency_keys: {
    id: string;
    fingerprint: string;
    request_id: string;
    run: string;
    created_at: number;
    location: string | null;
    body: string | null;
    row_mac: string;
    row_version: number;
  };
  /** One row: the number of the last change, its id, and how often the set of KEKs has changed. */
  node_head: { id: number; epoch: number; keks: number; history: string };
  /** What other nodes must read again, by the number of the change. */
  node_changes: {
    epoch: number;
    previous: number;
    history: string;
    previous_history: string;
    at: number;
    changes: string;
  };
  /** See operations/nodes/node-duties.ts. */
  node_duties: { duty: string; node_id: string | null; fence: number; renewals: number };
  /** At most one row: the root key that is on its way to all nodes. */
  root_turns: { id: number; epoch: number; node_id: string; phase: string };
  root_parcels: { node_id: string; epoch: number; public_key: Uint8Array; sealed: Uint8Array };
  /** At most one row: the newest version, the masked sum over all policy rows, and its authentication code (row-set.ts). */
  row_set: { id: number; version: number; sum: string; tag: string };
  /** Derived from the other tables: search.ts. */
  search_terms: { scope: string; kind: string; term: string; subject_id: string; field: string };
  /** Requests of database hosts that were carried out. `handles`: JSON. */
  tde_requests: { id: string; fingerprint: string; handles: string; at: number };
  /** Requests without a record, by the minute, until the audit log has them. */
  request_log_dropped: { minute: number; signed: number; unsigned: number };
  request_log: {
    sequence: Generated<number>;
    at: number;
    endpoint_id: string | null;
    operation: string;
    status: number;
    error_name: string | null;
    request_id: string;
    kms_operation: string | null;
    kms_request_id: string | null;
    principal: string | null;
    kms_key_arn: string | null;
    external_key_id: string | null;
    credential_id: string | null;
    duration_ms: number;
    read_ms: number;
    auth_ms: number;
    crypto_ms: number;
    reason: string | null;
    peer: string | null;
  };
}

export type RunbookRunRow = Schema['runbook_runs'];
export type RunbookTickRow = Schema['runbook_ticks'];
