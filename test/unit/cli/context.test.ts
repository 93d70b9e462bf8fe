// Named contexts: what they give to a command, what wins over them, and that a token is never sent
// to another service.
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { makeProgram } from '../../../server/cli/program.ts';
import { contextFile, globalsOf } from '../../../server/cli/service/context-file.ts';
import { folderOfTest } from '../../support/folders.ts';

let folder: string;
let printed: string;
beforeEach(() => {
  folder = folderOfTest();
  vi.stubEnv('XDG_CONFIG_HOME', folder);
  for (const name of ['SERVER', 'CA_FILE', 'TOKEN_FILE', 'TENANT', 'CONTEXT']) vi.stubEnv(`DKE_${name}`, undefined);
  printed = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed += String(text);
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

const run = async (...words: readonly string[]): Promise<Command> =>
  (await makeProgram('1')).parseAsync(['node', 'dke', ...words]);

/** What a command that calls the service is given. */
const globals = async (...words: readonly string[]) => {
  const program = await makeProgram('1');
  const status = program.commands.find((each) => each.name() === 'status') as Command;
  let seen: ReturnType<typeof globalsOf> | undefined;
  status.action(() => {
    seen = globalsOf(status);
  });
  await program.parseAsync(['node', 'dke', 'status', ...words]);
  return seen;
};
const add = (name: string, ...more: readonly string[]) =>
  run('context', 'add', name, '--server', `https://${name}.example`, ...more);

test('the first one is used, in a file of its user, with paths and never a secret', async () => {
  expect(await globals()).toMatchObject({ server: 'https://localhost' });
  writeFileSync(join(folder, 'token'), 'dket_secret', { mode: 0o600 });
  await add('one', '--token-file', join(folder, 'token'), '--ca-file', 'ca.pem', '--tenant', 'acme');
  await add('two');
  expect(statSync(contextFile()).mode & 0o777).toBe(0o600);
  expect(readFileSync(contextFile(), 'utf8')).not.toContain('dket_secret');
  expect(await globals()).toMatchObject({
    server: 'https://one.example',
    tokenFile: join(folder, 'token'),
    caFile: join(process.cwd(), 'ca.pem'),
    tenant: 'acme',
  });
  const { tokenFile, ...two } = { tokenFile: undefined, ...(await globals('--context', 'two')) };
  expect([two.server, tokenFile]).toEqual(['https://two.example', undefined]);
  await run('context', 'use', 'two');
  printed = '';
  await run('context', 'list', '-o', 'csv');
  expect(printed.split('\r\n').map((line) => line.split(',').slice(0, 2))).toEqual([
    ['NAME', 'SERVER'],
    ['one', 'https://one.example'],
    ['two *', 'https://two.example'],
    [''],
  ]);
  await run('context', 'remove', 'two');
  expect(await globals()).toMatchObject({ server: 'https://localhost' });
});

test('options and variables win; with another service nothing of it is used', async () => {
  await add('one', '--token-file', '/token', '--tenant', 'acme');
  vi.stubEnv('DKE_TENANT', 'other');
  expect(await globals('--token-file', '/mine')).toMatchObject({ tokenFile: '/mine', tenant: 'other' });
  vi.stubEnv('DKE_TENANT', undefined);
  expect(await globals('--server', 'https://one.example')).toMatchObject({ tokenFile: '/token' });
  const elsewhere = await globals('--server', 'https://elsewhere.example');
  expect([elsewhere?.server, elsewhere?.tokenFile, elsewhere?.tenant]).toEqual([
    'https://elsewhere.example',
    undefined,
    undefined,
  ]);
  vi.stubEnv('DKE_SERVER', 'https://elsewhere.example');
  expect((await globals())?.tokenFile).toBeUndefined();
  await expect(globals('--context', 'one')).rejects.toThrow(
    'context one belongs to https://one.example, not to https://elsewhere.example',
  );
});

test('what cannot be a context is refused', async () => {
  await expect(run('context', 'add', 'none')).rejects.toMatchObject({ exitClass: 'config' });
  await expect(add('one', '--token-file', '-')).rejects.toThrow('a context requires a file with the token');
  await expect(globals('--context', 'gone')).rejects.toMatchObject({ exitClass: 'not-found' });
  await add('one');
  writeFileSync(contextFile(), '{"current":"one","contexts":{"one":{"server":1}}}');
  await expect(globals()).rejects.toThrow(`${contextFile()} is not a file of contexts`);
  chmodSync(contextFile(), 0o644);
  await expect(globals()).rejects.toThrow('can be read by others (mode 644)');
});
