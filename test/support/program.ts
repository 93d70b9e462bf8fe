// Where the programs of this run are: bundled (programs.ts) within a test run, the built or the
// source files elsewhere.
import { join, resolve } from 'node:path';

/** Set by the run's setup for its workers. */
export const programsVariable = 'DKE_TEST_PROGRAMS';

const root = resolve(import.meta.dirname, '../..');

/** The bundled program, or `otherwise`, a path within the project. */
export const programAt = (entry: string, otherwise: string): string => {
  const folder = process.env[programsVariable];
  return folder === undefined ? resolve(root, otherwise) : join(folder, entry);
};
