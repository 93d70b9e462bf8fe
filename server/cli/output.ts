// What the command prints: tables and records for people, the API's own JSON for programs. Answers go to standard output,
// errors and questions to standard error.

import { createInterface } from 'node:readline/promises';
import { CommandError } from './exit-codes.ts';

export type OutputFormat = 'text' | 'json';

/** The columns of a table: for each heading a member of the row, or how it reads one. */
export interface Columns<T> {
  readonly [heading: string]: (keyof T & string) | ((row: T) => string | number | null | undefined);
}

export interface Output {
  readonly format: OutputFormat;
  /** One resource: members one a line, or the JSON. */
  record(value: object): void;
  /** A list: a table with a last line that tells how to go on, or the JSON. */
  list<T>(page: { readonly items: readonly T[]; readonly next?: string | null }, columns: Columns<T>): void;
  /** Bytes as they are, whatever the format. */
  bytes(content: Uint8Array): void;
  /** A remark for people; nothing with JSON. */
  say(line: string): void;
}

const shown = (value: unknown): string => {
  if (value === null || value === undefined) return '-';
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(shown).join(', ');
  if (typeof value === 'number') return String(Number(value.toFixed(3)));
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
};

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What a terminal would act on is shown as an escape: names come from other people. */
const printable = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`);

/** Members of members under both names, `memory.used`; of a list of things each on a line of its own. */
const membersOf = (value: object): readonly (readonly [string, unknown])[] =>
  Object.entries(value).flatMap(([name, member]: [string, unknown]): readonly (readonly [string, unknown])[] => {
    if (isObject(member)) return membersOf(member).map(([inner, each]) => [`${name}.${inner}`, each]);
    if (!Array.isArray(member) || member.length === 0 || !member.every(isObject)) return [[name, member]];
    return member.map((each) => [
      name,
      membersOf(each)
        .map(([inner, held]) => `${inner} ${shown(held)}`)
        .join(', '),
    ]);
  });

export const formatTable = (rows: readonly (readonly string[])[]): string => {
  const widths: number[] = [];
  for (const row of rows)
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, cell.length);
  return rows
    .map((row) =>
      row
        .map((cell, index) => cell.padEnd(widths[index] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
};

export const openOutput = (format: OutputFormat, write: (text: string | Uint8Array) => void): Output => ({
  format,
  bytes: write,
  record: (value) => {
    if (format === 'json') return write(`${JSON.stringify(value, null, 2)}\n`);
    write(`${formatTable(membersOf(value).map(([name, member]) => [name, printable(shown(member))]))}\n`);
  },
  list: (page, columns) => {
    if (format === 'json') return write(`${JSON.stringify(page, null, 2)}\n`);
    const more = page.next !== null && page.next !== undefined ? `more: --after ${page.next}\n` : '';
    if (page.items.length === 0) return write(more === '' ? 'none\n' : `none so far\n${more}`);
    const cells = Object.values(columns);
    const rows = page.items.map((row) =>
      cells.map((read) => printable(shown(typeof read === 'string' ? row[read] : read(row)))),
    );
    write(`${formatTable([Object.keys(columns), ...rows])}\n`);
    if (more !== '') write(more);
  },
  say: (line) => {
    if (format === 'text') write(`${line}\n`);
  },
});

/** Prints why a command ended, for people or as JSON, to standard error. */
export const printError = (error: CommandError, format: OutputFormat, complain: (text: string) => void): void => {
  const { message, hint, requestId, exitClass } = error;
  if (format === 'json') {
    complain(`${JSON.stringify({ error: exitClass, message, hint, requestId })}\n`);
    return;
  }
  const more = [hint, requestId === undefined ? undefined : `request ${requestId}`];
  complain(`dke: ${message}\n${more.map((line) => (line === undefined ? '' : `  ${line}\n`)).join('')}`);
};

/** Lets go on only who names the thing: `--confirm NAME` in scripts, typed in at a terminal. */
export const confirm = async (what: string, name: string, given: string | undefined): Promise<void> => {
  let answer = given;
  if (answer === undefined && process.stdin.isTTY) {
    const terminal = createInterface({ input: process.stdin, output: process.stderr });
    answer = await terminal.question(`${what}\nType ${name} to go on: `);
    terminal.close();
  }
  if (answer === name) return;
  throw new CommandError('config', answer === undefined ? `${what}` : 'that is not its name: nothing was changed', {
    hint: `to go on, give --confirm '${name}'`,
  });
};
