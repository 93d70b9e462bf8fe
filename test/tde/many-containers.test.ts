// A container database with hundreds of pluggable databases: each has a master key of its own, and
// gen0 checks all of them in each period. One that is disabled closes its own container and no
// other, and all of them are there after a restart and a rotation.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inLongTier } from '../support/tiers.ts';
import type { Instance } from './instance.ts';
import { labelOf, readProfile } from './profile.ts';
import { configure, createPayments, insertRow, rowsOf, type Stage, setStage, statusOf, words } from './scenarios.ts';
import { canary, startWorld, type World } from './world.ts';

const profile = readProfile('12c-19c');
const sql = words(profile, true);
let world: World;
let stage: Stage;
beforeAll(async () => {
  world = await startWorld.DKE();
  stage = await setStage(world, profile);
});
afterAll(async () => {
  await stage.end();
  await world.end();
});

const play = (pluggable: number): void => {
  const all = (status: string) => Array(pluggable + 1).fill(status);
  let database: Instance;
  let ids: readonly number[] = [];
  let keys: ReadonlySet<string> = new Set();

  test('are created', async () => {
    database = stage.database(`CDB${pluggable}`, { cdb: true });
    await configure(database, 'HSM');
    for (let at = 1; at <= pluggable; at += 1) {
      await database.execute(`CREATE PLUGGABLE DATABASE p${at}`);
      await database.execute(`ALTER PLUGGABLE DATABASE p${at} OPEN`);
    }
    await database.execute(sql.open());
  });
  test('have a key each with one statement', async () => {
    await database.execute(sql.setKey());
    ids = database.control.containers.map(({ id }) => id).filter((id) => database.keyOf(id) !== '');
    keys = new Set(ids.map((id) => database.keyOf(id)));
    expect(keys.size).toBe(pluggable + 1);
    await database.execute('ALTER SESSION SET CONTAINER = P7');
    await createPayments(database, 'p7.dbf');
    await insertRow(database, 'seven');
    await database.execute('ALTER SESSION SET CONTAINER = CDB$ROOT');
  });
  test('are all checked by each heartbeat; one whose key is disabled closes, and no other', async () => {
    const { site } = world;
    if (site === undefined) throw new Error('ours has a service');
    for (let period = 0; period < 3; period += 1) await database.advance(3);
    expect(await statusOf(database)).toEqual(all('OPEN'));
    const label = labelOf(profile, database.keyOf(ids.at(-2)));
    const { id } = await site.api.masterKey(stage.group.applicationOf(stage.host), label);
    await site.api.call('POST', `/api/keys/${id}/disable`);
    while ((await statusOf(database)).every((status) => status === 'OPEN')) await database.advance(3);
    expect((await statusOf(database)).filter((status) => status === 'CLOSED')).toHaveLength(1);
    expect(database.alertLog().match(/gen0: keystore closed/g)).toHaveLength(1);
    await site.api.call('POST', `/api/keys/${id}/enable`);
  });
  test('are all there after a restart', async () => {
    await database.execute('SHUTDOWN IMMEDIATE');
    await database.execute('STARTUP');
    await database.execute(sql.open());
    await database.advance(3);
    expect(await statusOf(database)).toEqual(all('OPEN'));
  });
  test('have other keys after a rotation, and their data', async () => {
    await database.execute(sql.setKey());
    await database.advance(3);
    expect(await statusOf(database)).toEqual(all('OPEN'));
    expect(ids.filter((each) => keys.has(database.keyOf(each)))).toEqual([]);
    await database.execute('ALTER SESSION SET CONTAINER = P7');
    expect(await rowsOf(database, 'payments')).toEqual([`${canary} seven`]);
    await database.execute('SHUTDOWN IMMEDIATE');
  });
};

// A test for each stage, so that the limit of a test is that of a stage.
describe('300 pluggable databases', () => play(300));
describe.runIf(inLongTier('tde/many-containers: 1,000 pluggable databases'))('1,000 pluggable databases', () =>
  play(1000),
);
