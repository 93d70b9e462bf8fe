// Snapshots, their exports and openings, recovery keys and key bindings as rows.

import type { Kysely, Selectable } from 'kysely';
import { canonicalJson } from '../../../base/bytes.ts';
import type { RecoveryKey, Snapshot, SnapshotCounts, Verification } from '../../../domain/snapshot.ts';
import type { Integrity } from '../../../domain/vault.ts';
import type {
  KeyBindingRepository,
  OpeningRepository,
  RecoveryKeyRepository,
  SnapshotRepository,
  StoredOpening,
} from '../../../ports/snapshots.ts';
import { refuseTampered } from '../rows/row-codes.ts';
import type { PolicyRows } from '../rows/row-set.ts';
import { readDocument } from '../schema/documents.ts';
import type { Schema } from '../schema/schema.ts';
import { membersOf } from '../schema/tables/members.ts';
import { snapshotsTables } from '../schema/tables/snapshots-table.ts';
import { toBuffer } from '../schema/tables/values.ts';

const countsExample = { rows: {}, units: 0, materials: 0, omitted: 0, erased: 0 } satisfies SnapshotCounts;
const verificationExample = { at: 0, depth: 'sealed', valid: true, finding: null } satisfies Verification;

const snapshotMembers = membersOf<Snapshot>()(
  snapshotsTables.snapshots,
  'counts',
  'erased',
  'recovery_key_ids',
  'verification',
);

const snapshotRow = (snapshot: Snapshot) => ({
  ...snapshotMembers.toRow(snapshot),
  counts: snapshot.counts === null ? null : canonicalJson(snapshot.counts),
  erased: snapshot.counts === null ? null : snapshot.counts.erased,
  recovery_key_ids: canonicalJson(snapshot.recoveryKeyIds),
  verification: snapshot.verification === null ? null : canonicalJson(snapshot.verification),
});

/**
 * How many keys are erased is what the row's code covers, where it has it; the others are for
 * people.
 */
const countsOf = ({
  counts,
  erased,
}: Pick<Selectable<Schema['snapshots']>, 'counts' | 'erased'>): Snapshot['counts'] => {
  const found = readDocument<SnapshotCounts | null>(counts, countsExample, null);
  return erased === null ? found : { ...(found ?? countsExample), erased };
};

const toSnapshot = (row: Selectable<Schema['snapshots']>, integrity: Integrity): Snapshot => ({
  ...snapshotMembers.fromRow(row),
  counts: countsOf(row),
  recoveryKeyIds: readDocument<readonly string[]>(row.recovery_key_ids, [''], []),
  verification: readDocument<Verification | null>(row.verification, verificationExample, null),
  integrity,
});

/** States in which the file of a snapshot may be there. */
const holding: ReadonlySet<string> = new Set(['available', 'deleted', 'missing'] satisfies Snapshot['state'][]);

const recoveryKeyMembers = membersOf<RecoveryKey>()(snapshotsTables.recovery_keys);
const openingMembers = membersOf<StoredOpening>()(snapshotsTables.snapshot_openings);

export const createSnapshots = (db: Kysely<Schema>, policyRows: PolicyRows): SnapshotRepository => {
  const load = (row: Selectable<Schema['snapshots']>): Snapshot =>
    toSnapshot(row, policyRows.integrity('snapshots', row));
  return {
    get: async (id) => {
      const row = await db.selectFrom('snapshots').selectAll().where('id', '=', id).executeTakeFirst();
      return row && load(row);
    },
    list: async ({ tenantId, state }, { after, limit }) => {
      let query = db.selectFrom('snapshots').selectAll().orderBy('id', 'desc').limit(limit);
      if (tenantId !== undefined) query = query.where('tenant_id', '=', tenantId);
      if (state !== undefined) query = query.where('state', '=', state);
      if (after !== undefined) query = query.where('id', '<', after);
      return (await query.execute()).map(load);
    },
    held: async () => {
      // Without a condition: what the database leaves out would be taken as ended.
      const all = (await db.selectFrom('snapshots').selectAll().orderBy('id', 'desc').execute()).map(load);
      const there = new Set(all.map(({ id }) => id));
      return {
        rows: all.filter(({ state, integrity }) => integrity !== 'ok' || holding.has(state)),
        hidden: policyRows.known('snapshots').filter((id) => !there.has(id)),
      };
    },
    insert: async (snapshot) => {
      await policyRows.insert('snapshots', snapshotRow(snapshot));
    },
    update: async (snapshot) => {
      refuseTampered(snapshot);
      await policyRows.update('snapshots', snapshotRow(snapshot));
    },
  };
};

export const createRecoveryKeys = (db: Kysely<Schema>, policyRows: PolicyRows): RecoveryKeyRepository => {
  const load = (row: Selectable<Schema['recovery_keys']>): RecoveryKey => ({
    ...recoveryKeyMembers.fromRow(row),
    integrity: policyRows.integrity('recovery_keys', row),
  });
  return {
    get: async (id) => {
      const row = await db.selectFrom('recovery_keys').selectAll().where('id', '=', id).executeTakeFirst();
      return row && load(row);
    },
    list: async () =>
      (await db.selectFrom('recovery_keys').selectAll().orderBy('created_at').orderBy('id').execute()).map(load),
    insert: async (key) => {
      await policyRows.insert('recovery_keys', recoveryKeyMembers.toRow(key));
    },
    update: async (key) => {
      refuseTampered(key);
      await policyRows.update('recovery_keys', recoveryKeyMembers.toRow(key));
    },
  };
};

export const createOpenings = (db: Kysely<Schema>): OpeningRepository => ({
  insert: async (opening) => {
    await db.insertInto('snapshot_openings').values(openingMembers.toRow(opening)).execute();
  },
  get: async (id) => {
    const row = await db.selectFrom('snapshot_openings').selectAll().where('id', '=', id).executeTakeFirst();
    return row && openingMembers.fromRow(row);
  },
  remove: async (id) => {
    await db.deleteFrom('snapshot_openings').where('id', '=', id).execute();
  },
});

export const createKeyBindings = (db: Kysely<Schema>): KeyBindingRepository => ({
  get: async (keyId) => {
    const row = await db.selectFrom('key_bindings').select('binding').where('key_id', '=', keyId).executeTakeFirst();
    return row && toBuffer(row.binding);
  },
});
