// The package @dke/client as a program has it: packed, installed without a network into an empty folder, type-checked, and run against a
// real service. The program is the one of its README.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { run } from '../support/tools.ts';

const root = resolve(import.meta.dirname, '../..');
const [, program = '', prints = ''] =
  /```ts\n(.*?)```\n\n```text\n(.*?)```/s.exec(readFileSync(join(root, 'server/client/README.md'), 'utf8')) ?? [];

let server: ServerProcess;
let folder: string;
beforeAll(async () => {
  server = await startServerProcess();
  folder = mkdtempSync(join(tmpdir(), 'dke-client-package-'));
});
afterAll(async () => {
  await server.remove();
  rmSync(folder, { recursive: true, force: true });
});

const succeed = async (command: string, args: readonly string[], more: Parameters<typeof run>[2] = {}) => {
  const { code, out, complaints } = await run(command, args, { folder, ...more });
  expect(complaints + (code === 0 ? '' : out)).toBe('');
  return out;
};

test('is packed, installed, type-checked and run', async () => {
  expect(prints).toContain('audit log');
  await succeed('npm', ['run', '--silent', 'build:client'], { folder: root });
  const packed = await succeed('npm', ['pack', '--silent', '--pack-destination', folder], {
    folder: join(root, 'dist/client'),
  });
  writeFileSync(join(folder, 'package.json'), '{ "type": "module", "private": true }');
  await succeed('npm', ['install', '--silent', '--offline', '--no-audit', '--no-fund', join(folder, packed.trim())]);
  const installed = join(folder, 'node_modules/@dke/client');
  expect(existsSync(join(installed, 'generate.js'))).toBe(false);
  expect(JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))).not.toHaveProperty('dependencies');

  writeFileSync(join(folder, 'program.ts'), program);
  const check = join(root, 'node_modules/.bin/tsc');
  const compilerOptions = {
    target: 'es2022',
    module: 'nodenext',
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    types: ['node'],
    typeRoots: [join(root, 'node_modules/@types')],
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['program.ts'] }));
  await succeed(check, ['-p', '.']);
  mkdirSync(join(folder, 'wrong'));
  writeFileSync(join(folder, 'wrong/program.ts'), program.replace("name: 'cloud-1'", "title: 'cloud-1'"));
  const wrong = JSON.stringify({ extends: '../tsconfig.json', files: ['program.ts'] });
  writeFileSync(join(folder, 'wrong/tsconfig.json'), wrong);
  const refused = await run(check, ['-p', 'wrong'], { folder });
  expect(refused.out).toContain("'title' does not exist");

  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, `${server.adminToken}\n`, { mode: 0o600 });
  const environment = { ...process.env, DKE_SERVER: server.url, DKE_CA_FILE: server.caFile, DKE_TOKEN_FILE: tokenFile };
  expect(await succeed(process.execPath, ['program.ts'], { environment })).toBe(prints);
});
