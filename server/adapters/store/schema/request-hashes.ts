// From rows of the request log to the hashes of its records.

import type { Selectable } from 'kysely';
import { hashEntry, type RequestHash, spaceOf } from '../../../base/request-minutes.ts';
import { toRfc3339 } from '../../../base/time.ts';
import type { Schema } from './schema.ts';
import { toRequest } from './tables/request-log-table.ts';

/** Rows as the database gives them. */
export const hashRequests = (rows: readonly Selectable<Schema['request_log']>[]): RequestHash[] =>
  rows.map((row) => {
    const record = toRequest(row);
    const { at, sequence } = record;
    return { at, sequence, space: spaceOf(record), hash: hashEntry({ ...record, at: toRfc3339(at) }) };
  });
