// The queries of XKS endpoints and their credentials, and of diagnoses.

import type { Kysely } from 'kysely';
import type { Endpoint } from '../../../domain/endpoint.ts';
import type { Repositories } from '../../../ports/store.ts';
import { refuseTampered, soundOnly } from '../rows/row-codes.ts';
import type { PolicyRows } from '../rows/row-set.ts';
import type { Schema } from '../schema/schema.ts';
import {
  credentialRow,
  diagnosisRow,
  endpointRow,
  toCredential,
  toDiagnosis,
  toEndpoint,
} from '../schema/tables/endpoints-table.ts';
import { countUpTo } from './count-up-to.ts';
import { laterOf } from './later-of.ts';
import type { Terms } from './search-index-repository.ts';
import { alsoInScope, inScope } from './tenants-repository.ts';

export const createEndpoints = (
  db: Kysely<Schema>,
  policyRows: PolicyRows,
  terms: Pick<Terms, 'add' | 'renew' | 'addTo' | 'removeFrom'>,
): Repositories['endpoints'] => {
  const check = policyRows.integrity;
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
      return toEndpoint(row, own.map(toCredential), sound ? 'ok' : 'tampered');
    });
  };
  const stored: Repositories['endpoints']['stored'] = async (tenant, id) =>
    (
      await loadEndpoints(await inScope(db.selectFrom('endpoints').selectAll(), tenant).where('id', '=', id).execute())
    )[0];
  return {
    get: soundOnly(stored, 'endpoint', ({ name }) => name),
    stored,
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
    count: (tenant, most) =>
      countUpTo(
        db,
        inScope(db.selectFrom('endpoints').select('id'), tenant).where('state', '!=', 'deleted').limit(most),
      ),
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
      await policyRows.insert('endpoints', { ...endpointRow(endpoint), last_used_at: null });
      await terms.add('endpoints', endpointRow(endpoint));
    },
    update: async (endpoint) => {
      refuseTampered(endpoint);
      await policyRows.update('endpoints', endpointRow(endpoint));
      await terms.renew('endpoints', endpointRow(endpoint));
    },
    insertCredential: async (tenantId, credential) => {
      await policyRows.insert('endpoint_credentials', credentialRow(credential));
      await terms.addTo('endpoint_credentials', credentialRow(credential), tenantId);
    },
    removeCredential: async (id) => {
      const row = await db
        .selectFrom('endpoint_credentials')
        .select(['endpoint_id', 'access_key_id'])
        .where('id', '=', id)
        .executeTakeFirst();
      if (row !== undefined) await terms.removeFrom('endpoint_credentials', row);
      await policyRows.remove('endpoint_credentials', [id]);
    },
    touchCredential: async (id, at) => {
      await db
        .updateTable('endpoint_credentials')
        .set((e) => ({ last_used_at: laterOf(e.ref('last_used_at'), at) }))
        .where('id', '=', id)
        .execute();
    },
  };
};

export const createDiagnoses = (db: Kysely<Schema>): Repositories['diagnoses'] => ({
  insert: async (diagnosis) => {
    await db.insertInto('diagnoses').values(diagnosisRow(diagnosis)).execute();
  },
  get: async (id) => {
    const row = await db.selectFrom('diagnoses').selectAll().where('id', '=', id).executeTakeFirst();
    return row === undefined ? undefined : toDiagnosis(row);
  },
  list: async (endpointId, { after, limit }) => {
    let query = db
      .selectFrom('diagnoses')
      .selectAll()
      .where('endpoint_id', '=', endpointId)
      .orderBy('id', 'desc')
      .limit(limit);
    if (after !== undefined) query = query.where('id', '<', after);
    return (await query.execute()).map(toDiagnosis);
  },
});
