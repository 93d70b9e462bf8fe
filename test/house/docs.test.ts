// The pages for people name what the code has: every table of docs/api.md is compared with the
// table it speaks of, and every file that a page links to is there.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { limits } from '../../provider/agent/settings/limits.ts';
import { exitCodes } from '../../server/cli/terminal/exit-codes.ts';
import { apiRoutes } from '../../server/contract/api/index.ts';
import { problemRows } from '../../server/contract/api/problem-rows.ts';
import type { RouteGroup } from '../../server/contract/api/row.ts';
import { auditKinds } from '../../server/domain/audit-event.ts';
import { differencesPage } from '../support/differences-page.ts';
import { functionTable, mechanismTable, usageTable } from '../support/pkcs11-page.ts';
import { causeTable, numberTable, returnCodes, serviceTable } from '../support/return-codes-page.ts';

const root = resolve(import.meta.dirname, '../..');
const rowsAfter = (heading: string, page = 'docs/api.md'): string[][] => {
  const [, part = ''] = readFileSync(join(root, page), 'utf8').split(`\n## ${heading}\n`);
  const [section = ''] = part.split('\n## ');
  return [...section.matchAll(/^\| (?:`|\d)(.*)$/gm)].map(([line]) => line.split('|').map((cell) => cell.trim()));
};

describe('docs/api.md', () => {
  test('names every kind of audit record, once', () => {
    const kinds = rowsAfter('The audit log').flatMap(([, cell = '']) => cell.replaceAll('`', '').split(', '));
    expect(kinds.sort()).toEqual(Object.keys(auditKinds).sort());
  });

  test('lists every problem code with its status and title', () => {
    expect(rowsAfter('Problems').map(([, code, status, title]) => [code, status, title])).toEqual(
      Object.entries(problemRows).map(([code, { status, title }]) => [`\`${code}\``, String(status), title]),
    );
  });

  test('lists every route', () => {
    const routes = Object.values(apiRoutes).flatMap((group: RouteGroup) => Object.values(group));
    expect(rowsAfter('Routes').map(([, route]) => route)).toEqual(
      routes.map(({ method, path }) => `\`${method.toUpperCase()} ${path}\``),
    );
  });
});

describe('docs/threat-model.md', () => {
  const lines = readFileSync(join(root, 'docs/threat-model.md'), 'utf8').split('\n');
  /** Each row below a head whose last column has the tests. */
  const claims = lines.flatMap((line, at) => {
    if (!line.startsWith('| ') || lines[at + 1]?.startsWith('|---') === true) return [];
    const head = lines.slice(0, at).findLast((_, above) => lines[above + 1]?.startsWith('|---') === true);
    return head?.endsWith(' Test |') === true ? [line] : [];
  });
  test('names an existing test for each claim', () => {
    const testsOf = (line: string): string[] =>
      [...(line.split(' | ').at(-1) ?? '').matchAll(/\]\(\.\.\/(test\/[^)]+)\)/g)].map(([, path = '']) => path);
    expect(claims.length).toBeGreaterThan(100);
    expect(claims.filter((line) => testsOf(line).length === 0)).toEqual([]);
    expect(claims.flatMap(testsOf).filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });
});

describe('docs/pkcs11.md', () => {
  const page = readFileSync(join(root, 'docs/pkcs11.md'), 'utf8');
  test('lists every function that is carried', () => {
    expect(page).toContain(`\n\n${functionTable()}\n\n`);
  });
  test('lists every mechanism with what it does', () => {
    expect(page).toContain(`\n\n${mechanismTable()}\n\n`);
  });
  test('lists the default uses of every key', () => {
    expect(page).toContain(`\n\n${usageTable()}\n\n`);
  });
});

test('docs/differences.md has every difference from the standard (node test/support/differences-page.ts)', () => {
  expect(readFileSync(join(root, 'docs/differences.md'), 'utf8')).toBe(differencesPage());
});

describe('docs/return-codes.md', () => {
  const page = readFileSync(join(root, 'docs/return-codes.md'), 'utf8');
  test('has a row for every return code, and none for others', () => {
    const named = ['Codes for database administrators', 'Codes for developers'].flatMap((heading) =>
      rowsAfter(heading, 'docs/return-codes.md').map(([, code = '']) => code.replaceAll('`', '')),
    );
    expect(named.toSorted()).toEqual(returnCodes());
  });
  test('has the number of every code (node test/support/return-codes-page.ts)', () => {
    expect(page).toContain(`\n\n${numberTable()}\n`);
  });
  test('has every cause with its line (node test/support/return-codes-page.ts)', () => {
    expect(page).toContain(`\n\n${causeTable()}\n`);
  });
  test('says what every error of the service becomes (node test/support/return-codes-page.ts)', () => {
    expect(page).toContain(`\n\n${serviceTable()}\n`);
  });
});

test('docs/limits.md has every limit of the agent', () => {
  const rows = Object.values(limits).map(
    ({ what, most, unit, beyond }) => `| ${what} | ${most.toLocaleString('en')} ${unit} | ${beyond} |`,
  );
  const table = ['| what | limit | what happens beyond it |', '|---|---:|---|', ...rows].join('\n');
  expect(readFileSync(join(root, 'docs/limits.md'), 'utf8')).toContain(`\n\n${table}\n\n`);
});

test('docs/command.md lists every exit code', () => {
  expect(rowsAfter('Exit codes', 'docs/command.md').map(([, code, name]) => [code, name])).toEqual(
    Object.entries(exitCodes).map(([name, code]) => [String(code), `\`${name}\``]),
  );
});

test('CHANGELOG.md has a dated section for the version of the package', () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { readonly version: string };
  const [, , text = ''] =
    new RegExp(
      `^## \\[${version.replaceAll('.', '\\.')}\\] - (\\d{4}-\\d{2}-\\d{2})\n([^]*?)(?=^## |$(?![^]))`,
      'm',
    ).exec(readFileSync(join(root, 'CHANGELOG.md'), 'utf8')) ?? [];
  expect(text).toMatch(/^### (Added|Changed|Fixed)$/m);
});

describe('links', () => {
  const pages = ['README.md', 'CHANGELOG.md', 'addon/FORMAT.md', 'provider/PROTOCOL.md'].concat(
    readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => join('docs', name)),
  );
  test.each(pages.filter((name) => existsSync(join(root, name))))('of %s lead to files that are there', (name) => {
    const links = [...readFileSync(join(root, name), 'utf8').matchAll(/\]\((?!https?:|#)([^)#]+)/g)];
    const missing = links.map(([, link = '']) => link).filter((link) => !existsSync(join(root, dirname(name), link)));
    expect(missing).toEqual([]);
  });
});
