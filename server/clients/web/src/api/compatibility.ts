// What each compatibility switch of a TDE application permits, and what it costs
// (docs/compatibility.md).

import type { Application } from './types.ts';

export type CompatibilitySwitch = Application['compatibility'][number];

export const compatibilitySwitches: Readonly<
  Record<CompatibilitySwitch, { readonly label: string; readonly cost: string }>
> = {
  'rsa-pkcs1-encryption': {
    label: 'RSA PKCS#1 v1.5 encryption',
    cost: 'A program that reveals whether a decrypted message makes sense can be used to decrypt other messages.',
  },
  'sha1-signatures': {
    label: 'SHA-1 signatures',
    cost: 'An attacker who can choose what is signed can find two documents with the same signature.',
  },
  'short-rsa-verification': {
    label: 'Short RSA keys, to verify only',
    cost: 'RSA keys below 2048 bits can be broken with large resources. Signatures can then be forged.',
  },
  'short-rsa-keys': {
    label: 'Short RSA keys, for all uses',
    cost: 'RSA keys below 2048 bits can be broken with large resources. Encrypted data can then be read.',
  },
  'repeated-ivs': {
    label: 'Repeated IVs in AES-GCM and AES-CCM',
    cost: 'Anyone who sees both messages learns how they differ, and can forge further messages.',
  },
};
export const compatibilityNames = Object.keys(compatibilitySwitches) as CompatibilitySwitch[];
