// Look-ups that must succeed: one place says what is missing. What another tenant has is missing like anything else.

import { ServiceError } from '../../base/errors.ts';
import type { Endpoint } from '../../domain/endpoint.ts';
import type { Key } from '../../domain/key.ts';
import { largestPageSize } from '../../domain/page.ts';
import type { TdeApplication, TdeGroup } from '../../domain/tde.ts';
import type { Tenant, TenantScope } from '../../domain/tenant.ts';
import type { Vault } from '../../domain/vault.ts';
import type { Repositories, StoredToken } from '../../ports/store.ts';

type Reads<K extends keyof Repositories> = Pick<Repositories, K>;

const orMissing = <T>(found: T | undefined, what: string): T => {
  if (found === undefined) throw new ServiceError('not-found', `${what} not found`);
  return found;
};

export const defaultTenantSetting = 'default-tenant';

export const findDefaultTenant = async (from: Reads<'decisions' | 'tenants'>): Promise<Tenant> => {
  const id = await from.decisions.get(defaultTenantSetting);
  const found = id === undefined ? undefined : await from.tenants.get(id);
  // The first start makes it, and it cannot be deleted.
  if (found === undefined) throw new ServiceError('key-tampered', 'the store has lost its default tenant');
  return found;
};
export const findTenant = async (from: Reads<'tenants'>, id: string): Promise<Tenant> =>
  orMissing(await from.tenants.get(id), 'tenant');
export const findVault = async (from: Reads<'vaults'>, tenant: TenantScope, id: string): Promise<Vault> =>
  orMissing(await from.vaults.get(tenant, id), 'vault');
export const findGroup = async (from: Reads<'groups'>, tenant: TenantScope, id: string): Promise<TdeGroup> =>
  orMissing(await from.groups.get(tenant, id), 'group');
/** Whose vault, and with it the rules for what is in it, is to be gone by. */
export const findSoundGroup = async (from: Reads<'groups'>, tenant: TenantScope, id: string): Promise<TdeGroup> => {
  const group = await findGroup(from, tenant, id);
  if (group.integrity !== 'ok')
    throw new ServiceError('key-tampered', `the stored group ${group.name} was changed from outside`, {
      hint: 'compare the database with a backup; dke verify names every such row',
    });
  return group;
};
export const findApplication = async (
  from: Reads<'applications'>,
  tenant: TenantScope,
  id: string,
): Promise<TdeApplication> => orMissing(await from.applications.get(tenant, id), 'application');
export const findEndpoint = async (from: Reads<'endpoints'>, tenant: TenantScope, id: string): Promise<Endpoint> => {
  const endpoint = await from.endpoints.get(tenant, id);
  return orMissing(endpoint?.state === 'deleted' ? undefined : endpoint, 'endpoint');
};
export const findToken = async (from: Reads<'tokens'>, tenant: TenantScope, id: string): Promise<StoredToken> =>
  orMissing(await from.tokens.get(tenant, id), 'token');

/** Identifiers are case-sensitive: the hint helps where only the case differs. */
export const findKey = async (from: Reads<'keys'>, tenant: TenantScope, id: string): Promise<Key> => {
  const key = await from.keys.get(tenant, id);
  if (key === undefined)
    throw new ServiceError('key-not-found', 'key not found', { hint: 'identifiers are case-sensitive' });
  return key;
};

/** Every vault of a tenant. */
export const vaultsOf = async (from: Reads<'vaults'>, tenantId: string): Promise<readonly Vault[]> => {
  const vaults: Vault[] = [];
  for (let after: string | undefined; ; after = vaults.at(-1)?.id) {
    const window = { limit: largestPageSize, ...(after === undefined ? {} : { after }) };
    const page = await from.vaults.list(tenantId, window);
    vaults.push(...page);
    if (page.length < largestPageSize) return vaults;
  }
};
