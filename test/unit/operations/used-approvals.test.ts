// A request that has ended is used, decided or ended once: also where a node reads an older row of
// it that was put back, and takes it for the newest one.
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../../server/base/time.ts';
import { serviceActor } from '../../../server/domain/actor.ts';
import type { Approval } from '../../../server/domain/approval.ts';
import { createApprovalRequests } from '../../../server/operations/approvals/approval-requests.ts';
import { newTenant } from '../../../server/operations/tenants/create-tenant.ts';
import type { Repositories } from '../../../server/ports/store.ts';
import { folderOfTest } from '../../support/folders.ts';
import { openSealers, type Sealers } from '../../support/sealers.ts';

const tenant = newTenant('default', 1);
const approved: Approval = {
  id: 'a',
  tenantId: tenant.id,
  kind: 'snapshot.export',
  subject: { kind: 'snapshot', id: 's', name: 'snapshot' },
  ...{ parameters: {}, impact: {}, rules: [], fingerprint: 'f', decisions: [], missing: 0 },
  state: 'approved',
  requestedBy: { id: 'u', name: 'ada' },
  ...{ requestedAt: 1, expiresAt: 9, endedAt: null, integrity: 'ok' },
};
const requests = createApprovalRequests(systemClock, () => {
  throw new Error('nothing is carried out');
});

let sealers: Sealers;
beforeEach(async () => {
  sealers = await openSealers(join(folderOfTest(), 'dke.db'));
  await sealers.store.write(async (tx) => {
    await tx.tenants.insert(tenant);
    await tx.approvals.insert(approved);
  });
});
afterEach(() => sealers.store.close());

/** A node that has never read the row which has ended. */
const withOlderRow = (tx: Repositories): Repositories => ({
  ...tx,
  approvals: { ...tx.approvals, get: async () => approved, list: async () => [approved] },
});
const uses: readonly (readonly [string, (tx: Repositories) => Promise<Approval | undefined>])[] = [
  ['loaded', (tx) => requests.load(tx, tenant.id, 'a')],
  ['used', (tx) => requests.openFor(tx, tenant.id, 'snapshot.export', 's')],
];

test.each(uses)('an open request is %s', async (_, use) => {
  expect(await sealers.store.write((tx) => use(withOlderRow(tx)))).toEqual(approved);
});

test.each(
  uses.flatMap(([name, use]) =>
    (['completed', 'rejected', 'withdrawn', 'expired', 'outdated'] as const).map(
      (state) => [state, name, use] as const,
    ),
  ),
)('one that is %s is not %s', async (state, _, use) => {
  await sealers.store.write(async (tx) => {
    const loaded = await requests.load(tx, tenant.id, 'a');
    await requests.end(tx, serviceActor('r'), loaded, state);
    // What else was recorded about it does not hide that.
    for (let more = 0; more < 120; more += 1) await requests.audit(tx, serviceActor('r'), 'approval.approved', loaded);
  });
  await expect(sealers.store.write((tx) => use(withOlderRow(tx)))).rejects.toMatchObject({ code: 'key-tampered' });
});
