// An empty operand is refused by its name before anything is done: every operand of every command.
import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { makeProgram } from '../../../server/cli/program.ts';
import { CommandError } from '../../../server/cli/terminal/exit-codes.ts';

const leaves = (command: Command): readonly Command[] => [command, ...command.commands.flatMap(leaves)];
const pathOf = (command: Command): readonly string[] =>
  command.parent === null ? [] : [...pathOf(command.parent), command.name()];

test.each(['', ' '])('every operand of every command: %j', async (empty) => {
  const program = await makeProgram('1.0.0');
  const all = leaves(program);
  const done: string[] = [];
  for (const each of all) {
    each.exitOverride().configureOutput({ writeErr: () => undefined, writeOut: () => undefined });
    if (each.registeredArguments.length > 0) each.action(() => void done.push(pathOf(each).join(' ')));
  }
  let count = 0;
  for (const each of all)
    for (const [index, argument] of each.registeredArguments.entries()) {
      const before = each.registeredArguments.slice(0, index + 1).map((one) => one.argChoices?.[0] ?? 'x');
      const after = each.registeredArguments.slice(index + 1).filter((one) => one.required);
      const words = [...before.slice(0, -1), empty, ...after.map((one) => one.argChoices?.[0] ?? 'x')];
      const options = each.options
        .filter(({ mandatory }) => mandatory)
        .flatMap(({ long, argChoices }) => [long ?? '', argChoices?.[0] ?? '1']);
      const refused: unknown = await program
        .parseAsync([...pathOf(each), ...options, '--', ...words], { from: 'user' })
        .then(
          () => undefined,
          (error: unknown) => error,
        );
      const what = [...pathOf(each), argument.name()].join(' ');
      // Commander refuses what is not among the choices, and names these.
      if (argument.argChoices !== undefined)
        expect(String(refused), what).toMatch(/is invalid for argument.*choices are/);
      else {
        expect(refused, what).toBeInstanceOf(CommandError);
        expect(refused, what).toMatchObject({ exitClass: 'config', message: `<${argument.name()}> is empty` });
      }
      count += 1;
    }
  expect(done).toEqual([]);
  expect(count).toBeGreaterThan(100);
});
