// Answers about nodes that have not received a change: every node names them on every path, also
// after a repeat, and a node that cannot reach the others answers that the change is made and not
// confirmed.
import { readdirSync, readFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Vault } from '../../server/contract/api/vaults-routes.ts';
import { type ApiAnswer, createGroup, registerApplication } from '../support/console-api.ts';
import { type FleetMember, startFleet, type TestFleet, untilActive } from '../support/fleet.ts';
import { until } from '../support/host.ts';
import { createXksEndpoint } from '../support/xks-call.ts';

const contactSeconds = 40;
let fleet: TestFleet;
let one: FleetMember;
let two: FleetMember;
let three: FleetMember;
beforeAll(async () => {
  fleet = await startFleet(['one', 'two', 'three'], { store: `contact_seconds = ${contactSeconds}\n` });
  [one, two, three] = [fleet.member('one'), fleet.member('two'), fleet.member('three')];
  await untilActive(fleet, one, ['one', 'two', 'three']);
});
afterAll(() => fleet?.end());

const pendingOf = ({ headers }: ApiAnswer): readonly string[] =>
  String(headers['x-dke-pending-nodes'] ?? '')
    .split(',')
    .filter((name) => name !== '');
/**
 * Repeats the request while the answer also names another node, which is late on a busy machine.
 */
const untilOnlyThree = (ask: () => Promise<ApiAnswer>): Promise<ApiAnswer> =>
  until('an answer that names one node', async () => {
    const answer = await ask();
    return pendingOf(answer).join() === 'three' ? answer : undefined;
  });
/** Runs `work` while a node stands still. */
const whileStopped = async (member: FleetMember, work: () => Promise<void>): Promise<void> => {
  member.server.child.kill('SIGSTOP');
  try {
    await work();
  } finally {
    member.server.child.kill('SIGCONT');
  }
  await untilActive(fleet, one, ['one', 'two', 'three']);
};
const createVault = (member: FleetMember, name: string, key: string): Promise<ApiAnswer> =>
  member.api.send('POST', '/api/vaults', { name }, { 'idempotency-key': key });
const called = async (name: string): Promise<readonly Vault[]> =>
  (await one.api.call<{ items: Vault[] }>('GET', '/api/vaults?limit=1000')).items.filter(
    (vault) => vault.name === name,
  );

test('a repeated change that changes nothing names the node that has not received the first one', async () => {
  const { endpoint } = await createXksEndpoint({ api: one.api, server: one.server }, 'repeated');
  const path = `/api/endpoints/${endpoint.id}/disable`;
  await whileStopped(three, async () => {
    for (const member of [one, two, two]) {
      const answer = await untilOnlyThree(() => member.api.send('POST', path));
      expect(answer.status).toBe(200);
      const body = JSON.parse(answer.text) as { pendingNodes: string[]; pendingUntil: string };
      expect(body.pendingNodes).toEqual(['three']);
      // After pendingUntil, the named node cannot use the keys in its memory.
      const left = Date.parse(body.pendingUntil) - Date.now();
      expect(left).toBeLessThanOrEqual(contactSeconds * 1000);
      expect(answer.headers['x-dke-pending-until']).toBe(body.pendingUntil);
    }
  });
});

test('the answer to a request that another node has carried out names it as the first answer did', async () => {
  await whileStopped(three, async () => {
    const first = await createVault(one, 'replayed', 'replayed-key');
    expect(first.status).toBe(201);
    expect(pendingOf(first)).toContain('three');
    const again = await untilOnlyThree(() => createVault(two, 'replayed', 'replayed-key'));
    expect([again.status, again.headers['idempotent-replayed']]).toEqual([201, 'true']);
  });
  expect(await called('replayed')).toHaveLength(1);
});

test('a database that destroys a key: the answer and the agent name the node that has not received it', async () => {
  const application = await registerApplication(one.api, 'erp', await createGroup(one.api, 'databases'));
  const database = fleet.database('erp', application, 'connect_timeout_ms = 20000\ncall_timeout_ms = 60000\n');
  fleet.balancer.use([one.server.port]);
  expect(await database.call('open', { pin: 'x' })).toEqual({ rv: 'CKR_OK' });
  const { handle = 0 } = await database.call('generate', { label: 'ORACLE.TDE.HSM.MK.06AC' });
  await whileStopped(three, async () => {
    expect((await database.call('destroy', { handle })).rv).toBe('CKR_OK');
    await until('the line in the log', async () =>
      /"pendingNodes":"(two, )?three"/.test(logOfAgent()) ? true : undefined,
    );
  });
});
const logOfAgent = (): string =>
  readdirSync(join(fleet.folder, 'log'))
    .map((name) => readFileSync(join(fleet.folder, 'log', name), 'utf8'))
    .join('');

test('a node whose link is down: the change is made, the answer is 503, the key is kept, and nothing is made twice', async () => {
  const health = async (): Promise<string> => (await two.api.send('GET', '/health')).text;
  await expect.poll(health).toBe('{"status":"healthy"}');
  two.gate.cutLinks();
  try {
    await expect.poll(health).toBe('{"status":"degraded"}');
    const refused = await createVault(two, 'unconfirmed', 'unconfirmed-key');
    expect([refused.status, JSON.parse(refused.text)]).toMatchObject([503, { reason: 'unconfirmed' }]);
    expect(await called('unconfirmed')).toHaveLength(1);
    const [vault] = await called('unconfirmed');
    // Asked again there, it is as before; at another node, the outcome is there, by the key.
    expect((await createVault(two, 'unconfirmed', 'unconfirmed-key')).status).toBe(503);
    const created = await createVault(one, 'unconfirmed', 'unconfirmed-key');
    expect([created.status, created.headers['idempotent-replayed'], JSON.parse(created.text)]).toMatchObject([
      201,
      'true',
      { id: vault?.id },
    ]);
    // A change without a key, too.
    const disabled = await two.api.send('POST', `/api/vaults/${vault?.id}/disable`);
    expect([disabled.status, JSON.parse(disabled.text)]).toMatchObject([503, { reason: 'unconfirmed' }]);
    expect((await called('unconfirmed'))[0]?.state).toBe('disabled');
  } finally {
    two.gate.letLinks();
  }
  await expect.poll(health).toBe('{"status":"healthy"}');
  const again = async () => {
    const { status, headers } = await createVault(two, 'unconfirmed', 'unconfirmed-key');
    return [status, headers['idempotent-replayed']];
  };
  await expect.poll(again).toEqual([201, 'true']);
  expect(await called('unconfirmed')).toHaveLength(1);
});

test('a removed node that stands still is named until it can no longer use keys', async () => {
  const { endpoint } = await createXksEndpoint({ api: one.api, server: one.server }, 'removed');
  const id = (await fleet.nodes(one)).find(({ name }) => name === 'three')?.id ?? '';
  three.server.child.kill('SIGSTOP');
  try {
    await one.api.call('DELETE', `/api/nodes/${id}`);
    const path = `/api/endpoints/${endpoint.id}`;
    for (const { api } of [one, two]) await untilOnlyThree(() => api.send('POST', `${path}/disable`));
    await until('its contact to run out', async () =>
      pendingOf(await one.api.send('POST', `${path}/disable`)).length === 0 ? true : undefined,
    );
  } finally {
    three.server.child.kill('SIGCONT');
  }
  // The removed node does not use the keys in its memory: it refuses, or has ended.
  const reached = await new Promise<number | null>((resolve) => {
    request(new URL('/health', three.server.url), { ca: readFileSync(fleet.caFile), agent: false }, (answer) =>
      resolve(answer.resume().statusCode ?? 0),
    )
      .on('error', () => resolve(null))
      .end();
  });
  expect(reached).not.toBe(200);
});
