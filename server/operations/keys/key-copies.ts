// The copies of a key in other tenants, as they are shown. People of one tenant are told how many there are, and not where.

import type { Key, KeyCopies } from '../../domain/key.ts';
import { everyTenant, type TenantScope } from '../../domain/tenant.ts';
import type { Repositories } from '../../ports/store.ts';

export const findCopies = async (
  from: Pick<Repositories, 'keys' | 'tenants'>,
  key: Pick<Key, 'id' | 'copyOf'>,
  reach: TenantScope,
): Promise<KeyCopies> => {
  const found = await from.keys.usableCopies(key);
  const items: KeyCopies['items'][number][] = [];
  for (const { id, tenantId, applicationId } of found)
    if (reach === everyTenant || reach === tenantId) {
      const tenant = await from.tenants.stored(tenantId);
      items.push({ keyId: id, tenantId, tenantName: tenant?.name ?? tenantId, applicationId });
    }
  return { count: found.length, items };
};
