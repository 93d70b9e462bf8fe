// Prints the optional packages of the lock file that fit this system and are not installed, and
// ends with 1 if there are any. npm leaves out those whose `engines` do not fit the Node that runs
// npm, and says nothing.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Locked {
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
}

const root = join(import.meta.dirname, '../..');
const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
  readonly packages: Readonly<Record<string, Locked>>;
};
const fits = (list: readonly string[] | undefined, value: string): boolean =>
  list === undefined || list.includes(value);
const leftOut = Object.entries(packages).filter(
  ([path, { optional, os, cpu, libc }]) =>
    optional === true &&
    os?.includes(process.platform) === true &&
    fits(cpu, process.arch) &&
    fits(libc, 'glibc') &&
    !existsSync(join(root, path)),
);
for (const [path] of leftOut) console.log(path);
process.exitCode = leftOut.length === 0 ? 0 : 1;
