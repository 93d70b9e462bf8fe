// The erasure run. After a destruction the store still has old pages, logs and backups with the
// destroyed key, sealed. The run makes them worthless: a new root epoch, new tenant KEKs under it,
// every live record sealed again, everything proved, then the old root key overwritten in place.
// Each step checks what is there and does what is missing, so that a run that was interrupted at
// any point is finished by running it again. Until the old root key is overwritten, both open.
//
// Callers do not wait for it: it writes in short background units, and a caller's unit of work goes
// first (adapters/store/transactions/commit-writer.ts). When it runs: schedule-erasure.ts.

import { newId, serviceTenantId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import { toRfc3339 } from '../../base/time.ts';
import { type Actor, serviceActor } from '../../domain/actor.ts';
import { rotationSetting } from '../../domain/changes.ts';
import type { OutsideCopy } from '../../domain/copies.ts';
import type { Key } from '../../domain/key.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import type { ErasureBlockers } from '../../ports/erasure.ts';
import type { RecordPosition } from '../../ports/key-record.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { filesLeft } from '../copies/copies-of.ts';
import { destroyedKeys, endedValues, ever } from '../keys/destruction-time.ts';
import { retainStoredKeys } from '../keys/forget-unstored-keys.ts';
import { about, aboutService, recordEvent } from '../shared/record-event.ts';
import { eraseFromSnapshots, markMissing, unreachedOf } from '../snapshots/erase-destroyed.ts';
import { listPurged, markErased } from '../tenants/purge-tenant.ts';
import type { AwaitCopies } from './await-copies.ts';
import {
  coveredUntil,
  erasedTenants,
  isConclusionDue,
  isErased,
  isOutdated,
  isRunDue,
  type Walk,
  walkKeys,
} from './conclude-erasure.ts';
import { heldSetting, holdFor, holdForRecords, mostNamed } from './hold-erasure.ts';
import { type DamagedRecord, type ResealStep, resealStep } from './reseal-records.ts';
import type { RootSpread } from './spread-root.ts';

export type RunPorts = Pick<
  Ports,
  'store' | 'core' | 'ring' | 'root' | 'clock' | 'log' | 'archive' | 'exclusion' | 'fleet'
> & {
  /** Gives every node of a fleet the new root key, and ends the old one on each. */
  readonly spread: Pick<RootSpread, 'isEnding' | 'isLeftOver' | 'begin' | 'offer' | 'erase' | 'endOldRoot' | 'finish'>;
  readonly awaitCopies: AwaitCopies;
  /** Brings the receipts of backups into the store. */
  readonly takeReceipts: () => Promise<void>;
  /**
   * Whether a destroyed key becomes unrecoverable while the file of a snapshot that may hold it is
   * missing.
   */
  readonly missingSnapshots: 'wait' | 'name';
};

/** Records resealed in one unit of work: a few milliseconds on either store. */
const recordsAtOnce = 32;
/** Passes over all records before those that are left hold the run. */
const mostPasses = 5;
/** Keys marked as unrecoverable in one unit of work, each with a record in the audit log. */
const keysAtOnce = 10;
/**
 * Snapshots out of reach, of the tenants whose destroyed keys, or which themselves, are to become
 * unrecoverable.
 */
export const missingFor = (
  ports: Pick<RunPorts, 'store' | 'archive'>,
): Promise<readonly Pick<Snapshot, 'id' | 'state'>[]> =>
  unreachedOf(ports, async () => {
    const tenants = new Set((await listPurged(ports.store.read, ever)).map(({ id }) => id));
    for await (const { tenantId } of destroyedKeys(ports.store.read)) tenants.add(tenantId);
    return tenants;
  });

const writeKeks = async (ports: RunPorts, work: (tx: Repositories) => Promise<unknown>): Promise<void> => {
  await ports.store.write(work);
  await retainStoredKeys(ports);
};

/** Thrown when the service stops in the middle of a run: the next start finishes it. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/** Called between two steps: what was done so far is continued by the next start. */
type GoOn = () => void;
const goOnUnless =
  (isStopping: () => boolean): GoOn =>
  () => {
    if (isStopping()) throw new Interrupted('the service is stopping');
  };

const background = { background: true } as const;
const service = { kind: 'service', id: 'service' } as const;

/**
 * Reseals everything that is under an older KEK, a few records at a time. Answers how many, and
 * what does not open.
 */
const resealAll = async (
  ports: RunPorts,
  goOn: GoOn,
): Promise<{ readonly done: number; readonly damaged: readonly DamagedRecord[] }> => {
  const { store, ring } = ports;
  let done = 0;
  const damaged: DamagedRecord[] = [];
  for (const [tenantId, epoch] of ring.epochs())
    for (let after: RecordPosition | null | undefined = undefined; after !== null; ) {
      goOn();
      const from: RecordPosition | undefined = after;
      // A power failure may undo these: the old KEKs are there until the durable commit that
      // follows them all.
      const step: ResealStep = await store.write(
        (tx) => resealStep(ports, tx, { tenantId, epoch }, recordsAtOnce, from),
        {
          ...background,
          durable: false,
        },
      );
      done += step.done;
      damaged.push(...step.damaged);
      after = step.next;
    }
  return { done, damaged };
};

/** Nothing is amiss: the run continues after this time. */
interface Pause {
  readonly forMs: number;
}
export type Outcome = ErasureBlockers | Pause | null;

/**
 * Runs once, as far as possible. Answers what holds the run back, or how long it pauses; null when
 * it is finished, or there was nothing to do.
 */
export const runErasure =
  (ports: RunPorts, isStopping: () => boolean = () => false) =>
  (): Promise<Outcome> =>
    // Not while a snapshot is made: it would read records whose key is removed here, and keep what
    // was destroyed.
    ports.exclusion.run(() => runOnce(ports, isStopping));

/** What is asked of a run, and by whom it is done. */
interface Task {
  readonly actor: Actor;
  /** The rotation that was asked for, as it is stored. */
  readonly asked: string | undefined;
  /** Undefined: not the rotation of a tenant's key. */
  readonly tenantId: string | undefined;
  /** Epoch of the tenant's key when its rotation was requested; NaN without a `tenantId`. */
  readonly epochBefore: number;
}

const readTask = async ({ store, clock }: RunPorts): Promise<Task> => {
  const actor = serviceActor(newId(clock.now()));
  const asked = await store.read.decisions.get(rotationSetting);
  const [, tenantId, epochBefore] = /^tenant (\S+) (\d+)$/.exec(asked ?? '') ?? [];
  return { actor, asked, tenantId, epochBefore: Number(epochBefore) };
};

/**
 * Whether the old root key is to go: the new one is made here, if it is not there. Undefined: there
 * is nothing to do at all.
 */
const beginErasing = async (
  { store, root, spread }: RunPorts,
  asked: string | undefined,
): Promise<boolean | undefined> => {
  const leftOver = await spread.isLeftOver();
  if (root.previous === undefined && !leftOver) {
    const due = (await isRunDue(store.read)) || asked === 'root';
    if (!due && asked === undefined) return undefined;
    if (due) await spread.begin();
  } else if (root.previous !== undefined) {
    await root.reach();
    root.settle();
  }
  return root.previous !== undefined || leftOver;
};

/** New KEKs: of every tenant under a new root key, and of the tenant whose key is to be rotated. */
const addKeks = async (ports: RunPorts, { actor, tenantId, epochBefore }: Task): Promise<void> => {
  const { store, ring, root, clock } = ports;
  if (!(await ring.upToDate(store.read))) {
    await writeKeks(ports, async (tx) => {
      // What was destroyed before this moment was never sealed under the new keys.
      const covered = await coveredUntil(tx);
      let newest = clock.now();
      let keys = 0;
      for await (const { destroyedAt } of destroyedKeys(tx)) {
        newest = Math.max(newest, destroyedAt ?? 0);
        if ((destroyedAt ?? 0) >= covered) keys += 1;
      }
      for await (const { at } of endedValues(tx, covered)) newest = Math.max(newest, at);
      for (const { purgedAt } of await listPurged(tx, ever)) newest = Math.max(newest, purgedAt ?? 0);
      const startedAt = newest + 1;
      await tx.decisions.set('erasure-started', String(startedAt));
      await ring.addKekEpoch(tx);
      await recordEvent(tx, 'erasure.started', actor, aboutService(), {
        rootEpoch: root.current.epoch,
        keys,
      });
    });
  }
  // Not when the run has done it for every tenant, nor when an interrupted rotation had already
  // done it.
  if (tenantId !== undefined && ring.epochs().get(tenantId) === epochBefore)
    await writeKeks(ports, (tx) => ring.addKekEpoch(tx, tenantId));
};

/** Why a run goes no further now. */
interface Halt {
  readonly outcome: Outcome;
}

/**
 * Reseals until nothing is under an old KEK, and removes the old KEKs. Answers how many records
 * were resealed.
 */
const dropOldKeks = async (ports: RunPorts, actor: Actor, goOn: GoOn): Promise<number | Halt> => {
  const { ring } = ports;
  let records = 0;
  for (let passes = 1; ; passes += 1) {
    const { done, damaged } = await resealAll(ports, goOn);
    records += done;
    let isOver = false;
    const left: DamagedRecord[] = [];
    await writeKeks(ports, async (tx) => {
      isOver = false;
      left.length = 0;
      for (const [tenantId, epoch] of ring.epochs())
        left.push(...(await tx.records.listOlder(tenantId, epoch, mostNamed)));
      if (left.length > 0) return;
      // No other writer in between: nothing is under an old KEK.
      await ring.dropOldKeks(tx);
      await ring.prove(tx);
      isOver = true;
    });
    if (isOver) return records;
    // Nothing is sealed under an old KEK, so what is left does not open. What another node has
    // sealed in the meantime is sealed again in the next pass; what stays was not sealed by the
    // service.
    const stuck = damaged.length > 0 ? damaged : passes < mostPasses ? [] : left;
    if (stuck.length > 0) return { outcome: await holdForRecords(ports, actor, stuck) };
  }
};

/** How far a run is when only the old root key is left. */
interface Resealed {
  /** Whether the old root key is to go. */
  readonly erasing: boolean;
  readonly rootEpoch: number;
  readonly records: number;
  /** Snapshots whose files are missing. */
  readonly missing: readonly string[];
}

/**
 * Before the old root key goes: a good backup of a row that was changed from outside may be the
 * only one that says whose its keys are.
 */
const holdForUnknown = async (ports: RunPorts, actor: Actor): Promise<Halt | undefined> => {
  const { unknown, isWhole } = await walkKeys(ports.store);
  if (unknown.length > 0) return { outcome: await holdForRecords(ports, actor, unknown) };
  if (isWhole) return undefined;
  throw new ServiceError('key-tampered', 'rows of the database are not those that the service wrote', {
    hint: 'run dke verify, which names them; the run continues when they are repaired',
  });
};

/**
 * Everything up to the end of the old root key: what is live is under new keys, everywhere, and
 * what was destroyed is in no snapshot.
 */
const resealUnderNewKeys = async (ports: RunPorts, task: Task, isStopping: () => boolean): Promise<Resealed | Halt> => {
  const { store, ring, root, spread } = ports;
  const { actor } = task;
  const goOn = goOnUnless(isStopping);
  const erasing = await beginErasing(ports, task.asked);
  if (erasing === undefined) return { outcome: null };
  const rootEpoch = root.current.epoch;
  // Nothing is sealed under it before every node has it.
  const without = erasing ? await spread.offer() : [];
  if (without.length > 0) return { outcome: await holdFor(ports, actor, 'nodes', without) };
  await addKeks(ports, task);
  const records = await dropOldKeks(ports, actor, goOn);
  if (typeof records !== 'number') return records;
  const held = erasing ? await holdForUnknown(ports, actor) : undefined;
  if (held !== undefined) return held;
  // The keys are proved again, now in the committed state.
  await store.write((tx) => ring.prove(tx), { ...background, durable: false });
  await store.checkpoint();
  if (erasing) {
    // What follows cannot be undone: no copy of the database may come to be the database without
    // what was done so far.
    const { behind, forMs } = await ports.awaitCopies(isStopping);
    goOn();
    if (behind.length > 0) return { outcome: await holdFor(ports, actor, 'standbys', behind) };
    if (forMs > 0) return { outcome: { forMs } };
  }
  await eraseFromSnapshots(ports, actor, goOn);
  const unreached = await missingFor(ports);
  const missing = unreached.map(({ id }) => id);
  // Snapshots in a folder that is not mounted are marked, too: when it is back, the keys are erased
  // before anything else is done with the files.
  await markMissing(ports, unreached);
  if (missing.length > 0 && ports.missingSnapshots === 'wait')
    return { outcome: await holdFor(ports, actor, 'snapshots', missing) };
  return { erasing, rootEpoch, records, missing };
};

/** What is unrecoverable now. */
interface Erased {
  /** What was destroyed before this time. */
  readonly before: number;
  readonly unrecoverableAt: number;
  /** How the old root key was overwritten. */
  readonly erasure: string;
  readonly missing: readonly string[];
}

/** What the record of a key or tenant has beside it. */
const exceptions = (missing: readonly string[], files: readonly OutsideCopy[]) => {
  const rootBackups = files.filter(({ kind }) => kind === 'root-backup').length;
  return {
    ...(missing.length === 0 ? {} : { except: missing.slice(0, mostNamed) }),
    // Root backups also open copies of the database that the service does not know.
    ...(rootBackups === 0 ? {} : { rootBackups }),
  };
};

/**
 * Does work in a unit of work in which what a walk over all keys has found is true: where a restore
 * has made copies since, the walk is done again. `walk`: one that was done before, if there is one.
 */
const concluding = async <T>(
  { store }: Pick<RunPorts, 'store'>,
  walk: Walk | undefined,
  work: (tx: Repositories, walk: Walk) => Promise<T>,
  options: Parameters<RunPorts['store']['write']>[1] = {},
): Promise<{ readonly answer: T; readonly walk: Walk }> => {
  for (let found = walk; ; found = undefined) {
    const current: Walk = found ?? (await walkKeys(store));
    const done = await store.write(
      async (tx) => ((await isOutdated(tx, current)) ? undefined : { answer: await work(tx, current) }),
      options,
    );
    if (done !== undefined) return { ...done, walk: current };
  }
};

/** Marks a few of the keys behind one of them; answers how many, and where it has come to. */
const markSome = async (
  tx: Repositories,
  actor: Actor,
  { before, unrecoverableAt, erasure, missing }: Erased,
  walk: Walk,
  after: Key | undefined,
): Promise<{ readonly marked: number; readonly after: Key | undefined; readonly isLast: boolean }> => {
  if (walk.unknown.length > 0) return { marked: 0, after, isLast: true };
  const page = await tx.keys.listErasable({ since: 0, before }, keysAtOnce, after);
  const files = await filesLeft(tx);
  const named = exceptions(missing, files);
  let marked = 0;
  for (const key of page) {
    if (key.integrity !== 'ok' || key.state !== 'destroyed' || !(await isErased(tx, key, walk, files))) continue;
    marked += 1;
    await tx.keys.update({ ...key, unrecoverableAt });
    await recordEvent(tx, 'key.unrecoverable', actor, about('key', key), {
      name: key.name,
      destroyedAt: key.destroyedAt === null ? null : toRfc3339(key.destroyedAt),
      unrecoverableAt: toRfc3339(unrecoverableAt),
      erasure,
      ...named,
    });
  }
  return { marked, after: page.at(-1), isLast: page.length < keysAtOnce };
};

/** Answers how many keys these are. */
const markKeys = async (ports: RunPorts, actor: Actor, erased: Erased, goOn: GoOn): Promise<number> => {
  let keys = 0;
  let last: Key | undefined;
  let known: Walk | undefined;
  for (let isLast = false; !isLast; ) {
    goOn();
    const step = (tx: Repositories, walk: Walk) => markSome(tx, actor, erased, walk, last);
    const { answer, walk } = await concluding(ports, known, step, background);
    keys += answer.marked;
    [last, isLast, known] = [answer.after, answer.isLast, walk];
  }
  return keys;
};

const recordRotation = async (
  tx: Repositories,
  { ring, root }: RunPorts,
  { actor, asked, tenantId }: Task,
  records: number,
): Promise<void> => {
  // A rotation that was asked for since then stays.
  if ((await tx.decisions.get(rotationSetting)) === asked) await tx.decisions.set(rotationSetting, null);
  await tx.audit.append(
    tenantId === undefined
      ? {
          kind: 'root.rotated',
          actor,
          tenantId: serviceTenantId,
          subject: service,
          details: { rootEpoch: root.current.epoch, records },
        }
      : {
          kind: 'tenant.key-rotated',
          actor,
          tenantId,
          subject: { kind: 'tenant', id: tenantId },
          details: { epoch: ring.epochs().get(tenantId) ?? 0, records },
        },
  );
};

const markTenants = async (
  tx: Repositories,
  actor: Actor,
  { before, unrecoverableAt, erasure, missing }: Erased,
  walk: Walk,
): Promise<void> => {
  const files = await filesLeft(tx);
  const purged = walk.unknown.length > 0 ? [] : await erasedTenants(tx, before, walk, files);
  const named = exceptions(missing, files);
  await markErased(tx, actor, purged, { now: unrecoverableAt, erasure, named });
};

const howErased = ({ erasure }: RunPorts['root']): string =>
  erasure.overwritesInPlace ? 'overwritten in place' : `best effort on ${erasure.fileSystem}`;

/** What an earlier run has covered, and had to wait for copies that are gone now. */
const concludeEarlier = async (ports: RunPorts, actor: Actor, goOn: GoOn): Promise<Outcome> => {
  const { store, root, clock, log } = ports;
  if (!(await isConclusionDue(store))) return null;
  await ports.takeReceipts();
  const missing = (await missingFor(ports)).map(({ id }) => id);
  if (missing.length > 0 && ports.missingSnapshots === 'wait') return holdFor(ports, actor, 'snapshots', missing);
  const before = await coveredUntil(store.read);
  const unrecoverableAt = Math.max(clock.now(), before);
  const erased: Erased = { before, unrecoverableAt, erasure: howErased(root), missing };
  const keys = await markKeys(ports, actor, erased, goOn);
  // Keys of purged tenants were marked since the last walk.
  await concluding(ports, undefined, (tx, walk) => markTenants(tx, actor, erased, walk));
  log.info('destroyed keys are unrecoverable: the copies that they waited for are gone', { keys });
  return null;
};

const recordErasure = async (
  tx: Repositories,
  { root }: RunPorts,
  actor: Actor,
  erased: Erased,
  counts: { readonly keys: number; readonly records: number },
  walk: Walk,
): Promise<void> => {
  await markTenants(tx, actor, erased, walk);
  const values = new Set<number>();
  for await (const { handle, at } of endedValues(tx, await coveredUntil(tx)))
    if (at < erased.before) values.add(handle);
  await recordEvent(tx, 'erasure.finished', actor, aboutService(), {
    rootEpoch: root.current.epoch,
    ...counts,
    objects: values.size,
  });
  await tx.decisions.set('erasure-started', null);
  await tx.decisions.set('erasure-covered', String(erased.before));
  await tx.settings.set(heldSetting, null);
};

const runOnce = async (ports: RunPorts, isStopping: () => boolean): Promise<Outcome> => {
  const { store, root, clock, log, spread } = ports;
  const task = await readTask(ports);
  const { actor } = task;
  const ending: Resealed = { erasing: true, rootEpoch: root.current.epoch, records: 0, missing: [] };
  const resealed = (await spread.isEnding()) ? ending : await resealUnderNewKeys(ports, task, isStopping);
  if ('outcome' in resealed)
    return resealed.outcome === null ? concludeEarlier(ports, actor, goOnUnless(isStopping)) : resealed.outcome;

  const { erasing, rootEpoch, records, missing } = resealed;
  const holding = erasing ? await spread.erase(rootEpoch) : [];
  if (holding.length > 0) return holdFor(ports, actor, 'nodes', holding);
  await spread.endOldRoot();

  // A backup that read the root key or the database before has left its receipt.
  await ports.takeReceipts();
  const started = await store.read.decisions.get('erasure-started');
  const before = started === undefined ? 0 : Number(started);
  const erased: Erased = {
    before,
    // Another node, whose clock is ahead, may have destroyed it: everything that this run covers
    // was destroyed before this time.
    unrecoverableAt: Math.max(clock.now(), before),
    erasure: howErased(root),
    missing,
  };
  const keys = await markKeys(ports, actor, erased, goOnUnless(isStopping));
  await concluding(ports, undefined, async (tx, walk) => {
    if (task.asked !== undefined) await recordRotation(tx, ports, task, records);
    if (erasing) await recordErasure(tx, ports, actor, erased, { keys, records }, walk);
  });
  await spread.finish();
  log.info('erasure run finished', { rootEpoch: root.current.epoch, keys });
  return null;
};
