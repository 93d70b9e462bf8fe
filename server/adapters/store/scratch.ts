// A copy of what a restore reads and writes, in which it can be tried out while others change the
// real tables: an embedded database of its own, of whichever kind the store is, which is gone when
// the work is done. Rows go as they are, with their codes, and key records as they are sealed.
//
// Who can choose what is in it: the writer of the database, as in the real tables, and the file
// that is restored. What proves it: the same codes, compared by the same repositories. Whose: of
// the one work; nothing else has its connection. How large: as the tables of tenants; a part beyond
// the cache is in a temporary file without a name. Older, or cut off: it is the state of one
// moment, and nothing of it outlives the process. So what is found in it says what would happen,
// and concludes nothing. What others see: nothing.

import { Kysely } from 'kysely';
import type { RowAuthenticator } from '../../base/row-jobs.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { Clock } from '../../base/time.ts';
import type { Repositories } from '../../ports/store.ts';
import { copyTables } from './copy.ts';
import { isConstraint, sqliteColumns, temporaryDatabase } from './engine/sqlite/dialect.ts';
import { createRepositories } from './repositories/repositories.ts';
import { createRowSet } from './rows/row-set.ts';
import { createTables } from './schema/create-tables.ts';
import { declared, type Schema } from './schema/schema.ts';

const asServiceError = (error: unknown): unknown => {
  if (error instanceof ServiceError || (error as { readonly errcode?: unknown }).errcode === undefined) return error;
  if (isConstraint(error))
    return new ServiceError('conflict', 'the change conflicts with another one', { cause: error });
  return new ServiceError('unavailable', 'the trial needs room for a temporary file: nothing was changed', {
    hint: 'free space in the folder of temporary files (TMPDIR)',
    cause: error,
  });
};

/** `oneState`: reads one state of the store. */
export const tryOut = async <T>(
  dialect: 'sqlite' | 'postgres',
  oneState: (work: (db: Kysely<Schema>) => Promise<void>) => Promise<void>,
  { authenticateRow, clock }: { readonly authenticateRow: RowAuthenticator; readonly clock: Clock },
  work: (tx: Repositories) => Promise<T>,
): Promise<T> => {
  const db = new Kysely<Schema>({ dialect: temporaryDatabase() });
  try {
    await createTables(db, sqliteColumns);
    await oneState((from) =>
      copyTables(
        { db: from, dialect, place: 'the database' },
        { db, dialect: 'sqlite', place: 'the copy for a trial' },
        (name) => declared.get(name)?.copied === 'for trials, too',
      ),
    );
    // The rows of other tables are not there, so their sum says nothing.
    const set = createRowSet(authenticateRow, false, () => Promise.resolve([]));
    set.transaction.begin();
    return await work(createRepositories(db, set, 'transaction', clock));
  } catch (error) {
    throw asServiceError(error);
  } finally {
    await db.destroy();
  }
};
