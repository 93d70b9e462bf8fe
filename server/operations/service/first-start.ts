// First start: the default tenant with its KEK, a general vault, and one administrator token, whose
// value is shown once. It counts as shown when the decision `first-token` says so: a start that
// ends before that, by a crash for example, leaves it to the next one, which puts another token in
// its place. Later starts find them and change nothing. Several nodes may start at the same time:
// each decides in the unit of work that creates.

import { serviceTenantId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import { acrossTenants, serviceActor } from '../../domain/actor.ts';
import type { DecisionName } from '../../domain/decisions.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { createToken, revokeTokens } from '../access/manage-tokens.ts';
import { defaultTenantSetting } from '../shared/find.ts';
import { hasRecord } from '../shared/tree-of-log.ts';
import { createTenantIn, newTenant } from '../tenants/create-tenant.ts';

/** That its value was not shown yet (`yes`); the first node holds the others back until it was. */
const unshown: DecisionName = 'first-token';
const shown = 'shown';

/**
 * Tokens that were removed from the database are not replaced: the decision says that there was a
 * first one. Where a version without that value was there first, the audit log shows it, and a log
 * that was changed shows nothing. Throws 'key-tampered'.
 */
const hadToken = async (from: Repositories): Promise<boolean> => {
  if ((await from.decisions.get(unshown)) === shown) return true;
  if ((await from.tokens.list(everyTenant, { limit: 1 })).length > 0) return true;
  const found = await hasRecord(from.audit, 'token.created');
  if (found !== undefined) return found;
  throw new ServiceError('key-tampered', 'the audit log was changed from outside: it does not show the first token', {
    hint: 'run dke audit verify on an export of it; the runbook for a lost administrator token creates one on the host',
  });
};

/** Thrown when another node has created the first token in the meantime. */
class Done extends Error {
  override readonly name = 'Done';
}

export const setUp =
  (ports: Pick<Ports, 'store' | 'core' | 'ring' | 'clock'>) =>
  /** `show`: returns when the reader of the value has it. */
  async (show: (token: string) => void): Promise<{ readonly adminToken: string | undefined }> => {
    const { store, ring, clock } = ports;
    const actor = serviceActor('first-start');
    // A store that has tenants is past its first start: when it has lost the name of the default
    // one, no other is made in its place.
    if ((await store.read.tenants.list()).length === 0) {
      const now = clock.now();
      const tenant = newTenant('default', now);
      await store.write(async (tx) => {
        if ((await tx.tenants.list()).length > 0) return;
        await createTenantIn({ ring }, tx, actor, tenant);
        await tx.decisions.set(defaultTenantSetting, tenant.id);
      });
    }
    const isUnshown = async (from: Repositories): Promise<boolean> => (await from.decisions.get(unshown)) === 'yes';
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
      await store.write((tx) => tx.decisions.set(unshown, shown));
      return { adminToken: token };
    } catch (error) {
      if (error instanceof Done) return { adminToken: undefined };
      throw error;
    }
  };
