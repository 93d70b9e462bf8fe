// Clocks that jump: the database's does not hide a node that may still use keys, and a node's own
// costs no request.
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FleetMember, startFleet, type TestFleet, untilActive } from '../support/fleet.ts';
import { until } from '../support/host.ts';
import { type ShiftedClock, shiftedClock } from '../support/shifted-clock.ts';
import { createXksEndpoint } from '../support/xks-call.ts';

/** The cloud's signatures allow for five minutes. */
const contactSeconds = 60;
const jumpMs = 200_000;

let folder: string;
let ofDatabase: ShiftedClock;
let ofTwo: ShiftedClock;
let fleet: TestFleet;
let one: FleetMember;
let two: FleetMember;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dke-clocks-'));
  chmodSync(folder, 0o755);
  ofDatabase = shiftedClock(folder, 'database');
  ofTwo = shiftedClock(folder, 'two');
  fleet = await startFleet(['one', 'two'], {
    store: `contact_seconds = ${contactSeconds}\n`,
    databaseEnvironment: ofDatabase.environment,
    environmentOf: (name) => (name === 'two' ? ofTwo.environment : {}),
  });
  [one, two] = [fleet.member('one'), fleet.member('two')];
  await untilActive(fleet, one, ['one', 'two']);
});
afterAll(async () => {
  await fleet?.end();
  rmSync(folder, { recursive: true, force: true });
});

test("a node is named although the database's clock has jumped past the time in which it may use keys", async () => {
  const { endpoint } = await createXksEndpoint({ api: one.api, server: one.server }, 'jump');
  const path = `/api/endpoints/${endpoint.id}`;
  two.server.child.kill('SIGSTOP');
  try {
    ofDatabase.ahead(jumpMs);
    await until('the jump', async () =>
      Number(fleet.postgres.run('postgres', 'select extract(epoch from clock_timestamp()) * 1000')) >
      Date.now() + jumpMs / 2
        ? true
        : undefined,
    );
    for (const action of ['disable', 'enable']) {
      const { status, headers } = await one.api.send('POST', `${path}/${action}`);
      expect([status, headers['x-dke-pending-nodes']]).toEqual([200, 'two']);
    }
  } finally {
    two.server.child.kill('SIGCONT');
  }
  await untilActive(fleet, one, ['one', 'two']);
});

test("a node's own clock jumps past the time in which it may use keys: no request is refused", async () => {
  const here = await createXksEndpoint({ api: one.api, server: one.server }, 'own');
  const there = here.at(two.server);
  const plain = randomBytes(32);
  await until('the other node to serve it', async () =>
    (await there.encrypt(plain)).status === 200 ? true : undefined,
  );
  const jump = async (ms: number): Promise<readonly number[]> => {
    ofTwo.ahead(ms);
    const statuses: number[] = [];
    for (let at = 0; at < 20; at += 1) statuses.push((await there.encrypt(plain)).status);
    return [...new Set(statuses)];
  };
  expect(await jump(jumpMs)).toEqual([200]);
  expect(await jump(0)).toEqual([200]);
});

test('health says that the database is gone as soon as it is asked', async () => {
  const health = async (): Promise<string> => (await one.api.send('GET', '/health')).text;
  await expect.poll(health).toBe('{"status":"healthy"}');
  await fleet.postgres.stop('SIGQUIT');
  expect(await health()).toBe('{"status":"degraded"}');
  await fleet.postgres.start();
  await expect.poll(health).toBe('{"status":"healthy"}');
});
