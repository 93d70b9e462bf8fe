// The changes that nodes tell one another, as a node reads them: each names the one before it.
// Where a writer of the database has taken one out, or has put one between them, everything is read
// again.
import { expect, test } from 'vitest';
import { createChangeRows } from '../../../server/store/postgres/change-rows.ts';

const change = (epoch: number, more: object = {}) => ({
  ...{ head_epoch: 7, head_history: 'h7', rows_version: 3, leaves: [] },
  ...{ epoch, history: `h${epoch}`, previous: epoch - 1, previous_history: `h${epoch - 1}`, changes: '{}' },
  ...more,
});
const since = (rows: readonly object[]) =>
  createChangeRows(async () => rows as never).changesSince({ epoch: 4, history: 'h4' }, 0);

test('changes without a gap are applied', async () => {
  expect(await since([change(5), change(6), change(7)])).toMatchObject({
    last: { epoch: 7, history: 'h7' },
    changes: [{}, {}, {}],
    more: false,
  });
});

test.each([
  ['the first is missing', [change(6), change(7)]],
  ['one between them is missing', [change(5), change(7)]],
  ['one has another id', [change(5), change(6, { history: 'other' }), change(7)]],
  ['one follows another one', [change(5), change(6, { previous_history: 'other' }), change(7)]],
])('everything is read again: %s', async (_, rows) => {
  expect(await since(rows)).toBe('pruned');
});

test('where the newest is missing, the node knows that there is more', async () => {
  expect(await since([change(5), change(6)])).toMatchObject({ last: { epoch: 6 }, more: true });
});
