// What requests under an `Idempotency-Key` have made, as rows. They are authenticated: what stands in one is given as an answer.

import type { Kysely } from 'kysely';
import type { IdempotencyRepository, StoredRequest } from '../ports/idempotency.ts';
import * as rows from './rows.ts';
import type { Schema } from './schema.ts';

const table = 'idempotency_keys';

const requestRow = (request: StoredRequest) => ({
  id: request.id,
  fingerprint: request.fingerprint,
  request_id: request.requestId,
  run: request.run,
  created_at: request.createdAt,
  location: request.answer?.location ?? null,
  body: request.answer?.body ?? null,
});

export const createIdempotencyRows = (
  db: Kysely<Schema>,
  authenticate: rows.RowAuthenticator,
): IdempotencyRepository => ({
  get: async (id) => {
    const row = await db.selectFrom(table).selectAll().where('id', '=', id).executeTakeFirst();
    return (
      row && {
        id: row.id,
        fingerprint: row.fingerprint,
        requestId: row.request_id,
        run: row.run,
        createdAt: row.created_at,
        answer: row.location === null ? null : { location: row.location, body: row.body },
        integrity: rows.rowIntegrity(authenticate, table, row),
      }
    );
  },
  insert: async (request) => {
    const made = await db
      .insertInto(table)
      .values(rows.sealRow(authenticate, table, requestRow(request)))
      .onConflict((conflict) => conflict.column('id').doNothing())
      .returning('id')
      .executeTakeFirst();
    return made !== undefined;
  },
  update: async (request) => {
    rows.refuseTampered(request);
    const { id, ...change } = rows.sealRow(authenticate, table, requestRow(request));
    await db.updateTable(table).set(change).where('id', '=', id).execute();
  },
  remove: async (id) => {
    await db.deleteFrom(table).where('id', '=', id).execute();
  },
  prune: async (before) => {
    await db.deleteFrom(table).where('created_at', '<', before).execute();
  },
});
