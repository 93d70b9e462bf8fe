// Key management functions, PKCS#11 2.40 section 5.14: generation of keys.
import { CKF } from '../../schema/constants.ts';
import { argumentsBad, mechanismInvalid } from '../errors.ts';
import type { GuardedHandlers } from '../guards.ts';
import { generatePair } from '../operations/key-pairs.ts';
import { mechanismFor, noParameter } from '../operations/mechanisms.ts';
import { generateObject } from '../operations/objects.ts';

export const key = {
  // C_GenerateKey, section 5.14. A token key is made by the service and never leaves it.
  C_GenerateKey: (session, { mechanism, template }) => {
    if (mechanism === null) throw argumentsBad();
    const { type, generates } = mechanismFor(mechanism, CKF.GENERATE);
    if (generates === undefined) throw mechanismInvalid();
    noParameter(mechanism);
    return generateObject(session, type, generates, template);
  },

  // C_GenerateKeyPair, section 5.14.
  C_GenerateKeyPair: (session, { mechanism, publicTemplate, privateTemplate }) => {
    if (mechanism === null) throw argumentsBad();
    const { type, generatesPair } = mechanismFor(mechanism, CKF.GENERATE_KEY_PAIR);
    if (generatesPair === undefined) throw mechanismInvalid();
    noParameter(mechanism);
    return generatePair(session, type, generatesPair, publicTemplate, privateTemplate);
  },
} as const satisfies GuardedHandlers;
