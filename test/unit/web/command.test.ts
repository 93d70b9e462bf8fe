// The `dke` command that each form of the console shows: the command's own parser takes it, and
// every call has one.
import { execFileSync } from 'node:child_process';
import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { makeProgram } from '../../../server/cli/program.ts';
import { commands, commandWords, formatCommand } from '../../../server/clients/web/src/api/command.ts';
import { apiRoutes } from '../../../server/contract/api/index.ts';
import type { RouteGroup } from '../../../server/contract/api/row.ts';

const patternOf = (method: string, path: string): string =>
  `${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, '*')}`;
const rows = Object.values(apiRoutes).flatMap((group: RouteGroup) =>
  Object.values(group).map(({ method, path }) => patternOf(method, path)),
);

const program = await makeProgram('1');

/**
 * Follows the words down to the command that they name; its arguments and options are checked,
 * nothing is run.
 */
const follow = (words: readonly string[]): { readonly command: Command; readonly rest: readonly string[] } => {
  let command = program;
  let rest = [...words];
  for (let next = command.commands.find((each) => each.name() === rest[0]); next !== undefined; ) {
    command = next;
    rest = rest.slice(1);
    next = command.commands.find((each) => each.name() === rest[0]);
  }
  return { command, rest };
};

const methods = ['GET', 'POST', 'PUT', 'DELETE'] as const;

describe('the command of a call', () => {
  test.each(Object.keys(commands))('%s is a row of the contract', (pattern) => {
    expect(rows).toContain(pattern);
  });

  test.each(Object.keys(commands))('%s has words that the command knows', (pattern) => {
    const [method = '', path = ''] = pattern.split(' ');
    const words = commandWords({
      method: methods.find((each) => each === method) ?? 'POST',
      path: path.replaceAll('*', '01a1fe81-3b9f-7000-8510-624b04d2826a'),
      body: {},
    });
    const { command, rest } = follow(words ?? []);
    expect(command.commands, `${words?.join(' ')} names a whole command`).toEqual([]);
    const { operands, unknown } = command.parseOptions([...rest]);
    expect(unknown).toEqual([]);
    const required = command.registeredArguments.filter((argument) => argument.required).length;
    expect(operands.length).toBeGreaterThanOrEqual(required);
    expect(operands.length).toBeLessThanOrEqual(command.registeredArguments.length);
  });

  test.each(Object.keys(commands))('%s takes values that look like options as values', (pattern) => {
    const [method = '', path = ''] = pattern.split(' ');
    const hostile = '-rf';
    const line = formatCommand({
      method: methods.find((each) => each === method) ?? 'POST',
      path: path.replaceAll('*', hostile),
      body: new Proxy(
        {},
        { get: (_, name) => (['tags', 'networks'].includes(String(name)) ? [hostile, hostile] : hostile) },
      ),
    });
    const split = execFileSync('sh', ['-c', `printf '%s\\0' ${(line ?? '').replaceAll(/[<>]/g, '')}`], {
      encoding: 'utf8',
    });
    const { command, rest } = follow(split.split('\0').slice(1, -1));
    // Values with a list of choices are refused, and are values all the same.
    for (const each of command.options) each.parseArg = (value: string) => value as never;
    const end = rest.indexOf('--');
    const { operands, unknown } = command.parseOptions(end < 0 ? [...rest] : rest.slice(0, end));
    expect(unknown).toEqual([]);
    const given = operands.length + (end < 0 ? 0 : rest.length - end - 1);
    expect(given).toBeGreaterThanOrEqual(command.registeredArguments.filter(({ required }) => required).length);
    expect(given).toBeLessThanOrEqual(command.registeredArguments.length);
  });

  test('quotes what a shell would take apart, and leaves places open', () => {
    expect(formatCommand({ method: 'POST', path: '/api/vaults', body: { name: "it's" } })).toBe(
      "dke vault create 'it'\\''s'",
    );
    expect(formatCommand({ method: 'POST', path: '/api/vaults', body: { name: 'our keys' } })).toBe(
      "dke vault create 'our keys'",
    );
    expect(formatCommand({ method: 'POST', path: '/api/vaults', body: { name: '' } })).toBe('dke vault create <name>');
    expect(formatCommand({ method: 'POST', path: '/api/vaults', body: { name: '<name>' } })).toBe(
      "dke vault create '<name>'",
    );
  });

  test('reading has no command here', () => {
    expect(formatCommand({ method: 'GET', path: '/api/vaults' })).toBeNull();
  });
});
