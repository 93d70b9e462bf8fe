// How long a function may be. What is longer has more than one subject: its parts become functions
// and files of their own.
import { parseSync } from 'vite';
import { expect, test } from 'vitest';
import { files, read } from '../support/sources.ts';

const most = 120;

interface Function {
  readonly name: string;
  readonly lines: number;
}

const nameOf = (node: Readonly<Record<string, unknown>>): string | undefined => {
  const named = (node.id ?? node.key) as { readonly name?: string; readonly value?: unknown } | null | undefined;
  return named?.name ?? (named?.value === undefined ? undefined : String(named.value));
};

/** Comments explain a function; they do not make it longer. */
const linesOf = (text: string): number => text.split('\n').filter((line) => !/^\s*(\/\/|\*|\/\*)/.test(line)).length;

/** Every function of a TypeScript file, with the name of its nearest declaration. */
const functionsOf = (path: string, text = read(path)): Function[] => {
  const found: Function[] = [];
  const visit = (node: unknown, name: string): void => {
    if (node === null || typeof node !== 'object') return;
    if (Array.isArray(node)) {
      for (const each of node) visit(each, name);
      return;
    }
    const { type, start, end, ...parts } = node as {
      type?: string;
      start: number;
      end: number;
      [part: string]: unknown;
    };
    const own = nameOf(parts) ?? name;
    const isFunction = /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(type ?? '');
    if (isFunction) found.push({ name: own, lines: linesOf(text.slice(start, end)) });
    for (const part of Object.values(parts)) visit(part, isFunction ? `${own}/` : own);
  };
  visit(parseSync(path, text).program, '');
  return found;
};

test(`no function of the programs is longer than ${most} lines`, () => {
  const long = files(['addon', 'provider', 'server'], '.ts', '.tsx')
    .filter((path) => read(path).split('\n').length > most)
    .flatMap((path) =>
      functionsOf(path)
        .filter(({ lines }) => lines > most)
        .map(({ name }) => `${path} ${name}`),
    );
  expect(long, 'split it').toEqual([]);
});

test('every form of a function is measured under its name', () => {
  const text = [
    'export const one = () => 1;',
    'function two() {',
    '  return { three() {}, four: async () =>\n    4 };',
    '}',
    'class Five {\n  #six = () => 6;\n  seven(): number {\n    return 7;\n  }\n}',
    'const eight = memo((a: string) => (b: string) =>\n  a + b);',
  ].join('\n');
  expect(functionsOf('a.ts', text)).toEqual([
    { name: 'one', lines: 1 },
    { name: 'two', lines: 4 },
    { name: 'three', lines: 1 },
    { name: 'four', lines: 2 },
    { name: 'six', lines: 1 },
    { name: 'seven', lines: 3 },
    { name: 'eight', lines: 2 },
    { name: 'eight/', lines: 2 },
  ]);
});
