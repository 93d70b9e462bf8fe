// The catalogue of commands that DKE offers anywhere: texts of the programs and of the console,
// runbooks, alerts, scripts and units of the packages, configuration and pages. It is read from the
// sources, so a new text is in it with its first commit, and its grammar is that of the program
// itself.
//
// Code is a command to its end: blocks and spans of pages, `command` templates, commands of
// runbooks. In a sentence, an operand is a place (FILE, {key}, <id>), a path, an identifier or a
// quoted text, or one word that ends its clause; other words are the sentence.
import type { Command, Option } from 'commander';
import { parseSync } from 'vite';
import { commandsOf, pages } from './page-commands.ts';
import { files, read } from './sources.ts';

/**
 * page: a page mentions it. program: a text of a program or package. typed: for copying, with all
 * it needs.
 */
export type OfferedIn = 'page' | 'program' | 'typed';
interface Text {
  readonly file: string;
  readonly line: number;
  readonly text: string;
  readonly kind: OfferedIn;
  /** Code, to its end. */
  readonly exact: boolean;
  /** Its values are words of the shell, whatever they are. */
  readonly quoted: boolean;
}

export interface OfferedCommand {
  readonly file: string;
  readonly line: number;
  readonly kind: OfferedIn;
  readonly command: Command;
  /** `dke key show`. */
  readonly path: string;
  /** Options by their long names, with what follows them; `true` when nothing does. */
  readonly options: readonly (readonly [option: Option, value: string | true])[];
  readonly operands: readonly string[];
  readonly unknown: readonly string[];
  /** A value of the program is not quoted for the shell. */
  readonly open: boolean;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly [member: string]: unknown;
}
const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value;

/** Stands for a value of the program. */
export const hole = '\u0001';

const textOf = (node: Node): string | undefined => {
  if ((node.type === 'Literal' && typeof node.value === 'string') || node.type === 'JSXText')
    return node.value as string;
  if (node.type !== 'TemplateLiteral') return undefined;
  const quasis = node.quasis as readonly { readonly value: { readonly cooked: string } }[];
  return quasis.map(({ value }) => value.cooked).join(hole);
};

/** The texts of a TypeScript file; comments are not among them. */
export const textsOf = (file: string, source: string): readonly Text[] => {
  const found: Text[] = [];
  const visit = (node: unknown, tag = ''): void => {
    if (Array.isArray(node)) for (const each of node) visit(each);
    if (!isNode(node)) return;
    const text = textOf(node);
    const quoted = tag === 'command';
    if (text?.includes('dke') === true)
      found.push({
        ...{ file, line: source.slice(0, node.start).split('\n').length, text, quoted, exact: quoted },
        kind: quoted ? 'typed' : 'program',
      });
    const inner = node.type === 'TaggedTemplateExpression' ? String((node.tag as { name?: string }).name) : '';
    for (const [name, member] of Object.entries(node)) visit(member, name === 'quasi' ? inner : '');
  };
  visit(parseSync(file, source).program);
  return found;
};

/** Runbooks have commands of their own; in other files, a line is a sentence. */
const lines = (file: string): readonly Text[] =>
  read(file)
    .split('\n')
    .map((line, index) => {
      const code = file.startsWith('server/adapters/runbooks')
        ? /^(?:command|shell) = "(.*)"$/.exec(line)?.[1]
        : undefined;
      return {
        ...{ file, line: index + 1, text: code ?? line, exact: code !== undefined, quoted: true },
        kind: code === undefined ? ('program' as const) : ('typed' as const),
      };
    });

/** Blocks and spans of code. */
export const pageTexts = (file: string, source: string): readonly Text[] => {
  const at = (index: number): number => source.slice(0, index).split('\n').length;
  const code = { file, exact: true, quoted: true } as const;
  const blocks = [...source.matchAll(/^[ ]*```(\w*)\n([\s\S]*?)^[ ]*```/gm)];
  const spans = blocks.reduce((text, [block]) => text.replace(block, block.replaceAll(/[^\n]/g, ' ')), source);
  return [
    ...blocks
      .filter(([, kind = '']) => ['sh', 'bash', 'shell', 'console'].includes(kind))
      .flatMap(({ index, 1: kind = '', 2: body = '' }) =>
        commandsOf(kind, body).flatMap(({ text }) =>
          text
            .replaceAll(/\\\n\s*/g, ' ')
            .split('\n')
            .map((line) => ({ ...code, line: at(index), text: line, kind: 'typed' as const })),
        ),
      ),
    ...[...spans.matchAll(/`([^`]+)`/g)].map(({ index, 1: text = '' }) => ({
      ...{ ...code, line: at(index), text: text.replaceAll(/\s*\n\s*/g, ' ') },
      kind: 'page' as const,
    })),
  ];
};

export const allTexts = (): readonly Text[] => [
  ...files(['server', 'provider'], '.ts', '.tsx')
    .filter((file) => !file.includes('/gen/'))
    .flatMap((file) => textsOf(file, read(file))),
  ...files(
    ['server/adapters/runbooks', 'server/packaging', 'provider/packaging'],
    '.toml',
    '.yaml',
    'inst',
    'rm',
    '.service',
  ).flatMap(lines),
  ...files(['docs/monitoring'], '.yaml')
    .filter((file) => !file.includes('.test.'))
    .flatMap(lines),
  ...files(['provider/module', 'provider/mariadb'], '.c').flatMap(lines),
  ...lines('docs/dke.toml'),
  ...pages().flatMap((page) => pageTexts(page, read(page))),
];

/** Words as the shell splits them, with their quotes; what ends a command is a word of its own. */
const wordsOf = (text: string): readonly string[] =>
  text.match(/&&|\|\||[;|](?=\s|$)|(?:"[^"]*"|'[^']*'|\$\([^)]*\)|<[\w -]+>|[^\s"'])+|["']/g) ?? [];
/** A place, a path, an identifier or a number, a quoted text, a value. */
const operand = new RegExp(
  `^(?:[A-Z][A-Z_0-9-]*|\\{\\w+\\}|<[\\w -]+>|\\S*[./]\\S*\\w|\\d[\\w:.+-]*|["'$].*|\\S*${hole}\\S*)$`,
);
const endsCommand = /^(?:&&|\|\||[;|&<]|\d?>.*|#.*)$/;

const optionOf = (command: Command, word: string): Option | undefined => {
  const name = word.split('=')[0];
  for (let at: Command | null = command; at !== null; at = at.parent) {
    const found = at.options.find(({ long, short }) => long === name || short === name);
    if (found !== undefined) return found;
  }
  return undefined;
};

type Parsed = Pick<OfferedCommand, 'path' | 'command' | 'options' | 'operands' | 'unknown'>;

const parse = (program: Command, text: string, exact: boolean): Parsed => {
  const path = ['dke'];
  const options: (readonly [Option, string | true])[] = [];
  const operands: string[] = [];
  const unknown: string[] = [];
  let command = program;
  let open: Option | undefined;
  let onlyOperands = false;
  const words = wordsOf(text).slice(1);
  for (const [index, raw] of words.entries()) {
    if (endsCommand.test(raw)) break;
    if (/^--help\b/.test(raw)) continue;
    const word =
      exact && !/\)$/.test(raw)
        ? raw
        : raw.replace(/^(["'])(.*)\1[.,;:)]*$|[.,;:)`"'\]]+$/, '$1$2$1').replace(/^(["'])\1$/, '');
    // The quote behind the last word of a text.
    if (word === '' && open === undefined) break;
    const ends = !exact && raw !== word;
    const last = index === words.length - 1;
    const inner = operands.length === 0 ? command.commands.find((each) => each.name() === word) : undefined;
    const isPlace = exact || operand.test(word);
    if (open !== undefined && !/^-./.test(word) && (isPlace || ends || last || /[:-]/.test(word))) {
      options[options.length - 1] = [open, word];
      if (!open.variadic) open = undefined;
    } else if (inner !== undefined) {
      command = inner;
      path.push(word);
    } else if (word === '--') onlyOperands = true;
    else if (/^--?[a-zA-Z]/.test(word) && !onlyOperands) {
      const option = optionOf(command, word);
      if (option === undefined) unknown.push(word);
      else {
        const [, given] = /^--[\w-]+=(.*)$/s.exec(word) ?? [];
        options.push([option, given ?? true]);
        open = given === undefined && (option.required || option.optional) ? option : undefined;
      }
    } else if (command.registeredArguments.length === 0 && !exact) break;
    else if (isPlace || ends || last) operands.push(word);
    else break;
    if (ends) break;
  }
  return { path: path.join(' '), command, options, operands, unknown };
};

/** Labels that keys are derived with, and what a process says of itself. */
const isOther = (text: string): boolean =>
  /^dke [a-z -]+ \d+\b|^dke root key for another node$|^dke [a-z]+: /.test(text);
/** Where a command starts. After -u, -g, -o or --user, `dke` is the service's user. */
const start = /(?<![\w.-]|\w\/(?<!bin\/)|-[ugo] |--user )dke(?= (?!dke\b))/g;
/** What follows the name of the program in sentences that are not about a command. */
const prose =
  /^(?:command|begin|for|metrics|needs|leads|inside|message|instance|restored|position|host|sign-in|committed|recovery)$/;

/** `dke root show|rotate` names two. */
const alternatives = (text: string): readonly string[] => {
  const [, before = '', words = '', rest = ''] =
    /^(dke(?: [a-z-]+)* )([a-z-]+(?:\\?\|[a-z-]+)+)(.*)$/s.exec(text) ?? [];
  return words === '' ? [text] : words.split(/\\?\|/).map((word) => `${before}${word}${rest}`);
};

/** Has commands of its own, and does nothing without one. */
export const isGroup = (command: Command): boolean =>
  command.commands.length > 0 && !['doctor', 'server'].includes(command.name());

/** The commands of these texts, in their order. */
export const offeredIn = (program: Command, texts: readonly Text[]): readonly OfferedCommand[] => {
  return texts.flatMap(({ file, line, kind, text, exact, quoted }) =>
    (isOther(text) ? [] : [...text.matchAll(start)])
      .flatMap(({ index }) => alternatives(text.slice(index)))
      .map((rest) => ({
        ...parse(program, rest, exact),
        noun: /^dke ([a-z][\w-]*)/.exec(rest)?.[1] ?? '',
        file,
        line,
        kind,
      }))
      .filter(({ path, noun }) => path !== 'dke' || (noun !== '' && (exact || !prose.test(noun))))
      .map(({ noun, ...found }) => (found.path === 'dke' ? { ...found, unknown: [noun] } : found))
      .map((found) => {
        const values = [...found.operands, ...found.options.map(([, value]) => String(value))];
        return { ...found, open: !quoted && values.some((value) => value.includes(hole)) };
      }),
  );
};
