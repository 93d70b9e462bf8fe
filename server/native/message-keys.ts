// Message keys: one follows from each KEK and seals the states of messages in parts. An erasure run deletes the KEK of an epoch,
// and no record ever holds the message key, so both are gone from every disk. In memory the message key outlives its KEK:
// otherwise each destruction of a key would end the messages in parts of the whole tenant. It opens states only, no key.

import { labelBytes } from '../../addon/labels.ts';
import type { CryptoCore, KeyRef } from '../ports/crypto-core.ts';
import type { OpenKek } from './kek-records.ts';

/** Of a tenant, in memory. A message that lasts for more erasure runs than this begins again. */
const mostEpochs = 32;
const label = labelBytes('dke message key 1');
const noSalt = new Uint8Array(0);

export const createMessageKeys = (core: CryptoCore) => {
  /** By tenant and epoch, in the order in which they came. */
  const keys = new Map<string, Map<number, KeyRef>>();
  const drop = (tenantId: string): void => {
    for (const key of keys.get(tenantId)?.values() ?? []) core.release(key);
    keys.delete(tenantId);
  };
  return {
    keep: (tenantId: string, { epoch, key }: OpenKek): void => {
      const own = keys.get(tenantId) ?? new Map<number, KeyRef>();
      keys.set(tenantId, own);
      // An epoch comes a second time when the unit of work that first made it was not committed.
      for (const passed of own.has(epoch) ? [epoch] : [...own.keys()].slice(0, own.size + 1 - mostEpochs)) {
        core.release(own.get(passed) as KeyRef);
        own.delete(passed);
      }
      own.set(epoch, core.hkdf(key, 'sha256', noSalt, label, 'kek', 32));
    },
    find: (tenantId: string, epoch: number): KeyRef | undefined => keys.get(tenantId)?.get(epoch),
    drop,
  };
};
