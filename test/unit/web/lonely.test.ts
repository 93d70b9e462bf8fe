// Which moments of a chart's line are drawn as points: server/web/src/components/endpoints/lonely.ts.
import { expect, test } from 'vitest';
import { lonely } from '../../../server/web/src/components/endpoints/lonely.ts';

test.each<[string, (number | null)[], number[]]>([
  ['of the last minute alone', [null, null, 0.3], [2]],
  ['of the first minute alone', [0, null], [0]],
  ['of one minute in all', [7], [0]],
  ['between gaps', [1, 2, null, 3, null, 4, 5, null, 6], [3, 8]],
  ['of a line', [1, 2, 3], []],
  ['of nothing', [null, null], []],
  ['of no minutes', [], []],
])('the lonely ones %s', (_name, values, expected) => {
  expect(lonely(values)).toEqual(expected);
});
