// The store alone, without a service, in the database that the run's services have (test-store.ts).
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openPostgresStore, openStore } from '../../server/adapters/store/store.ts';
import type { Clock } from '../../server/base/time.ts';
import type { Repositories, Store } from '../../server/ports/store.ts';
import { folderOfTest } from './folders.ts';
import { freshDatabase, onPostgresql } from './test-store.ts';

/** Opens a fresh store, which is removed with the folder. */
export const openTestStore = async (
  folder: string,
  clock: Clock,
  onKeks?: (tx: Repositories) => Promise<void>,
): Promise<Store> => {
  const surroundings = {
    clock,
    authenticateRow: () => '',
    onFatal: (error: Error) => {
      throw error;
    },
    onKeks,
  };
  if (!onPostgresql) return openStore({ ...surroundings, path: join(folder, 'dke.db') });
  const place = await freshDatabase(folder);
  return openPostgresStore({ ...surroundings, postgres: { ...place, password: undefined, ca: undefined, readers: 3 } });
};

/**
 * A fresh store in a folder of its own, for the test whose `beforeEach` runs: closed and removed
 * behind it.
 */
export const storeOfTest = async (clock: Clock): Promise<Store> => {
  const store = await openTestStore(folderOfTest(), clock);
  onTestFinished(() => store.close());
  return store;
};
