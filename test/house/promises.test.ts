// docs/promises.md names a test for each promise: the file is there, and has a test, a `describe`
// or a case of a table with that title.
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseSync } from 'vite';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
interface Proof {
  readonly path: string;
  readonly title: string;
}
const proof = /\[[^\]]+\]\(\.\.\/(test\/[^)]+)\): "([^"]+)"/g;
const rowsOf = (page: string): { readonly promise: string; readonly proofs: readonly Proof[] }[] =>
  page
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| Promise |'))
    .map((line) => {
      const [, promise = '', cell = ''] = line.split(' | ').flatMap((part, at) => (at === 0 ? ['', part] : [part]));
      return {
        promise: promise.replace(/^\| /, ''),
        proofs: [...cell.matchAll(proof)].map(([, path = '', title = '']) => ({ path, title })),
      };
    });
interface Node {
  readonly type: string;
  readonly [member: string]: unknown;
}
const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value;
/** The texts of a source; comments are not among them. */
const textsIn = (path: string, source: string): ReadonlySet<string> => {
  const found = new Set<string>();
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) for (const each of node) visit(each);
    if (!isNode(node)) return;
    if (node.type === 'Literal' && typeof node.value === 'string') found.add(node.value);
    for (const member of Object.values(node)) visit(member);
  };
  visit(parseSync(path, source).program);
  return found;
};
const read = new Map<string, ReadonlySet<string>>();
const textsOf = (path: string): ReadonlySet<string> => {
  const texts =
    read.get(path) ??
    (existsSync(join(root, path)) ? textsIn(path, readFileSync(join(root, path), 'utf8')) : new Set<string>());
  read.set(path, texts);
  return texts;
};
const missing = (rows: ReturnType<typeof rowsOf>): readonly string[] =>
  rows.flatMap(({ promise, proofs }) =>
    proofs.length === 0
      ? [`${promise}: no test`]
      : proofs.flatMap(({ path, title }) => (textsOf(path).has(title) ? [] : [`${path}: ${title}`])),
  );

test('each promise of docs/promises.md names tests that are there', () => {
  const rows = rowsOf(readFileSync(join(root, 'docs/promises.md'), 'utf8'));
  expect(rows.length).toBeGreaterThan(100);
  expect(missing(rows)).toEqual([]);
  expect(new Set(rows.map(({ promise }) => promise)).size).toBe(rows.length);
});

test('a promise without a test, and a title that is in no file, are found', () => {
  const here = 'test/house/promises.test.ts';
  expect(
    missing(
      rowsOf(
        `| It works | [here](../${here}): "a promise without a test, and a title that is in no file, are found" |\n` +
          `| It is quick | [here](../${here}): "it is ${'quick'}" |\n| It is good | |\n`,
      ),
    ),
  ).toEqual([`${here}: it is quick`, 'It is good: no test']);
});

test('a title in a comment does not count', () => {
  expect([...textsIn('x.ts', "// test('is said')\ntest.each([['is a case']])('%s', () => undefined);")]).toEqual([
    'is a case',
    '%s',
  ]);
});
