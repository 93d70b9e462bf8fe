// The terms by which things are found (domain/search-terms.ts).
import { describe, expect, test } from 'vitest';
import { foldQuery, isFoundBy, rangeOf, termsOf, termsOfId } from '../../../server/domain/search-terms.ts';

describe('a text is found by the beginning of each of its words', () => {
  test.each<[string, readonly string[]]>([
    ['prod-payroll.2026', ['prod payroll 2026', 'payroll 2026', '2026']],
    ['OrdersProd', ['ordersprod', 'prod']],
    ['db01', ['db01', '01']],
    ['ORACLE.TDE.MK', ['oracle tde mk', 'tde mk', 'mk']],
    ['  Zürich   Köln ', ['zurich koln', 'koln']],
    ['ﬁnance Ⅳ', ['finance iv', 'iv']],
    ['日本 鍵', ['日本 鍵', '鍵']],
    ['same same', ['same same', 'same']],
    ['--', []],
  ])('%j', (text, terms) => {
    expect(termsOf(text)).toEqual(terms);
  });

  test('no more than sixteen of them, and no term longer than an index takes', () => {
    expect(termsOf('a '.repeat(1000)).length).toBeLessThanOrEqual(16);
    expect(Math.max(...termsOf('x'.repeat(5000)).map((term) => term.length))).toBe(120);
  });
});

test('an identifier is found by its beginning and by its last part', () => {
  expect(termsOfId('01981d2c-7c1f-7b35-9a04-52a1be40c0de')).toEqual([
    '01981d2c 7c1f 7b35 9a04 52a1be40c0de',
    '52a1be40c0de',
  ]);
});

describe('what is asked for', () => {
  test.each<[string, string, boolean]>([
    ['Payroll', 'prod-payroll.2026', true],
    ['PAYROLL 2026', 'prod-payroll.2026', true],
    ['prod_pay', 'prod-payroll.2026', true],
    ['2026 prod', 'prod-payroll.2026', true],
    ['roll', 'prod-payroll.2026', false],
    ['zurich', 'Zürich', true],
    ['ZÜRICH', 'zurich', true],
    ['ordersprod', 'OrdersProd', true],
    ['prod', 'OrdersProd', true],
    ['01981D2C-7c1f', '01981d2c-7c1f-7b35-9a04-52a1be40c0de', true],
  ])('%j and %j: %s', (asked, text, found) => {
    expect(isFoundBy(termsOf(text), foldQuery(asked))).toBe(found);
  });

  test('without a letter or a digit is nothing', () => {
    expect(foldQuery(' ../%*"\'')).toBe('');
    expect(isFoundBy(['a'], '')).toBe(false);
  });

  test('has all terms that begin with it in its range, and no others', () => {
    const { from, below } = rangeOf('pay');
    const inside = (term: string): boolean =>
      Buffer.compare(Buffer.from(term), Buffer.from(from)) >= 0 &&
      Buffer.compare(Buffer.from(term), Buffer.from(below)) < 0;
    expect(['pay', 'payroll', 'pay 1', 'pay\u{10fffd}', 'pazz', 'pa', 'payá'].filter(inside)).toEqual([
      'pay',
      'payroll',
      'pay 1',
      'pay\u{10fffd}',
      'payá',
    ]);
  });
});
