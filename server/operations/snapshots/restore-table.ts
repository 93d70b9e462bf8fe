// The rows of one table of a snapshot: which of them are put into the tenant, as what, and what
// happens to those that are here. What was destroyed stays destroyed.

import { contentDigest } from '../../base/content-digest.ts';
import { idBytes } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { SnapshotRow } from '../../ports/snapshot-archive.ts';
import { type CarriedTable, differIn, same, type TenantRow, type TenantTable } from '../../ports/tenant-rows.ts';
import { nameFromLabel } from '../shared/names.ts';
import { claimNames, freeNames } from './restore-names.ts';
import { counterOf, idHere, type RestoreBatch, type RunningRestore } from './running-restore.ts';

/** A row of the snapshot, and the same with the ids of the tenant. */
interface GivenRow {
  readonly from: SnapshotRow;
  readonly row: SnapshotRow;
  readonly tampered: boolean;
}

/**
 * A file cannot use up the numbers of everybody: above half of them, an object gets a fresh one.
 */
const isGiven = (handle: SnapshotRow[string] | undefined): handle is number =>
  Number.isSafeInteger(handle) && Number(handle) >= 1 && Number(handle) <= 0x3fffffff;

const identityText = ({ identity }: CarriedTable, row: SnapshotRow): string =>
  identity.map((column) => String(row[column])).join(' ');

const differsForever = ({ name, identity: [id] }: CarriedTable, row: SnapshotRow): ServiceError =>
  new ServiceError(
    'conflict',
    `what never changes is different here (${name} ${String(row.name ?? row[id])}): nothing was changed`,
    { reason: 'fixed-value-differs', hint: 'restore the snapshot to a new tenant' },
  );

const strangeReference = (table: TenantTable, column: string): ServiceError =>
  new ServiceError(
    'key-tampered',
    `the snapshot refers to something that is not in it (${table}.${column}): nothing was changed`,
    { reason: 'snapshot-damaged', hint: 'ask its signer for a sound one' },
  );

const takenIds = (table: TenantTable): ServiceError =>
  new ServiceError('conflict', `another tenant already uses ids of the snapshot (${table}): nothing was changed`);

const toTarget = (restore: RunningRestore, { identity, references }: CarriedTable, row: SnapshotRow): SnapshotRow => {
  const changed: Record<string, SnapshotRow[string]> = { ...row };
  if (restore.newIds)
    for (const column of new Set([identity[0], ...references.keys()])) {
      const id = changed[column];
      if (typeof id === 'string') changed[column] = idHere(restore, id);
    }
  if (Object.hasOwn(row, 'tenant_id')) changed.tenant_id = restore.target.tenantId;
  // The time of a destruction decides what erasure runs cover: a clock elsewhere, or who signs the
  // file, moves none of it ahead here.
  if (typeof row.destroyed_at === 'number') changed.destroyed_at = Math.min(row.destroyed_at, restore.endsAt);
  return changed;
};

/** What the tombstones here, and the file, say about the keys and objects of this batch. */
export const findGone = async (restore: RunningRestore, { rows, materials }: RestoreBatch): Promise<void> => {
  const { gone, newIds, tx, endsAt } = restore;
  for (const { unitId, key, erasedAt } of materials)
    if (key === null) gone.set(unitId, Math.min(erasedAt ?? 0, endsAt));
  for (const table of tx.tenantRows.tables()) {
    if (!tx.tenantRows.of(table).leavesTombstones) continue;
    const ids = (rows.get(table) ?? []).map(({ row }) => String(row.id));
    if (ids.length === 0) continue;
    const here = (id: string): string => idHere(restore, id);
    for (const { row } of await tx.tenantRows.find(table, newIds ? [...ids, ...ids.map(here)] : ids))
      if (typeof row.destroyed_at === 'number')
        for (const id of ids) if (row.id === id || row.id === here(id)) gone.set(id, row.destroyed_at);
  }
};

const isTombstone = (existing: TenantRow | undefined): boolean => typeof existing?.row.destroyed_at === 'number';

/** Undefined: it stays as it is. */
const wantedKey = (
  { gone, stayDestroyed, newIds, claimedCopies }: RunningRestore,
  { from, row, tampered }: GivenRow,
  existing: TenantRow | undefined,
): SnapshotRow | undefined => {
  let wanted = row;
  const destroyedAt = gone.get(String(from.id));
  if (destroyedAt !== undefined) {
    if (from.state !== 'destroyed')
      stayDestroyed.push({ id: String(row.id), name: String(row.name), label: null, destroyedAt });
    if (isTombstone(existing)) return undefined;
    // Until the erasure run that follows it is not said to be unrecoverable.
    wanted = { ...row, state: 'destroyed', destroyed_at: row.destroyed_at ?? destroyedAt, reimported_at: null };
  }
  // A copy stays a copy of the same key, also of a copy, and whatever its own snapshots say.
  if (existing?.integrity === 'ok') wanted = { ...wanted, copy_of: existing.row.copy_of ?? null };
  else {
    if (from.copy_of != null) claimedCopies.add(String(row.id));
    if (newIds) wanted = { ...wanted, copy_of: from.copy_of ?? String(from.id) };
  }
  // Versions that were made since stay, and the newest continues being the one that seals.
  if (existing !== undefined && from.destroyed_at != null && !tampered) {
    // The file has the key as destroyed, the row here does not: its records go, and the erasure run
    // that follows says that the key is unrecoverable.
    const at = Number(from.destroyed_at);
    stayDestroyed.push({ id: String(row.id), name: String(row.name), label: null, destroyedAt: at });
    wanted = { ...wanted, unrecoverable_at: null };
  }
  if (existing !== undefined)
    wanted = {
      ...wanted,
      current_version: Math.max(Number(wanted.current_version), Number(existing.row.current_version)),
    };
  return wanted;
};

/**
 * Which value the row says to have, and when an older one ended: of the row here, not of the file.
 */
const withValue = ({ endsAt }: RunningRestore, wanted: SnapshotRow, existing: TenantRow | undefined): SnapshotRow => {
  const before = existing?.row;
  const isSound = existing?.integrity === 'ok';
  if (isSound && same(wanted.content, before?.content))
    return {
      ...wanted,
      content_digest: before?.content_digest ?? null,
      content_replaced_at: before?.content_replaced_at ?? null,
    };
  // A row that was changed from outside does not say when its value ended, nor whether it had one.
  const isReplaced = existing !== undefined && (!isSound || before?.content != null);
  return {
    ...wanted,
    content_digest: wanted.content instanceof Uint8Array ? contentDigest(wanted.content) : null,
    content_replaced_at: isReplaced ? endsAt : (before?.content_replaced_at ?? null),
  };
};

/**
 * The hash of an access_guid is made again, in another form, when one of an earlier version is
 * used: a snapshot from before then has the former one of the same value. The one here stays.
 */
const withHash = ({ ring }: RunningRestore, row: SnapshotRow, existing: TenantRow | undefined): SnapshotRow => {
  const hash = existing?.row.hash;
  const isOther = ring.hashNeedsKey(String(hash)) !== ring.hashNeedsKey(String(row.hash));
  return typeof hash === 'string' && existing?.integrity === 'ok' && isOther ? { ...row, hash } : row;
};

/** Undefined: it stays as it is. `taken`: handles that other objects have. */
const wantedObject = async (
  restore: RunningRestore,
  { from, row }: GivenRow,
  existing: TenantRow | undefined,
  taken: ReadonlySet<number>,
): Promise<SnapshotRow | undefined> => {
  let wanted = row;
  const destroyedAt = restore.gone.get(String(from.id));
  if (destroyedAt !== undefined) {
    restore.labels.set(String(row.id), String(row.label));
    if (isTombstone(existing)) return undefined;
    wanted = { ...row, destroyed_at: row.destroyed_at ?? destroyedAt, content: null };
  }
  wanted = withValue(restore, wanted, existing);
  // A number is never given twice: the object keeps the one that it has here.
  if (existing !== undefined) wanted = { ...wanted, handle: existing.row.handle ?? null };
  else if (!isGiven(row.handle) || taken.has(row.handle)) {
    wanted = { ...wanted, handle: await restore.tx.objects.nextHandle() };
    restore.newHandles += 1;
  }
  restore.lastHandle = Math.max(restore.lastHandle, Number(wanted.handle));
  return wanted;
};

const wantedEndpoint = ({ core, newIds }: RunningRestore, { row }: GivenRow): SnapshotRow => {
  if (!newIds) return row;
  const random = Buffer.alloc(10);
  core.random(random);
  return { ...row, prefix: random.toString('hex') };
};

/** XKS ciphertexts have the tenant and the key that they were made with. */
const putBindings = async ({ tx, target, newIds }: RunningRestore, here: readonly GivenRow[]): Promise<void> => {
  if (target.tenantId === target.fromTenantId && !newIds) return;
  const bound = here.filter(({ from }) => from.kind === 'general');
  await tx.tenantRows.put(
    target.tenantId,
    'key_bindings',
    bound.map(({ from, row }) => ({
      row: {
        key_id: String(row.id),
        binding: Buffer.concat([idBytes(target.fromTenantId), idBytes(String(from.id))]),
      },
      integrity: 'ok',
    })),
  );
};

/** Handles of new objects that other objects have. */
const takenHandlesOf = async (
  { tx }: RunningRestore,
  here: readonly GivenRow[],
  before: ReadonlyMap<string, TenantRow>,
): Promise<ReadonlySet<number>> =>
  new Set(
    await tx.tenantRows.takenHandles(
      here
        .filter(({ row }) => !before.has(String(row.id)))
        .flatMap(({ row }) => (isGiven(row.handle) ? [row.handle] : [])),
    ),
  );

/**
 * The rows whose references all lead to rows of this tenant, which are there by now: a reference to
 * anything else does not exist. Of a row that was changed from outside before the snapshot was
 * made, that may be what was changed: it is left out.
 */
const referring = async (
  restore: RunningRestore,
  table: TenantTable,
  here: readonly GivenRow[],
): Promise<readonly GivenRow[]> => {
  const { tenantRows } = restore.tx;
  let left = here;
  for (const [column, to] of tenantRows.of(table).references) {
    const ids = [...new Set(left.flatMap(({ row }) => (row[column] == null ? [] : [String(row[column])])))];
    const found = await tenantRows.findIn(to, restore.target.tenantId, ids);
    const known = new Set(found.map(({ row }) => String(row.id)));
    const leads = ({ row }: GivenRow): boolean => row[column] == null || known.has(String(row[column]));
    if (left.some((each) => !each.tampered && !leads(each))) throw strangeReference(table, column);
    left = left.filter(leads);
  }
  counterOf(restore, table).omitted += here.length - left.length;
  return left;
};

/** The person who restores is told, and an approval may be required. */
const noteActivated = (
  { activated, applications }: RunningRestore,
  { reactivates }: CarriedTable,
  row: SnapshotRow,
  before: SnapshotRow | undefined,
): void => {
  for (const { kind, change, ...shown } of reactivates(row, before)) {
    let name = 'name' in shown ? shown.name : '';
    if ('label' in shown) name = nameFromLabel(shown.label);
    if ('application' in shown) name = applications.get(shown.application) ?? shown.application;
    activated.push({ kind, change, id: String(row.id), name });
  }
};

/**
 * The label of a token is its application's first name, and stays: a snapshot from before the
 * column was there has none.
 */
const withTokenLabel = (row: SnapshotRow, existing: TenantRow | undefined): SnapshotRow =>
  row.token_label == null
    ? { ...row, token_label: (existing?.integrity === 'ok' ? existing.row.token_label : row.name) ?? null }
    : row;

export const putTable = async (restore: RunningRestore, { rows }: RestoreBatch, table: TenantTable): Promise<void> => {
  const { tx, target, newIds } = restore;
  const { tenantRows } = tx;
  const given = rows.get(table) ?? [];
  if (given.length === 0) return;
  const counter = counterOf(restore, table);
  const declared = tenantRows.of(table);
  const { identity, isCopied, isReplaced, policy, fixed } = declared;
  if (newIds && !isCopied) {
    counter.omitted += given.length;
    return;
  }
  const here = await referring(
    restore,
    table,
    given.map(({ row, tampered }): GivenRow => ({ from: row, row: toTarget(restore, declared, row), tampered })),
  );
  const ids = [...new Set(here.map(({ row }) => String(row[identity[0]])))];
  const found = await tenantRows.find(table, ids);
  if ((await tenantRows.findIn(table, target.tenantId, ids)).length !== found.length) throw takenIds(table);
  const before = new Map(found.map((each) => [identityText(declared, each.row), each]));
  const taken = table === 'tde_objects' ? await takenHandlesOf(restore, here, before) : new Set<number>();
  const put: TenantRow[] = [];
  const putRow = (row: SnapshotRow, integrity: TenantRow['integrity'], existing: TenantRow | undefined): void => {
    put.push({ row, integrity });
    if (table === 'tde_objects' && !(existing?.integrity === 'ok' && same(row.content, existing.row.content)))
      restore.newValues.add(String(row.id));
    noteActivated(restore, declared, row, existing?.row);
  };
  for (const found of here) {
    const existing = before.get(identityText(declared, found.row));
    let each = found;
    if (table === 'access_guids') each = { ...found, row: withHash(restore, found.row, existing) };
    else if (table === 'tde_applications') each = { ...found, row: withTokenLabel(found.row, existing) };
    if (existing?.integrity === 'ok' && !each.tampered && differIn(fixed, each.row, existing.row))
      throw differsForever(declared, each.row);
    if (existing === undefined || !each.tampered) claimNames(restore, declared, each.row);
    let wanted: SnapshotRow | undefined = each.row;
    if (table === 'tde_applications')
      restore.applications.set(String(each.row.id), String((each.tampered ? existing?.row : each.row)?.name));
    if (table === 'keys') wanted = wantedKey(restore, each, existing);
    else if (table === 'tde_objects') wanted = await wantedObject(restore, each, existing, taken);
    else if (table === 'endpoints') wanted = wantedEndpoint(restore, each);
    if (wanted === undefined) {
      counter.unchanged += 1;
      continue;
    }
    if (existing === undefined) {
      counter.created += 1;
      putRow(wanted, each.tampered ? 'tampered' : 'ok', undefined);
      continue;
    }
    const differs = differIn(policy, wanted, existing.row);
    // A row that was changed from outside, here, is set right by one that was sound.
    if (!isReplaced || (!differs && existing.integrity === 'ok') || each.tampered) {
      counter.unchanged += 1;
      continue;
    }
    counter.changed += 1;
    putRow(wanted, 'ok', existing);
  }
  await freeNames(restore, declared, put);
  await tenantRows.put(restore.target.tenantId, table, put);
  if (table === 'keys') await putBindings(restore, here);
};
