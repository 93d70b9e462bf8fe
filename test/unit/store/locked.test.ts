// Another process holds the database's write lock (a backup, a shell): commits wait for it, and
// nothing else does.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { openStore } from '../../../server/adapters/store/store.ts';
import { systemClock } from '../../../server/base/time.ts';

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

test('when the wait for a lock ends in vain, all changes that wait are refused at once, with the reason', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-locked-'));
  const path = join(folder, 'dke.db');
  const store = await openStore({ path, clock: systemClock, authenticateRow: () => '', onFatal: () => undefined });
  const other = new DatabaseSync(path);
  try {
    other.exec('begin immediate');
    // More than fit into one commit.
    const refusals: string[] = [];
    const changes = Array.from({ length: 200 }, (_, index) =>
      store
        .write((tx) => tx.settings.set(`probe ${index}`, 'later'))
        .catch((error: unknown) => {
          refusals.push(String(error));
        }),
    );
    await Promise.race(changes);
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(refusals).toHaveLength(changes.length);
    expect([...new Set(refusals)]).toEqual([expect.stringContaining('another process has locked the database')]);
    other.exec('commit');
    await store.write((tx) => tx.settings.set('probe', 'now'));
    expect(await store.read.settings.get('probe')).toBe('now');
    expect(await store.read.settings.get('probe 0')).toBeUndefined();
  } finally {
    other.close();
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
