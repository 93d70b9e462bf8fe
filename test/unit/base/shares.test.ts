// Places for heavy work: how many one caller, the callers of a group, and all together have.
import { expect, test } from 'vitest';
import { createShares } from '../../../server/base/shares.ts';

const limits = { all: 5, group: 3, caller: 2 };

test('a caller, a group and all together have their own limits', () => {
  const { take } = createShares(limits);
  const held = [take('a', 'one'), take('a', 'one')];
  expect(take('a', 'one')).toBeUndefined();
  held.push(take('b', 'one'));
  // Another caller of the full group finds no place; one of another group does.
  expect(take('c', 'one')).toBeUndefined();
  held.push(take('d', 'two'), take('e', 'two'));
  expect(take('f', 'three')).toBeUndefined();
  expect(held.every((release) => release !== undefined)).toBe(true);
});

test('a place that is released twice is one place', () => {
  const { take } = createShares({ all: 2, group: 2, caller: 2 });
  const first = take('a', 'one');
  take('b', 'one');
  expect(take('c', 'one')).toBeUndefined();
  first?.();
  first?.();
  expect(take('c', 'one')).toBeDefined();
  expect(take('d', 'one')).toBeUndefined();
});
