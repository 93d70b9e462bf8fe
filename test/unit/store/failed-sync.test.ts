// A sync of the database's log that fails: Linux reports it once, and the next sync of the same
// file succeeds although the data of the first one are lost. Nothing after it may be acknowledged.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import { folderOfTest } from '../../support/folders.ts';
import { openStrikes, whyNoStrikes } from '../../support/strikes.ts';

const reason = whyNoStrikes();
if (reason !== undefined) console.log(`skipped: ${reason}`);

test.skipIf(reason !== undefined)(
  'a store whose log once failed to sync acknowledges nothing after that, and says so once',
  async () => {
    const folder = folderOfTest();
    const strikes = openStrikes(folder);
    const child = spawn(
      process.execPath,
      [join(import.meta.dirname, '../../support/failed-sync-child.ts'), join(folder, 'dke.db')],
      { stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, ...strikes.environment } },
    );
    let result: unknown;
    for await (const line of createInterface({ input: child.stdout })) {
      if (line !== 'ready') {
        result = JSON.parse(line);
        break;
      }
      strikes.arm({ mode: 'fail', kinds: ['sync'], number: 1, error: 'EIO' });
      child.stdin.write('go\n');
    }
    expect(strikes.disarm()).toMatchObject({ struck: 1 });
    expect(result).toEqual({ first: 'the store has failed', second: 'the store has failed', found: null, fatal: 1 });
  },
);
