// GetKeyMetadata.

import { findKey, jsonAnswer, type XksAnswer, type XksCall, type XksContext } from './call.ts';

const maxUsages = 10;

export const getKeyMetadata = (context: XksContext, call: XksCall): XksAnswer => {
  const key = findKey(context, call, null);
  return jsonAnswer({
    keySpec: key.algorithm === 'aes' ? `AES_${key.bits}` : `${key.algorithm.toUpperCase()}_${key.bits}`,
    keyUsage: key.usages.slice(0, maxUsages).map((usage) => usage.toUpperCase()),
    keyStatus: key.enabled ? 'ENABLED' : 'DISABLED',
  });
};
