// The request log's hashes by the minute: when each is written, and that a record that was changed,
// removed, added or moved is found, by the service itself and offline from two exports.
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openPostgresStore, openStore } from '../../../server/adapters/store/store.ts';
import {
  type DroppedRequests,
  entryLine,
  hashEntry,
  type RequestEntry,
  type RequestLogVerdict,
} from '../../../server/base/request-minutes.ts';
import { toRfc3339 } from '../../../server/base/time.ts';
import { gatherMinutes, verifyRequestLog } from '../../../server/cli/verify/request-export.ts';
import { everyTenant } from '../../../server/domain/tenant.ts';
import { representRequest } from '../../../server/fronts/api/represent.ts';
import { createRequestMinutes, verifyRequests } from '../../../server/operations/requests/request-minutes.ts';
import { createRemovals } from '../../../server/operations/requests/request-retention.ts';
import type { Store } from '../../../server/ports/store.ts';
import type { XksRequestRecord } from '../../../server/ports/xks-directory.ts';
import { folderOfTest } from '../../support/folders.ts';
import { startPostgres } from '../../support/postgresql.ts';
import { quietLog } from '../../support/quiet-log.ts';

const minute = 60_000;
/** 2026-03-01T09:30:00Z. */
const start = Date.UTC(2026, 2, 1, 9, 30);
let now = start;
const clock = { now: () => now, monotonic: () => now };
const warnings: unknown[] = [];
const log = {
  ...quietLog,
  warn: (_: string, fields: unknown) => void warnings.push(fields),
  error: () => undefined,
};

let folder: string;
let store: Store;
beforeEach(async () => {
  now = start;
  warnings.length = 0;
  folder = folderOfTest();
  store = await openStore({
    path: join(folder, 'dke.db'),
    clock,
    authenticateRow: () => '',
    onFatal: (error) => {
      throw error;
    },
  });
});
afterEach(() => store.close());

const record = (at: number): XksRequestRecord => ({
  at,
  requestId: `request-${at}`,
  endpointId: 'e',
  operation: 'encrypt',
  kmsOperation: 'Encrypt "€"',
  kmsRequestId: `kms-${at}`,
  principal: 'arn:aws:iam::111122223333:user/\u2028Ünal',
  kmsKeyArn: null,
  awsSourceVpc: at % 2 === 0 ? 'vpc-1' : null,
  awsSourceVpce: null,
  kmsViaService: 's3.eu-central-1.amazonaws.com',
  externalKeyId: 'key',
  credentialId: 'credential',
  status: 200,
  errorName: null,
  durationMs: at / 7,
  phases: { readMs: 1e-9, authMs: 0.5, cryptoMs: 12 },
  reason: null,
  peer: '192.0.2.1',
});
const write = (...times: readonly number[]) => store.write((tx) => tx.requests.append(times.map(record)));
const open = () => createRequestMinutes({ store, clock, log });
const recorded = async () =>
  (await store.read.audit.list(everyTenant, { kind: 'request-log.minute', order: 'oldest' }, { limit: 1000 })).map(
    ({ details }) => details,
  );
type Part = { readonly space: string; readonly count: number; readonly first: number; readonly last: number } & {
  readonly hash: string;
};
const partsOf = (details: { readonly parts?: unknown }): readonly Part[] => details.parts as readonly Part[];
const short = async () =>
  (await recorded()).flatMap((details) =>
    partsOf(details).map(({ count, first, last }) => [
      String(details.minute).slice(11, 16),
      ...[count, first, last, details.late],
    ]),
  );
const removals = createRemovals((text) => createHash('sha256').update(text).digest('hex'));
const verify = (): Promise<RequestLogVerdict> => verifyRequests(store.read, { from: start, to: start + 100 * minute });

/** Four minutes: three, none, two, one record; hashed. */
const fill = async (): Promise<void> => {
  await write(start + 2, start + 1, start + 59_999, start + 2 * minute, start + 2 * minute + 5, start + 3 * minute);
  now = start + 5 * minute;
  await open().run();
};

describe('a minute', () => {
  test('is hashed once, a grace after its end, and minutes without requests are not', async () => {
    await write(start + 1, start + 59_999, start + 2 * minute);
    const minutes = open();
    now = start + 2 * minute - 1;
    await minutes.run();
    expect(await short()).toEqual([]);
    now = start + 2 * minute;
    await minutes.run();
    await minutes.run();
    expect(await short()).toEqual([['09:30', 2, 1, 2, false]]);
    now = start + 60 * minute;
    await minutes.run();
    await minutes.run();
    expect(await short()).toEqual([
      ['09:30', 2, 1, 2, false],
      ['09:32', 1, 3, 3, false],
    ]);
    expect(warnings).toEqual([]);
  });

  test('without a request writes nothing at all', async () => {
    const minutes = open();
    now = start + 60 * minute;
    await minutes.run();
    expect(await store.read.audit.size()).toBe(0);
    expect(await store.read.settings.get('request-log-minutes')).toBeUndefined();
  });

  test("has the hash that its definition gives: by time, then sequence, SHA-256 of the lines' SHA-256", async () => {
    await fill();
    const { items } = await store.read.requests.search(everyTenant, {}, { limit: 100 });
    const laterMembers = ['awsSourceVpc', 'awsSourceVpce', 'kmsViaService'];
    const sortedJson = (value: unknown): string =>
      typeof value === 'object' && value !== null
        ? `{${Object.entries(value)
            .filter(([name, member]) => member !== null || !laterMembers.includes(name))
            .sort(([a], [b]) => (a < b ? -1 : 1))
            .map(([name, member]) => `${JSON.stringify(name)}:${sortedJson(member)}`)
            .join(',')}}`
        : JSON.stringify(value);
    const rows = items
      .map(representRequest)
      .filter(({ at }) => at.startsWith('2026-03-01T09:30'))
      .sort((a, b) => (a.at === b.at ? a.sequence - b.sequence : a.at < b.at ? -1 : 1));
    expect(rows.map(({ sequence }) => sequence)).toEqual([2, 1, 3]);
    const whole = createHash('sha256');
    for (const row of rows) whole.update(createHash('sha256').update(sortedJson(row)).digest());
    expect((await recorded()).flatMap(partsOf)[0]?.hash).toBe(whole.digest('hex'));
    for (const row of rows) expect(hashEntry(row)).toEqual(createHash('sha256').update(sortedJson(row)).digest());
  });

  test('is hashed once by two nodes that check at the same time', async () => {
    await write(...Array.from({ length: 500 }, (_, at) => start + at));
    now = start + 2 * minute;
    await Promise.all([open().run(), open().run(), open().run()]);
    await open().run();
    expect(await short()).toEqual([['09:30', 500, 1, 500, false]]);
  });

  test('gets a separate part for records that arrive later, which are counted', async () => {
    await fill();
    const minutes = open();
    await write(start + 7, start + 5 * minute, start + 3 * minute + 1, start + 3);
    await minutes.run();
    expect((await short()).slice(3)).toEqual([]);
    now = start + 7 * minute;
    await minutes.run();
    expect((await short()).slice(3)).toEqual([
      ['09:30', 2, 7, 10, true],
      ['09:33', 1, 9, 9, true],
      ['09:35', 1, 8, 8, false],
    ]);
    expect(warnings).toEqual([{ count: 3, minutes: 2 }]);
    expect(await verify()).toEqual({
      requests: 10,
      minutes: 4,
      late: 3,
      pruned: 0,
      dropped: 0,
      droppedUnsigned: 0,
      open: 0,
      findings: [],
    });
  });

  test('in which there was nothing when it was checked gets late records too', async () => {
    await fill();
    const minutes = open();
    now = start + 20 * minute;
    await minutes.run();
    await write(start + 10 * minute, now);
    now += 2 * minute;
    await minutes.run();
    expect((await short()).slice(3)).toEqual([
      ['09:40', 1, 7, 7, true],
      ['09:50', 1, 8, 8, false],
    ]);
  });

  test('is hashed by the next start when a run was cut short, and none twice', async () => {
    await write(...Array.from({ length: 130 }, (_, at) => start + at * minute));
    now = start + 200 * minute;
    const first = open();
    const run = first.run();
    const until = async (): Promise<void> => {
      while ((await store.read.audit.size()) < 50) await new Promise((resolve) => setImmediate(resolve));
    };
    await until();
    first.stop();
    await run;
    await write(start + 1);
    await open().run();
    now += 2 * minute;
    await open().run();
    const found = await short();
    expect(found.filter(([, , , , late]) => late === false).length).toBe(130);
    expect(found.filter(([, , , , late]) => late === true)).toEqual([['09:30', 1, 131, 131, true]]);
    expect((await verifyRequests(store.read, { from: start, to: now })).findings).toEqual([]);
  });
});

test('a comparison of a long time has few minutes in memory at once, and answers as one of the whole', async () => {
  const minutes = 2_500;
  for (let first = 0; first < minutes; first += 100)
    await write(...Array.from({ length: 100 }, (_, at) => start + (first + at) * minute));
  now = start + (minutes + 2) * minute;
  await open().run();
  await store.write((tx) => tx.requests.addDropped([{ minute: start / minute + 3, signed: 2, unsigned: 0 }]));
  await write(start + 5);
  now += 2 * minute;
  await open().run();
  const spans: number[] = [];
  const read: Store['read'] = {
    ...store.read,
    requests: {
      ...store.read.requests,
      hashesInTime: (span, ...rest) => {
        spans.push((span.to - span.from) / minute);
        return store.read.requests.hashesInTime(span, ...rest);
      },
    },
  };
  const verdict = await verifyRequests(read, { from: start, to: start + minutes * minute });
  expect(verdict).toEqual({
    requests: minutes + 1,
    minutes,
    late: 1,
    pruned: 0,
    dropped: 2,
    droppedUnsigned: 0,
    open: 0,
    findings: [expect.stringMatching(/09:33Z: 2 signed/)],
  });
  expect(Math.max(...spans)).toBeLessThan(1_100);
  expect(new Set(spans).size).toBeGreaterThan(1);
});

describe('a person who can write to the database', () => {
  const tamper = (sql: string): void => {
    const database = new DatabaseSync(join(folder, 'dke.db'));
    database.exec(sql);
    database.close();
  };
  const audit = async (): Promise<Readonly<Record<string, unknown>>[]> =>
    (await store.read.audit.list(everyTenant, { order: 'oldest' }, { limit: 1000 })).map((event) => ({ ...event }));
  const offline = async (): Promise<RequestLogVerdict> => {
    const gathered = gatherMinutes();
    for (const event of await audit()) gathered.add(event);
    const { items } = await store.read.requests.search(everyTenant, {}, { limit: 1000 });
    async function* lines(): AsyncGenerator<string> {
      for (const item of items) yield JSON.stringify(representRequest(item));
    }
    return verifyRequestLog(lines(), gathered.end());
  };
  const columns =
    'at, endpoint_id, operation, status, error_name, request_id, kms_operation, kms_request_id, principal, kms_key_arn, aws_source_vpc, aws_source_vpce, kms_via_service, external_key_id, credential_id, duration_ms, read_ms, auth_ms, crypto_ms, reason, peer';

  test.each([
    [
      'changes the principal',
      `update request_log set principal = 'mallory' where sequence = 2`,
      /09:30Z: records 1 to 3 are not as/,
    ],
    [
      'changes the VPC',
      `update request_log set aws_source_vpc = 'vpc-2' where sequence = 2`,
      /09:30Z: records 1 to 3 are not as/,
    ],
    [
      'removes the service',
      'update request_log set kms_via_service = null where sequence = 2',
      /09:30Z: records 1 to 3 are not as/,
    ],
    [
      'changes a duration by little',
      'update request_log set duration_ms = duration_ms * 1.0000001 where sequence = 4',
      /09:32Z: records 4 to 5 are not as/,
    ],
    [
      'clears a refusal',
      `update request_log set error_name = 'x' where sequence = 6`,
      /09:33Z: records 6 to 6 are not as/,
    ],
    [
      'removes one',
      'delete from request_log where sequence = 2',
      /09:30Z: of records 1 to 3, 3 were hashed and 2 are there: some were removed/,
    ],
    [
      'removes a minute',
      'delete from request_log where sequence > 3 and sequence < 6',
      /09:32Z: of records 4 to 5, 2 were hashed and 0 are there/,
    ],
    ['removes the oldest', 'delete from request_log where sequence <= 3', /09:30Z: .* 0 are there/],
    [
      'moves one to another time',
      `update request_log set at = at + ${minute} where sequence = 6`,
      /09:33Z: .*0 are there/,
    ],
    [
      'swaps two',
      'update request_log set sequence = 99 where sequence = 4; update request_log set sequence = 4 where sequence = 5; update request_log set sequence = 5 where sequence = 99',
      /09:32Z: records 4 to 5 are not as/,
    ],
    [
      'adds one to a hashed minute',
      `insert into request_log (sequence, ${columns}) select 0, ${columns} from request_log where sequence = 1`,
      /record 0 is not one of those that were hashed: it was added/,
    ],
    [
      'adds one to a quiet minute',
      `insert into request_log (sequence, ${columns}) select -1, ${start + minute}, ${columns.slice(4)} from request_log where sequence = 1`,
      /09:31Z: record -1 is not one of those/,
    ],
    [
      'puts one in the place of another',
      `update request_log set request_id = 'other', kms_request_id = 'other' where sequence = 3`,
      /09:30Z: records 1 to 3 are not as/,
    ],
  ])('and %s is found, online and offline', async (_, sql, finding) => {
    await fill();
    expect((await verify()).findings).toEqual([]);
    expect((await offline()).findings).toEqual([]);
    tamper(sql);
    expect((await verify()).findings[0]).toMatch(finding);
    expect((await offline()).findings[0]).toMatch(finding);
  });

  test('and adds one to a minute with the next number is shown as late', async () => {
    await fill();
    tamper(`insert into request_log (${columns}) select ${columns} from request_log where sequence = 1`);
    expect(await verify()).toMatchObject({ open: 1, findings: [] });
    await write(now);
    now += 2 * minute;
    await open().run();
    expect(await verify()).toMatchObject({ late: 1, open: 0, findings: [] });
  });
});

describe('a space', () => {
  const unsigned = (at: number): XksRequestRecord => ({ ...record(at), credentialId: null });
  const other = (at: number): XksRequestRecord => ({ ...record(at), endpointId: 'other' });

  test('has a hash of its own, and what retention leaves of a minute is still compared', async () => {
    await store.write((tx) =>
      tx.requests.append([
        record(start),
        unsigned(start + 1),
        other(start + 2),
        unsigned(start + 3),
        record(start + 4),
      ]),
    );
    now = start + 2 * minute;
    await open().run();
    expect((await recorded()).flatMap(partsOf)).toMatchObject([
      { space: 'e', count: 2, first: 1, last: 5 },
      { space: 'other', count: 1, first: 3, last: 3 },
      { space: 'unsigned', count: 2, first: 2, last: 4 },
    ]);
    expect((await verify()).findings).toEqual([]);
    await store.write(async (tx) => {
      const { removed, through } = await tx.requests.pruneSpace('unsigned', 0, 2, 100);
      await removals.note(tx, 'unsigned', { count: removed, through });
      await removals.tell(tx);
    });
    expect(await verify()).toMatchObject({ requests: 3, pruned: 2, findings: [] });
    // Nothing else of the minute may be missing.
    await store.write((tx) => tx.requests.pruneSpace('other', 0, 1, 100));
    expect((await verify()).findings).toEqual([
      expect.stringMatching(/09:30Z: of records 3 to 3, 1 were hashed and 0/),
    ]);
  });

  test('that is changed in a record is found', async () => {
    await store.write((tx) => tx.requests.append([record(start), unsigned(start + 1), record(start + 2)]));
    now = start + 2 * minute;
    await open().run();
    const database = new DatabaseSync(join(folder, 'dke.db'));
    database.exec('update request_log set credential_id = null where sequence = 3');
    database.close();
    expect((await verify()).findings).toEqual([
      expect.stringMatching(/record 3 is not one of those that were hashed/),
      expect.stringMatching(/of records 1 to 3, 2 were hashed and 1 are there/),
    ]);
  });

  test('is not named by an earlier version, whose minutes are compared all the same', async () => {
    await fill();
    const flat = (await recorded()).map(({ minute: of, late, parts }) => ({
      kind: 'request-log.minute',
      details: { minute: of, late, ...(parts as readonly object[])[0], space: undefined },
    }));
    const gathered = gatherMinutes();
    for (const event of flat) gathered.add(event);
    const { items } = await store.read.requests.search(everyTenant, {}, { limit: 1000 });
    async function* lines(): AsyncGenerator<string> {
      for (const item of items) yield JSON.stringify(representRequest(item));
    }
    expect(await verifyRequestLog(lines(), gathered.end())).toMatchObject({ requests: 6, minutes: 3, findings: [] });
  });
});

describe('requests without a record', () => {
  const lose = (...dropped: readonly DroppedRequests[]) => store.write((tx) => tx.requests.addDropped(dropped));
  const minuteAt = start / minute;
  const listed = async () =>
    (await recorded()).map(({ minute: of, count, late, dropped, droppedUnsigned }) => [
      String(of).slice(11, 16),
      ...[count, late, dropped, droppedUnsigned],
    ]);

  test('are reported with their minute, also if it has nothing else, and if it was reported before', async () => {
    await write(start, start + minute);
    await lose({ minute: minuteAt, signed: 3, unsigned: 1 }, { minute: minuteAt + 2, signed: 0, unsigned: 9 });
    now = start + 2 * minute;
    await open().run();
    expect(await listed()).toEqual([['09:30', 1, false, 3, 1]]);
    now = start + 5 * minute;
    await open().run();
    await open().run();
    await lose({ minute: minuteAt, signed: 1, unsigned: 0 });
    await open().run();
    expect((await listed()).slice(1)).toEqual([
      ['09:31', 1, false, 0, 0],
      ['09:32', 0, false, 0, 9],
    ]);
    now = start + 6 * minute;
    await open().run();
    expect((await listed()).slice(3)).toEqual([['09:30', 0, true, 1, 0]]);
    expect(await verify()).toMatchObject({
      requests: 2,
      dropped: 4,
      droppedUnsigned: 10,
      findings: [expect.stringMatching(/09:30Z: 4 signed/)],
    });
    expect(await verifyRequests(store.read, { from: start + minute, to: now })).toMatchObject({
      dropped: 0,
      droppedUnsigned: 9,
      findings: [],
    });
  });
});

test('what retention drops is said, and its hash stays', async () => {
  await fill();
  await store.write(async (tx) => {
    const { removed, through } = await tx.requests.pruneOld(start + 2 * minute, 100);
    await removals.note(tx, '', { count: removed.get('e') ?? 0, through });
    await removals.tell(tx);
  });
  expect(await verify()).toEqual({
    requests: 3,
    minutes: 3,
    late: 0,
    pruned: 3,
    dropped: 0,
    droppedUnsigned: 0,
    open: 0,
    findings: [],
  });
  expect((await recorded()).length).toBe(3);
  const [pruned] = await store.read.audit.list(
    everyTenant,
    { kind: 'request-log.pruned', order: 'oldest' },
    { limit: 9 },
  );
  expect(pruned?.details).toEqual({ count: 3, through: 3 });
  // A writer of the database cannot have it said.
  await store.write(async (tx) => {
    await tx.settings.set('request-log-removed', `0 ${JSON.stringify({ '': { count: 1, through: 6 } })}`);
    await removals.tell(tx);
  });
  // What it did not drop must be there.
  await store.write((tx) => tx.requests.pruneOld(start + 3 * minute, 100));
  expect((await verify()).findings).toEqual([
    '2026-03-01T09:32Z: of records 4 to 5, 2 were hashed and 0 are there: some were removed',
  ]);
});

test('minutes that were hashed after the request log was exported may be missing in it; those before may not', async () => {
  await fill();
  const gathered = gatherMinutes();
  const parts = (await recorded()).map((details) => ({ kind: 'request-log.minute', details }));
  const exported = { kind: 'request-log.exported', subjectKind: 'service', details: { format: 'ndjson', filter: {} } };
  for (const event of [...parts.slice(0, 2), exported, ...parts.slice(2)]) gathered.add(event);
  async function* nothing(): AsyncGenerator<string> {}
  const { findings } = await verifyRequestLog(nothing(), gathered.end());
  expect(findings.map((text) => text.slice(11, 17))).toEqual(['09:30Z', '09:32Z']);
  expect(toRfc3339(start)).toBe('2026-03-01T09:30:00.000Z');
});

test('two nodes on PostgreSQL that check at the same time write one record', async () => {
  const postgres = await startPostgres();
  const place = postgres.createDatabase('minutes');
  const onFatal = (error: Error): never => {
    throw error;
  };
  const nodes: Store[] = [];
  try {
    for (let node = 0; node < 2; node++) {
      const opened = await openPostgresStore({
        postgres: { ...place, password: undefined, ca: undefined, readers: 2 },
        clock,
        authenticateRow: () => '',
        onFatal,
      });
      nodes.push(opened);
      await opened.started();
    }
    const [one, two] = nodes as [Store, Store];
    await Promise.all(
      nodes.map((node, at) =>
        node.write((tx) => tx.requests.append(Array.from({ length: 300 }, (_, row) => record(start + 2 * row + at)))),
      ),
    );
    now = start + 3 * minute;
    await Promise.all(nodes.map((node) => createRequestMinutes({ store: node, clock, log }).run()));
    await createRequestMinutes({ store: two, clock, log }).run();
    const found = await one.read.audit.list(everyTenant, { order: 'oldest' }, { limit: 10 });
    expect(found.map(({ kind, details }) => [kind, details.count, partsOf(details)])).toMatchObject([
      ['request-log.minute', 600, [{ space: 'e', count: 600, first: 1, last: 600 }]],
    ]);
    expect((await verifyRequests(two.read, { from: start, to: now })).findings).toEqual([]);
    postgres.run(place.database, `update request_log set duration_ms = duration_ms + 1 where sequence = 77`);
    expect((await verifyRequests(one.read, { from: start, to: now })).findings).toEqual([
      '2026-03-01T09:30Z: records 1 to 600 are not as they were hashed: one was changed',
    ]);
  } finally {
    for (const node of nodes) await node.close();
    await postgres.remove();
  }
});

describe('a line that another version has written', () => {
  /** A line of the first release, in its canonical form, and the hash that its audit log has. */
  const line =
    '{"at":"2026-03-01T09:30:00.125Z","credentialId":"credential","durationMs":1.5,"endpointId":"e","errorName":null,' +
    '"externalKeyId":"key","kmsKeyArn":null,"kmsOperation":"Encrypt","kmsRequestId":"kms-1","operation":"encrypt",' +
    '"peer":"192.0.2.1","phases":{"authMs":0.5,"cryptoMs":0.25,"readMs":0.75},' +
    '"principal":"arn:aws:iam::111122223333:user/a","reason":null,"requestId":"request-1","sequence":1,"status":200}';
  const hash = '94e83b9c934d3950584693b5ab3465b3ac2f925710d02076120aac54587d6d4c';
  const released = JSON.parse(line) as RequestEntry;
  const verifyLines = (lines: readonly string[], expected = hash): Promise<RequestLogVerdict> => {
    const gathered = gatherMinutes();
    const part = { space: 'e', count: 1, first: 1, last: 1, hash: expected };
    gathered.add({
      kind: 'request-log.minute',
      details: { minute: '2026-03-01T09:30:00.000Z', count: 1, late: false, parts: [part] },
    });
    async function* each(): AsyncGenerator<string> {
      yield* lines;
    }
    return verifyRequestLog(each(), gathered.end());
  };

  test('is verified when it is of the first release, as an export and as a sink received it', async () => {
    expect(await verifyLines([line])).toMatchObject({ requests: 1, findings: [] });
    expect(entryLine(released)).toBe(line);
    // What a later service exports of that record, and forwards.
    const later = { ...released, awsSourceVpc: null, awsSourceVpce: null, kmsViaService: null };
    expect(await verifyLines([JSON.stringify(later)])).toMatchObject({ requests: 1, findings: [] });
    expect(await verifyLines([entryLine(later)])).toMatchObject({ requests: 1, findings: [] });
  });

  test('is found when it was changed, also by a member that came later', async () => {
    for (const changed of [{ principal: 'mallory' }, { awsSourceVpc: 'vpc-1' }, { kmsViaService: '' }])
      expect((await verifyLines([JSON.stringify({ ...released, ...changed })])).findings).toEqual([
        expect.stringMatching(/09:30Z: records 1 to 1 are not as/),
      ]);
    const { principal: _, ...cut } = released;
    expect((await verifyLines([JSON.stringify(cut)])).findings[0]).toMatch(/not a line of an export/);
  });

  test('is told apart when it has a member that only a newer version knows', async () => {
    const findings = async (line: object) => (await verifyLines([JSON.stringify(line)])).findings;
    expect((await findings({ ...released, tomorrow: 1 }))[0]).toMatch(/^line 1 has members .* a newer service/);
    // A change is not hidden behind such a member.
    expect(await findings({ ...released, principal: 'mallory', tomorrow: 1 })).toEqual([
      expect.stringMatching(/^line 1 has members/),
      expect.stringMatching(/1 were hashed and 0 are there/),
    ]);
    // A line that no version has written was changed or truncated.
    expect((await verifyLines(['{"tomorrow":1}'])).findings[0]).toMatch(/not a line of an export/);
  });
});
