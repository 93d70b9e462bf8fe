// Writes what follows from the declarations in this folder: the `gen` folders of provider/module
// and the table in provider/PROTOCOL.md. Run it with `npm run generate` after a change here; a test
// compares. Not part of the built product.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { signatures } from '../agent/codec/dispatcher.ts';
import { causesHeader, causesTable } from './generate/causes.ts';
import { entries } from './generate/entries.ts';
import { interfaceHeader } from './generate/interface.ts';
import { wired } from './generate/rows.ts';
import { formsHeader, numbers, parameters, tables } from './generate/tables.ts';
import { membersOf, parameterFormNames, parameterForms } from './parameters.ts';

const root = join(import.meta.dirname, '..', '..');

const callTable = (): string =>
  [
    '| id | call | request | reply | after a lost agent |',
    '|---:|---|---|---|---|',
    ...[...wired]
      .sort(([, a], [, b]) => a.code - b.code)
      .map(([name, row]) => {
        const { request, reply } = signatures(row);
        const cell = (letters: string) => (letters === '' ? '' : `\`${letters}\``);
        const again = row.code <= 2 ? '' : row.once === true ? 'error if it was sent' : 'sent again';
        return `| ${row.code} | ${name} | ${cell(request)} | ${cell(reply)} | ${again} |`;
      }),
  ].join('\n');

const wireNames = { ulong: 'u', flag: 'byte', bytes: 'byte array', array: 'byte array', prfData: 'rows' } as const;

const formTable = (): string =>
  [
    '| form | fields | structure |',
    '|---:|---|---|',
    ...parameterFormNames.map((form, i) => {
      const fields = membersOf(form).map(([, { kind, c }]) => `${wireNames[kind]} ${c}`.trim());
      return `| ${i} | ${fields.join(', ')} | ${parameterForms[form].c} |`;
    }),
  ].join('\n');

const protocolPage = (): string => {
  let page = readFileSync(join(root, 'provider', 'PROTOCOL.md'), 'utf8');
  for (const [name, table] of [['calls', callTable()] as const, ['forms', formTable()] as const]) {
    const begin = `<!-- generated: ${name} -->`;
    const from = page.indexOf(begin);
    const to = page.indexOf('<!-- end of generated -->', from);
    if (from < 0 || to < from) throw new Error(`provider/PROTOCOL.md has lost the marks around its table of ${name}`);
    page = `${page.slice(0, from)}${begin}\n\n${table}\n\n${page.slice(to)}`;
  }
  return page;
};

/** Every generated file by its path from the root of the project. */
export const generate = (): ReadonlyMap<string, string> =>
  new Map([
    ['provider/module/entry/gen/entries.c', entries()],
    ['provider/module/entry/gen/tables.c', tables()],
    ['provider/module/message/gen/parameters.c', parameters()],
    ['provider/module/message/gen/numbers.h', numbers()],
    ['provider/module/message/gen/forms.h', formsHeader()],
    ['provider/module/message/gen/interface.h', interfaceHeader()],
    ['provider/module/message/gen/causes.h', causesHeader()],
    ['provider/module/message/gen/causes.c', causesTable()],
    ['provider/PROTOCOL.md', protocolPage()],
  ]);

if (import.meta.main) {
  for (const [path, text] of generate()) writeFileSync(join(root, path), text);
}
