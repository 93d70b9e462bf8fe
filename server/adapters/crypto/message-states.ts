// What seals the state between two parts of a long message, which returns through the caller
// (addon/core/ciphers/service_seal.h): a message key of the tenant (message-keys.ts). A sealed
// state begins with its epoch (u32), because nodes change epochs one after the other.

import type { KeyRing } from '../../ports/key-ring.ts';
import type { TenantKeks } from './tenant-keks.ts';

const epochLength = 4;

export const createMessageStates = (
  keks: Pick<TenantKeks, 'messageKey' | 'current'>,
): Pick<KeyRing, 'messageSeal'> => ({
  messageSeal: ({ tenantId, applicationId, objectId }, state) => {
    const first = state.length === 0;
    if (!first && state.length <= epochLength) return null;
    const epoch = first
      ? keks.current(tenantId).epoch
      : new DataView(state.buffer, state.byteOffset, epochLength).getUint32(0);
    const kek = keks.messageKey(tenantId, epoch);
    if (kek === undefined) return null;
    const front = Buffer.alloc(epochLength);
    front.writeUInt32BE(epoch);
    return {
      part: {
        kek,
        owner: Buffer.from(`${applicationId}\n${objectId}`),
        state: state.subarray(first ? 0 : epochLength),
      },
      carry: (sealed) => (sealed.length === 0 ? Buffer.alloc(0) : Buffer.concat([front, sealed])),
    };
  },
});
