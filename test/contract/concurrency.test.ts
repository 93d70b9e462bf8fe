// No lost update: every operation that changes something runs concurrently with itself, and with
// every other operation that changes or reads the same thing. The outcome, answers and stored rows
// alike, must be that of a serial order of the two. On PostgreSQL the two run on two nodes. The
// pairs come from the table in test/support/concurrent-operations.ts.
//
// Before the two start, the test takes the database's lock for writers. So both finish their reads
// outside a unit of work before either writes, and a change that depends on such a read is lost
// every time, not now and then.
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ServiceError } from '../../server/base/service-error.ts';
import { apiRoutes } from '../../server/contract/api/index.ts';
import type { RouteGroup } from '../../server/contract/api/row.ts';
import { tdeRoutes } from '../../server/contract/tde.ts';
import { acrossTenants, serviceActor } from '../../server/domain/actor.ts';
import { ApprovalNeeded } from '../../server/domain/approval.ts';
import { makeAdversaries, prepareFiles } from '../support/adversaries.ts';
import {
  apiOperations,
  type Call,
  fileOperations,
  governedOperations,
  keepFiles,
  keepPlatformToken,
  type LeftOut,
  type Row,
  readingOperations,
  requestOf,
  tdeOperations,
  thingsOf,
} from '../support/concurrent-operations.ts';
import { makeWorld, type TestNode, type World } from '../support/concurrent-worlds.ts';
import { openTestService } from '../support/open-service.ts';
import { listenFor } from '../support/shared.ts';
import { askUnlocked, freshDatabase, onPostgresql, placeOf, withStored } from '../support/test-store.ts';
import { sizeOf } from '../support/tiers.ts';

interface Operation {
  readonly name: string;
  readonly row: Row;
  readonly call: Call;
}

type Table = Readonly<Record<string, Readonly<Record<string, Row | LeftOut | undefined>> | undefined>>;
const changing = Object.entries(apiRoutes).flatMap(([group, rows]) =>
  Object.entries(rows as RouteGroup).flatMap(([name, route]) =>
    route.method === 'get' ? [] : [{ name: `${group}.${name}`, route, row: (apiOperations as Table)[group]?.[name] }],
  ),
);
const isLeftOut = (row: Row | LeftOut): row is LeftOut => 'leftOut' in row;
const operations: readonly Operation[] = [
  ...changing.flatMap(({ name, route, row }) =>
    row === undefined || isLeftOut(row) ? [] : [{ name, row, call: row.call ?? requestOf(route, row) }],
  ),
  ...Object.entries(tdeOperations).flatMap(([name, row]) =>
    isLeftOut(row) || row.call === undefined ? [] : [{ name: `tde.${name}`, row, call: row.call }],
  ),
  ...Object.entries({ ...readingOperations, ...governedOperations, ...fileOperations }).flatMap(([name, row]) =>
    row.call === undefined ? [] : [{ name, row, call: row.call }],
  ),
];

const meet = (one: Row, other: Row): boolean =>
  one.changes.some((each) => other.changes.includes(each) || other.reads?.includes(each) === true);
/**
 * A purge deletes the tenant first: a restore between its two steps is that of a serial order, of
 * three.
 */
const isInSteps = (one: Operation, other: Operation): boolean =>
  one.name === 'tenants.restore' && other.name === 'tenants.purge';
const pairs = operations.flatMap((one, at) =>
  operations
    .slice(at)
    .filter((other) => !isInSteps(one, other) && (meet(one.row, other.row) || meet(other.row, one.row)))
    .map((other) => [one, other] as const),
);
/** Pairs that once lost a change: they run every time. */
const lostOnce: ReadonlySet<string> = new Set([
  'masterKeys.destroy tde.updateObject',
  'snapshots.delete snapshots.verify',
  'users.disable session.secondFactor',
  'users.endSessions profile.changePassword',
  'users.endSessions session.secondFactor',
  'users.resetPassword profile.createToken',
]);
/**
 * True when an adversary brings a file: each Nth of these pairs runs, in the long tier all of them.
 */
const isOfFile = (one: Operation, other: Operation): boolean =>
  one.name in fileOperations || other.name in fileOperations;
const isLostOnce = (one: Operation, other: Operation): boolean =>
  lostOnce.has(`${one.name} ${other.name}`) || lostOnce.has(`${other.name} ${one.name}`);
/**
 * In addition each Nth, other ones on each store; on the embedded database each operation also runs
 * with itself.
 */
const each = sizeOf('concurrent pairs');
const chosen = pairs.filter(
  ([one, other], at) =>
    isLostOnce(one, other) ||
    (isOfFile(one, other) && at % sizeOf('pairs with files') === 0) ||
    at % each === (onPostgresql ? Math.floor(each / 2) : 0) ||
    (one === other && !onPostgresql),
);

let nodes: readonly [TestNode, TestNode];
const ends: (() => Promise<void>)[] = [];

const listen = async (opened: TestNode['opened']): Promise<TestNode> => {
  const { base, close } = await listenFor(opened);
  ends.unshift(async () => close());
  return { opened, base };
};

beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-concurrency-'));
  const shared = join(folder, 'snapshots');
  mkdirSync(shared, { mode: 0o700 });
  const adversaries = makeAdversaries();
  const common = `[erasure]\ngather_ms = 600000\n[memory]\nallow_unlocked = true\n[snapshots]\nrestore_second_person = false\n${adversaries.signers}`;
  const storeOf = (at: string): string => {
    if (!onPostgresql) return '';
    const { host, database } = placeOf(join(folder, at));
    return `[store]\ntype = "postgresql"\nhost = "${host}"\ndatabase = "${database}"\nreaders = 3\n`;
  };
  const tomlOf = (name: string, database: string, directory = shared): string =>
    `${common}directory = "${directory}"\n[node]\nname = "${name}"\n${storeOf(database)}`;
  const open = async (name: string) => {
    const own = join(folder, name);
    mkdirSync(join(own, 'dke-data'), { recursive: true, mode: 0o700 });
    if (name === 'two') copyFileSync(join(folder, 'one/dke-data/root.key'), join(own, 'dke-data/root.key'));
    const opened = await openTestService({ folder: own, toml: tomlOf(name, 'one') });
    ends.unshift(() => opened.stop());
    return opened;
  };
  if (onPostgresql) await freshDatabase(join(folder, 'one'));
  const first = await open('one');
  const files = await prepareFiles(first, adversaries, join(folder, 'old'), {
    toml: tomlOf('one', 'one'),
    ofOld: tomlOf('one', 'old', join(folder, 'old', 'snapshots')),
  });
  keepFiles(adversaries, files);
  const one = await listen(first);
  nodes = [one, onPostgresql ? await listen(await open('two')) : one];
  ends.push(async () => {
    adversaries.end();
    rmSync(folder, { recursive: true, force: true });
  });
  const { tokens, tenants } = one.opened.operations;
  const { token } = await tokens.create(
    acrossTenants(serviceActor('test'), (await tenants.default()).id),
    'the service',
    { name: 'platform', grants: [{ role: 'administrator', scope: null, tenantId: null }] },
  );
  for (const { opened } of nodes) keepPlatformToken(opened, token);
});
afterAll(async () => {
  for (const end of ends) await end();
});

const tables: Readonly<Record<string, string>> = {
  tenants: 'id = ?',
  ...Object.fromEntries(
    [
      ...['vaults', 'tde_groups', 'tde_applications', 'keys', 'tde_objects', 'endpoints', 'external_key_stores'],
      ...[
        'approvals',
        'snapshots',
        'outside_copies',
        'runbook_runs',
        'users',
        'sessions',
        'api_tokens',
        'notifications',
      ],
    ].map((table) => [table, 'tenant_id = ?']),
  ),
  access_guids: 'application_id in (select id from tde_applications where tenant_id = ?)',
  key_versions: 'key_id in (select id from keys where tenant_id = ?)',
  endpoint_credentials: 'endpoint_id in (select id from endpoints where tenant_id = ?)',
  key_records: 'record is not null and tenant_id = ?',
  user_factors: 'user_id in (select id from users where tenant_id = ?)',
  runbook_ticks: 'run_id in (select id from runbook_runs where tenant_id = ?)',
};
/**
 * Codes, secrets and values that are sealed again each time; marks of use; and the service's own
 * changes.
 */
const ignoredColumns =
  /^(row_mac|row_version|first_used_at|last_used_at|used_at|last_sign_in_at|hash|password|invitation_hash|data|content|check_value|public_key|record|epoch|handle|connection|looked_at|access_key_id|prefix|peer|size|audit_size|state_size|counts|signer|unrecoverable_at)$/;
/** Columns of notifications that depend on the clock. */
const byTheClock = /^(stage|severity|harm_at|details|raised_at|resolved_at)$/;
const byItself: ReadonlySet<string> = new Set([
  ...['instance.first-used', 'application.used', 'authentication.failed', 'key.unrecoverable', 'tenant.unrecoverable'],
  // Kinds that are also recorded when a request is refused before its unit of work.
  ...['key.denied', 'sign-in.refused', 'external-key-store.state-changed'],
  // Recorded when there is a count to remove, and a running sign-in is counted.
  'user.unlocked',
]);

/** The stored rows of the world, with names in place of ids and times. */
const stateOf = async (folder: string, { tenantId, ids, kept }: World): Promise<readonly string[]> =>
  withStored(folder, async ({ query }) => {
    const names = new Map(Object.entries(ids).map(([thing, id]) => [id, thing]));
    const plain = (text: string): string =>
      text
        .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) =>
          id === tenantId ? 'tenant' : (names.get(id) ?? 'id'),
        )
        .replaceAll(/[0-9a-f]{64}/g, 'digest')
        .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z|\b1\d{12}\b/g, 'time')
        .replaceAll(/[A-Z2-7]{24}/g, 'access key id')
        .replaceAll(/w\d+x/g, 'w')
        // The step of a one-time password depends on the clock.
        .replaceAll(/\["counter",(\d+)\]/g, (_, step) =>
          Number(step) > (kept.firstStep ?? 0) ? 'used again' : 'used once',
        );
    const state: string[] = [];
    for (const [table, where] of Object.entries(tables))
      for (const row of await query(`select * from ${table} where ${where}`, tenantId)) {
        // Others are raised by the clock, once a minute.
        if (table === 'notifications' && !names.has(String(row.id))) continue;
        state.push(
          plain(
            `${table} ${JSON.stringify(
              Object.entries(row).filter(
                ([column]) => !ignoredColumns.test(column) && (table !== 'notifications' || !byTheClock.test(column)),
              ),
            )}`,
          ),
        );
      }
    for (const { kind } of await query('select kind from audit_events where tenant_id = ?', tenantId))
      if (!byItself.has(String(kind))) state.push(`audited ${String(kind)}`);
    return state.sort();
  });

/**
 * Starts `begin` while the test has the writer's lock; releases the lock when its reads are done.
 */
const whileWritersWait = async <T>(begin: () => Promise<T>): Promise<T> => {
  const folder = nodes[0].opened.folder;
  /**
   * Lets both reach their unit of work. When this is too short the test finds less; it never fails
   * for it.
   */
  const meanwhile = async (): Promise<void> => {
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  if (onPostgresql) {
    const client = new pg.Client(placeOf(folder));
    await client.connect();
    try {
      await client.query('select pg_advisory_lock(1145783553)');
      const running = begin();
      running.catch(() => undefined);
      // Reads go to another process: each answered query gives them time.
      for (let asked = 0; asked < 5; asked += 1) {
        await client.query('select count(*) from pg_locks where not granted');
        await meanwhile();
      }
      await client.query('select pg_advisory_unlock_all()');
      return await running;
    } finally {
      await client.end();
    }
  }
  const database = new DatabaseSync(join(folder, 'dke-data/dke.db'));
  try {
    await askUnlocked(() => database.exec('begin immediate'));
    const running = begin();
    running.catch(() => undefined);
    await meanwhile();
    database.exec('rollback');
    return await running;
  } finally {
    database.close();
  }
};

/**
 * The caller's view. The first of several reasons may differ. `unconfirmed`: a busy machine kept
 * the other node, or the database, waiting for so long that the answer does not say whether the
 * change is made or shown everywhere; what is stored says it.
 */
type Outcome = 'done' | 'waits' | 'refused' | 'unconfirmed';
const refusalOf = (code: string, reason: unknown, error: unknown): Outcome => {
  if (code === 'unavailable' && reason === 'unconfirmed') return 'unconfirmed';
  if (code === 'internal' || code === 'unavailable' || code === 'undefined')
    throw new Error(`the operation failed: ${code}`, { cause: error });
  return 'refused';
};
const asksAgain = (error: unknown): boolean =>
  error instanceof ServiceError && error.code === 'conflict' && error.hint === 'try again';
/**
 * Repeats while the refusal asks for it: the data from before the unit of work are old, and the
 * node will soon show the new ones.
 */
const carryOut = async (call: () => Promise<unknown>): Promise<unknown> => {
  for (let more = 1_000; ; more -= 1)
    try {
      return await call();
    } catch (error) {
      if (more === 0 || !asksAgain(error)) throw error;
      await new Promise((resolve) => setImmediate(resolve));
    }
};
const outcomeOf = async (call: () => Promise<unknown>): Promise<Outcome> => {
  try {
    const answer = await carryOut(call);
    const { status, text } = (answer ?? {}) as { readonly status?: number | string; readonly text?: string };
    if (typeof status !== 'number' || text === undefined) return 'done';
    if (status === 202) return 'waits';
    if (status < 300) return 'done';
    const { code, reason } = JSON.parse(text) as { readonly code: string; readonly reason?: string };
    return refusalOf(code, reason, text);
  } catch (error) {
    if (error instanceof ApprovalNeeded) return 'waits';
    if (error instanceof ServiceError) return refusalOf(error.code, error.reason, error);
    throw error;
  }
};

interface Result {
  readonly outcomes: readonly [Outcome, Outcome];
  readonly state: readonly string[];
}
type Way = 'one, other' | 'other, one' | 'concurrent';
const run = (one: Operation, other: Operation, way: Way): Promise<Result> =>
  runPair(one, other, way).catch((error: unknown) => {
    const { cause } = error as { readonly cause?: unknown };
    const why = cause instanceof Error ? String(cause.stack) : String(cause);
    throw new Error(`${one.name} and ${other.name} (${way}): ${String(error)}: ${why}`, { cause: error });
  });
const runPair = async (one: Operation, other: Operation, way: Way): Promise<Result> => {
  const [here, there] = nodes;
  const world = await makeWorld(here, thingsOf(one.row, other.row));
  let outcomes: readonly [Outcome, Outcome];
  if (way === 'concurrent')
    outcomes = await whileWritersWait(() =>
      Promise.all([outcomeOf(() => one.call(here, world)), outcomeOf(() => other.call(there, world))]),
    );
  else if (way === 'one, other') {
    const first = await outcomeOf(() => one.call(here, world));
    outcomes = [first, await outcomeOf(() => other.call(there, world))];
  } else {
    const first = await outcomeOf(() => other.call(there, world));
    outcomes = [await outcomeOf(() => one.call(here, world)), first];
  }
  return { outcomes, state: await stateOf(here.opened.folder, world) };
};

const without = (from: readonly string[], what: readonly string[]): readonly string[] => {
  const left = [...from];
  for (const each of what) if (left.includes(each)) left.splice(left.indexOf(each), 1);
  return left;
};
/** Whether both have the same end, as far as the answers say it. */
const agree = (found: Result, serial: Result): boolean =>
  JSON.stringify(found.state) === JSON.stringify(serial.state) &&
  found.outcomes.every((outcome, at) => {
    const other = serial.outcomes[at];
    return outcome === other || outcome === 'unconfirmed' || other === 'unconfirmed';
  });
const differences = (found: Result, serial: Result) => ({
  outcomes: `${found.outcomes.join(', ')} concurrently; ${serial.outcomes.join(', ')} in this order`,
  onlyConcurrent: without(found.state, serial.state),
  onlySerial: without(serial.state, found.state),
});

test('every operation that can change something has a row', () => {
  expect(changing.filter(({ row }) => row === undefined).map(({ name }) => name)).toEqual([]);
  expect(Object.keys(tdeRoutes).filter((name) => !(name in tdeOperations))).toEqual([]);
  for (const { name, row } of operations) expect([name, row.changes.length > 0]).toEqual([name, true]);
});

/** Refused, or waiting for approval, also when they run first. */
const notDoneAlone: ReadonlySet<string> = new Set([
  'tenants.restore refused',
  'vaults.delete refused',
  'vaults.removeDualControl waits',
  'vaults.rename of a governed vault waits',
  'OF: imports a file refused',
  'BW: imports a file refused',
]);

test('an answer that does not confirm a change is neither a refusal nor a failure: what is stored decides', async () => {
  const unconfirmed = { reason: 'unconfirmed' } as const;
  const text = JSON.stringify({ code: 'unavailable', ...unconfirmed });
  expect(await outcomeOf(() => Promise.reject(new ServiceError('unavailable', 'made', unconfirmed)))).toBe(
    'unconfirmed',
  );
  expect(await outcomeOf(() => Promise.resolve({ status: 503, text }))).toBe('unconfirmed');
  await expect(outcomeOf(() => Promise.reject(new ServiceError('unavailable', 'away')))).rejects.toThrow('failed');
  const done: Result = { outcomes: ['done', 'done'], state: ['made'] };
  expect(agree({ outcomes: ['unconfirmed', 'done'], state: ['made'] }, done)).toBe(true);
  expect(agree({ outcomes: ['unconfirmed', 'done'], state: [] }, done)).toBe(false);
  expect(agree({ outcomes: ['refused', 'done'], state: ['made'] }, done)).toBe(false);
});

test('the pairs that once lost a change are included', () => {
  expect(chosen.filter(([one, other]) => isLostOnce(one, other))).toHaveLength(lostOnce.size);
});

test(`two concurrent operations have the outcome of a serial order: ${chosen.length} of ${pairs.length} pairs`, async () => {
  const lost: unknown[] = [];
  for (const [one, other] of chosen) {
    const serial: Result[] = [await run(one, other, 'one, other')];
    const alone = serial[0]?.outcomes[0];
    // A row that is always refused would test nothing.
    if (one === other && alone !== 'done' && alone !== 'unconfirmed' && !notDoneAlone.has(`${one.name} ${alone}`))
      lost.push({ refused: one.name });
    if (one !== other) serial.push(await run(one, other, 'other, one'));
    else
      serial.push(
        ...serial.map(({ outcomes: [first, second], state }) => ({ outcomes: [second, first] as const, state })),
      );
    const found = await run(one, other, 'concurrent');
    if (!serial.some((each) => agree(found, each)))
      lost.push({ pair: `${one.name} and ${other.name}`, differs: serial.map((each) => differences(found, each)) });
  }
  expect(lost).toEqual([]);
}, 7_200_000);
