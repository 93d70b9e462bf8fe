// SHA256SUMS next to the packages of a build: `sha256sum --check` compares them where they arrive.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const writeChecksums = (folder: string): void => {
  const names = readdirSync(folder)
    .filter((name) => /\.(deb|rpm|oci\.tar|cdx\.json)$/.test(name))
    .sort();
  const lines = names.map(
    (name) =>
      `${createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex')}  ${name}\n`,
  );
  writeFileSync(join(folder, 'SHA256SUMS'), lines.join(''));
};
