// What seals the state between two parts of a long message, which returns through the caller (addon/core/wrapping/service_seal.h): a key of the tenant's
// KEK. A sealed state begins with the epoch of that KEK (u32): nodes change epochs one after the other, and an erasure run ends the message.

import type { KeyRing } from '../ports/key-ring.ts';
import type { TenantKeks } from './tenant-keks.ts';

const epochLength = 4;

export const createMessageStates = (keks: Pick<TenantKeks, 'find' | 'current'>): Pick<KeyRing, 'messageSeal'> => ({
  messageSeal: ({ tenantId, applicationId, objectId }, state) => {
    const first = state.length === 0;
    if (!first && state.length <= epochLength) return null;
    const epoch = first
      ? keks.current(tenantId).epoch
      : new DataView(state.buffer, state.byteOffset, epochLength).getUint32(0);
    const kek = keks.find(tenantId, epoch);
    if (kek === undefined) return null;
    const front = Buffer.alloc(epochLength);
    front.writeUInt32BE(epoch);
    return {
      part: {
        kek: kek.key,
        owner: Buffer.from(`${applicationId}\n${objectId}`),
        state: state.subarray(first ? 0 : epochLength),
      },
      carry: (sealed) => (sealed.length === 0 ? Buffer.alloc(0) : Buffer.concat([front, sealed])),
    };
  },
});
