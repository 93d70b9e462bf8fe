// Every shell block of every page is run by a test that is named, or is listed with the reason why
// none does.
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { blocksOf, blockTable, commandsOf, pagesWithCommands } from '../support/page-commands.ts';

const root = resolve(import.meta.dirname, '../..');

const countsOf = (page: string): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {};
  for (const { heading } of blocksOf(page)) counts[heading] = (counts[heading] ?? 0) + 1;
  return counts;
};

test.each(pagesWithCommands())('%s has an entry for each of its blocks', (page) => {
  const entries = Object.entries(blockTable[page] ?? {}).map(([heading, { length }]) => [heading, length]);
  expect(Object.fromEntries(entries)).toEqual(countsOf(page));
});

test('the table has no page without commands, and names tests that there are', () => {
  expect(Object.keys(blockTable).filter((page) => !pagesWithCommands().includes(page))).toEqual([]);
  const tests = Object.values(blockTable)
    .flatMap((headings) => Object.values(headings).flat())
    .flatMap((entry) => ('tests' in entry ? entry.tests : []));
  expect(tests.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test('every block types something', () => {
  const empty = pagesWithCommands()
    .flatMap(blocksOf)
    .filter(({ commands }) => commands.length === 0);
  expect(empty).toEqual([]);
});

test('root makes no folder for another user where this user could lead it elsewhere', () => {
  const made = pagesWithCommands()
    .flatMap(blocksOf)
    .flatMap(({ page, commands }) =>
      commands.flatMap(({ text }) =>
        [...text.matchAll(/\binstall -d [^&;|\n]*-o [^&;|\n]*/g)].map(([line]) => ({ page, line })),
      ),
    );
  expect(made.length).toBeGreaterThan(2);
  // What only root can rename: folders directly below these.
  const isRoots = (path: string): boolean => /^\/(?:var\/(?:lib|log|backups)|srv|etc|opt|run)\/[\w-]+$/.test(path);
  expect(made.filter(({ line }) => (line.match(/ \/\S+/g) ?? []).some((path) => !isRoots(path.trim())))).toEqual([]);
});

test('a prompt names who types, and sudo names another', () => {
  const block = '$ dke status\nhealthy\n# systemctl stop dke-server\n# sudo -u dke dke root show \\\n  --more\n';
  expect(commandsOf('console', block)).toEqual([
    { typist: 'any', text: 'dke status' },
    { typist: 'root', text: 'systemctl stop dke-server' },
    { typist: 'dke', text: 'sudo -u dke dke root show \\\n  --more' },
  ]);
});

test('what another user reads or writes has its whole path, or the block goes to its folder', () => {
  const relative = pagesWithCommands()
    .flatMap(blocksOf)
    .flatMap(({ page, commands }) => {
      const goes = commands.findIndex(({ text }) => /^cd \//.test(text));
      return commands.flatMap(({ typist, text }, at) =>
        ['root', 'any'].includes(typist) || (goes >= 0 && goes < at)
          ? []
          : (text.match(/(?<=[\s=])[\w-]+\.(?:json|key|toml|log|pem|ndjson|dke\w+)(?=\s|$)/g) ?? []).map(
              (file) => `${page}: ${file} of ${typist}`,
            ),
      );
    });
  expect(relative).toEqual([]);
});
