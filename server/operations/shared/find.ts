// Look-ups that must succeed: one place says what is missing. What another tenant has is missing
// like anything else.
//
// `find…` is for decisions: a row that was changed from outside the service is refused
// ('key-tampered'), because its state, rule or owner is not known. `show…` answers the row as it is
// stored, for people: it says that it was changed.

import { ServiceError } from '../../base/service-error.ts';
import type { Endpoint } from '../../domain/endpoint.ts';
import type { Key } from '../../domain/key.ts';
import { largestPageSize } from '../../domain/page.ts';
import type { TdeApplication, TdeGroup } from '../../domain/tde.ts';
import type { Tenant, TenantScope } from '../../domain/tenant.ts';
import type { Sound, Vault } from '../../domain/vault.ts';
import type { Repositories, StoredToken } from '../../ports/store.ts';
import { byId, each } from './paging.ts';

type Reads<K extends keyof Repositories> = Pick<Repositories, K>;

const orMissing = <T>(found: T | undefined, what: string): T => {
  if (found === undefined) throw new ServiceError('not-found', `${what} not found`);
  return found;
};

export const defaultTenantSetting = 'default-tenant';

export const findDefaultTenant = async (from: Reads<'decisions' | 'tenants'>): Promise<Tenant> => {
  const id = await from.decisions.get(defaultTenantSetting);
  const found = id === undefined ? undefined : await from.tenants.stored(id);
  // The first start makes it, and it cannot be deleted.
  if (found === undefined) throw new ServiceError('key-tampered', 'the store has lost its default tenant');
  return found;
};
export const findTenant = async (from: Reads<'tenants'>, id: string): Promise<Sound<Tenant>> =>
  orMissing(await from.tenants.get(id), 'tenant');
export const showTenant = async (from: Reads<'tenants'>, id: string): Promise<Tenant> =>
  orMissing(await from.tenants.stored(id), 'tenant');
type Lookup<K extends keyof Repositories, T> = (from: Reads<K>, tenant: TenantScope, id: string) => Promise<T>;
export const findVault: Lookup<'vaults', Sound<Vault>> = async (from, tenant, id) =>
  orMissing(await from.vaults.get(tenant, id), 'vault');
export const showVault: Lookup<'vaults', Vault> = async (from, tenant, id) =>
  orMissing(await from.vaults.stored(tenant, id), 'vault');
export const findGroup: Lookup<'groups', Sound<TdeGroup>> = async (from, tenant, id) =>
  orMissing(await from.groups.get(tenant, id), 'group');
export const showGroup: Lookup<'groups', TdeGroup> = async (from, tenant, id) =>
  orMissing(await from.groups.stored(tenant, id), 'group');
export const findApplication: Lookup<'applications', Sound<TdeApplication>> = async (from, tenant, id) =>
  orMissing(await from.applications.get(tenant, id), 'application');
export const showApplication: Lookup<'applications', TdeApplication> = async (from, tenant, id) =>
  orMissing(await from.applications.stored(tenant, id), 'application');
const unlessDeleted = <E extends Endpoint>(endpoint: E | undefined): E =>
  orMissing(endpoint?.state === 'deleted' ? undefined : endpoint, 'endpoint');
export const findEndpoint: Lookup<'endpoints', Sound<Endpoint>> = async (from, tenant, id) =>
  unlessDeleted(await from.endpoints.get(tenant, id));
export const showEndpoint: Lookup<'endpoints', Endpoint> = async (from, tenant, id) =>
  unlessDeleted(await from.endpoints.stored(tenant, id));
export const findToken = async (from: Reads<'tokens'>, tenant: TenantScope, id: string): Promise<StoredToken> =>
  orMissing(await from.tokens.get(tenant, id), 'token');

/** Identifiers are case-sensitive: the hint helps where only the case differs. */
const orNoKey = <K extends Key>(key: K | undefined): K => {
  if (key === undefined)
    throw new ServiceError('key-not-found', 'key not found', { hint: 'identifiers are case-sensitive' });
  return key;
};
export const findKey: Lookup<'keys', Sound<Key>> = async (from, tenant, id) => orNoKey(await from.keys.get(tenant, id));
export const showKey: Lookup<'keys', Key> = async (from, tenant, id) => orNoKey(await from.keys.stored(tenant, id));

/**
 * Every vault of a tenant. A rule that was removed from its row outside the service may still
 * apply: such a row is refused.
 */
export const vaultsOf = async (from: Reads<'vaults'>, tenantId: string): Promise<readonly Sound<Vault>[]> => {
  const vaults: Sound<Vault>[] = [];
  for await (const { id } of each((window) => from.vaults.list(tenantId, window), byId, largestPageSize))
    vaults.push(await findVault(from, tenantId, id));
  return vaults;
};
