// The key that hashes API tokens is rotated: tokens stay valid and are stored under the new key at
// their next use, until the former key ends; after a compromise all tokens end at once.
import { expect, test } from 'vitest';
import { administrator } from '../../support/open-service.ts';
import { bytesOf, errorOf, everything, goodPassword, makeUser, originOf } from '../../support/people.ts';
import { freshService, restart } from '../../support/shared.ts';
import { queryStored } from '../../support/test-store.ts';

const opened = freshService();

const administratorGrant = { role: 'administrator', scope: null, tenantId: null } as const;
const auditorGrant = { role: 'auditor', scope: null, tenantId: null } as const;
const make = (name: string, grant: typeof administratorGrant | typeof auditorGrant = auditorGrant) =>
  opened.operations.tokens.create(administrator, everything, { name, grants: [grant] });
const use = async (token: string) => (await opened.operations.authenticateAdmin(token, 'call', null)).actor.name;
const rotate = (compromised = false) => opened.operations.tokens.rotateKey(administrator, everything, { compromised });
const end = (force = false) => opened.operations.tokens.endFormerKey(administrator, everything, { force });
const keys = async () =>
  (
    await queryStored(
      opened.folder,
      "select version, record is null as gone from key_records where class = 'api-token-hash' order by version",
    )
  ).map(({ version, gone }) => [Number(version), Boolean(gone)]);
const hashOf = async (id: string) =>
  String((await queryStored(opened.folder, `select hash from api_tokens where id = '${id}'`))[0]?.hash);
const audited = async (kind: 'token.key-rotated' | 'token.former-key-ended') =>
  (await opened.operations.audit.list(administrator, { kind })).items.map(({ details }) => details);

test('tokens stay valid and move to the new key at their next use; the former key ends when all have', async () => {
  const [used, unused, revoked] = [await make('used'), await make('unused'), await make('revoked')];
  const metrics = await opened.operations.tokens.create(administrator, everything, { name: 'graphs', kind: 'metrics' });
  await opened.operations.tokens.revoke(administrator, everything, revoked.record.id);
  const before = await hashOf(used.record.id);
  const { tokensLeft } = await rotate();
  expect(await hashOf(used.record.id)).toBe(before);
  expect([await use(used.token), await use(used.token)]).toEqual(['used', 'used']);
  const after = await hashOf(used.record.id);
  expect([before.slice(0, 2), after.slice(0, 2)]).toEqual(['1.', '2.']);
  expect(after.slice(2)).not.toBe(before.slice(2));
  expect(await errorOf(use(revoked.token))).toBe('unauthenticated');
  await opened.operations.authenticateMetrics(metrics.token);
  expect(await hashOf(metrics.record.id)).toMatch(/^2\.[0-9a-f]{64}$/);
  const made = await make('made since');
  expect(await hashOf(made.record.id)).toMatch(/^2\.[0-9a-f]{64}$/);

  await expect(end()).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining('unused') });
  // Nothing is lost over a rotation of the root key, over a restart, nor over a second rotation in
  // between.
  const { root } = opened.operations;
  await root.rotate(administrator);
  await expect
    .poll(() => root.get(administrator), { timeout: 60_000 })
    .toMatchObject({ rotating: false, epoch: expect.toSatisfy((epoch: number) => epoch > 1) });
  await restart(opened);
  expect(await use(made.token)).toBe('made since');
  await rotate();
  expect(await keys()).toEqual([
    [1, false],
    [2, false],
    [3, false],
  ]);
  const { items } = await opened.operations.tokens.list(administrator, { limit: 100 });
  expect(items.filter(({ revokedAt }) => revokedAt === null).length).toBe(tokensLeft + 1);
  expect([await use(unused.token), await use(used.token), await use(made.token)]).toEqual([
    'unused',
    'used',
    'made since',
  ]);
  expect(await hashOf(unused.record.id)).toMatch(/^3\./);

  // What was not used ends: the first token of the service, and the one for metrics.
  await expect(end()).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining('graphs') });
  await make('administrator', administratorGrant);
  const ended = await end(true);
  expect(ended.tokensEnded).toBeGreaterThan(0);
  expect(await errorOf(opened.operations.authenticateMetrics(metrics.token))).toBe('unauthenticated');
  expect([await use(unused.token), await use(used.token)]).toEqual(['unused', 'used']);
  expect(await keys()).toEqual([
    [1, true],
    [2, true],
    [3, false],
  ]);
  expect(await end()).toEqual({ tokensEnded: 0, tokensLeft: 0 });
  expect(await audited('token.former-key-ended')).toEqual([{ tokensEnded: ended.tokensEnded }]);
  expect(await audited('token.key-rotated')).toHaveLength(2);
  await restart(opened);
  expect(await use(unused.token)).toBe('unused');
});

test('after a compromise all tokens end at once, unless no administrator would remain', async () => {
  const token = await make('a program');
  const administering = await make('administrator', administratorGrant);
  await expect(rotate(true)).rejects.toMatchObject({ code: 'conflict' });
  expect([await use(token.token), await use(administering.token)]).toEqual(['a program', 'administrator']);
  expect(await keys()).toEqual([[1, false]]);
  expect(await audited('token.key-rotated')).toEqual([]);

  await makeUser(opened.operations, 'Ada', 'administrator');
  const { sessions, signIn } = opened.operations;
  const session = await sessions.startByToken(token.token, originOf());
  const { tokensEnded } = await rotate(true);
  expect(tokensEnded).toBeGreaterThanOrEqual(2);
  for (const each of [token, administering]) expect(await errorOf(use(each.token))).toBe('unauthenticated');
  expect(await errorOf(sessions.startByToken(token.token, originOf()))).toBe('unauthenticated');
  expect(await keys()).toEqual([
    [1, true],
    [2, false],
  ]);
  expect(await audited('token.key-rotated')).toEqual([{ tokensEnded, tokensLeft: 0 }]);
  // Its user is another one than the token that ended: a person signs in as before.
  expect((await signIn.byPassword('Ada', bytesOf(goodPassword), originOf())).sessionId).not.toBe(session.sessionId);
  expect(await use((await make('after')).token)).toBe('after');
});

test('those who could not give a token its roles do not end it', async () => {
  await make('administrator', administratorGrant);
  await makeUser(opened.operations, 'Ada', 'administrator');
  const own = [{ role: 'tenant-administrator', scope: null, tenantId: null }] as const;
  const attempt = opened.operations.tokens.rotateKey({ ...administrator, id: 'other' }, own, { compromised: true });
  await expect(attempt).rejects.toMatchObject({ code: 'forbidden' });
  expect(await keys()).toEqual([[1, false]]);
});
