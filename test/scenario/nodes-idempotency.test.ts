// One request under one Idempotency-Key at several nodes: one is carried out, and every
// answer is the same, also when a node dies in the meantime. And changes under the same If-Match:
// one is carried out.
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Vault } from '../../server/contract/api/vaults-routes.ts';
import type { ApiAnswer } from '../support/console-api.ts';
import { type FleetMember, startFleet, type TestFleet, untilActive } from '../support/fleet.ts';

let fleet: TestFleet;
let one: FleetMember;
let two: FleetMember;
beforeAll(async () => {
  fleet = await startFleet(['one', 'two']);
  one = fleet.member('one');
  two = fleet.member('two');
  await untilActive(fleet, one, ['one', 'two']);
});
afterAll(() => fleet?.end());

const create = (member: FleetMember, name: string, key: string): Promise<ApiAnswer> =>
  member.api.send('POST', '/api/vaults', { name }, { 'idempotency-key': key });
const named = async (start: string): Promise<readonly Vault[]> =>
  (await one.api.call<{ items: Vault[] }>('GET', '/api/vaults?limit=1000')).items.filter(({ name }) =>
    name.startsWith(start),
  );

test('asked at both nodes at once, one is made, and all answers are the same', async () => {
  const keys = Array.from({ length: 12 }, (_, at) => `both ${at}`);
  const answers = await Promise.all(
    keys.map((name, at) => Promise.all([one, two, two, one].map((member) => create(member, name, `key-${at}`)))),
  );
  for (const [at, of] of answers.entries()) {
    expect(of.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    expect(new Set(of.map(({ text }) => text)).size).toBe(1);
    expect(new Set(of.map(({ headers }) => headers.location)).size).toBe(1);
    expect(of.filter(({ headers }) => headers['idempotent-replayed'] === undefined)).toHaveLength(1);
    expect(JSON.parse(of[0]?.text ?? '')).toMatchObject({ name: `both ${at}` });
  }
  expect((await named('both ')).map(({ name }) => name).toSorted()).toEqual(keys.toSorted());
});

test('of changes of the same thing under the same If-Match, at both nodes at once, one is carried out', async () => {
  const made = await create(one, 'contested', 'contested');
  const { id } = JSON.parse(made.text) as Vault;
  for (const action of ['disable', 'enable', 'disable', 'enable', 'disable']) {
    const { etag } = (await one.api.send('GET', `/api/vaults/${id}`)).headers;
    await expect.poll(async () => (await two.api.send('GET', `/api/vaults/${id}`)).headers.etag).toBe(etag);
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, at) =>
        (at % 2 === 0 ? one : two).api.send('POST', `/api/vaults/${id}/${action}`, undefined, {
          'if-match': String(etag),
        }),
      ),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...Array(7).fill(412)]);
  }
});

test('another request under the key is refused by every node', async () => {
  expect((await create(one, 'first', 'a-key')).status).toBe(201);
  expect((await create(two, 'second', 'a-key')).status).toBe(409);
  expect(await named('second')).toEqual([]);
});

test('a secret is shown by one node, once; the other tells where what it made is', async () => {
  const body = { name: 'of both', kind: 'metrics' };
  const ask = (member: FleetMember) => member.api.send('POST', '/api/tokens', body, { 'idempotency-key': 'a-secret' });
  const both = await Promise.all([ask(one), ask(two)]);
  expect(both.map(({ status }) => status).toSorted()).toEqual([201, 409]);
  const [shown, repeated] = both.toSorted((a, b) => a.status - b.status);
  expect(repeated?.headers.location).toBe(shown?.headers.location);
});

test('a node dies at any moment of many creates: asked again at the other one, each is made once', async () => {
  const names = Array.from({ length: 40 }, (_, at) => `dies ${at}`);
  const first = names.map((name) => create(one, name, name.replace(' ', '-')).catch(() => null));
  // Some have an answer when it ends.
  await Promise.race(first);
  await one.stop('SIGKILL');
  const before = await Promise.all(first);
  expect(before.some((answer) => answer?.status === 201)).toBe(true);
  await one.start();
  const again = await Promise.all(names.map((name) => create(two, name, name.replace(' ', '-'))));
  for (const [at, { status, text }] of again.entries()) {
    const known = before[at];
    // A request that succeeded in its last moment, and whose answer was lost, is not carried out
    // again either.
    if (status === 409) expect(JSON.parse(text)).toMatchObject({ hint: expect.stringContaining('--request-id') });
    else expect(status).toBe(201);
    if (known?.status === 201 && status === 201) expect(text).toBe(known.text);
  }
  const made = await named('dies ');
  expect(made.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
});

test('a repeat after a restart of every node gets the first answer', async () => {
  const first = await create(one, 'restarted', 'restart-key');
  expect(first.status).toBe(201);
  await one.stop();
  await two.stop();
  await two.start();
  const again = await create(two, 'restarted', 'restart-key');
  expect([again.status, again.text, again.headers['idempotent-replayed']]).toEqual([201, first.text, 'true']);
});
