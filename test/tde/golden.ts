// Golden traces: the library calls of each process of a scenario, one file for each profile and
// scenario, valid for SoftHSM2 and for ours. A row below states each difference of ours with its
// reason. Written again by `DKE_WRITE_GOLDEN=1 npx vitest run test/tde`, from SoftHSM2.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ProfileName } from './profile.ts';
import { driverTraceOf, lineOf, type TracedCall } from './trace.ts';

export interface TraceDifference {
  readonly scenario: string;
  /** Line of the reference, and of ours at the same place. */
  readonly reference: string;
  readonly ours: string;
  readonly why: string;
}

export const traceDifferences: readonly TraceDifference[] = [
  {
    scenario: 'destroyed',
    reference: 'C_EncryptInit AES_CBC/16 = CKR_OBJECT_HANDLE_INVALID',
    ours: 'C_EncryptInit AES_CBC/16 = CKR_KEY_HANDLE_INVALID',
    why: 'The standard gives C_EncryptInit this code for the handle of a key, and the database prints it in ORA-28407.',
  },
];

export const goldenPath = (profile: ProfileName, scenario: string): string =>
  join(import.meta.dirname, 'golden', profile, `${scenario}.txt`);

/** The calls of every process of a scenario, by its name: `ERP.fg0`. */
export const tracesUnder = (folders: readonly string[]): ReadonlyMap<string, readonly TracedCall[]> =>
  new Map(
    folders
      .flatMap((folder) => readdirSync(folder).map((name) => [name, driverTraceOf(join(folder, name))] as const))
      .filter(([, calls]) => calls.length > 0)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );

export const goldenText = (traces: ReadonlyMap<string, readonly TracedCall[]>): string =>
  [...traces].map(([name, calls]) => `== ${name}\n${calls.map(lineOf).join('\n')}\n`).join('\n');

export const writeGolden = (path: string, text: string): void => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
};
export const readGolden = (path: string): string => (existsSync(path) ? readFileSync(path, 'utf8') : '');

/**
 * The golden text as ours has it: each line of a difference of this scenario replaced. Answers the
 * differences that were met, too.
 */
export const expectedOfOurs = (scenario: string, golden: string, ours: string) => {
  const met = new Set<TraceDifference>();
  const actual = ours.split('\n');
  const text = golden
    .split('\n')
    .map((line, at) => {
      const difference = traceDifferences.find(
        (each) => each.scenario === scenario && each.reference === line && each.ours === actual[at],
      );
      if (difference === undefined) return line;
      met.add(difference);
      return difference.ours;
    })
    .join('\n');
  return { text, met };
};
