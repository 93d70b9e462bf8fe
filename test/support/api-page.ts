// Writes the table of routes of docs/api.md from the contract: `node test/support/api-page.ts` puts
// it into the page. What the page says of a route stays; a new route gets its summary.
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { apiRoutes } from '../../server/contract/api/index.ts';
import type { RouteGroup } from '../../server/contract/api/row.ts';

/** `page`: its current text. */
export const withRoutes = (page: string): string => {
  const start = page.indexOf('| route | what it does |');
  const end = page.indexOf('\n\n', start);
  const table = page.slice(start, end === -1 ? undefined : end).trimEnd();
  const descriptions = new Map(
    table.split('\n').map((line) => {
      const [, route = '', what = ''] = line.split(' | ').join('|').split('|');
      return [route.trim(), what.trim()];
    }),
  );
  const rows = Object.values(apiRoutes)
    .flatMap((group: RouteGroup) => Object.values(group))
    .map(({ method, path, summary }) => {
      const route = `\`${method.toUpperCase()} ${path}\``;
      return `| ${route} | ${descriptions.get(route) ?? summary} |`;
    });
  const made = ['| route | what it does |', '|---|---|', ...rows].join('\n');
  return `${page.slice(0, start)}${made}${end === -1 ? '\n' : page.slice(end)}`;
};

if (process.argv[1] === import.meta.filename) {
  const path = join(resolve(import.meta.dirname, '../..'), 'docs/api.md');
  writeFileSync(path, withRoutes(readFileSync(path, 'utf8')));
}
