// The erasure run. After a destruction the store still has old pages, logs and backups with the destroyed key, sealed. The run makes them
// worthless: a new root epoch, new tenant KEKs under it, every live record sealed again, everything proved, then the old root key
// overwritten in place. Each step checks what is there and does what is missing, so that a run that was interrupted at any point is finished
// by running it again. Until the old root key is overwritten, both open.
//
// Callers do not wait for it: it writes in short background units, and a caller's unit of work goes first (store/writer.ts).

import { canonicalJson } from '../../base/bytes.ts';
import { toRfc3339 } from '../../base/clock.ts';
import { newId, serviceTenantId } from '../../base/ids.ts';
import { type Actor, serviceActor } from '../../domain/actor.ts';
import { rotationSetting } from '../../domain/changes.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import type { Tenant } from '../../domain/tenant.ts';
import type { ErasureHold, ErasureRuns, ErasureState } from '../../ports/erasure.ts';
import type { Fleet } from '../../ports/fleet.ts';
import type { Ports } from '../../ports/ports.ts';
import type { RecordPosition } from '../../ports/records.ts';
import type { Repositories } from '../../ports/store.ts';
import { ever, startedSetting } from '../keys/destruction-time.ts';
import { retainStoredKeys } from '../keys/forget-unstored-keys.ts';
import { DutyLost } from '../nodes/node-duties.ts';
import { eraseFromSnapshots, markMissing, unreachedOf } from '../snapshots/erase-destroyed.ts';
import { recoverMissing } from '../snapshots/recover-missing.ts';
import { listUnerased, markErased } from '../tenants/purge-tenant.ts';
import type { AwaitCopies } from './await-copies.ts';
import { type DamagedRecord, describeDamage, type ResealStep, resealStep } from './reseal-records.ts';
import type { RootSpread } from './spread-root.ts';

type RunPorts = Pick<Ports, 'store' | 'core' | 'ring' | 'root' | 'clock' | 'log' | 'archive' | 'exclusion'> & {
  /** Of several nodes, how each gets the new root key and ends the old one. */
  readonly spread: Pick<RootSpread, 'isEnding' | 'isLeftOver' | 'begin' | 'offer' | 'erase' | 'endOldRoot' | 'finish'>;
  readonly awaitCopies: AwaitCopies;
  /** Whether a destroyed key becomes unrecoverable while the file of a snapshot that may hold it is missing. */
  readonly missingSnapshots: 'wait' | 'name';
};

/** Damaged records that the audit log names. */
const mostNamed = 20;
/** Records resealed in one unit of work: a few milliseconds on either store. */
const recordsAtOnce = 32;
/** Keys marked as unrecoverable in one unit of work, each with a record in the audit log. */
const keysAtOnce = 10;
/** Destroyed keys whose tenants are looked up. */
const mostLooked = 10_000;
/** What held the last run back, so that it is reported once. */
const heldSetting = 'erasure-held';

/** Reports once what holds the run back. The old root key stays: a good backup of the records opens only with it. */
const hold = async (
  { store, root, clock, log }: RunPorts,
  actor: Actor,
  damaged: readonly DamagedRecord[],
): Promise<ErasureHold> => {
  const records = await describeDamage(store.read, damaged);
  const told = canonicalJson(records.map(({ id, version, copy }) => `${copy} ${version} ${id}`));
  const before = await store.read.settings.get(heldSetting);
  const known = before?.startsWith(`${told} `) === true ? Number(before.slice(told.length + 1)) : null;
  const since = known ?? clock.now();
  if (known === null) {
    const subjects = records.slice(0, mostNamed).map(({ kind, id, name, copy }) => ({ kind, id, name, copy }));
    log.error('the erasure run is blocked: stored records cannot be opened (dke status names them)', {
      records: records.length,
      subjects,
    });
    await store.write(async (tx) => {
      await tx.settings.set(heldSetting, `${told} ${since}`);
      await tx.audit.append({
        kind: 'erasure.held',
        actor,
        tenantId: serviceTenantId,
        subject: { kind: 'service', id: 'service' },
        details: { rootEpoch: root.current.epoch, records: records.length, subjects },
      });
    });
  }
  return { since, records, nodes: [], standbys: [], snapshots: [] };
};

const waitsFor = {
  nodes: 'the erasure run waits for nodes: start them, or remove them (dke node remove NAME)',
  standbys:
    'the erasure run waits for copies of the database that have not stored the new records: bring them up to date, or drop their replication slots',
  snapshots:
    'the erasure run waits for missing snapshot files: mount their disk or restore them, or delete the snapshots',
} as const;

/** The same for what an operator must bring back or give up. */
const holdFor = async (
  { store, root, clock, log }: RunPorts,
  actor: Actor,
  what: keyof typeof waitsFor,
  names: readonly string[],
): Promise<ErasureHold> => {
  const told = `${what} ${canonicalJson([...names].sort())}`;
  const before = await store.read.settings.get(heldSetting);
  const known = before?.startsWith(`${told} `) === true ? Number(before.slice(told.length + 1)) : null;
  const since = known ?? clock.now();
  if (known === null) {
    log.error(waitsFor[what], { [what]: names });
    await store.write(async (tx) => {
      await tx.settings.set(heldSetting, `${told} ${since}`);
      await tx.audit.append({
        kind: 'erasure.held',
        actor,
        tenantId: serviceTenantId,
        subject: { kind: 'service', id: 'service' },
        details: { rootEpoch: root.current.epoch, [what]: names },
      });
    });
  }
  return { since, records: [], nodes: [], standbys: [], snapshots: [], [what]: names };
};

/**
 * What the last run has covered: what was destroyed before this time. A key that stays recoverable because another tenant has a copy of it needs
 * one run, and another one only when its copies are destroyed.
 */
const coveredSetting = 'erasure-covered';
const coveredUntil = async (from: Pick<Repositories, 'settings'>): Promise<number> =>
  Number((await from.settings.get(coveredSetting)) ?? 0);

/** Whether something was destroyed that old copies of the store could still reveal. */
const isRunDue = async (from: Repositories): Promise<boolean> => {
  const covered = await coveredUntil(from);
  if ((await from.keys.erasable(ever, covered)).count > 0) return true;
  for (const { id, purgedAt } of await listUnerased(from, ever))
    if ((purgedAt ?? 0) >= covered || !(await from.keys.hasRecoverable(id))) return true;
  return false;
};

/** Snapshots out of reach, of the tenants whose destroyed keys, or which themselves, are to become unrecoverable. */
const missingFor = (ports: Pick<RunPorts, 'store' | 'archive'>): Promise<readonly Snapshot[]> =>
  unreachedOf(
    ports,
    async () =>
      new Set([
        ...(await ports.store.read.keys.listErasable(ever, mostLooked)).map(({ tenantId }) => tenantId),
        ...(await listUnerased(ports.store.read, ever)).map(({ id }) => id),
      ]),
  );

const writeKeks = async (ports: RunPorts, work: (tx: Repositories) => Promise<unknown>): Promise<void> => {
  try {
    await ports.store.write(work);
  } finally {
    await retainStoredKeys(ports);
  }
};

/** Thrown when the service stops in the middle of a run: the next start finishes it. */
class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

const background = { background: true } as const;

/** Reseals everything that is under an older KEK, a few records at a time. Answers how many, and what does not open. */
const resealAll = async (
  ports: RunPorts,
  isStopping: () => boolean,
): Promise<{ readonly done: number; readonly damaged: readonly DamagedRecord[] }> => {
  const { store, ring } = ports;
  let done = 0;
  const damaged: DamagedRecord[] = [];
  for (const [tenantId, epoch] of ring.epochs())
    for (let after: RecordPosition | null | undefined = undefined; after !== null; ) {
      if (isStopping()) throw new Interrupted('the service is stopping');
      const from: RecordPosition | undefined = after;
      // A power failure may undo these: the old KEKs are there until the durable commit that follows them all.
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

/** Nothing is amiss: the run goes on after this time. */
interface Pause {
  readonly forMs: number;
}
type Outcome = ErasureHold | Pause | null;

/** Runs once, as far as possible. Answers what holds the run back, or how long it pauses; null when it is finished, or there was nothing to do. */
export const runErasure =
  (ports: RunPorts, isStopping: () => boolean = () => false) =>
  (): Promise<Outcome> =>
    // Not while a snapshot is made: it would read records whose key is removed here, and keep what was destroyed.
    ports.exclusion.run(() => runOnce(ports, isStopping));

const runOnce = async (ports: RunPorts, isStopping: () => boolean): Promise<Outcome> => {
  const { store, ring, root, clock, log, spread } = ports;
  const actor = serviceActor(newId(clock.now()));
  const service = { kind: 'service', id: 'service' } as const;

  const asked = await store.read.settings.get(rotationSetting);
  const [, tenantId, epochBefore] = /^tenant (\S+) (\d+)$/.exec(asked ?? '') ?? [];
  let records = 0;
  let erasing = true;
  let rootEpoch = root.current.epoch;
  /** Snapshots whose files are missing. */
  let missing: readonly string[] = [];
  if (!(await spread.isEnding())) {
    const leftOver = await spread.isLeftOver();
    if (root.previous === undefined && !leftOver) {
      const due = (await isRunDue(store.read)) || asked === 'root';
      if (!due && asked === undefined) return null;
      if (due) {
        await spread.begin();
      }
    } else if (root.previous !== undefined) root.settle();
    erasing = root.previous !== undefined || leftOver;
    rootEpoch = root.current.epoch;
    // Nothing is sealed under it before every node has it.
    const without = erasing ? await spread.offer() : [];
    if (without.length > 0) return holdFor(ports, actor, 'nodes', without);
    if (!(await ring.upToDate(store.read))) {
      await writeKeks(ports, async (tx) => {
        // What was destroyed before this moment was never sealed under the new keys.
        const covered = await coveredUntil(tx);
        const { newest } = await tx.keys.erasable(ever, covered);
        const startedAt = Math.max(newest ?? 0, clock.now()) + 1;
        await tx.settings.set(startedSetting, String(startedAt));
        await ring.addKekEpoch(tx);
        await tx.audit.append({
          kind: 'erasure.started',
          actor,
          tenantId: serviceTenantId,
          subject: service,
          details: { rootEpoch: root.current.epoch, keys: (await tx.keys.erasable(startedAt, covered)).count },
        });
      });
    }
    // Not when the run has done it for every tenant, nor when an interrupted rotation had already done it.
    if (tenantId !== undefined && ring.epochs().get(tenantId) === Number(epochBefore))
      await writeKeks(ports, (tx) => ring.addKekEpoch(tx, tenantId));
    for (;;) {
      const { done, damaged } = await resealAll(ports, isStopping);
      records += done;
      let isOver = false;
      await writeKeks(ports, async (tx) => {
        isOver = false;
        for (const [tenantId, epoch] of ring.epochs())
          if ((await tx.records.listOlder(tenantId, epoch, 1)).length > 0) return;
        // No other writer in between: nothing is under an old KEK.
        await ring.dropOldKeks(tx);
        await ring.prove(tx);
        isOver = true;
      });
      if (isOver) break;
      // Nothing is sealed under an old KEK any more, so what is left does not open.
      if (damaged.length > 0) return hold(ports, actor, damaged);
    }
    // Once more as it is committed.
    await store.write((tx) => ring.prove(tx), { ...background, durable: false });
    await store.checkpoint();
    if (erasing) {
      // What follows cannot be undone: no copy of the database may come to be the database without what was done so far.
      const { behind, forMs } = await ports.awaitCopies(isStopping);
      if (isStopping()) throw new Interrupted('the service is stopping');
      if (behind.length > 0) return holdFor(ports, actor, 'standbys', behind);
      if (forMs > 0) return { forMs };
    }
    await eraseFromSnapshots(ports, actor);
    const unreached = await missingFor(ports);
    missing = unreached.map(({ id }) => id);
    // Those of a folder that is not mounted, too: when it is back, the keys are erased before anything else is done with the files.
    await markMissing(ports, unreached);
    if (missing.length > 0 && ports.missingSnapshots === 'wait') return holdFor(ports, actor, 'snapshots', missing);
  }
  const holding = erasing ? await spread.erase(rootEpoch) : [];
  if (holding.length > 0) return holdFor(ports, actor, 'nodes', holding);
  await spread.endOldRoot();

  const started = await store.read.settings.get(startedSetting);
  const before = started === undefined ? 0 : Number(started);
  const erasure = root.erasure.overwritesInPlace ? 'overwritten in place' : `best effort on ${root.erasure.fileSystem}`;
  let keys = 0;
  const unrecoverableAt = clock.now();
  for (let marked = keysAtOnce; marked === keysAtOnce; keys += marked)
    marked = await store.write(async (tx) => {
      const erased = await tx.keys.listErasable(before, keysAtOnce);
      for (const key of erased) {
        await tx.keys.update({ ...key, unrecoverableAt, integrity: 'ok' });
        await tx.audit.append({
          kind: 'key.unrecoverable',
          actor,
          tenantId: key.tenantId,
          subject: { kind: 'key', id: key.id },
          details: {
            name: key.name,
            destroyedAt: key.destroyedAt === null ? null : toRfc3339(key.destroyedAt),
            unrecoverableAt: toRfc3339(unrecoverableAt),
            erasure,
            ...(missing.length === 0 ? {} : { except: missing.slice(0, mostNamed) }),
          },
        });
      }
      return erased.length;
    }, background);
  await store.write(async (tx) => {
    if (asked !== undefined) {
      // A rotation that was asked for since then stays.
      if ((await tx.settings.get(rotationSetting)) === asked) await tx.settings.set(rotationSetting, null);
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
    }
    if (!erasing) return;
    const purged: Tenant[] = [];
    for (const tenant of await listUnerased(tx, before))
      if (!(await tx.keys.hasRecoverable(tenant.id))) purged.push(tenant);
    await markErased(tx, actor, purged, { now: unrecoverableAt, erasure, missing });
    await tx.audit.append({
      kind: 'erasure.finished',
      actor,
      tenantId: serviceTenantId,
      subject: service,
      details: { rootEpoch: root.current.epoch, keys, records },
    });
    await tx.settings.set(startedSetting, null);
    await tx.settings.set(coveredSetting, String(before));
    await tx.settings.set(heldSetting, null);
  });
  await spread.finish();
  log.info('erasure run finished', { rootEpoch: root.current.epoch, keys });
  return null;
};

export interface ErasureScheduler extends ErasureRuns {
  /** Finishes a run that was interrupted, or starts one for destructions that have not had theirs. Called at start. */
  resume(): Promise<void>;
  /** Interrupts a run that is under way, and resolves when none is. None begins afterwards. */
  stop(): Promise<void>;
}

export const createErasureScheduler = (
  ports: RunPorts & { readonly fleet: Pick<Fleet, 'holds' | 'perform'> },
  /** How long destructions are collected for one run, and how long a run waits that has failed, and one that is held back. */
  delays: { readonly gatherMs: number; readonly retryMs: number; readonly heldMs: number },
): ErasureScheduler => {
  const recoverSnapshots = recoverMissing(ports);
  const { store, root, clock, log, fleet } = ports;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let stopped = false;
  let held: ErasureHold | null = null;
  let failure: string | null = null;
  const runOnceMore = runErasure(ports, () => stopped);
  /** While files of snapshots are missing, a run only checks whether they still are. */
  const run = async (): Promise<Outcome> => {
    if (held === null || held.snapshots.length === 0) return runOnceMore();
    await recoverSnapshots();
    return (await missingFor(ports)).length > 0 ? held : runOnceMore();
  };
  /** How long the last run took. The next one collects destructions for as long, so that runs take at most half of the time. */
  let lastMs = 0;

  const isDue = async (): Promise<boolean> =>
    (await isRunDue(store.read)) || (await store.read.settings.get(rotationSetting)) !== undefined;
  const later = (ms: number): void => {
    if (stopped || timer !== undefined) return;
    timer = setTimeout(() => {
      timer = undefined;
      start();
    }, ms);
    timer.unref();
  };
  const soon = (): void => later(Math.max(delays.gatherMs, lastMs));
  const start = (): void => {
    if (running !== undefined || stopped) return;
    if (!fleet.holds('erasure')) {
      // The node that has the duty says how far it is.
      [held, failure] = [null, null];
      return;
    }
    const began = clock.monotonic();
    running = fleet
      .perform('erasure', run)
      .then(
        async (outcome) => {
          // Another node has the duty now.
          if (outcome === undefined) return;
          const pauseMs = outcome !== null && 'forMs' in outcome ? outcome.forMs : 0;
          const holding = outcome === null || 'forMs' in outcome ? null : outcome;
          held = holding;
          failure = null;
          lastMs = clock.monotonic() - began;
          // The next check, which costs next to nothing, finds what the operator did about the damaged records.
          if (holding !== null) later(delays.heldMs);
          else if (pauseMs > 0) later(pauseMs);
          // Destructions during the run need another one.
          else if (await isDue()) soon();
        },
        (error: unknown) => {
          if (error instanceof Interrupted) return;
          if (error instanceof DutyLost) {
            // This node may have it again: only the fencing number of this work is too old.
            if (fleet.holds('erasure')) later(delays.heldMs);
            return;
          }
          failure = error instanceof Error ? error.message : 'failed';
          log.error('the erasure run failed and will be retried', { error });
          later(delays.retryMs);
        },
      )
      .catch((error: unknown) => {
        log.error('the erasure run could not be followed up', { error });
      })
      .finally(() => {
        running = undefined;
      });
  };

  return {
    schedule: soon,
    state: (): ErasureState => {
      if (held !== null) return { state: 'held', hold: held, failure: null };
      if (failure !== null) return { state: 'failed', hold: null, failure };
      return {
        state: running !== undefined ? 'running' : timer === undefined ? 'idle' : 'waiting',
        hold: null,
        failure: null,
      };
    },
    resume: async () => {
      if (!fleet.holds('erasure')) return;
      // The service serves meanwhile.
      if (root.previous !== undefined) start();
      else if (await isDue()) soon();
    },
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
};
