// The crypto core for the server: the addon, with its memory reserved, speaking ServiceError. `raw` is the addon itself,
// for the adapters next to this file that must tell its errors apart.

import { type Core, core as raw } from '../../addon/core.ts';
import type { CryptoCore, MemoryStatus } from '../ports/crypto-core.ts';
import { translateCoreError } from './errors.ts';

const names = [
  'memoryStatus',
  'wipe',
  'random',
  'timingSafeEqual',
  'newIvOwner',
  'ivUsed',
  'claimIv',
  'generateAes',
  'generateGeneric',
  'generateKek',
  'importSecret',
  'exportSecret',
  'describe',
  'checkValue',
  'release',
  'cipher',
  'cipherLength',
  'cipherPart',
  'macPart',
  'mac',
  'sealRecord',
  'openRecord',
  'resealRecord',
  'peekRecord',
  'generateRsaLater',
  'generateEc',
  'importPublicKey',
  'exportPrivateKey',
  'exportPublicKey',
  'sign',
  'signLater',
  'rsaDecrypt',
  'rsaDecryptLater',
  'wrapKey',
  'unwrapKey',
  'unwrapKeyLater',
  'ecdh',
  'hkdf',
  'deriveByEncryption',
  'sp800108',
  'hpkeSealKey',
  'generateHpkeKey',
  'deriveHpkeKey',
  'hpkePublicKey',
  'hpkeOpenKey',
  'hpkeOpenKeyLater',
  'hpkeSealKek',
  'hpkeOpenKek',
  'generateSecretAccessKey',
] as const satisfies readonly (keyof CryptoCore)[];

type Function = (...input: readonly unknown[]) => unknown;

const translated = (): CryptoCore => {
  const functions = names.map((name) => {
    const call = raw[name] as Function;
    const guarded: Function = (...input) => {
      try {
        const answer = call(...input);
        if (!(answer instanceof Promise)) return answer;
        return answer.catch((error: unknown) => {
          throw translateCoreError(error);
        });
      } catch (error) {
        throw translateCoreError(error);
      }
    };
    return [name, guarded] as const;
  });
  return Object.freeze(Object.fromEntries(functions)) as unknown as CryptoCore;
};

/** Reserves the locked memory, once per process. Throws CoreError 'memory-lock' with the limit to raise. */
export const openCore = (options: {
  /** Size of the locked key arena; the addon's default when absent. */
  readonly arenaBytes?: number;
  readonly allowUnlocked: boolean;
}): { readonly core: CryptoCore; readonly raw: Core; readonly memory: MemoryStatus } => {
  const memory = raw.initialize(options);
  return { core: translated(), raw, memory };
};
