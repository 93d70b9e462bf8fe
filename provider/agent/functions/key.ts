// Key management functions, PKCS#11 2.40 section 5.14.
import { CKF } from '../../schema/constants.ts';
import { deriveKey } from '../operations/derivation.ts';
import { generatePair } from '../operations/key-pairs.ts';
import { noParameter } from '../operations/mechanism-parameters.ts';
import { mechanismFor } from '../operations/mechanisms.ts';
import { generateObject } from '../operations/objects.ts';
import { unwrapKey, wrapKey } from '../operations/wrapping.ts';
import { argumentsBad, mechanismInvalid } from '../return-values.ts';
import type { GuardedHandlers } from './guards.ts';

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

  // C_WrapKey, section 5.14. A key that may decrypt wraps no sensitive key.
  C_WrapKey: (session, { mechanism, wrappingKey, key, wrappedKey }) => {
    if (mechanism === null) throw argumentsBad();
    return wrapKey(session, mechanism, wrappingKey, key, wrappedKey);
  },

  // C_UnwrapKey, section 5.14.
  C_UnwrapKey: (session, { mechanism, unwrappingKey, wrappedKey, template }) => {
    if (mechanism === null) throw argumentsBad();
    return unwrapKey(session, mechanism, unwrappingKey, wrappedKey, template);
  },

  // C_DeriveKey, section 5.14.
  C_DeriveKey: (session, { mechanism, baseKey, template }) => {
    if (mechanism === null) throw argumentsBad();
    return deriveKey(session, mechanism, baseKey, template);
  },
} as const satisfies GuardedHandlers;
