// First start: the default tenant with its KEK, a general vault, and one administrator token, whose
// value is shown once. It counts as shown when the decision `first-token` is gone: a start that
// ends before that, by a crash for example, leaves it to the next one, which puts another token in
// its place. Later starts find them and change nothing. Several nodes may start at the same time:
// each decides in the unit of work that creates.

import { serviceTenantId } from '../../base/ids.ts';
import { acrossTenants, serviceActor } from '../../domain/actor.ts';
import type { DecisionName } from '../../domain/decisions.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { createToken, revokeTokens } from '../access/manage-tokens.ts';
import { defaultTenantSetting } from '../shared/find.ts';
import { createTenantIn, newTenant } from '../tenants/create-tenant.ts';

/** Tokens that were removed from the database are not replaced: the audit log shows that there was a first one. */
const hadToken = async (from: Repositories): Promise<boolean> =>
  (await from.tokens.list(everyTenant, { limit: 1 })).length > 0 ||
  (await from.audit.list(everyTenant, { kind: 'token.created', order: 'oldest' }, { limit: 1 })).length > 0;

/** Thrown when another node has created the first token in the meantime. */
class Done extends Error {
  override readonly name = 'Done';
}

/** That its value was not shown yet; the first node holds the others back until it was. */
const unshown: DecisionName = 'first-token';

export const setUp =
  (ports: Pick<Ports, 'store' | 'core' | 'ring' | 'clock'>) =>
  /** `show`: returns when the reader of the value has it. */
  async (show: (token: string) => void): Promise<{ readonly adminToken: string | undefined }> => {
    const { store, ring, clock } = ports;
    const actor = serviceActor('first-start');
    // A store that has tenants is past its first start: when it has lost the name of the default one, no other is made in its place.
    if ((await store.read.tenants.list()).length === 0) {
      const now = clock.now();
      const tenant = newTenant('default', now);
      await store.write(async (tx) => {
        if ((await tx.tenants.list()).length > 0) return;
        await createTenantIn({ ring }, tx, actor, tenant);
        await tx.decisions.set(defaultTenantSetting, tenant.id);
      });
    }
    const isUnshown = async (from: Repositories): Promise<boolean> => (await from.decisions.get(unshown)) !== undefined;
    if ((await hadToken(store.read)) && !(await isUnshown(store.read))) return { adminToken: undefined };
    const requireFirst = async (tx: Repositories): Promise<void> => {
      // Without the value of the first token there is no other one.
      if (await isUnshown(tx)) await revokeTokens(tx, actor, clock.now(), () => true);
      else if (await hadToken(tx)) throw new Done();
      await tx.decisions.set(unshown, 'yes');
    };
    try {
      const { token } = await createToken(ports, requireFirst)(acrossTenants(actor, serviceTenantId), 'the service', {
        name: 'first administrator',
        grants: [{ role: 'administrator', scope: null, tenantId: null }],
      });
      show(token);
      await store.write((tx) => tx.decisions.set(unshown, null));
      return { adminToken: token };
    } catch (error) {
      if (error instanceof Done) return { adminToken: undefined };
      throw error;
    }
  };
