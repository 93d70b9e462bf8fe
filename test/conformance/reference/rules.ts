// All rules, in the order in which they are checked, and one look: what ends the login or the library comes last.
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

/** What a rule sees on a token. A refusal where the rule foresees none is what it has seen. */
export const lookAt = async (rule: Rule, bench: Bench): Promise<Seen> => {
  try {
    return await (lastRules.includes(rule) ? rule.look(bench) : bench.apart(rule.look));
  } catch (error) {
    return rvOf(() => {
      throw error;
    });
  }
};
