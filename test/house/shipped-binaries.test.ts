// Everything native that is shipped, as the oldest systems meet it: RHEL 8 and Debian 10 have glibc
// 2.28. What is in the packages is checked again, file by file, in test/scenario/packages.test.ts.
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { agentEntries, closureOf } from '../../provider/install/payload.ts';
import {
  isElf,
  librariesOf,
  missingOnOldSystems,
  ofGlibc,
  openSymbols,
  searchFoldersOf,
  shippedNode,
} from '../support/elf.ts';

const build = resolve(import.meta.dirname, '../../build');
const ours = [
  'Release/dke_core.node',
  'provider/1.0/libdke_pkcs11.so',
  'provider/1.0/dke-probe',
  'provider/mariadb/dke_key_management.so',
].filter((name) => existsSync(join(build, name)));

describe.each(ours)('%s', (name) => {
  const path = join(build, name);

  test('uses no symbol that is newer than glibc 2.28', () => {
    expect(missingOnOldSystems(path)).toEqual([]);
  });

  test('needs the C library and nothing else', () => {
    expect(librariesOf(path).filter((name) => !ofGlibc.test(name))).toEqual([]);
  });

  // A user who can create that folder could place their own library there.
  test('names no folder to look for libraries in', () => {
    expect(searchFoldersOf(path)).toEqual([]);
  });

  test('leaves no symbol open but those of Node', () => {
    expect(openSymbols(path)).toEqual([]);
  });
});

test('the Node that is shipped runs with glibc 2.28 and the C++ library of the same systems', () => {
  expect(missingOnOldSystems(shippedNode)).toEqual([]);
});

test('the check sees what a program needs that is made for this system only', () => {
  const program = join(build, 'host-life');
  expect(isElf(program)).toBe(true);
  expect(missingOnOldSystems(program)).toContain('__libc_start_main@GLIBC_2.34');
});

test('the packages that the shipped programs import are the ones that are installed', () => {
  const { packages } = closureOf(resolve(build, '..'), ['dist/server/cli/main.js', ...agentEntries]);
  expect(packages).toContain('node_modules/kysely');
  expect(packages).toContain('node_modules/smol-toml');
});
