// docs/databases/oracle.md says of each statement about the database where it is from and for which
// releases, because no real database is here. Runbooks are refused at the start without it
// (server/adapters/runbooks/read-runbooks.ts); profiles: test/tde/statements.test.ts.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readRunbooks } from '../../server/adapters/runbooks/read-runbooks.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/databases/oracle.md'), 'utf8');
const grade = /(specification|Oracle's reference|public logs|inferred)/;
/** Releases, after the semicolon. */
const releases = /;\s(all releases|\d+(\.\d+)?[a-z]*|Grid Infrastructure \d+c)/;

/** The text of a heading of the second or third level, without what is below its own headings. */
const sectionOf = (text: string, heading: string): string => {
  const [, found] = new RegExp(`^#{2,3} ${heading}\n([^]*?)(?=^#{2,3} |$(?![^]))`, 'm').exec(text) ?? [];
  if (found === undefined) throw new Error(`no heading ${heading}`);
  return found;
};
const flat = (text: string): string => text.replaceAll(/\s*\n\s*/g, ' ').trim();

/** SQL without a paragraph before it that has grade and releases. */
const bareBlocks = (text: string): readonly string[] => {
  const faults: string[] = [];
  for (const { index } of text.matchAll(/^```sql$/gm)) {
    const before = flat(text.slice(0, index).trimEnd().split('\n\n').at(-1) ?? '');
    if (!/^Evidence: /.test(before) || !grade.test(before) || !releases.test(before))
      faults.push(text.slice(index, index + 120));
  }
  return faults;
};
/** Items of a list without `(grade; releases)` at their end. */
const bareItems = (text: string): readonly string[] =>
  text
    .split(/^- /m)
    .slice(1)
    .map((item) => flat(item.split('\n\n')[0] ?? ''))
    .filter((item) => {
      const [, end = ''] = /\(([^()]*(?:\([^()]*\)[^()]*)*)\)$/.exec(item) ?? [];
      return !grade.test(end) || !releases.test(end);
    });
const bareRows = (text: string): readonly string[] =>
  text
    .split('\n')
    .filter((line) => /^\| ORA-/.test(line))
    .filter((line) => {
      const last = line.split('|').at(-2) ?? '';
      return !grade.test(last) || !releases.test(last);
    });

const lists = ['The password in the statements', 'Auto-login', 'Real Application Clusters', 'Warnings'];

test('each block of SQL of the page of Oracle Database has its grade and releases before it', () => {
  expect(page.match(/^```sql$/gm)?.length).toBeGreaterThan(10);
  expect(bareBlocks(page)).toEqual([]);
});
test.each(lists)('each statement under "%s" ends with its grade and releases', (heading) => {
  const items = sectionOf(page, heading);
  expect(items).toMatch(/^- /m);
  expect(bareItems(items)).toEqual([]);
});
test('each error number has its grade and releases', () => {
  const rows = sectionOf(page, 'Oracle error numbers');
  expect(rows.match(/^\| ORA-/gm)?.length).toBeGreaterThan(15);
  expect(bareRows(rows)).toEqual([]);
});
test('what has none is found', () => {
  expect(bareBlocks('A paragraph.\n\n```sql\nSELECT 1;\n```\n')).toHaveLength(1);
  expect(bareBlocks('Evidence: inferred.\n\n```sql\nSELECT 1;\n```\n')).toHaveLength(1);
  expect(bareItems('- It works.\n- It works, too. (inferred; 19c)\n')).toEqual(['It works.']);
  expect(bareRows('| ORA-00001 | a | b | |\n')).toHaveLength(1);
});
test('each step and warning of the runbooks has its grade, and a source where it is not from the specification', () => {
  for (const [name, { steps, warnings }] of Object.entries(readRunbooks()))
    for (const row of [...steps, ...warnings]) {
      expect(row.evidence, `${name}: ${JSON.stringify(row)}`).toBeDefined();
      if (row.evidence === 'oracle' || row.evidence === 'seen') expect(row.source, name).toMatch(/\d|guide|log/i);
    }
});
