// Finds the optional folder of published test vectors, `DKE_VECTORS` or `shared/vectors` next to
// the project, and runs files of Wycheproof's form (testvectors_v1) case by case. What a case means
// is the caller's; that none is lost is kept here.

import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { CoreError, type CoreErrorCode } from '../../addon/core.ts';

const folder = process.env.DKE_VECTORS ?? resolve(import.meta.dirname, '../../../shared/vectors');

/** The folder, or null after a printed line with what is skipped. */
export const vectorFolder = (...parts: readonly string[]): string | null => {
  const path = join(folder, ...parts);
  if (existsSync(path)) return path;
  console.log(`skipped: no test vectors at ${parts.join('/')} (set DKE_VECTORS to the folder that has them)`);
  return null;
};

export const readVectors = <T>(path: string): T => JSON.parse(readFileSync(path, 'utf8')) as T;

export const hex = (text: string): Buffer => Buffer.from(text, 'hex');

/** What every case has; the other members depend on the file. */
export interface VectorCase {
  readonly tcId: number;
  readonly comment: string;
  readonly flags: readonly string[];
  readonly result: 'valid' | 'invalid' | 'acceptable';
}
export interface VectorFile<G, T extends VectorCase> {
  readonly numberOfTests: number;
  readonly testGroups: readonly (G & { readonly tests: readonly T[] })[];
}

/** `skip` carries its reason: a case that the core does not claim to do. */
export type VectorOutcome = 'accepted' | 'refused' | { readonly skip: string };

/** For each flag: whether a case that the file calls acceptable must be accepted, and why. */
export type AcceptableRules = Readonly<Record<string, { readonly accepted: boolean; readonly because: string }>>;

export interface VectorRun {
  /** One line for each case that went otherwise than it must. */
  readonly wrong: readonly string[];
  readonly ran: number;
  /** How many cases were skipped for each reason. */
  readonly skipped: Readonly<Record<string, number>>;
}

/**
 * Runs every case of a file. An acceptable case without a rule is wrong. The file's own count must
 * hold, so that a file that was cut short does not pass.
 */
export const runVectors = <G, T extends VectorCase>(
  file: VectorFile<G, T>,
  run: (group: G, test: T) => VectorOutcome,
  rules: AcceptableRules = {},
): VectorRun => {
  const wrong: string[] = [];
  const skipped: Record<string, number> = {};
  let seen = 0;
  let ran = 0;
  for (const group of file.testGroups) {
    for (const test of group.tests) {
      seen += 1;
      const name = `${test.tcId} (${[test.comment, ...test.flags].join(', ')})`;
      let outcome: VectorOutcome;
      try {
        outcome = run(group, test);
      } catch (error) {
        wrong.push(`${name}: threw ${error}`);
        continue;
      }
      if (typeof outcome === 'object') {
        skipped[outcome.skip] = (skipped[outcome.skip] ?? 0) + 1;
        continue;
      }
      ran += 1;
      const rule = test.flags.map((flag) => rules[flag]).find((found) => found !== undefined);
      if (test.result === 'acceptable' && rule === undefined) {
        wrong.push(`${name}: acceptable, and no rule says whether we accept it`);
        continue;
      }
      const accepts = test.result === 'valid' || (test.result === 'acceptable' && rule?.accepted === true);
      if (accepts !== (outcome === 'accepted')) wrong.push(`${name}: ${test.result}, but ${outcome}`);
    }
  }
  if (seen !== file.numberOfTests) wrong.push(`the file says ${file.numberOfTests} cases and has ${seen}`);
  return { wrong, ran, skipped };
};

const refusals: readonly CoreErrorCode[] = [
  'authentication-failed',
  'bad-argument',
  'data-length',
  'key-type',
  'unsupported',
];

/**
 * The value, or null when the core refused the input. Faults of the core itself (`internal`, a
 * TypeError) continue.
 */
export const unlessRefused = <T>(call: () => T): T | null => {
  try {
    return call();
  } catch (error) {
    if (error instanceof CoreError && refusals.includes(error.code)) return null;
    throw error;
  }
};
