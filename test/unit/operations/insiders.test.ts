// What an insider with some right must not reach: roles that outlast an emergency, the identity of
// an approver, sessions of those who may do more.
import type { SQLInputValue } from 'node:sqlite';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Grant, Role } from '../../../server/domain/access.ts';
import { inTenant, type TenantActor } from '../../../server/domain/actor.ts';
import { ApprovalNeeded } from '../../../server/domain/approval.ts';
import type { DualControlRule } from '../../../server/domain/dual-control.ts';
import { administrator, instance, masterKey, toLabel } from '../../support/open-service.ts';
import { bytesOf, errorOf, everything, goodPassword, inviteUser, makeUser, originOf } from '../../support/people.ts';
import { sharedService } from '../../support/shared.ts';
import { actorIn, handOf, type SnapshotHand } from '../../support/snapshots.ts';
import { queryStored } from '../../support/test-store.ts';

const hour = 3_600_000;
const opened = sharedService({
  toml: '[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n[people]\nsecond_factor = "optional"\n',
});
let hand: SnapshotHand;
beforeAll(async () => {
  hand = await handOf(opened);
});

const grant = (role: Role, tenantId: string | null = null): Grant => ({ role, scope: null, tenantId });

describe('a break-glass token', () => {
  let actor: TenantActor;
  let own: readonly Grant[];
  let endsAt: number;
  beforeAll(async () => {
    endsAt = Date.now() + hour;
    const { token } = await opened.operations.tokens.create(administrator, everything, {
      name: 'emergency',
      grants: [grant('break-glass')],
      expiresAt: endsAt,
    });
    const found = await opened.operations.authenticateAdmin(token, 'call-1', null);
    own = found.grants;
    actor = { ...administrator, ...found.actor };
  });
  let made = 0;
  const make = (by: readonly Grant[], roles: readonly Role[], expiresAt: number | null) =>
    opened.operations.tokens.create(actor, by, {
      name: `left behind ${++made}`,
      grants: roles.map((role) => grant(role)),
      expiresAt,
    });

  test('makes no token that outlasts it: not another one, which would make another one', async () => {
    expect(await errorOf(make(own, ['break-glass'], endsAt + hour))).toBe('validation');
    expect(await errorOf(make(own, ['auditor'], endsAt + 1))).toBe('validation');
    expect((await make(own, ['break-glass'], endsAt)).record.expiresAt).toBe(endsAt);
  });
  test('with a second role creates no token that the second role could not create', async () => {
    const mixed = [...own, grant('auditor')];
    expect(await errorOf(make(mixed, ['administrator'], null))).toBe('validation');
    expect((await make(mixed, ['key-manager'], endsAt)).record.expiresAt).toBe(endsAt);
    expect((await make([...own, ...everything], ['auditor'], null)).record.expiresAt).toBeNull();
  });
  test('gives no role that gives roles but its own: with that, its holder would give others permanently', async () => {
    for (const roles of [['administrator'], ['break-glass', 'administrator']] as const)
      expect(await errorOf(make(own, roles, endsAt))).toBe('validation');
    const { tenantId } = administrator;
    const within = { name: 'left behind', grants: [grant('tenant-administrator', tenantId)], expiresAt: endsAt };
    expect(await errorOf(opened.operations.tokens.create(actor, own, within))).toBe('validation');
  });
  test('gives no user a role or a way to sign in: a user does not expire', async () => {
    const { users } = opened.operations;
    const { user } = await inviteUser(opened.operations, 'left-behind', 'administrator');
    const { displayName, email, subject, mustChangePassword } = user;
    const change = { displayName, email, subject, mustChangePassword };
    const left = { name: 'another', grants: [grant('administrator')] };
    for (const work of [
      () => users.create(actor, own, left),
      () => users.update(actor, own, user.id, { ...change, grants: [grant('administrator'), grant('auditor')] }),
      () => users.update(actor, own, user.id, { ...change, grants: user.grants, subject: 'emergency' }),
      () => users.resetPassword(actor, own, user.id),
      () => users.removeFactors(actor, own, user.id),
    ])
      expect(await errorOf(work())).toBe('forbidden');
    await users.disable(actor, own, user.id);
    expect(await errorOf(users.enable(actor, own, user.id))).toBe('forbidden');
    expect((await users.enable(administrator, everything, user.id)).state).toBe('active');
  });
});

describe('an approver', () => {
  const rule = (more: Partial<DualControlRule>): DualControlRule => ({
    required: 1,
    approvers: null,
    actions: ['destroy'],
    databases: 'allowed',
    ...more,
  });
  /** A vault with a key, under the rule. */
  const governed = async (name: string, wanted: DualControlRule) => {
    const { vaults, keys, dualControl } = opened.operations;
    const vault = await vaults.create(administrator, { name });
    const key = await keys.create(administrator, { name, vaultId: vault.id });
    await dualControl.change(administrator, vault.id, wanted);
    return { vaultId: vault.id, keyId: key.id };
  };
  const becomes = async (id: string, invitation: string): Promise<TenantActor> => {
    const { actor } = await opened.operations.signIn.redeem(invitation, bytesOf(goodPassword), originOf());
    expect(actor.id).toBe(id);
    return inTenant(actor, administrator.tenantId);
  };

  test('whom a rule names is not impersonated by a reset: the others must agree to name them again', async () => {
    const { users, dualControl } = opened.operations;
    const { user: anna } = await makeUser(opened.operations, 'anna', 'key-approver');
    const { user: bert } = await makeUser(opened.operations, 'bert', 'key-approver');
    const named = rule({ approvers: [anna.id, bert.id] });
    const { vaultId } = await governed('named', named);
    const { displayName, email, mustChangePassword, grants } = anna;
    const asSomebody = { displayName, email, mustChangePassword, grants, subject: 'of-somebody' };
    for (const work of [
      () => users.resetPassword(administrator, everything, anna.id),
      () => users.removeFactors(administrator, everything, anna.id),
      () => users.update(administrator, everything, anna.id, asSomebody),
    ])
      expect(await errorOf(work())).toBe('conflict');
    await dualControl.change(administrator, vaultId, rule({ approvers: [bert.id] }));
    await users.resetPassword(administrator, everything, anna.id);
    await expect(dualControl.change(administrator, vaultId, named)).rejects.toBeInstanceOf(ApprovalNeeded);
  });

  test('whom a rule names is not impersonated either while the database hides where that stands', async () => {
    const { users } = opened.operations;
    const { user: emil } = await makeUser(opened.operations, 'emil', 'key-approver');
    const { vaultId } = await governed('hidden', rule({ approvers: [emil.id] }));
    const { displayName, email, mustChangePassword, grants } = emil;
    const asSomebody = { displayName, email, mustChangePassword, grants, subject: 'of-another' };
    const refusals = async (): Promise<readonly unknown[]> => [
      await errorOf(users.resetPassword(administrator, everything, emil.id)),
      await errorOf(users.removeFactors(administrator, everything, emil.id)),
      await errorOf(users.update(administrator, everything, emil.id, asSomebody)),
    ];
    const terms = 'from search_terms where term = ?';
    expect(await queryStored(opened.folder, `select scope ${terms}`, emil.id)).toContainEqual({ scope: '@approvers' });
    await queryStored(opened.folder, `delete ${terms}`, emil.id);
    expect(await refusals()).toEqual(['conflict', 'conflict', 'conflict']);

    const [before] = await queryStored(opened.folder, 'select dual_control as rule from vaults where id = ?', vaultId);
    const put = (value: unknown) =>
      queryStored(opened.folder, 'update vaults set dual_control = ? where id = ?', value as SQLInputValue, vaultId);
    await put(null);
    expect(await refusals()).toEqual(['key-tampered', 'key-tampered', 'key-tampered']);
    // What decides nothing about who the person is does not ask.
    const renamed = { displayName: 'Emil', email, mustChangePassword, grants, subject: null };
    expect((await users.update(administrator, everything, emil.id, renamed)).displayName).toBe('Emil');
    await put(before?.rule);
  });

  test('whose password was reset after a request was made does not decide on it', async () => {
    const { users, keys, approvals, tokens } = opened.operations;
    const { user: carla } = await makeUser(opened.operations, 'carla', 'key-approver');
    const { keyId } = await governed('any', rule({}));
    const { record } = await tokens.create(administrator, everything, { name: 'asks', grants: [grant('key-manager')] });
    const asks = { ...administrator, id: record.id };
    await expect(keys.softDelete(asks, keyId)).rejects.toBeInstanceOf(ApprovalNeeded);
    const [request] = (await approvals.list(administrator, { subjectId: keyId, limit: 1 })).items;
    const { invitation } = await users.resetPassword(administrator, everything, carla.id);
    const thief = await becomes(carla.id, invitation?.token ?? '');
    expect(await errorOf(approvals.approve(thief, request?.id ?? '', null))).toBe('forbidden');
    expect((await keys.get(administrator, keyId)).state).toBe('active');
  });

  test('gets no other subject at the OpenID provider while a request waits for them', async () => {
    const { users, keys, approvals, tokens } = opened.operations;
    const { user: dora } = await makeUser(opened.operations, 'dora', 'key-approver');
    const { keyId } = await governed('subject', rule({}));
    const { record } = await tokens.create(administrator, everything, {
      name: 'asks too',
      grants: [grant('key-manager')],
    });
    const asks = { ...administrator, id: record.id };
    await expect(keys.softDelete(asks, keyId)).rejects.toBeInstanceOf(ApprovalNeeded);
    const { displayName, email, mustChangePassword, grants } = dora;
    const change = { displayName, email, mustChangePassword, grants, subject: 'of-an-accomplice' };
    expect(await errorOf(users.update(administrator, everything, dora.id, change))).toBe('conflict');
    const [request] = (await approvals.list(administrator, { subjectId: keyId, limit: 1 })).items;
    await approvals.withdraw(asks, request?.id ?? '');
    expect((await users.update(administrator, everything, dora.id, change)).subject).toBe('of-an-accomplice');
  });
});

test('a session is ended by those who could give its holder their roles, and by its holder', async () => {
  const { sessions, tokens } = opened.operations;
  const { tenantId } = administrator;
  const { token } = await tokens.create(actorIn(tenantId), everything, {
    name: 'boss',
    grants: [grant('administrator', tenantId)],
  });
  const { actor } = await sessions.startByToken(token, originOf());
  const [session] = (await sessions.list(actorIn(tenantId), { limit: 100 })).items.filter(
    ({ holder }) => holder.id === actor.id,
  );
  const id = session?.id ?? '';
  const manager = [grant('tenant-administrator', tenantId)];
  expect(await errorOf(sessions.end(actorIn(tenantId), manager, id))).toBe('forbidden');
  expect((await sessions.end(inTenant(actor, tenantId), manager, id)).id).toBe(id);
});

test('a snapshot is verified with its key by those of the platform, whichever tenant it is of', async () => {
  const { id: tenantId } = await opened.operations.tenants.create(administrator, { name: 'elsewhere' });
  const id = await hand.make(tenantId);
  const officer = inTenant(administrator, administrator.tenantId);
  const verified = await opened.operations.snapshots.verify(officer, id, await hand.answer(id));
  expect(verified.verification).toMatchObject({ depth: 'opened', valid: true });
});

describe('a restore by one person alone', () => {
  test.each(['application', 'endpoint', 'vault', 'key'] as const)(
    'does not bring a disabled %s back into use',
    async (kind) => {
      const { vaults, keys, endpoints, applications, tdeGroups, tenants } = opened.operations;
      const { id: tenantId } = await tenants.create(administrator, { name: `blocked ${kind}` });
      const actor = actorIn(tenantId);
      const vault = await vaults.create(actor, { name: 'vault' });
      const key = await keys.create(actor, { name: 'key', vaultId: vault.id });
      const endpoint = await endpoints.create(actor, { name: 'cloud', vaultId: vault.id, keyId: key.id });
      const group = await tdeGroups.create(actor, { name: 'group' });
      const { application } = await applications.register(actor, { name: 'db', groupId: group.id });
      const id = await hand.make(tenantId);
      expect(await hand.restore(id)).toMatchObject({ rules: [], activated: [] });
      const blocked = {
        application: () => applications.disable(actor, application.id),
        endpoint: () => endpoints.disable(actor, endpoint.id),
        vault: () => vaults.disable(actor, vault.id),
        key: () => keys.disable(actor, key.id),
      };
      const { id: blockedId } = await blocked[kind]();
      const planned = await hand.restore(id, { dryRun: true });
      expect(planned.activated).toMatchObject([{ kind, change: 'reactivated', id: blockedId }]);
      await expect(hand.restore(id)).rejects.toBeInstanceOf(ApprovalNeeded);
    },
  );

  test('does not bring back a removed credential of an endpoint, alone of all that the snapshot has', async () => {
    const { vaults, keys, endpoints, tenants } = opened.operations;
    const { id: tenantId } = await tenants.create(administrator, { name: 'removed credential' });
    const actor = actorIn(tenantId);
    const vault = await vaults.create(actor, { name: 'vault' });
    const key = await keys.create(actor, { name: 'key', vaultId: vault.id });
    const endpoint = await endpoints.create(actor, { name: 'cloud', vaultId: vault.id, keyId: key.id });
    const { credential } = await endpoints.addCredential(actor, endpoint.id);
    const id = await hand.make(tenantId);
    expect(await hand.restore(id, { dryRun: true })).toMatchObject({ rules: [], activated: [] });
    await endpoints.removeCredential(actor, endpoint.id, credential.id);
    const planned = await hand.restore(id, { dryRun: true });
    expect(planned.activated).toMatchObject([{ kind: 'credential', id: credential.id, name: credential.accessKeyId }]);
    await expect(hand.restore(id)).rejects.toBeInstanceOf(ApprovalNeeded);
    expect((await endpoints.get(actor, endpoint.id)).credentials).toEqual([]);
  });

  test('does not set attributes of a token object back', async () => {
    const { tde, tenants, tdeGroups, applications } = opened.operations;
    const { id: tenantId } = await tenants.create(administrator, { name: 'stricter' });
    const actor = actorIn(tenantId);
    const group = await tdeGroups.create(actor, { name: 'group' });
    const { application, accessGuid } = await applications.register(actor, { name: 'db', groupId: group.id });
    const { appId } = application;
    const caller = await tde.authenticate({ accessGuid, appId, instance, requestId: 'call-1', peer: null });
    const key = await tde.generateKey(caller, { ...masterKey('pages'), modifiable: true, extractable: true });
    const id = await hand.make(tenantId);
    await tde.updateObject(caller, key.handle, { label: toLabel('renamed') });
    expect(await hand.restore(id, { dryRun: true })).toMatchObject({ rules: [], activated: [] });
    await tde.updateObject(caller, key.handle, { extractable: false });
    const planned = await hand.restore(id, { dryRun: true });
    const named = [{ kind: 'token-object', change: 'changed', id: key.id, name: 'pages' }];
    expect(planned.activated).toEqual(named);
    await expect(hand.restore(id)).rejects.toBeInstanceOf(ApprovalNeeded);
    expect(await tde.getObject(caller, key.handle)).toMatchObject({ extractable: false });
  });
});
