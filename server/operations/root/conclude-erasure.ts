// Which destroyed keys nothing can bring back from the database: concluded from rows whose
// authentication code is right, never from what SQL finds. Key material that is stored leads to its
// row: one that is missing, or was changed from outside, may be a copy of any key, so nothing is
// concluded before it is repaired or destroyed (docs/decisions/0042-deletion-proofs.md).

import { otherWork } from '../../base/next-turn.ts';
import type { OutsideCopy } from '../../domain/copies.ts';
import { type Key, originalOf } from '../../domain/key.ts';
import { everyTenant, type Tenant } from '../../domain/tenant.ts';
import type { Repositories, Store } from '../../ports/store.ts';
import { copiesOf, copiesOfTenant, filesLeft } from '../copies/copies-of.ts';
import { destroyedKeys, endedValues, ever } from '../keys/destruction-time.ts';
import { newestRestore } from '../shared/newest-restore.ts';
import { byId, each } from '../shared/paging.ts';
import { listUnerased } from '../tenants/purge-tenant.ts';
import type { DamagedRecord } from './reseal-records.ts';

type Reads = Pick<Repositories, 'keys' | 'objects' | 'tenants' | 'decisions' | 'audit' | 'outsideCopies' | 'snapshots'>;

const inPage = 500;

/** What the last run has covered: what was destroyed before this time. */
export const coveredUntil = async (from: Pick<Repositories, 'decisions'>): Promise<number> =>
  Number((await from.decisions.get('erasure-covered')) ?? 0);

/** What one walk over all keys, and over the key material that is stored, has found. */
export interface Walk {
  /** Originals of the keys that are not destroyed. */
  readonly usable: ReadonlySet<string>;
  /** Tenants of these keys and of those originals. */
  readonly tenants: ReadonlySet<string>;
  /** Material whose row is missing, or was changed from outside. */
  readonly unknown: readonly DamagedRecord[];
  /**
   * The row of a key was changed from outside: whatever it says, it may be a copy of any key, and
   * files of its tenant may have that key.
   */
  readonly mayHaveAny: boolean;
  /**
   * Keys that have the same value, as rows with right codes say: their ids by the id of the
   * original.
   */
  readonly families: ReadonlyMap<string, readonly string[]>;
  /** Tenants with keys that are not unrecoverable yet. */
  readonly waiting: ReadonlySet<string>;
  /** The newest restore before it began. */
  readonly restore: string | undefined;
  /**
   * The sum over all policy rows was right in the state that it read: no row was hidden from it,
   * and none was put back.
   */
  readonly isWhole: boolean;
}

/** A restore has made copies since: the walk is done again. */
export const isOutdated = async (from: Pick<Repositories, 'decisions'>, { restore }: Walk): Promise<boolean> =>
  (await newestRestore(from)) !== restore;

/** Whose key material is stored. */
const walkMaterial = async (from: Pick<Repositories, 'keys'>) => {
  const usable = new Set<string>();
  const tenants = new Set<string>();
  const originals = new Set<string>();
  const unknown: DamagedRecord[] = [];
  const doubt = (tenantId: string, objectId: string, version: number): unknown =>
    unknown.push({ tenantId, objectId, version, class: 'vault-copy' });
  for (let after: { readonly tenantId: string; readonly objectId: string } | undefined; ; ) {
    const page = await from.keys.materialOwners(after, inPage);
    for (const { tenantId, objectId, key } of page)
      if (key?.integrity !== 'ok' || key.tenantId !== tenantId) doubt(tenantId, objectId, key?.currentVersion ?? 1);
      else if (key.state !== 'destroyed') {
        usable.add(originalOf(key));
        tenants.add(key.tenantId);
        if (key.copyOf !== null) originals.add(key.copyOf);
      }
    after = page.at(-1);
    if (page.length < inPage) break;
    await otherWork();
  }
  for (const original of await from.keys.listByIds([...originals]))
    if (original.integrity === 'ok') tenants.add(original.tenantId);
    else if (!unknown.some(({ objectId }) => objectId === original.id))
      doubt(original.tenantId, original.id, original.currentVersion);
  return { usable, tenants, unknown };
};

/**
 * Outside of a unit of work, because keys are many, and in one state of the database, together with
 * the sum over its rows. What it finds stays true until a restore: keys that are destroyed stay so.
 * So a row that is changed from outside after it hides nothing.
 */
export const walkKeys = (store: Pick<Store, 'snapshot'>): Promise<Walk> =>
  store.snapshot(async (state) => {
    const { differences } = await state.whole.compareRowSet();
    return { ...(await walkIn(state)), isWhole: differences.length === 0 };
  });

const walkIn = async (from: Pick<Repositories, 'keys' | 'decisions'>): Promise<Omit<Walk, 'isWhole'>> => {
  const restore = await newestRestore(from);
  const families = new Map<string, string[]>();
  const waiting = new Set<string>();
  let mayHaveAny = false;
  for await (const key of each((window) => from.keys.list(everyTenant, {}, window), byId)) {
    mayHaveAny ||= key.integrity !== 'ok';
    if (key.unrecoverableAt === null) waiting.add(key.tenantId);
    if (key.copyOf === null) continue;
    const family = families.get(key.copyOf);
    if (family === undefined) families.set(key.copyOf, [key.id]);
    else family.push(key.id);
  }
  // The original of a copy can be another service's.
  for (const { id } of await from.keys.listByIds([...families.keys()])) families.get(id)?.push(id);
  return { ...(await walkMaterial(from)), mayHaveAny, families, waiting, restore };
};

/** The other keys with this one's value; undefined: one of them is not as the walk has found it. */
const relativesOf = async (
  from: Pick<Repositories, 'keys'>,
  key: Key,
  { families }: Pick<Walk, 'families'>,
): Promise<readonly Key[] | undefined> => {
  const ids = (families.get(originalOf(key)) ?? []).filter((id) => id !== key.id);
  const found = await from.keys.listByIds(ids);
  const isSame = (each: Key): boolean => each.integrity === 'ok' && originalOf(each) === originalOf(key);
  return found.length === ids.length && found.every(isSame) ? found : undefined;
};

/**
 * Purged tenants that nothing can bring back, but for their keys that were destroyed before and are
 * still to be marked.
 */
export const erasedTenants = async (
  from: Reads,
  before: number,
  { tenants, waiting, mayHaveAny, isWhole }: Pick<Walk, 'tenants' | 'waiting' | 'mayHaveAny' | 'isWhole'>,
  files: readonly OutsideCopy[],
): Promise<readonly Tenant[]> => {
  const erased: Tenant[] = [];
  if (!isWhole || (mayHaveAny && files.length > 0)) return erased;
  for (const tenant of await listUnerased(from, before))
    if (!tenants.has(tenant.id) && !waiting.has(tenant.id))
      if ((await copiesOfTenant(from, tenant, files)) === 0) erased.push(tenant);
  return erased;
};

/**
 * Whether nothing that the service knows can bring back a destroyed key. A copy that only looks as
 * if it had no value left still counts.
 */
export const isErased = async (from: Reads, key: Key, walk: Walk, files: readonly OutsideCopy[]): Promise<boolean> => {
  if (!walk.isWhole || (walk.mayHaveAny && files.length > 0) || walk.usable.has(originalOf(key))) return false;
  const relatives = await relativesOf(from, key, walk);
  return relatives !== undefined && (await copiesOf(from, key, everyTenant, { files, relatives })).count === 0;
};

/**
 * Whether something was destroyed that old copies of the store could still reveal, and that a run
 * would end.
 */
export const isRunDue = async (from: Reads): Promise<boolean> => {
  const covered = await coveredUntil(from);
  // Keys that wait for files may be many, and this is asked by each status.
  for await (const _key of destroyedKeys(from, { since: covered })) return true;
  for await (const _value of endedValues(from, covered)) return true;
  return (await listUnerased(from, ever)).some(({ purgedAt }) => (purgedAt ?? 0) >= covered);
};

/**
 * Whether what a run has covered waited for copies, and those are gone: it is concluded without
 * another run. By the same files as the run itself, which would else conclude nothing, again and
 * again.
 */
export const isConclusionDue = async (store: Pick<Store, 'read' | 'write' | 'snapshot'>): Promise<boolean> => {
  const { read: from, write } = store;
  const covered = await coveredUntil(from);
  const earlier: Key[] = [];
  for await (const key of destroyedKeys(from, { before: covered })) earlier.push(key);
  const purged = (await listUnerased(from, covered)).length;
  if (earlier.length === 0 && purged === 0) return false;
  const walk = await walkKeys(store);
  if (walk.unknown.length > 0) return false;
  // Only in a unit of work is a row known that the database hides.
  const files = await write((tx) => filesLeft(tx), { background: true, durable: false });
  for (const key of earlier) if (await isErased(from, key, walk, files)) return true;
  return (await erasedTenants(from, covered, walk, files)).length > 0;
};
