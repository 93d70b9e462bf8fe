// The authentication code of what nodes tell one another (node_changes). Who can choose such a row:
// the writer of the database. The code, under a key of its own, is over what was changed, the
// number and id of the change, and those of the change before it: a row that has it was written by
// a node, for this place. Whose it is: of the one service that has the key. An older row, or one of
// a history that a failover has ended, has another number or id. One without a right code says
// nothing: the node reads everything again, which needs no row. What others see of it: nothing.

import { canonicalJson } from '../../../base/bytes.ts';
import type { RowAuthenticator } from '../../../base/row-jobs.ts';
import type { ChangeMark } from '../../../domain/change-protocol.ts';

/** `changes`: the text as it is stored. */
export const codeOfChange = (
  authenticate: RowAuthenticator,
  { epoch, history }: ChangeMark,
  previous: ChangeMark,
  changes: string,
): string =>
  authenticate(
    canonicalJson(['node_changes', epoch, history, previous.epoch, previous.history, changes]),
    'dke node changes 1',
  );
