// The part of the addon that the simulated cloud uses: the only file here that loads it. Its keys
// (access keys, one AES key for each KMS key) live in the addon's memory and end with the process.

import { type Core, core } from '../../../addon/core.ts';

export type { KeyRef } from '../../../addon/core.ts';

export type CloudCrypto = Pick<
  Core,
  | 'cipher'
  | 'createSelfSignedCertificate'
  | 'generateAes'
  | 'generateSecretAccessKey'
  | 'importSecret'
  | 'mac'
  | 'random'
  | 'release'
  | 'sigv4SigningKey'
  | 'sigv4Verify'
  | 'wipe'
>;

/** Reserves locked memory. Throws CoreError 'memory-lock' with the limit to raise. */
export const openCrypto = (): CloudCrypto => {
  core.initialize();
  return core;
};
