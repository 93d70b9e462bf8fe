// Which destroyed keys nothing can bring back from the database: concluded from rows whose authentication code is right, never from what SQL finds. Key
// material that is stored leads to its row: one that is missing, or was changed from outside, may be a copy of any key, so nothing is concluded
// before it is repaired or destroyed (docs/decisions/0042-deletion-proofs.md).

import type { OutsideCopy } from '../../domain/copies.ts';
import { type Key, originalOf } from '../../domain/key.ts';
import { everyTenant, type Tenant } from '../../domain/tenant.ts';
import type { Repositories, Store } from '../../ports/store.ts';
import { copiesOf, copiesOfTenant, filesLeft } from '../copies/copies-of.ts';
import { destroyedKeys, endedValues, ever } from '../keys/destruction-time.ts';
import { byId, each } from '../shared/paging.ts';
import { listUnerased } from '../tenants/purge-tenant.ts';
import type { DamagedRecord } from './reseal-records.ts';

type Reads = Pick<Repositories, 'keys' | 'objects' | 'tenants' | 'decisions' | 'audit' | 'outsideCopies' | 'snapshots'>;

const inPage = 500;

/** What the last run has covered: what was destroyed before this time. */
export const coveredUntil = async (from: Pick<Repositories, 'decisions'>): Promise<number> =>
  Number((await from.decisions.get('erasure-covered')) ?? 0);

/** The key material that is stored. */
export interface StoredMaterial {
  /** Originals of the keys that are not destroyed. */
  readonly usable: ReadonlySet<string>;
  /** Tenants of these keys and of those originals. */
  readonly tenants: ReadonlySet<string>;
  /** Material whose row is missing, or was changed from outside. */
  readonly unknown: readonly DamagedRecord[];
}

/** Files that left the service, and are not known to be destroyed. */
export interface FilesLeft {
  readonly files: readonly OutsideCopy[];
  /**
   * The row of a key was changed from outside: whatever it says, it may be a copy of any key, and
   * files of its tenant may have that key.
   */
  readonly mayHaveAny: boolean;
}
/**
 * The files as a unit of work knows them: only there is a row known that the database hides. The
 * keys, which are many, are read outside of it.
 */
export const findFiles = async ({ read, write }: Pick<Store, 'read' | 'write'>): Promise<FilesLeft> => {
  const files = await write((tx) => filesLeft(tx), { background: true, durable: false });
  if (files.length > 0)
    for await (const { integrity } of each((window) => read.keys.list(everyTenant, {}, window), byId))
      if (integrity !== 'ok') return { files, mayHaveAny: true };
  return { files, mayHaveAny: false };
};

export const findMaterial = async (from: Pick<Repositories, 'keys'>): Promise<StoredMaterial> => {
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
  }
  for (const original of await from.keys.listByIds([...originals]))
    if (original.integrity === 'ok') tenants.add(original.tenantId);
    else if (!unknown.some(({ objectId }) => objectId === original.id))
      doubt(original.tenantId, original.id, original.currentVersion);
  return { usable, tenants, unknown };
};

/** Purged tenants that nothing can bring back, but for their keys that were destroyed before and are still to be marked. */
export const erasedTenants = async (
  from: Reads,
  before: number,
  { tenants }: Pick<StoredMaterial, 'tenants'>,
  { files, mayHaveAny }: FilesLeft,
): Promise<readonly Tenant[]> => {
  const erased: Tenant[] = [];
  if (mayHaveAny) return erased;
  for (const tenant of await listUnerased(from, before))
    if (!tenants.has(tenant.id) && !(await from.keys.hasRecoverable(tenant.id)))
      if ((await copiesOfTenant(from, tenant, files)) === 0) erased.push(tenant);
  return erased;
};

/**
 * Whether nothing that the service knows can bring back a destroyed key. A copy that only looks as
 * if it had no value left still counts.
 */
export const isErased = async (
  from: Reads,
  key: Key,
  { usable }: Pick<StoredMaterial, 'usable'>,
  { files, mayHaveAny }: FilesLeft,
): Promise<boolean> =>
  !mayHaveAny && !usable.has(originalOf(key)) && (await copiesOf(from, key, everyTenant, files)).count === 0;

/** Whether something was destroyed that old copies of the store could still reveal, and that a run would end. */
export const isRunDue = async (from: Reads): Promise<boolean> => {
  const covered = await coveredUntil(from);
  for await (const { destroyedAt } of destroyedKeys(from)) if ((destroyedAt ?? 0) >= covered) return true;
  for await (const _value of endedValues(from, covered)) return true;
  return (await listUnerased(from, ever)).some(({ purgedAt }) => (purgedAt ?? 0) >= covered);
};

/**
 * Whether what a run has covered waited for copies, and those are gone: it is concluded without
 * another run. By the same files as the run itself, which would else conclude nothing, again and
 * again.
 */
export const isConclusionDue = async (store: Pick<Store, 'read' | 'write'>): Promise<boolean> => {
  const { read: from } = store;
  const covered = await coveredUntil(from);
  const earlier: Key[] = [];
  for await (const key of destroyedKeys(from, covered)) earlier.push(key);
  const purged = (await listUnerased(from, covered)).length;
  if (earlier.length === 0 && purged === 0) return false;
  const material = await findMaterial(from);
  if (material.unknown.length > 0) return false;
  const files = await findFiles(store);
  for (const key of earlier) if (await isErased(from, key, material, files)) return true;
  return (await erasedTenants(from, covered, material, files)).length > 0;
};
