// Which restore was the newest: only a restore makes copies of keys. It is a decision, whose row
// has a code, because records of the log are only found by SQL, which the writer of the database
// steers.

import { newId } from '../../base/ids.ts';
import type { Repositories } from '../../ports/store.ts';

const setting = 'newest-restore';

export const newestRestore = (from: Pick<Repositories, 'decisions'>): Promise<string | undefined> =>
  from.decisions.get(setting);

/** In the unit of work of the restore. */
export const noteRestore = (tx: Pick<Repositories, 'decisions'>, now: number): Promise<void> =>
  tx.decisions.set(setting, newId(now));
