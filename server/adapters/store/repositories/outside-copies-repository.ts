// Files that left the service, as rows with authentication codes.

import type { Kysely, Selectable } from 'kysely';
import { newOutsideCopy, type OutsideCopy } from '../../../domain/copies.ts';
import type { OutsideCopyRepository } from '../../../ports/outside-copies.ts';
import { refuseTampered } from '../rows/row-codes.ts';
import type { PolicyRows } from '../rows/row-set.ts';
import type { Schema } from '../schema/schema.ts';
import { membersOf } from '../schema/tables/members.ts';
import { snapshotsTables } from '../schema/tables/snapshots-table.ts';

const members = membersOf<OutsideCopy>()(snapshotsTables.outside_copies);
/** Stands for the time of a state whose time is not known: later than any other. */
const ever = Number.MAX_SAFE_INTEGER;
const mostAtOnce = 200;

export const createOutsideCopies = (db: Kysely<Schema>, policyRows: PolicyRows): OutsideCopyRepository => {
  const load = (row: Selectable<Schema['outside_copies']>): OutsideCopy => ({
    ...members.fromRow(row),
    integrity: policyRows.integrity('outside_copies', row),
  });
  const get: OutsideCopyRepository['get'] = async (id) => {
    const row = await db.selectFrom('outside_copies').selectAll().where('id', '=', id).executeTakeFirst();
    return row && load(row);
  };
  const insert: OutsideCopyRepository['insert'] = async (copy) => {
    await policyRows.insert('outside_copies', members.toRow(copy));
  };
  const list: OutsideCopyRepository['list'] = async ({ tenantId, kind, snapshotId, left }, { after, limit }) => {
    let query = db.selectFrom('outside_copies').selectAll().orderBy('id', 'desc').limit(limit);
    if (tenantId !== undefined) query = query.where('tenant_id', '=', tenantId);
    if (kind !== undefined) query = query.where('kind', '=', kind);
    if (snapshotId !== undefined) query = query.where('snapshot_id', '=', snapshotId);
    if (left === true) query = query.where('destroyed_at', 'is', null);
    if (after !== undefined) query = query.where('id', '<', after);
    return (await query.execute()).map(load);
  };
  /** Their codes are checked a few at a time: other requests are answered in between. */
  const readAll = async (): Promise<readonly OutsideCopy[]> => {
    const all: OutsideCopy[] = [];
    for (let after: string | undefined; ; ) {
      const page = await list({}, { after, limit: mostAtOnce });
      all.push(...page);
      if (page.length < mostAtOnce) return all;
      after = page.at(-1)?.id;
    }
  };
  return {
    get,
    list,
    left: async () => {
      const unknown = {
        kind: 'exported-snapshot',
        at: 0,
        stateFrom: 0,
        stateUntil: ever,
        integrity: 'tampered',
      } as const;
      // Without a condition: what the database leaves out would be taken as destroyed. Rows of this
      // table are never removed.
      const all = await readAll();
      const there = new Set(all.map(({ id }) => id));
      const missing = policyRows.known('outside_copies').filter((id) => !there.has(id));
      // One that came while the others were read is not missing.
      const later = await Promise.all(missing.map(async (id) => (await get(id)) ?? newOutsideCopy({ id, ...unknown })));
      return [...all, ...later].filter(({ destroyedAt, integrity }) => destroyedAt === null || integrity !== 'ok');
    },
    insert,
    update: async (copy) => {
      refuseTampered(copy);
      await policyRows.update('outside_copies', members.toRow(copy));
    },
    adoptExports: async () => {
      const rows = await db
        .selectFrom('snapshot_exports')
        .innerJoin('snapshots', 'snapshots.id', 'snapshot_exports.snapshot_id')
        .selectAll('snapshot_exports')
        .select(['snapshots.tenant_id', 'snapshots.created_at', 'snapshots.audit_size', 'snapshots.origin'])
        .execute();
      for (const row of rows) {
        const isOwn = row.origin !== 'imported';
        if ((await get(row.id)) === undefined)
          await insert(
            newOutsideCopy({
              ...{ id: row.id, kind: 'exported-snapshot', tenantId: row.tenant_id, snapshotId: row.snapshot_id },
              ...{ at: row.at, actorId: row.actor_id, actorName: row.actor_name },
              stateFrom: isOwn ? row.created_at : 0,
              stateUntil: isOwn ? row.created_at : ever,
              stateSize: isOwn ? row.audit_size : null,
            }),
          );
        await db.deleteFrom('snapshot_exports').where('id', '=', row.id).execute();
      }
    },
  };
};
