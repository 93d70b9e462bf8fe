// Another process holds the database's write lock (a backup, somebody's shell): commits wait for it, and nothing else does.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { systemClock } from '../../../server/base/clock.ts';
import { openStore } from '../../../server/store/store.ts';

test('a commit waits for a lock of another process without stopping the event loop', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-locked-'));
  const path = join(folder, 'dke.db');
  const store = await openStore({ path, clock: systemClock, authenticateRow: () => '', onFatal: () => undefined });
  const other = new DatabaseSync(path);
  try {
    other.exec('begin immediate');
    let written = false;
    const writing = store
      .write((tx) => tx.settings.set('probe', 'later'))
      .then(() => {
        written = true;
      });
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(written).toBe(false);
    expect(await store.read.settings.get('probe')).toBeUndefined();
    other.exec('commit');
    await writing;
    expect(await store.read.settings.get('probe')).toBe('later');
  } finally {
    other.close();
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
