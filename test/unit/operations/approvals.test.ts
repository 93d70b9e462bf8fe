// Dual control: an operation under a vault's rule needs the required approvals; every other attempt
// leaves everything as it was. Real tokens act, over the real store.
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { ServiceError } from '../../../server/base/service-error.ts';
import type { Role } from '../../../server/domain/access.ts';
import { inTenant, type TenantActor } from '../../../server/domain/actor.ts';
import type { Approval } from '../../../server/domain/approval.ts';
import type { DualControlRule } from '../../../server/domain/dual-control.ts';
import { databasesUnder, isWeaker } from '../../../server/domain/dual-control.ts';
import { administrator, auditKindsOf, instance, masterKey, registerCaller } from '../../support/open-service.ts';
import { bytesOf, everything, goodPassword, inviteUser, makeUser, originOf, waits } from '../../support/people.ts';
import { sharedService } from '../../support/shared.ts';
import { queryStored } from '../../support/test-store.ts';

const opened = sharedService();
const people: Record<string, TenantActor> = {};
const tokenIds: Record<string, string> = {};
const person = (name: string): TenantActor => {
  const actor = people[name];
  if (actor === undefined) throw new Error(`${name} is not an actor`);
  return actor;
};
const enrolBy = async (by: TenantActor, name: string, ...roles: readonly Role[]): Promise<TenantActor> => {
  const { record, token } = await opened.operations.tokens.create(by, 'the service', {
    name,
    grants: roles.map((role) => ({ role, scope: null, tenantId: administrator.tenantId })),
  });
  const { actor: alone } = await opened.operations.authenticateAdmin(token, `request of ${name}`, null);
  const actor = inTenant(alone, administrator.tenantId);
  people[name] = actor;
  tokenIds[name] = record.id;
  return actor;
};
const enrol = (name: string, ...roles: readonly Role[]) => enrolBy(administrator, name, ...roles);

const code = (wanted: string) => expect.objectContaining({ name: ServiceError.name, code: wanted });
const twoOf = (more: Partial<DualControlRule> = {}): DualControlRule => ({
  required: 2,
  approvers: null,
  actions: ['destroy', 'export', 'restore'],
  databases: 'allowed',
  ...more,
});

beforeAll(async () => {
  await enrol('security', 'tenant-administrator');
  await enrol('destroyer', 'key-destroyer');
  await enrol('manager', 'key-manager');
  await enrol('connector', 'connection-manager');
  await enrol('anna', 'key-approver');
  await enrol('bert', 'key-approver', 'key-destroyer');
  await enrol('carla', 'key-approver');
});

let made = 0;
/** A group with an application and one master key, under a rule. */
const database = async (rule: DualControlRule | null = twoOf()) => {
  made += 1;
  const { caller, groupId, accessGuid } = await registerCaller(opened, `db-${made}`);
  const { id: keyId, handle } = await opened.operations.tde.generateKey(caller, masterKey(`MK.${made}`));
  const { vaultId } = await opened.operations.tdeGroups.get(administrator, groupId);
  if (rule !== null) await opened.operations.dualControl.change(person('security'), vaultId, rule);
  const applicationId = caller.application.id;
  const destroy = (by: string) => opened.operations.masterKeys.destroy(person(by), applicationId, keyId);
  const state = async () => (await opened.operations.keys.get(administrator, keyId)).state;
  return { caller, groupId, accessGuid, vaultId, applicationId, keyId, handle, destroy, state };
};
const approve = (by: string, { id }: Approval) => opened.operations.approvals.approve(person(by), id, null);

describe('destroying a master key under a rule of two', () => {
  test('waits for two others, and is then carried out by the service as the wish of the requester', async () => {
    const db = await database();
    const approval = await waits(db.destroy('destroyer'));
    expect(approval).toMatchObject({
      kind: 'master-key.destroy',
      state: 'pending',
      subject: { kind: 'key', id: db.keyId },
      rules: [{ vaultId: db.vaultId, required: 2 }],
      impact: { application: db.caller.application.name, instances: 1 },
    });
    expect(await db.state()).toBe('active');
    expect(await approve('anna', approval)).toMatchObject({ state: 'pending' });
    expect(await db.state()).toBe('active');
    expect(await approve('bert', approval)).toMatchObject({ state: 'completed' });
    expect(await db.state()).toBe('destroyed');
    expect(await auditKindsOf(opened, approval.id)).toEqual([
      'approval.requested',
      'approval.approved',
      'approval.approved',
      'approval.completed',
    ]);
    const [destroyed] = (
      await opened.operations.audit.list(administrator, { subjectId: db.keyId, kind: 'key.destroyed' })
    ).items;
    expect(destroyed).toMatchObject({ actorId: tokenIds.destroyer, requestId: 'request of bert' });
    await expect(approve('carla', approval)).rejects.toEqual(code('conflict'));
  });

  test('the same wish of the same person is the same request, that of another is refused', async () => {
    const db = await database();
    const approval = await waits(db.destroy('destroyer'));
    expect((await waits(db.destroy('destroyer'))).id).toBe(approval.id);
    await expect(db.destroy('bert')).rejects.toEqual(code('conflict'));
  });

  test('a request names who can decide it now: people who can sign in, without its requester and who has decided', async () => {
    await inviteUser(opened.operations, 'not.here.yet', 'key-approver');
    const db = await database();
    const approval = await waits(db.destroy('destroyer'));
    const seenBy = (by: string) => opened.operations.approvals.get(person(by), approval.id);
    const before = await seenBy('anna');
    expect(before.able.map(({ id }) => id)).toEqual(expect.arrayContaining([tokenIds.anna, tokenIds.bert]));
    expect(before.able.map(({ id }) => id)).not.toContain(tokenIds.destroyer);
    expect(before.able.map(({ name }) => name)).not.toContain('not.here.yet');
    expect([before.mayDecide, (await seenBy('destroyer')).mayDecide]).toEqual([true, false]);
    await approve('anna', approval);
    const after = await seenBy('anna');
    expect([after.mayDecide, after.able.map(({ id }) => id).includes(tokenIds.anna ?? '')]).toEqual([false, false]);
    const listed = await opened.operations.approvals.list(person('bert'), { subjectId: db.keyId, limit: 1 });
    expect(listed.items.map(({ mayDecide }) => mayDecide)).toEqual([true]);
  });

  test('no one agrees to their own request, twice, or without the role', async () => {
    const db = await database();
    const approval = await waits(db.destroy('bert'));
    await expect(approve('bert', approval)).rejects.toEqual(code('forbidden'));
    await approve('anna', approval);
    await expect(approve('anna', approval)).rejects.toEqual(code('conflict'));
    expect(await db.state()).toBe('active');
    await expect(opened.operations.approvals.withdraw(person('anna'), approval.id)).rejects.toEqual(code('forbidden'));
  });

  test('an approver who was made after the request does not count', async () => {
    const db = await database();
    const approval = await waits(db.destroy('destroyer'));
    await enrol('late', 'key-approver');
    await expect(approve('late', approval)).rejects.toEqual(code('forbidden'));
  });

  test('a user who was there before, and became an approver after the request, does not count', async () => {
    const { user } = await makeUser(opened.operations, 'promoted');
    const actor: TenantActor = inTenant(
      { kind: 'user', id: user.id, name: 'promoted', requestId: 'request of promoted', peer: null },
      administrator.tenantId,
    );
    const promote = (role: Role) =>
      opened.operations.users.update(administrator, everything, user.id, {
        displayName: 'Promoted',
        email: null,
        subject: null,
        mustChangePassword: false,
        grants: [{ role, scope: null, tenantId: administrator.tenantId }],
      });
    const decide = ({ id }: Approval, by: TenantActor) => opened.operations.approvals.approve(by, id, null);
    const db = await database();
    const early = await waits(db.destroy('destroyer'));
    await promote('key-approver');
    await expect(decide(early, actor)).rejects.toEqual(code('forbidden'));
    await opened.operations.approvals.withdraw(person('destroyer'), early.id);
    const late = await waits(db.destroy('destroyer'));
    expect(late.rules[0]?.approvers).toContain(user.id);
    expect(await decide(late, actor)).toMatchObject({ state: 'pending', missing: 1 });
    expect(await approve('anna', late)).toMatchObject({ state: 'completed' });
  });

  test('a user and the tokens that this user made, also through other tokens, are one person', async () => {
    const { user } = await makeUser(opened.operations, 'twice', 'key-approver');
    const actor: TenantActor = inTenant(
      { kind: 'user', id: user.id, name: 'twice', requestId: 'request of twice', peer: null },
      administrator.tenantId,
    );
    const byUser = await enrolBy(actor, 'made by twice', 'key-approver', 'key-destroyer');
    const byToken = await enrolBy(byUser, 'made by that token', 'key-approver');
    const db = await database();
    const own = await waits(db.destroy('made by twice'));
    expect(own.rules[0]?.approvers).not.toContain(user.id);
    for (const each of [actor, byToken])
      await expect(opened.operations.approvals.approve(each, own.id, null)).rejects.toMatchObject({
        code: 'forbidden',
        message: 'you cannot decide your own request',
      });
    await opened.operations.approvals.withdraw(byUser, own.id);
    const request = await waits(db.destroy('destroyer'));
    await opened.operations.approvals.approve(actor, request.id, null);
    for (const each of [byUser, byToken])
      await expect(opened.operations.approvals.approve(each, request.id, null)).rejects.toEqual(code('conflict'));
    expect(await db.state()).toBe('active');
    const named = twoOf({ approvers: [user.id, byUser.id, byToken.id], actions: ['destroy'] });
    const { id: vaultId } = await opened.operations.vaults.create(administrator, { name: 'of one person' });
    await expect(opened.operations.dualControl.change(person('security'), vaultId, named)).rejects.toEqual(
      code('conflict'),
    );
  });

  test('a password that was set after the request does not count, whatever the clock says', async () => {
    const { user, session } = await makeUser(opened.operations, 'reset', 'key-approver');
    const actor = inTenant(session.actor, administrator.tenantId);
    const db = await database();
    const request = await waits(db.destroy('destroyer'));
    const { invitation } = await opened.operations.users.resetPassword(administrator, everything, user.id);
    const real = Date.now();
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => real - 3_600_000);
    try {
      await opened.operations.signIn.redeem(invitation?.token ?? '', bytesOf(goodPassword), originOf());
    } finally {
      clock.mockRestore();
    }
    // On PostgreSQL, a heartbeat that began under the other clock is an hour old now: keys are used
    // again after the next one.
    await vi.waitFor(() => database(), { timeout: 30_000 });
    const changed = await opened.operations.users.get(administrator, user.id);
    expect(changed.passwordChangedAt).toBeLessThan(request.requestedAt);
    await expect(opened.operations.approvals.approve(actor, request.id, null)).rejects.toEqual(code('forbidden'));
  });

  test('a password that was set after the request does not count, whatever the log has of it', async () => {
    const { user, session } = await makeUser(opened.operations, 'hidden', 'key-approver');
    const actor = inTenant(session.actor, administrator.tenantId);
    const db = await database();
    const request = await waits(db.destroy('destroyer'));
    const { invitation } = await opened.operations.users.resetPassword(administrator, everything, user.id);
    await expect.poll(() => Date.now()).toBeGreaterThan(request.requestedAt);
    await opened.operations.signIn.redeem(invitation?.token ?? '', bytesOf(goodPassword), originOf());
    const name = (from: string, to: string) =>
      queryStored(opened.folder, `update audit_events set subject_id = ? where subject_id = ?`, to, from);
    // A writer of the database takes the records of the person away for a moment.
    await name(user.id, 'hidden');
    try {
      await expect(opened.operations.approvals.approve(actor, request.id, null)).rejects.toEqual(code('forbidden'));
    } finally {
      await name('hidden', user.id);
    }
  });

  test('an agreement counts only while who gave it may still give it', async () => {
    await enrol('leaver', 'key-approver');
    const db = await database();
    const approval = await waits(db.destroy('destroyer'));
    await approve('leaver', approval);
    await opened.operations.tokens.revoke(administrator, 'the service', tokenIds.leaver ?? '');
    expect(await approve('anna', approval)).toMatchObject({ state: 'pending' });
    expect(await db.state()).toBe('active');
    expect(await approve('bert', approval)).toMatchObject({ state: 'completed' });
  });

  test('an operation that its requester may no longer do is not carried out', async () => {
    await enrol('gone', 'key-destroyer');
    const db = await database();
    const approval = await waits(db.destroy('gone'));
    await opened.operations.tokens.revoke(administrator, 'the service', tokenIds.gone ?? '');
    await approve('anna', approval);
    await expect(approve('bert', approval)).rejects.toEqual(code('conflict'));
    expect(await opened.operations.approvals.get(administrator, approval.id)).toMatchObject({ state: 'outdated' });
    expect(await db.state()).toBe('active');
  });

  test('a key that has changed in the meantime is not destroyed: the request is outdated', async () => {
    const db = await database();
    const approval = await waits(db.destroy('destroyer'));
    await approve('anna', approval);
    await opened.operations.keys.disable(person('manager'), db.keyId);
    await expect(approve('bert', approval)).rejects.toEqual(code('conflict'));
    expect(await opened.operations.approvals.get(administrator, approval.id)).toMatchObject({
      state: 'outdated',
      endedAt: expect.any(Number),
    });
    expect(await db.state()).toBe('disabled');
  });

  test('one refusal ends it; so does its requester', async () => {
    const db = await database();
    const refused = await waits(db.destroy('destroyer'));
    await approve('anna', refused);
    expect(await opened.operations.approvals.reject(person('carla'), refused.id, 'still in use')).toMatchObject({
      state: 'rejected',
    });
    await expect(approve('bert', refused)).rejects.toEqual(code('conflict'));
    const withdrawn = await waits(db.destroy('destroyer'));
    expect(withdrawn.id).not.toBe(refused.id);
    await opened.operations.approvals.withdraw(person('destroyer'), withdrawn.id);
    await expect(approve('anna', withdrawn)).rejects.toEqual(code('conflict'));
    expect(await auditKindsOf(opened, refused.id)).toContain('approval.rejected');
    expect(await auditKindsOf(opened, withdrawn.id)).toContain('approval.withdrawn');
  });

  test('two last agreements at once carry it out once', async () => {
    const db = await database(twoOf({ required: 1 }));
    const approval = await waits(db.destroy('destroyer'));
    const both = await Promise.allSettled([approve('anna', approval), approve('carla', approval)]);
    expect(both.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect((await auditKindsOf(opened, approval.id)).filter((kind) => kind === 'approval.completed')).toHaveLength(1);
  });

  test('a dry run shows the impact and the rule', async () => {
    const db = await database();
    const needs = await opened.operations.masterKeys.destroyNeeds(administrator, db.applicationId, db.keyId);
    expect(needs).toMatchObject({ impact: { instances: 1 }, rules: [{ required: 2, vaultId: db.vaultId }] });
    const free = await database(null);
    expect(
      (await opened.operations.masterKeys.destroyNeeds(administrator, free.applicationId, free.keyId)).rules,
    ).toEqual([]);
  });
});

describe('what a database may do', () => {
  test('C_DestroyObject destroys permanently, unless the rule refuses databases', async () => {
    const free = await database();
    await opened.operations.tde.destroyObject(free.caller, free.handle);
    expect(await free.state()).toBe('destroyed');
    const held = await database(twoOf({ databases: 'refused' }));
    await expect(opened.operations.tde.destroyObject(held.caller, held.handle)).rejects.toEqual(code('forbidden'));
    expect(await held.state()).toBe('active');
    expect(await auditKindsOf(opened, held.keyId)).toContain('key.denied');
  });
});

describe('ways around', () => {
  test('who creates an access_guid does not destroy alone what a rule about destruction governs', async () => {
    expect(databasesUnder(['destroy', 'export'])).toBe('refused');
    expect(databasesUnder(['export', 'restore'])).toBe('allowed');
    await enrol('connects', 'connection-manager');
    const db = await database(twoOf({ databases: databasesUnder(['destroy']) }));
    const { operations } = opened;
    const made = await operations.applications.rotateAccessGuid(person('connects'), db.applicationId);
    const { appId } = db.caller;
    const given = { accessGuid: made.accessGuid, appId, instance, requestId: 'call-1', peer: null };
    const caller = await operations.tde.authenticate(given);
    await expect(operations.tde.destroyObject(caller, db.handle)).rejects.toEqual(code('forbidden'));
    expect(await db.state()).toBe('active');
  });

  test('moving the application to a group without the rule needs the same agreement', async () => {
    const db = await database();
    const other = await opened.operations.tdeGroups.create(administrator, { name: 'unruled' });
    const approval = await waits(opened.operations.applications.move(administrator, db.applicationId, other.id));
    expect(approval).toMatchObject({ kind: 'application.move' });
    expect(await opened.operations.applications.get(administrator, db.applicationId)).toMatchObject({
      groupId: db.groupId,
    });
  });

  test('a governed vault keeps its name until others agree: no other vault takes its place', async () => {
    const { vaults, keys, approvals } = opened.operations;
    const vault = await vaults.create(administrator, { name: 'payments' });
    await opened.operations.dualControl.change(person('security'), vault.id, twoOf({ actions: ['export'] }));
    const dry = await vaults.planRename(person('manager'), vault.id, { name: 'payments (closed)' });
    expect(dry).toMatchObject({
      impact: { newName: 'payments (closed)' },
      rules: [{ vaultId: vault.id, required: 2 }],
    });
    const approval = await waits(vaults.rename(person('manager'), vault.id, { name: 'payments (closed)' }));
    expect(approval).toMatchObject({
      kind: 'vault.rename',
      subject: { kind: 'vault', id: vault.id, name: 'payments' },
      impact: { newName: 'payments (closed)' },
    });
    await expect(vaults.create(person('manager'), { name: 'payments' })).rejects.toEqual(code('conflict'));
    const key = await keys.create(administrator, { name: 'billing', vaultId: vault.id });
    expect((await keys.get(administrator, key.id)).vaultId).toBe(vault.id);
    await approve('anna', approval);
    expect((await vaults.get(administrator, vault.id)).name).toBe('payments');
    await approve('bert', approval);
    expect((await vaults.get(administrator, vault.id)).name).toBe('payments (closed)');
    expect((await approvals.get(administrator, approval.id)).state).toBe('completed');
    // The name that it has already needs no one.
    await vaults.rename(person('manager'), vault.id, { name: 'payments (closed)' });
    const { items } = await opened.operations.audit.list(administrator, { subjectId: vault.id, severity: 'medium' });
    expect(items.map(({ kind }) => kind)).toContain('vault.renamed');
  });

  test('a group with a governed vault keeps its name until others agree', async () => {
    const db = await database();
    const { tdeGroups, vaults } = opened.operations;
    const { name } = await tdeGroups.get(administrator, db.groupId);
    const wanted = { name: `${name} renamed` };
    expect((await tdeGroups.planRename(person('manager'), db.groupId, wanted)).rules).toMatchObject([
      { vaultId: db.vaultId, required: 2 },
    ]);
    const approval = await waits(tdeGroups.rename(person('connector'), db.groupId, wanted));
    expect(approval).toMatchObject({ kind: 'group.rename', subject: { kind: 'group', id: db.groupId, name } });
    await approve('anna', approval);
    expect((await tdeGroups.get(administrator, db.groupId)).name).toBe(name);
    await approve('bert', approval);
    expect((await tdeGroups.get(administrator, db.groupId)).name).toBe(wanted.name);
    expect((await vaults.get(administrator, db.vaultId)).name).toBe(`TDE group ${wanted.name}`);
    const { items } = await opened.operations.audit.list(administrator, { subjectId: db.groupId, severity: 'medium' });
    expect(items.map(({ kind }) => kind)).toContain('group.renamed');
  });

  test('a general-purpose key that is deleted is out of use permanently: the rule governs it, and its vault', async () => {
    const vault = await opened.operations.vaults.create(administrator, { name: 'ruled' });
    const key = await opened.operations.keys.create(administrator, { name: 'k', vaultId: vault.id });
    await opened.operations.dualControl.change(person('security'), vault.id, twoOf({ required: 1 }));
    const approval = await waits(opened.operations.keys.softDelete(person('manager'), key.id));
    expect(await waits(opened.operations.vaults.delete(person('manager'), vault.id))).toMatchObject({
      kind: 'vault.delete',
      impact: { keys: 1 },
    });
    expect(await approve('anna', approval)).toMatchObject({ state: 'completed' });
    expect(await opened.operations.keys.get(administrator, key.id)).toMatchObject({ state: 'soft-deleted' });
  });

  test('a rule that someone removed from its row outside the service stops everything that it governed', async () => {
    const db = await database();
    await queryStored(opened.folder, 'update vaults set dual_control = null where id = ?', db.vaultId);
    await expect(db.destroy('destroyer')).rejects.toEqual(code('key-tampered'));
    expect(await db.state()).toBe('active');
  });

  test('a request is shown where the row of its requester was changed outside the service', async () => {
    const db = await database();
    await enrol('changed', 'key-destroyer');
    const approval = await waits(db.destroy('changed'));
    await queryStored(
      opened.folder,
      'update api_tokens set name = name || ? where id = ?',
      '!',
      tokenIds.changed ?? '',
    );
    const seen = await opened.operations.approvals.get(person('anna'), approval.id);
    expect([seen.id, seen.mayDecide, seen.able]).toEqual([approval.id, false, []]);
  });

  test('an approval that someone wrote outside the service stops the request', async () => {
    const db = await database();
    const approval = await waits(db.destroy('destroyer'));
    await approve('anna', approval);
    await queryStored(
      opened.folder,
      'update approvals set document = replace(document, \'"required":2\', \'"required":1\') where id = ?',
      approval.id,
    );
    await expect(approve('bert', approval)).rejects.toEqual(code('key-tampered'));
    expect(await db.state()).toBe('active');
  });
});

describe('an approval covers what was shown', () => {
  const governedVault = async (name: string) => {
    const vault = await opened.operations.vaults.create(administrator, { name });
    await opened.operations.dualControl.change(person('security'), vault.id, twoOf());
    return vault;
  };
  const keyIn = (vaultId: string, name: string) => opened.operations.keys.create(administrator, { name, vaultId });
  const changedOf = async ({ id }: Approval) => (await opened.operations.approvals.get(administrator, id)).changed;
  const outdates = async (approval: Approval): Promise<void> => {
    await expect(approve('anna', approval)).rejects.toEqual(code('conflict'));
    expect((await opened.operations.approvals.get(administrator, approval.id)).state).toBe('outdated');
  };

  test('a key that came into the vault since then outdates its deletion, also when another one has gone', async () => {
    const vault = await governedVault('changing');
    await keyIn(vault.id, 'one');
    const approval = await waits(opened.operations.vaults.delete(person('security'), vault.id));
    expect(await changedOf(approval)).toBeNull();
    await keyIn(vault.id, 'two');
    expect(await changedOf(approval)).toMatchObject({ name: 'changing', keys: 2 });
    await outdates(approval);
    expect((await opened.operations.vaults.get(administrator, vault.id)).state).toBe('enabled');
  });

  test('an endpoint that was created on a key since then outdates the deletion of the key', async () => {
    const vault = await governedVault('used');
    const key = await keyIn(vault.id, 'unused');
    const approval = await waits(opened.operations.keys.softDelete(person('security'), key.id));
    const endpoint = await opened.operations.endpoints.create(administrator, {
      name: 'new endpoint',
      vaultId: vault.id,
      keyId: key.id,
    });
    expect(await changedOf(approval)).toMatchObject({ endpoints: [endpoint.name] });
    await outdates(approval);
    expect((await opened.operations.keys.get(administrator, key.id)).state).toBe('active');
  });

  test('a subject that has another name since then outdates the request', async () => {
    const vault = await governedVault('renamed');
    const key = await keyIn(vault.id, 'of yesterday');
    const approval = await waits(opened.operations.keys.softDelete(person('security'), key.id));
    await opened.operations.keys.change(administrator, key.id, { name: 'of today', tags: [] });
    expect(await changedOf(approval)).toMatchObject({ name: 'of today' });
    await outdates(approval);
  });

  test('another name of anything but the subject outdates no request, and approvers see both names', async () => {
    const { operations } = opened;
    const vault = await governedVault('held');
    const key = await keyIn(vault.id, 'in use');
    const endpoint = await operations.endpoints.create(administrator, {
      ...{ name: 'till', vaultId: vault.id, keyId: key.id },
    });
    const db = await database();
    const { application: other } = await operations.applications.register(administrator, {
      ...{ name: `other of ${db.groupId}`, groupId: db.groupId },
    });
    const target = await operations.tdeGroups.create(administrator, { name: `target of ${db.groupId}` });
    const requests = {
      key: await waits(operations.keys.softDelete(person('manager'), key.id)),
      master: await waits(db.destroy('destroyer')),
      move: await waits(operations.applications.move(person('connector'), db.applicationId, target.id)),
    };
    expect(requests.master.impact).toMatchObject({ groupApplications: [other.name] });
    expect(requests.move.impact).toMatchObject({ to: target.name, leaves: [other.name] });
    // These people may neither decide the requests nor withdraw them.
    const by = person('connector');
    await operations.endpoints.rename(by, endpoint.id, { name: 'till 2' });
    await operations.applications.rename(by, other.id, { name: `${other.name} 2` });
    await operations.tdeGroups.rename(by, target.id, { name: `${target.name} 2` });
    const renaming = await waits(operations.vaults.rename(person('manager'), vault.id, { name: 'held 2' }));
    await approve('anna', renaming);
    await approve('bert', renaming);

    const seen = async ({ id }: Approval) => {
      const { changed, impact, formerNames } = await operations.approvals.get(person('anna'), id);
      return { changed, impact, names: formerNames.map(({ formerName, name }) => [formerName, name]) };
    };
    expect(await seen(requests.key)).toMatchObject({
      changed: null,
      impact: { endpoints: ['till 2'] },
      names: [
        ['held', 'held 2'],
        ['till', 'till 2'],
      ],
    });
    expect(await seen(requests.master)).toMatchObject({
      changed: null,
      impact: { groupApplications: [`${other.name} 2`] },
      names: [[other.name, `${other.name} 2`]],
    });
    expect(await seen(requests.move)).toMatchObject({
      changed: null,
      impact: { to: `${target.name} 2`, leaves: [`${other.name} 2`] },
    });
    for (const request of [requests.key, requests.move]) {
      await approve('anna', request);
      expect(await approve('bert', request)).toMatchObject({ state: 'completed' });
    }
  });

  test('another thing of the same name outdates: what is bound is which one it is', async () => {
    const vault = await governedVault('exchanged');
    const key = await keyIn(vault.id, 'of an endpoint');
    const given = { name: 'one of two', vaultId: vault.id, keyId: key.id };
    const endpoint = await opened.operations.endpoints.create(administrator, given);
    const approval = await waits(opened.operations.keys.softDelete(person('security'), key.id));
    await opened.operations.endpoints.delete(administrator, endpoint.id);
    await opened.operations.endpoints.create(administrator, given);
    expect(await changedOf(approval)).toMatchObject({ endpoints: [given.name] });
    await outdates(approval);
  });

  test('approvers see each name of the last 90 days that the subject had, who changed it, and when', async () => {
    const { vaults, approvals, dualControl } = opened.operations;
    const vault = await vaults.create(administrator, { name: 'ledger of the bank' });
    const rename = (name: string) => vaults.rename(person('manager'), vault.id, { name });
    // The oldest of these was given up too long ago.
    await rename('ledger');
    await rename('ledger of the bank');
    const tooOld = 'update audit_events set at = at - ? where subject_id = ? and kind = ?';
    const days = 91 * 24 * 3_600_000;
    await queryStored(opened.folder, tooOld, days, vault.id, 'vault.renamed');
    try {
      for (const name of ['scratch', 'ledger of the bank', 'scratch', 'scratch of the tests']) await rename(name);
      await dualControl.change(person('security'), vault.id, twoOf());
      const approval = await waits(vaults.delete(person('manager'), vault.id));
      const { formerNames } = await approvals.get(person('anna'), approval.id);
      expect(formerNames).toEqual(
        ['scratch', 'ledger of the bank'].map((formerName) => ({
          ...{ kind: 'vault', id: vault.id, name: 'scratch of the tests', formerName },
          ...{ until: expect.any(Number), by: { id: tokenIds.manager, name: 'manager' } },
        })),
      );
      await approvals.withdraw(person('manager'), approval.id);
      expect((await approvals.get(person('anna'), approval.id)).formerNames).toEqual([]);
    } finally {
      await queryStored(opened.folder, `${tooOld} and at < ?`, -days, vault.id, 'vault.renamed', Date.now() - days / 2);
    }
  });

  test('many new names hide none that came before, and the answer says how many are left out', async () => {
    const { vaults, approvals, dualControl } = opened.operations;
    const vault = await vaults.create(administrator, { name: 'the first name' });
    for (let count = 1; count <= 25; count += 1)
      await vaults.rename(person('manager'), vault.id, { name: `name ${count} of ${vault.id}` });
    await dualControl.change(person('security'), vault.id, twoOf());
    const approval = await waits(vaults.delete(person('manager'), vault.id));
    const { formerNames, formerNamesOmitted } = await approvals.get(person('anna'), approval.id);
    const names = formerNames.map(({ formerName }) => formerName);
    expect([names.length, names[0], formerNamesOmitted]).toEqual([20, `name 24 of ${vault.id}`, 5]);
    expect(names).toContain('the first name');
    await approvals.withdraw(person('manager'), approval.id);
    expect(await approvals.get(person('anna'), approval.id)).toMatchObject({ formerNames: [], formerNamesOmitted: 0 });
  });

  test('processes that come and go outdate nothing', async () => {
    const db = await database();
    const approval = await waits(db.destroy('destroyer'));
    await opened.operations.tde.authenticate({
      accessGuid: db.accessGuid,
      appId: db.caller.appId,
      instance: { ...instance, process: 'another' },
      requestId: 'call-2',
      peer: null,
    });
    expect(await changedOf(approval)).toBeNull();
    await approve('anna', approval);
    expect(await approve('bert', approval)).toMatchObject({ state: 'completed' });
  });
});

describe('the rule itself', () => {
  test('no one sets one that no one could satisfy', async () => {
    const { vaultId } = await database(null);
    const { change } = opened.operations.dualControl;
    await expect(change(person('security'), vaultId, twoOf({ required: 10 }))).rejects.toEqual(code('conflict'));
    await expect(change(person('security'), vaultId, twoOf({ approvers: [tokenIds.anna ?? ''] }))).rejects.toEqual(
      code('conflict'),
    );
    await expect(
      change(person('security'), vaultId, twoOf({ approvers: [tokenIds.anna ?? '', tokenIds.manager ?? ''] })),
    ).rejects.toEqual(code('conflict'));
    await expect(change(person('security'), vaultId, twoOf({ actions: [] }))).rejects.toEqual(code('validation'));
    // Not by the user who sets it alone; the dry run shows that as well.
    const own = twoOf({ required: 1, approvers: [tokenIds.anna ?? ''] });
    const { planChange } = opened.operations.dualControl;
    await expect(planChange(person('anna'), vaultId, own)).rejects.toEqual(code('conflict'));
    expect(await planChange(person('security'), vaultId, own)).toMatchObject({ rules: [] });
  });

  test('made stricter it applies at once; made weaker, or taken away, the old one decides', async () => {
    const { vaultId } = await database(twoOf({ required: 1 }));
    const { change, get } = opened.operations.dualControl;
    await change(person('security'), vaultId, twoOf());
    expect((await get(administrator, vaultId)).vault.dualControl?.required).toBe(2);
    const weaker = await waits(change(person('security'), vaultId, twoOf({ required: 1 })));
    await approve('anna', weaker);
    expect((await get(administrator, vaultId)).vault.dualControl?.required).toBe(2);
    await approve('bert', weaker);
    expect((await get(administrator, vaultId)).vault.dualControl?.required).toBe(1);
    const away = await waits(change(person('security'), vaultId, null));
    await approve('carla', away);
    expect((await get(administrator, vaultId)).vault.dualControl).toBeNull();
    expect(await auditKindsOf(opened, vaultId)).toEqual(
      expect.arrayContaining(['dual-control.changed', 'dual-control.changed']),
    );
  });

  test('named approvers alone agree', async () => {
    const approvers = ['anna', 'carla'].map((name) => tokenIds[name] ?? '');
    const db = await database(twoOf({ approvers }));
    const approval = await waits(db.destroy('destroyer'));
    await expect(approve('bert', approval)).rejects.toEqual(code('forbidden'));
    await approve('anna', approval);
    await approve('carla', approval);
    expect(await db.state()).toBe('destroyed');
  });

  test('is weaker when anything is allowed that was not', () => {
    const rule = twoOf({ approvers: ['a', 'b', 'c'], databases: 'refused' });
    expect(isWeaker(null, rule)).toBe(false);
    expect(isWeaker(rule, rule)).toBe(false);
    expect(isWeaker(rule, null)).toBe(true);
    expect(isWeaker(rule, { ...rule, required: 3 })).toBe(false);
    expect(isWeaker(rule, { ...rule, required: 1 })).toBe(true);
    expect(isWeaker(rule, { ...rule, approvers: ['a', 'b'] })).toBe(false);
    expect(isWeaker(rule, { ...rule, approvers: ['a', 'b', 'd'] })).toBe(true);
    expect(isWeaker(rule, { ...rule, approvers: null })).toBe(true);
    expect(isWeaker({ ...rule, approvers: null }, rule)).toBe(false);
    expect(isWeaker(rule, { ...rule, actions: ['destroy'] })).toBe(true);
    expect(isWeaker(rule, { ...rule, databases: 'allowed' })).toBe(true);
  });
});
