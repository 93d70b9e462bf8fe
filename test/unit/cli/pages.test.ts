// The commands that the pages show are commands that there are: every line `dke ...` of a console
// block names a command of the program and options that it has. What they do is tested elsewhere
// (test/scenario).
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { makeProgram } from '../../../server/cli/program.ts';

const docs = resolve(import.meta.dirname, '../../../docs');
const pages = ['install.md', 'command.md'];

const commandLines = (page: string): string[] =>
  [...readFileSync(join(docs, page), 'utf8').matchAll(/^```console\n(.*?)^```$/gms)].flatMap(([, block = '']) =>
    block.split('\n').flatMap((line) => /^[$#] (dke .*)$/.exec(line)?.[1] ?? []),
  );

const program = await makeProgram('0');

/**
 * What is wrong with a line: an unknown command or option, a missing argument; undefined when
 * nothing is.
 */
const faultOf = (line: string): string | undefined => {
  const [, ...words] = line
    .replace(/ [<>|#] .*$/, '')
    .trimEnd()
    .split(/\s+(?=(?:[^']*'[^']*')*[^']*$)/);
  const flags = [...program.options];
  let command: Command = program;
  let wanted = 0;
  let found = 0;
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? '';
    const option = flags.find(({ long, short }) => word === long || word === short);
    if (option !== undefined) {
      if (option.required) at++;
      continue;
    }
    if (word.startsWith('-')) return `${command.name()} has no option ${word}`;
    const next = command.commands.find((each) => each.name() === word);
    if (next === undefined) {
      found++;
      continue;
    }
    command = next as Command;
    flags.push(...command.options);
    wanted = command.registeredArguments.filter(({ required }) => required).length;
  }
  if (command === program) return 'no such command';
  return found < wanted
    ? `${command.name()} lacks an argument`
    : found > command.registeredArguments.length
      ? `${command.name()} has no such command or argument`
      : undefined;
};

test.each(pages)('docs/%s shows commands and options that there are', (page) => {
  const lines = commandLines(page);
  expect(lines.length).toBeGreaterThan(5);
  expect(lines.flatMap((line) => (faultOf(line) === undefined ? [] : [`${line}: ${faultOf(line)}`]))).toEqual([]);
});

test('a line that is wrong is found', () => {
  expect(faultOf('dke provider install --owner oracle:oinstall')).toBeUndefined();
  expect(faultOf('dke provider instal')).toMatch(/no such command/);
  expect(faultOf('dke provider install --owners x')).toBe('install has no option --owners');
  expect(faultOf('dke tde app instances')).toBe('instances lacks an argument');
});
