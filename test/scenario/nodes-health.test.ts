// What is wrong with one node: it is degraded, and every node's notifications name it.
import { chmodSync, mkdirSync, mkdtempSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Notification } from '../../server/contract/api/notifications-routes.ts';
import type { Status } from '../../server/contract/api/status-routes.ts';
import { type FleetMember, startFleet, type TestFleet, untilActive } from '../support/fleet.ts';
import { until } from '../support/host.ts';
import { type ShiftedClock, shiftedClock } from '../support/shifted-clock.ts';

let folder: string;
let ofTwo: ShiftedClock;
let fleet: TestFleet;
let one: FleetMember;
let two: FleetMember;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dke-node-health-'));
  chmodSync(folder, 0o755);
  ofTwo = shiftedClock(folder);
  fleet = await startFleet(['one', 'two'], {
    environmentOf: (name) => (name === 'two' ? ofTwo.environment : {}),
  });
  [one, two] = [fleet.member('one'), fleet.member('two')];
  await untilActive(fleet, one, ['one', 'two']);
});
afterAll(async () => {
  await fleet?.end();
  rmSync(folder, { recursive: true, force: true });
});

const failingOf = async ({ api }: FleetMember): Promise<readonly string[]> =>
  (await api.call<Status>('GET', '/api/status')).health.checks
    .filter(({ healthy }) => !healthy)
    .map(({ name }) => name);
const notified = async (): Promise<readonly string[]> =>
  (await one.api.call<{ items: Notification[] }>('GET', '/api/notifications?state=open')).items
    .filter(({ kind }) => kind === 'health.failing')
    .map(({ subject: { name } }) => name)
    .toSorted();
const setFsync = (value: string): void => {
  fleet.postgres.run('postgres', `alter system set fsync = ${value}`);
  fleet.postgres.run('postgres', 'select pg_reload_conf()');
};

test('a wrong clock, a data directory that takes no file, and a database that may lose what it confirms', async () => {
  const probe = join(two.server.dataDirectory, 'probe');
  ofTwo.ahead(60_000);
  mkdirSync(probe);
  await until('the node with them', async () => ((await failingOf(two)).join(' ') === 'clock disk' ? true : undefined));
  expect((await two.api.send('GET', '/health')).text).toBe('{"status":"degraded"}');
  expect(await failingOf(one)).toEqual([]);
  setFsync('off');
  await until('both nodes', async () =>
    [await failingOf(one), await failingOf(two)].join(' ') === 'database clock,disk,database' ? true : undefined,
  );
  const all = ['clock (node two)', 'database (node one)', 'database (node two)', 'disk (node two)'];
  await until('the notifications', async () => ((await notified()).join() === all.join() ? true : undefined));

  ofTwo.ahead(0);
  rmdirSync(probe);
  setFsync('on');
  await until('the end of them', async () => ((await notified()).length === 0 ? true : undefined));
  for (const { api } of [one, two]) expect((await api.send('GET', '/health')).text).toBe('{"status":"healthy"}');
});
