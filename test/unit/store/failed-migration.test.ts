// An upgrade whose migration fails says which and why, and leaves the database as it was: the version before still opens it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { systemClock } from '../../../server/base/clock.ts';
import { openStore } from '../../../server/store/store.ts';

test('a migration that fails halfway is undone, and told with its cause', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-migration-'));
  const path = join(folder, 'dke.db');
  const open = () => openStore({ path, clock: systemClock, authenticateRow: () => '', onFatal: () => undefined });
  try {
    await (await open()).close();
    // As before 2025-11-change-history, but for a column that stands in its way.
    const database = new DatabaseSync(path);
    database.exec("delete from kysely_migration where name >= '2025-11'");
    database.exec('alter table node_head drop column history');
    const columns = (): unknown[] =>
      database
        .prepare("select name from pragma_table_info('node_head')")
        .all()
        .map(({ name }) => name);
    const before = columns();
    await expect(open()).rejects.toThrow(/2025-11-change-history.*duplicate column name: history/);
    await expect(open()).rejects.toThrow(/docs\/upgrade\.md/);
    expect(columns()).toEqual(before);
    database.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
