// Decrypt. The key version is in the ciphertext's metadata, so what an older version sealed still opens.

import { findKey, type XksAnswer, type XksCall, type XksContext } from './call.ts';
import { XksRefusal } from './errors.ts';

const undecipherable = (): XksRefusal =>
  new XksRefusal('InvalidCiphertextException', 'the ciphertext does not decrypt');

export const decrypt = (context: XksContext, call: XksCall): XksAnswer => {
  const key = findKey(context, call, 'decrypt');
  const version = key.versions.get(call.parsed.keyVersion);
  if (version === undefined) throw undecipherable();
  try {
    return context.core.xksDecrypt(call.parsed.body, version, key.binding);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'authentication-failed') throw undecipherable();
    throw error;
  }
};
