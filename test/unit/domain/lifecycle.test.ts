// The key state table, cell by cell where the specification says something, and its invariants
// everywhere.
import { describe, expect, test } from 'vitest';
import { keyEvents, keyStates, nextState } from '../../../server/domain/lifecycle.ts';

describe('the life of a key', () => {
  test.each(keyEvents)('destroyed is terminal: %s is refused', (event) => {
    expect(nextState('destroyed', event)).toBeNull();
  });

  test('every state but destroyed can be destroyed', () => {
    for (const state of keyStates.filter((each) => each !== 'destroyed'))
      expect(nextState(state, 'destroy')).toBe('destroyed');
  });

  test('nothing leads back from soft deletion but destruction', () => {
    for (const event of keyEvents)
      expect([null, 'soft-deleted', 'destroyed']).toContain(nextState('soft-deleted', event));
  });

  test('only a soft-deleted key is re-imported', () => {
    expect(keyStates.filter((state) => nextState(state, 're-import') !== null)).toEqual(['soft-deleted']);
  });

  test('disable and enable undo each other', () => {
    expect(nextState('active', 'disable')).toBe('disabled');
    expect(nextState('disabled', 'enable')).toBe('active');
  });
});
