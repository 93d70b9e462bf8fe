// Rows of the console's lists: what is in the page, what may be sorted, the view in the address,
// and a list as a file.

import { describe, expect, test } from 'vitest';
import { withWords } from '../../../server/clients/web/src/session/fragment.ts';
import { fileName, formatRows } from '../../../server/clients/web/src/ui/table/export.ts';
import { heightBefore, type ListPage, rowsBetween, WholeRows } from '../../../server/clients/web/src/ui/table/rows.ts';
import { readView, type View, viewWords } from '../../../server/clients/web/src/ui/table/view.ts';
import fc from '../../support/property.ts';

interface Row {
  readonly name: string;
  readonly used: number | null;
}
const row = (name: string, used: number | null = null): Row => ({ name, used });
const byName = ({ name }: Row): string => name;
const order = (by: (row: Row) => string | number | null, descending = false) => ({
  name: undefined,
  value: undefined,
  order: { by, descending },
});

describe('rows that are sorted by the browser', () => {
  test('are all rows of their list: a part cannot be sorted or narrowed', () => {
    const first: ListPage<Row> = { items: [row('b')], next: 'b' };
    const last: ListPage<Row> = { items: [row('a')], next: null };
    expect(WholeRows.of([])).toBeUndefined();
    expect(WholeRows.of([first])).toBeUndefined();
    expect(WholeRows.of([first, last])?.arranged(order(byName)).map(byName)).toEqual(['a', 'b']);
    // @ts-expect-error only `of` makes one, from pages of which the last one has no next
    const byHand = (): unknown => new WholeRows([row('a')]);
    expect(byHand).toBeTypeOf('function');
  });

  test('stand in the order of people, those without a value last', () => {
    const whole = WholeRows.of([{ items: [row('key 10', 3), row('key 2'), row('Key 1', 7)], next: null }]);
    expect(whole?.arranged(order(byName)).map(byName)).toEqual(['Key 1', 'key 2', 'key 10']);
    expect(whole?.arranged(order(byName, true)).map(byName)).toEqual(['key 10', 'key 2', 'Key 1']);
    expect(whole?.arranged(order(({ used }) => used)).map(byName)).toEqual(['key 10', 'Key 1', 'key 2']);
    expect(whole?.arranged(order(({ used }) => used, true)).map(byName)).toEqual(['Key 1', 'key 10', 'key 2']);
  });

  test('are narrowed to a part of the name and a value', () => {
    const whole = WholeRows.of([{ items: [row('Billing', 1), row('billing 2', 2), row('Payroll', 1)], next: null }]);
    const name = { of: byName, has: 'BILL' };
    const value = { of: ({ used }: Row) => used, is: '1' };
    expect(whole?.arranged({ name, value: undefined, order: undefined }).map(byName)).toEqual(['Billing', 'billing 2']);
    expect(whole?.arranged({ name, value, order: undefined }).map(byName)).toEqual(['Billing']);
  });
});

describe('the rows in the page', () => {
  test('are those in sight, few, and in the list', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100_000 }),
        fc.integer({ min: 0, max: 6_000_000 }),
        fc.integer({ min: 1, max: 2_000 }),
        fc.array(fc.record({ index: fc.integer({ min: 0, max: 1_000 }), extra: fc.integer({ min: 0, max: 900 }) }), {
          maxLength: 3,
        }),
        (count, top, seen, open) => {
          const height = 45;
          const rows = [
            ...new Map(open.filter(({ index }) => index < count).map((each) => [each.index, each])).values(),
          ];
          const { first, end } = rowsBetween(count, height, [top, top + seen], rows);
          expect(first).toBeGreaterThanOrEqual(0);
          expect(end).toBeLessThanOrEqual(count);
          expect(first).toBeLessThan(end);
          expect(end - first).toBeLessThanOrEqual(Math.ceil(seen / height) + 2 + 24 + 12);
          const whole = heightBefore(count, height, rows);
          // What is drawn covers what is in sight, as far as there are rows.
          if (top < whole) expect(heightBefore(first, height, rows)).toBeLessThanOrEqual(top);
          expect(heightBefore(end, height, rows)).toBeGreaterThanOrEqual(Math.min(whole, top + seen));
        },
      ),
    );
  });

  test('do not change with each turn of the wheel', () => {
    const ranges = new Set(
      Array.from({ length: 45 * 60 }, (_, y) => JSON.stringify(rowsBetween(100_000, 45, [y + 90_000, y + 90_900]))),
    );
    expect(ranges.size).toBeLessThanOrEqual((2 * 60) / 6 + 2);
  });
});

const writeView = (view: View, usual: string | null): string => withWords('span=day', viewWords(view, usual));

test('the view of a list is the same after it was in the address, beside the words of others', () => {
  const view = {
    order: { column: 'used', descending: true },
    hidden: new Set(['vault', 'kind']),
    compact: true,
    name: 'a b&c',
    state: 'no-credential',
  };
  expect(readView(writeView(view, null), null)).toEqual(view);
  expect(writeView(readView('', null), null)).toBe('span=day');
  expect(withWords(writeView(view, null), { span: undefined })).not.toContain('span');
  expect(readView('', 'compact').compact).toBe(true);
  expect(readView(writeView({ ...view, compact: false }, 'compact'), 'compact').compact).toBe(false);
});

describe('a list as a file', () => {
  test('has all members as columns, and no formula of a spreadsheet', () => {
    expect(
      formatRows(
        [
          { name: '=1+1', tags: ['a', 'b'] },
          { name: 'x', more: { y: 1 } },
        ],
        'csv',
      ),
    ).toBe('name,tags,more\r\n\'=1+1,a b,\r\nx,,"{""y"":1}"\r\n');
    expect(formatRows([{ a: 1 }, { a: null }], 'ndjson')).toBe('{"a":1}\n{"a":null}\n');
    expect(fileName('/api/tde/applications', 'csv')).toBe('dke-tde-applications.csv');
  });
});
