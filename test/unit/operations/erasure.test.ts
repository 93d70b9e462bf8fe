// The erasure run: callers write while it runs, it is interrupted and resumed, and damaged records
// block it (docs/decisions, 7).
import { afterEach, expect, test } from 'vitest';
import { verifyOffline } from '../../../server/app/host/offline.ts';
import { systemClock } from '../../../server/base/time.ts';
import type { TdeCaller } from '../../../server/operations/index.ts';
import { DutyLost } from '../../../server/operations/nodes/node-duties.ts';
import { createErasureScheduler } from '../../../server/operations/root/schedule-erasure.ts';
import type { Fleet } from '../../../server/ports/fleet.ts';
import { until } from '../../support/host.ts';
import {
  administrator,
  masterKey,
  type OpenedService,
  openTestService,
  registerCaller,
  untilAudited,
} from '../../support/open-service.ts';
import { onSqlite, queryStored } from '../../support/test-store.ts';

const cbc = { algorithm: 'aes-cbc', iv: Buffer.alloc(16, 7) } as const;
const plain = Buffer.alloc(32, 0x5a);
const slow = '[erasure]\ngather_ms = 3600000\n[memory]\nallow_unlocked = true\n';

let opened: OpenedService;
afterEach(() => opened?.remove());

const state = async () => (await opened.operations.status(administrator)).erasure;
const untilHeld = () =>
  until('the run is blocked', async () => ((await state()).state === 'blocked' ? true : undefined));
/**
 * A person who can write to the database's file does so while the service is down; then it starts
 * again.
 */
const tamper = async (statement: string, ...values: (string | number | Uint8Array)[]): Promise<void> => {
  await opened.stop();
  await queryStored(opened.folder, statement, ...values);
  opened = await openTestService({ folder: opened.folder });
};
const damage = (id: string, copies: string): Promise<void> =>
  tamper(
    `update key_records set record = zeroblob(length(record)) where object_id = ? and class in (${copies})
     and record is not null`,
    id,
  );
const both = "'vault-copy', 'sealed-copy'";

const start = async () => {
  opened = await openTestService({ toml: slow });
  const { caller } = await registerCaller(opened, 'app');
  const make = (label: string, who: TdeCaller = caller) => opened.operations.tde.generateKey(who, masterKey(label));
  return { caller, doomed: await make('doomed'), live: await make('live'), spoilt: await make('spoilt') };
};

const makeMany = (caller: TdeCaller, count: number) =>
  Promise.all(
    Array.from({ length: count }, (_, i) => opened.operations.tde.generateKey(caller, masterKey(`many ${i}`))),
  );

test('callers write between the small steps of a run', async () => {
  opened = await openTestService();
  const { caller } = await registerCaller(opened, 'app');
  // Two records each.
  await makeMany(caller, 1_000);
  const doomed = await opened.operations.tde.generateKey(caller, masterKey('doomed'));
  await opened.operations.tde.destroyObject(caller, doomed.handle);
  await untilAudited(opened, 'erasure.started');
  let over = false;
  const finished = untilAudited(opened, 'erasure.finished', undefined, 200_000).finally(() => {
    over = true;
  });
  // Callers who wait for each answer: one of them has a write ready whenever a step ends.
  const { tde } = opened.operations;
  const write = async (name: string): Promise<void> => {
    for (let i = 0; !over; i++) await tde.generateKey(caller, masterKey(`${name} ${i}`));
  };
  await Promise.all(['first', 'second', 'third', 'fourth'].map(write));
  const last = await finished;
  const eventsOf = async (kind: 'key.created' | 'erasure.started') =>
    (await opened.operations.audit.list(administrator, { kind, order: 'newest', limit: 1_000 })).items;
  const [started] = await eventsOf('erasure.started');
  const during = (await eventsOf('key.created')).filter(
    ({ sequence }) => sequence > (started?.sequence ?? 0) && sequence < last.sequence,
  );
  expect(Number(last.details.records)).toBeGreaterThan(2_000);
  // A step has 32 records at most, so that the run has more than 60 steps. Callers are served
  // between any two, several at once.
  expect(during.length).toBeGreaterThan(120);
});

test('a run that the end of the service interrupts is finished by the next start, and every key stays', async () => {
  opened = await openTestService();
  const { caller } = await registerCaller(opened, 'app');
  const [live] = await makeMany(caller, 200);
  const handle = live?.handle ?? 0;
  const sealed = await opened.operations.tde.encrypt(caller, handle, cbc, plain);
  const doomed = await opened.operations.tde.generateKey(caller, masterKey('doomed'));
  await opened.operations.tde.destroyObject(caller, doomed.handle);
  await untilAudited(opened, 'erasure.started');
  await opened.stop();
  opened = await openTestService({ folder: opened.folder });
  expect(await opened.operations.tde.decrypt(caller, handle, cbc, sealed)).toEqual(plain);
  await untilAudited(opened, 'key.unrecoverable', doomed.id);
  expect(await opened.operations.tde.decrypt(caller, handle, cbc, sealed)).toEqual(plain);
});

test.each(['vault-copy', 'sealed-copy'])(
  'a damaged %s is made again from the other copy, and the run is finished',
  async (copy) => {
    const { caller, doomed, spoilt } = await start();
    const sealed = await opened.operations.tde.encrypt(caller, spoilt.handle, cbc, plain);
    await opened.operations.tde.destroyObject(caller, doomed.handle);
    await damage(spoilt.id, `'${copy}'`);
    await untilAudited(opened, 'key.unrecoverable', doomed.id);
    const repaired = await untilAudited(opened, 'key.repaired', spoilt.id);
    expect(repaired.details).toMatchObject({ copy, name: 'spoilt' });
    expect(await state()).toMatchObject({ blockers: null, failure: null, pendingKeys: 0 });
    expect(await opened.operations.tde.decrypt(caller, spoilt.handle, cbc, sealed)).toEqual(plain);
    // Nothing hangs on it: soft deletion and re-import work as always.
    await opened.operations.keys.softDelete(administrator, spoilt.id);
    expect(await opened.operations.tde.decrypt(caller, spoilt.handle, cbc, sealed)).toEqual(plain);
  },
);

test('a key of which no copy opens blocks the run, and everyone sees it', async () => {
  const { caller, doomed, live, spoilt } = await start();
  const sealed = await opened.operations.tde.encrypt(caller, live.handle, cbc, plain);
  await opened.operations.tde.destroyObject(caller, doomed.handle);
  await damage(spoilt.id, both);
  const event = await untilAudited(opened, 'erasure.blocked');
  expect(event.details).toMatchObject({ records: 2, subjects: [{ id: spoilt.id }, { id: spoilt.id }] });
  await untilHeld();
  const { blockers } = await state();
  expect(blockers?.records.map(({ kind, id, name, copy }) => [kind, id, name, copy])).toEqual([
    ['key', spoilt.id, 'spoilt', 'sealed-copy'],
    ['key', spoilt.id, 'spoilt', 'vault-copy'],
  ]);
  expect((await opened.operations.keys.get(administrator, doomed.id)).unrecoverableAt).toBeNull();
  // Everything else continues, also after the service's next start, which does not report it again.
  expect(await opened.operations.tde.decrypt(caller, live.handle, cbc, sealed)).toEqual(plain);
  await opened.stop();
  opened = await openTestService({ folder: opened.folder });
  // On PostgreSQL a node takes the duty of the run a moment after it has started.
  await untilHeld();
  expect(await state()).toMatchObject({ state: 'blocked', blockers: { since: blockers?.since } });
  const held = await opened.operations.audit.list(administrator, { kind: 'erasure.blocked' });
  expect(held.items).toHaveLength(1);
  expect(await opened.operations.tde.decrypt(caller, live.handle, cbc, sealed)).toEqual(plain);

  // After an operator gives the key up, the run continues; keys that were destroyed in the meantime
  // follow with the next one.
  const later = await opened.operations.tde.generateKey(caller, masterKey('later'));
  await opened.operations.tde.destroyObject(caller, later.handle);
  await opened.operations.masterKeys.destroy(administrator, caller.application.id, spoilt.id);
  for (const { id } of [doomed, later, spoilt]) await untilAudited(opened, 'key.unrecoverable', id);
  expect(await state()).toMatchObject({ blockers: null, failure: null });
  expect(await opened.operations.tde.decrypt(caller, live.handle, cbc, sealed)).toEqual(plain);
});

test('a backup of the damaged record unblocks the run, and nothing is lost', async () => {
  const { caller, doomed, spoilt } = await start();
  const sealed = await opened.operations.tde.encrypt(caller, spoilt.handle, cbc, plain);
  await opened.operations.tde.destroyObject(caller, doomed.handle);
  const kept = (await queryStored(
    opened.folder,
    'select class, record from key_records where object_id = ?',
    spoilt.id,
  )) as readonly { readonly class: string; readonly record: Uint8Array }[];
  expect(kept).toHaveLength(2);
  await damage(spoilt.id, both);
  await untilAudited(opened, 'erasure.blocked');
  const good = kept.find((row) => row.class === 'vault-copy');
  await tamper(
    "update key_records set record = ? where object_id = ? and class = 'vault-copy'",
    good?.record ?? new Uint8Array(),
    spoilt.id,
  );
  await untilAudited(opened, 'key.unrecoverable', doomed.id);
  expect(await opened.operations.tde.decrypt(caller, spoilt.handle, cbc, sealed)).toEqual(plain);
});

test('a record that is put back under a destroyed key is not carried through the run', async () => {
  const { caller, doomed } = await start();
  const ofDoomed = () => queryStored(opened.folder, 'select record from key_records where object_id = ?', doomed.id);
  const [kept] = (await ofDoomed()) as readonly { readonly record: Uint8Array }[];
  await opened.operations.tde.destroyObject(caller, doomed.handle);
  await tamper('update key_records set record = ? where object_id = ?', kept?.record ?? new Uint8Array(), doomed.id);
  await untilAudited(opened, 'key.unrecoverable', doomed.id);
  await opened.stop();
  expect(await ofDoomed()).toEqual([{ record: null }, { record: null }]);
});

test('more damaged records than fit into one batch block nothing else', async () => {
  const { caller, doomed, live } = await start();
  const sealed = await opened.operations.tde.encrypt(caller, live.handle, cbc, plain);
  const { tde } = opened.operations;
  const many = await Promise.all(Array.from({ length: 210 }, (_, i) => tde.generateKey(caller, masterKey(`m ${i}`))));
  await tde.destroyObject(caller, doomed.handle);
  await tamper(
    `update key_records set record = zeroblob(length(record)) where object_id in (${many.map(() => '?').join()})`,
    ...many.map(({ id }) => id),
  );
  await untilHeld();
  expect((await state()).blockers?.records).toHaveLength(420);
  await opened.stop();
  const [left] = await queryStored(
    opened.folder,
    'select count(*) as n from key_records where epoch = 1 and record is not null',
  );
  expect(left).toEqual({ n: 420 });
  opened = await openTestService({ folder: opened.folder });
  expect(await opened.operations.tde.decrypt(caller, live.handle, cbc, sealed)).toEqual(plain);
});

test('a server with a store of its own shows its new root key when the old one is overwritten', async () => {
  opened = await openTestService();
  const { nodes, root } = opened.operations;
  const [before] = await nodes.list(administrator);
  expect(before?.rootEpoch).toBe((await root.get(administrator)).epoch);
  await root.rotate(administrator);
  await untilAudited(opened, 'root.rotated');
  const [after] = await nodes.list(administrator);
  expect(after?.rootEpoch).toBe((before?.rootEpoch ?? 0) + 1);
});

test('work of a duty that was lost and came back is too late, and the run begins again', async () => {
  let runs = 0;
  const again = new Promise<void>((resolve) => {
    const fleet: Pick<Fleet, 'holds' | 'perform'> = {
      holds: () => true,
      perform: (duty) => {
        runs += 1;
        if (runs === 1) return Promise.reject(new DutyLost(duty));
        resolve();
        return Promise.resolve(undefined);
      },
    };
    const ports = { fleet, clock: systemClock, store: {} } as unknown as Parameters<typeof createErasureScheduler>[0];
    createErasureScheduler(ports, { gatherMs: 1, retryMs: 3_600_000, heldMs: 1 }).schedule();
  });
  await again;
  expect(runs).toBe(2);
});

test.runIf(onSqlite('values of other types than the columns have')).each([
  ['an identifier that is none', { object_id: 'not an identifier' }],
  ['an identifier of another type', { object_id: Buffer.from('00000000-0000-7000-8000-000000000001') }],
  ['a version between two', { version: 1.5 }],
  ['a version below all', { version: -1 }],
  ['a class that does not exist', { class: 'vault-copies' }],
  ['an epoch below all', { epoch: -7 }],
])('a junk record blocks the run by its name, and the offline check names it too: %s', async (_, junk) => {
  const { caller, doomed, live } = await start();
  await opened.stop();
  const [record] = await queryStored(opened.folder, 'select * from key_records where object_id = ? limit 1', live.id);
  const row = { ...record, object_id: '00000000-0000-7000-8000-000000000001', ...junk };
  const names = Object.keys(row);
  await queryStored(
    opened.folder,
    `insert into key_records (${names.join(', ')}) values (${names.map(() => '?').join(', ')})`,
    ...(Object.values(row) as (string | number | Uint8Array)[]),
  );
  const { findings } = await verifyOffline(opened.config, () => Promise.resolve(undefined));
  expect(findings).toContainEqual(expect.stringContaining('the record cannot be opened'));

  opened = await openTestService({ folder: opened.folder });
  await opened.operations.tde.destroyObject(caller, doomed.handle);
  const { details } = await untilAudited(opened, 'erasure.blocked');
  expect(details).toMatchObject({ records: 1 });
  await untilHeld();
  await tamper(
    "delete from key_records where object_id = ? or class = 'vault-copies' or version in (-1, 1.5) or epoch = -7",
    row.object_id,
  );
  await untilAudited(opened, 'key.unrecoverable', doomed.id);
});

test('a key that a node with a clock ahead has destroyed is not called unrecoverable before that time', async () => {
  opened = await openTestService();
  const { caller } = await registerCaller(opened, 'app');
  const { keys, tde } = opened.operations;
  const doomed = await tde.generateKey(caller, masterKey('doomed'));
  const { now } = Date;
  try {
    Date.now = () => now() + 60_000;
    await tde.destroyObject(caller, doomed.handle);
  } finally {
    Date.now = now;
  }
  await untilAudited(opened, 'erasure.finished');
  const { destroyedAt, unrecoverableAt } = await keys.get(administrator, doomed.id);
  expect(unrecoverableAt).toBeGreaterThanOrEqual(destroyedAt ?? Number.POSITIVE_INFINITY);
});

test('what is destroyed when a clock that was ahead is right again has a run of its own', async () => {
  opened = await openTestService();
  const { caller } = await registerCaller(opened, 'app');
  const { tde } = opened.operations;
  const early = await tde.generateKey(caller, masterKey('early'));
  const doomed = await tde.generateKey(caller, masterKey('doomed'));
  const { now } = Date;
  try {
    Date.now = () => now() + 60_000;
    await tde.destroyObject(caller, early.handle);
  } finally {
    Date.now = now;
  }
  const { details } = await untilAudited(opened, 'erasure.finished');
  await until('the run is over', async () => ((await state()).state === 'idle' ? true : undefined));
  await tde.destroyObject(caller, doomed.handle);
  await untilAudited(opened, 'key.unrecoverable', doomed.id);
  expect((await opened.operations.status(administrator)).rootEpoch).toBeGreaterThan(Number(details.rootEpoch));
});
