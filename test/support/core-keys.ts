// The core addon for tests: its memory reserved, and small helpers around keys and output buffers.
// A test may see key values that the product keeps inside the addon, because it brought them.

import {
  type AnyKeyRef,
  type CipherParameters,
  core,
  type Digest,
  type Direction,
  type KeyRef,
  type MacParameters,
} from '../../addon/core.ts';
import { digestLengths } from '../../server/base/digests.ts';

// A sandbox may lock too little memory; what locking does is tested where it can be
// (memory.test.ts).
core.initialize({ allowUnlocked: true });

export { core };

/** Uses a key and always releases it. */
export const withKey = <T, Ref extends AnyKeyRef>(key: Ref, use: (key: Ref) => T): T => {
  try {
    return use(key);
  } finally {
    core.release(key);
  }
};

export const aesKey = (value: Uint8Array): KeyRef => core.importSecret('aes', value);
export const genericKey = (value: Uint8Array): KeyRef => core.importSecret('generic', value);

export const runCipher = (
  key: KeyRef,
  direction: Direction,
  parameters: CipherParameters,
  input: Uint8Array,
): Buffer => {
  const out = Buffer.alloc(core.cipherLength(direction, parameters, input.length));
  return out.subarray(0, core.cipher(key, direction, parameters, input, out));
};

export const digestLength = (digest: Digest): number => digestLengths[digest];

export const runDigest = (digest: Digest, input: Uint8Array): Buffer => {
  const out = Buffer.alloc(digestLength(digest));
  return out.subarray(0, core.digest(digest, input, out));
};

export const macLength = (parameters: MacParameters): number =>
  parameters.algorithm === 'hmac' ? digestLength(parameters.digest) : 16;

export const runMac = (key: KeyRef, parameters: MacParameters, input: Uint8Array): Buffer => {
  const out = Buffer.alloc(macLength(parameters));
  return out.subarray(0, core.mac(key, parameters, input, out));
};

/** A KEK where its type does not let one: for tests that the core refuses it as well. */
export const misplacedKek = (): KeyRef => core.generateKek() as unknown as KeyRef;
