// Message keys: one follows from each KEK and seals the states of messages in parts. An erasure run
// deletes the KEK of an epoch, and no record ever holds the message key, so both are gone from
// every disk. In memory the message key outlives its KEK: otherwise each destruction of a key would
// end the messages in parts of the whole tenant. It opens states only, no key.

import { labelBytes } from '../../../addon/labels.ts';
import type { CryptoCore, KekRef } from '../../ports/crypto-core.ts';
import type { OpenKek } from './kek-records.ts';

/** In memory: of one tenant, and of all. A message whose key has gone begins again. */
const mostOfTenant = 32;
const most = 512;
const label = labelBytes('dke message key 1');
const noSalt = new Uint8Array(0);

interface MessageKey {
  readonly tenantId: string;
  readonly epoch: number;
  readonly key: KekRef;
}

export const createMessageKeys = (core: CryptoCore) => {
  /** In the order in which they were made. */
  let keys: readonly MessageKey[] = [];
  const drop = (goes: (key: MessageKey) => boolean): void => {
    for (const each of keys) if (goes(each)) core.release(each.key);
    keys = keys.filter((each) => !goes(each));
  };
  return {
    drop,
    /** `kek`: of this epoch, as long as there is one. */
    of: (tenantId: string, epoch: number, kek: OpenKek | undefined): KekRef | undefined => {
      const known = keys.find((each) => each.epoch === epoch && each.tenantId === tenantId);
      if (known !== undefined || kek === undefined) return known?.key;
      const own = keys.filter((each) => each.tenantId === tenantId);
      const oldest = own.length < mostOfTenant ? keys.slice(0, Math.max(0, keys.length + 1 - most)) : own.slice(0, 1);
      drop((each) => oldest.includes(each));
      const key = core.hkdf(kek.key, 'sha256', noSalt, label, 'kek', 32);
      keys = [...keys, { tenantId, epoch, key }];
      return key;
    },
  };
};
