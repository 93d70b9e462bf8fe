// Keys as people see them: a key of a vault that is disabled or deleted is not shown as one that
// works.

import type { Key, ShownKey } from '../../domain/key.ts';
import { effectiveState } from '../../domain/lifecycle.ts';
import type { Repositories } from '../../ports/store.ts';

/** These keys, in their order. A vault that is not there opens no key: it counts as deleted. */
export const showKeys = async <K extends Key>(
  from: Pick<Repositories, 'vaults'>,
  keys: readonly K[],
): Promise<readonly (K & ShownKey)[]> => {
  const vaults = await from.vaults.listByIds([...new Set(keys.map(({ vaultId }) => vaultId))]);
  const states = new Map(vaults.map(({ id, tenantId, state }) => [`${tenantId} ${id}`, state]));
  return keys.map((key) => {
    const vault = states.get(`${key.tenantId} ${key.vaultId}`) ?? 'deleted';
    return { ...key, effectiveState: effectiveState(key.state, vault) };
  });
};

export const asShown = async (from: Pick<Repositories, 'vaults'>, key: Key): Promise<ShownKey> => {
  const [shown] = await showKeys(from, [key]);
  return shown as ShownKey;
};
