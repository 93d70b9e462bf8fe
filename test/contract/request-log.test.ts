// The request log of every store (ports/store.ts, `requests`): the results of a search, page by
// page, and the removal of old records.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Kysely, SqliteDialect } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { requestStatements } from '../../server/adapters/store/repositories/request-log-repository.ts';
import type { Schema } from '../../server/adapters/store/schema/schema.ts';
import { openStore } from '../../server/adapters/store/store.ts';
import { systemClock } from '../../server/base/time.ts';
import type { RequestFilter } from '../../server/domain/request-log.ts';
import { everyTenant } from '../../server/domain/tenant.ts';
import type { Store } from '../../server/ports/store.ts';
import type { XksRequestRecord } from '../../server/ports/xks-directory.ts';
import { sharedFolder } from '../support/folders.ts';

const count = 12_345;
/**
 * Record number `at`, from 1: every fifth is refused, every third of endpoint b, every hundredth
 * met no endpoint.
 */
const recordOf = (at: number): XksRequestRecord => ({
  at: 1_000_000 + at,
  requestId: `request-${at}`,
  endpointId: at % 100 === 0 ? null : at % 3 === 0 ? 'b' : 'a',
  operation: at % 2 === 0 ? 'encrypt' : 'decrypt',
  kmsOperation: 'GenerateDataKey',
  kmsRequestId: at % 100 === 0 ? null : `kms-${at}`,
  principal: `arn:aws:iam::111122223333:user/${at % 7 === 0 ? 'Alice' : 'alice'}${at}`,
  kmsKeyArn: 'arn:aws:kms:us-east-1:111122223333:key/1',
  awsSourceVpc: at % 11 === 0 ? 'vpc-1' : null,
  awsSourceVpce: at % 11 === 0 ? 'vpce-1' : null,
  kmsViaService: at % 2 === 0 ? 's3.us-east-1.amazonaws.com' : null,
  externalKeyId: 'key',
  credentialId: 'credential',
  status: at % 5 === 0 ? 403 : 200,
  errorName: at % 5 === 0 ? 'AccessDeniedException' : null,
  durationMs: at / 8,
  phases: { readMs: 0.25, authMs: 0.5, cryptoMs: 0.125 },
  reason: at % 5 === 0 ? 'denied by the rule 100%_' : null,
  peer: '192.0.2.1',
});

const folder = sharedFolder();
let store: Store;
beforeAll(async () => {
  store = await openStore({
    path: join(folder, 'dke.db'),
    clock: systemClock,
    authenticateRow: () => '',
    onFatal: (error) => {
      throw error;
    },
  });
  const all = Array.from({ length: count }, (_, at) => recordOf(at + 1));
  for (let at = 0; at < count; at += 999) await store.write((tx) => tx.requests.append(all.slice(at, at + 999)));
});
afterAll(() => store?.close());

/** The numbers of the records that are found, all pages together. */
const find = async (filter: RequestFilter, limit = 1000): Promise<number[]> => {
  const found: number[] = [];
  let after: string | undefined;
  for (;;) {
    const { items, next } = await store.read.requests.search(everyTenant, filter, { after, limit });
    expect(items.length).toBeLessThanOrEqual(limit);
    found.push(...items.map(({ requestId }) => Number(requestId.slice('request-'.length))));
    if (next === null) return found;
    after = next;
  }
};
const expected = (holds: (record: XksRequestRecord, at: number) => boolean): number[] =>
  Array.from({ length: count }, (_, at) => count - at).filter((at) => holds(recordOf(at), at));

describe('a search in the request log', () => {
  test('returns what was written, member by member', async () => {
    const { items } = await store.read.requests.search(everyTenant, { requestId: 'request-5000' }, { limit: 1 });
    expect(items).toEqual([{ ...recordOf(5000), sequence: 5000 }]);
  });

  test.each<[string, RequestFilter, (record: XksRequestRecord, at: number) => boolean]>([
    ['nothing: all of it', {}, () => true],
    ['an endpoint', { endpointId: 'b' }, ({ endpointId }) => endpointId === 'b'],
    ['no endpoint', { endpointId: null }, ({ endpointId }) => endpointId === null],
    [
      'an operation of an endpoint',
      { endpointId: 'a', operation: 'encrypt' },
      (r) => r.endpointId === 'a' && r.operation === 'encrypt',
    ],
    ['refusals', { result: 'refused' }, ({ errorName }) => errorName !== null],
    [
      'refusals of an endpoint',
      { endpointId: 'b', result: 'refused' },
      (r) => r.endpointId === 'b' && r.errorName !== null,
    ],
    ['answers', { result: 'answered' }, ({ errorName }) => errorName === null],
    ['valid signatures', { signed: true }, () => true],
    ['requests without a valid signature', { endpointId: 'a', signed: false }, () => false],
    ['a status', { status: 403 }, ({ status }) => status === 403],
    ['an error', { errorName: 'AccessDeniedException' }, ({ errorName }) => errorName !== null],
    ['an error in another case', { errorName: 'accessdeniedexception' }, () => false],
    ['a principal', { principal: 'arn:aws:iam::111122223333:user/alice8' }, (_, at) => at === 8],
    [
      'a principal by its beginning, with its case',
      { principal: 'arn:aws:iam::111122223333:user/Alice*' },
      (_, at) => at % 7 === 0,
    ],
    ['a beginning that is not a pattern', { principal: 'arn%*' }, () => false],
    ['any principal', { principal: '*' }, () => true],
    ['a key ARN by its beginning', { kmsKeyArn: 'arn:aws:kms:us-east-1:*' }, () => true],
    ['another key ARN', { kmsKeyArn: 'arn:aws:kms:us-west-1:*' }, () => false],
    ['a source VPC', { awsSourceVpc: 'vpc-1' }, (_, at) => at % 11 === 0],
    ['a VPC endpoint', { awsSourceVpce: 'vpce-1' }, (_, at) => at % 11 === 0],
    ['a VPC endpoint by its beginning', { awsSourceVpce: 'vpce-*' }, () => false],
    ['a service', { kmsViaService: 's3.us-east-1.amazonaws.com' }, (_, at) => at % 2 === 0],
    ['another KMS operation', { kmsOperation: 'Encrypt' }, () => false],
    ['an external key id in another case', { externalKeyId: 'KEY' }, () => false],
    ['a request of the cloud', { kmsRequestId: 'kms-4321' }, (_, at) => at === 4321],
    ['the oldest request of the cloud', { kmsRequestId: 'kms-1' }, (_, at) => at === 1],
    ['the id of a request', { requestId: 'request-4321' }, (_, at) => at === 4321],
    ['the id of a request at another endpoint', { endpointId: 'b', requestId: 'request-4321' }, () => false],
    ['a request of the cloud at another endpoint', { endpointId: 'b', kmsRequestId: 'kms-4321' }, () => false],
    ['a time on', { from: 1_000_000 + 12_000 }, (_, at) => at >= 12_000],
    ['a time before', { to: 1_000_000 + 50 }, (_, at) => at < 50],
    [
      'a span of refusals',
      { from: 1_003_000, to: 1_003_100, result: 'refused' },
      (_, at) => at >= 3000 && at < 3100 && at % 5 === 0,
    ],
    ['the future', { from: 9_000_000 }, () => false],
    ['the time before the log', { to: 1 }, () => false],
  ])('for %s', async (_, filter, holds) => {
    expect(await find(filter)).toEqual(expected(holds));
  });

  test('continues where the previous page ended, whatever their length', async () => {
    const filter: RequestFilter = { endpointId: 'a', result: 'refused', operation: 'decrypt' };
    expect(await find(filter, 7)).toEqual(await find(filter));
    expect(await find({ kmsRequestId: 'kms-77' }, 1)).toEqual([77]);
  });
});

describe('pruning the request log', () => {
  const left = async () => {
    const found = await find({});
    return [found.length, found.at(-1)];
  };

  test('reads at most the given number in one step', async () => {
    const pruneOld = async () => {
      const { removed, through } = await store.write((tx) => tx.requests.pruneOld(1_000_000 + 101, 60));
      return { removed: Object.fromEntries(removed), through };
    };
    expect(await pruneOld()).toEqual({ removed: { a: 40, b: 20 }, through: 60 });
    expect(await pruneOld()).toEqual({ removed: { a: 26, b: 13, unsigned: 1 }, through: 100 });
    expect(await pruneOld()).toEqual({ removed: {}, through: 0 });
    expect(await left()).toEqual([count - 100, 101]);
    expect(await store.read.requests.oldest()).toBe(1_000_000 + 101);
  });

  test('takes the oldest of one space, and leaves the others', async () => {
    const prune = (after: number, most: number) => store.write((tx) => tx.requests.pruneSpace('b', after, most, 100));
    expect(await prune(0, 10)).toMatchObject({ removed: 10, through: 129, seen: 129 });
    expect(await prune(129, 1000)).toMatchObject({ removed: 100, through: 432, seen: 432 });
    expect((await find({ endpointId: 'b' })).at(-1)).toBe(435);
    expect((await left())[1]).toBe(101);
    const { counts } = await store.read.requests.countBySpace(0, 1000);
    const stillThere = Array.from({ length: count }, (_, at) => at + 1).filter(
      (at) => at > 100 && (recordOf(at).endpointId !== 'b' || at > 432),
    );
    const numberOf = (id: string | null): number =>
      stillThere.slice(0, 1000).filter((at) => recordOf(at).endpointId === id).length;
    expect(Object.fromEntries(counts)).toEqual({ a: numberOf('a'), b: numberOf('b'), unsigned: numberOf(null) });
  });

  test('a search passes over what is gone', async () => {
    let seen: number | null = 0;
    while (seen !== null) {
      const after: number = seen;
      const found = await store.write((tx) => tx.requests.pruneSpace('a', after, 500, 500));
      seen = found.seen;
    }
    expect(await find({ endpointId: 'a' })).toEqual([]);
    expect((await find({ kmsRequestId: 'kms-501' })).length).toBe(1);
    expect((await find({ principal: 'arn:aws:iam::111122223333:user/alice501' })).length).toBe(1);
  });

  test('what could not be recorded is added up by the minute, and taken once', async () => {
    await store.write((tx) => tx.requests.addDropped([{ minute: 7, signed: 2, unsigned: 0 }]));
    await store.write((tx) =>
      tx.requests.addDropped([
        { minute: 7, signed: 1, unsigned: 5 },
        { minute: 8, signed: 1, unsigned: 0 },
      ]),
    );
    expect(await store.read.requests.dropped(7)).toEqual([{ minute: 7, signed: 3, unsigned: 5 }]);
    expect((await store.write((tx) => tx.requests.takeDropped(8))).length).toBe(2);
    expect(await store.write((tx) => tx.requests.takeDropped(8))).toEqual([]);
  });
});

describe('the statements of a search in SQLite', () => {
  // No statement may read the whole log, or sort more than its results.
  const plan = (
    build: (statements: ReturnType<typeof requestStatements>) => { compile(): { sql: string } },
  ): string => {
    const database = new DatabaseSync(join(folder, 'dke.db'), { readOnly: true });
    const db = new Kysely<Schema>({ dialect: new SqliteDialect({ database: database as never }) });
    try {
      const { sql } = build(requestStatements(db)).compile();
      const values = Array.from(sql.matchAll(/\?/g), () => 1);
      return database
        .prepare(`explain query plan ${sql}`)
        .all(...values)
        .map(({ detail }) => String(detail))
        .join('; ');
    } finally {
      database.close();
    }
  };

  const byPrimaryKey = /^SEARCH request_log USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)$/;
  const byEndpoint =
    /^SEARCH request_log USING INDEX request_log_by_endpoint \(endpoint_id=\? AND sequence>\? AND sequence<\?\)$/;
  const byRefusal =
    /^SEARCH request_log USING INDEX request_log_of_refusals \(endpoint_id=\? AND sequence>\? AND sequence<\?\)$/;
  test.each<[string, 'index' | 'look', RequestFilter, RegExp]>([
    ['everything', 'index', {}, byPrimaryKey],
    ['one endpoint', 'index', { endpointId: 'a' }, byEndpoint],
    ['no endpoint', 'index', { endpointId: null }, byEndpoint],
    ['refusals of one endpoint', 'index', { endpointId: 'a', result: 'refused' }, byRefusal],
    ['an error of one endpoint', 'index', { endpointId: 'a', errorName: 'x' }, byRefusal],
    ['an operation of a busy endpoint', 'look', { endpointId: 'a', operation: 'x' }, byPrimaryKey],
    ['an operation of a silent endpoint', 'index', { endpointId: 'a', operation: 'x' }, byEndpoint],
    ['a principal', 'look', { principal: 'x*' }, byPrimaryKey],
    ['a principal within a time', 'look', { principal: 'x*', from: 1, to: 2 }, byPrimaryKey],
  ])('for %s (%s) use an index, and need no sorting', (_, way, filter, wanted) => {
    expect(plan((statements) => statements.within({ ...filter, tenant: everyTenant }, way, 1, 2, 3))).toMatch(wanted);
  });

  test('for a request look it up in each block, then by its sequence', () => {
    expect(plan((statements) => statements.withRequestId('kms_request_id', 'x', [3, 2, 1]))).toBe(
      'SEARCH request_log USING COVERING INDEX request_log_by_kms_request (<expr>=? AND kms_request_id=?)',
    );
    expect(plan((statements) => statements.withRequestId('request_id', 'x', [3, 2, 1]))).toBe(
      'SEARCH request_log USING COVERING INDEX request_log_by_request (<expr>=? AND request_id=?)',
    );
    const filter = { tenant: everyTenant, endpointId: 'a', kmsRequestId: 'x', from: 1 } as const;
    expect(plan((statements) => statements.named(filter, [1, 2], 0, 9))).toBe(
      'SEARCH request_log USING INTEGER PRIMARY KEY (rowid=?)',
    );
  });

  test('for a tenant read the records in their order', () => {
    const within = plan((statements) => statements.within({ tenant: 'x' }, 'look', 1, 2, 3));
    expect(within).toMatch(/^SEARCH request_log USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)/);
    expect(within).not.toContain('TEMP B-TREE FOR ORDER BY');
  });

  test('for a minute look it up by time, in its order', () => {
    expect(plan((statements) => statements.inTime({ from: 1, to: 2, through: 3 }, 1, -1, 100))).toBe(
      'SEARCH request_log USING INDEX request_log_by_time (at>? AND at<?)',
    );
  });

  test('for what came late read the new records only', () => {
    expect(plan((statements) => statements.cameLate(1, 2, 3))).toMatch(byPrimaryKey);
  });

  test('for the oldest of a space read its own records', () => {
    expect(plan((statements) => statements.ofSpace('unsigned', 1, 10))).toMatch(/USING INDEX request_log_unsigned/);
    expect(plan((statements) => statements.ofSpace('a', 1, 10))).toMatch(
      /USING INDEX request_log_by_endpoint \(endpoint_id=\? AND sequence>\?\)/,
    );
  });

  test('for a time look it up', () => {
    expect(plan((statements) => statements.since(1))).toBe(
      'SEARCH request_log USING COVERING INDEX request_log_by_time (at>?)',
    );
  });
});
