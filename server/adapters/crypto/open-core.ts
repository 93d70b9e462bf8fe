// The crypto core for the server: the addon, with its memory reserved, speaking ServiceError. `raw`
// is the addon itself, for the adapters next to this file that must tell its errors apart.

import { type Core, CoreError, type CoreErrorCode, core as raw } from '../../../addon/core.ts';
import { ServiceError, type ServiceErrorCode } from '../../base/service-error.ts';
import type { CryptoCore, MemoryStatus } from '../../ports/crypto-core.ts';

/** What the addon's errors mean to the caller who used a key. */
const meanings = {
  'bad-argument': ['validation', 'a parameter is out of range'],
  'bad-key': ['key-not-found', 'the key no longer exists'],
  'key-type': ['key-usage', 'the key is of another type'],
  'data-length': ['data-length', 'the input length does not fit the algorithm'],
  'buffer-too-small': ['internal', 'an output buffer was too small'],
  'authentication-failed': ['invalid-ciphertext', 'the input does not authenticate'],
  'signature-invalid': ['invalid-ciphertext', 'the input does not authenticate'],
  'memory-lock': ['unavailable', 'no locked memory is left for keys'],
  io: ['internal', 'a file operation failed'],
  permission: ['internal', 'a file has the wrong owner or mode'],
  format: ['key-tampered', 'a stored record has an unknown layout'],
  unsupported: ['unsupported', 'the algorithm or size is not supported'],
  internal: ['internal', 'the crypto core failed'],
} as const satisfies Record<CoreErrorCode, readonly [ServiceErrorCode, string]>;

/** The error as the caller gets it; anything but a CoreError comes back as it is. */
const translate = (error: unknown): unknown => {
  if (!(error instanceof CoreError)) return error;
  const [code, message] = meanings[error.code];
  return new ServiceError(code, message, { cause: error });
};

type Function = (...input: readonly unknown[]) => unknown;

const guarded =
  (call: Function): Function =>
  (...input) => {
    try {
      const answer = call(...input);
      if (!(answer instanceof Promise)) return answer;
      return answer.catch((error: unknown) => {
        throw translate(error);
      });
    } catch (error) {
      throw translate(error);
    }
  };

/** Which functions the server uses is a matter of its type (ports/crypto-core.ts). */
const translated = (): CryptoCore =>
  Object.freeze(
    Object.fromEntries(Object.entries(raw).map(([name, call]) => [name, guarded(call as Function)])),
  ) as unknown as CryptoCore;

/**
 * Reserves the locked memory, once per process. Throws CoreError 'memory-lock' with the limit to
 * raise.
 */
export const openCore = (options: {
  /** Size of the locked key arena; the addon's default when absent. */
  readonly arenaBytes?: number;
  readonly allowUnlocked: boolean;
}): { readonly core: CryptoCore; readonly raw: Core; readonly memory: MemoryStatus } => {
  const memory = raw.initialize(options);
  return { core: translated(), raw, memory };
};
