// Sign-ins under way: a writer of the database who changes or makes such a row, and knows every key
// that a snapshot has had, brings no one in and gives no roles.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { openStore } from '../../../server/adapters/store/store.ts';
import { serviceTenantId } from '../../../server/base/ids.ts';
import { systemClock } from '../../../server/base/time.ts';
import { createAttempts } from '../../../server/operations/people/attempts.ts';
import { createClaimedRoles } from '../../../server/operations/people/claimed-roles.ts';
import type { StoredSession } from '../../../server/ports/people.ts';
import type { Store } from '../../../server/ports/store.ts';
import { sharedFolder } from '../../support/folders.ts';

const folder = sharedFolder();
let now = 1_000;
const clock = { ...systemClock, now: () => now };
const ring = {
  hashToken: (purpose: string, text: string) => `${purpose} ${text}`,
  authenticateAttempt: (text: string) => `code of ${text.length} ${text}`.replaceAll('\n', ' '),
} as never;
const attempts = createAttempts({ ring, clock });
const roles = createClaimedRoles(attempts);
const grants = [{ role: 'auditor', scope: null, tenantId: null }] as const;
const session = {
  holder: { kind: 'user', id: 'ada' },
  hash: 'of her session',
  method: 'openid',
  proved: 1,
} as StoredSession;
let store: Store;

beforeAll(async () => {
  store = await openStore({ path: join(folder, 'dke.db'), clock, authenticateRow: () => '', onFatal: () => undefined });
});
afterAll(() => store.close());
beforeEach(async () => {
  now = 1_000;
  await store.write((tx) => roles.forget(tx, 'ada'));
  await store.write((tx) => roles.keep(tx, 'ada', 'of her session', grants));
});
const find = (of = session) => roles.find(store.read, of);
const change = (statement: string): void => {
  const database = new DatabaseSync(join(folder, 'dke.db'));
  database.exec(statement);
  database.close();
};

test('as they were kept they are found: by their session, until they end', async () => {
  expect(await find()).toEqual(grants);
  expect(await find({ ...session, hash: 'of another session' })).toBeUndefined();
  now += 15 * 60_000;
  expect(await find()).toBeUndefined();
});

test.each([
  ['its roles', `update sign_in_attempts set data = replace(data, 'auditor', 'administrator')`],
  ['its session', `update sign_in_attempts set data = replace(data, 'of her session', 'of another session')`],
  ['its kind', `update sign_in_attempts set kind = 'openid'`],
  ['its user', `update sign_in_attempts set user_id = 'bob'`],
  ['no user', `update sign_in_attempts set user_id = null`],
  ['its end', `update sign_in_attempts set expires_at = expires_at + 1`],
  ['its code', `update sign_in_attempts set data = substr(data, instr(data, char(10)) + 1)`],
  [
    'the place of another one',
    `update sign_in_attempts set hash = hash || 'x';
     insert into sign_in_attempts select substr(hash, 1, length(hash) - 1), kind, user_id, data, expires_at + 1 from sign_in_attempts`,
  ],
])('a row of which %s was changed is none', async (_, statement) => {
  change(statement);
  expect(await find()).toBeUndefined();
  expect(await find({ ...session, hash: 'of another session' })).toBeUndefined();
  change('delete from sign_in_attempts');
});

test('a code that the row would have had under another text is none', async () => {
  change(`update sign_in_attempts set data = '${serviceTenantId}' || char(10) || data`);
  expect(await find()).toBeUndefined();
});
