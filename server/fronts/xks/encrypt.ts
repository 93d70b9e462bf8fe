// Encrypt. The addon encrypts, computes the integrity value, decrypts what it produced, compares, and writes the answer.

import { findKey, type XksAnswer, type XksCall, type XksContext } from './call.ts';
import { XksRefusal } from './errors.ts';

export const encrypt = (context: XksContext, call: XksCall): XksAnswer => {
  const key = findKey(context, call, 'encrypt');
  const version = key.versions.get(key.currentVersion);
  if (version === undefined) throw new XksRefusal('KeyNotFoundException', 'no such key');
  return context.core.xksEncrypt(call.parsed.body, version, key.currentVersion, key.binding);
};
