// Recipients of keys that clients seal to a tenant: the HPKE pair of a key encryption key
// (addon/FORMAT.md, section 4).

import { CoreError } from '../../../addon/core.ts';
import { labelBytes } from '../../../addon/labels.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { CryptoCore, KekRef, KeyRef } from '../../ports/crypto-core.ts';
import type { KeyRing } from '../../ports/key-ring.ts';
import type { TenantKeks } from './tenant-keks.ts';

const nothing = new Uint8Array(0);
const recipientLabel = labelBytes('dke key recipient 1');

export const createRecipients = (
  core: CryptoCore,
  keks: Pick<TenantKeks, 'find' | 'current'>,
): Pick<KeyRing, 'recipient' | 'openSealed'> => {
  /** The caller releases it. */
  const pairOf = (kek: KekRef): KeyRef => {
    const secret = core.hkdf(kek, 'sha256', nothing, recipientLabel, 'generic', 32);
    try {
      return core.deriveHpkeKey(secret);
    } finally {
      core.release(secret);
    }
  };
  return {
    recipient: (tenantId) => {
      const { epoch, key } = keks.current(tenantId);
      const pair = pairOf(key);
      try {
        return { epoch, publicKey: core.hpkePublicKey(pair) };
      } finally {
        core.release(pair);
      }
    },
    openSealed: async (tenantId, { recipient, sealed, info, bound }, kind) => {
      const kek = keks.find(tenantId, recipient.epoch);
      if (kek === undefined) return null;
      const pair = pairOf(kek.key);
      try {
        // Another public key is that of the same epoch of another store, before this store was put
        // in its place.
        if (Buffer.compare(core.hpkePublicKey(pair), recipient.publicKey) !== 0) return null;
        if (kind !== 'private') return core.hpkeOpenKey(pair, info, bound, sealed, kind);
        return await core.hpkeOpenKeyLater(pair, info, bound, sealed, kind);
      } catch (error) {
        if (error instanceof CoreError && error.code === 'authentication-failed')
          throw new ServiceError('invalid-ciphertext', 'the sealed key does not open', { cause: error });
        throw error;
      } finally {
        core.release(pair);
      }
    },
  };
};
