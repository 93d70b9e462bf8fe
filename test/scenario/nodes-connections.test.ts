// A store's connections to PostgreSQL when the network loses data, and after a failover while the
// old primary is still running.
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterEach, expect, test } from 'vitest';
import { openPostgresStore } from '../../server/adapters/store/store.ts';
import { systemClock } from '../../server/base/time.ts';
import { serviceActor } from '../../server/domain/actor.ts';
import { createAwaitCopies, releaseCopy } from '../../server/operations/root/await-copies.ts';
import type { Ports } from '../../server/ports/ports.ts';
import type { Store } from '../../server/ports/store.ts';
import { type DatabaseRelay, openDatabaseRelay } from '../support/database-relay.ts';
import { until } from '../support/host.ts';
import { type PostgresServer, startPostgres } from '../support/postgresql.ts';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

const start = async (settings: readonly string[] = []): Promise<PostgresServer> => {
  const postgres = await startPostgres({ settings });
  undo.push(() => postgres.remove());
  return postgres;
};
const relayTo = async (postgres: PostgresServer): Promise<DatabaseRelay> => {
  const relay = await openDatabaseRelay(postgres.socket);
  undo.push(() => relay.close());
  return relay;
};
/**
 * A relay in a separate thread, which continues while this one is blocked: over TCP, the database's
 * last data are read after the next statement.
 */
const relayBeside = async ({ socket }: PostgresServer): Promise<{ readonly host: string; readonly port: number }> => {
  const thread = new Worker(
    `const { connect, createServer } = require('node:net');
     const { parentPort, workerData } = require('node:worker_threads');
     const server = createServer((front) => {
       const back = connect(workerData);
       front.on('error', () => back.destroy()).pipe(back);
       back.on('error', () => front.destroy()).pipe(front);
     });
     server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`,
    { eval: true, workerData: socket },
  );
  undo.push(() => thread.terminate());
  const [port] = (await once(thread, 'message')) as [number];
  return { host: '127.0.0.1', port };
};
/** `answerMs`: the timeout for an answer; default: 32 s. */
const open = async (
  { host, port }: Pick<DatabaseRelay, 'host' | 'port'>,
  answerMs?: number,
  user = 'dke',
): Promise<Store> => {
  const store = await openPostgresStore({
    clock: systemClock,
    authenticateRow: () => '',
    onFatal: (error) => {
      throw error;
    },
    postgres: {
      ...{ host, port, user, database: 'dke', readers: 2 },
      ...{ password: undefined, ca: undefined, answerMs },
    },
  });
  undo.push(() => store.close());
  await store.started();
  return store;
};
const set = (store: Store, name: string) => store.write((tx) => tx.settings.set(name, 'yes'));
const has = (postgres: PostgresServer, name: string): boolean =>
  postgres.run('dke', `select count(*) from settings where name = '${name}'`) === '1';
const linkOf = ({ link }: Store) => {
  if (link === undefined) throw new Error('the store has no link');
  return link;
};

test('a host that vanished without a word stops changes for a bounded time, and a commit that it took along is not confirmed', async () => {
  const postgres = await start();
  postgres.createDatabase('dke');
  const relay = await relayTo(postgres);
  const store = await open(relay, 3_000);
  await set(store, 'before');
  await store.read.settings.get('before');

  // While a statement is under way, and while none is.
  for (const round of ['in a unit of work', 'between two']) {
    const vanish = (): void => relay.swallow();
    if (round === 'between two') vanish();
    const lost = store.write(async (tx) => {
      if (round !== 'between two') vanish();
      await tx.settings.set(round, 'yes');
    });
    await expect(lost).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('nothing was changed'),
    });
    relay.moveTo(postgres.socket);
    await until('a change', () =>
      set(store, `after ${round}`).then(
        () => true,
        () => undefined,
      ),
    );
    expect(await store.read.settings.get(`after ${round}`)).toBe('yes');
    expect([has(postgres, round), has(postgres, `after ${round}`)]).toEqual([false, true]);
  }

  // In a commit: the database delays it, and the network then loses its answer.
  postgres.run(
    'dke',
    `create function wait_here() returns trigger language plpgsql as $$
       begin if new.name = 'in a commit' then perform pg_advisory_xact_lock(4711); end if; return new; end $$;
     create constraint trigger wait_here after insert on settings deferrable initially deferred
       for each row execute function wait_here()`,
  );
  const held = postgres.hold('dke', 'select pg_advisory_lock(4711)');
  undo.push(() => held.end());
  await held.ready;
  const unknown = set(store, 'in a commit').catch((error: unknown) => error);
  await until('the commit to wait', async () =>
    postgres.run(
      'dke',
      "select count(*) from pg_locks where locktype = 'advisory' and objid = 4711 and not granted",
    ) === '1'
      ? true
      : undefined,
  );
  relay.swallow('writer');
  expect(await unknown).toMatchObject({ code: 'unavailable', reason: 'unconfirmed' });
  await held.end();
  await until('the commit', async () => (has(postgres, 'in a commit') ? true : undefined));
  await until('a change', () =>
    set(store, 'after a commit').then(
      () => true,
      () => undefined,
    ),
  );
});

test.runIf(process.env.SLOW === '1')(
  'with the real limits, changes work again within 45 s after the name moved',
  async () => {
    const postgres = await start();
    postgres.createDatabase('dke');
    const relay = await relayTo(postgres);
    const store = await open(relay);
    await set(store, 'before');
    for (const round of ['in a unit of work', 'between two']) {
      let movedAt = 0;
      const vanish = (): void => {
        relay.swallow();
        relay.moveTo(postgres.socket);
        movedAt = performance.now();
      };
      if (round === 'between two') vanish();
      const lost = store.write(async (tx) => {
        if (round !== 'between two') vanish();
        await tx.settings.set(round, 'yes');
      });
      await expect(lost).rejects.toMatchObject({ code: 'unavailable' });
      await until('a change', () =>
        set(store, `after ${round}`).then(
          () => true,
          () => undefined,
        ),
      );
      expect(performance.now() - movedAt).toBeLessThan(45_000);
      expect(has(postgres, `after ${round}`)).toBe(true);
    }
  },
);

test('a process that stood still for longer than the database waits within a transaction has changed nothing, and says so', async () => {
  const postgres = await start();
  postgres.createDatabase('dke');
  const relay = await relayBeside(postgres);
  const writers = "select count(*) from pg_stat_activity where application_name like 'dke writer%'";
  // The next step: another statement, or the commit.
  for (const next of ['later', undefined]) {
    const store = await open(relay);
    const lost = store.write(async (tx) => {
      await tx.settings.set('half', 'yes');
      // The event loop stands still until the database has ended the session: what it said is read
      // after the next statement.
      while (postgres.run('dke', writers) !== '0');
      if (next !== undefined) await tx.settings.set(next, 'yes');
    });
    await expect(lost).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('nothing was changed'),
    });
    expect(has(postgres, 'half')).toBe(false);
    await set(store, 'after');
    await store.close();
  }
});

test('what goes to the database by any way says that it does not answer: units of work, readers, the link, and a long read', async () => {
  const postgres = await start();
  const store = await open(postgres.createDatabase('dke'));
  const link = linkOf(store);
  await store.read.settings.get('before');
  const ways: Readonly<Record<string, () => Promise<unknown>>> = {
    write: () => set(store, 'during'),
    read: () => store.read.settings.get('before'),
    link: () => link.nodes(),
    'clocks of the link': () => link.clocks(),
    snapshot: () => store.snapshot((state) => state.settings.get('before')),
    'row set': () => store.rowSet.load(),
  };
  // First on connections that were open, then on new ones.
  await postgres.stop('SIGQUIT');
  for (const round of ['open', 'new'])
    for (const [way, ask] of Object.entries(ways))
      expect([round, way, await ask().catch((error: unknown) => error)]).toMatchObject([
        round,
        way,
        { code: 'unavailable', message: expect.stringContaining('the database does not answer') },
      ]);
  await postgres.start();
  for (const [way, ask] of Object.entries(ways))
    await until(`${way} to continue`, () =>
      ask().then(
        () => true,
        () => undefined,
      ),
    );
});

test('a primary that was not fenced is neither read nor written once the newer one is known', async () => {
  const old = await start();
  old.createDatabase('dke');
  const relay = await relayTo(old);
  const store = await open(relay);
  await set(store, 'before');
  await store.read.settings.get('before');
  const standby = await old.standby();
  undo.push(() => standby.remove());
  await standby.promote();
  await until('the promotion', async () =>
    standby.run('postgres', 'select pg_is_in_recovery()') === 'f' ? true : undefined,
  );
  relay.moveTo(standby.socket);
  // The link breaks and follows the name of the host; the others stay where they are.
  const follow = async (): Promise<void> => {
    relay.cut('dke link');
    await until('the link', () =>
      linkOf(store)
        .nodes()
        .then(
          () => true,
          () => undefined,
        ),
    );
  };
  const half = store.write(async (tx) => {
    await tx.settings.set('half', 'yes');
    await follow();
  });
  await expect(half).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('nothing was changed'),
  });
  await set(store, 'after');
  expect(['half', 'after'].map((name) => has(old, name))).toEqual([false, false]);
  expect(['half', 'after'].map((name) => has(standby, name))).toEqual([false, true]);
  expect(await store.read.settings.get('after')).toBe('yes');

  // When the name resolves to the old one again, it gets no data.
  relay.moveTo(old.socket);
  relay.cut('dke writer');
  await until('the loss', () =>
    set(store, 'back').then(
      () => undefined,
      () => true,
    ),
  );
  await expect(set(store, 'back')).rejects.toMatchObject({
    code: 'unavailable',
    cause: expect.objectContaining({ message: expect.stringContaining('was the primary before the last failover') }),
  });
  expect(has(old, 'back')).toBe(false);
});

test('the link follows to the newer primary that another connection has met, while the older one still answers', async () => {
  const old = await start();
  old.createDatabase('dke');
  const relay = await relayTo(old);
  const store = await open(relay);
  await set(store, 'before');
  const link = linkOf(store);
  const { system, timeline } = await link.logPosition();
  const standby = await old.standby();
  undo.push(() => standby.remove());
  await standby.promote();
  await until('the promotion', async () =>
    standby.run('postgres', 'select pg_is_in_recovery()') === 'f' ? true : undefined,
  );
  relay.moveTo(standby.socket);
  expect(await link.logPosition()).toMatchObject({ system, timeline });
  relay.cut('dke writer');
  await until('a change', () =>
    set(store, 'after').then(
      () => true,
      () => undefined,
    ),
  );
  expect([has(old, 'after'), has(standby, 'after')]).toEqual([false, true]);
  expect(await link.logPosition()).toMatchObject({ system, timeline: timeline + 1 });
});

test('the link knows which copies of the database have stored what: standbys, slots of standbys that are away, and the archive', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-archive-'));
  undo.push(() => rmSync(folder, { recursive: true, force: true }));
  const postgres = await start(['archive_mode=on', `archive_command=test ! -e ${folder}/broken`]);
  postgres.createDatabase('dke');
  const store = await open(await relayTo(postgres));
  const link = linkOf(store);
  const standby = await postgres.standby({ name: 'second', slot: 'second_slot' });
  undo.push(() => standby.remove());
  /** Names of the copies that are behind a new change. */
  const behind = async (): Promise<readonly string[]> => {
    await set(store, 'now');
    const position = await link.logPosition();
    let copies = await link.copies(position);
    if (copies === 'other') throw new Error('another database');
    // What is there in time, is.
    for (let round = 0; round < 100 && copies.some(({ isBehind }) => isBehind); round += 1) {
      copies = await link.copies(position);
      if (copies === 'other') throw new Error('another database');
    }
    return copies.filter(({ isBehind }) => isBehind).map(({ name }) => name);
  };
  await until('all to be up to date', async () => ((await behind()).length === 0 ? true : undefined));
  expect(await link.asynchronousStandbys()).toEqual(['standby second']);
  // One that replays late has stored everything.
  standby.run('postgres', "alter system set recovery_min_apply_delay = '1h'");
  standby.run('postgres', 'select pg_reload_conf()');
  await set(store, 'replayed late');
  await until('all to be up to date', async () => ((await behind()).length === 0 ? true : undefined));
  expect(has(standby, 'replayed late')).toBe(false);
  const position = await link.logPosition();
  expect(await link.copies({ ...position, timeline: position.timeline + 1 })).toBe('other');

  const root = { current: { epoch: 3 } } as Ports['root'];
  const awaitCopies = createAwaitCopies({ store, root, clock: systemClock }, 0);
  // One with a slot is waited for under one name, and to drop the slot ends that.
  await standby.stop();
  await set(store, 'now');
  expect((await awaitCopies(() => true)).behind).toContain('slot second_slot');
  expect((await awaitCopies(() => true)).behind.filter((name) => name.startsWith('standby'))).toEqual([]);
  expect(await behind()).toContain('slot second_slot');
  postgres.run('postgres', "select pg_drop_replication_slot('second_slot')");
  await until('the archive', async () => ((await behind()).length === 0 ? true : undefined));
  await until('the run', async () => ((await awaitCopies(() => true)).behind.length === 0 ? true : undefined));

  // A slot that has lost what its standby needs holds the run until it is dropped.
  postgres.run('postgres', "select pg_create_physical_replication_slot('left_behind', true)");
  postgres.run('postgres', "alter system set max_slot_wal_keep_size = '1MB'");
  postgres.run('postgres', 'select pg_reload_conf()');
  await until('the loss', async () => {
    await set(store, 'now');
    postgres.run('postgres', 'select pg_switch_wal()');
    postgres.run('postgres', 'checkpoint');
    return postgres.run('postgres', 'select wal_status from pg_replication_slots') === 'lost' ? true : undefined;
  });
  await until('it to be all that is behind', async () =>
    (await awaitCopies(() => true)).behind.join() === 'slot left_behind' ? true : undefined,
  );
  postgres.run('postgres', "select pg_drop_replication_slot('left_behind')");
  await until('the run', async () => ((await awaitCopies(() => true)).behind.length === 0 ? true : undefined));

  chmodSync(folder, 0o755);
  writeFileSync(join(folder, 'broken'), '');
  await until('the archive to fail', async () => {
    await set(store, 'now');
    const copies = await link.copies(await link.logPosition());
    return copies !== 'other' &&
      copies.some(({ name, isBehind, isSlow }) => name === 'WAL archive' && isBehind && !isSlow)
      ? true
      : undefined;
  });
});

test('a role that may not see how far a standby is waits for it, and says how it could see', async () => {
  const postgres = await start();
  postgres.run('postgres', 'create role plain login');
  postgres.createDatabase('dke');
  postgres.run('postgres', 'alter database dke owner to plain');
  const store = await open(await relayTo(postgres), undefined, 'plain');
  const standby = await postgres.standby({ name: 'second' });
  undo.push(() => standby.remove());
  const link = linkOf(store);
  const copies = async () => link.copies(await link.logPosition());
  // The standby may not have connected yet.
  await expect.poll(copies).toMatchObject([
    {
      ...{ name: expect.stringMatching(/^standby second/), isBehind: true },
      hint: ', which only a member of pg_monitor can see: GRANT pg_monitor TO plain',
    },
  ]);
  postgres.run('postgres', 'grant pg_monitor to plain');
  await until('it to be seen', async () => {
    const seen = await copies();
    return seen !== 'other' && seen.every(({ isBehind }) => !isBehind) ? true : undefined;
  });
});

test('the old root key is kept for copies that the database does not show, and for one that has lost its connection', async () => {
  const postgres = await start();
  postgres.createDatabase('dke');
  const store = await open(await relayTo(postgres));
  const line = await relayTo(postgres);
  const standby = await postgres.standby({ name: 'second', from: line });
  undo.push(() => standby.remove());
  let now = 0;
  let epoch = 2;
  const clock = { ...systemClock, monotonic: () => now };
  const root = {
    get current() {
      return { epoch };
    },
  } as Ports['root'];
  const awaitCopies = createAwaitCopies({ store, root, clock }, 60_000);
  expect(await awaitCopies(() => false)).toEqual({ behind: [], forMs: 60_000 });
  now = 59_000;
  expect((await awaitCopies(() => false)).forMs).toBe(1_000);
  now = 60_000;
  expect((await awaitCopies(() => false)).forMs).toBe(0);

  epoch = 3;
  line.swallow();
  await set(store, 'now');
  // One that is stopping does not wait.
  expect((await awaitCopies(() => true)).behind).toEqual(['standby second']);
  line.cut('');
  await until('the end of its connection', async () =>
    postgres.run('postgres', 'select count(*) from pg_stat_replication') === '0' ? true : undefined,
  );
  expect((await awaitCopies(() => true)).behind).toEqual(['standby second, disconnected']);
  // The next process, or the next node with the duty, waits for it, too; it stops when an operator
  // says so, or when it is seen up to date.
  const again = createAwaitCopies({ store, root, clock }, 0);
  expect((await again(() => true)).behind).toEqual(['standby second, disconnected']);
  const release = (name: string) => store.write((tx) => releaseCopy(tx, serviceActor('r'), name));
  await expect(release('standby first')).rejects.toThrow('does not wait for a copy of this name');
  const kept = await store.read.decisions.get('erasure-copies');
  await release('standby second, disconnected');
  expect(
    postgres.run('dke', "select actor_id, details from audit_events where kind = 'erasure.copy-released'"),
  ).toMatch(/\|.*"name":"standby second"/);
  expect((await createAwaitCopies({ store, root, clock }, 0)(() => true)).behind).toEqual([]);
  await store.write((tx) => tx.decisions.set('erasure-copies', kept ?? null));
  line.moveTo(postgres.socket);
  // The standby may have sent another query in the meantime, and would wait for that answer.
  line.cut('');
  await until('it to be up to date', async () =>
    (await awaitCopies(() => true)).behind.length === 0 ? true : undefined,
  );
});
