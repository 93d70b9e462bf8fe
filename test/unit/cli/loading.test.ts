// The modules that a command loads: the file of its noun, and no library that it does not use. Help
// and completion have all nouns.
import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { makeProgram, makeProgramFor } from '../../../server/cli/program.ts';
import { exitCodes } from '../../../server/cli/terminal/exit-codes.ts';
import { sharedFolder } from '../../support/folders.ts';
import { recordModules } from '../../support/loaded-modules.ts';

const main = resolve(import.meta.dirname, '../../../server/cli/main.ts');
const folder = sharedFolder();

/** What a run of the command loads, and prints. */
const load = (...words: readonly string[]) => {
  const { DKE_TOKEN_FILE: _, ...environment } = process.env;
  const modules = recordModules(folder);
  const { stdout, pid } = spawnSync(process.execPath, [main, ...words], {
    encoding: 'utf8',
    env: { ...environment, ...modules.environment, HOME: folder, XDG_CONFIG_HOME: folder },
  });
  return { stdout, ...modules.read(pid) };
};

test.each([
  [['vault', 'list'], 'cli/commands/vault.ts'],
  [['--server', 'https://vault.example', 'key', 'list'], 'cli/commands/key.ts'],
  [['help', 'token'], 'cli/commands/token.ts'],
  [['audit', 'list'], 'cli/commands/audit.ts'],
  [['root', 'show'], 'cli/host/root.ts'],
])('%j loads its own file and only the parser of command lines', (words, own) => {
  const { packages, files } = load(...words);
  expect([...packages]).toEqual(['commander']);
  expect(files).toContain(own);
  const nouns = [
    'cli/commands/vault.ts',
    'cli/commands/key.ts',
    'cli/commands/token.ts',
    'cli/commands/tde.ts',
    'cli/host/server.ts',
    'cli/commands/audit.ts',
    'cli/host/root.ts',
  ];
  expect(files.filter((file) => nouns.includes(file))).toEqual([own]);
  expect(files.filter((file) => /^(fronts|config|app|domain|operations)\//.test(file))).toEqual([]);
});

test.each([[['--version']], [['-V']], [['-V', 'vault', 'list']]])(
  '%j prints the version once, and nothing else, and loads no noun',
  (words) => {
    const { stdout, packages, files } = load(...words);
    expect(stdout).toMatch(/^\d+\.\d+\.\d+ \(OpenSSL [\d.]+, Node [\d.]+\)\n$/);
    expect([...packages]).toEqual(['commander']);
    expect(files).not.toContain('cli/commands/vault.ts');
  },
);

test('the help of the command names every noun, and loads none', async () => {
  const { stdout, files } = load('--help');
  for (const { name, summary } of (await makeProgram('1')).commands.map((each) => ({
    name: each.name(),
    summary: each.summary(),
  }))) {
    expect(summary, name).not.toBe('');
    expect(stdout).toMatch(new RegExp(`^ {2}${name} `, 'm'));
  }
  expect(files).not.toContain('cli/commands/vault.ts');
});

test('a noun has the same commands, whether it is loaded on its own or with all others', async () => {
  const all = await makeProgram('1');
  for (const { name, commands, usage } of all.commands.map((each) => ({
    name: each.name(),
    commands: each.commands.map((inner) => inner.name()),
    usage: each.usage(),
  }))) {
    const alone = (await makeProgramFor('1', ['-o', 'json', name])).commands.find((each) => each.name() === name);
    expect(alone?.commands.map((inner) => inner.name())).toEqual(commands);
    expect(alone?.usage()).toBe(usage);
  }
});

test.each([
  ['a noun that does not exist, with the one that was meant', 'vautl list', 'Did you mean vault?'],
  ['a wrong value of a global option', '--timeout soon vault list', '1 to 86400 seconds'],
  ['a global option without its value', 'vault list --server', 'argument missing'],
])('%s: is an error of the command line', (_, words, message) => {
  const { status, stderr } = spawnSync(process.execPath, [main, ...words.split(' ')], { encoding: 'utf8' });
  expect(status).toBe(exitCodes.config);
  expect(stderr.split(message)).toHaveLength(2);
});
