// What the maker of a token key has laid down for it, permanently: with what it is used, and what
// it may wrap, unwrap and derive. The service keeps these rules, so they bind every caller, with
// and without the agent. Of the agent's templates it knows the members below; all else only the
// agent checks (docs/pkcs11.md).

import type { KeyAlgorithm, KeyUsage, ObjectClass } from './key.ts';
import type { TokenMechanism } from './token-mechanisms.ts';

/** What a key has to be. An absent member says nothing. */
export interface Prescription {
  readonly class?: ObjectClass | undefined;
  readonly algorithms?: readonly KeyAlgorithm[] | undefined;
  readonly bits?: number | undefined;
  /**
   * Whether it stays in the service; a key that leaves to an agent is only as sensitive as that
   * agent.
   */
  readonly onToken?: boolean | undefined;
  readonly sensitive?: boolean | undefined;
  readonly extractable?: boolean | undefined;
  readonly modifiable?: boolean | undefined;
  readonly destroyable?: boolean | undefined;
  readonly private?: boolean | undefined;
  readonly wrapWithTrusted?: boolean | undefined;
  readonly usages?: readonly KeyUsage[] | undefined;
  readonly noUsages?: readonly KeyUsage[] | undefined;
}

export interface KeyRules {
  /** The mechanisms that it is used with; absent: any. */
  readonly mechanisms?: readonly TokenMechanism[] | undefined;
  /** Wrapped only by a trusted key. There are none: it is never wrapped (decision 36). */
  readonly wrapWithTrusted?: boolean | undefined;
  /** What it wraps, unwraps and derives. */
  readonly wraps?: Prescription | undefined;
  readonly unwraps?: Prescription | undefined;
  readonly derives?: Prescription | undefined;
}

/** A key that is judged. What is not known of it is absent, and not judged. */
export interface Described {
  readonly class: ObjectClass;
  readonly algorithm?: KeyAlgorithm | null | undefined;
  readonly bits?: number | null | undefined;
  readonly onToken?: boolean | undefined;
  readonly sensitive: boolean;
  readonly extractable?: boolean | undefined;
  readonly modifiable?: boolean | undefined;
  readonly destroyable?: boolean | undefined;
  readonly private?: boolean | undefined;
  readonly usages?: readonly KeyUsage[] | undefined;
  readonly rules?: KeyRules | null | undefined;
}

const plainMembers = [
  'class',
  'bits',
  'onToken',
  'sensitive',
  'extractable',
  'modifiable',
  'destroyable',
  'private',
] as const satisfies readonly (keyof Prescription & keyof Described)[];

/** The first member in which a key is otherwise than prescribed; null: it is as prescribed. */
export const misfitOf = (prescription: Prescription | undefined, key: Described): keyof Prescription | null => {
  if (prescription === undefined) return null;
  for (const member of plainMembers)
    if (prescription[member] !== undefined && key[member] !== undefined && key[member] !== prescription[member])
      return member;
  const { algorithms, usages = [], noUsages = [], wrapWithTrusted } = prescription;
  const { algorithm, usages: has, rules } = key;
  if (algorithms !== undefined && algorithm !== undefined && (algorithm === null || !algorithms.includes(algorithm)))
    return 'algorithms';
  if (has !== undefined && !usages.every((usage) => has.includes(usage))) return 'usages';
  if (has !== undefined && noUsages.some((usage) => has.includes(usage))) return 'noUsages';
  if (wrapWithTrusted !== undefined && rules !== undefined && (rules?.wrapWithTrusted ?? false) !== wrapWithTrusted)
    return 'wrapWithTrusted';
  return null;
};
