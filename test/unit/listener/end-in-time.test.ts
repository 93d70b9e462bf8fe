// When a server that was asked to stop has ended at the latest: what it waits for on purpose (the
// notice, the drain) is part of that time from the beginning, also where an earlier time was set
// for its start.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { parseConfig } from '../../../server/app/config/config.ts';
import { longestStopMs } from '../../../server/app/end-in-time.ts';
import { startServer } from '../../../server/app/process.ts';

const folder = mkdtempSync(join(tmpdir(), 'dke-end-'));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('a stop sets its time when it begins, with the notice, and again when the notice is over', async () => {
  const left: number[] = [];
  const server = await startServer({
    config: parseConfig(
      '[server]\nport = 0\ndrain_notice_seconds = 600\ndrain_seconds = 7\n[memory]\nallow_unlocked = true\n[log]\nlevel = "error"\n',
      null,
      folder,
    ),
    say: () => undefined,
    endInTime: (ms) => void left.push(ms),
  });
  const stopped = server.stop();
  expect(left).toEqual([607_000]);
  // A second signal does not wait for the notice.
  void server.stop();
  await stopped;
  expect(left).toEqual([607_000, 7_000]);
  expect(await server.ended).toBeUndefined();
});

test('a server with the default settings is ended within five seconds, with one to spare', () => {
  const { drainSeconds, drainNoticeSeconds } = parseConfig('', null, folder).server;
  expect(longestStopMs((drainNoticeSeconds + drainSeconds) * 1000)).toBeLessThanOrEqual(4_000);
});
