// Commands as rows of the contract: the place of their words in a request, and invalid rows.
import { Command } from 'commander';
import { expect, test } from 'vitest';
import { makeProgram } from '../../../server/cli/program.ts';
import { addNoun } from '../../../server/cli/service/command-rows.ts';
import { operations } from '../../../server/clients/typescript/gen/operations.ts';

const noun = () => addNoun(new Command('dke'), 'vault', 'vaults');
const { vaults, sessions, setup } = operations;

test('a word that is not part of the route is refused when the program is built', () => {
  expect(() => noun().row(vaults.create, 'create <title>', 'Creates a vault.')).toThrow(
    'create <title>: title is not part of post /api/vaults',
  );
  expect(() =>
    noun().row(vaults.list, 'list', 'Lists vaults.', { options: { '--colour <colour>': 'x' }, columns: {} }),
  ).toThrow('colour is not part of get /api/vaults');
});

test('a list that has pages gets the options of pages', () => {
  const flags = (command: Command) => command.options.map(({ long }) => long);
  expect(flags(noun().row(sessions.list, 'list', 'Lists.', { columns: {} }))).toEqual(['--limit', '--after']);
  expect(flags(noun().row(operations.tenants.list, 'list', 'Lists.', { columns: {} }))).toEqual([]);
});

test('an argument takes the values that the contract lists', () => {
  const confirm = noun().row(setup.confirm, 'confirm <step>', 'x', { also: () => ({ body: { confirmed: true } }) });
  expect(confirm.registeredArguments[0]?.argChoices).toContain('root-key');
});

const below = (command: Command, path: string, outer: readonly string[]): readonly string[] => {
  const own = command.options.flatMap(({ long }) => long ?? []);
  return [
    ...own.filter((flag) => outer.includes(flag)).map((flag) => `${path} ${flag}`),
    ...command.commands.flatMap((each) => below(each, `${path} ${each.name()}`, [...outer, ...own])),
  ];
};
test('no command has an option of a command above it, which would take its value', async () => {
  expect(below(await makeProgram('1'), 'dke', [])).toEqual([]);
});
