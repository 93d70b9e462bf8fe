// Random number generation functions, PKCS#11 2.40 section 5.15.
import { core } from '../../../addon/core.ts';
import type { GuardedHandlers } from '../guards.ts';

export const random = {
  // C_SeedRandom, section 5.15. The generator is seeded by the system; a caller's seed is accepted and changes nothing, so
  // that programs which insist on giving one go on.
  C_SeedRandom: () => undefined,

  C_GenerateRandom: (_session, { random }) => {
    const { capacity, space } = random;
    // More than a frame carries goes out through a buffer, which the codec cuts with an error of its own.
    const out = space.length === capacity ? space : Buffer.alloc(capacity ?? 0);
    if (out.length > 0) core.random(out);
    return out === space ? out.length : out;
  },
} as const satisfies GuardedHandlers;
