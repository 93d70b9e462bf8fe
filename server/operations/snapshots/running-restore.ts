// One restore on its way: where it goes, what of the snapshot is worked on, and what was found and
// done so far.

import { hash } from 'node:crypto';
import { idBytes } from '../../base/ids.ts';
import type { RestoreRing } from '../../ports/key-ring.ts';
import type { Ports } from '../../ports/ports.ts';
import type { SnapshotItem, SnapshotRow } from '../../ports/snapshot-archive.ts';
import type { Repositories } from '../../ports/store.ts';
import type { Activated, TenantTable } from '../../ports/tenant-rows.ts';

export interface StaysDestroyed {
  readonly id: string;
  readonly name: string;
  /** Base64 of a master key's label; null for general keys. */
  readonly label: string | null;
  readonly destroyedAt: number;
}

export interface RestoreTarget {
  readonly tenantId: string;
  readonly newTenant: boolean;
  /** The tenant of which the snapshot was made. */
  readonly fromTenantId: string;
}

export type RestorePorts = Pick<Ports, 'core' | 'archive' | 'clock'> & { readonly ring: RestoreRing };
type Material = Extract<SnapshotItem, { readonly kind: 'material' }>;

/** Lines that are worked on together. */
export interface RestoreBatch {
  readonly rows: Map<TenantTable, { readonly row: SnapshotRow; readonly tampered: boolean }[]>;
  readonly materials: Material[];
  lines: number;
}

export class Counter {
  created = 0;
  changed = 0;
  unchanged = 0;
  omitted = 0;
}

export interface RunningRestore extends Omit<RestorePorts, 'clock'> {
  readonly tx: Repositories;
  readonly target: RestoreTarget;
  /** The ids of the snapshot are another tenant's: everything gets fresh ones. */
  newIds: boolean;
  /** The snapshot's vaults, by their ids in the target tenant. */
  readonly vaultIds: Set<string>;
  readonly counters: Map<TenantTable, Counter>;
  readonly stayDestroyed: StaysDestroyed[];
  /**
   * Token objects whose value was damaged before the snapshot was made: they are copied without it.
   */
  readonly withoutValue: { readonly id: string; readonly label: string }[];
  /** Labels of token objects that stay destroyed, by their id here. */
  readonly labels: Map<string, string>;
  readonly activated: Activated[];
  /**
   * Names of the snapshot's applications, by their ids here: a credential is shown by the name of
   * its application.
   */
  readonly applications: Map<string, string>;
  /** Whose each unshared value of the snapshot is: ids here, by table, column and value. */
  readonly claimed: Map<string, string>;
  /** What the rows were called whose name the snapshot gives to another one, by their ids. */
  readonly displaced: Map<string, readonly string[]>;
  /**
   * Keys of the tenant that are copies of another one, as the file says: their values are compared.
   */
  readonly claimedCopies: Set<string>;
  /** Units of which nothing comes back, and when they were destroyed. By the snapshot's own ids. */
  readonly gone: Map<string, number>;
  /**
   * Token objects whose value is the snapshot's and was another one here, or none: their content
   * key is the snapshot's.
   */
  readonly newValues: Set<string>;
  /** When what this restore ends has ended. */
  readonly endsAt: number;
  /** Handles that were taken. */
  newHandles: number;
  lastHandle: number;
}

export const beginRestore = (
  { ring, core, archive }: Omit<RestorePorts, 'clock'>,
  tx: Repositories,
  target: RestoreTarget,
  endsAt: number,
): RunningRestore => ({
  ring,
  core,
  archive,
  tx,
  target,
  newIds: false,
  vaultIds: new Set(),
  counters: new Map(),
  stayDestroyed: [],
  withoutValue: [],
  labels: new Map(),
  activated: [],
  applications: new Map(),
  claimed: new Map(),
  displaced: new Map(),
  claimedCopies: new Set(),
  gone: new Map(),
  newValues: new Set(),
  endsAt,
  newHandles: 0,
  lastHandle: 0,
});

export const emptyBatch = (): RestoreBatch => ({ rows: new Map(), materials: [], lines: 0 });

export const counterOf = ({ counters }: RunningRestore, table: TenantTable): Counter => {
  const found = counters.get(table) ?? new Counter();
  counters.set(table, found);
  return found;
};

/** A fresh id that follows from the old one and the tenant, and sorts like it. */
export const idIn = (tenantId: string, id: string): string => {
  const digits = hash('sha256', Buffer.concat([Buffer.from('dke restored id'), idBytes(tenantId), idBytes(id)]), 'hex');
  return `${id.slice(0, 14)}7${digits.slice(0, 3)}-8${digits.slice(3, 6)}-${digits.slice(6, 18)}`;
};
export const idHere = ({ newIds, target }: RunningRestore, id: string): string =>
  newIds ? idIn(target.tenantId, id) : id;
