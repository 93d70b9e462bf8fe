// What keeps a session alive: a person's requests, and every change. What a page asks on its own
// (`x-dke-own-request`) does not, so that an open page that no one uses is signed out.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { apiRoutes } from '../../../server/contract/api/index.ts';
import { type RouteRow, readsOnly } from '../../../server/contract/api/row.ts';
import { sessionCookie } from '../../../server/contract/api/sign-in-routes.ts';
import { ownRequestHeader } from '../../../server/fronts/api/authenticate.ts';
import { administrator } from '../../support/open-service.ts';
import { everything, makeUser } from '../../support/people.ts';
import { sharedApi, sharedService } from '../../support/shared.ts';
import { queryStored } from '../../support/test-store.ts';

const minute = 60_000;
const opened = sharedService({ toml: '[memory]\nallow_unlocked = true\n[people]\nsession_idle_minutes = 30\n' });
const api = sharedApi(opened);
beforeAll(() => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] });
});
afterAll(() => {
  vi.useRealTimers();
});

const own = { [ownRequestHeader]: '1' };
const origin = () => ({ origin: api.base });
const usedAt = async (): Promise<readonly number[]> =>
  (await opened.operations.sessions.list(administrator, {})).items.map((each) => each.usedAt);

let people = 0;
const open = async () => {
  people += 1;
  const { session } = await makeUser(opened.operations, `person-${people}`);
  const cookie = `${sessionCookie}=${session.value}`;
  const ask = async (headers: Readonly<Record<string, string>> = {}, method = 'GET', path = '/api/session') => {
    const { status } = await fetch(`${api.base}${path}`, { method, headers: { cookie, ...headers } });
    return status;
  };
  return { ask };
};

test('a page that asks on its own is signed out as if it did not ask', async () => {
  const { ask } = await open();
  const [before] = await usedAt();
  for (let at = 0; at < 29; at += 1) {
    vi.advanceTimersByTime(minute);
    expect([at, await ask(own)]).toEqual([at, 200]);
  }
  expect(await usedAt()).toEqual([before]);
  vi.advanceTimersByTime(minute);
  expect(await ask(own)).toBe(401);
});

test('a person who asks stays signed in', async () => {
  const { ask } = await open();
  for (let at = 0; at < 4; at += 1) {
    vi.advanceTimersByTime(29 * minute);
    expect([at, await ask()]).toEqual([at, 200]);
    expect(await usedAt()).toEqual([Date.now()]);
  }
});

test('a person who asks within a moment of the page stays signed in', async () => {
  const { ask } = await open();
  vi.advanceTimersByTime(29 * minute);
  expect(await ask(own)).toBe(200);
  expect(await ask()).toBe(200);
  expect(await usedAt()).toContain(Date.now());
});

test.each([
  ['a simulation of rules, by its row', '/api/endpoints/none/rules/simulate', false],
  ['a search for the requests of an event', '/api/requests/correlate', false],
  ['what a move would do, by its query', '/api/tde/applications/none/move?dryRun=true', false],
  ['a move', '/api/tde/applications/none/move', true],
  ['a move that says so', '/api/tde/applications/none/move?dryRun=false', true],
  ['a change whose query says that it is none', '/api/vaults?dryRun=true', true],
])('the row decides whether a page that asks on its own uses the session: %s', async (_, path, isUse) => {
  const { ask } = await open();
  const before = Date.now();
  vi.advanceTimersByTime(29 * minute);
  expect(await ask({ ...own, ...origin() }, 'POST', path)).not.toBe(401);
  const times = await usedAt();
  expect([times.includes(before), times.includes(Date.now())]).toEqual([!isUse, isUse]);
  // A request of a person is one whatever its row says.
  expect(await ask(origin(), 'POST', path)).not.toBe(401);
  expect(await usedAt()).toContain(Date.now());
  vi.advanceTimersByTime(31 * minute);
});

test('what a page asks on its own, by a method other than GET, is a row that only reads', () => {
  const found: string[] = [];
  const folder = join(import.meta.dirname, '../../../server/clients/web/src');
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((each) => each.endsWith('.tsx')))
    for (const [, query = ''] of readFileSync(join(folder, name), 'utf8').matchAll(/useQuery\(\{(.*?)\n {2,4}\}\)/gs))
      if (/method: '(?:POST|PUT|PATCH|DELETE)'/.test(query)) found.push(name);
  // A page that is added here asks for a row that only reads.
  expect(found.toSorted()).toEqual([
    'applications/move-application.tsx',
    'endpoints/endpoint-rules.tsx',
    'vaults/vault-actions.tsx',
  ]);
  const { applications, endpoints, vaults } = apiRoutes;
  const rows: readonly RouteRow[] = [applications.move, endpoints.simulateRules, vaults.delete];
  expect(rows.map((row) => readsOnly(row, new URLSearchParams('dryRun=true')))).toEqual([true, true, true]);
  expect(rows.map((row) => readsOnly(row, new URLSearchParams()))).toEqual([false, true, false]);
});

test('a change is a use, whatever its header says', async () => {
  const { ask } = await open();
  vi.advanceTimersByTime(29 * minute);
  // An auditor may not, and the caller was known before.
  expect(await ask({ ...own, ...origin() }, 'POST', '/api/vaults')).toBe(403);
  expect(await usedAt()).toContain(Date.now());
  vi.advanceTimersByTime(29 * minute);
  expect(await ask(own)).toBe(200);
});

test('a request with a token is a use whatever its header says: the token moves to the new key', async () => {
  const { tokens } = opened.operations;
  const { token, record } = await tokens.create(administrator, everything, {
    name: 'a program that copies a page',
    grants: [{ role: 'auditor', scope: null, tenantId: null }],
  });
  const hash = async () =>
    String((await queryStored(opened.folder, 'select hash from api_tokens where id = ?', record.id))[0]?.hash);
  const before = await hash();
  await tokens.rotateKey(administrator, everything, {});
  expect(await hash()).toBe(before);
  const { status } = await fetch(`${api.base}/api/vaults`, { headers: { authorization: `Bearer ${token}`, ...own } });
  expect(status).toBe(200);
  expect([before.slice(0, 2), (await hash()).slice(0, 2)]).toEqual(['1.', '2.']);
});
