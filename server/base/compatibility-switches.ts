// Weaker cryptography that programs of an application may depend on. Each switch is off until an
// administrator turns it on for one application; docs/compatibility.md describes the purpose and
// the cost of each one.

export const compatibilitySwitches = [
  /** Encryption and decryption with RSA PKCS#1 v1.5 padding, with implicit rejection. */
  'rsa-pkcs1-encryption',
  /** Signatures over SHA-1 digests. They are verified in any case. */
  'sha1-signatures',
  /** RSA public keys of 1024 to 2047 bits, to verify signatures. */
  'short-rsa-verification',
  /** RSA keys of 1024 to 2047 bits, private ones too. None is generated, and none wraps a key. */
  'short-rsa-keys',
  /** A second message under one IV of AES-GCM or AES-CCM. */
  'repeated-ivs',
] as const;
export type CompatibilitySwitch = (typeof compatibilitySwitches)[number];

/** RSA keys below 2048 bits need a switch. */
export const isShortRsa = (bits: number): boolean => bits < 2048;
