// The queries of TDE groups and applications, of their credentials, and of the database instances
// that use them.

import type { Kysely } from 'kysely';
import type { Repositories } from '../../../ports/store.ts';
import { refuseTampered, soundOnly } from '../rows/row-codes.ts';
import type { PolicyRows } from '../rows/row-set.ts';
import type { Schema } from '../schema/schema.ts';
import {
  accessGuidRow,
  applicationRow,
  groupRow,
  instanceRow,
  toAccessGuid,
  toApplication,
  toGroup,
  toInstance,
} from '../schema/tables/applications-table.ts';
import { countUpTo } from './count-up-to.ts';
import { laterOf } from './later-of.ts';
import type { Terms } from './search-index-repository.ts';
import { alsoInScope, inScope } from './tenants-repository.ts';

export const createGroups = (
  db: Kysely<Schema>,
  policyRows: PolicyRows,
  terms: Pick<Terms, 'add' | 'renew'>,
): Repositories['groups'] => {
  const check = policyRows.integrity;
  const stored: Repositories['groups']['stored'] = async (tenant, id) => {
    const query = inScope(db.selectFrom('tde_groups').selectAll(), tenant);
    const row = await query.where('id', '=', id).executeTakeFirst();
    return row && toGroup(row, check('tde_groups', row));
  };
  return {
    get: soundOnly(stored, 'group', ({ name }) => name),
    stored,
    findByName: async (tenantId, name) => {
      const row = await db
        .selectFrom('tde_groups')
        .selectAll()
        .where('tenant_id', '=', tenantId)
        .where('name', '=', name)
        .executeTakeFirst();
      return row && toGroup(row, check('tde_groups', row));
    },
    list: async (tenant, { after, limit }) => {
      let query = inScope(db.selectFrom('tde_groups').selectAll(), tenant).orderBy('id').limit(limit);
      if (after !== undefined) query = query.where('id', '>', after);
      return (await query.execute()).map((row) => toGroup(row, check('tde_groups', row)));
    },
    insert: async (group) => {
      await policyRows.insert('tde_groups', groupRow(group));
      await terms.add('tde_groups', groupRow(group));
    },
    update: async (group) => {
      refuseTampered(group);
      await policyRows.update('tde_groups', groupRow(group));
      await terms.renew('tde_groups', groupRow(group));
    },
  };
};

export const createApplications = (
  db: Kysely<Schema>,
  policyRows: PolicyRows,
  terms: Pick<Terms, 'add' | 'renew'>,
): Repositories['applications'] => {
  const check = policyRows.integrity;
  const stored: Repositories['applications']['stored'] = async (tenant, id) => {
    const query = inScope(db.selectFrom('tde_applications').selectAll(), tenant);
    const row = await query.where('id', '=', id).executeTakeFirst();
    return row && toApplication(row, check('tde_applications', row));
  };
  const findBy = async (column: 'name' | 'token_label', tenantId: string, value: string) => {
    const row = await db
      .selectFrom('tde_applications')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where(column, '=', value)
      .executeTakeFirst();
    return row && toApplication(row, check('tde_applications', row));
  };
  return {
    get: soundOnly(stored, 'application', ({ name }) => name),
    stored,
    findByName: (tenantId, name) => findBy('name', tenantId, name),
    findByTokenLabel: (tenantId, label) => findBy('token_label', tenantId, label),
    list: async (tenant, { groupId }, { after, limit }) => {
      const scoped = groupId === undefined ? inScope : alsoInScope;
      let query = scoped(db.selectFrom('tde_applications').selectAll(), tenant).orderBy('id').limit(limit);
      if (groupId !== undefined) query = query.where('group_id', '=', groupId);
      if (after !== undefined) query = query.where('id', '>', after);
      return (await query.execute()).map((row) => toApplication(row, check('tde_applications', row)));
    },
    count: (tenant, { groupId }, most) => {
      const scoped = groupId === undefined ? inScope : alsoInScope;
      const query = scoped(db.selectFrom('tde_applications').select('id'), tenant).limit(most);
      return countUpTo(db, groupId === undefined ? query : query.where('group_id', '=', groupId));
    },
    insert: async (application) => {
      await policyRows.insert('tde_applications', applicationRow(application));
      await terms.add('tde_applications', applicationRow(application));
    },
    update: async (application) => {
      refuseTampered(application);
      await policyRows.update('tde_applications', applicationRow(application));
      await terms.renew('tde_applications', applicationRow(application));
    },
  };
};

export const createAccessGuids = (db: Kysely<Schema>, policyRows: PolicyRows): Repositories['accessGuids'] => {
  const check = policyRows.integrity;
  return {
    findByHash: async (hash) => {
      const row = await db.selectFrom('access_guids').selectAll().where('hash', '=', hash).executeTakeFirst();
      return row && toAccessGuid(row, check('access_guids', row));
    },
    list: async (applicationId) =>
      (
        await db
          .selectFrom('access_guids')
          .selectAll()
          .where('application_id', '=', applicationId)
          .orderBy('id', 'desc')
          .execute()
      ).map((row) => toAccessGuid(row, check('access_guids', row))),
    insert: async (accessGuid) => {
      await policyRows.insert('access_guids', accessGuidRow(accessGuid));
    },
    update: async (accessGuid) => {
      refuseTampered(accessGuid);
      await policyRows.update('access_guids', accessGuidRow(accessGuid));
    },
    touch: async (id, at) => {
      await db
        .updateTable('access_guids')
        .set((e) => ({ last_used_at: laterOf(e.ref('last_used_at'), at) }))
        .where('id', '=', id)
        .execute();
    },
  };
};

export const createInstances = (db: Kysely<Schema>): Repositories['instances'] => ({
  list: async (applicationId) =>
    (
      await db
        .selectFrom('instances')
        .selectAll()
        .where('application_id', '=', applicationId)
        .orderBy('last_used_at', 'desc')
        .orderBy('id')
        .execute()
    ).map(toInstance),
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
    return row && toInstance(row);
  },
  insert: async (instance) => {
    await db.insertInto('instances').values(instanceRow(instance)).execute();
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
    return found.map(toInstance);
  },
});
