// Tokens and the permissions to create and revoke them: users cannot revoke tokens that they could
// not create, a break-glass token expires, and tokens that are removed from the database do not
// bring a new administrator.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Grant } from '../../../server/domain/access.ts';
import { inTenant } from '../../../server/domain/actor.ts';
import { administrator, openTestService } from '../../support/open-service.ts';
import { bytesOf, errorOf, everything, goodPassword, makeUser, originOf } from '../../support/people.ts';
import { freshService, restart } from '../../support/shared.ts';
import { queryStored } from '../../support/test-store.ts';

const opened = freshService();

const hour = 3_600_000;

test('a token is revoked by those who could give it, and by whose it is', async () => {
  const { tokens } = opened.operations;
  const { tenantId } = administrator;
  const within: Grant[] = [{ role: 'administrator', scope: null, tenantId }];
  const tenantAdministrator: Grant[] = [{ role: 'tenant-administrator', scope: null, tenantId }];
  const actor = { ...inTenant({ ...administrator, id: 'somebody' }, tenantId), reach: tenantId };
  const { record } = await tokens.create({ ...administrator, reach: tenantId }, everything, {
    name: 'a',
    grants: within,
  });
  expect(await errorOf(tokens.revoke(actor, tenantAdministrator, record.id))).toBe('forbidden');
  expect(await tokens.revoke({ ...actor, id: record.id }, tenantAdministrator, record.id)).toMatchObject({
    revokedAt: expect.any(Number),
  });
});

test('a token that a break-glass token makes ends within eight hours', async () => {
  const { tokens } = opened.operations;
  const glass: Grant[] = [{ role: 'break-glass', scope: null, tenantId: null }];
  const wanted = { name: 'left behind', grants: [{ role: 'auditor', scope: null, tenantId: null }] } as const;
  for (const expiresAt of [null, Date.now() + 9 * hour])
    expect(await errorOf(tokens.create(administrator, glass, { ...wanted, expiresAt }))).toBe('validation');
  const { record } = await tokens.create(administrator, glass, { ...wanted, expiresAt: Date.now() + hour });
  expect(record.expiresAt).toBeGreaterThan(Date.now());
});

test('a password reset leaves the API tokens of the user, unless they are to be revoked', async () => {
  const { users, signIn, tokens } = opened.operations;
  const { user } = await makeUser(opened.operations, 'Ada');
  const actor = { ...administrator, kind: 'user', id: user.id, name: user.name } as const;
  const { record } = await tokens.create(actor, user.grants, {
    name: 'own',
    grants: [...user.grants],
    ownerId: user.id,
  });
  const revokedAt = async () =>
    (await tokens.list(administrator, { limit: 100 })).items.find(({ id }) => id === record.id)?.revokedAt;
  const { invitation } = await users.resetPassword(administrator, everything, user.id);
  expect(await revokedAt()).toBeNull();
  await signIn.redeem(invitation?.token ?? '', bytesOf(goodPassword), originOf());
  await users.resetPassword(administrator, everything, user.id, { revokeTokens: true });
  expect(await revokedAt()).toEqual(expect.any(Number));
});

test('tokens that were removed from the database bring no new administrator token', async () => {
  const { folder } = opened;
  expect(opened.service.adminToken).toMatch(/^dke/);
  await opened.stop();
  await queryStored(folder, 'delete from api_tokens');
  await restart(opened, { acceptDatabase: true });
  expect(opened.service.adminToken).toBeUndefined();
});

test('of live tokens of one tenant and owner, one has a name: records tell them apart', async () => {
  const { tokens } = opened.operations;
  const { tenantId } = administrator;
  const auditor = (within: string | null): Grant[] => [{ role: 'auditor', scope: null, tenantId: within }];
  const create = (expiresAt: number | null = null) =>
    tokens.create(administrator, 'the service', { name: 'ci', grants: auditor(null), expiresAt });
  const { record } = await create();
  expect(await errorOf(create())).toBe('conflict');
  expect(await errorOf(tokens.create(administrator, 'the service', { name: 'ci', kind: 'metrics' }))).toBe('conflict');
  // A name may be used again for a token of a tenant, and for one of a person.
  await tokens.create({ ...administrator, reach: tenantId }, everything, { name: 'ci', grants: auditor(tenantId) });
  const { user } = await makeUser(opened.operations, 'Ada');
  const ada = { ...administrator, kind: 'user', id: user.id, name: user.name } as const;
  const own = { name: 'ci', grants: [...user.grants], ownerId: user.id };
  await tokens.create(ada, user.grants, own);
  expect(await errorOf(tokens.create(ada, user.grants, own))).toBe('conflict');
  // After a revocation the name is free again; of two concurrent creations one succeeds.
  await tokens.revoke(administrator, 'the service', record.id);
  const both = await Promise.allSettled([create(), create()]);
  expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
});

test('a first start that ends before the administrator token was shown leaves it to the next one, which puts another in its place', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-first-token-'));
  const shown: string[] = [];
  const crash = openTestService({
    folder,
    showFirstToken: (token) => {
      shown.push(token);
      throw new Error('the host is gone');
    },
  });
  await expect(crash).rejects.toThrow('the host is gone');
  const next = await openTestService({ folder, showFirstToken: (each) => void shown.push(each) });
  const [lost = '', token = ''] = shown;
  const { authenticateAdmin } = next.operations;
  expect(await errorOf(authenticateAdmin(lost, 'r', null))).toBe('unauthenticated');
  expect(await authenticateAdmin(token, 'r', null)).toMatchObject({ actor: { name: 'first administrator' } });
  await next.stop();
  const last = await openTestService({ folder, showFirstToken: (each) => void shown.push(each) });
  expect(shown.length).toBe(2);
  await last.remove();
});
