// The evaluation of alert rules that a game day uses: every shipped rule is understood, and
// operators do what Prometheus defines.
import { expect, test } from 'vitest';
import { compileRule, readAlertRules, type Scrape } from '../support/alert-rules.ts';

type Series = readonly [name: string, labels: Readonly<Record<string, string>>, values: readonly number[]];
/** Scrapes thirty seconds apart; a value that is missing is a series that was not scraped. */
const scrapesOf = (...series: readonly Series[]): readonly Scrape[] =>
  Array.from({ length: Math.max(...series.map(([, , values]) => values.length)) }, (_, index) => ({
    at: index * 30,
    samples: series.flatMap(([name, labels, values]) =>
      values[index] === undefined ? [] : [{ name, labels, value: values[index] }],
    ),
  }));
const isTrue = (expression: string, ...series: readonly Series[]): boolean =>
  compileRule({ name: 'Example', expression })(scrapesOf(...series));

test('every shipped rule is understood, and none is true of nothing', () => {
  const rules = readAlertRules();
  expect(rules.length).toBeGreaterThan(20);
  expect(rules.filter((rule) => compileRule(rule)([{ at: 0, samples: [] }])).map(({ name }) => name)).toEqual([]);
});

test.each<[expression: string, expected: boolean, series: readonly Series[]]>([
  ['a == 0', true, [['a', {}, [1, 0]]]],
  ['a == 0', false, [['a', {}, [0, 1]]]],
  ['a{x=~"b|c"} > 1 + 2 * 3', true, [['a', { x: 'c' }, [8]]]],
  ['a{x!="c"} > 1 + 2 * 3', false, [['a', { x: 'c' }, [8]]]],
  [
    'a < b',
    true,
    [
      ['a', { i: '1' }, [1]],
      ['b', { i: '1' }, [2]],
    ],
  ],
  [
    'a < b',
    false,
    [
      ['a', { i: '1' }, [1]],
      ['b', { i: '2' }, [2]],
    ],
  ],
  [
    '1 - a{le="5"} / ignoring(le) b > 0.4',
    true,
    [
      ['a', { le: '5' }, [1]],
      ['b', {}, [2]],
    ],
  ],
  ['increase(a[1m]) > 2', false, [['a', {}, [0, 9, 10, 11]]]],
  ['increase(a[2m]) > 9', true, [['a', {}, [0, 9, 10, 11]]]],
  // A counter of a process that started again.
  ['increase(a[5m]) == 4', true, [['a', {}, [7, 8, 1, 3]]]],
  ['rate(a[5m]) > 0', false, [['a', {}, [7]]]],
  ['changes(a[1h]) > 1', true, [['a', {}, [1, 2, 2, 3]]]],
  [
    'sum by (e) (a) > 4',
    true,
    [
      ['a', { e: '1', o: 'x' }, [2]],
      ['a', { e: '1', o: 'y' }, [3]],
    ],
  ],
  [
    'sum by (e) (a) > 4',
    false,
    [
      ['a', { e: '1' }, [2]],
      ['a', { e: '2' }, [3]],
    ],
  ],
  [
    'a unless on (i) b',
    false,
    [
      ['a', { i: '1', x: '1' }, [1]],
      ['b', { i: '1' }, [1]],
    ],
  ],
  [
    'a and on (i) (count by (i) (b) > 1)',
    false,
    [
      ['a', { i: '1' }, [1]],
      ['b', { i: '1', x: '1' }, [1]],
    ],
  ],
  [
    '(a > 1) or (b > 1)',
    true,
    [
      ['a', {}, [0]],
      ['b', {}, [2]],
    ],
  ],
  ['time() - a > 40', true, [['a', {}, [0, 0, 0]]]],
])('%s is %s', (expression, expected, series) => {
  expect(isTrue(expression, ...series)).toBe(expected);
});

test('what is not understood is an error with the name of the rule', () => {
  expect(() => isTrue('absent(a)')).toThrow(/Example/);
});
