// Each claim of docs/threat-model.md has changes of the code that enforces it, which its tests
// notice, or says why there is none (test/support/claims.ts). Whether they notice: npm run mutate.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { allMutants, claims, testOf, withoutChange } from '../support/claims.ts';
import { read, root } from '../support/sources.ts';

interface Row {
  readonly section: string;
  readonly text: string;
  readonly tests: readonly string[];
}
const rows: readonly Row[] = read('docs/threat-model.md')
  .split(/^## /m)
  .slice(1)
  .flatMap((part) => {
    const [section = ''] = part.split('\n');
    return part.split('\n').flatMap((line) => {
      const tests = [...line.matchAll(/\]\(\.\.\/(test\/[^)]+)\)/g)].map(([, path = '']) => path);
      return line.startsWith('| ') && tests.length > 0 ? [{ section, text: line.slice(2), tests }] : [];
    });
  });
const beginnings = (lists: typeof withoutChange | typeof claims) =>
  Object.entries(lists).flatMap(([section, list]) => Object.keys(list).map((row) => [section, row] as const));
const rowOf = ([section, beginning]: readonly [string, string]): readonly Row[] =>
  rows.filter((row) => row.section === section && row.text.startsWith(beginning));

test('each claim has a change or a reason, and each change or reason has one claim', () => {
  expect(rows.length).toBeGreaterThan(140);
  const named = [...beginnings(claims), ...beginnings(withoutChange)].map(
    (each) => [each.join(': '), rowOf(each)] as const,
  );
  expect(named.filter(([, found]) => found.length !== 1).map(([name]) => name)).toEqual([]);
  const found = named.map(([, [row]]) => row);
  expect(rows.filter((row) => !found.includes(row)).map(({ text }) => text.slice(0, 60))).toEqual([]);
  expect(new Set(found).size).toBe(found.length);
});

test('each change is of a line that is in its file once', () => {
  const counted = allMutants.map(({ file, line, becomes }) => [
    `${file}: ${line}`,
    becomes === line ? 'no change' : existsSync(join(root, file)) ? read(file).split(line).length - 1 : 'no file',
  ]);
  expect(counted.filter(([, count]) => count !== 1)).toEqual([]);
});

test('each change is noticed by a test that the claim names', () => {
  const strange = Object.entries(claims).flatMap(([section, list]) =>
    Object.entries(list).flatMap(([beginning, changes]) => {
      const [row] = rowOf([section, beginning]);
      return changes
        .filter((change) => row?.tests.includes(testOf(change)) !== true)
        .map((change) => [beginning, testOf(change)]);
    }),
  );
  expect(strange).toEqual([]);
  expect(allMutants.filter((mutant) => !existsSync(join(root, testOf(mutant))))).toEqual([]);
});
