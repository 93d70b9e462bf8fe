// The request log in the database. It is written at the rate of the data path and read by few
// people: each index must be worth what it costs every request, and no look must delay the requests
// that come in in the meantime.
//
// Records are written in the order of their sequence, so an index that grows at its end (endpoint,
// time) costs next to nothing. KMS request ids are random: an index over them alone dirties a page
// for every record and costs more than all else of writing it (measured: 11 µs of 15). Their index
// therefore begins with the block of 2,000 records that they are in: writing touches a few pages (1
// µs), and a search asks each block, 500 in a million records. All other searches walk through the
// log in steps of some 2 ms, between which other work is done.

import { type CompiledQuery, type Kysely, type Selectable, type SelectQueryBuilder, sql } from 'kysely';
import { type DroppedRequests, type RequestHash, spaceOf, unsignedSpace } from '../../../base/request-minutes.ts';
import { type RequestFilter, readPattern } from '../../../domain/request-log.ts';
import { everyTenant, type TenantScope } from '../../../domain/tenant.ts';
import type { Repositories } from '../../../ports/store.ts';
import type { XksRequestRecord } from '../../../ports/xks-directory.ts';
import { hashRequests } from '../schema/request-hashes.ts';
import type { Schema } from '../schema/schema.ts';
import { pushRequest, requestRow, toRequest } from '../schema/tables/request-log-table.ts';

/** Records of a block; is in the index too (adapters/store/schema/tables/request-log-table.ts). */
const blockLength = 2000;
const blockOf = sql<number>`sequence / ${sql.lit(blockLength)}`;
const blocksAtOnce = 200;

/**
 * Sequences that the first step of a walk covers; the next ones are as long as makes them take
 * about this time.
 */
const firstStep = 2000;
/**
 * However long a step takes: on a machine that is busy with other things, most of its time is not
 * its own.
 */
const shortestStep = 1000;
const stepMs = 2;
/** Steps of one search, at most; what follows is another page. */
const mostSteps = 500;
/**
 * Least share of the newest records that must be of an endpoint for a walk past all of them to cost
 * less than its index.
 */
const denseFrom = 0.1;

/**
 * Records of one statement, largest first: each length is compiled once, because compiling costs as
 * much as inserting.
 */
const insertLengths = [50, 8, 1] as const;
const inserts = new WeakMap<Kysely<Schema>, Map<number, CompiledQuery>>();
const insertOf = (db: Kysely<Schema>, part: readonly XksRequestRecord[]): CompiledQuery => {
  let own = inserts.get(db);
  if (own === undefined) {
    own = new Map();
    inserts.set(db, own);
  }
  let compiled = own.get(part.length);
  if (compiled === undefined) {
    compiled = db.insertInto('request_log').values(part.map(requestRow)).compile();
    own.set(part.length, compiled);
  }
  const parameters: unknown[] = [];
  for (const entry of part) pushRequest(parameters, entry);
  return { ...compiled, parameters };
};

/** Lets what arrived in the meantime be answered, for about as long as the step took. */
const otherWork = (tookMs: number): Promise<void> =>
  new Promise((resolve) => {
    if (tookMs < 1) setImmediate(resolve);
    else setTimeout(resolve, Math.min(tookMs, 2 * stepMs));
  });

type Search = SelectQueryBuilder<Schema, 'request_log', Selectable<Schema['request_log']>>;

const wherePattern = (query: Search, column: 'principal' | 'kms_key_arn', pattern: string): Search => {
  const { text, prefix } = readPattern(pattern);
  if (!prefix) return query.where(column, '=', text);
  // Not LIKE, which knows no case in SQLite. Databases count characters, JavaScript counts half
  // ones.
  return query.where(sql`substr(${sql.ref(column)}, 1, ${[...text].length})`, '=', text);
};

/** A filter with the tenants whose endpoints count. */
type TenantFilter = RequestFilter & { readonly tenant: TenantScope };

/** How a search finds the records of its endpoint: by the index, or by looking at each. */
type Way = 'index' | 'look';

const withFilter = (base: Search, filter: TenantFilter, way: Way): Search => {
  let query = base;
  const { tenant, endpointId, result, principal, kmsKeyArn, from, to } = filter;
  // A request is of the tenant of its endpoint; one that met none is of no tenant.
  if (tenant !== everyTenant)
    query = query.where(
      sql<boolean>`coalesce(endpoint_id, '') in (select id from endpoints where tenant_id = ${tenant})`,
    );
  // No index is over this expression.
  if (endpointId !== undefined && way === 'look')
    query = query.where(sql`coalesce(endpoint_id, '')`, '=', endpointId ?? '');
  else if (endpointId === null) query = query.where('endpoint_id', 'is', null);
  else if (endpointId !== undefined) query = query.where('endpoint_id', '=', endpointId);
  if (result !== undefined) query = query.where('error_name', result === 'refused' ? 'is not' : 'is', null);
  // No index is over this expression: the one of unsigned records would give those of all
  // endpoints.
  if (filter.signed !== undefined)
    query = query.where(sql`coalesce(credential_id, '')`, filter.signed ? '!=' : '=', '');
  for (const [column, value] of [
    ['operation', filter.operation],
    ['status', filter.status],
    ['error_name', filter.errorName],
    ['kms_operation', filter.kmsOperation],
    ['aws_source_vpc', filter.awsSourceVpc],
    ['aws_source_vpce', filter.awsSourceVpce],
    ['kms_via_service', filter.kmsViaService],
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

/**
 * Whether an index gives what is asked for in the order it is wanted, without looking at much else.
 */
const isDirect = ({ tenant, endpointId, from: _from, to: _to, ...others }: TenantFilter): boolean =>
  // In a log of others, the records of a tenant that has asked for little are far between.
  (tenant === everyTenant || endpointId !== undefined) && Object.values(others).every((value) => value === undefined);

const asksForRefusals = ({ result, errorName }: RequestFilter): boolean =>
  result === 'refused' || errorName !== undefined;

type SpaceRow = Pick<Selectable<Schema['request_log']>, 'endpoint_id' | 'credential_id'>;
const spaceOfRow = ({ endpoint_id: endpointId, credential_id: credentialId }: SpaceRow): string =>
  spaceOf({ endpointId, credentialId });
const countSpaces = (rows: readonly SpaceRow[]): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>();
  for (const row of rows) counts.set(spaceOfRow(row), (counts.get(spaceOfRow(row)) ?? 0) + 1);
  return counts;
};
const toGone = ({ sequence, endpoint_id: endpointId }: SpaceRow & { readonly sequence: number }) => ({
  sequence,
  endpointId,
});
const toDropped = ({ minute, signed, unsigned }: Schema['request_log_dropped']): DroppedRequests => ({
  minute: Number(minute),
  signed: Number(signed),
  unsigned: Number(unsigned),
});

/** The request's own id, and the one that the cloud gave it. */
type RequestIdColumn = 'request_id' | 'kms_request_id';

export const requestStatements = (db: Kysely<Schema>) => {
  const all = (): Search => db.selectFrom('request_log').selectAll();
  const spaces = () =>
    db.selectFrom('request_log').select(['sequence', 'endpoint_id', 'credential_id']).orderBy('sequence');
  return {
    end: (order: 'asc' | 'desc') =>
      db.selectFrom('request_log').select(['sequence', 'at']).orderBy('sequence', order).limit(1),
    /** The first record of this time or later. */
    since: (at: number) =>
      db.selectFrom('request_log').select('sequence').where('at', '>=', at).orderBy('at').orderBy('sequence').limit(1),
    /** Within sequences `from` to `below`, the upper one not included. */
    within: (filter: TenantFilter, way: Way, from: number, below: number, limit: number) =>
      withFilter(all(), filter, way)
        .where('sequence', '>=', from)
        .where('sequence', '<', below)
        .orderBy('sequence', 'desc')
        .limit(limit),
    countOf: (endpointId: string | null, from: number) =>
      db
        .selectFrom('request_log')
        .select((e) => e.fn.countAll<number | string>().as('count'))
        .where('endpoint_id', endpointId === null ? 'is' : '=', endpointId)
        .where('sequence', '>=', from),
    /**
     * Records with this id in these blocks. `blocks` has the same number of members each time, so
     * that the statement's text is the same.
     */
    withRequestId: (column: RequestIdColumn, id: string, blocks: readonly number[]) =>
      db.selectFrom('request_log').select('sequence').where(blockOf, 'in', blocks).where(column, '=', id),
    named: (filter: TenantFilter, sequences: readonly number[], from: number, below: number) =>
      withFilter(all(), filter, 'look')
        .where('sequence', 'in', sequences)
        .where('sequence', '>=', from)
        .where('sequence', '<', below)
        .orderBy('sequence', 'desc'),
    /** The next ones of all endpoints. */
    following: (sequence: number, limit: number) =>
      all().where('sequence', '>', sequence).orderBy('sequence').limit(limit),
    newestBelow: (sequence: number) =>
      db
        .selectFrom('request_log')
        .select('sequence')
        .where('sequence', '<', sequence)
        .orderBy('sequence', 'desc')
        .limit(1),
    after: (sequence: number, limit: number) => spaces().where('sequence', '>', sequence).limit(limit),
    /** Sequences grow with time: the oldest come first. */
    oldest: (limit: number) => spaces().select('at').limit(limit),
    ofSpace: (space: string, after: number, limit: number) => {
      const query = spaces().where('sequence', '>', after).limit(limit);
      return space === unsignedSpace
        ? query.where('credential_id', 'is', null)
        : query.where('endpoint_id', '=', space);
    },
    remove: (sequences: readonly number[]) => db.deleteFrom('request_log').where('sequence', 'in', sequences),
    dropped: (through: number) =>
      db.selectFrom('request_log_dropped').selectAll().where('minute', '<=', through).orderBy('minute'),
    inTime: (span: { from: number; to: number; through: number }, at: number, sequence: number, limit: number) =>
      all()
        .where(sql<boolean>`(at, sequence) > (${at}, ${sequence})`)
        .where('at', '<', span.to)
        .where('sequence', '<=', span.through)
        .orderBy('at')
        .orderBy('sequence')
        .limit(limit),
    cameLate: (after: number, through: number, before: number) =>
      // Not by time: everything older than this would be read.
      all().where('sequence', '>', after).where('sequence', '<=', through).where(sql`at + 0`, '<', before),
  };
};

/** What a search has to read: sequences from `first` to `below`, the upper one not included. */
interface Bounds {
  readonly first: number;
  readonly below: number;
}

type Statements = ReturnType<typeof requestStatements>;
type RequestRepository = Repositories['requests'];
type Found = Awaited<ReturnType<Repositories['requests']['search']>>['items'][number];

const pageOf = (found: readonly Found[], limit: number) => ({
  items: found.slice(0, limit),
  next: found.length > limit ? String(found[limit - 1]?.sequence) : null,
});

/** Walks through the log, or asks its blocks for a request's id. */
const createSearch = (statements: Statements): RequestRepository['search'] => {
  const boundsOf = async ({ from, to }: RequestFilter, after: string | undefined): Promise<Bounds | undefined> => {
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

  /**
   * Retention leaves gaps where only records of some spaces are left: what is below this is above
   * the newest record in it.
   */
  const topOf = async (below: number): Promise<number> =>
    ((await statements.newestBelow(below).executeTakeFirst())?.sequence ?? -1) + 1;

  const lookUp = async (
    filter: TenantFilter,
    column: RequestIdColumn,
    id: string,
    { first, below }: Bounds,
    limit: number,
  ) => {
    const found: Found[] = [];
    const lowest = Math.floor(first / blockLength);
    for (let top = await topOf(below); top > first; ) {
      const startedAt = performance.now();
      const block = Math.floor((top - 1) / blockLength);
      const blocks = Array.from({ length: blocksAtOnce }, (_, at) => Math.max(block - at, -1));
      const named = await statements.withRequestId(column, id, blocks).execute();
      if (named.length > 0) {
        const sequences = named.map(({ sequence }) => sequence);
        found.push(...(await statements.named(filter, sequences, first, below).execute()).map(toRequest));
      }
      if (found.length > limit || block - blocksAtOnce < lowest) break;
      await otherWork(performance.now() - startedAt);
      top = await topOf((block - blocksAtOnce + 1) * blockLength);
    }
    return pageOf(found, limit);
  };

  /** Whether records of the endpoint are so many that its index saves nothing. */
  const wayOf = async (filter: TenantFilter, { first, below }: Bounds): Promise<Way> => {
    const { endpointId } = filter;
    if (endpointId === undefined || isDirect(filter) || asksForRefusals(filter)) return 'index';
    const from = Math.max(first, below - firstStep);
    const row = await statements.countOf(endpointId, from).executeTakeFirst();
    return Number(row?.count ?? 0) >= denseFrom * (below - from) ? 'look' : 'index';
  };

  const walk = async (filter: TenantFilter, bounds: Bounds, limit: number) => {
    const { first, below } = bounds;
    const way = await wayOf(filter, bounds);
    const direct = isDirect(filter);
    let step = direct ? below - first : firstStep;
    const found: Found[] = [];
    let top = await topOf(below);
    for (let steps = 0; top > first; steps += 1) {
      if (steps === mostSteps) return { items: found, next: String(top) };
      const startedAt = performance.now();
      const from = Math.max(first, top - step);
      found.push(
        ...(await statements.within(filter, way, from, top, limit + 1 - found.length).execute()).map(toRequest),
      );
      if (found.length > limit) return pageOf(found, limit);
      top = await topOf(from);
      const took = performance.now() - startedAt;
      step = Math.max(shortestStep, Math.round(step * Math.min(4, stepMs / Math.max(took, 0.1))));
      await otherWork(took);
    }
    return { items: found, next: null };
  };

  return async (tenant, asked, { after, limit }) => {
    const filter: TenantFilter = { ...asked, tenant };
    const bounds = await boundsOf(filter, after);
    if (bounds === undefined || bounds.first >= bounds.below) return { items: [], next: null };
    const { kmsRequestId, requestId } = filter;
    if (kmsRequestId !== undefined) return lookUp(filter, 'kms_request_id', kmsRequestId, bounds, limit);
    return requestId === undefined
      ? walk(filter, bounds, limit)
      : lookUp(filter, 'request_id', requestId, bounds, limit);
  };
};

const recordsBySpace = (
  statements: Statements,
): Pick<RequestRepository, 'countBySpace' | 'pruneOld' | 'pruneSpace'> => ({
  countBySpace: async (after, limit) => {
    const rows = await statements.after(after, limit).execute();
    return { counts: countSpaces(rows), through: rows.at(-1)?.sequence ?? after, isEnd: rows.length < limit };
  },

  pruneOld: async (before, limit) => {
    const rows = (await statements.oldest(limit).execute()).filter(({ at }) => at < before);
    const sequences = rows.map(({ sequence }) => sequence);
    if (sequences.length > 0) await statements.remove(sequences).execute();
    return { removed: countSpaces(rows), through: Math.max(0, ...sequences), gone: rows.map(toGone) };
  },

  pruneSpace: async (space, after, most, limit) => {
    const rows = await statements.ofSpace(space, after, limit).execute();
    const own = rows.filter((row) => spaceOfRow(row) === space).slice(0, most);
    const sequences = own.map(({ sequence }) => sequence);
    if (sequences.length > 0) await statements.remove(sequences).execute();
    const through = sequences.at(-1) ?? 0;
    // Records after the last removed one are read the next time.
    const seen = own.length === most ? through : rows.length < limit ? null : (rows.at(-1)?.sequence ?? null);
    return { removed: own.length, through, seen, gone: own.map(toGone) };
  },
});

/** How many requests of each minute have no record, because there were too many. */
const droppedRequests = (
  db: Kysely<Schema>,
  statements: Statements,
): Pick<RequestRepository, 'addDropped' | 'dropped' | 'takeDropped'> => ({
  addDropped: async (dropped) => {
    for (const row of dropped)
      await db
        .insertInto('request_log_dropped')
        .values(row)
        .onConflict((conflict) =>
          conflict.column('minute').doUpdateSet((e) => ({
            signed: e('request_log_dropped.signed', '+', e.ref('excluded.signed')),
            unsigned: e('request_log_dropped.unsigned', '+', e.ref('excluded.unsigned')),
          })),
        )
        .execute();
  },
  dropped: async (through) => (await statements.dropped(through).execute()).map(toDropped),
  takeDropped: async (through) => {
    const found = (await statements.dropped(through).execute()).map(toDropped);
    if (found.length > 0) await db.deleteFrom('request_log_dropped').where('minute', '<=', through).execute();
    return found;
  },
});

/** `hashesOf`: carries out a statement that gives records, and answers with their hashes. */
export const createRequestLog = (
  db: Kysely<Schema>,
  hashesOf = async (query: CompiledQuery): Promise<readonly RequestHash[]> =>
    hashRequests((await db.executeQuery(query as CompiledQuery<Selectable<Schema['request_log']>>)).rows),
): RequestRepository => {
  const statements = requestStatements(db);
  return {
    append: async (entries) => {
      let at = 0;
      for (const length of insertLengths)
        for (; entries.length - at >= length; at += length)
          await db.executeQuery(insertOf(db, entries.slice(at, at + length)));
    },

    search: createSearch(statements),

    list: async (after, limit) => (await statements.following(after, limit).execute()).map(toRequest),

    oldest: async () => (await statements.end('asc').executeTakeFirst())?.at,

    ...recordsBySpace(statements),
    ...droppedRequests(db, statements),

    newest: async () => (await statements.end('desc').executeTakeFirst())?.sequence ?? 0,

    hashesInTime: (span, after, limit) =>
      hashesOf(statements.inTime(span, after?.at ?? span.from, after?.sequence ?? -1, limit).compile()),

    hashesOfLate: ({ after, through, before }) => hashesOf(statements.cameLate(after, through, before).compile()),
  };
};
