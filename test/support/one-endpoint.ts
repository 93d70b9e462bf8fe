// A tenant with one vault, one key and one endpoint that uses it, as they are stored.
import { newId } from '../../server/base/ids.ts';
import { defaultSettings, type Endpoint } from '../../server/domain/endpoint.ts';
import { type Key, newKey } from '../../server/domain/key.ts';
import type { Tenant } from '../../server/domain/tenant.ts';
import type { Vault } from '../../server/domain/vault.ts';
import { newTenant } from '../../server/operations/tenants/create-tenant.ts';
import type { Repositories } from '../../server/ports/store.ts';
import { storedVault } from './stored.ts';

export interface OneEndpoint {
  readonly tenant: Tenant;
  readonly vault: Vault;
  readonly key: Key;
  /** At the prefix /door. */
  readonly endpoint: Endpoint;
  insert(tx: Repositories): Promise<void>;
}

export const oneEndpoint = (ofKey: Partial<Key> = {}): OneEndpoint => {
  const tenant = newTenant('default', 1);
  const vault = storedVault({ tenantId: tenant.id });
  const key: Key = {
    ...newKey({ id: newId(4), tenantId: tenant.id, vaultId: vault.id, name: 'key', createdAt: 3 }),
    ...ofKey,
  };
  const endpoint: Endpoint = {
    ...{ id: newId(6), tenantId: tenant.id, name: 'door', prefix: '/door', vaultId: vault.id, keyId: key.id },
    ...{ state: 'enabled', settings: defaultSettings, createdAt: 4, credentials: [], integrity: 'ok' },
  };
  return {
    tenant,
    vault,
    key,
    endpoint,
    insert: async (tx) => {
      await tx.tenants.insert(tenant);
      await tx.vaults.insert(vault);
      await tx.keys.insert(key);
      await tx.endpoints.insert(endpoint);
    },
  };
};
