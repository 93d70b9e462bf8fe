// A folder of packages that a service distributes: small files in place of real packages, with
// their checksums.
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const sha256 = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex');

/** Writes the files, and SHA256SUMS with `more` lines. */
export const layPackages = (
  folder: string,
  packages: Readonly<Record<string, string | Buffer>>,
  more: readonly string[] = [],
): void => {
  mkdirSync(folder, { recursive: true });
  for (const [name, content] of Object.entries(packages)) writeFileSync(join(folder, name), content);
  const lines = Object.entries(packages).map(([name, content]) => `${sha256(content)}  ${name}`);
  writeFileSync(join(folder, 'SHA256SUMS'), [...lines, ...more, ''].join('\n'));
};

/** The package that every service opened by `openTestService` distributes. */
export const samplePackage = 'dke-provider_1.0.0_amd64.deb';
