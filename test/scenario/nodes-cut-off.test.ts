// Nodes that are cut off from the database, or stand still: they delay no other node, and no other
// process takes their place unseen.
import { randomBytes } from 'node:crypto';
import { chmodSync, cpSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readHostFacts } from '../../server/adapters/host/host-facts.ts';
import { type FleetMember, startFleet, type TestFleet, untilActive, untilShown } from '../support/fleet.ts';
import { holdStatement } from '../support/held-statement.ts';
import { until } from '../support/host.ts';
import { ServerEnded, type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { createXksEndpoint } from '../support/xks-call.ts';

let fleet: TestFleet;
let one: FleetMember;
let two: FleetMember;
let copy: ServerProcess | undefined;
beforeAll(async () => {
  fleet = await startFleet(['one', 'two'], { relay: true });
  one = fleet.member('one');
  two = fleet.member('two');
  await untilActive(fleet, one, ['one', 'two']);
});
afterAll(async () => {
  await copy?.remove();
  await fleet?.end();
});

const plain = randomBytes(32);
const ask = (sql: string): string => fleet.postgres.run('dke', sql);
/**
 * The application name of a process's connections: `dke link`, and a part that distinguishes it
 * from other processes.
 */
const instanceOf = (name: string): string =>
  ask(
    `select right(application_name, 8) from pg_stat_activity join pg_locks using (pid) join nodes
        on objid::bigint = (hashtext(nodes.id)::bigint & 4294967295) where locktype = 'advisory' and nodes.name = '${name}'`,
  );

test('a node whose readers stall is behind, and neither silent nor confirming', async () => {
  const endpoint = await createXksEndpoint({ api: one.api, server: one.server }, 'stalled');
  const there = endpoint.at(two.server);
  await untilShown(fleet, one);
  expect((await there.encrypt(plain)).status).toBe(200);
  const instance = instanceOf('two');
  // Makes node two open its connections for readers, because only open ones can be swallowed.
  await Promise.all(Array.from({ length: 8 }, () => two.api.call('GET', '/api/vaults')));
  fleet.relay.swallow(`dke reader ${instance}`);
  expect(fleet.relay.swallowed()).toBeGreaterThan(0);
  const { headers } = await one.api.send('POST', `/api/endpoints/${endpoint.endpoint.id}/disable`);
  expect(headers['x-dke-pending-nodes']).toBe('two');
  const before = Number(ask("select heartbeat_at from nodes where name = 'two'"));
  await until('more heartbeats', async () =>
    Number(ask("select heartbeat_at from nodes where name = 'two'")) > before + 4_000 ? true : undefined,
  );
  await expect
    .poll(async () => (await fleet.nodes(one)).find(({ name }) => name === 'two'))
    .toMatchObject({ state: 'active', behind: 1 });
  fleet.relay.cut(`dke reader ${instance}`);
  await until('the other node to show it', async () =>
    (await there.encrypt(plain)).status === 400 ? true : undefined,
  );
});

test('a node that stands still in a unit of work keeps no change waiting until it is refused', async () => {
  const held = await holdStatement(fleet.place, 'insert', 'vaults');
  try {
    const stopped = two.api.send('POST', '/api/vaults', { name: 'stands still' });
    await held.reached();
    two.server.child.kill('SIGSTOP');
    await held.goOn();
    // The other node tries once, and is not refused after the five seconds that a change may wait.
    expect((await one.api.send('POST', '/api/vaults', { name: 'continues' })).status).toBe(201);
    two.server.child.kill('SIGCONT');
    const { status, text } = await stopped;
    expect([status, text]).toEqual([503, expect.stringContaining('nothing was changed')]);
    expect(ask("select count(*) from vaults where name = 'stands still'")).toBe('0');
  } finally {
    two.server.child.kill('SIGCONT');
    await held.goOn();
  }
  await untilActive(fleet, one, ['one', 'two']);
});

test('a copy of a data directory is refused while the node itself is cut off, and ends it when it was taken for it', async () => {
  const { host, database } = fleet.place;
  const folder = join(fleet.folder, 'copy');
  mkdirSync(folder);
  cpSync(join(two.folder, 'dke-data'), join(folder, 'dke-data'), { recursive: true });
  chmodSync(join(folder, 'dke-data'), 0o700);
  const toml = `[node]\nname = "two"\n[store]\ntype = "postgresql"\nhost = "${host}"\ndatabase = "${database}"\n`;
  const startCopy = () => startServerProcess({ folder, toml });
  await expect(startCopy()).rejects.toThrow('another server runs as this node');

  // Neither node has a connection, nor can it get one.
  fleet.relay.moveTo('/nowhere/.s.PGSQL.5432');
  fleet.relay.cut('');
  await until('the locks to be free', async () => (instanceOf('two') === '' ? true : undefined));
  const refusal = 'this data directory, or this host, is not the one that this node ran in last';
  await expect(startCopy()).rejects.toThrow(refusal);
  // A copied disk has the same files; the machine that it is in has other addresses, or another id.
  const facts = readHostFacts();
  if (facts === '') console.log('skipped: this host says nothing of itself, so that a copied disk is not told');
  const { ino, birthtimeMs } = statSync(join(folder, 'dke-data', 'node'));
  expect(ask("select directory from nodes where name = 'two'")).toMatch(new RegExp(`^\\d+ \\d+ ?${facts}$`));
  const there = `${ino} ${Math.floor(birthtimeMs)} machine=${'0'.repeat(16)} interface=${'0'.repeat(16)}`;
  ask(`update nodes set directory = '${there}' where name = 'two'`);
  if (facts !== '') await expect(startCopy()).rejects.toThrow(refusal);

  // A copy that is identical to the original, as of a disk.
  ask("update nodes set directory = ''");
  copy = await until('the copy', () =>
    startCopy().catch((error: unknown) => {
      if (error instanceof ServerEnded) return undefined;
      throw error;
    }),
  );
  fleet.relay.moveTo(fleet.postgres.socket);
  await until('the end of the original', async () => two.server.child.exitCode ?? undefined);
  await two.stop();
  expect(two.server.log()).toContain('another server runs as this node');
  expect(copy.child.exitCode).toBeNull();
  // The next start is refused like any other one.
  await expect(two.start()).rejects.toThrow('another server runs as this node');
});
