// First start: the default tenant with its KEK, a general vault, and one administrator token, whose value is returned once.
// Later starts find them and change nothing.

import { serviceTenantId } from '../base/ids.ts';
import { acrossTenants, serviceActor } from '../domain/actor.ts';
import { everyTenant } from '../domain/tenant.ts';
import type { Ports } from '../ports/ports.ts';
import { createTenantIn, newTenant } from './create-tenant.ts';
import { defaultTenantSetting } from './find.ts';
import { createToken } from './manage-tokens.ts';

export const setUp =
  (ports: Pick<Ports, 'store' | 'core' | 'ring' | 'clock'>) =>
  async (): Promise<{ readonly adminToken: string | undefined }> => {
    const { store, ring, clock } = ports;
    const actor = serviceActor('first-start');
    // A store that has tenants is past its first start: when it has lost the name of the default one, no other is made in its place.
    if ((await store.read.tenants.list()).length === 0) {
      const now = clock.now();
      const tenant = newTenant('default', now);
      await store.write(async (tx) => {
        await createTenantIn({ ring }, tx, actor, tenant);
        await tx.settings.set(defaultTenantSetting, tenant.id);
      });
    }
    if ((await store.read.tokens.list(everyTenant, { limit: 1 })).length > 0) return { adminToken: undefined };
    // Tokens that somebody removed from the database are not replaced: the audit log shows that there was a first one.
    const [made] = await store.read.audit.list(everyTenant, { kind: 'token.created', order: 'oldest' }, { limit: 1 });
    if (made !== undefined) return { adminToken: undefined };
    const { token } = await createToken(ports)(acrossTenants(actor, serviceTenantId), 'the service', {
      name: 'first administrator',
      grants: [{ role: 'administrator', scope: null, tenantId: null }],
    });
    return { adminToken: token };
  };
