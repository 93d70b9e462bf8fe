// The copies of a key that the service knows: in other tenants, in files that left the service, and
// in snapshots whose files are missing. The erasure run, the blast radius, the API and the console
// ask here; what each place is stands in domain/copies.ts. People of one tenant are told how many
// copies there are, and not where.

import type { AuditEvent, AuditKind } from '../../domain/audit-event.ts';
import { describeCopy, type KeyCopies, type KeyCopy, type OutsideCopy, opens } from '../../domain/copies.ts';
import type { Key } from '../../domain/key.ts';
import { everyTenant, type Tenant, type TenantScope } from '../../domain/tenant.ts';
import type { Repositories } from '../../ports/store.ts';
import { byId, each } from '../shared/paging.ts';
import { decidingRecord } from '../shared/tree-of-log.ts';

type Reads = Pick<Repositories, 'keys' | 'tenants' | 'outsideCopies' | 'audit' | 'snapshots'>;

const mostItems = 100;

/** Files that left the service and are not known to be destroyed. */
export const filesLeft = (from: Pick<Repositories, 'outsideCopies'>): Promise<readonly OutsideCopy[]> =>
  from.outsideCopies.left();

/** A key or a tenant, for whose time a file may have been made. */
interface Held {
  readonly id: string;
  readonly tenantId: string;
  readonly createdAt: number;
  readonly endedAt: number | null;
  readonly created: AuditKind;
  readonly ended: AuditKind;
}
const heldKey = ({ id, tenantId, createdAt, destroyedAt }: Key): Held => ({
  ...{ id, tenantId, createdAt, endedAt: destroyedAt, created: 'key.created', ended: 'key.destroyed' },
});
const heldTenant = ({ id, createdAt, purgedAt }: Tenant): Held => ({
  ...{ id, tenantId: id, createdAt, endedAt: purgedAt, created: 'tenant.created', ended: 'tenant.purged' },
});

interface Witnessed extends Held {
  /** Its oldest record of this kind, read once for all files. */
  record(kind: AuditKind): Promise<AuditEvent | null | undefined>;
}
const witnessed = ({ audit }: Pick<Repositories, 'audit'>, held: Held): Witnessed => {
  const read = new Map<AuditKind, Promise<AuditEvent | null | undefined>>();
  return {
    ...held,
    record: (kind) => {
      const found = read.get(kind) ?? decidingRecord(audit, { kind, subjectId: held.id, order: 'oldest' });
      read.set(kind, found);
      return found;
    },
  };
};

/**
 * Whether it may be in a file. It is not only where two witnesses agree: the times, which stand in
 * rows with codes, and the places in the audit log, which no clock moves, of records that are under
 * its root.
 */
const mayHold = async (file: OutsideCopy, held: Witnessed): Promise<boolean> => {
  if (file.integrity !== 'ok') return true;
  if (file.tenantId !== null && file.tenantId !== held.tenantId) return false;
  const placeOf = async (kind: AuditKind): Promise<number | undefined> => (await held.record(kind))?.sequence;
  const { createdAt, endedAt } = held;
  if (file.stateUntil < createdAt && file.stateSize !== null) {
    const created = await placeOf(held.created);
    if (created !== undefined && created > file.stateSize) return false;
  }
  const endedBefore = async (time: number | null, size: number | null): Promise<boolean> => {
    if (endedAt === null || time === null || endedAt >= time) return false;
    const ended = size === null ? undefined : await placeOf(held.ended);
    return ended !== undefined && size !== null && ended <= size;
  };
  return !(
    (await endedBefore(file.stateFrom, file.stateSize)) || (await endedBefore(file.erasedUntil, file.erasedSize))
  );
};

interface FilesOf {
  readonly file: OutsideCopy;
  readonly waits: boolean;
}
/**
 * The files that may hold any of these, and what opens them. A backup of the service that nothing
 * opens is named, and not waited for.
 */
const filesOf = async (
  from: Pick<Repositories, 'audit'>,
  files: readonly OutsideCopy[],
  held: readonly Held[],
): Promise<readonly FilesOf[]> => {
  const all = held.map((one) => witnessed(from, one));
  const roots = files.filter(({ kind }) => kind === 'root-backup');
  const needed = new Set<OutsideCopy>();
  const found: FilesOf[] = [];
  for (const file of files) {
    if (file.kind === 'root-backup') continue;
    let holds = false;
    for (const one of all) holds ||= await mayHold(file, one);
    if (!holds) continue;
    const fitting = file.kind === 'service-backup' ? roots.filter((root) => opens(root, file)) : [];
    for (const root of fitting) needed.add(root);
    found.push({ file, waits: file.kind !== 'service-backup' || fitting.length > 0 });
  }
  return [...found, ...[...needed].map((file) => ({ file, waits: false }))];
};

export const copiesOf = async (
  from: Reads,
  key: Key,
  reach: TenantScope,
  /** What is known already: the files that left, and the other keys with this value. */
  known: { readonly files?: readonly OutsideCopy[]; readonly relatives?: readonly Key[] } = {},
): Promise<KeyCopies> => {
  const others = known.relatives ?? (await from.keys.otherCopies(key));
  const family = [key, ...others].filter(({ unrecoverableAt }) => unrecoverableAt === null);
  const items: KeyCopy[] = [];
  let count = 0;
  const sees = (tenantId: string | null): boolean => reach === everyTenant || reach === tenantId;
  const add = (copy: Omit<KeyCopy, 'text'>, by?: string): void => {
    if (copy.waits) count += 1;
    if (sees(copy.tenantId))
      items.push({ ...copy, text: describeCopy({ ...copy, ...(by === undefined ? {} : { by }) }) });
  };
  for (const { id, tenantId, applicationId, createdAt, state } of others)
    if (state !== 'destroyed') {
      const tenantName = sees(tenantId) ? ((await from.tenants.stored(tenantId))?.name ?? tenantId) : tenantId;
      add({ place: 'other-tenant', id, tenantId, tenantName, applicationId, at: createdAt, waits: true });
    }
  const none = { tenantName: null, applicationId: null };
  for (const { file, waits } of await filesOf(from, known.files ?? (await filesLeft(from)), family.map(heldKey)))
    add(
      { place: file.kind, id: file.id, tenantId: file.tenantId, ...none, at: file.stateFrom || file.at, waits },
      file.actorName,
    );
  // The erasure run waits for these, or its records name them (missing_snapshots).
  for (const tenantId of new Set(family.map((one) => one.tenantId)))
    for await (const { id, createdAt } of each(
      (window) => from.snapshots.list({ tenantId, state: 'missing' }, window),
      byId,
    ))
      add({ place: 'snapshot', id, tenantId, ...none, at: createdAt, waits: false });
  return { count, items: items.slice(0, mostItems) };
};

/** Files that hold keys of a tenant: how many are waited for after its purge. */
export const copiesOfTenant = async (
  from: Pick<Repositories, 'audit' | 'outsideCopies'>,
  tenant: Tenant,
  files?: readonly OutsideCopy[],
): Promise<number> =>
  (await filesOf(from, files ?? (await filesLeft(from)), [heldTenant(tenant)])).filter(({ waits }) => waits).length;
