// Random number generation functions, PKCS#11 2.40 section 5.15.
import { core } from '../../../addon/core.ts';
import { CKR } from '../../schema/return-values.ts';
import { CryptokiError } from '../../schema/types.ts';
import type { GuardedHandlers } from './guards.ts';

export const random = {
  // C_SeedRandom, section 5.15. The generator is seeded by the system; a caller's seed is accepted
  // and changes nothing, so that programs which insist on giving one continue.
  C_SeedRandom: () => undefined,

  C_GenerateRandom: (_session, { random }) => {
    const { capacity, space } = random;
    // The length is a peer's word: nothing is made of it that no frame could carry.
    if (space.length < (capacity ?? 0)) throw new CryptokiError(CKR.DEVICE_MEMORY, 'the answer exceeds a frame');
    if (space.length > 0) core.random(space);
    return space.length;
  },
} as const satisfies GuardedHandlers;
