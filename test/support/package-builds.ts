// Packages of the built project, as tests install them: uncompressed, and also of another version
// with the same programs.
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

export const project = resolve(import.meta.dirname, '../..');

export const makePackages = (root: string, to: string, ...options: string[]): void =>
  void execFileSync(process.execPath, [join(root, 'provider/packaging/main.ts'), '--fast', '--out', to, ...options], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, SOURCE_DATE_EPOCH: '1700000000' },
  });

/** A project of another version, with the same programs. */
export const copyProject = (to: string, version: string): void => {
  const parts = ['addon', 'dist', 'docs', 'provider', 'server', 'build/Release', 'build/provider'];
  for (const each of [...parts, 'CHANGELOG.md', 'package-lock.json'])
    cpSync(join(project, each), join(to, each), { recursive: true });
  symlinkSync(join(project, 'node_modules'), join(to, 'node_modules'));
  const text = readFileSync(join(project, 'package.json'), 'utf8');
  writeFileSync(join(to, 'package.json'), text.replace(/"version": "[^"]*"/, `"version": "${version}"`));
};
