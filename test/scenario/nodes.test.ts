// Several nodes on one PostgreSQL: each may change everything, none goes on with what another one has taken away.
import { randomBytes } from 'node:crypto';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Vault } from '../../server/fronts/contract/api/vaults.ts';
import { runCommand } from '../support/command.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { type FleetMember, startFleet, type TestFleet, untilActive } from '../support/fleet.ts';
import { until } from '../support/host.ts';
import { startServerProcess } from '../support/server-process.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';

let fleet: TestFleet;
let one: FleetMember;
let two: FleetMember;
let dke: (...args: string[]) => ReturnType<typeof runCommand>;
beforeAll(async () => {
  fleet = await startFleet(['one', 'two']);
  one = fleet.member('one');
  two = fleet.member('two');
  await untilActive(fleet, one, ['one', 'two']);
  const token = join(fleet.folder, 'token');
  writeFileSync(token, fleet.token, { mode: 0o600 });
  const environment = { DKE_SERVER: one.server.url, DKE_CA_FILE: fleet.caFile, DKE_TOKEN_FILE: token };
  dke = (...args) => runCommand(args, { environment, cwd: fleet.folder });
}, 90_000);
afterAll(() => fleet?.end());

const siteOf = (member: FleetMember) => ({ api: member.api, server: member.server });
const plain = randomBytes(32);

test('nodes know each other, and the command shows them', async () => {
  const { code, stdout } = await dke('node', 'list', '-o', 'json');
  expect(code).toBe(0);
  const { items } = JSON.parse(stdout) as { items: { name: string; state: string; self: boolean; behind: number }[] };
  expect(items.map(({ name, state, self }) => [name, state, self])).toEqual([
    ['one', 'active', true],
    ['two', 'active', false],
  ]);
  expect((await dke('node', 'show', 'two')).stdout).toContain('active');
  expect((await dke('node', 'show', 'three')).code).toBe(10);
});

test('what one node has made, the other serves at once, and refuses at once when it is taken away', async () => {
  const here = await createXksEndpoint(siteOf(one), 'cloud');
  const there: XksEndpoint = here.at(two.server);
  const sealed = await there.encrypt(plain);
  expect(sealed.status).toBe(200);
  expect((await here.decrypt(sealed.body)).body.plaintext).toBe(plain.toString('base64'));
  const health = await there.health();
  expect(health.body).toMatchObject({ xksProxyFleetSize: 2 });
  for (const [by, at] of [
    [one, there],
    [two, here],
  ] as const) {
    const answer = await by.api.call<{ pendingNodes?: string[] }>('POST', `/api/endpoints/${here.endpoint.id}/disable`);
    expect(answer.pendingNodes).toBeUndefined();
    expect((await at.encrypt(plain)).status).toBe(400);
    await by.api.call('POST', `/api/endpoints/${here.endpoint.id}/enable`);
    expect((await at.encrypt(plain)).status).toBe(200);
  }
  await one.api.call('POST', `/api/keys/${here.endpoint.keyId}/disable`);
  expect((await there.encrypt(plain)).status).toBe(400);
  await two.api.call('POST', `/api/keys/${here.endpoint.keyId}/enable`);
  expect((await here.encrypt(plain)).status).toBe(200);
});

test('nodes that write at once keep one audit log, and it verifies', async () => {
  const made = await Promise.all(
    Array.from({ length: 60 }, (_, at) =>
      (at % 2 === 0 ? one : two).api.call<Vault>('POST', '/api/vaults', { name: `at once ${at}` }),
    ),
  );
  expect(new Set(made.map(({ id }) => id)).size).toBe(60);
  const log = JSON.parse((await dke('audit', 'log', '-o', 'json')).stdout) as { verifierKey: string };
  expect((await dke('audit', 'export', '--out', 'audit.ndjson')).code).toBe(0);
  expect((await dke('audit', 'verify', 'audit.ndjson', '--key', log.verifierKey)).code).toBe(0);
});

test('a node that stands still is named in the answer to a change, and shows the change when it goes on', async () => {
  const here = await createXksEndpoint(siteOf(one), 'stands-still');
  two.server.child.kill('SIGSTOP');
  const answer = await one.api.call<{ pendingNodes?: string[] }>('POST', `/api/endpoints/${here.endpoint.id}/disable`);
  expect(answer.pendingNodes).toEqual(['two']);
  two.server.child.kill('SIGCONT');
  await until('the other node to show it', async () =>
    (await here.at(two.server).encrypt(plain)).status === 400 ? true : undefined,
  );
});

test('a node that is drained says so, and goes on when it is told to', async () => {
  expect((await dke('node', 'drain', 'two')).code).toBe(0);
  await until('bad health', async () => ((await two.api.send('GET', '/health')).status === 503 ? true : undefined));
  expect((await one.api.send('GET', '/health')).status).toBe(200);
  expect((await dke('node', 'resume', 'two')).code).toBe(0);
  await until('good health', async () => ((await two.api.send('GET', '/health')).status === 200 ? true : undefined));
});

test('duties go over to another node when the one that had them is killed', async () => {
  const owner = async (): Promise<FleetMember | undefined> => {
    for (const member of [one, two]) {
      const own = (await fleet.nodes(member)).find(({ self }) => self);
      if (own?.duties.includes('erasure') === true) return member;
    }
    return undefined;
  };
  const before = await until('a duty', owner);
  const other = before === one ? two : one;
  // Every node knows who has which: what one says of itself the other says of it.
  await until('the same word of both', async () => {
    const byName = async (member: FleetMember) =>
      (await fleet.nodes(member)).map(({ name, duties }) => [name, duties.toSorted()] as const).sort();
    const [seen, seenThere] = [await byName(before), await byName(other)];
    const held = seen.flatMap(([, duties]) => duties);
    return held.length === 6 && JSON.stringify(seen) === JSON.stringify(seenThere) ? true : undefined;
  });
  await before.stop('SIGKILL');
  await until('the duties', async () =>
    (await fleet.nodes(other)).find(({ self }) => self)?.duties.length === 6 ? true : undefined,
  );
  // Changes go on, and say that the killed node was not heard of.
  const group = await createGroup(other.api, 'after a kill');
  await registerApplication(other.api, 'after a kill', group);
  await before.start();
  await untilActive(fleet, other, ['one', 'two']);
});

test('two servers under one id are refused', async () => {
  const copy = join(fleet.folder, 'copy');
  mkdirSync(join(copy, 'dke-data'), { recursive: true, mode: 0o700 });
  for (const file of ['root.key', 'node'])
    copyFileSync(join(fleet.folder, 'one', 'dke-data', file), join(copy, 'dke-data', file));
  const { host, database } = fleet.place;
  const toml = `[store]\ntype = "postgresql"\nhost = "${host}"\ndatabase = "${database}"\n`;
  await expect(startServerProcess({ folder: copy, toml })).rejects.toThrow('another server runs as this node');
});
