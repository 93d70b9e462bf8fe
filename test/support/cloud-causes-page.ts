// Writes the table of docs/cloud.md from the causes: `node test/support/cloud-causes-page.ts` puts
// it into the page.
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type CloudCause, cloudCauses, wordsOf } from '../../server/base/cloud-causes.ts';

export const causesTable = (): string =>
  [
    '| cause | creating a store | ConnectionErrorCode | CreateKey | using a key | check of `dke doctor endpoint` | what to do |',
    '|---|---|---|---|---|---|---|',
    ...(Object.keys(cloudCauses) as CloudCause[]).map((id) => {
      const { cause, check, fix } = cloudCauses[id];
      const { create, connect, createKey, use } = wordsOf(id);
      const words = [create, connect, createKey, use].map((word) => (word === null ? 'none' : `\`${word}\``));
      return `| ${[cause, ...words, `\`${check}\``, fix].join(' | ')} |`;
    }),
  ].join('\n');

const path = join(resolve(import.meta.dirname, '../..'), 'docs/cloud.md');
const [begin, end] = ['| cause | creating a store |', '\n\nCreateKey fails'];
export const causesOfPage = (): string => {
  const page = readFileSync(path, 'utf8');
  return page.slice(page.indexOf(begin), page.indexOf(end));
};

if (process.argv[1] === import.meta.filename) {
  const page = readFileSync(path, 'utf8');
  writeFileSync(
    path,
    page.replace(causesOfPage(), () => causesTable()),
  );
}
