// The board of scheduled jobs: what it tells of runs that succeed, fail, fail again and recover.
import { expect, test } from 'vitest';
import { createJobBoard } from '../../../server/operations/shared/job-board.ts';

const start = Date.parse('2026-03-01T09:00:00Z');

test('a job is listed before it ran, with its last run, and since when it fails', async () => {
  let now = start;
  const board = createJobBoard({ now: () => now, monotonic: () => now });
  const once = board.add('old records', { duty: 'pruning', everyMs: 60_000 });
  const shown = () => board.jobs().find(({ name }) => name === 'old records');
  expect(shown()).toMatchObject({ startedAt: null, succeededAt: null, failure: null, nextAt: null, running: false });
  const value = await once(async () => {
    expect(shown()).toMatchObject({ running: true, startedAt: start });
    now += 250;
    return 'done';
  });
  expect(value).toBe('done');
  expect(shown()).toMatchObject({ running: false, durationMs: 250, succeededAt: start + 250, nextAt: start + 60_000 });
  const fail = () => once(() => Promise.reject(new Error(`disk ${'x'.repeat(400)}`)));
  now = start + 60_000;
  await expect(fail()).rejects.toThrow(/^disk/);
  now = start + 120_000;
  await expect(fail()).rejects.toThrow(/^disk/);
  // Since the first of the failed runs, and no longer than people read.
  expect(shown()?.failure).toMatchObject({ since: start + 60_000, message: expect.stringMatching(/^disk x{295}$/) });
  expect(shown()?.succeededAt).toBe(start + 250);
  await once(() => Promise.resolve());
  expect(shown()).toMatchObject({ failure: null, succeededAt: start + 120_000 });
});

test('the next run of a job with a timetable is the one of the timetable', () => {
  const board = createJobBoard({ now: () => start, monotonic: () => start });
  board.add('scheduled snapshots', { duty: 'schedules', everyMs: null, next: () => start + 5 });
  expect(board.jobs()).toMatchObject([{ everyMs: null, nextAt: start + 5 }]);
});
