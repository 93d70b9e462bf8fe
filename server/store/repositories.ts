// The queries, over Kysely, for every dialect: no SQL here that only one database understands. A set of repositories works
// on one connection: the reader's, or the writer's inside a unit of work.

import { type Expression, type Kysely, sql } from 'kysely';
import { canonicalJson } from '../base/bytes.ts';
import type { Clock } from '../base/clock.ts';
import { ServiceError } from '../base/errors.ts';
import { type AuditEvent, auditKinds } from '../domain/audit-event.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import type { KeyState } from '../domain/lifecycle.ts';
import { everyTenant, type TenantScope } from '../domain/tenant.ts';
import type { Repositories, StoredObject } from '../ports/store.ts';
import { createApprovalRepository } from './approvals.ts';
import { createAuditLog } from './audit-log.ts';
import { createErasableKeys } from './erasable-keys.ts';
import { createIdempotencyRows } from './idempotency.ts';
import { listKeys } from './key-list.ts';
import { createKeyRecords } from './key-records.ts';
import { createKeyTags } from './key-tags.ts';
import { createNodes } from './nodes.ts';
import { createNotificationRepository } from './notifications.ts';
import { createPeople } from './people.ts';
import { createRequestLog } from './request-log.ts';
import type { ReadingAs, RowSet } from './row-set.ts';
import * as rows from './rows.ts';
import { createRunbookRuns } from './runbook-runs.ts';
import type { Schema } from './schema.ts';
import { createSearch, createTerms } from './search.ts';
import { createKeyBindings, createOpenings, createRecoveryKeys, createSnapshots } from './snapshots.ts';
import { createTdeRequests } from './tde-requests.ts';
import { createTenantRows } from './tenant-rows.ts';
import { alsoInScope, createTenants, inScope } from './tenants.ts';
import { createWhole } from './whole.ts';
import { createLatency } from './xks-latency.ts';

/** Of a page of objects, what they hold would be megabytes. */
const columnsWithoutContent = (
  Object.keys({
    handle: 0,
    id: 0,
    tenant_id: 0,
    group_id: 0,
    application_id: 0,
    class: 0,
    label: 0,
    algorithm: 0,
    bits: 0,
    usages: 0,
    sensitive: 0,
    extractable: 0,
    always_sensitive: 0,
    never_extractable: 0,
    modifiable: 0,
    destroyable: 0,
    local: 0,
    private: 0,
    check_value: 0,
    public_key: 0,
    wrapped_sensitive: 0,
    attributes: 0,
    created_at: 0,
    destroyed_at: 0,
    row_mac: 0,
    row_version: 0,
  } satisfies Record<Exclude<keyof Schema['tde_objects'], 'content'>, 0>) as Exclude<
    keyof Schema['tde_objects'],
    'content'
  >[]
).map((column) => `tde_objects.${column}` as const);

/** Nodes write in any order what each of them saw: the later time stays. */
const laterOf = (known: Expression<number | null>, at: number) =>
  sql<number>`case when ${known} > ${at} then ${known} else ${at} end`;

export const createRepositories = (db: Kysely<Schema>, set: RowSet, as: ReadingAs, clock: Clock): Repositories => {
  const policyRows = set.over(db, as);
  const check = policyRows.integrity;

  const auditLog = createAuditLog(db);
  const terms = createTerms(db);
  const keyTags = createKeyTags(db);
  const checkedStore = (row: Schema['external_key_stores']) =>
    rows.toExternalKeyStore(row, check('external_key_stores', { ...row }));
  const storesBy = (tenant: TenantScope, column: 'id' | 'custom_key_store_id' | 'endpoint_id', value: string) =>
    inScope(db.selectFrom('external_key_stores').selectAll(), tenant).where(column, '=', value).orderBy('id').execute();
  /** As the index has it. */
  const lookedAt = sql<number>`coalesce(looked_at, 0)`;
  const toStore = ([row]: readonly Schema['external_key_stores'][]) =>
    row === undefined ? undefined : checkedStore(row);
  const loadEndpoints = async (found: readonly Schema['endpoints'][]): Promise<readonly Endpoint[]> => {
    if (found.length === 0) return [];
    const credentials = await db
      .selectFrom('endpoint_credentials')
      .selectAll()
      .where(
        'endpoint_id',
        'in',
        found.map((row) => row.id),
      )
      .orderBy('id')
      .execute();
    const byEndpoint = Map.groupBy(credentials, (credential) => credential.endpoint_id);
    return found.map((row) => {
      const own = byEndpoint.get(row.id) ?? [];
      const sound =
        check('endpoints', { ...row }) === 'ok' && own.every((c) => check('endpoint_credentials', { ...c }) === 'ok');
      return rows.toEndpoint(row, own.map(rows.toCredential), sound ? 'ok' : 'tampered');
    });
  };

  const objectQuery = () =>
    db
      .selectFrom('tde_objects')
      .leftJoin('keys', 'keys.id', 'tde_objects.id')
      .selectAll('tde_objects')
      .select('keys.state as key_state');
  type ObjectRow = Awaited<ReturnType<ReturnType<typeof objectQuery>['executeTakeFirst']>>;
  const loadObject = (row: NonNullable<ObjectRow>): StoredObject => {
    const { key_state, ...own } = row;
    const state = own.destroyed_at !== null ? 'destroyed' : ((key_state as KeyState | null) ?? 'active');
    return rows.toObject(own, state, check('tde_objects', own));
  };

  return {
    nodes: createNodes(db),
    tdeRequests: createTdeRequests(db),

    settings: {
      get: async (name) =>
        (await db.selectFrom('settings').select('value').where('name', '=', name).executeTakeFirst())?.value,
      set: async (name, value) => {
        if (value === null) await db.deleteFrom('settings').where('name', '=', name).execute();
        else
          await db
            .insertInto('settings')
            .values({ name, value })
            .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
            .execute();
      },
    },

    tenants: createTenants(db, policyRows, clock),

    keks: {
      list: async () =>
        (await db.selectFrom('tenant_keks').selectAll().orderBy('tenant_id').orderBy('epoch').execute()).map((row) => ({
          tenantId: row.tenant_id,
          epoch: row.epoch,
          rootEpoch: row.root_epoch,
          record: rows.toBuffer(row.record),
        })),
      insert: async (kek) => {
        await db
          .insertInto('tenant_keks')
          .values({ tenant_id: kek.tenantId, epoch: kek.epoch, root_epoch: kek.rootEpoch, record: kek.record })
          .execute();
      },
      remove: async (tenantId, epoch) => {
        const own = db.selectFrom('tenant_keks').select('record').where('tenant_id', '=', tenantId);
        const row = await own.where('epoch', '=', epoch).executeTakeFirst();
        if (row === undefined) return;
        // Overwritten before it is deleted, so that the page does not keep it.
        await db
          .updateTable('tenant_keks')
          .set({ record: Buffer.alloc(row.record.length) })
          .where('tenant_id', '=', tenantId)
          .where('epoch', '=', epoch)
          .execute();
        await db.deleteFrom('tenant_keks').where('tenant_id', '=', tenantId).where('epoch', '=', epoch).execute();
      },
    },

    whole: createWhole(db, policyRows, set),
    records: createKeyRecords(db),

    vaults: {
      get: async (tenant, id) => {
        const query = inScope(db.selectFrom('vaults').selectAll(), tenant);
        const row = await query.where('id', '=', id).executeTakeFirst();
        return row && rows.toVault(row, check('vaults', row));
      },
      findByName: async (tenantId, name) => {
        const row = await db
          .selectFrom('vaults')
          .selectAll()
          .where('tenant_id', '=', tenantId)
          .where('name', '=', name)
          .where('state', '!=', 'deleted')
          .executeTakeFirst();
        return row && rows.toVault(row, check('vaults', row));
      },
      list: async (tenant, { after, limit }) => {
        let query = inScope(db.selectFrom('vaults').selectAll(), tenant).orderBy('id').limit(limit);
        if (after !== undefined) query = query.where('id', '>', after);
        return (await query.execute()).map((row) => rows.toVault(row, check('vaults', row)));
      },
      insert: async (vault) => {
        await policyRows.insert('vaults', rows.vaultRow(vault));
        await terms.add('vaults', rows.vaultRow(vault));
      },
      update: async (vault) => {
        rows.refuseTampered(vault);
        await policyRows.update('vaults', rows.vaultRow(vault));
        await terms.renew('vaults', rows.vaultRow(vault));
      },
    },

    keys: {
      get: async (tenant, id) => {
        const query = inScope(db.selectFrom('keys').selectAll(), tenant);
        const row = await query.where('id', '=', id).executeTakeFirst();
        return row && rows.toKey(row, check('keys', row));
      },
      list: async (tenant, filter, window) =>
        (await listKeys(db, tenant, filter, window)).map((row) => rows.toKey(row, check('keys', row))),
      insert: async (key) => {
        await policyRows.insert('keys', {
          ...rows.keyRow(key),
          first_used_at: key.firstUsedAt,
          last_used_at: key.lastUsedAt,
        });
        await terms.add('keys', rows.keyRow(key));
        if (key.tags.length > 0) await keyTags.renew([rows.keyRow(key)]);
      },
      update: async (key) => {
        rows.refuseTampered(key);
        await policyRows.update('keys', rows.keyRow(key));
        await terms.renew('keys', rows.keyRow(key));
        await keyTags.renew([rows.keyRow(key)]);
      },
      touch: async (id, first, last) => {
        await db
          .updateTable('keys')
          .set((e) => ({
            first_used_at: e.fn.coalesce('first_used_at', e.val(first)),
            last_used_at: laterOf(e.ref('last_used_at'), last),
          }))
          .where('id', '=', id)
          .execute();
      },
      countLive: async (vaultId) => {
        const row = await db
          .selectFrom('keys')
          .select((e) => e.fn.countAll<number | string>().as('count'))
          .where('vault_id', '=', vaultId)
          .where('state', '!=', 'destroyed')
          .executeTakeFirstOrThrow();
        return Number(row.count);
      },
      ...createErasableKeys(db, (row) => rows.toKey(row, check('keys', row))),
      versions: async (id) =>
        (
          await db
            .selectFrom('key_versions')
            .leftJoin('key_records', (join) =>
              join
                .onRef('key_records.object_id', '=', 'key_versions.key_id')
                .onRef('key_records.version', '=', 'key_versions.version')
                .on('key_records.class', '=', 'vault-copy'),
            )
            .select(['key_versions.key_id', 'key_versions.version', 'key_versions.created_at'])
            .select((e) => e('key_records.record', 'is not', null).as('present'))
            .where('key_versions.key_id', '=', id)
            .orderBy('key_versions.version')
            .execute()
        ).map((row) => ({
          keyId: row.key_id,
          version: row.version,
          createdAt: row.created_at,
          vaultCopy: Boolean(row.present),
        })),
      insertVersion: async ({ keyId, version, createdAt }) => {
        await db.insertInto('key_versions').values({ key_id: keyId, version, created_at: createdAt }).execute();
      },
    },

    groups: {
      get: async (tenant, id) => {
        const query = inScope(db.selectFrom('tde_groups').selectAll(), tenant);
        const row = await query.where('id', '=', id).executeTakeFirst();
        return row && rows.toGroup(row, check('tde_groups', row));
      },
      findByName: async (tenantId, name) => {
        const row = await db
          .selectFrom('tde_groups')
          .selectAll()
          .where('tenant_id', '=', tenantId)
          .where('name', '=', name)
          .executeTakeFirst();
        return row && rows.toGroup(row, check('tde_groups', row));
      },
      list: async (tenant, { after, limit }) => {
        let query = inScope(db.selectFrom('tde_groups').selectAll(), tenant).orderBy('id').limit(limit);
        if (after !== undefined) query = query.where('id', '>', after);
        return (await query.execute()).map((row) => rows.toGroup(row, check('tde_groups', row)));
      },
      insert: async (group) => {
        await policyRows.insert('tde_groups', rows.groupRow(group));
        await terms.add('tde_groups', rows.groupRow(group));
      },
    },

    applications: {
      get: async (tenant, id) => {
        const query = inScope(db.selectFrom('tde_applications').selectAll(), tenant);
        const row = await query.where('id', '=', id).executeTakeFirst();
        return row && rows.toApplication(row, check('tde_applications', row));
      },
      findByName: async (tenantId, name) => {
        const row = await db
          .selectFrom('tde_applications')
          .selectAll()
          .where('tenant_id', '=', tenantId)
          .where('name', '=', name)
          .executeTakeFirst();
        return row && rows.toApplication(row, check('tde_applications', row));
      },
      list: async (tenant, { groupId }, { after, limit }) => {
        const scoped = groupId === undefined ? inScope : alsoInScope;
        let query = scoped(db.selectFrom('tde_applications').selectAll(), tenant).orderBy('id').limit(limit);
        if (groupId !== undefined) query = query.where('group_id', '=', groupId);
        if (after !== undefined) query = query.where('id', '>', after);
        return (await query.execute()).map((row) => rows.toApplication(row, check('tde_applications', row)));
      },
      insert: async (application) => {
        await policyRows.insert('tde_applications', rows.applicationRow(application));
        await terms.add('tde_applications', rows.applicationRow(application));
      },
      update: async (application) => {
        rows.refuseTampered(application);
        await policyRows.update('tde_applications', rows.applicationRow(application));
        await terms.renew('tde_applications', rows.applicationRow(application));
      },
    },

    accessGuids: {
      findByHash: async (hash) => {
        const row = await db.selectFrom('access_guids').selectAll().where('hash', '=', hash).executeTakeFirst();
        return row && rows.toAccessGuid(row, check('access_guids', row));
      },
      list: async (applicationId) =>
        (
          await db
            .selectFrom('access_guids')
            .selectAll()
            .where('application_id', '=', applicationId)
            .orderBy('id', 'desc')
            .execute()
        ).map((row) => rows.toAccessGuid(row, check('access_guids', row))),
      insert: async (accessGuid) => {
        await policyRows.insert('access_guids', rows.accessGuidRow(accessGuid));
      },
      update: async (accessGuid) => {
        rows.refuseTampered(accessGuid);
        await policyRows.update('access_guids', rows.accessGuidRow(accessGuid));
      },
      touch: async (id, at) => {
        await db
          .updateTable('access_guids')
          .set((e) => ({ last_used_at: laterOf(e.ref('last_used_at'), at) }))
          .where('id', '=', id)
          .execute();
      },
    },

    instances: {
      list: async (applicationId) =>
        (
          await db
            .selectFrom('instances')
            .selectAll()
            .where('application_id', '=', applicationId)
            .orderBy('last_used_at', 'desc')
            .orderBy('id')
            .execute()
        ).map(rows.toInstance),
      find: async ({ accessGuidId, appId, host, process, osUser }) => {
        const row = await db
          .selectFrom('instances')
          .selectAll()
          .where('access_guid_id', '=', accessGuidId)
          .where('app_id', '=', appId)
          .where('host', '=', host)
          .where('process', '=', process)
          .where('os_user', '=', osUser)
          .executeTakeFirst();
        return row && rows.toInstance(row);
      },
      insert: async (instance) => {
        await db.insertInto('instances').values(rows.instanceRow(instance)).execute();
      },
      addUses: async (id, { libraryVersion, agentVersion, pid, lastUsedAt, uses }) => {
        const { numUpdatedRows } = await db
          .updateTable('instances')
          .set((e) => ({
            library_version: libraryVersion,
            agent_version: agentVersion,
            pid,
            last_used_at: laterOf(e.ref('last_used_at'), lastUsedAt),
            uses: e('uses', '+', uses),
          }))
          .where('id', '=', id)
          .executeTakeFirst();
        return numUpdatedRows > 0n;
      },
      trim: async (applicationId, keep) => {
        const found = await db
          .selectFrom('instances')
          .selectAll()
          .where('application_id', '=', applicationId)
          .orderBy('last_used_at', 'desc')
          .orderBy('id', 'desc')
          .limit(1_000)
          .offset(keep)
          .execute();
        if (found.length > 0)
          await db
            .deleteFrom('instances')
            .where(
              'id',
              'in',
              found.map(({ id }) => id),
            )
            .execute();
        return found.map(rows.toInstance);
      },
    },

    objects: {
      listByIds: async (ids) =>
        ids.length === 0
          ? []
          : (
              await db
                .selectFrom('tde_objects')
                .leftJoin('keys', 'keys.id', 'tde_objects.id')
                .select(columnsWithoutContent)
                .select('keys.state as key_state')
                .where('tde_objects.id', 'in', ids)
                .execute()
            ).map((row) => loadObject({ ...row, content: null })),
      newestMasterKey: async (applicationId) =>
        (
          await db
            .selectFrom('keys')
            .innerJoin('tde_objects', 'tde_objects.id', 'keys.id')
            .select('keys.id')
            .where('keys.application_id', '=', applicationId)
            .where('keys.kind', '=', 'master')
            .where('keys.state', '!=', 'destroyed')
            .where('tde_objects.class', '=', 'secret-key')
            .orderBy('keys.id', 'desc')
            .limit(1)
            .executeTakeFirst()
        )?.id,
      get: async (handle) => {
        const row = await objectQuery().where('tde_objects.handle', '=', handle).executeTakeFirst();
        return row && loadObject(row);
      },
      getById: async (id) => {
        const row = await objectQuery().where('tde_objects.id', '=', id).executeTakeFirst();
        return row && loadObject(row);
      },
      find: async ({ groupId, label, class: objectClass, publicKey, after }, limit) => {
        let query = db
          .selectFrom('tde_objects')
          .leftJoin('keys', 'keys.id', 'tde_objects.id')
          .select(columnsWithoutContent)
          .select('keys.state as key_state')
          .where('tde_objects.group_id', '=', groupId)
          .where('tde_objects.destroyed_at', 'is', null)
          .where('tde_objects.handle', '>', after)
          .orderBy('tde_objects.handle')
          .limit(limit);
        if (label !== undefined) query = query.where('tde_objects.label', '=', label);
        if (objectClass !== undefined) query = query.where('tde_objects.class', '=', objectClass);
        if (publicKey !== undefined) query = query.where('tde_objects.public_key', '=', publicKey);
        return (await query.execute()).map((row) => loadObject({ ...row, content: null }));
      },
      countKeys: async (applicationId) => {
        const row = await db
          .selectFrom('tde_objects')
          .select((e) => e.fn.countAll<number | string>().as('count'))
          .where('application_id', '=', applicationId)
          .where('destroyed_at', 'is', null)
          .where('class', 'in', ['secret-key', 'private-key'])
          .executeTakeFirstOrThrow();
        return Number(row.count);
      },
      findElsewhere: async (tenantId, groupId, label) => {
        const row = await objectQuery()
          .where('tde_objects.tenant_id', '=', tenantId)
          .where('tde_objects.label', '=', label)
          .where('tde_objects.group_id', '!=', groupId)
          .where('tde_objects.destroyed_at', 'is', null)
          .where('tde_objects.class', 'in', ['secret-key', 'private-key'])
          .orderBy('tde_objects.handle')
          .limit(1)
          .executeTakeFirst();
        return row && loadObject({ ...row, content: null });
      },
      listByApplication: async (applicationId, after, limit) =>
        (
          await objectQuery()
            .where('tde_objects.application_id', '=', applicationId)
            .where('tde_objects.handle', '>', after)
            .orderBy('tde_objects.handle')
            .limit(limit)
            .execute()
        ).map(loadObject),
      keyWithLabel: async (groupId, label, { classes, fixed }, exceptHandle) => {
        const labelled = db
          .selectFrom('tde_objects')
          .select('handle')
          .where('group_id', '=', groupId)
          .where('label', '=', label)
          .where('destroyed_at', 'is', null)
          .where('class', 'in', classes)
          .where('handle', '!=', exceptHandle ?? 0);
        const which = fixed ? labelled.where('modifiable', '=', 0) : labelled;
        return (await which.orderBy('handle').limit(1).executeTakeFirst())?.handle;
      },
      nextHandle: async () => {
        const name = 'next-object-handle';
        const row = await db.selectFrom('settings').select('value').where('name', '=', name).executeTakeFirst();
        const handle = row === undefined ? 1 : Number(row.value);
        if (!Number.isSafeInteger(handle) || handle < 1 || handle > 0x7fffffff)
          throw new ServiceError('unavailable', 'no object handles are left in this store');
        const value = String(handle + 1);
        await db
          .insertInto('settings')
          .values({ name, value })
          .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
          .execute();
        return handle;
      },
      insert: async (object) => {
        await policyRows.insert('tde_objects', rows.objectRow(object));
      },
      update: async (object) => {
        rows.refuseTampered(object);
        await policyRows.update('tde_objects', rows.objectRow(object));
      },
      destroy: async (handle, at) => {
        const row = await objectQuery().where('tde_objects.handle', '=', handle).executeTakeFirst();
        if (row === undefined) return;
        const { key_state: _state, ...own } = row;
        if (own.content !== null)
          await db
            .updateTable('tde_objects')
            .set({ content: Buffer.alloc(own.content.length) })
            .where('handle', '=', handle)
            .execute();
        // Destruction takes a tampered row too; it stays recognisable, because only a sound row gets a fresh code.
        if (check('tde_objects', own) === 'ok')
          await policyRows.update('tde_objects', { ...own, content: null, destroyed_at: at });
        else
          await db
            .updateTable('tde_objects')
            .set({ content: null, destroyed_at: at })
            .where('handle', '=', handle)
            .execute();
      },
    },

    endpoints: {
      get: async (tenant, id) =>
        (
          await loadEndpoints(
            await inScope(db.selectFrom('endpoints').selectAll(), tenant).where('id', '=', id).execute(),
          )
        )[0],
      findByPrefix: async (prefix) =>
        (await loadEndpoints(await db.selectFrom('endpoints').selectAll().where('prefix', '=', prefix).execute()))[0],
      list: async (tenant, { after, limit }) => {
        let query = inScope(db.selectFrom('endpoints').selectAll(), tenant)
          .where('state', '!=', 'deleted')
          .orderBy('id')
          .limit(limit);
        if (after !== undefined) query = query.where('id', '>', after);
        return loadEndpoints(await query.execute());
      },
      listByKey: async (tenantId, keyId, limit) => {
        const found = await alsoInScope(db.selectFrom('endpoints').selectAll(), tenantId)
          .where('key_id', '=', keyId)
          .orderBy('id')
          .limit(limit)
          .execute();
        const used = new Map(found.map((row) => [row.id, row.last_used_at]));
        return (await loadEndpoints(found)).map((endpoint) => ({
          ...endpoint,
          lastUsedAt: used.get(endpoint.id) ?? null,
        }));
      },
      touch: async (id, at) => {
        await db
          .updateTable('endpoints')
          .set((e) => ({ last_used_at: laterOf(e.ref('last_used_at'), at) }))
          .where('id', '=', id)
          .execute();
      },
      insert: async (endpoint) => {
        await policyRows.insert('endpoints', { ...rows.endpointRow(endpoint), last_used_at: null });
        await terms.add('endpoints', rows.endpointRow(endpoint));
      },
      update: async (endpoint) => {
        rows.refuseTampered(endpoint);
        await policyRows.update('endpoints', rows.endpointRow(endpoint));
        await terms.renew('endpoints', rows.endpointRow(endpoint));
      },
      insertCredential: async (tenantId, credential) => {
        await policyRows.insert('endpoint_credentials', rows.credentialRow(credential));
        await terms.addCredential(tenantId, rows.credentialRow(credential));
      },
      removeCredential: async (id) => {
        const row = await db
          .selectFrom('endpoint_credentials')
          .select(['endpoint_id', 'access_key_id'])
          .where('id', '=', id)
          .executeTakeFirst();
        if (row !== undefined) await terms.removeCredential(row.endpoint_id, row.access_key_id);
        await policyRows.remove('endpoint_credentials', [id]);
      },
      touchCredential: async (id, at) => {
        await db
          .updateTable('endpoint_credentials')
          .set((e) => ({ last_used_at: laterOf(e.ref('last_used_at'), at) }))
          .where('id', '=', id)
          .execute();
      },
    },

    tokens: {
      get: async (tenant, id) => {
        const query = inScope(db.selectFrom('api_tokens').selectAll(), tenant);
        const row = await query.where('id', '=', id).executeTakeFirst();
        return row && rows.toToken(row, check('api_tokens', row));
      },
      findByHash: async (hash) => {
        const row = await db.selectFrom('api_tokens').selectAll().where('hash', '=', hash).executeTakeFirst();
        return row && rows.toToken(row, check('api_tokens', row));
      },
      list: async (tenant, { after, limit }) => {
        let query = inScope(db.selectFrom('api_tokens').selectAll(), tenant).orderBy('id').limit(limit);
        if (after !== undefined) query = query.where('id', '>', after);
        return (await query.execute()).map((row) => rows.toToken(row, check('api_tokens', row)));
      },
      countAdministrators: async (which) => {
        const row = await db
          .selectFrom('api_tokens')
          .select((e) => e.fn.countAll<number | string>().as('count'))
          .where('tenant_id', 'is', null)
          .where('owner_id', 'is', null)
          .where('grants', 'like', '%"role":"administrator","scope":null,"tenantId":null%')
          .where('revoked_at', 'is', null)
          .where((e) =>
            which === 'lasting'
              ? e('expires_at', 'is', null)
              : e.or([e('expires_at', 'is', null), e('expires_at', '>', which.liveAt)]),
          )
          .executeTakeFirstOrThrow();
        return Number(row.count);
      },
      hasLive: async (tenantId, ownerId, name, now) =>
        (await db
          .selectFrom('api_tokens')
          .select('id')
          .where('name', '=', name)
          .where('tenant_id', tenantId === null ? 'is' : '=', tenantId)
          .where('owner_id', ownerId === null ? 'is' : '=', ownerId)
          .where('revoked_at', 'is', null)
          .where((e) => e.or([e('expires_at', 'is', null), e('expires_at', '>', now)]))
          .limit(1)
          .executeTakeFirst()) !== undefined,
      insert: async (token) => {
        await policyRows.insert('api_tokens', rows.tokenRow(token));
        await terms.add('api_tokens', rows.tokenRow(token));
      },
      update: async (token) => {
        rows.refuseTampered(token);
        await policyRows.update('api_tokens', rows.tokenRow(token));
        await terms.renew('api_tokens', rows.tokenRow(token));
      },
      touch: async (id, at) => {
        await db
          .updateTable('api_tokens')
          .set((e) => ({ last_used_at: laterOf(e.ref('last_used_at'), at) }))
          .where('id', '=', id)
          .execute();
      },
    },

    audit: {
      ...auditLog,
      append: async ({ kind, actor, tenantId, subject, details }) => {
        const allowed: readonly string[] = auditKinds[kind].fields;
        const unknown = Object.keys(details).find((name) => !allowed.includes(name));
        if (unknown !== undefined) throw new ServiceError('internal', `audit record ${kind} has no field ${unknown}`);
        await auditLog.append({
          at: clock.now(),
          kind,
          actorKind: actor.kind,
          actorId: actor.id,
          actorName: actor.name,
          peer: actor.peer,
          tenantId,
          subjectKind: subject.kind,
          subjectId: subject.id,
          requestId: actor.requestId,
          details: JSON.parse(canonicalJson(details)) as AuditEvent['details'],
        });
      },
    },

    externalKeyStores: {
      get: async (tenant, id) => toStore(await storesBy(tenant, 'id', id)),
      findByCloudId: async (tenantId, customKeyStoreId, region) =>
        toStore(
          (await storesBy(tenantId, 'custom_key_store_id', customKeyStoreId)).filter((row) => row.region === region),
        ),
      list: async (tenant, { after, limit }) => {
        let query = inScope(db.selectFrom('external_key_stores').selectAll(), tenant).orderBy('id').limit(limit);
        if (after !== undefined) query = query.where('id', '>', after);
        return (await query.execute()).map((row) => checkedStore(row));
      },
      listByEndpoint: async (endpointId) => (await storesBy(everyTenant, 'endpoint_id', endpointId)).map(checkedStore),
      listUnseenSince: async (at, limit) =>
        (
          await db
            .selectFrom('external_key_stores')
            .selectAll()
            .where(lookedAt, '<=', at)
            .orderBy(lookedAt)
            .orderBy('id')
            .limit(limit)
            .execute()
        ).map(checkedStore),
      insert: async (store) => {
        await policyRows.insert('external_key_stores', rows.externalKeyStoreRow(store));
        await terms.add('external_key_stores', rows.externalKeyStoreRow(store));
      },
      setConnection: async (id, connection) => {
        await db
          .updateTable('external_key_stores')
          .set({ connection: JSON.stringify(connection), looked_at: connection.checkedAt })
          .where('id', '=', id)
          .execute();
      },
      setLookedAt: async (id, at) => {
        await db.updateTable('external_key_stores').set({ looked_at: at }).where('id', '=', id).execute();
      },
      remove: async (id) => {
        await policyRows.remove('external_key_stores', [id]);
        await terms.remove(id);
      },
    },
    diagnoses: {
      insert: async (diagnosis) => {
        await db.insertInto('diagnoses').values(rows.diagnosisRow(diagnosis)).execute();
      },
      get: async (id) => {
        const row = await db.selectFrom('diagnoses').selectAll().where('id', '=', id).executeTakeFirst();
        return row === undefined ? undefined : rows.toDiagnosis(row);
      },
      list: async (endpointId, { after, limit }) => {
        let query = db
          .selectFrom('diagnoses')
          .selectAll()
          .where('endpoint_id', '=', endpointId)
          .orderBy('id', 'desc')
          .limit(limit);
        if (after !== undefined) query = query.where('id', '<', after);
        return (await query.execute()).map(rows.toDiagnosis);
      },
      prune: async (before) => {
        const { numDeletedRows } = await db.deleteFrom('diagnoses').where('at', '<', before).executeTakeFirst();
        return Number(numDeletedRows);
      },
    },

    latency: createLatency(db),
    runbookRuns: createRunbookRuns(db),
    approvals: createApprovalRepository(db, policyRows),

    notifications: createNotificationRepository(db),

    requests: createRequestLog(db),
    search: createSearch(db),
    snapshots: createSnapshots(db, policyRows),
    openings: createOpenings(db),
    recoveryKeys: createRecoveryKeys(db, policyRows),
    keyBindings: createKeyBindings(db),
    tenantRows: createTenantRows(db, policyRows, terms, keyTags),
    ...createPeople(db, policyRows, terms),
    idempotency: createIdempotencyRows(db, policyRows),
  };
};

/** For the store's probe. */
export const oneRow = sql<{ readonly one: number }>`select 1 as one`;
