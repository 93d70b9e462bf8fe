// HMAC-SHA-256 under a key in the addon, as 64 hexadecimal digits.

import type { CryptoCore, KeyRef } from '../ports/crypto-core.ts';

export const macOf = (core: CryptoCore, key: KeyRef, bytes: Uint8Array): string => {
  const out = Buffer.alloc(32);
  core.mac(key, { algorithm: 'hmac', digest: 'sha256' }, bytes, out);
  return out.toString('hex');
};
export const mac = (core: CryptoCore, key: KeyRef, text: string): string => macOf(core, key, Buffer.from(text, 'utf8'));
