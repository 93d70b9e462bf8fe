// Which person is behind a token stands in its row, under the code: a writer of the database who
// changes the record of who made it for a moment makes no second approver.
import { beforeEach, expect, test } from 'vitest';
import { ServiceError } from '../../../server/base/service-error.ts';
import type { Role } from '../../../server/domain/access.ts';
import { inTenant, type TenantActor } from '../../../server/domain/actor.ts';
import { administrator, masterKey, registerCaller } from '../../support/open-service.ts';
import { makeUser, waits } from '../../support/people.ts';
import { freshService } from '../../support/shared.ts';
import { queryStored } from '../../support/test-store.ts';

const opened = freshService();
const code = (wanted: string) => expect.objectContaining({ name: ServiceError.name, code: wanted });
const tokenBy = async (by: TenantActor, name: string, ...roles: readonly Role[]): Promise<TenantActor> => {
  const grants = roles.map((role) => ({ role, scope: null, tenantId: administrator.tenantId }));
  const { token } = await opened.operations.tokens.create(by, 'the service', { name, grants });
  const { actor } = await opened.operations.authenticateAdmin(token, `request of ${name}`, null);
  return inTenant(actor, administrator.tenantId);
};
const personOf = async ({ id }: TenantActor): Promise<unknown> =>
  (await queryStored(opened.folder, 'select person_id from api_tokens where id = ?', id))[0]?.person_id;

let user: TenantActor;
let ofUser: TenantActor;
let ofToken: TenantActor;
let requester: TenantActor;
let destroy: (by: TenantActor) => Promise<unknown>;
let keyState: () => Promise<string>;
beforeEach(async () => {
  const made = await makeUser(opened.operations, 'twice', 'key-approver');
  const own = { kind: 'user' as const, id: made.user.id, name: 'twice', requestId: 'request of twice', peer: null };
  user = inTenant(own, administrator.tenantId);
  ofUser = await tokenBy(user, 'of the user', 'key-approver', 'key-destroyer');
  ofToken = await tokenBy(ofUser, 'of that token', 'key-approver');
  requester = await tokenBy(administrator, 'requester', 'key-destroyer');
  const { caller, groupId } = await registerCaller(opened, 'db');
  const { id: keyId } = await opened.operations.tde.generateKey(caller, masterKey('MK'));
  const { vaultId } = await opened.operations.tdeGroups.get(administrator, groupId);
  for (const name of ['one', 'two']) await tokenBy(administrator, name, 'key-approver');
  const rule = { required: 2, approvers: null, actions: ['destroy'], databases: 'allowed' } as const;
  await opened.operations.dualControl.change(administrator, vaultId, rule);
  destroy = (by) => opened.operations.masterKeys.destroy(by, caller.application.id, keyId);
  keyState = async () => (await opened.operations.keys.get(administrator, keyId)).state;
});

test('the person behind a token is the user who made it, also by other tokens, or the token itself', async () => {
  expect(await personOf(ofUser)).toBe(user.id);
  expect(await personOf(ofToken)).toBe(user.id);
  expect(await personOf(requester)).toBe(requester.id);
});

test('a changed record of who made a token makes no second approver of its maker', async () => {
  const request = await waits(destroy(requester));
  await opened.operations.approvals.approve(user, request.id, null);
  for (const each of [ofUser, ofToken]) {
    const put = (actorKind: string) =>
      queryStored(
        opened.folder,
        "update audit_events set actor_kind = ? where subject_id = ? and kind = 'token.created'",
        ...[actorKind, each.id],
      );
    const [{ actor_kind: before } = {}] = await queryStored(
      opened.folder,
      "select actor_kind from audit_events where subject_id = ? and kind = 'token.created'",
      each.id,
    );
    await put('service');
    await expect(opened.operations.approvals.approve(each, request.id, null)).rejects.toEqual(code('key-tampered'));
    await put(String(before));
    await expect(opened.operations.approvals.approve(each, request.id, null)).rejects.toEqual(code('conflict'));
  }
  expect(await keyState()).toBe('active');
});

test('nothing is decided about a request whose requester is a token with a changed row', async () => {
  const request = await waits(destroy(ofUser));
  const put = (personId: unknown) =>
    queryStored(opened.folder, 'update api_tokens set person_id = ? where id = ?', String(personId), ofUser.id);
  await put(ofUser.id);
  await expect(opened.operations.approvals.approve(user, request.id, null)).rejects.toEqual(code('key-tampered'));
  await put(user.id);
  await expect(opened.operations.approvals.approve(user, request.id, null)).rejects.toEqual(code('forbidden'));
});
