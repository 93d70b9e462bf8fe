// Keys of tenants in memory that the store does not have: of a unit of work that failed, or of a
// tenant that was purged. They go.

import type { Ports } from '../../ports/ports.ts';

/**
 * A unit of work itself, so that none is under way in the meantime: what it stores is not seen
 * outside before its commit, and its keys would be taken away under its hands. Throws what
 * `store.write` does.
 */
export const retainStoredKeys = ({ store, ring }: Pick<Ports, 'store' | 'ring'>): Promise<void> =>
  store.write((tx) => ring.retainStored(tx), { durable: false });
