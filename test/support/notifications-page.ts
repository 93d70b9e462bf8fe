// Writes the table of docs/notifications.md from the kinds:
// `node test/support/notifications-page.ts` puts it into the page.
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { notificationKindNames, notificationRow } from '../../server/domain/notification.ts';

export const notificationsTable = (): string =>
  [
    '| kind | what | days before | severity | fix | is resolved when |',
    '|---|---|---|---|---|---|',
    ...notificationKindNames.map((kind) => {
      const { text, leadDays, severities, fix, end } = notificationRow(kind);
      const what = text.replace('{name}', '…');
      return `| \`${kind}\` | ${what} | ${leadDays.join(', ') || 'at once'} | ${severities.join(', ')} | ${fix} | ${end} |`;
    }),
  ].join('\n');

if (process.argv[1] === import.meta.filename) {
  const path = join(resolve(import.meta.dirname, '../..'), 'docs/notifications.md');
  const page = readFileSync(path, 'utf8');
  const start = page.indexOf('| kind | what |');
  const end = page.indexOf('\n\n', start);
  writeFileSync(path, `${page.slice(0, start)}${notificationsTable()}${page.slice(end)}`);
}
