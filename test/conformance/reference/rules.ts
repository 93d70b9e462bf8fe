// All rules in the order of their execution: those that end the login or the library are last.
import { type Bench, type Rule, rvOf, type Seen } from './bench.ts';
import { cipherRules } from './rules-ciphers.ts';
import { generalRules, lastRules } from './rules-general.ts';
import { keyRules } from './rules-keys.ts';
import { objectRules } from './rules-objects.ts';
import { signatureRules } from './rules-signatures.ts';

export const rules: readonly Rule[] = [
  ...generalRules,
  ...objectRules,
  ...cipherRules,
  ...signatureRules,
  ...keyRules,
  ...lastRules,
];

/** The result of a rule on a token. An unexpected refusal is also a result. */
export const lookAt = async (rule: Rule, bench: Bench): Promise<Seen> => {
  try {
    return await (lastRules.includes(rule) ? rule.look(bench) : bench.apart(rule.look));
  } catch (error) {
    return rvOf(() => {
      throw error;
    });
  }
};
