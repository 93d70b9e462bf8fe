// What of a restored row is shown to the person who restores, because it decides who may use keys:
// for the declarations of the tables that have such rows.

import type { SnapshotRow } from '../../../../ports/snapshot-archive.ts';
import { type Activated, differIn, type Reactivates } from '../../../../ports/tenant-rows.ts';

/** `again`: what is said of a row that was there before. */
export const noted = (
  kind: Activated['kind'],
  row: SnapshotRow,
  before: SnapshotRow | undefined,
  again: Activated['change'] = 'reactivated',
) => ({ kind, change: before === undefined ? 'created' : again, name: String(row.name) }) as const;

export const becomes = (state: string, row: SnapshotRow, before: SnapshotRow | undefined): boolean =>
  row.state === state && before?.state !== state;

/** A thing that becomes enabled; or one that was there, and differs in one of these columns. */
export const whenEnabled =
  (kind: Activated['kind'], columns: readonly string[]): Reactivates =>
  (row, before) => {
    if (becomes('enabled', row, before)) return [noted(kind, row, before)];
    return before !== undefined && differIn(columns, row, before) ? [noted(kind, row, before, 'changed')] : [];
  };
