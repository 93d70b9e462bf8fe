// Every command that DKE offers is one of the program: its words, options, values and number of
// operands. Where it is offered for copying, nothing is missing.
// test/scenario/offered-commands.test.ts runs them.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { makeProgram } from '../../server/cli/program.ts';
import { rows } from '../support/command-runs.ts';
import {
  allTexts,
  hole,
  isGroup,
  type OfferedCommand,
  offeredIn,
  pageTexts,
  textsOf,
} from '../support/offered-commands.ts';

const program = await makeProgram('1.0.0');
const isPlace = (value: string | true): boolean => /^<.*>$/.test(String(value));

/** What is wrong with it. */
const faultsOf = ({ command, kind, options, operands, unknown, open }: OfferedCommand): readonly string[] => {
  const places = command.registeredArguments;
  const given = options.map(([option]) => option);
  return [
    ...unknown.map((option) => `there is no ${option}`),
    ...(operands.length > places.length && places.at(-1)?.variadic !== true ? [`too many: ${operands.join(' ')}`] : []),
    ...options.flatMap(([{ long, required, argChoices }, value]) => [
      ...(required && value === true && kind !== 'page' ? [`${long} has no value`] : []),
      ...(argChoices !== undefined && value !== true && !argChoices.includes(value) && !/^[A-Z]+$/.test(value)
        ? [`${long} cannot be ${value}`]
        : []),
    ]),
    ...(open ? ['a value is not quoted for the shell: use command`…`'] : []),
    ...(kind !== 'page' && isGroup(command) && command.parent !== null
      ? ['a group of commands only prints its help']
      : []),
    ...(kind !== 'page' && [...operands, ...options.map(([, value]) => value)].some(isPlace)
      ? ['< and > redirect files: write a place as NAME']
      : []),
    ...(kind === 'typed' && operands.length < places.filter(({ required }) => required).length
      ? ['an argument is missing']
      : []),
    ...(kind === 'typed'
      ? command.options
          .filter((each) => each.mandatory && !given.includes(each))
          .map(({ long }) => `${long} is missing`)
      : []),
  ];
};
const faultsIn = (commands: readonly OfferedCommand[]): readonly string[] =>
  commands.flatMap((each) => faultsOf(each).map((fault) => `${each.file}:${each.line}: ${each.path}: ${fault}`));

test('what a command is not run for names tests that are there', () => {
  const named = Object.values(rows).flatMap(({ why }) => why?.match(/\b(?:scenario|unit)\/[\w/-]+/g) ?? []);
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((name) => !existsSync(`test/${name}.test.ts`))).toEqual([]);
});

test('every command of every text is one of the program', () => {
  const offered = offeredIn(program, allTexts());
  expect(faultsIn(offered)).toEqual([]);
  // A reader that finds nothing would find no fault.
  for (const where of [
    'server/clients/web',
    'server/domain',
    'server/adapters/runbooks',
    'docs/monitoring',
    'provider/schema',
    'docs',
  ])
    expect(offered.filter(({ file }) => file.startsWith(where)).length, where).toBeGreaterThan(1);
});

/**
 * A statement that an administrator runs must not come from a database: who writes that could
 * choose it. Functions that quote for SQL are called there only to make one.
 */
const faultsInSql = (text: string): readonly string[] => [
  ...(text.match(/\bquote_(?:ident|literal|nullable)\b/g) ?? []),
  ...(text.match(/(?<!pg_catalog\.)\bset_config\(/g) ?? []),
  ...[...text.matchAll(/`(?:\\.|[^`\\])*`/gs)].flatMap(
    ([literal]) => literal.match(/'[^']*\b(?:GRANT|REVOKE|ALTER|CREATE|DROP)\b[^']*'/g) ?? [],
  ),
];

test('no statement that is offered is made by a database', () => {
  const folder = 'server/adapters/store';
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  expect(files.length).toBeGreaterThan(50);
  expect(
    files.flatMap((name) => faultsInSql(readFileSync(join(folder, name), 'utf8')).map((fault) => `${name}: ${fault}`)),
  ).toEqual([]);
  expect(faultsInSql("`case when a then ': GRANT pg_monitor TO ' || quote_ident(current_user) end`")).toHaveLength(2);
  expect(faultsInSql("set_config('search_path', $1, false), pg_catalog.set_config('a', 'b', false)")).toHaveLength(1);
});

describe('the program itself', () => {
  /** What a reader puts in place of a word of the text. */
  const samples: Readonly<Record<string, string>> = { '--approvals': '1', '--time': '2026-03-01T09:30:00Z' };
  const leaves = (command: Command): readonly Command[] => [command, ...command.commands.flatMap(leaves)];
  const open = async (): Promise<Command> => {
    const own = await makeProgram('1.0.0');
    for (const each of leaves(own)) {
      each.exitOverride().configureOutput({ writeErr: () => undefined, writeOut: () => undefined });
      if (!isGroup(each)) each.action(() => undefined);
    }
    return own;
  };
  const typed = ({ path, command, options, operands }: OfferedCommand): readonly string[] => {
    const missing = command.options.filter(
      (each) => each.mandatory && !options.some(([given]) => given.long === each.long),
    );
    const words = [...options, ...missing.map((each) => [each, true] as const)].flatMap(([option, value]) => {
      const name = option.long ?? option.short ?? '';
      if (!option.required && !option.optional) return [name];
      const isOpen = value === true || /^[A-Z]+$|[<{…]/.test(value) || value.includes(hole);
      return [name, isOpen ? (samples[name] ?? option.argChoices?.[0] ?? 'x') : value.replaceAll(/^["']|["']$/g, '')];
    });
    const more = command.registeredArguments.slice(operands.length).filter((each) => each.required);
    const all = [...operands, ...more.map((each) => each.argChoices?.[0] ?? 'NAME')];
    return [...path.split(' ').slice(1), ...words, '--', ...all];
  };

  test('reads each of them: options, their values, and operands', async () => {
    const own = await open();
    const offered = offeredIn(program, allTexts()).filter(({ command }) => !isGroup(command));
    const commands = new Map(offered.map((each) => [typed(each).join(' '), each]));
    const refused: string[] = [];
    for (const [line, each] of commands)
      await own.parseAsync([...typed(each)], { from: 'user' }).catch((error: Error) => {
        refused.push(`${each.file}:${each.line}: dke ${line}: ${error.message}`);
      });
    console.info(`${offered.length} places offer ${commands.size} commands; the program reads all of them`);
    expect(refused).toEqual([]);
    // The program does refuse unknown options and surplus arguments.
    await expect(own.parseAsync(['key', 'rotate', '--now', 'x'], { from: 'user' })).rejects.toThrow(/unknown option/);
    await expect(own.parseAsync(['key', 'rotate', 'x', 'y'], { from: 'user' })).rejects.toThrow(/too many arguments/);
  });
});

/** Units of the packages, where a text has the system start or stop one. */
test('every systemctl names a unit of the packages', () => {
  const units = /^(?:dke-(?:server|backup|agent)(?:\.(?:service|timer|socket))?|--|name$|\$|…|\.\.\.)/;
  const wrong = allTexts().flatMap(({ file, line, text }) =>
    [
      ...text.matchAll(
        /systemctl (?:stop|start|restart|reload|try-restart|enable|disable|edit)((?: --\w+)*) ([\w.$-]+)/g,
      ),
    ]
      .filter(([, , unit = '']) => /dke/.test(unit) && !units.test(unit))
      .map(([command]) => `${file}:${line}: ${command}`),
  );
  expect(wrong).toEqual([]);
});

describe('the reader notices, in a program', () => {
  test.each([
    ["'run dke key rotate; it is new'", []],
    ["'dke key record 1'", []],
    ["'restart it, then dke audit'", ['dke audit: a group of commands only prints its help']],
    ["'dke endpoint diagnostics list shows them'", ['dke endpoint: a group of commands only prints its help']],
    ["'run dke key rotate --now'", ['dke key rotate: there is no --now']],
    ["'run dke backup create --out, then go'", ['dke backup create: --out has no value']],
    ["'run dke token revoke ONE OTHER'", ['dke token revoke: too many: ONE OTHER']],
    ["'run dke status -o xml.'", ['dke status: --output cannot be xml']],
    ["'run dke quarantain show'", ['dke: there is no quarantain']],
    ["'run dke key enable <key>'", ['dke key enable: < and > redirect files: write a place as NAME']],
    // biome-ignore-start lint/suspicious/noTemplateCurlyInString: sources of programs
    ['`run dke key enable ${name}`', ['dke key enable: a value is not quoted for the shell: use command`…`']],
    ['command`dke key enable ${name}`', []],
    ['command`dke key create ${name}`', ['dke key create: --vault is missing']],
    // biome-ignore-end lint/suspicious/noTemplateCurlyInString: sources of programs
    ['command`dke key enable`', ['dke key enable: an argument is missing']],
    ['<code>dke key enabel</code>', ['dke key: a group of commands only prints its help']],
  ])('%s', (text, expected) => {
    const faults = faultsIn(offeredIn(program, textsOf('x.tsx', `export const x = ${text};`)));
    expect(faults.map((fault) => fault.replace(/^.*?: /, ''))).toEqual(expected);
  });
});

describe('the reader notices, in a page', () => {
  test.each([
    ['```console\n$ dke key rotate\n```', ['dke key rotate: an argument is missing']],
    ['```console\n$ dke key rotate \\\n    one two\n```', ['dke key rotate: too many: one two']],
    ['`dke root show|turn`', ['dke root: too many: turn']],
    ['`dke key enable <key>` or `dke key\nenable a b`', ['dke key enable: too many: a b']],
    ['Run `sudo -u dke dke verify --now`.', ['dke verify: there is no --now']],
  ])('%s', (text, expected) => {
    const faults = faultsIn(offeredIn(program, pageTexts('x.md', text)));
    expect(faults.map((fault) => fault.replace(/^.*?: /, ''))).toEqual(expected);
  });
});
