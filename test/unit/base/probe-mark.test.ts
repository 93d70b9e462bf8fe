// The mark of the service's own probes: it is valid for one path and a minute, and only the service
// can create it.
import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { createProbeMarks } from '../../../server/base/probe-mark.ts';

let now = 1_000_000;
const marksOf = (secret: string) =>
  createProbeMarks(
    (text) => createHmac('sha256', secret).update(text).digest('hex'),
    () => now,
  );
const own = marksOf('a');
const path = '/xks/p/kms/xks/v1/health';

test('a mark is valid for its path, on every node, for a minute', () => {
  const mark = own.make(path);
  expect(own.isValid(path, mark)).toBe(true);
  expect(marksOf('a').isValid(path, mark)).toBe(true);
  expect(own.isValid(`${path}x`, mark)).toBe(false);
  now += 60_001;
  expect(own.isValid(path, mark)).toBe(false);
});

test.each(['', '1', `${1_000_000}.${'0'.repeat(64)}`, `${1_000_000}.${'0'.repeat(63)}`, `x.${'0'.repeat(64)}`])(
  'what another party makes is not: %j',
  (mark) => {
    now = 1_000_000;
    expect(own.isValid(path, mark)).toBe(false);
    expect(own.isValid(path, marksOf('b').make(path))).toBe(false);
  },
);
