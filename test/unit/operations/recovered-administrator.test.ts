// The alert about an administrator token that was created on the host: neither the token nor
// anything that it has given ends it, or acknowledges it.
import { beforeEach, expect, test } from 'vitest';
import { recoverAdministrator } from '../../../server/app/host/offline.ts';
import type { TenantActor } from '../../../server/domain/actor.ts';
import { administrator } from '../../support/open-service.ts';
import { bytesOf, errorOf, everything, goodPassword, makeUser, originOf } from '../../support/people.ts';
import { freshService, restart } from '../../support/shared.ts';

const opened = freshService();
const asToken = (id: string): TenantActor => ({ ...administrator, tenantId: administrator.tenantId, id, name: id });
const asUser = (id: string): TenantActor => ({ ...asToken(id), kind: 'user' });

const open = async () => {
  await opened.service.checkNotifications();
  return (await opened.operations.notifications.list(administrator, { kind: 'administrator.recovered' })).items;
};
const create = async (by: TenantActor, name: string): Promise<TenantActor> => {
  const { record } = await opened.operations.tokens.create(by, everything, { name, grants: everything });
  return asToken(record.id);
};
const revoke = (by: TenantActor, id: string) => opened.operations.tokens.revoke(by, everything, id);

/** An administrator and a user from before; then the token of the host. */
let before: TenantActor;
let ada: TenantActor;
let recovered: TenantActor;
beforeEach(async () => {
  before = await create(administrator, 'before');
  ada = asUser((await makeUser(opened.operations, 'Ada', 'administrator')).user.id);
  await opened.stop();
  await recoverAdministrator(opened.config, () => Promise.reject(new Error('no passphrase is needed')));
  await restart(opened);
  const { items } = await opened.operations.tokens.list(administrator, { limit: 100 });
  recovered = asToken(items.find(({ name }) => name.startsWith('made on the host'))?.id ?? '');
});

test('it is raised although the token has revoked itself before the first check, with another administrator', async () => {
  await create(recovered, 'another');
  await revoke(recovered, recovered.id);
  expect((await open()).map(({ subject }) => subject.id)).toEqual([recovered.id]);
});

test('what the token has created, over any number of steps, does not end it', async () => {
  expect(await open()).toHaveLength(1);
  const second = await create(await create(recovered, 'first'), 'second');
  const { user } = await opened.operations.users.create(second, everything, { name: 'Eve', grants: everything });
  await revoke(asUser(user.id), recovered.id);
  expect(await open()).toHaveLength(1);
});

test('a user whom the token has invited again does not end it, although that user then sets a password', async () => {
  const { users, signIn } = opened.operations;
  const { invitation } = await users.resetPassword(recovered, everything, ada.id);
  await signIn.redeem(invitation?.token ?? '', bytesOf(goodPassword), originOf());
  await revoke(ada, recovered.id);
  expect(await open()).toHaveLength(1);
});

test('an administrator from before ends it by the revocation, also with a token that was created since', async () => {
  expect(await open()).toHaveLength(1);
  await revoke(await create(ada, 'of Ada'), recovered.id);
  expect(await open()).toEqual([]);
});

test('only who does not act by the token acknowledges it', async () => {
  const { notifications } = opened.operations;
  const [alert] = await open();
  const id = alert?.id ?? '';
  const given = await create(recovered, 'given');
  for (const actor of [recovered, given]) expect(await errorOf(notifications.acknowledge(actor, id))).toBe('forbidden');
  expect((await open())[0]).toMatchObject({ acknowledgedAt: null });
  expect(await notifications.acknowledge(before, id)).toMatchObject({ acknowledgedBy: before.name });
});
