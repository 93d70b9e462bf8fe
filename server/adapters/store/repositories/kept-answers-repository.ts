// What requests under an `Idempotency-Key` have made, as rows. They are authenticated: what is in
// one is given as an answer.

import type { Kysely } from 'kysely';
import type { IdempotencyRepository, StoredRequest } from '../../../ports/kept-answers.ts';
import { refuseTampered } from '../rows/row-codes.ts';
import type { PolicyRows } from '../rows/row-set.ts';
import type { Schema } from '../schema/schema.ts';
import { idempotencyTables } from '../schema/tables/idempotency-table.ts';
import { membersOf } from '../schema/tables/members.ts';

const table = 'idempotency_keys';

const members = membersOf<StoredRequest>()(idempotencyTables.idempotency_keys, 'location', 'body');

const requestRow = (request: StoredRequest) => ({
  ...members.toRow(request),
  location: request.answer?.location ?? null,
  body: request.answer?.body ?? null,
});

export const createIdempotencyRows = (db: Kysely<Schema>, policyRows: PolicyRows): IdempotencyRepository => ({
  get: async (id) => {
    const row = await db.selectFrom(table).selectAll().where('id', '=', id).executeTakeFirst();
    return (
      row && {
        ...members.fromRow(row),
        answer: row.location === null ? null : { location: row.location, body: row.body },
        integrity: policyRows.integrity(table, row),
      }
    );
  },
  insert: (request) => policyRows.insertNew(table, requestRow(request)),
  update: async (request) => {
    refuseTampered(request);
    await policyRows.update(table, requestRow(request));
  },
  remove: async (id) => {
    await policyRows.remove(table, [id]);
  },
});
