// Snapshots of a tenant with a vault under a rule: exports and restores need approval. The
// requester carries it out, once.
import { beforeAll, describe, expect, test } from 'vitest';
import { serviceTenantId } from '../../../server/base/ids.ts';
import { formatRecoveryKey } from '../../../server/base/recovery-key.ts';
import type { Role } from '../../../server/domain/access.ts';
import { acrossTenants, inTenant, type TenantActor } from '../../../server/domain/actor.ts';
import type { Approval } from '../../../server/domain/approval.ts';
import { administrator, auditKindsOf, openTestService } from '../../support/open-service.ts';
import { everything, makeUser, waits } from '../../support/people.ts';
import { sharedService } from '../../support/shared.ts';
import { makeRecoveryKey } from '../../support/snapshot-files.ts';
import { handOf, type SnapshotHand } from '../../support/snapshots.ts';

const opened = sharedService();
let hand: SnapshotHand;
const approvers: TenantActor[] = [];
let tenantId: string;

const enrol = async (name: string): Promise<TenantActor> => {
  const { token } = await opened.operations.tokens.create(administrator, 'the service', {
    name,
    grants: [{ role: 'key-approver', scope: null, tenantId }],
  });
  return inTenant((await opened.operations.authenticateAdmin(token, `request of ${name}`, null)).actor, tenantId);
};
const agree = async ({ id }: Approval): Promise<readonly string[]> => {
  const states: string[] = [];
  for (const approver of approvers) states.push((await opened.operations.approvals.approve(approver, id, null)).state);
  return states;
};
const stateOf = async ({ id }: Approval) => (await opened.operations.approvals.get(administrator, id)).state;

beforeAll(async () => {
  tenantId = administrator.tenantId;
  hand = await handOf(opened);
  for (const name of ['anna', 'bert']) approvers.push(await enrol(name));
  const vault = await opened.operations.vaults.create(administrator, { name: 'payments' });
  await opened.operations.dualControl.change(administrator, vault.id, {
    required: 2,
    approvers: null,
    actions: ['destroy', 'export', 'restore'],
    databases: 'allowed',
  });
});

test('from the second person on who can approve, no one alone has a recovery key registered or a snapshot exported', async () => {
  const other = await openTestService({ exportSecondPerson: true });
  try {
    const { operations } = other;
    const person = async (name: string, role: Role) => {
      const { user } = await makeUser(operations, name, role);
      return acrossTenants(
        { kind: 'user', id: user.id, name, requestId: 'call-1', peer: null },
        administrator.tenantId,
      );
    };
    const key = () => ({ name: 'safe', publicKey: formatRecoveryKey(makeRecoveryKey().publicKey) });
    // The first token is the second person of everyone else: it is revoked when people have their
    // own ways in.
    const ada = await person('ada', 'administrator');
    const waiting = await waits(operations.recoveryKeys.register(ada, key()));
    expect(waiting).toMatchObject({
      kind: 'recovery-key.register',
      rules: [{ required: 1 }],
      tenantId: serviceTenantId,
    });
    await operations.approvals.withdraw(ada, waiting.id);
    const [first] = (await operations.tokens.list(ada, { limit: 10 })).items;
    await operations.tokens.revoke(ada, everything, first?.id ?? '');
    const { token } = await operations.tokens.create(ada, everything, {
      name: 'her own',
      grants: [{ role: 'administrator', scope: null, tenantId: null }],
    });
    const own = acrossTenants(
      (await operations.authenticateAdmin(token, 'call-1', null)).actor,
      administrator.tenantId,
    );
    // Alone, and with tokens of her own: there is no second person.
    await operations.recoveryKeys.register(own, key());
    const { id: alone } = await operations.snapshots.create(ada, null);
    for await (const _ of await operations.snapshots.export(ada, alone));

    const bert = await person('bert', 'administrator');
    const registered = key();
    const request = await waits(operations.recoveryKeys.register(ada, registered));
    expect((await waits(operations.recoveryKeys.register(ada, registered))).id).toBe(request.id);
    await expect(operations.approvals.approve(own, request.id, null)).rejects.toMatchObject({ code: 'forbidden' });
    expect((await operations.recoveryKeys.list(ada)).map(({ publicKey }) => publicKey)).toHaveLength(1);
    expect(await operations.approvals.approve(bert, request.id, null)).toMatchObject({ state: 'completed' });
    expect(await operations.recoveryKeys.list(ada)).toHaveLength(2);
    const { id } = await operations.snapshots.create(ada, null);
    const exported = await waits(operations.snapshots.export(ada, id));
    await operations.approvals.approve(bert, exported.id, null);
    for await (const _ of await operations.snapshots.export(ada, id));
    expect((await waits(operations.snapshots.export(ada, id))).id).not.toBe(exported.id);
  } finally {
    await other.remove();
  }
});

describe('under a rule of two', () => {
  test('an export waits for approval; then the requester can fetch it once', async () => {
    const id = await hand.make(tenantId);
    const fetch = () => opened.operations.snapshots.export(administrator, id);
    const approval = await waits(fetch());
    expect(approval).toMatchObject({
      kind: 'snapshot.export',
      state: 'pending',
      subject: { kind: 'snapshot', id },
      rules: [{ vaultName: 'payments', required: 2 }],
    });
    expect((await waits(fetch())).id).toBe(approval.id);
    expect(await agree(approval)).toEqual(['pending', 'approved']);
    expect(await opened.operations.snapshots.exports(administrator, id)).toEqual([]);
    let length = 0;
    for await (const part of await fetch()) length += part.length;
    expect(length).toBe((await opened.operations.snapshots.get(administrator, id)).size);
    expect(await opened.operations.snapshots.exports(administrator, id)).toHaveLength(1);
    expect(await stateOf(approval)).toBe('completed');
    expect(await auditKindsOf(opened, id)).toContain('snapshot.exported');
    expect((await waits(fetch())).id).not.toBe(approval.id);
  });

  test('a restore waits, into a new tenant too; a dry run does not', async () => {
    const id = await hand.make(tenantId);
    await opened.operations.vaults.create(administrator, { name: 'made afterwards' });
    expect(await hand.restore(id, { dryRun: true })).toMatchObject({ tenantId });
    const approval = await waits(hand.restore(id));
    expect(approval).toMatchObject({ kind: 'snapshot.restore', impact: { into: tenantId, newTenant: false } });
    expect(await auditKindsOf(opened, id)).not.toContain('snapshot.restored');
    expect(await agree(approval)).toEqual(['pending', 'approved']);
    // What was agreed to is this snapshot into this tenant, and nothing else.
    const other = await waits(hand.restore(id, { newTenant: 'beside' }));
    expect(await stateOf(approval)).toBe('outdated');
    expect(await agree(other)).toEqual(['pending', 'approved']);
    expect(await hand.restore(id, { newTenant: 'beside' })).toMatchObject({ newTenant: true });
    expect(await stateOf(other)).toBe('completed');
    expect(await auditKindsOf(opened, id)).toContain('snapshot.restored');
  });
});

test('a rule that names no restore has its say where it may get an older one back, and only there', async () => {
  const service = await openTestService();
  try {
    const own = await handOf(service);
    const vault = await service.operations.vaults.create(administrator, { name: 'records' });
    const id = await own.make(administrator.tenantId);
    for (const name of ['carla', 'dora'])
      await service.operations.tokens.create(administrator, 'the service', {
        name,
        grants: [{ role: 'key-approver', scope: null, tenantId: administrator.tenantId }],
      });
    const rule = { required: 2, approvers: null, actions: ['destroy'], databases: 'allowed' } as const;
    await service.operations.dualControl.change(administrator, vault.id, rule);
    expect((await waits(own.restore(id))).rules).toMatchObject([{ vaultName: 'records' }]);
    expect(await own.restore(id, { newTenant: 'beside' })).toMatchObject({ newTenant: true });
    expect((await service.operations.vaults.get(administrator, vault.id)).dualControl).toMatchObject(rule);
  } finally {
    await service.remove();
  }
});
