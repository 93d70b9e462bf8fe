// Writes the table of docs/roles.md from the roles: `node test/support/roles-page.ts` puts it into
// the page.
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { permissionNames, permissions, roleNames, rowOf } from '../../server/domain/access.ts';

/** The two tables of the page: what each role is for, and which roles have each permission. */
export const rolesTable = (): string =>
  [
    '| role | what for |',
    '|---|---|',
    ...roleNames.map((role) => `| \`${role}\` | ${rowOf(role).description} |`),
    '',
    `| permission | what | roles |`,
    '|---|---|---|',
    ...permissionNames.map(
      (name) =>
        `| \`${name}\` | ${permissions[name]} | ${roleNames
          .filter((role) => rowOf(role).supreme !== true && rowOf(role).permissions.includes(name))
          .map((role) => `\`${role}\``)
          .join(', ')} |`,
    ),
  ].join('\n');

if (process.argv[1] === import.meta.filename) {
  const path = join(resolve(import.meta.dirname, '../..'), 'docs/roles.md');
  const page = readFileSync(path, 'utf8');
  const start = page.indexOf('| role | what for |');
  const end = page.indexOf('\n\n##', start);
  writeFileSync(path, `${page.slice(0, start)}${rolesTable()}${page.slice(end)}`);
}
