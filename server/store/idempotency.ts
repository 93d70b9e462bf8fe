// What requests under an `Idempotency-Key` have made, as rows. They are authenticated: what is in one is given as an answer.

import type { Kysely } from 'kysely';
import type { IdempotencyRepository, StoredRequest } from '../ports/idempotency.ts';
import { refuseTampered } from './row-codes.ts';
import type { PolicyRows } from './row-set.ts';
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

export const createIdempotencyRows = (db: Kysely<Schema>, policyRows: PolicyRows): IdempotencyRepository => ({
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
  prune: async (before) => {
    const old = await db.selectFrom(table).select('id').where('created_at', '<', before).execute();
    await policyRows.remove(
      table,
      old.map(({ id }) => id),
    );
  },
});
