// What the command prints: tables and records for people; the API's own answers as JSON or YAML,
// and CSV, for programs. Answers go to standard output, errors and questions to standard error.

import { createInterface } from 'node:readline/promises';
import { styleText } from 'node:util';
import { csvLine } from '../../base/csv.ts';
import { printable } from '../../base/printable.ts';
import { CommandError } from './exit-codes.ts';
import { clearProgress, withoutProgress } from './progress.ts';
import { yamlOf } from './yaml.ts';

export const outputFormats = ['text', 'table', 'json', 'yaml', 'csv'] as const;
/** `table` is another name of `text`. */
export type OutputFormat = (typeof outputFormats)[number];

/** The columns of a table: for each heading a member of the row, or how it reads one. */
export interface Columns<T> {
  readonly [heading: string]: (keyof T & string) | ((row: T) => string | number | null | undefined);
}

export interface Output {
  /** For programs: what is recorded is the API's own answer. */
  readonly raw: boolean;
  /** One resource: a member a line, or the whole answer. */
  record(value: object): void;
  /** A list: a table, with how to continue; or the whole answer. */
  list<T>(page: { readonly items: readonly T[]; readonly next?: string | null }, columns: Columns<T>): void;
  /** Bytes as they are, whatever the format. */
  bytes(content: Uint8Array): void;
  /** A remark for people; nothing for programs. */
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

/**
 * Members of members under both names, `memory.used`; of a list of things each on a line of its
 * own.
 */
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

/** Styles text that goes to a terminal, unless the user has switched styles off. */
const paint = (stream: NodeJS.WriteStream, style: 'bold' | 'red' | 'yellow', text: string): string =>
  stream.isTTY && !process.env.NO_COLOR && process.env.TERM !== 'dumb'
    ? styleText(style, text, { validateStream: false })
    : text;
export const paintOut = (style: 'bold' | 'red' | 'yellow', text: string): string => paint(process.stdout, style, text);

const csvText = (value: unknown): string | number | null => {
  if (value === null || value === undefined || typeof value === 'number') return value ?? null;
  return Array.isArray(value) && value.length === 0 ? null : shown(value);
};

/** `tell` is for remarks next to an answer that is for programs. */
export const openOutput = (
  format: OutputFormat,
  write: (text: string | Uint8Array) => void,
  tell: (text: string) => void = () => undefined,
): Output => {
  const raw = format !== 'text' && format !== 'table';
  const answer = (value: unknown): void =>
    write(format === 'yaml' ? yamlOf(value) : `${JSON.stringify(value, null, 2)}\n`);
  return {
    raw,
    bytes: write,
    record: (value) => {
      if (format === 'csv')
        write(
          [['MEMBER', 'VALUE'] as const, ...membersOf(value)]
            .map(([name, member]) => csvLine([name, csvText(member)]))
            .join(''),
        );
      else if (raw) answer(value);
      else
        write(
          `${formatTable(membersOf(value).map(([name, member]) => [printable(name), printable(shown(member))]))}\n`,
        );
    },
    list: (page, columns) => {
      if (format === 'json' || format === 'yaml') return answer(page);
      const cells = Object.values(columns);
      const rows = page.items.map((row) => cells.map((read) => (typeof read === 'string' ? row[read] : read(row))));
      const more = page.next !== null && page.next !== undefined ? `more: --after ${page.next}\n` : '';
      if (format === 'csv') {
        write([Object.keys(columns), ...rows].map((row) => csvLine(row.map(csvText))).join(''));
        tell(more);
        return;
      }
      if (rows.length === 0) return write(more === '' ? 'none\n' : `none so far\n${more}`);
      const texts = rows.map((row) => row.map((cell) => printable(shown(cell))));
      const [heading = '', ...lines] = formatTable([Object.keys(columns), ...texts]).split('\n');
      write(`${[paintOut('bold', heading), ...lines].join('\n')}\n${more}`);
    },
    say: (line) => {
      if (!raw) write(`${printable(line, '\n\t')}\n`);
    },
  };
};

/** To this process's streams. */
export const standardOutput = (format: OutputFormat): Output =>
  openOutput(
    format,
    (text) => {
      clearProgress();
      process.stdout.write(text);
    },
    (text) => {
      process.stderr.write(text);
    },
  );

/** Prints why a command ended, for people or as JSON, to standard error. */
export const printError = (error: CommandError, format: OutputFormat, complain: (text: string) => void): void => {
  const { message, hint, requestId, exitClass } = error;
  // One line of JSON is YAML too.
  if (format === 'json' || format === 'yaml') {
    complain(`${JSON.stringify({ error: exitClass, message, hint, requestId })}\n`);
    return;
  }
  const more = [hint, requestId === undefined ? undefined : `request ${requestId}`];
  const lines = more.map((line) => (line === undefined ? '' : `  ${printable(line, '\n')}\n`));
  complain(`${paint(process.stderr, 'red', 'dke:')} ${printable(message, '\n')}\n${lines.join('')}`);
};

let isShowing = false;
/** A secret is on its way to standard output. It is shown only once, so what is lost is told. */
export const showingSecret = (is: boolean): void => {
  isShowing = is;
};
export const isShowingSecret = (): boolean => isShowing;
export const secretExists =
  'what it opens exists, and its secret is lost: revoke or replace it, then repeat with --out FILE, which needs room before anything is created';

/** Ctrl-C at a question is an answer, and so is the end of the input. */
const stopAtQuestion = (): never => {
  throw new CommandError('refused', 'stopped at the question: nothing was changed');
};

/**
 * Continues only when the thing is named, or the word given where there is no name:
 * `--confirm NAME` in scripts, typed at a terminal.
 */
export const confirm = async (what: string, name: string, given: string | undefined): Promise<void> => {
  let answer = given;
  if (answer === undefined && process.stdin.isTTY) {
    const terminal = createInterface({ input: process.stdin, output: process.stderr });
    const question = `${printable(what, '\n')}\nType ${printable(name)} to continue: `;
    answer = await withoutProgress(() => terminal.question(question).catch(stopAtQuestion)).finally(() =>
      terminal.close(),
    );
  }
  if (answer === name) return;
  throw new CommandError('config', answer === undefined ? what : `that is not ${name}: nothing was changed`, {
    hint: `to continue, pass --confirm '${name}'`,
  });
};
