// Made once for a test run: an embedded database with the tables and nothing in it. Services of
// tests begin with a copy, because all migrations on an empty database take longer than the rest of
// a start. Servers that tests start as processes of their own (server-process.ts) make theirs
// themselves, as they are shipped.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from '../../server/adapters/store/store.ts';
import { systemClock } from '../../server/base/time.ts';
import { sqliteTemplate } from './test-store.ts';

export default async (): Promise<(() => void) | undefined> => {
  if (process.env[sqliteTemplate] !== undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'dke-template-'));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  // A run that is broken off ends without its tear-down.
  process.once('exit', remove);
  const path = join(folder, 'dke.db');
  const store = await openStore({
    path,
    clock: systemClock,
    authenticateRow: () => '',
    onFatal: (error) => {
      throw error;
    },
  });
  await store.close();
  process.env[sqliteTemplate] = path;
  return remove;
};
