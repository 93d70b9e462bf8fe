// Names that no two rows of a tenant share, in a restore. The rule is checked on what is there
// after it: rows of the snapshot can have exchanged their names since, and come in any order. A row
// whose name another one gets has a private name until its own comes. A row whose own does not come
// is not in the snapshot and got the name since: the file does not take the name away again.

import { ServiceError } from '../../base/service-error.ts';
import type { SnapshotRow } from '../../ports/snapshot-archive.ts';
import type { CarriedTable, TenantRow } from '../../ports/tenant-rows.ts';
import type { RunningRestore } from './running-restore.ts';

export const reusedNames = (names: readonly string[]): ServiceError =>
  new ServiceError(
    'conflict',
    `names were reused since the snapshot was created: ${names.join(', ')}; nothing was changed`,
    { hint: 'rename or remove the current resources with these names, or restore to a new tenant' },
  );

const called = ({ name }: CarriedTable, column: string, value: string): string => {
  const kind = name.replace(/^tde_/, '').replace(/s$/, '');
  return column === 'name' ? `${kind} ${value}` : `${kind} with the ${column.replaceAll('_', ' ')} ${value}`;
};

/** No name that is given has such a character. */
const privateName = (id: string): string => `\u0001${id}`;

/** Each row of the snapshot as it will be, also one that is so already: no two have one name. */
export const claimNames = ({ claimed }: RunningRestore, declared: CarriedTable, row: SnapshotRow): void => {
  const id = String(row.id);
  for (const column of declared.unshared) {
    const value = String(row[column]);
    const place = JSON.stringify([declared.name, column, value]);
    if ((claimed.get(place) ?? id) !== id)
      throw new ServiceError(
        'conflict',
        `two rows of the snapshot have one name (${called(declared, column, value)}): nothing was changed`,
        { hint: 'restore another snapshot' },
      );
    claimed.set(place, id);
  }
};

/** Before these rows are put. */
export const freeNames = async (
  { tx: { tenantRows }, target: { tenantId }, displaced }: RunningRestore,
  declared: CarriedTable,
  put: readonly TenantRow[],
): Promise<void> => {
  for (const column of declared.unshared) {
    const wanted = new Map(put.map(({ row }) => [String(row[column]), String(row.id)]));
    const holders = await tenantRows.findBy(declared.name, tenantId, column, [...wanted.keys()]);
    const others = holders.filter(({ row }) => wanted.get(String(row[column])) !== row.id);
    for (const { row, integrity } of others) {
      const id = String(row.id);
      const name = called(declared, column, String(row[column]));
      // What never changes is not given away for a while either.
      if (integrity === 'ok' && declared.fixed.includes(column))
        throw new ServiceError('conflict', `${name} is here, and never changes: nothing was changed`, {
          hint: 'restore to a new tenant',
        });
      displaced.set(id, [...(displaced.get(id) ?? []), name]);
    }
    await tenantRows.put(
      tenantId,
      declared.name,
      others.map(({ row, integrity }) => ({ row: { ...row, [column]: privateName(String(row.id)) }, integrity })),
    );
  }
  for (const { row } of put) displaced.delete(String(row.id));
};
