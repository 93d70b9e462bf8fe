SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.access_guids (
    id text NOT NULL COLLATE pg_catalog."C",
    application_id text NOT NULL COLLATE pg_catalog."C",
    hash text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    removed_at bigint,
    last_used_at bigint,
    row_mac text NOT NULL COLLATE pg_catalog."C",
    row_version bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.api_tokens (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    grants text NOT NULL COLLATE pg_catalog."C",
    hash text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    last_used_at bigint,
    row_mac text NOT NULL COLLATE pg_catalog."C",
    owner_id text COLLATE pg_catalog."C",
    row_version bigint DEFAULT 0 NOT NULL,
    person_id text COLLATE pg_catalog."C"
);
CREATE TABLE public.approvals (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    subject_kind text NOT NULL COLLATE pg_catalog."C",
    subject_id text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    requested_by text NOT NULL COLLATE pg_catalog."C",
    requested_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    ended_at bigint,
    document text NOT NULL COLLATE pg_catalog."C",
    row_mac text NOT NULL COLLATE pg_catalog."C",
    row_version bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.audit_checkpoints (
    size bigint NOT NULL,
    at bigint NOT NULL,
    note text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.audit_events (
    sequence bigint NOT NULL,
    at bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    actor_kind text NOT NULL COLLATE pg_catalog."C",
    actor_id text NOT NULL COLLATE pg_catalog."C",
    actor_name text NOT NULL COLLATE pg_catalog."C",
    peer text COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    subject_kind text NOT NULL COLLATE pg_catalog."C",
    subject_id text NOT NULL COLLATE pg_catalog."C",
    request_id text NOT NULL COLLATE pg_catalog."C",
    details text NOT NULL COLLATE pg_catalog."C",
    leaf_hash bytea NOT NULL
);
CREATE TABLE public.audit_head (
    id integer NOT NULL,
    size bigint NOT NULL
);
CREATE TABLE public.audit_nodes (
    level integer NOT NULL,
    "position" bigint NOT NULL,
    hash bytea NOT NULL
);
CREATE TABLE public.decisions (
    id text NOT NULL COLLATE pg_catalog."C",
    value text COLLATE pg_catalog."C",
    row_mac text NOT NULL COLLATE pg_catalog."C",
    row_version bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.diagnoses (
    id text NOT NULL COLLATE pg_catalog."C",
    endpoint_id text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    results text NOT NULL COLLATE pg_catalog."C",
    request_ids text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.endpoint_credentials (
    id text NOT NULL COLLATE pg_catalog."C",
    endpoint_id text NOT NULL COLLATE pg_catalog."C",
    access_key_id text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    last_used_at bigint,
    row_mac text NOT NULL COLLATE pg_catalog."C",
    row_version bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.endpoints (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    prefix text NOT NULL COLLATE pg_catalog."C",
    vault_id text NOT NULL COLLATE pg_catalog."C",
    key_id text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    settings text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    row_mac text NOT NULL COLLATE pg_catalog."C",
    last_used_at bigint,
    row_version bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.external_key_stores (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    custom_key_store_id text NOT NULL COLLATE pg_catalog."C",
    region text NOT NULL COLLATE pg_catalog."C",
    endpoint_id text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    connection text NOT NULL COLLATE pg_catalog."C",
    row_mac text NOT NULL COLLATE pg_catalog."C",
    looked_at bigint,
    row_version bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.idempotency_keys (
    id text NOT NULL COLLATE pg_catalog."C",
    fingerprint text NOT NULL COLLATE pg_catalog."C",
    request_id text NOT NULL COLLATE pg_catalog."C",
    run text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    location text COLLATE pg_catalog."C",
    body text COLLATE pg_catalog."C",
    row_mac text NOT NULL COLLATE pg_catalog."C",
    row_version bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.instances (
    id text NOT NULL COLLATE pg_catalog."C",
    application_id text NOT NULL COLLATE pg_catalog."C",
    access_guid_id text NOT NULL COLLATE pg_catalog."C",
    app_id text NOT NULL COLLATE pg_catalog."C",
    host text NOT NULL COLLATE pg_catalog."C",
    process text NOT NULL COLLATE pg_catalog."C",
    os_user text NOT NULL COLLATE pg_catalog."C",
    library_version text NOT NULL COLLATE pg_catalog."C",
    agent_version text NOT NULL COLLATE pg_catalog."C",
    pid bigint NOT NULL,
    first_used_at bigint NOT NULL,
    last_used_at bigint NOT NULL,
    uses bigint NOT NULL
);
CREATE TABLE public.key_bindings (
    key_id text NOT NULL COLLATE pg_catalog."C",
    binding bytea NOT NULL
);
CREATE TABLE public.key_records (
    object_id text NOT NULL COLLATE pg_catalog."C",
    version integer NOT NULL,
    class text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    epoch integer NOT NULL,
    attributes text NOT NULL COLLATE pg_catalog."C",
    record bytea
);
CREATE TABLE public.key_tags (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    tag text NOT NULL COLLATE pg_catalog."C",
    key_id text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.key_versions (
    key_id text NOT NULL COLLATE pg_catalog."C",
    version integer NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE public.keys (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    vault_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    algorithm text NOT NULL COLLATE pg_catalog."C",
    bits integer NOT NULL,
    usages text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    disabled_at bigint,
    current_version integer NOT NULL,
    created_at bigint NOT NULL,
    deleted_at bigint,
    reimported_at bigint,
    destroyed_at bigint,
    unrecoverable_at bigint,
    application_id text COLLATE pg_catalog."C",
    row_mac text NOT NULL COLLATE pg_catalog."C",
    first_used_at bigint,
    last_used_at bigint,
    tags text COLLATE pg_catalog."C",
    row_version bigint DEFAULT 0 NOT NULL,
    copy_of text COLLATE pg_catalog."C"
);
CREATE TABLE public.kysely_migration (
    name character varying(255) NOT NULL,
    "timestamp" character varying(255) NOT NULL
);
CREATE TABLE public.kysely_migration_lock (
    id character varying(255) NOT NULL,
    is_locked integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.node_changes (
    epoch bigint NOT NULL,
    previous bigint NOT NULL,
    at bigint NOT NULL,
    changes text NOT NULL COLLATE pg_catalog."C",
    history text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    previous_history text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    code text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.node_duties (
    duty text NOT NULL COLLATE pg_catalog."C",
    node_id text COLLATE pg_catalog."C",
    fence bigint NOT NULL,
    renewals bigint NOT NULL
);
CREATE TABLE public.node_head (
    id integer NOT NULL,
    epoch bigint NOT NULL,
    keks bigint NOT NULL,
    history text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.nodes (
    id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    version text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    started_at bigint NOT NULL,
    heartbeat_at bigint NOT NULL,
    contact_ms bigint NOT NULL,
    epoch bigint NOT NULL,
    root_epoch integer NOT NULL,
    oldest_root_epoch integer NOT NULL,
    public_key bytea NOT NULL,
    proof bytea NOT NULL,
    clock_ahead_ms bigint DEFAULT 0 NOT NULL,
    directory text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.notification_events (
    sequence bigint NOT NULL,
    event text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    notification_id text NOT NULL COLLATE pg_catalog."C",
    document text NOT NULL COLLATE pg_catalog."C"
);
CREATE SEQUENCE public.notification_events_sequence_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.notification_events_sequence_seq OWNED BY public.notification_events.sequence;
CREATE TABLE public.notifications (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    subject_kind text NOT NULL COLLATE pg_catalog."C",
    subject_id text NOT NULL COLLATE pg_catalog."C",
    subject_name text NOT NULL COLLATE pg_catalog."C",
    severity text NOT NULL COLLATE pg_catalog."C",
    stage integer NOT NULL,
    harm_at bigint NOT NULL,
    details text NOT NULL COLLATE pg_catalog."C",
    raised_at bigint NOT NULL,
    resolved_at bigint,
    acknowledged_at bigint,
    acknowledged_by text COLLATE pg_catalog."C"
);
CREATE TABLE public.outside_copies (
    id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    tenant_id text COLLATE pg_catalog."C",
    snapshot_id text COLLATE pg_catalog."C",
    at bigint NOT NULL,
    actor_id text NOT NULL COLLATE pg_catalog."C",
    actor_name text NOT NULL COLLATE pg_catalog."C",
    state_from bigint NOT NULL,
    state_until bigint NOT NULL,
    state_size bigint,
    erased_until bigint,
    erased_size bigint,
    oldest_root_epoch integer,
    root_epoch integer,
    destroyed_at bigint,
    row_mac text NOT NULL COLLATE pg_catalog."C",
    row_version bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.recovery_keys (
    id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    public_key text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    removed_at bigint,
    row_mac text NOT NULL COLLATE pg_catalog."C",
    row_version bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.request_log (
    sequence bigint NOT NULL,
    at bigint NOT NULL,
    endpoint_id text COLLATE pg_catalog."C",
    operation text NOT NULL COLLATE pg_catalog."C",
    status integer NOT NULL,
    error_name text COLLATE pg_catalog."C",
    request_id text NOT NULL COLLATE pg_catalog."C",
    kms_operation text COLLATE pg_catalog."C",
    kms_request_id text COLLATE pg_catalog."C",
    principal text COLLATE pg_catalog."C",
    kms_key_arn text COLLATE pg_catalog."C",
    aws_source_vpc text COLLATE pg_catalog."C",
    aws_source_vpce text COLLATE pg_catalog."C",
    kms_via_service text COLLATE pg_catalog."C",
    external_key_id text COLLATE pg_catalog."C",
    credential_id text COLLATE pg_catalog."C",
    duration_ms double precision NOT NULL,
    read_ms double precision NOT NULL,
    auth_ms double precision NOT NULL,
    crypto_ms double precision NOT NULL,
    reason text COLLATE pg_catalog."C",
    peer text COLLATE pg_catalog."C"
);
CREATE TABLE public.request_log_dropped (
    minute bigint NOT NULL,
    signed bigint NOT NULL,
    unsigned bigint NOT NULL
);
CREATE SEQUENCE public.request_log_sequence_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.request_log_sequence_seq OWNED BY public.request_log.sequence;
CREATE TABLE public.root_parcels (
    node_id text NOT NULL COLLATE pg_catalog."C",
    epoch integer NOT NULL,
    public_key bytea NOT NULL,
    sealed bytea NOT NULL
);
CREATE TABLE public.root_runs (
    id integer NOT NULL,
    epoch integer NOT NULL,
    node_id text NOT NULL COLLATE pg_catalog."C",
    phase text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.row_set (
    id integer NOT NULL,
    version bigint NOT NULL,
    sum text NOT NULL COLLATE pg_catalog."C",
    tag text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.runbook_runs (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    application_id text NOT NULL COLLATE pg_catalog."C",
    runbook text NOT NULL COLLATE pg_catalog."C",
    content text NOT NULL COLLATE pg_catalog."C",
    started_at bigint NOT NULL,
    started_by text NOT NULL COLLATE pg_catalog."C",
    finished_at bigint,
    finished_by text COLLATE pg_catalog."C",
    outcome text COLLATE pg_catalog."C"
);
CREATE TABLE public.runbook_ticks (
    run_id text NOT NULL COLLATE pg_catalog."C",
    step text NOT NULL COLLATE pg_catalog."C",
    outcome text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    actor_id text NOT NULL COLLATE pg_catalog."C",
    actor_name text NOT NULL COLLATE pg_catalog."C",
    note text COLLATE pg_catalog."C"
);
CREATE TABLE public.search_terms (
    scope text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    term text NOT NULL COLLATE pg_catalog."C",
    subject_id text NOT NULL COLLATE pg_catalog."C",
    field text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.sessions (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text COLLATE pg_catalog."C",
    hash text NOT NULL COLLATE pg_catalog."C",
    holder_kind text NOT NULL COLLATE pg_catalog."C",
    holder_id text NOT NULL COLLATE pg_catalog."C",
    method text NOT NULL COLLATE pg_catalog."C",
    proved integer NOT NULL,
    created_at bigint NOT NULL,
    used_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    peer text COLLATE pg_catalog."C",
    agent text COLLATE pg_catalog."C",
    row_mac text NOT NULL COLLATE pg_catalog."C",
    row_version bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.settings (
    name text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.sign_in_attempts (
    hash text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    user_id text COLLATE pg_catalog."C",
    data text NOT NULL COLLATE pg_catalog."C",
    expires_at bigint NOT NULL
);
CREATE TABLE public.sign_in_failures (
    id text NOT NULL COLLATE pg_catalog."C",
    failures integer NOT NULL,
    failed_at bigint NOT NULL,
    locked_until bigint
);
CREATE TABLE public.snapshot_exports (
    id text NOT NULL COLLATE pg_catalog."C",
    snapshot_id text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    actor_id text NOT NULL COLLATE pg_catalog."C",
    actor_name text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.snapshot_openings (
    id text NOT NULL COLLATE pg_catalog."C",
    snapshot_id text NOT NULL COLLATE pg_catalog."C",
    actor_id text NOT NULL COLLATE pg_catalog."C",
    expires_at bigint NOT NULL
);
CREATE TABLE public.snapshots (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    origin text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    audit_size bigint NOT NULL,
    size bigint,
    counts text COLLATE pg_catalog."C",
    recovery_key_ids text NOT NULL COLLATE pg_catalog."C",
    signer text COLLATE pg_catalog."C",
    verification text COLLATE pg_catalog."C",
    verified_at bigint,
    deleted_at bigint,
    purged_at bigint,
    failure text COLLATE pg_catalog."C",
    erased integer,
    row_mac text NOT NULL COLLATE pg_catalog."C",
    row_version bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.tde_applications (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    group_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    app_id text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    row_mac text NOT NULL COLLATE pg_catalog."C",
    compatibility text COLLATE pg_catalog."C",
    row_version bigint DEFAULT 0 NOT NULL,
    callers text COLLATE pg_catalog."C",
    token_label text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.tde_groups (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    vault_id text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    row_mac text NOT NULL COLLATE pg_catalog."C",
    row_version bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.tde_objects (
    handle integer NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    group_id text NOT NULL COLLATE pg_catalog."C",
    application_id text NOT NULL COLLATE pg_catalog."C",
    class text NOT NULL COLLATE pg_catalog."C",
    label text NOT NULL COLLATE pg_catalog."C",
    algorithm text COLLATE pg_catalog."C",
    bits integer,
    usages text NOT NULL COLLATE pg_catalog."C",
    sensitive integer NOT NULL,
    extractable integer NOT NULL,
    always_sensitive integer NOT NULL,
    never_extractable integer NOT NULL,
    modifiable integer NOT NULL,
    destroyable integer NOT NULL,
    local integer NOT NULL,
    private integer NOT NULL,
    check_value text COLLATE pg_catalog."C",
    public_key text COLLATE pg_catalog."C",
    wrapped_sensitive integer NOT NULL,
    attributes text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    destroyed_at bigint,
    content bytea,
    rules text COLLATE pg_catalog."C",
    content_digest text COLLATE pg_catalog."C",
    content_replaced_at bigint,
    row_mac text NOT NULL COLLATE pg_catalog."C",
    row_version bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.tde_requests (
    id text NOT NULL COLLATE pg_catalog."C",
    fingerprint text NOT NULL COLLATE pg_catalog."C",
    handles text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    row_mac text NOT NULL COLLATE pg_catalog."C",
    row_version bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.tenant_keks (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    epoch integer NOT NULL,
    root_epoch integer NOT NULL,
    record bytea NOT NULL
);
CREATE TABLE public.tenants (
    id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    suspended_at bigint,
    deleted_at bigint,
    purge_at bigint,
    purged_at bigint,
    unrecoverable_at bigint,
    row_mac text NOT NULL COLLATE pg_catalog."C",
    row_version bigint DEFAULT 0 NOT NULL,
    cleared_at bigint
);
CREATE TABLE public.user_factors (
    id text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    data text NOT NULL COLLATE pg_catalog."C",
    counter bigint NOT NULL,
    confirmed_at bigint,
    created_at bigint NOT NULL,
    last_used_at bigint,
    row_mac text NOT NULL COLLATE pg_catalog."C",
    row_version bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.users (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    folded_name text COLLATE pg_catalog."C",
    display_name text NOT NULL COLLATE pg_catalog."C",
    email text COLLATE pg_catalog."C",
    grants text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    password text COLLATE pg_catalog."C",
    password_changed_at bigint,
    must_change_password integer NOT NULL,
    subject text COLLATE pg_catalog."C",
    invitation_hash text COLLATE pg_catalog."C",
    invited_until bigint,
    created_at bigint NOT NULL,
    last_sign_in_at bigint,
    row_mac text NOT NULL COLLATE pg_catalog."C",
    row_version bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.vaults (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    row_mac text NOT NULL COLLATE pg_catalog."C",
    dual_control text COLLATE pg_catalog."C",
    profile text DEFAULT 'standard'::text NOT NULL COLLATE pg_catalog."C",
    row_version bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.xks_latency (
    minute integer NOT NULL,
    endpoint_id text NOT NULL COLLATE pg_catalog."C",
    node text NOT NULL COLLATE pg_catalog."C",
    counts text NOT NULL COLLATE pg_catalog."C",
    errors integer NOT NULL
);
ALTER TABLE ONLY public.notification_events ALTER COLUMN sequence SET DEFAULT nextval('public.notification_events_sequence_seq'::regclass);
ALTER TABLE ONLY public.request_log ALTER COLUMN sequence SET DEFAULT nextval('public.request_log_sequence_seq'::regclass);
INSERT INTO public.audit_events VALUES (1, 1796009686925, 'tenant.created', 'administrator', 'a', 'a', NULL, '01a22a84-f4a3-7001-baca-74a2d8d97373', 'tenant', '01a22a84-f4a3-7001-baca-74a2d8d97373', 'r-1', '{}', '\x02c95bde2fe6334d0b784a417584aa1c0777d9190b2f21f1eaf3da304d680b16');
INSERT INTO public.audit_head VALUES (1, 1);
INSERT INTO public.kysely_migration VALUES ('0001-baseline', '2026-11-30T03:34:46.705Z');
INSERT INTO public.kysely_migration VALUES ('0002-owned-records', '2026-11-30T03:34:46.708Z');
INSERT INTO public.kysely_migration VALUES ('0003-rules-of-keys', '2026-11-30T03:34:46.711Z');
INSERT INTO public.kysely_migration VALUES ('0004-decisions', '2026-11-30T03:34:46.712Z');
INSERT INTO public.kysely_migration VALUES ('0005-coded-requests', '2026-11-30T03:34:46.713Z');
INSERT INTO public.kysely_migration VALUES ('0006-outside-copies', '2026-11-30T03:34:46.714Z');
INSERT INTO public.kysely_migration VALUES ('0007-values-under-the-code', '2026-11-30T03:34:46.715Z');
INSERT INTO public.kysely_migration VALUES ('0008-coded-changes', '2026-11-30T03:34:46.716Z');
INSERT INTO public.kysely_migration VALUES ('0009-bytewise-text', '2026-11-30T03:34:46.717Z');
INSERT INTO public.kysely_migration VALUES ('0010-ways-of-requests', '2026-11-30T03:34:46.718Z');
INSERT INTO public.kysely_migration VALUES ('0011-token-labels', '2026-11-30T03:34:46.719Z');
INSERT INTO public.kysely_migration_lock VALUES ('migration_lock', 0);
INSERT INTO public.node_changes VALUES (1796009686678, 1796009686677, 1796009686929, '{"tenants":["01a22a84-f4a3-7001-baca-74a2d8d97373"],"vaults":["01a22a84-f4a3-7002-80d3-72d00b91d0a6"]}', '01a22a84-f78f-7000-b760-22f962d17a95', '', '01ecffe070c8a28c2fac51323ba518962ee1edd30ebca4988b527017595be8b6');
INSERT INTO public.node_head VALUES (1, 1796009686678, 0, '01a22a84-f78f-7000-b760-22f962d17a95');
INSERT INTO public.row_set VALUES (1, 1, 'c8eab84f28c3c7a4dbc8b0185dde1fecd259c514128710bb11fae0b331eae1fc', 'c644932260d237a7291e8b55eca11830b0bfc16a14cdbe94daa726c44db2e2e7');
INSERT INTO public.search_terms VALUES ('01a22a84-f4a3-7001-baca-74a2d8d97373', 'vault', 'payments', '01a22a84-f4a3-7002-80d3-72d00b91d0a6', 'name');
INSERT INTO public.search_terms VALUES ('01a22a84-f4a3-7001-baca-74a2d8d97373', 'vault', '01a22a84 f4a3 7002 80d3 72d00b91d0a6', '01a22a84-f4a3-7002-80d3-72d00b91d0a6', 'id');
INSERT INTO public.search_terms VALUES ('01a22a84-f4a3-7001-baca-74a2d8d97373', 'vault', '72d00b91d0a6', '01a22a84-f4a3-7002-80d3-72d00b91d0a6', 'id');
INSERT INTO public.settings VALUES ('search-terms', '3');
INSERT INTO public.tenants VALUES ('01a22a84-f4a3-7001-baca-74a2d8d97373', 'default', 'active', 1, NULL, NULL, NULL, NULL, NULL, '6967c450014df3e32d70906a14e3b918f63f09985d5388c45e50bc4113c0efce', 1, NULL);
INSERT INTO public.vaults VALUES ('01a22a84-f4a3-7002-80d3-72d00b91d0a6', '01a22a84-f4a3-7001-baca-74a2d8d97373', 'payments', 'general', 'enabled', 2, 'eb7319bc7c95b8242c78583990fe15a5f6363d7ecdfb6d2f348e3748ea4a0dd3', NULL, 'standard', 1);
SELECT pg_catalog.setval('public.notification_events_sequence_seq', 1, false);
SELECT pg_catalog.setval('public.request_log_sequence_seq', 1, false);
ALTER TABLE ONLY public.access_guids
    ADD CONSTRAINT access_guids_hash_key UNIQUE (hash);
ALTER TABLE ONLY public.access_guids
    ADD CONSTRAINT access_guids_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.api_tokens
    ADD CONSTRAINT api_tokens_hash_key UNIQUE (hash);
ALTER TABLE ONLY public.api_tokens
    ADD CONSTRAINT api_tokens_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.approvals
    ADD CONSTRAINT approvals_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.audit_checkpoints
    ADD CONSTRAINT audit_checkpoints_pkey PRIMARY KEY (size);
ALTER TABLE ONLY public.audit_events
    ADD CONSTRAINT audit_events_pkey PRIMARY KEY (sequence);
ALTER TABLE ONLY public.audit_head
    ADD CONSTRAINT audit_head_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.audit_nodes
    ADD CONSTRAINT audit_nodes_pk PRIMARY KEY (level, "position");
ALTER TABLE ONLY public.decisions
    ADD CONSTRAINT decisions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.diagnoses
    ADD CONSTRAINT diagnoses_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.endpoint_credentials
    ADD CONSTRAINT endpoint_credentials_access_key_id_key UNIQUE (access_key_id);
ALTER TABLE ONLY public.endpoint_credentials
    ADD CONSTRAINT endpoint_credentials_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.endpoints
    ADD CONSTRAINT endpoints_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.endpoints
    ADD CONSTRAINT endpoints_prefix_key UNIQUE (prefix);
ALTER TABLE ONLY public.external_key_stores
    ADD CONSTRAINT external_key_stores_by_cloud UNIQUE (tenant_id, custom_key_store_id, region);
ALTER TABLE ONLY public.external_key_stores
    ADD CONSTRAINT external_key_stores_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.instances
    ADD CONSTRAINT instances_identity UNIQUE (access_guid_id, app_id, host, process, os_user);
ALTER TABLE ONLY public.instances
    ADD CONSTRAINT instances_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.key_bindings
    ADD CONSTRAINT key_bindings_pkey PRIMARY KEY (key_id);
ALTER TABLE ONLY public.key_records
    ADD CONSTRAINT key_records_pk PRIMARY KEY (tenant_id, object_id, version, class);
ALTER TABLE ONLY public.key_tags
    ADD CONSTRAINT key_tags_pk PRIMARY KEY (tenant_id, tag, key_id);
ALTER TABLE ONLY public.key_versions
    ADD CONSTRAINT key_versions_pk PRIMARY KEY (key_id, version);
ALTER TABLE ONLY public.keys
    ADD CONSTRAINT keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.kysely_migration_lock
    ADD CONSTRAINT kysely_migration_lock_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.kysely_migration
    ADD CONSTRAINT kysely_migration_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.node_changes
    ADD CONSTRAINT node_changes_pkey PRIMARY KEY (epoch);
ALTER TABLE ONLY public.node_duties
    ADD CONSTRAINT node_duties_pkey PRIMARY KEY (duty);
ALTER TABLE ONLY public.node_head
    ADD CONSTRAINT node_head_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.nodes
    ADD CONSTRAINT nodes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.notification_events
    ADD CONSTRAINT notification_events_pkey PRIMARY KEY (sequence);
ALTER TABLE ONLY public.notifications
    ADD CONSTRAINT notifications_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.outside_copies
    ADD CONSTRAINT outside_copies_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.recovery_keys
    ADD CONSTRAINT recovery_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.request_log_dropped
    ADD CONSTRAINT request_log_dropped_pkey PRIMARY KEY (minute);
ALTER TABLE ONLY public.request_log
    ADD CONSTRAINT request_log_pkey PRIMARY KEY (sequence);
ALTER TABLE ONLY public.root_parcels
    ADD CONSTRAINT root_parcels_pkey PRIMARY KEY (node_id);
ALTER TABLE ONLY public.root_runs
    ADD CONSTRAINT root_runs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.row_set
    ADD CONSTRAINT row_set_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runbook_runs
    ADD CONSTRAINT runbook_runs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runbook_ticks
    ADD CONSTRAINT runbook_ticks_key PRIMARY KEY (run_id, step);
ALTER TABLE ONLY public.search_terms
    ADD CONSTRAINT search_terms_pk PRIMARY KEY (scope, kind, term, subject_id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_hash_key UNIQUE (hash);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.settings
    ADD CONSTRAINT settings_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.sign_in_attempts
    ADD CONSTRAINT sign_in_attempts_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY public.sign_in_failures
    ADD CONSTRAINT sign_in_failures_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.snapshot_exports
    ADD CONSTRAINT snapshot_exports_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.snapshot_openings
    ADD CONSTRAINT snapshot_openings_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.snapshots
    ADD CONSTRAINT snapshots_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tde_applications
    ADD CONSTRAINT tde_applications_name UNIQUE (tenant_id, name);
ALTER TABLE ONLY public.tde_applications
    ADD CONSTRAINT tde_applications_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tde_groups
    ADD CONSTRAINT tde_groups_name UNIQUE (tenant_id, name);
ALTER TABLE ONLY public.tde_groups
    ADD CONSTRAINT tde_groups_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tde_objects
    ADD CONSTRAINT tde_objects_id_key UNIQUE (id);
ALTER TABLE ONLY public.tde_objects
    ADD CONSTRAINT tde_objects_pkey PRIMARY KEY (handle);
ALTER TABLE ONLY public.tde_requests
    ADD CONSTRAINT tde_requests_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tenant_keks
    ADD CONSTRAINT tenant_keks_pk PRIMARY KEY (tenant_id, epoch);
ALTER TABLE ONLY public.tenants
    ADD CONSTRAINT tenants_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.user_factors
    ADD CONSTRAINT user_factors_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_folded_name_key UNIQUE (folded_name);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_invitation_hash_key UNIQUE (invitation_hash);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_subject_key UNIQUE (subject);
ALTER TABLE ONLY public.vaults
    ADD CONSTRAINT vaults_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.xks_latency
    ADD CONSTRAINT xks_latency_key PRIMARY KEY (minute, endpoint_id, node);
CREATE INDEX access_guids_by_application ON public.access_guids USING btree (application_id);
CREATE INDEX api_tokens_of_tenant ON public.api_tokens USING btree (tenant_id, id);
CREATE INDEX approvals_by_state ON public.approvals USING btree (tenant_id, state, id);
CREATE INDEX approvals_by_subject ON public.approvals USING btree (subject_id, id);
CREATE INDEX approvals_of_tenant ON public.approvals USING btree (tenant_id, id);
CREATE INDEX audit_by_actor ON public.audit_events USING btree (actor_id, sequence);
CREATE INDEX audit_by_kind ON public.audit_events USING btree (kind, sequence);
CREATE INDEX audit_by_kind_of_tenant ON public.audit_events USING btree (tenant_id, kind, sequence);
CREATE INDEX audit_by_request ON public.audit_events USING btree (request_id, sequence);
CREATE INDEX audit_by_subject ON public.audit_events USING btree (subject_id, sequence);
CREATE INDEX audit_events_of_tenant ON public.audit_events USING btree (tenant_id, sequence);
CREATE INDEX diagnoses_by_endpoint ON public.diagnoses USING btree (endpoint_id, id);
CREATE INDEX endpoint_credentials_by_endpoint ON public.endpoint_credentials USING btree (endpoint_id);
CREATE INDEX endpoints_by_key ON public.endpoints USING btree (key_id);
CREATE INDEX endpoints_of_tenant ON public.endpoints USING btree (tenant_id, id);
CREATE INDEX external_key_stores_by_look ON public.external_key_stores USING btree (COALESCE(looked_at, (0)::bigint), id);
CREATE INDEX external_key_stores_of_tenant ON public.external_key_stores USING btree (tenant_id, id);
CREATE INDEX idempotency_keys_by_age ON public.idempotency_keys USING btree (created_at);
CREATE INDEX instances_by_application ON public.instances USING btree (application_id, last_used_at);
CREATE INDEX key_records_by_epoch ON public.key_records USING btree (tenant_id, epoch, object_id, version, class) WHERE (record IS NOT NULL);
CREATE INDEX key_tags_by_key ON public.key_tags USING btree (key_id);
CREATE INDEX key_versions_by_age ON public.key_versions USING btree (created_at, key_id, version);
CREATE INDEX keys_by_application ON public.keys USING btree (application_id, id);
CREATE INDEX keys_by_copy ON public.keys USING btree (copy_of, id) WHERE (copy_of IS NOT NULL);
CREATE INDEX keys_by_destruction ON public.keys USING btree (destroyed_at, unrecoverable_at);
CREATE INDEX keys_by_kind ON public.keys USING btree (tenant_id, kind, id);
CREATE INDEX keys_by_state ON public.keys USING btree (tenant_id, state, id);
CREATE INDEX keys_by_use ON public.keys USING btree (tenant_id, last_used_at, id);
CREATE INDEX keys_by_vault ON public.keys USING btree (vault_id, id);
CREATE INDEX keys_never_used ON public.keys USING btree (tenant_id, id) WHERE (last_used_at IS NULL);
CREATE INDEX keys_of_tenant ON public.keys USING btree (tenant_id, id);
CREATE INDEX keys_to_erase ON public.keys USING btree (destroyed_at) WHERE ((destroyed_at IS NOT NULL) AND (unrecoverable_at IS NULL));
CREATE INDEX notification_events_by_age ON public.notification_events USING btree (at);
CREATE INDEX notifications_by_end ON public.notifications USING btree (resolved_at) WHERE (resolved_at IS NOT NULL);
CREATE INDEX notifications_by_harm ON public.notifications USING btree (harm_at, id) WHERE (resolved_at IS NULL);
CREATE INDEX notifications_by_harm_of_kind ON public.notifications USING btree (kind, harm_at, id) WHERE (resolved_at IS NULL);
CREATE INDEX notifications_by_harm_of_tenant ON public.notifications USING btree (tenant_id, harm_at, id) WHERE (resolved_at IS NULL);
CREATE UNIQUE INDEX notifications_open ON public.notifications USING btree (kind, subject_id) WHERE (resolved_at IS NULL);
CREATE INDEX notifications_resolved ON public.notifications USING btree (id) WHERE (resolved_at IS NOT NULL);
CREATE INDEX notifications_resolved_of_kind ON public.notifications USING btree (kind, id) WHERE (resolved_at IS NOT NULL);
CREATE INDEX notifications_resolved_of_tenant ON public.notifications USING btree (tenant_id, id) WHERE (resolved_at IS NOT NULL);
CREATE INDEX outside_copies_by_kind ON public.outside_copies USING btree (kind, id);
CREATE INDEX outside_copies_by_snapshot ON public.outside_copies USING btree (snapshot_id, id);
CREATE INDEX outside_copies_by_tenant ON public.outside_copies USING btree (tenant_id, id);
CREATE INDEX outside_copies_left ON public.outside_copies USING btree (id) WHERE (destroyed_at IS NULL);
CREATE INDEX request_log_by_endpoint ON public.request_log USING btree (endpoint_id, sequence);
CREATE INDEX request_log_by_kms_request ON public.request_log USING btree (((sequence / 2000)), kms_request_id);
CREATE INDEX request_log_by_request ON public.request_log USING btree (((sequence / 2000)), request_id);
CREATE INDEX request_log_by_time ON public.request_log USING btree (at, sequence);
CREATE INDEX request_log_of_refusals ON public.request_log USING btree (endpoint_id, sequence) WHERE (error_name IS NOT NULL);
CREATE INDEX request_log_unsigned ON public.request_log USING btree (sequence) WHERE (credential_id IS NULL);
CREATE INDEX runbook_runs_by_application ON public.runbook_runs USING btree (application_id, id);
CREATE INDEX search_terms_by_subject ON public.search_terms USING btree (subject_id, term);
CREATE INDEX sessions_by_holder ON public.sessions USING btree (holder_id, id);
CREATE INDEX sessions_by_tenant ON public.sessions USING btree (tenant_id, id);
CREATE INDEX snapshot_exports_by_snapshot ON public.snapshot_exports USING btree (snapshot_id, id);
CREATE INDEX snapshots_by_state ON public.snapshots USING btree (state, id);
CREATE INDEX snapshots_by_state_of_tenant ON public.snapshots USING btree (tenant_id, state, id);
CREATE INDEX snapshots_by_tenant ON public.snapshots USING btree (tenant_id, id);
CREATE INDEX tde_applications_by_group ON public.tde_applications USING btree (group_id, id);
CREATE INDEX tde_applications_of_tenant ON public.tde_applications USING btree (tenant_id, id);
CREATE UNIQUE INDEX tde_applications_token_label ON public.tde_applications USING btree (tenant_id, token_label);
CREATE INDEX tde_groups_of_tenant ON public.tde_groups USING btree (tenant_id, id);
CREATE INDEX tde_objects_by_application ON public.tde_objects USING btree (application_id, handle);
CREATE INDEX tde_objects_by_destruction ON public.tde_objects USING btree (destroyed_at, handle) WHERE (destroyed_at IS NOT NULL);
CREATE INDEX tde_objects_by_group ON public.tde_objects USING btree (group_id, handle);
CREATE INDEX tde_objects_by_label ON public.tde_objects USING btree (group_id, label, handle);
CREATE INDEX tde_objects_by_label_alone ON public.tde_objects USING btree (label, handle);
CREATE INDEX tde_objects_by_public_key ON public.tde_objects USING btree (group_id, public_key, handle);
CREATE INDEX tde_objects_by_replacement ON public.tde_objects USING btree (content_replaced_at, handle) WHERE (content_replaced_at IS NOT NULL);
CREATE INDEX tde_objects_of_tenant ON public.tde_objects USING btree (tenant_id, id);
CREATE INDEX tde_requests_by_time ON public.tde_requests USING btree (at);
CREATE UNIQUE INDEX tenants_by_name ON public.tenants USING btree (name) WHERE (state <> 'purged'::text);
CREATE INDEX user_factors_by_user ON public.user_factors USING btree (user_id, id);
CREATE INDEX users_by_tenant ON public.users USING btree (tenant_id, id);
CREATE INDEX vaults_by_name ON public.vaults USING btree (tenant_id, name);
CREATE INDEX vaults_of_tenant ON public.vaults USING btree (tenant_id, id);
CREATE STATISTICS public.approvals_by_scope ON COALESCE(tenant_id, ''::text) FROM public.approvals;
CREATE STATISTICS public.audit_events_by_scope ON COALESCE(tenant_id, ''::text) FROM public.audit_events;
CREATE STATISTICS public.keys_by_scope ON COALESCE(tenant_id, ''::text) FROM public.keys;
CREATE STATISTICS public.tde_applications_by_scope ON COALESCE(tenant_id, ''::text) FROM public.tde_applications;
ALTER TABLE ONLY public.access_guids
    ADD CONSTRAINT access_guids_application_id_fkey FOREIGN KEY (application_id) REFERENCES public.tde_applications(id);
ALTER TABLE ONLY public.api_tokens
    ADD CONSTRAINT api_tokens_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);
ALTER TABLE ONLY public.diagnoses
    ADD CONSTRAINT diagnoses_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES public.endpoints(id);
ALTER TABLE ONLY public.endpoint_credentials
    ADD CONSTRAINT endpoint_credentials_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES public.endpoints(id);
ALTER TABLE ONLY public.endpoints
    ADD CONSTRAINT endpoints_key_id_fkey FOREIGN KEY (key_id) REFERENCES public.keys(id);
ALTER TABLE ONLY public.endpoints
    ADD CONSTRAINT endpoints_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);
ALTER TABLE ONLY public.endpoints
    ADD CONSTRAINT endpoints_vault_id_fkey FOREIGN KEY (vault_id) REFERENCES public.vaults(id);
ALTER TABLE ONLY public.external_key_stores
    ADD CONSTRAINT external_key_stores_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES public.endpoints(id);
ALTER TABLE ONLY public.external_key_stores
    ADD CONSTRAINT external_key_stores_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);
ALTER TABLE ONLY public.instances
    ADD CONSTRAINT instances_access_guid_id_fkey FOREIGN KEY (access_guid_id) REFERENCES public.access_guids(id);
ALTER TABLE ONLY public.instances
    ADD CONSTRAINT instances_application_id_fkey FOREIGN KEY (application_id) REFERENCES public.tde_applications(id);
ALTER TABLE ONLY public.key_bindings
    ADD CONSTRAINT key_bindings_key_id_fkey FOREIGN KEY (key_id) REFERENCES public.keys(id);
ALTER TABLE ONLY public.key_versions
    ADD CONSTRAINT key_versions_key_id_fkey FOREIGN KEY (key_id) REFERENCES public.keys(id);
ALTER TABLE ONLY public.keys
    ADD CONSTRAINT keys_application_id_fkey FOREIGN KEY (application_id) REFERENCES public.tde_applications(id);
ALTER TABLE ONLY public.keys
    ADD CONSTRAINT keys_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);
ALTER TABLE ONLY public.keys
    ADD CONSTRAINT keys_vault_id_fkey FOREIGN KEY (vault_id) REFERENCES public.vaults(id);
ALTER TABLE ONLY public.runbook_ticks
    ADD CONSTRAINT runbook_ticks_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runbook_runs(id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);
ALTER TABLE ONLY public.snapshot_exports
    ADD CONSTRAINT snapshot_exports_snapshot_id_fkey FOREIGN KEY (snapshot_id) REFERENCES public.snapshots(id);
ALTER TABLE ONLY public.snapshot_openings
    ADD CONSTRAINT snapshot_openings_snapshot_id_fkey FOREIGN KEY (snapshot_id) REFERENCES public.snapshots(id);
ALTER TABLE ONLY public.tde_applications
    ADD CONSTRAINT tde_applications_group_id_fkey FOREIGN KEY (group_id) REFERENCES public.tde_groups(id);
ALTER TABLE ONLY public.tde_applications
    ADD CONSTRAINT tde_applications_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);
ALTER TABLE ONLY public.tde_groups
    ADD CONSTRAINT tde_groups_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);
ALTER TABLE ONLY public.tde_groups
    ADD CONSTRAINT tde_groups_vault_id_fkey FOREIGN KEY (vault_id) REFERENCES public.vaults(id);
ALTER TABLE ONLY public.tde_objects
    ADD CONSTRAINT tde_objects_application_id_fkey FOREIGN KEY (application_id) REFERENCES public.tde_applications(id);
ALTER TABLE ONLY public.tde_objects
    ADD CONSTRAINT tde_objects_group_id_fkey FOREIGN KEY (group_id) REFERENCES public.tde_groups(id);
ALTER TABLE ONLY public.tde_objects
    ADD CONSTRAINT tde_objects_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);
ALTER TABLE ONLY public.user_factors
    ADD CONSTRAINT user_factors_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);
ALTER TABLE ONLY public.vaults
    ADD CONSTRAINT vaults_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(id);
