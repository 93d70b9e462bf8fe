// What keeps a session alive: a person's requests, and every change. What a page asks on its own
// (`x-dke-own-request`) does not, so that an open page that no one uses is signed out.
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { sessionCookie } from '../../../server/contract/api/sign-in-routes.ts';
import { ownRequestHeader } from '../../../server/fronts/api/authenticate.ts';
import { administrator } from '../../support/open-service.ts';
import { makeUser } from '../../support/people.ts';
import { sharedApi, sharedService } from '../../support/shared.ts';

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

test('a change is a use, whatever its header says: a page makes none on its own', async () => {
  const { ask } = await open();
  vi.advanceTimersByTime(29 * minute);
  // An auditor may not, and the caller was known before.
  expect(await ask({ ...own, ...origin() }, 'POST', '/api/vaults')).toBe(403);
  expect(await usedAt()).toContain(Date.now());
  vi.advanceTimersByTime(29 * minute);
  expect(await ask(own)).toBe(200);
});
