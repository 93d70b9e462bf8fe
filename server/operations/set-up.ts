// First start: the default tenant with its KEK, a general vault, and one administrator token, whose value is returned once.
// Later starts find them and change nothing.

import { newId } from '../base/ids.ts';
import { serviceActor } from '../domain/actor.ts';
import type { Ports } from '../ports/ports.ts';
import { defaultTenantSetting } from './find.ts';
import { createToken } from './manage-tokens.ts';

export const setUp =
  (ports: Pick<Ports, 'store' | 'core' | 'ring' | 'clock'>) =>
  async (): Promise<{ readonly adminToken: string | undefined }> => {
    const { store, ring, clock } = ports;
    const actor = serviceActor('first-start');
    if ((await store.read.settings.get(defaultTenantSetting)) === undefined) {
      const now = clock.now();
      const tenant = { id: newId(now), name: 'default', createdAt: now };
      await store.write(async (tx) => {
        await tx.tenants.insert(tenant);
        await ring.addTenant(tx, tenant.id);
        await tx.settings.set(defaultTenantSetting, tenant.id);
        await tx.audit.append({
          kind: 'tenant.created',
          actor,
          tenantId: tenant.id,
          subject: { kind: 'tenant', id: tenant.id },
          details: { name: tenant.name },
        });
      });
    }
    if ((await store.read.tokens.list({ limit: 1 })).length > 0) return { adminToken: undefined };
    const { token } = await createToken(ports)(actor, 'the service', {
      name: 'first administrator',
      grants: [{ role: 'administrator', scope: null, tenantId: null }],
    });
    return { adminToken: token };
  };
