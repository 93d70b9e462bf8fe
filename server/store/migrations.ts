// The schema's history, for every dialect. A migration is never edited after a release: a new one follows it.

import { type ColumnDataType, type ColumnDefinitionBuilder, type Kysely, type RawBuilder, sql } from 'kysely';
import type { Migration, MigrationProvider } from 'kysely/migration';
import { latencyMigration } from './migrations/2025-03-latency.ts';
import { people } from './migrations/2025-03-people.ts';
import { runbookMigration } from './migrations/2025-03-runbooks.ts';
import { snapshotMigration } from './migrations/2025-03-snapshots.ts';
import { pageIndexes } from './migrations/2025-04-page-indexes.ts';
import { search } from './migrations/2025-04-search.ts';
import { tdeRequests } from './migrations/2025-04-tde-requests.ts';
import { idempotencyMigration } from './migrations/2025-05-idempotency.ts';
import { scopeStatistics } from './migrations/2025-05-scope-statistics.ts';
import { keyTags } from './migrations/2025-06-key-tags.ts';
import { keyUses } from './migrations/2025-06-key-uses.ts';
import { keyStoreLooks } from './migrations/2025-07-key-store-looks.ts';
import { erasureIndexes } from './migrations/2025-08-erasure-indexes.ts';
import { compatibility } from './migrations/2025-09-compatibility.ts';
import { rowSet } from './migrations/2025-10-row-set.ts';
import { changeHistory } from './migrations/2025-11-change-history.ts';
import { callers } from './migrations/2025-12-callers.ts';
import { keyCopies } from './migrations/2025-12-key-copies.ts';
import { nodeClocks } from './migrations/2025-12-node-clocks.ts';
import { nodeDirectory } from './migrations/2025-12-node-directory.ts';
import { nodeDuties } from './migrations/2025-12-node-duties.ts';
import { requestSpaces } from './migrations/2025-12-request-spaces.ts';
import { nodes } from './migrations/nodes.ts';

/** Where dialects differ. */
export interface ColumnKinds {
  /** Raw bytes. */
  readonly bytes: ColumnDataType;
  /** 64-bit integer. */
  readonly long: ColumnDataType;
  /** Text in the order of its bytes. */
  readonly bytewise: RawBuilder<unknown>;
  /** A number that grows with every row and is never used twice. */
  readonly sequence: {
    readonly type: ColumnDataType;
    readonly define: (column: ColumnDefinitionBuilder) => ColumnDefinitionBuilder;
  };
  /** Has a database that counts before it decides count this expression of a table, too. */
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  readonly count: (db: Kysely<any>, name: string, table: string, expression: RawBuilder<unknown>) => Promise<void>;
}

const initial = ({ bytes, long, sequence }: ColumnKinds): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  up: async (db: Kysely<any>) => {
    const create = db.schema;
    await create
      .createTable('settings')
      .addColumn('name', 'text', (c) => c.primaryKey())
      .addColumn('value', 'text', (c) => c.notNull())
      .execute();
    await create
      .createTable('tenants')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('state', 'text', (c) => c.notNull())
      .addColumn('created_at', long, (c) => c.notNull())
      .addColumn('suspended_at', long)
      .addColumn('deleted_at', long)
      .addColumn('purge_at', long)
      .addColumn('purged_at', long)
      .addColumn('unrecoverable_at', long)
      .addColumn('row_mac', 'text', (c) => c.notNull())
      .execute();
    // The name of one that is purged may be given again.
    await create
      .createIndex('tenants_by_name')
      .unique()
      .on('tenants')
      .column('name')
      .where(sql.ref('state'), '!=', 'purged')
      .execute();
    await create
      .createTable('tenant_keks')
      .addColumn('tenant_id', 'text', (c) => c.notNull())
      .addColumn('epoch', 'integer', (c) => c.notNull())
      .addColumn('root_epoch', 'integer', (c) => c.notNull())
      .addColumn('record', bytes, (c) => c.notNull())
      .addPrimaryKeyConstraint('tenant_keks_pk', ['tenant_id', 'epoch'])
      .execute();
    await create
      .createTable('key_records')
      .addColumn('object_id', 'text', (c) => c.notNull())
      .addColumn('version', 'integer', (c) => c.notNull())
      .addColumn('class', 'text', (c) => c.notNull())
      .addColumn('tenant_id', 'text', (c) => c.notNull())
      .addColumn('epoch', 'integer', (c) => c.notNull())
      .addColumn('attributes', 'text', (c) => c.notNull())
      .addColumn('record', bytes)
      .addPrimaryKeyConstraint('key_records_pk', ['object_id', 'version', 'class'])
      .execute();
    await create.createIndex('key_records_by_epoch').on('key_records').columns(['tenant_id', 'epoch']).execute();
    await create
      .createTable('vaults')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('tenant_id', 'text', (c) => c.notNull().references('tenants.id'))
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('kind', 'text', (c) => c.notNull())
      .addColumn('state', 'text', (c) => c.notNull())
      .addColumn('created_at', long, (c) => c.notNull())
      .addColumn('row_mac', 'text', (c) => c.notNull())
      .execute();
    await create.createIndex('vaults_by_name').on('vaults').columns(['tenant_id', 'name']).execute();
    await create
      .createTable('tde_groups')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('tenant_id', 'text', (c) => c.notNull().references('tenants.id'))
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('vault_id', 'text', (c) => c.notNull().references('vaults.id'))
      .addColumn('created_at', long, (c) => c.notNull())
      .addColumn('row_mac', 'text', (c) => c.notNull())
      .addUniqueConstraint('tde_groups_name', ['tenant_id', 'name'])
      .execute();
    await create
      .createTable('tde_applications')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('tenant_id', 'text', (c) => c.notNull().references('tenants.id'))
      .addColumn('group_id', 'text', (c) => c.notNull().references('tde_groups.id'))
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('app_id', 'text', (c) => c.notNull())
      .addColumn('state', 'text', (c) => c.notNull())
      .addColumn('created_at', long, (c) => c.notNull())
      .addColumn('row_mac', 'text', (c) => c.notNull())
      .addUniqueConstraint('tde_applications_name', ['tenant_id', 'name'])
      .execute();
    await create.createIndex('tde_applications_by_group').on('tde_applications').columns(['group_id', 'id']).execute();
    await create
      .createTable('access_guids')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('application_id', 'text', (c) => c.notNull().references('tde_applications.id'))
      .addColumn('hash', 'text', (c) => c.notNull().unique())
      .addColumn('created_at', long, (c) => c.notNull())
      .addColumn('removed_at', long)
      .addColumn('last_used_at', long)
      .addColumn('row_mac', 'text', (c) => c.notNull())
      .execute();
    await create.createIndex('access_guids_by_application').on('access_guids').column('application_id').execute();
    await create
      .createTable('instances')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('application_id', 'text', (c) => c.notNull().references('tde_applications.id'))
      .addColumn('access_guid_id', 'text', (c) => c.notNull().references('access_guids.id'))
      .addColumn('app_id', 'text', (c) => c.notNull())
      .addColumn('host', 'text', (c) => c.notNull())
      .addColumn('process', 'text', (c) => c.notNull())
      .addColumn('os_user', 'text', (c) => c.notNull())
      .addColumn('library_version', 'text', (c) => c.notNull())
      .addColumn('agent_version', 'text', (c) => c.notNull())
      .addColumn('pid', long, (c) => c.notNull())
      .addColumn('first_used_at', long, (c) => c.notNull())
      .addColumn('last_used_at', long, (c) => c.notNull())
      .addColumn('uses', long, (c) => c.notNull())
      .addUniqueConstraint('instances_identity', ['access_guid_id', 'app_id', 'host', 'process', 'os_user'])
      .execute();
    await create
      .createIndex('instances_by_application')
      .on('instances')
      .columns(['application_id', 'last_used_at'])
      .execute();
    await create
      .createTable('keys')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('tenant_id', 'text', (c) => c.notNull().references('tenants.id'))
      .addColumn('vault_id', 'text', (c) => c.notNull().references('vaults.id'))
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('kind', 'text', (c) => c.notNull())
      .addColumn('algorithm', 'text', (c) => c.notNull())
      .addColumn('bits', 'integer', (c) => c.notNull())
      .addColumn('usages', 'text', (c) => c.notNull())
      .addColumn('state', 'text', (c) => c.notNull())
      .addColumn('disabled_at', long)
      .addColumn('current_version', 'integer', (c) => c.notNull())
      .addColumn('created_at', long, (c) => c.notNull())
      .addColumn('deleted_at', long)
      .addColumn('reimported_at', long)
      .addColumn('destroyed_at', long)
      .addColumn('unrecoverable_at', long)
      .addColumn('application_id', 'text', (c) => c.references('tde_applications.id'))
      .addColumn('row_mac', 'text', (c) => c.notNull())
      .execute();
    await create.createIndex('keys_by_vault').on('keys').columns(['vault_id', 'id']).execute();
    await create.createIndex('keys_by_application').on('keys').columns(['application_id', 'id']).execute();
    await create.createIndex('keys_by_destruction').on('keys').columns(['destroyed_at', 'unrecoverable_at']).execute();
    await create
      .createTable('key_versions')
      .addColumn('key_id', 'text', (c) => c.notNull().references('keys.id'))
      .addColumn('version', 'integer', (c) => c.notNull())
      .addColumn('created_at', long, (c) => c.notNull())
      .addPrimaryKeyConstraint('key_versions_pk', ['key_id', 'version'])
      .execute();
    await create
      .createTable('tde_objects')
      .addColumn('handle', 'integer', (c) => c.primaryKey())
      .addColumn('id', 'text', (c) => c.notNull().unique())
      .addColumn('tenant_id', 'text', (c) => c.notNull().references('tenants.id'))
      .addColumn('group_id', 'text', (c) => c.notNull().references('tde_groups.id'))
      .addColumn('application_id', 'text', (c) => c.notNull().references('tde_applications.id'))
      .addColumn('class', 'text', (c) => c.notNull())
      .addColumn('label', 'text', (c) => c.notNull())
      .addColumn('algorithm', 'text')
      .addColumn('bits', 'integer')
      .addColumn('usages', 'text', (c) => c.notNull())
      .addColumn('sensitive', 'integer', (c) => c.notNull())
      .addColumn('extractable', 'integer', (c) => c.notNull())
      .addColumn('always_sensitive', 'integer', (c) => c.notNull())
      .addColumn('never_extractable', 'integer', (c) => c.notNull())
      .addColumn('modifiable', 'integer', (c) => c.notNull())
      .addColumn('destroyable', 'integer', (c) => c.notNull())
      .addColumn('local', 'integer', (c) => c.notNull())
      .addColumn('private', 'integer', (c) => c.notNull())
      .addColumn('check_value', 'text')
      .addColumn('public_key', 'text')
      .addColumn('wrapped_sensitive', 'integer', (c) => c.notNull())
      .addColumn('attributes', 'text', (c) => c.notNull())
      .addColumn('created_at', long, (c) => c.notNull())
      .addColumn('destroyed_at', long)
      .addColumn('content', bytes)
      .addColumn('last_used_at', long)
      .addColumn('row_mac', 'text', (c) => c.notNull())
      .execute();
    await create
      .createIndex('tde_objects_by_label')
      .on('tde_objects')
      .columns(['group_id', 'label', 'handle'])
      .execute();
    await create
      .createIndex('tde_objects_by_public_key')
      .on('tde_objects')
      .columns(['group_id', 'public_key', 'handle'])
      .execute();
    await create.createIndex('tde_objects_by_group').on('tde_objects').columns(['group_id', 'handle']).execute();
    await create
      .createTable('endpoints')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('tenant_id', 'text', (c) => c.notNull().references('tenants.id'))
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('prefix', 'text', (c) => c.notNull().unique())
      .addColumn('vault_id', 'text', (c) => c.notNull().references('vaults.id'))
      .addColumn('key_id', 'text', (c) => c.notNull().references('keys.id'))
      .addColumn('state', 'text', (c) => c.notNull())
      .addColumn('settings', 'text', (c) => c.notNull())
      .addColumn('created_at', long, (c) => c.notNull())
      .addColumn('row_mac', 'text', (c) => c.notNull())
      .execute();
    await create.createIndex('endpoints_by_key').on('endpoints').column('key_id').execute();
    await create
      .createTable('endpoint_credentials')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('endpoint_id', 'text', (c) => c.notNull().references('endpoints.id'))
      .addColumn('access_key_id', 'text', (c) => c.notNull().unique())
      .addColumn('created_at', long, (c) => c.notNull())
      .addColumn('last_used_at', long)
      .addColumn('row_mac', 'text', (c) => c.notNull())
      .execute();
    await create
      .createIndex('endpoint_credentials_by_endpoint')
      .on('endpoint_credentials')
      .column('endpoint_id')
      .execute();
    await create
      .createTable('api_tokens')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('tenant_id', 'text', (c) => c.references('tenants.id'))
      .addColumn('kind', 'text', (c) => c.notNull())
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('grants', 'text', (c) => c.notNull())
      .addColumn('hash', 'text', (c) => c.notNull().unique())
      .addColumn('created_at', long, (c) => c.notNull())
      .addColumn('expires_at', long)
      .addColumn('revoked_at', long)
      .addColumn('last_used_at', long)
      .addColumn('row_mac', 'text', (c) => c.notNull())
      .execute();
    await create
      .createTable('audit_events')
      .addColumn('sequence', long, (c) => c.primaryKey())
      .addColumn('at', long, (c) => c.notNull())
      .addColumn('kind', 'text', (c) => c.notNull())
      .addColumn('actor_kind', 'text', (c) => c.notNull())
      .addColumn('actor_id', 'text', (c) => c.notNull())
      .addColumn('actor_name', 'text', (c) => c.notNull())
      .addColumn('peer', 'text')
      .addColumn('tenant_id', 'text', (c) => c.notNull())
      .addColumn('subject_kind', 'text', (c) => c.notNull())
      .addColumn('subject_id', 'text', (c) => c.notNull())
      .addColumn('request_id', 'text', (c) => c.notNull())
      .addColumn('details', 'text', (c) => c.notNull())
      .addColumn('leaf_hash', bytes, (c) => c.notNull())
      .execute();
    await create
      .createTable('audit_head')
      .addColumn('id', 'integer', (c) => c.primaryKey())
      .addColumn('size', long, (c) => c.notNull())
      .execute();
    await db.insertInto('audit_head').values({ id: 1, size: 0 }).execute();
    await create
      .createTable('audit_nodes')
      .addColumn('level', 'integer', (c) => c.notNull())
      .addColumn('position', long, (c) => c.notNull())
      .addColumn('hash', bytes, (c) => c.notNull())
      .addPrimaryKeyConstraint('audit_nodes_pk', ['level', 'position'])
      .execute();
    await create
      .createTable('audit_checkpoints')
      .addColumn('size', long, (c) => c.primaryKey())
      .addColumn('at', long, (c) => c.notNull())
      .addColumn('note', 'text', (c) => c.notNull())
      .execute();
    await create.createIndex('audit_by_kind').on('audit_events').columns(['kind', 'sequence']).execute();
    await create.createIndex('audit_by_subject').on('audit_events').columns(['subject_id', 'sequence']).execute();
    await create.createIndex('audit_by_actor').on('audit_events').columns(['actor_id', 'sequence']).execute();
    await create.createIndex('audit_by_request').on('audit_events').columns(['request_id', 'sequence']).execute();
    await create
      .createTable('external_key_stores')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('tenant_id', 'text', (c) => c.notNull().references('tenants.id'))
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('custom_key_store_id', 'text', (c) => c.notNull())
      .addColumn('region', 'text', (c) => c.notNull())
      .addColumn('endpoint_id', 'text', (c) => c.notNull().references('endpoints.id'))
      .addColumn('created_at', long, (c) => c.notNull())
      .addColumn('connection', 'text', (c) => c.notNull())
      .addColumn('row_mac', 'text', (c) => c.notNull())
      .addUniqueConstraint('external_key_stores_by_cloud', ['tenant_id', 'custom_key_store_id', 'region'])
      .execute();
    await create
      .createTable('diagnoses')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('endpoint_id', 'text', (c) => c.notNull().references('endpoints.id'))
      .addColumn('at', long, (c) => c.notNull())
      .addColumn('results', 'text', (c) => c.notNull())
      .addColumn('request_ids', 'text', (c) => c.notNull())
      .execute();
    await create.createIndex('diagnoses_by_endpoint').on('diagnoses').columns(['endpoint_id', 'id']).execute();
    await create
      .createTable('request_log')
      .addColumn('sequence', sequence.type, sequence.define)
      .addColumn('at', long, (c) => c.notNull())
      .addColumn('endpoint_id', 'text')
      .addColumn('operation', 'text', (c) => c.notNull())
      .addColumn('status', 'integer', (c) => c.notNull())
      .addColumn('error_name', 'text')
      .addColumn('request_id', 'text', (c) => c.notNull())
      .addColumn('kms_operation', 'text')
      .addColumn('kms_request_id', 'text')
      .addColumn('principal', 'text')
      .addColumn('kms_key_arn', 'text')
      .addColumn('external_key_id', 'text')
      .addColumn('credential_id', 'text')
      .addColumn('duration_ms', 'double precision', (c) => c.notNull())
      .addColumn('read_ms', 'double precision', (c) => c.notNull())
      .addColumn('auth_ms', 'double precision', (c) => c.notNull())
      .addColumn('crypto_ms', 'double precision', (c) => c.notNull())
      .addColumn('reason', 'text')
      .addColumn('peer', 'text')
      .execute();
    await create
      .createIndex('request_log_by_endpoint')
      .on('request_log')
      .columns(['endpoint_id', 'sequence'])
      .execute();
    await create.createIndex('request_log_by_time').on('request_log').columns(['at', 'sequence']).execute();
    // Refusals are few, and what people look for.
    await create
      .createIndex('request_log_of_refusals')
      .on('request_log')
      .columns(['endpoint_id', 'sequence'])
      .where(sql.ref('error_name'), 'is not', null)
      .execute();
    // By block: see request-log.ts.
    await create
      .createIndex('request_log_by_kms_request')
      .on('request_log')
      .expression(sql`(sequence / 2000), kms_request_id`)
      .execute();
  },
});

/** First uses of keys; labels across groups, for refusals; the objects of an application, which move with it. */
const usesAndGroups = ({ long }: ColumnKinds): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: as above
  up: async (db: Kysely<any>) => {
    await db.schema.alterTable('tde_objects').addColumn('first_used_at', long).execute();
    await db.schema.createIndex('tde_objects_by_label_alone').on('tde_objects').columns(['label', 'handle']).execute();
    await db.schema
      .createIndex('tde_objects_by_application')
      .on('tde_objects')
      .columns(['application_id', 'handle'])
      .execute();
  },
});

/** Lists and searches are within one tenant. */
const listsOfTenants = (): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: as above
  up: async (db: Kysely<any>) => {
    for (const [table, order] of [
      ['vaults', 'id'],
      ['keys', 'id'],
      ['tde_groups', 'id'],
      ['tde_applications', 'id'],
      ['endpoints', 'id'],
      ['external_key_stores', 'id'],
      ['api_tokens', 'id'],
      ['audit_events', 'sequence'],
    ] as const)
      await db.schema.createIndex(`${table}_of_tenant`).on(table).columns(['tenant_id', order]).execute();
  },
});

/** Dual control: the rule of a vault, and what waits for approval. */
const approvals = ({ long }: ColumnKinds): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: as above
  up: async (db: Kysely<any>) => {
    await db.schema.alterTable('vaults').addColumn('dual_control', 'text').execute();
    await db.schema
      .createTable('approvals')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('tenant_id', 'text', (c) => c.notNull())
      .addColumn('kind', 'text', (c) => c.notNull())
      .addColumn('subject_kind', 'text', (c) => c.notNull())
      .addColumn('subject_id', 'text', (c) => c.notNull())
      .addColumn('state', 'text', (c) => c.notNull())
      .addColumn('requested_by', 'text', (c) => c.notNull())
      .addColumn('requested_at', long, (c) => c.notNull())
      .addColumn('expires_at', long, (c) => c.notNull())
      .addColumn('ended_at', long)
      .addColumn('document', 'text', (c) => c.notNull())
      .addColumn('row_mac', 'text', (c) => c.notNull())
      .execute();
    await db.schema.createIndex('approvals_by_state').on('approvals').columns(['tenant_id', 'state', 'id']).execute();
    await db.schema.createIndex('approvals_by_subject').on('approvals').columns(['subject_id', 'id']).execute();
  },
});

/** The inbox, what is sent on from it, and how often the keys of a vault are to be rotated. */
const notifications = ({ long, sequence }: ColumnKinds): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: as above
  up: async (db: Kysely<any>) => {
    await db.schema
      .alterTable('vaults')
      .addColumn('profile', 'text', (c) => c.notNull().defaultTo('standard'))
      .execute();
    await db.schema
      .createTable('notifications')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('tenant_id', 'text', (c) => c.notNull())
      .addColumn('kind', 'text', (c) => c.notNull())
      .addColumn('subject_kind', 'text', (c) => c.notNull())
      .addColumn('subject_id', 'text', (c) => c.notNull())
      .addColumn('subject_name', 'text', (c) => c.notNull())
      .addColumn('severity', 'text', (c) => c.notNull())
      .addColumn('stage', 'integer', (c) => c.notNull())
      .addColumn('harm_at', long, (c) => c.notNull())
      .addColumn('details', 'text', (c) => c.notNull())
      .addColumn('raised_at', long, (c) => c.notNull())
      .addColumn('resolved_at', long)
      .addColumn('acknowledged_at', long)
      .addColumn('acknowledged_by', 'text')
      .execute();
    // One open one about one thing, whoever looks.
    await db.schema
      .createIndex('notifications_open')
      .on('notifications')
      .columns(['kind', 'subject_id'])
      .unique()
      .where(sql.ref('resolved_at'), 'is', null)
      .execute();
    await db.schema
      .createIndex('notifications_by_harm')
      .on('notifications')
      .columns(['harm_at', 'id'])
      .where(sql.ref('resolved_at'), 'is', null)
      .execute();
    await db.schema
      .createIndex('notifications_by_harm_of_tenant')
      .on('notifications')
      .columns(['tenant_id', 'harm_at', 'id'])
      .where(sql.ref('resolved_at'), 'is', null)
      .execute();
    // Of those that are over alone: SQLite would else take it for all that are open, and sort them.
    await db.schema
      .createIndex('notifications_by_end')
      .on('notifications')
      .columns(['resolved_at'])
      .where(sql.ref('resolved_at'), 'is not', null)
      .execute();
    await db.schema
      .createTable('notification_events')
      .addColumn('sequence', sequence.type, sequence.define)
      .addColumn('event', 'text', (c) => c.notNull())
      .addColumn('at', long, (c) => c.notNull())
      .addColumn('notification_id', 'text', (c) => c.notNull())
      .addColumn('document', 'text', (c) => c.notNull())
      .execute();
    await db.schema
      .createIndex('key_versions_by_age')
      .on('key_versions')
      .columns(['created_at', 'key_id', 'version'])
      .execute();
    await db.schema.createIndex('notification_events_by_age').on('notification_events').columns(['at']).execute();
  },
});

export const createMigrations = (kinds: ColumnKinds): MigrationProvider => {
  const migrations: Record<string, Migration> = {
    '2025-01-initial': initial(kinds),
    '2025-02-uses-and-groups': usesAndGroups(kinds),
    '2025-03-tenants': listsOfTenants(),
    '2025-03-runbooks': runbookMigration(kinds),
    '2025-03-approvals': approvals(kinds),
    '2025-03-snapshots': snapshotMigration(kinds),
    '2025-03-people': people(kinds),
    '2025-03-latency': latencyMigration(),
    '2025-03-nodes': nodes(kinds),
    '2025-04-notifications': notifications(kinds),
    '2025-04-page-indexes': pageIndexes(),
    '2025-04-search': search(kinds),
    '2025-04-tde-requests': tdeRequests(kinds),
    '2025-05-idempotency': idempotencyMigration(kinds),
    '2025-05-scope-statistics': scopeStatistics(kinds),
    '2025-06-key-uses': keyUses(kinds),
    '2025-06-keys-by-tag': keyTags(kinds),
    '2025-07-key-store-looks': keyStoreLooks(kinds),
    '2025-08-erasure-indexes': erasureIndexes(),
    '2025-09-compatibility': compatibility(),
    '2025-10-row-set': rowSet(kinds),
    '2025-11-change-history': changeHistory(),
    '2025-12-key-copies': keyCopies(),
    '2025-12-callers': callers(),
    '2025-12-node-clocks': nodeClocks(kinds),
    '2025-12-request-spaces': requestSpaces(kinds),
    '2025-12-node-duties': nodeDuties(kinds),
    '2025-12-node-directory': nodeDirectory(),
  };
  return { getMigrations: () => Promise.resolve(migrations) };
};
