// Brings what a snapshot holds back into a tenant, within one unit of work. Nothing that was made since is taken away. What was destroyed
// stays destroyed, whatever the snapshot says: a key that is a tombstone here, and one that was erased from the file.

import { hash } from 'node:crypto';
import { ServiceError } from '../../base/errors.ts';
import { idBytes, isId } from '../../base/ids.ts';
import { otherWork } from '../../base/other-work.ts';
import { refusalOfState } from '../../domain/key-policy.ts';
import type { Ports } from '../../ports/ports.ts';
import type { RecordClass, RecordPlace, StoredRecord } from '../../ports/records.ts';
import type { SnapshotItem, SnapshotRow } from '../../ports/snapshot-archive.ts';
import type { Repositories } from '../../ports/store.ts';
import { keyTables, type TenantRow, type TenantTable, tenantTables } from '../../ports/tenant-rows.ts';
import { nameFromLabel } from '../shared/names.ts';
import { tokenHashUnit } from './make-snapshot.ts';

export interface StaysDestroyed {
  readonly id: string;
  readonly name: string;
  /** Base64 of a master key's label; null for general keys. */
  readonly label: string | null;
  readonly destroyedAt: number;
}

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
  /** What it creates, reactivates or changes of that which decides who may use keys. */
  readonly activated: readonly Activated[];
  /** Handles that were taken: old and new. */
  readonly newHandles: number;
}

export interface Activated {
  readonly kind:
    | 'application'
    | 'access-guid'
    | 'endpoint'
    | 'credential'
    | 'vault'
    | 'key'
    | 'token-object'
    | 'dual-control';
  /** `changed`: its group, switches, settings, attributes or rule are those of before. */
  readonly change: 'created' | 'reactivated' | 'changed';
  readonly id: string;
  readonly name: string;
}

export interface RestoreTarget {
  readonly tenantId: string;
  readonly newTenant: boolean;
  /** Of the snapshot. */
  readonly fromTenantId: string;
}

type RestorePorts = Pick<Ports, 'ring' | 'core' | 'archive'>;
type Material = Extract<SnapshotItem, { readonly kind: 'material' }>;

/** Lines that are worked on together: little enough that others are served between. */
const batchLines = 400;

const references: { readonly [T in TenantTable]: readonly string[] } = {
  vaults: ['id'],
  tde_groups: ['id', 'vault_id'],
  tde_applications: ['id', 'group_id'],
  access_guids: ['id', 'application_id'],
  instances: ['id', 'application_id', 'access_guid_id'],
  keys: ['id', 'vault_id', 'application_id'],
  key_versions: ['key_id'],
  key_bindings: ['key_id'],
  tde_objects: ['id', 'group_id', 'application_id'],
  endpoints: ['id', 'vault_id', 'key_id'],
  endpoint_credentials: ['id', 'endpoint_id'],
  external_key_stores: ['id', 'endpoint_id'],
};
/** What names one place in the world: a copy of a tenant beside it cannot have it too. */
const notCopied: ReadonlySet<TenantTable> = new Set([
  'access_guids',
  'instances',
  'endpoint_credentials',
  'external_key_stores',
]);
/** Rows that are only ever added. */
const onlyAdded: ReadonlySet<TenantTable> = new Set(['instances', 'key_versions', 'key_bindings']);

const isTable = (text: string): text is TenantTable => (tenantTables as readonly string[]).includes(text);
const isKeyTable = (table: TenantTable): boolean => (keyTables as readonly string[]).includes(table);
const keyColumn = (table: TenantTable): string => (isKeyTable(table) ? 'key_id' : 'id');
const identityText = (table: TenantTable, row: SnapshotRow): string =>
  table === 'key_versions' ? `${String(row.key_id)} ${String(row.version)}` : String(row[keyColumn(table)]);

const same = (one: SnapshotRow[string] | undefined, other: SnapshotRow[string] | undefined): boolean =>
  one instanceof Uint8Array && other instanceof Uint8Array
    ? Buffer.from(one).equals(Buffer.from(other))
    : (one ?? null) === (other ?? null);

/** A fresh id that follows from the old one and the tenant, and sorts like it. */
export const idIn = (tenantId: string, id: string): string => {
  const digits = hash('sha256', Buffer.concat([Buffer.from('dke restored id'), idBytes(tenantId), idBytes(id)]), 'hex');
  return `${id.slice(0, 14)}7${digits.slice(0, 3)}-8${digits.slice(3, 6)}-${digits.slice(6, 18)}`;
};

class Counter {
  created = 0;
  changed = 0;
  unchanged = 0;
  omitted = 0;
}

/** What decides what a token object may be used for, and whether its value may leave. */
const protection = ['usages', 'sensitive', 'extractable', 'attributes', 'wrapped_sensitive'] as const;

const isUsable = ({ kind, state, disabled_at: disabledAt }: SnapshotRow): boolean =>
  refusalOfState({ kind, state, disabledAt } as Parameters<typeof refusalOfState>[0]) === null;

const takenIds = (table: TenantTable): ServiceError =>
  new ServiceError('conflict', `another tenant already uses ids of the snapshot (${table}): nothing was changed`);

export const restoreRows = async (
  { ring, core, archive }: RestorePorts,
  tx: Repositories,
  items: AsyncIterable<SnapshotItem>,
  target: RestoreTarget,
): Promise<RestoreOutcome> => {
  const { tenantId, fromTenantId } = target;
  const { tenantRows } = tx;
  const counters = new Map<TenantTable, Counter>();
  const stayDestroyed: StaysDestroyed[] = [];
  const activated: Activated[] = [];
  /** Units of which nothing comes back, and when they were destroyed. By the snapshot's own ids. */
  const gone = new Map<string, number>();
  let newIds = false;
  let newHandles = 0;
  let lastHandle = 0;
  let rows = new Map<TenantTable, { readonly row: SnapshotRow; readonly tampered: boolean }[]>();
  let materials: Material[] = [];
  let lines = 0;

  const counterOf = (table: TenantTable): Counter => {
    const found = counters.get(table) ?? new Counter();
    counters.set(table, found);
    return found;
  };
  const idHere = (id: string): string => (newIds ? idIn(tenantId, id) : id);
  const toTarget = (table: TenantTable, row: SnapshotRow): SnapshotRow => {
    const changed: Record<string, SnapshotRow[string]> = { ...row };
    if (newIds)
      for (const column of references[table]) {
        const id = changed[column];
        if (typeof id === 'string') changed[column] = idHere(id);
      }
    if (Object.hasOwn(row, 'tenant_id')) changed.tenant_id = tenantId;
    return changed;
  };
  const releaseMaterials = (): void => {
    for (const { key } of materials) if (key !== null) core.release(key);
    materials = [];
  };

  /** What the tombstones here, and the file, say about the keys and objects of this batch. */
  const findGone = async (): Promise<void> => {
    for (const { unitId, key, erasedAt } of materials) if (key === null) gone.set(unitId, erasedAt ?? 0);
    for (const table of ['keys', 'tde_objects'] as const) {
      const ids = (rows.get(table) ?? []).map(({ row }) => String(row.id));
      if (ids.length === 0) continue;
      for (const { row } of await tenantRows.find(table, newIds ? [...ids, ...ids.map(idHere)] : ids))
        if (typeof row.destroyed_at === 'number')
          for (const id of ids) if (row.id === id || row.id === idHere(id)) gone.set(id, row.destroyed_at);
    }
  };

  /** Names rows that let a caller use keys, attributes that protect keys, and changes of who must agree. */
  const noteActivated = (table: TenantTable, row: SnapshotRow, before: SnapshotRow | undefined): void => {
    const change = before === undefined ? 'created' : 'reactivated';
    const note = (kind: Activated['kind'], name: SnapshotRow[string] | undefined, how: Activated['change'] = change) =>
      activated.push({ kind, change: how, id: String(row.id), name: String(name) });
    const becomes = (state: string): boolean => row.state === state && before?.state !== state;
    const differs = (...columns: readonly string[]): boolean =>
      before !== undefined && columns.some((column) => !same(row[column], before[column]));
    if (table === 'tde_applications' && becomes('enabled')) note('application', row.name);
    else if (table === 'tde_applications' && differs('group_id', 'compatibility', 'callers'))
      note('application', row.name, 'changed');
    if (table === 'access_guids' && row.removed_at === null && (before === undefined || before.removed_at !== null))
      note('access-guid', row.application_id);
    if (table === 'endpoints' && becomes('enabled')) note('endpoint', row.name);
    else if (table === 'endpoints' && differs('settings', 'vault_id', 'key_id')) note('endpoint', row.name, 'changed');
    if (table === 'endpoint_credentials') note('credential', row.access_key_id);
    // A new vault or key lets no caller use anything by itself.
    if (table === 'vaults' && before !== undefined && becomes('enabled')) note('vault', row.name);
    // A soft-deleted master key is not among them: its database has gone on using it.
    if (table === 'keys' && before !== undefined && !isUsable(before) && isUsable(row)) note('key', row.name);
    // Attributes that have become stricter since: what they protect against would be possible again.
    if (table === 'tde_objects' && row.destroyed_at === null && differs(...protection))
      note('token-object', nameFromLabel(String(row.label)), 'changed');
    if (table === 'vaults' && !same(row.dual_control, before?.dual_control))
      note('dual-control', row.name, before === undefined ? 'created' : 'changed');
  };

  const labels = new Map<string, string>();
  const putTable = async (table: TenantTable): Promise<void> => {
    const given = rows.get(table) ?? [];
    if (given.length === 0) return;
    const counter = counterOf(table);
    if (newIds && notCopied.has(table)) {
      counter.omitted += given.length;
      return;
    }
    const here = given.map(({ row, tampered }) => ({ from: row, row: toTarget(table, row), tampered }));
    const found = await tenantRows.find(table, [...new Set(here.map(({ row }) => String(row[keyColumn(table)])))]);
    const before = new Map(found.map((each) => [identityText(table, each.row), each]));
    const policy = tenantRows.policy(table);
    const taken =
      table === 'tde_objects'
        ? new Set(
            await tenantRows.takenHandles(
              here.filter(({ row }) => !before.has(String(row.id))).map(({ row }) => Number(row.handle)),
            ),
          )
        : new Set<number>();
    const put: TenantRow[] = [];
    for (const { from, row, tampered } of here) {
      const existing = before.get(identityText(table, row));
      if (existing !== undefined && Object.hasOwn(row, 'tenant_id') && existing.row.tenant_id !== tenantId)
        throw takenIds(table);
      let wanted = row;
      const destroyedAt = gone.get(String(from.id));
      if ((table === 'keys' || table === 'tde_objects') && destroyedAt !== undefined) {
        if (table === 'tde_objects') labels.set(String(row.id), String(row.label));
        if (table === 'keys' && from.state !== 'destroyed')
          stayDestroyed.push({ id: String(row.id), name: String(row.name), label: null, destroyedAt });
        if (typeof existing?.row.destroyed_at === 'number') {
          counter.unchanged += 1;
          continue;
        }
        wanted =
          table === 'keys'
            ? // Until the erasure run that follows it is not said to be unrecoverable.
              {
                ...row,
                state: 'destroyed',
                destroyed_at: row.destroyed_at ?? destroyedAt,
                reimported_at: null,
              }
            : { ...row, destroyed_at: row.destroyed_at ?? destroyedAt, content: null };
      }
      if (table === 'tde_objects') {
        if (existing === undefined && taken.has(Number(row.handle))) {
          wanted = { ...wanted, handle: await tx.objects.nextHandle() };
          newHandles += 1;
        }
        lastHandle = Math.max(lastHandle, Number(wanted.handle));
      }
      if (table === 'endpoints' && newIds) {
        const random = Buffer.alloc(10);
        core.random(random);
        wanted = { ...wanted, prefix: random.toString('hex') };
      }
      // A copy stays a copy of the same key, also of a copy, and whatever its own snapshots say.
      if (table === 'keys' && existing !== undefined) wanted = { ...wanted, copy_of: existing.row.copy_of ?? null };
      else if (table === 'keys' && newIds) wanted = { ...wanted, copy_of: from.copy_of ?? String(from.id) };
      // Versions that were made since stay, and the newest goes on being the one that seals.
      if (table === 'keys' && existing !== undefined)
        wanted = {
          ...wanted,
          current_version: Math.max(Number(wanted.current_version), Number(existing.row.current_version)),
        };
      if (existing === undefined) {
        counter.created += 1;
        put.push({ row: wanted, integrity: tampered ? 'tampered' : 'ok' });
        noteActivated(table, wanted, undefined);
        continue;
      }
      const differs = policy.some((column) => !same(wanted[column], existing.row[column]));
      // A row that was changed from outside, here, is set right by one that was sound.
      if (onlyAdded.has(table) || (!differs && existing.integrity === 'ok') || tampered) {
        counter.unchanged += 1;
        continue;
      }
      counter.changed += 1;
      put.push({ row: wanted, integrity: 'ok' });
      noteActivated(table, wanted, existing.row);
    }
    await tenantRows.put(table, put);
    if (table !== 'keys' || (tenantId === fromTenantId && !newIds)) return;
    // XKS ciphertexts bear the tenant and the key that they were made with.
    const bound = here.filter(({ from }) => from.kind === 'general');
    await tenantRows.put(
      'key_bindings',
      bound.map(({ from, row }) => ({
        row: {
          key_id: String(row.id),
          binding: Buffer.concat([idBytes(fromTenantId), idBytes(String(from.id))]),
        },
        integrity: 'ok',
      })),
    );
  };

  const placeOf = ({ unitId, version, attributes }: Material, recordClass: string): RecordPlace => ({
    tenantId,
    objectId: idHere(unitId),
    version,
    class: recordClass as RecordClass,
    attributes,
  });
  /** Whether a record is there and opens to the same key. */
  const holds = (record: StoredRecord | undefined, place: RecordPlace, check: string): boolean => {
    if (record === undefined) return false;
    try {
      const key = ring.open({ ...record, ...place });
      try {
        return archive.checkOf(key) === check;
      } finally {
        core.release(key);
      }
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'key-tampered') return false;
      throw error;
    }
  };
  const putMaterials = async (): Promise<void> => {
    const ids = [...new Set(materials.map(({ unitId }) => idHere(unitId)))];
    const stored = new Map(
      (await tenantRows.records(ids)).map((record) => [`${record.objectId} ${record.version} ${record.class}`, record]),
    );
    const put: StoredRecord[] = [];
    for (const material of materials) {
      const { unitId, version, copies, check, key } = material;
      if (key === null || gone.has(unitId)) continue;
      if (archive.checkOf(key) !== check)
        throw new ServiceError(
          'key-tampered',
          'a key of the snapshot does not match its check value: nothing was changed',
        );
      if (unitId === tokenHashUnit) {
        // The copy of a tenant has no access_guids of the original.
        if (!newIds) await ring.adoptTokenHashKey(tx, key);
        continue;
      }
      if (newIds && copies.includes('endpoint-secret')) continue;
      for (const recordClass of copies) {
        const place = placeOf(material, recordClass);
        if (!holds(stored.get(`${place.objectId} ${version} ${recordClass}`), place, check))
          put.push(ring.seal(place, key));
      }
      // A copy that was not there then, and is now, goes: the vault's, of a key that was soft-deleted.
      for (const recordClass of ['vault-copy', 'sealed-copy'] as const)
        if (!copies.includes(recordClass) && stored.has(`${idHere(unitId)} ${version} ${recordClass}`))
          await tx.records.wipe(idHere(unitId), version, recordClass);
    }
    await tenantRows.putRecords(put);
  };
  /** Keys whose material the snapshot does not have had none: a general key that was soft-deleted. */
  const wipeLeftovers = async (): Promise<void> => {
    const carried = new Set(materials.map(({ unitId }) => unitId));
    const without = (rows.get('keys') ?? []).filter(
      ({ row }) => row.state === 'soft-deleted' && !carried.has(String(row.id)) && !gone.has(String(row.id)),
    );
    for (const record of await tenantRows.records(without.map(({ row }) => idHere(String(row.id)))))
      await tx.records.wipe(record.objectId, record.version, record.class);
  };

  const flush = async (): Promise<void> => {
    if (lines === 0) return;
    try {
      await findGone();
      for (const table of tenantTables) await putTable(table);
      await putMaterials();
      await wipeLeftovers();
    } finally {
      releaseMaterials();
      rows = new Map();
      lines = 0;
    }
    await otherWork();
  };

  let vaultsSeen = false;
  // Vaults come first and are few. One that is another tenant's here: what follows is a copy beside the original.
  const lookAtVaults = async (): Promise<void> => {
    vaultsSeen = true;
    const ids = (rows.get('vaults') ?? []).map((each) => String(each.row.id));
    newIds = (await tenantRows.find('vaults', ids)).some((each) => each.row.tenant_id !== tenantId);
  };
  try {
    for await (const item of items) {
      lines += 1;
      if (item.kind === 'material') {
        materials.push(item);
        continue;
      }
      const { table, row, tampered } = item;
      if (!isTable(table) || !Object.keys(row).every((column) => tenantRows.columns(table).includes(column)))
        throw new ServiceError('unsupported', `the snapshot has rows that this version does not know (${table})`, {
          hint: 'restore it with the version that created it, or a newer one',
        });
      if (!isId(String(row[keyColumn(table)])))
        throw new ServiceError('key-tampered', 'the snapshot has a row without an id');
      if (!vaultsSeen && table !== 'vaults') await lookAtVaults();
      // What hangs on a row follows it: a batch ends before the next one.
      if (lines > batchLines && vaultsSeen && !isKeyTable(table)) {
        await flush();
        lines = 1;
      }
      const own = rows.get(table) ?? [];
      own.push({ row, tampered });
      rows.set(table, own);
    }
    if (!vaultsSeen) await lookAtVaults();
    await flush();
  } finally {
    releaseMaterials();
  }

  // Applications that had been moved are in their group again, and what they made meanwhile goes with them.
  const strays = await tenantRows.strays(tenantId);
  const places = new Map(strays.map((each) => [each.id, each]));
  for (const table of ['tde_objects', 'keys'] as const) {
    const found = await tenantRows.find(table, [...places.keys()]);
    await tenantRows.put(
      table,
      found.map(({ row, integrity }) => {
        const place = places.get(String(row.id));
        const moved = table === 'keys' ? { vault_id: place?.vaultId ?? null } : { group_id: place?.groupId ?? null };
        return { row: { ...row, ...moved }, integrity };
      }),
    );
  }
  if (lastHandle > 0) await tenantRows.reserveHandles(lastHandle);

  const doubles = await tenantRows.doubles(tenantId);
  if (doubles.length > 0)
    throw new ServiceError(
      'conflict',
      `names were reused since the snapshot was created: ${doubles
        .slice(0, 10)
        .map(({ what, name }) => `${what} ${name}`)
        .join(', ')}; nothing was changed`,
      { hint: 'rename or remove the current resources with these names, or restore to a new tenant' },
    );

  const counts: { [T in TenantTable]?: RestoreCounts } = {};
  for (const table of tenantTables) {
    const { created, changed, unchanged, omitted } = counterOf(table);
    const kept = Math.max(0, (await tenantRows.count(table, tenantId)) - created - changed - unchanged);
    counts[table] = { created, changed, unchanged, kept, omitted };
  }
  return {
    tenantId,
    newTenant: target.newTenant,
    newIds,
    counts,
    stayDestroyed: stayDestroyed.map((each) => ({ ...each, label: labels.get(each.id) ?? null })),
    activated,
    newHandles,
  };
};
