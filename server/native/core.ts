// The crypto core for the server: the addon, with its memory reserved. Errors stay CoreError here; operations and the key
// ring say what they mean.

import { CoreError, core } from '../../addon/core.ts';
import type { CryptoCore, MemoryStatus } from '../ports/crypto-core.ts';

export { CoreError };

/** Reserves the locked memory, once per process. Throws CoreError 'memory-lock' with the limit to raise. */
export const openCore = (options: {
  readonly arenaBytes: number;
  readonly allowUnlocked: boolean;
}): { readonly core: CryptoCore; readonly memory: MemoryStatus } => ({ core, memory: core.initialize(options) });
