// Finds the optional folder of published test vectors: `DKE_VECTORS`, or `shared/vectors` beside the project.

import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const folder = process.env.DKE_VECTORS ?? resolve(import.meta.dirname, '../../../shared/vectors');

/** The folder, or null after a line that says what is skipped. */
export const vectorFolder = (...parts: readonly string[]): string | null => {
  const path = join(folder, ...parts);
  if (existsSync(path)) return path;
  console.log(`skipped: no test vectors at ${parts.join('/')} (set DKE_VECTORS to the folder that has them)`);
  return null;
};

export const readVectors = <T>(path: string): T => JSON.parse(readFileSync(path, 'utf8')) as T;
