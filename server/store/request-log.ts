// The request log in the database. It is written at the rate of the data path and read by few people: each index must be worth
// what it costs every request, and no look must hold up the requests that come in meanwhile.
//
// Records are written in the order of their sequence, so an index that grows at its end (endpoint, time) costs next to nothing.
// KMS request ids are random: an index over them alone dirties a page for every record and costs more than all else of writing
// it (measured: 11 µs of 15). Their index therefore begins with the block of 2,000 records that they are in: writing touches a
// few pages (1 µs), and a search asks each block, 500 in a million records. All other searches walk through the log in short
// steps, between which other work is done.

import { type CompiledQuery, type Kysely, type Selectable, type SelectQueryBuilder, sql } from 'kysely';
import { type RequestFilter, readPattern } from '../domain/request-log.ts';
import type { Repositories } from '../ports/store.ts';
import { requestRow, toRequest } from './rows.ts';
import type { Schema } from './schema.ts';

/** Records of a block; stands in the index too (migrations.ts). */
const blockLength = 2000;
const blockOf = sql<number>`sequence / ${sql.lit(blockLength)}`;
const blocksAtOnce = 200;

/** Sequences that one step of a walk covers: some 3 ms. */
const stepLength = 4000;
/** Sequences that one search looks at, at most; what follows is another page. */
const mostLookedAt = 1_000_000;

/** Request records of one statement: full ones share their text, and so their plan. */
const insertedAtOnce = 50;
type Row = ReturnType<typeof requestRow>;
const inserts = new WeakMap<Kysely<Schema>, CompiledQuery>();
const insertOf = (db: Kysely<Schema>, part: readonly Row[]): CompiledQuery => {
  const known = part.length === insertedAtOnce ? inserts.get(db) : undefined;
  if (known !== undefined) return known;
  const compiled = db.insertInto('request_log').values(part).compile();
  if (part.length === insertedAtOnce) inserts.set(db, compiled);
  return compiled;
};

/** Lets what arrived meanwhile be answered. */
const otherWork = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

type Search = SelectQueryBuilder<Schema, 'request_log', Selectable<Schema['request_log']>>;

const wherePattern = (query: Search, column: 'principal' | 'kms_key_arn', pattern: string): Search => {
  const { text, prefix } = readPattern(pattern);
  if (!prefix) return query.where(column, '=', text);
  // Not LIKE, which knows no case in SQLite. Databases count characters, JavaScript counts half ones.
  return query.where(sql`substr(${sql.ref(column)}, 1, ${[...text].length})`, '=', text);
};

const withFilter = (base: Search, filter: RequestFilter): Search => {
  let query = base;
  const { endpointId, result, principal, kmsKeyArn, from, to } = filter;
  if (endpointId === null) query = query.where('endpoint_id', 'is', null);
  else if (endpointId !== undefined) query = query.where('endpoint_id', '=', endpointId);
  if (result !== undefined) query = query.where('error_name', result === 'refused' ? 'is not' : 'is', null);
  for (const [column, value] of [
    ['operation', filter.operation],
    ['status', filter.status],
    ['error_name', filter.errorName],
    ['kms_operation', filter.kmsOperation],
    ['external_key_id', filter.externalKeyId],
    ['request_id', filter.requestId],
    ['kms_request_id', filter.kmsRequestId],
  ] as const)
    if (value !== undefined) query = query.where(column, '=', value);
  if (principal !== undefined) query = wherePattern(query, 'principal', principal);
  if (kmsKeyArn !== undefined) query = wherePattern(query, 'kms_key_arn', kmsKeyArn);
  if (from !== undefined) query = query.where('at', '>=', from);
  if (to !== undefined) query = query.where('at', '<', to);
  return query;
};

/** Whether an index gives what is asked for in the order it is wanted, without looking at much else. */
const isDirect = ({ endpointId, result, from: _from, to: _to, ...others }: RequestFilter): boolean =>
  Object.values(others).every((value) => value === undefined) &&
  (result === undefined || (result === 'refused' && endpointId !== undefined));

export const requestStatements = (db: Kysely<Schema>) => {
  const all = (): Search => db.selectFrom('request_log').selectAll();
  return {
    end: (order: 'asc' | 'desc') =>
      db.selectFrom('request_log').select(['sequence', 'at']).orderBy('sequence', order).limit(1),
    /** The first record of this time or later. */
    since: (at: number) =>
      db.selectFrom('request_log').select('sequence').where('at', '>=', at).orderBy('at').orderBy('sequence').limit(1),
    /** Within sequences `from` to `below`, the upper one not included. */
    within: (filter: RequestFilter, from: number, below: number, limit: number) =>
      withFilter(all(), filter)
        .where('sequence', '>=', from)
        .where('sequence', '<', below)
        .orderBy('sequence', 'desc')
        .limit(limit),
    /** In some blocks; `blocks` has as many members each time, so that the statement's text is the same. */
    inBlocks: (filter: RequestFilter, blocks: readonly number[], below: number) =>
      withFilter(all(), filter).where(blockOf, 'in', blocks).where('sequence', '<', below).orderBy('sequence', 'desc'),
    prune: (before: number, through: number, limit: number) => {
      // Sequences grow with time: the oldest come first.
      const oldest = db.selectFrom('request_log').select(['sequence', 'at']).orderBy('sequence').limit(limit);
      const due = db
        .selectFrom(oldest.as('oldest'))
        .select('sequence')
        .where((e) => e.or([e('at', '<', before), e('sequence', '<=', through)]));
      return db.deleteFrom('request_log').where('sequence', 'in', due);
    },
  };
};

export const createRequestLog = (db: Kysely<Schema>): Repositories['requests'] => {
  const statements = requestStatements(db);
  type Found = Awaited<ReturnType<Repositories['requests']['search']>>['items'][number];

  /** What a search has to look at: sequences from `first` to `below`, the upper one not included. */
  const boundsOf = async (
    { from, to }: RequestFilter,
    after: string | undefined,
  ): Promise<{ readonly first: number; readonly below: number } | undefined> => {
    const [oldest, newest] = await Promise.all([
      statements.end('asc').executeTakeFirst(),
      statements.end('desc').executeTakeFirst(),
    ]);
    if (oldest === undefined || newest === undefined) return undefined;
    let first = oldest.sequence;
    let below = newest.sequence + 1;
    if (from !== undefined) first = (await statements.since(from).executeTakeFirst())?.sequence ?? below;
    if (to !== undefined) below = (await statements.since(to).executeTakeFirst())?.sequence ?? below;
    if (after !== undefined) below = Math.min(below, Number(after));
    return { first, below };
  };

  return {
    append: async (entries) => {
      for (let at = 0; at < entries.length; at += insertedAtOnce) {
        const part = entries.slice(at, at + insertedAtOnce).map(requestRow);
        // Compiling costs as much as inserting: a full statement's text is made once.
        const compiled = insertOf(db, part);
        await db.executeQuery({ ...compiled, parameters: part.flatMap((row) => Object.values(row)) });
      }
    },

    search: async (filter, { after, limit }) => {
      const bounds = await boundsOf(filter, after);
      if (bounds === undefined || bounds.first >= bounds.below) return { items: [], next: null };
      const { first, below } = bounds;
      const items: Found[] = [];
      const page = () => ({ items: items.slice(0, limit), next: String(items[limit - 1]?.sequence) });

      if (filter.kmsRequestId !== undefined) {
        const lowest = Math.floor(first / blockLength);
        for (let block = Math.floor((below - 1) / blockLength); block >= lowest; block -= blocksAtOnce) {
          const blocks = Array.from({ length: blocksAtOnce }, (_, at) => Math.max(block - at, -1));
          items.push(...(await statements.inBlocks(filter, blocks, below).execute()).map(toRequest));
          if (items.length > limit) return page();
          await otherWork();
        }
        return { items, next: null };
      }

      const direct = isDirect(filter);
      const step = direct ? below - first : stepLength;
      const end = direct ? first : Math.max(first, below - mostLookedAt);
      for (let top = below; top > end; top -= step) {
        const wanted = limit + 1 - items.length;
        const found = await statements.within(filter, Math.max(end, top - step), top, wanted).execute();
        items.push(...found.map(toRequest));
        if (items.length > limit) return page();
        await otherWork();
      }
      return { items, next: end > first ? String(end) : null };
    },

    oldest: async () => (await statements.end('asc').executeTakeFirst())?.at,

    prune: async ({ before, keep }, limit) => {
      const newest = await statements.end('desc').executeTakeFirst();
      if (newest === undefined) return 0;
      const result = await statements.prune(before, newest.sequence - keep, limit).executeTakeFirst();
      return Number(result.numDeletedRows);
    },
  };
};
