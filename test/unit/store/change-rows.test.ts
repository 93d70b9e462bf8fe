// The changes that nodes tell one another, as a node reads them: each names the one before it.
// Where a writer of the database has taken one out, or has put one between them, everything is read
// again.
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { createChangeRows } from '../../../server/adapters/store/engine/postgres/change-rows.ts';
import { codeOfChange } from '../../../server/adapters/store/rows/change-codes.ts';

/** Stands for the row key. */
const authenticate = (text: string): string => createHash('sha256').update(text).digest('hex');
/** A row as a node writes it. */
const change = (epoch: number, more: object = {}) => {
  const row = {
    ...{ head_epoch: 7, head_history: 'h7', rows_version: 3, leaves: [] },
    ...{ epoch, history: `h${epoch}`, previous: epoch - 1, previous_history: `h${epoch - 1}`, changes: '{}' },
    ...more,
  };
  const previous = { epoch: row.previous, history: row.previous_history };
  return { ...row, code: codeOfChange(authenticate, row, previous, row.changes) };
};
const since = (rows: readonly object[]) =>
  createChangeRows(async () => rows as never, authenticate).changesSince({ epoch: 4, history: 'h4' }, 0);

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

test.each([
  ['what was changed', { changes: '{"keys":[]}' }],
  ['its id', { history: 'other', head_history: 'other' }],
  ['its code', { code: '0'.repeat(64) }],
  ['that it has a code', { code: '' }],
])('everything is read again where another program has changed %s', async (_, written) => {
  expect(await since([change(5), change(6), { ...change(7), ...written }])).toBe('changed');
});

test('everything is read again where an authentic change has the place of another one', async () => {
  const { changes, code } = change(6, { changes: '{"keys":["k"]}' });
  expect(await since([change(5), { ...change(6), changes, code: change(5).code }, change(7)])).toBe('changed');
  expect(await since([change(5), change(6), { ...change(7), changes, code }])).toBe('changed');
});

test('everything is read again where one was taken out, and the next one says that it follows the one before', async () => {
  const closed = { previous: 5, previous_history: 'h5' };
  expect(await since([change(5), { ...change(7), ...closed }])).toBe('changed');
  expect(await since([{ ...change(6), previous: 4, previous_history: 'h4' }, change(7)])).toBe('changed');
});

test('where the newest is missing, the node knows that there is more', async () => {
  expect(await since([change(5), change(6)])).toMatchObject({ last: { epoch: 6 }, more: true });
});
