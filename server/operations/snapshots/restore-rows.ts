// Brings what a snapshot holds back into a tenant, within one unit of work. Nothing that was made
// since is taken away. What was destroyed stays destroyed, whatever the snapshot says: a key that
// is a tombstone here, and one that was erased from the file.

import { isId } from '../../base/ids.ts';
import { otherWork } from '../../base/next-turn.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { SnapshotItem, SnapshotRow } from '../../ports/snapshot-archive.ts';
import type { Repositories } from '../../ports/store.ts';
import type { Activated, CarriedTable, TenantRows, TenantTable } from '../../ports/tenant-rows.ts';
import { destructionTime } from '../keys/destruction-time.ts';
import { takerOfLabel } from '../shared/labels.ts';
import { nameFromLabel } from '../shared/names.ts';
import { putMaterials, wipeLeftovers } from './restore-materials.ts';
import { reusedNames } from './restore-names.ts';
import { findGone, putTable } from './restore-table.ts';
import {
  beginRestore,
  counterOf,
  emptyBatch,
  idHere,
  type RestorePorts,
  type RestoreTarget,
  type RunningRestore,
  type StaysDestroyed,
} from './running-restore.ts';

export interface RestoreCounts {
  readonly created: number;
  readonly changed: number;
  readonly unchanged: number;
  /** In the tenant and not in the snapshot: they stay. */
  readonly kept: number;
  /** In the snapshot and not brought: credentials that are another tenant's. */
  readonly omitted: number;
}

export interface RestoreOutcome {
  readonly tenantId: string;
  readonly newTenant: boolean;
  /** The ids of the snapshot are another tenant's: everything got fresh ones. */
  readonly newIds: boolean;
  readonly counts: { readonly [T in TenantTable]?: RestoreCounts };
  readonly stayDestroyed: readonly StaysDestroyed[];
  /** Values that do not open: their objects are copied without them. Labels are in Base64. */
  readonly withoutValue: readonly { readonly id: string; readonly label: string }[];
  /** What it creates, reactivates or changes of that which decides who may use keys. */
  readonly activated: readonly Activated[];
  /** Handles that were taken: old and new. */
  readonly newHandles: number;
}

const mostNamed = 10;

/** Lines that are worked on together: little enough that others are served between. */
const batchLines = 400;

/** The table of a row that this version can bring back. */
const tableOf = (tenantRows: TenantRows, name: string, row: SnapshotRow): CarriedTable => {
  const known = tenantRows.tables().find((each) => each === name);
  const table = known && tenantRows.of(known);
  if (table === undefined || !Object.keys(row).every((column) => table.columns.includes(column)))
    throw new ServiceError('unsupported', `the snapshot has rows that this version does not know (${name})`, {
      hint: 'restore it with the version that created it, or a newer one',
    });
  if (!isId(String(row[table.identity[0]])))
    throw new ServiceError('key-tampered', 'the snapshot has a row without an id');
  return table;
};

const restoreItems = async (restore: RunningRestore, items: AsyncIterable<SnapshotItem>): Promise<void> => {
  const { tenantRows } = restore.tx;
  let batch = emptyBatch();
  let vaultsSeen = false;

  const release = (): void => {
    const { materials } = batch;
    batch = emptyBatch();
    for (const { key } of materials) if (key !== null) restore.core.release(key);
  };
  const flush = async (): Promise<void> => {
    if (batch.lines === 0) return;
    try {
      await findGone(restore, batch);
      for (const table of tenantRows.tables()) await putTable(restore, batch, table);
      await putMaterials(restore, batch);
      await wipeLeftovers(restore, batch);
    } finally {
      release();
    }
    await otherWork();
  };
  // Vaults come first and are few. One that is another tenant's here: what follows is a copy next
  // to the original.
  const lookAtVaults = async (): Promise<void> => {
    vaultsSeen = true;
    const ids = (batch.rows.get('vaults') ?? []).map((each) => String(each.row.id));
    const found = await tenantRows.find('vaults', ids);
    restore.newIds = found.some((each) => each.row.tenant_id !== restore.target.tenantId);
    for (const id of ids) restore.vaultIds.add(idHere(restore, id));
  };

  try {
    for await (const item of items) {
      batch.lines += 1;
      if (item.kind === 'material') {
        batch.materials.push(item);
        continue;
      }
      const { row, tampered } = item;
      const { name: table, comesWith } = tableOf(tenantRows, item.table, row);
      if (!vaultsSeen && table !== 'vaults') await lookAtVaults();
      // What hangs on a row follows it: a batch ends before the next one.
      if (batch.lines > batchLines && vaultsSeen && comesWith === undefined) {
        await flush();
        batch.lines = 1;
      }
      const own = batch.rows.get(table) ?? [];
      own.push({ row, tampered });
      batch.rows.set(table, own);
    }
    if (!vaultsSeen) await lookAtVaults();
    await flush();
  } finally {
    release();
  }
};

/**
 * Applications that had been moved are in their group again, and what they made in the meantime
 * goes with them.
 */
const moveStrays = async ({ tx: { tenantRows }, target }: RunningRestore): Promise<void> => {
  await tenantRows.place(await tenantRows.strays(target.tenantId));
};

/**
 * What was made since may have a name that was given to something of the snapshot. The rules are
 * those of live operations: programs keep two keys under one label, a master key shares its label
 * with none. Vaults that shared a name when the snapshot was made still may. A name that a row gave
 * up to one of the snapshot is its own again, or it was reused.
 */
const refuseNamesakes = async ({ tx, target, vaultIds, displaced }: RunningRestore): Promise<void> => {
  const { vaults, handles } = await tx.tenantRows.namesakes(target.tenantId);
  const named: string[] = [...displaced.values()].flat();
  for (const id of vaults) {
    const vault = vaultIds.has(id) ? undefined : await tx.vaults.stored(target.tenantId, id);
    if (vault !== undefined) named.push(`vault ${vault.name}`);
  }
  for (const handle of handles) {
    if (named.length >= mostNamed) break;
    const object = await tx.objects.get(handle);
    if (object !== undefined && (await takerOfLabel(tx, object, handle)) !== undefined)
      named.push(`label ${nameFromLabel(object.label)}`);
  }
  if (named.length > 0) throw reusedNames([...new Set(named)].slice(0, mostNamed));
};

const outcomeOf = async (restore: RunningRestore): Promise<RestoreOutcome> => {
  const { tx, target, newIds, stayDestroyed, withoutValue, labels, activated, newHandles } = restore;
  const counts: { [T in TenantTable]?: RestoreCounts } = {};
  for (const table of tx.tenantRows.tables()) {
    const { created, changed, unchanged, omitted } = counterOf(restore, table);
    const kept = Math.max(0, (await tx.tenantRows.count(table, target.tenantId)) - created - changed - unchanged);
    counts[table] = { created, changed, unchanged, kept, omitted };
  }
  return {
    tenantId: target.tenantId,
    newTenant: target.newTenant,
    newIds,
    counts,
    stayDestroyed: stayDestroyed.map((each) => ({ ...each, label: labels.get(each.id) ?? null })),
    withoutValue,
    activated,
    newHandles,
  };
};

export const restoreRows = async (
  ports: RestorePorts,
  tx: Repositories,
  items: AsyncIterable<SnapshotItem>,
  target: RestoreTarget,
): Promise<RestoreOutcome> => {
  const restore = beginRestore(ports, tx, target, await destructionTime(tx, ports.clock));
  await restoreItems(restore, items);
  await moveStrays(restore);
  if (restore.lastHandle > 0) await tx.tenantRows.reserveHandles(restore.lastHandle);
  await refuseNamesakes(restore);
  return outcomeOf(restore);
};
