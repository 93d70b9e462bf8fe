// Tokens of earlier versions have no person in their row: at the first start it is taken from the
// audit log, where the log proves it. A record that was changed from outside makes no second
// approver.
import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openStore } from '../../../server/adapters/store/store.ts';
import { systemClock } from '../../../server/base/time.ts';
import { everyTenant } from '../../../server/domain/tenant.ts';
import { adoptPersons, personOf } from '../../../server/operations/access/identities.ts';
import { about, recordEvent } from '../../../server/operations/shared/record-event.ts';
import type { Store } from '../../../server/ports/store.ts';
import { folderOfTest } from '../../support/folders.ts';

let path: string;
let store: Store;
const makeToken = (id: string, actor: { readonly kind: 'user' | 'administrator'; readonly id: string }) =>
  store.write(async (tx) => {
    await tx.tokens.insert({
      ...{ id, tenantId: null, kind: 'api', name: `token ${id}`, grants: [], createdAt: 1, expiresAt: null },
      ...{ revokedAt: null, lastUsedAt: null, ownerId: null, integrity: 'ok', hash: `hash of ${id}`, personId: null },
    });
    const by = { ...actor, name: actor.id, requestId: `request of ${id}`, peer: null };
    const details = { name: `token ${id}`, kind: 'api', roles: [], expiresAt: null };
    await recordEvent(tx, 'token.created', by, about('token', { id, tenantId: 'tenant' }), details);
  });
const tamper = (statement: string): void => {
  const database = new DatabaseSync(path);
  database.exec(statement);
  database.close();
};
const personStored = async (id: string) => (await store.read.tokens.get(everyTenant, id))?.personId;

beforeEach(async () => {
  path = join(folderOfTest(), 'dke.db');
  store = await openStore({
    path,
    clock: systemClock,
    authenticateRow: (text) => createHmac('sha256', 'row key of the test').update(text).digest('hex'),
    onFatal: (error) => {
      throw error;
    },
  });
  await makeToken('of a user', { kind: 'user', id: 'ada' });
  await makeToken('of that token', { kind: 'administrator', id: 'of a user' });
  await makeToken('of a program', { kind: 'administrator', id: 'of no one' });
  await makeToken('of no one', { kind: 'administrator', id: 'setup' });
});
afterEach(() => store.close());

test('the person of each is the user who made it, also by other tokens, or the token itself', async () => {
  await adoptPersons(store);
  expect(await Promise.all(['of a user', 'of that token', 'of a program'].map(personStored))).toEqual([
    'ada',
    'ada',
    'of a program',
  ]);
});

test.each([
  ['another kind of actor', "update audit_events set actor_kind = 'service' where subject_id = 'of that token'"],
  ['another maker', "update audit_events set actor_id = 'setup' where subject_id = 'of that token'"],
  ['another maker of the maker', "update audit_events set actor_id = 'eve' where subject_id = 'of a user'"],
  ['no record', "update audit_events set subject_id = 'another' where subject_id = 'of that token'"],
  [
    'a record with its leaf',
    "update audit_events set actor_id = 'eve', leaf_hash = zeroblob(32) where subject_id = 'of a user'",
  ],
])('with %s, nothing is taken from the log, and nothing decided by the token', async (_, statement) => {
  tamper(statement);
  await adoptPersons(store);
  expect(await personStored('of that token')).toBeNull();
  await expect(personOf(store.read, 'of that token')).rejects.toMatchObject({ code: 'key-tampered' });
  // Others are not concerned.
  expect(await personStored('of a program')).toBe('of a program');
});
