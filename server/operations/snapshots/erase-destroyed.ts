// Takes what was destroyed out of the snapshots that the service holds, deleted ones too: the
// service cannot open them, but each key is there under a key of its own, which is overwritten in
// place. Part of the erasure run: no key is unrecoverable before it is done.

import { serviceTenantId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { Actor } from '../../domain/actor.ts';
import { type FleetNode, runOf } from '../../domain/node.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { destroyedKeys } from '../keys/destruction-time.ts';
import { byId, each } from '../shared/paging.ts';
import { about, recordEvent } from '../shared/record-event.ts';

type ErasePorts = Pick<Ports, 'store' | 'ring' | 'archive' | 'clock' | 'log'>;

const isRunning = (state: FleetNode['state']): boolean => state === 'active' || state === 'draining';

const erasedSetting = 'snapshots-erased-until';
/** The clock may be set back between a destruction and the run. */
const marginMs = 86_400_000;

/** A moment, and how many records the audit log had then. */
interface Erased {
  readonly at: number;
  readonly size: number | null;
}
/** What was destroyed before is in none of the snapshots. */
export const erasedUntil = async (from: Pick<Repositories, 'decisions'>): Promise<Erased | undefined> => {
  const [at, size] = (await from.decisions.get(erasedSetting))?.split(' ').map(Number) ?? [];
  return at === undefined ? undefined : { at, size: size ?? null };
};

/** Whose row says what the service wrote. */
const isSound = ({ integrity }: Pick<Snapshot, 'integrity'>): boolean => integrity === 'ok';

export const listSnapshots = async (
  from: Repositories,
  states: readonly Snapshot['state'][],
  tenantId?: string,
): Promise<readonly Snapshot[]> => {
  const all: Snapshot[] = [];
  for (const state of states)
    for await (const snapshot of each((window) => from.snapshots.list({ state, tenantId }, window), byId))
      all.push(snapshot);
  return all;
};

/**
 * How many keys are erased in the file, by its own account. Of runs that overlap, and of one that
 * is repeated, each key is reported once.
 */
const recordErased = async (
  { store }: Pick<ErasePorts, 'store'>,
  actor: Actor,
  { id, tenantId }: Pick<Snapshot, 'id' | 'tenantId'>,
  total: number,
): Promise<void> => {
  if (total === 0) return;
  await store.write(async (tx) => {
    const now = await tx.snapshots.get(id);
    const added = total - (now?.counts?.erased ?? 0);
    if (now === undefined || added <= 0) return;
    const counts = now.counts === null ? null : { ...now.counts, erased: total };
    if (now.integrity === 'ok') await tx.snapshots.update({ ...now, counts });
    await recordEvent(tx, 'snapshot.keys-erased', actor, about('snapshot', { id, tenantId }), { keys: added });
  });
};

/**
 * Overwrites what is destroyed in one snapshot, and says so once. Answers how many are erased in
 * it.
 */
export const eraseUnits = async (
  { store, ring, archive, clock, log }: ErasePorts,
  actor: Actor,
  snapshot: Pick<Snapshot, 'id' | 'tenantId' | 'state'>,
  which: Parameters<Ports['archive']['erase']>[1] = store.read.tenantRows.destroyedAmong,
): Promise<number> => {
  let total: number;
  try {
    ({ total } = await archive.erase(snapshot.id, which, clock.now(), {
      publicKey: ring.auditPublicKey(),
      sign: (text) => ring.signAudit(text),
    }));
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'not-found') throw error;
    // Whether the file was removed or only moved is not known.
    log.error('the file of a snapshot is missing', { snapshotId: snapshot.id, directory: archive.directory });
    await store.write(async (tx) => {
      const now = await tx.snapshots.get(snapshot.id);
      if (now?.state === snapshot.state && now.integrity === 'ok')
        await tx.snapshots.update({ ...now, state: 'missing' });
    });
    return 0;
  }
  await recordErased({ store }, actor, snapshot, total);
  return total;
};

/** Who makes a snapshot, next to its row: that run of that node alone continues it. */
const makerOf = (id: string): string => `snapshot-maker:${id}`;
/** In the unit of work that begins or ends it. */
export const setMaker = (tx: Repositories, id: string, run: string | null): Promise<void> =>
  tx.settings.set(makerOf(id), run);

/**
 * Snapshots that are being made according to the store, and are not: the service ended, or the
 * failure could not be recorded. To be called while none is made here. One of another run is left
 * alone while that run sends heartbeats. A node that continues after that finds its row ended, and
 * fails.
 */
export const settleUnfinished = async ({
  store,
  archive,
  fleet,
}: Pick<Ports, 'store' | 'archive' | 'fleet'>): Promise<void> => {
  const unfinished = (await listSnapshots(store.read, ['creating'])).filter(isSound);
  if (unfinished.length === 0) return;
  const running = new Set(
    (await fleet.nodes()).filter(({ self, state }) => !self && isRunning(state)).map((node) => runOf(node)),
  );
  for (const { id } of unfinished) {
    const maker = await store.read.settings.get(makerOf(id));
    if (maker !== undefined && running.has(maker)) continue;
    if (await archive.reached()) await archive.remove(id);
    const failure = 'the service stopped while it was being created, or the disk was full';
    await store.write(async (tx) => {
      const now = await tx.snapshots.get(id);
      if (now?.state === 'creating' && isSound(now)) await tx.snapshots.update({ ...now, state: 'failed', failure });
      await setMaker(tx, id, null);
    });
  }
};

/**
 * What was destroyed is overwritten in every snapshot here. Where the folder is away nothing is
 * done, and `missingFor` says so. `goOn`: called between two parts of a file; it may throw.
 */
export const eraseFromSnapshots = async (
  ports: ErasePorts & Pick<Ports, 'fleet'>,
  actor: Actor,
  goOn: () => void,
): Promise<void> => {
  const { store, archive, clock } = ports;
  const { rows, hidden } = await store.write((tx) => tx.snapshots.held());
  const held = [
    ...rows.filter((row) => !isSound(row) || row.state !== 'missing'),
    ...hidden.map((id) => ({ id, tenantId: serviceTenantId, state: 'available' as const })),
  ];
  let erased: Erased | undefined;
  if (!(await archive.reached())) {
    if (held.length > 0) return;
  } else {
    if (held.length > 0) {
      erased = { at: clock.now(), size: await store.read.audit.size() };
      const since = ((await erasedUntil(store.read))?.at ?? 0) - marginMs;
      const units = new Set(await store.read.tenantRows.destroyedSince(since));
      for await (const { id } of destroyedKeys(store.read, { before: erased.at + 1 })) units.add(id);
      const which = async (): Promise<ReadonlySet<string>> => {
        goOn();
        return units;
      };
      for (const snapshot of held) await eraseUnits(ports, actor, snapshot, which);
    }
  }
  await settleUnfinished(ports);
  // A snapshot that another node is making may have read what was destroyed in the meantime.
  const making = (await listSnapshots(store.read, ['creating'])).filter(isSound);
  if (making.length > 0)
    throw new ServiceError(
      'unavailable',
      'a snapshot is being created: destroyed keys will be erased from it afterwards',
    );
  // Not earlier: the next run erases them from that one, and what leaves until then still has them.
  if (erased !== undefined) {
    const { at, size } = erased;
    await store.write((tx) => tx.decisions.set(erasedSetting, `${at} ${size}`));
  }
};

/**
 * Snapshots of these tenants whose files cannot be reached: the file is missing, or the folder is.
 * One whose row was changed from outside, or is gone, is of any tenant, and is reached only where
 * its file is there.
 */
export const unreachedOf = async (
  { store, archive }: Pick<ErasePorts, 'store' | 'archive'>,
  tenants: () => Promise<ReadonlySet<string>>,
): Promise<readonly Pick<Snapshot, 'id' | 'state'>[]> => {
  const reached = await archive.reached();
  const { rows, hidden } = await store.write((tx) => tx.snapshots.held());
  const unreached = rows.filter((row) => isSound(row) && (!reached || row.state === 'missing'));
  const own = unreached.length === 0 ? new Set<string>() : await tenants();
  const unsure = [...rows.filter((row) => !isSound(row)), ...hidden.map((id) => ({ id, state: 'missing' as const }))];
  const lost: Pick<Snapshot, 'id' | 'state'>[] = [];
  for (const each of unsure) if (!reached || !(await archive.has(each.id))) lost.push(each);
  return [...unreached.filter(({ tenantId }) => own.has(tenantId)), ...lost];
};

/**
 * Snapshots that are waited for, or named instead: their keys are erased when their files are back.
 */
export const markMissing = async (
  { store }: Pick<ErasePorts, 'store'>,
  snapshots: readonly Pick<Snapshot, 'id' | 'state'>[],
): Promise<void> => {
  for (const { id, state } of snapshots)
    if (state !== 'missing')
      await store.write(async (tx) => {
        const now = await tx.snapshots.get(id);
        if (now?.state === state && isSound(now)) await tx.snapshots.update({ ...now, state: 'missing' });
      });
};
