// Writes what follows from the labels (labels.ts): the table of FORMAT.md and the core's header.
// Run it with `npm run generate`; a test compares. Not part of the built product.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { keyClasses, labelRows } from './labels.ts';

const root = join(import.meta.dirname, '..');

const header = (): string => {
  const rows = labelRows().flatMap(([text, { core, purpose }]) =>
    core === undefined ? [] : [{ text, core, purpose }],
  );
  return [
    '// The labels that the core uses. Generated from addon/labels.ts (npm run generate): change it there.',
    '#pragma once',
    '',
    '#include <cstdint>',
    '#include <string_view>',
    '',
    'namespace dke {',
    '',
    'enum class Label : uint8_t {',
    ...rows.map(({ core }) => `  ${core},`),
    '};',
    '',
    'constexpr std::string_view TextOf(Label label) {',
    `  constexpr std::string_view kTexts[] = {${rows.map(({ text }) => `"${text}"`).join(', ')}};`,
    '  return kTexts[static_cast<uint8_t>(label)];',
    '}',
    '',
    '}  // namespace dke',
    '',
  ].join('\n');
};

const table = (): string =>
  [
    '| label | use | key | purpose | written by | freshness | parser |',
    '|---|---|---|---|---|---|---|',
    ...labelRows().map(
      ([text, { use, key, purpose, writer, freshness, parser }]) =>
        `| \`${text}\` | ${use} | ${key} | ${purpose} | ${writer} | ${freshness} | ${parser} |`,
    ),
    '',
    'The classes of keys:',
    '',
    '| class | key |',
    '|---|---|',
    ...Object.entries(keyClasses).map(([name, meaning]) => `| ${name} | ${meaning} |`),
  ].join('\n');

const formatPage = (): string => {
  const page = readFileSync(join(root, 'addon', 'FORMAT.md'), 'utf8');
  const begin = '<!-- generated: labels -->';
  const from = page.indexOf(begin);
  const to = page.indexOf('<!-- end of generated -->', from);
  if (from < 0 || to < from) throw new Error('addon/FORMAT.md has lost the marks around its table of labels');
  return `${page.slice(0, from)}${begin}\n\n${table()}\n\n${page.slice(to)}`;
};

/** Every generated file by its path from the root of the project. */
export const generateLabels = (): ReadonlyMap<string, string> =>
  new Map([
    ['addon/core/keys/labels.h', header()],
    ['addon/FORMAT.md', formatPage()],
  ]);

if (process.argv[1] === import.meta.filename) {
  for (const [path, text] of generateLabels()) writeFileSync(join(root, path), text);
}
