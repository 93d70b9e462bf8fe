// The erasure turn (design: destroy and erasure). After a destruction the store still has old pages, logs and backups that
// hold the destroyed key, sealed. The turn makes them worthless: a new root epoch, new tenant KEKs under it, every live
// record sealed anew, everything proved, then the old root key overwritten in place. Each step looks at what is there
// and does what is missing, so that a turn that was cut off at any point is finished by running it again; until the old
// root is overwritten both open.

import { canonicalJson } from '../base/bytes.ts';
import { toRfc3339 } from '../base/clock.ts';
import { newId, serviceTenantId } from '../base/ids.ts';
import { type Actor, serviceActor } from '../domain/actor.ts';
import type { Key } from '../domain/key.ts';
import type { ErasureHold, ErasureState, ErasureTurns } from '../ports/erasure.ts';
import type { Fleet } from '../ports/fleet.ts';
import type { Ports } from '../ports/ports.ts';
import type { Repositories } from '../ports/store.ts';
import { ever, startedSetting } from './destruction-time.ts';
import { listUnerased, markErased } from './purge-tenant.ts';
import { type DamagedRecord, describeDamage, resealBatch } from './reseal-records.ts';
import { retainStoredKeys } from './retain-keys.ts';
import { eraseFromSnapshots } from './snapshots/erase-destroyed.ts';
import type { RootSpread } from './spread-root.ts';

type TurnPorts = Pick<Ports, 'store' | 'core' | 'ring' | 'root' | 'clock' | 'log' | 'archive' | 'exclusion'> & {
  /** Of several nodes, how each gets the new root key and ends the old one. */
  readonly spread: Pick<RootSpread, 'isEnding' | 'begin' | 'offer' | 'erase' | 'finish'>;
};

/** Damaged records that the audit log names. */
const mostNamed = 20;
/** Records sealed anew in one unit of work: small enough that other writers wait for milliseconds only. */
const batch = 200;
/** What somebody asked to be rotated: `root`, or `tenant`, its id and the epoch of its key then. */
export const askedSetting = 'rotation-asked';
/** The records that held the last turn back, so that it is told once. */
const heldSetting = 'erasure-held';

/** Tells once what holds the turn back. The old root key stays: with it goes the last hope of whoever has a good backup. */
const hold = async (
  { store, root, clock, log }: TurnPorts,
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
    log.error('the erasure turn is held back: stored records do not open', { records: records.length, subjects });
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
  return { since, records, nodes: [] };
};

/** The same for nodes that have not taken the new root key, or still hold the old one. */
const holdForNodes = async (
  { store, root, clock, log }: TurnPorts,
  actor: Actor,
  nodes: readonly string[],
): Promise<ErasureHold> => {
  const told = `nodes ${canonicalJson([...nodes].sort())}`;
  const before = await store.read.settings.get(heldSetting);
  const known = before?.startsWith(`${told} `) === true ? Number(before.slice(told.length + 1)) : null;
  const since = known ?? clock.now();
  if (known === null) {
    log.error('the erasure turn waits for nodes: start them, or remove them', { nodes });
    await store.write(async (tx) => {
      await tx.settings.set(heldSetting, `${told} ${since}`);
      await tx.audit.append({
        kind: 'erasure.held',
        actor,
        tenantId: serviceTenantId,
        subject: { kind: 'service', id: 'service' },
        details: { rootEpoch: root.current.epoch, nodes },
      });
    });
  }
  return { since, records: [], nodes };
};

/** Whether something was destroyed before this time that old copies of the store could still give back. */
const isTurnDue = async (from: Repositories, before: number): Promise<boolean> =>
  (await from.keys.listErasable(before)).length > 0 || (await listUnerased(from, before)).length > 0;

const writeKeks = async (ports: TurnPorts, work: (tx: Repositories) => Promise<unknown>): Promise<void> => {
  try {
    await ports.store.write(work);
  } finally {
    await retainStoredKeys(ports);
  }
};

/** Runs one turn as far as it goes. Answers what holds it back; null when it came to its end, or there was nothing to do. */
export const runErasureTurn = (ports: TurnPorts) => (): Promise<ErasureHold | null> =>
  // Not beside a snapshot that is being made: it would read records whose key is taken away here, and hold what was destroyed.
  ports.exclusion.run(() => runTurn(ports));

const runTurn = async (ports: TurnPorts): Promise<ErasureHold | null> => {
  const { store, ring, root, clock, log, spread } = ports;
  const actor = serviceActor(newId(clock.now()));
  const service = { kind: 'service', id: 'service' } as const;

  const asked = await store.read.settings.get(askedSetting);
  const [, tenantId, epochBefore] = /^tenant (\S+) (\d+)$/.exec(asked ?? '') ?? [];
  let records = 0;
  let turning = true;
  if (!(await spread.isEnding())) {
    if (root.previous === undefined) {
      const due = (await isTurnDue(store.read, ever)) || asked === 'root';
      if (!due && asked === undefined) return null;
      if (due) {
        await spread.begin();
        root.addEpoch();
      }
    } else root.settle();
    // Nothing is sealed under it before every node has it.
    const without = await spread.offer();
    if (without.length > 0) return holdForNodes(ports, actor, without);
    if (!(await ring.upToDate(store.read))) {
      await writeKeks(ports, async (tx) => {
        // What was destroyed before this moment was never sealed under the new keys.
        const destroyed = (await tx.keys.listErasable(ever)).map(({ destroyedAt }) => destroyedAt ?? 0);
        const startedAt = destroyed.reduce((latest, at) => Math.max(latest, at), clock.now()) + 1;
        await tx.settings.set(startedSetting, String(startedAt));
        await ring.addKekEpoch(tx);
        await tx.audit.append({
          kind: 'erasure.started',
          actor,
          tenantId: serviceTenantId,
          subject: service,
          details: { rootEpoch: root.current.epoch, keys: (await tx.keys.listErasable(startedAt)).length },
        });
      });
    }
    // Not when the turn has done it for every tenant, nor when a rotation that was cut off had come as far.
    if (tenantId !== undefined && ring.epochs().get(tenantId) === Number(epochBefore))
      await writeKeks(ports, (tx) => ring.addKekEpoch(tx, tenantId));
    turning = root.previous !== undefined;
    const met = new Map<string, number>();
    for (;;) {
      const { done, damaged } = await store.write((tx) => resealBatch(ports, tx, met, batch));
      if (done + damaged.length === 0) break;
      records += done;
      for (const { tenantId } of damaged) met.set(tenantId, (met.get(tenantId) ?? 0) + 1);
      // Between batches the event loop serves requests.
      await new Promise<void>((resolve) => {
        setImmediate(resolve);
      });
    }
    // Once more from the beginning, with no other writer between: what was repaired or destroyed meanwhile is no hindrance.
    const left: DamagedRecord[] = [];
    await writeKeks(ports, async (tx) => {
      left.length = 0;
      const passed = new Map<string, number>();
      for (;;) {
        const { done, damaged } = await resealBatch(ports, tx, passed, batch);
        if (done + damaged.length === 0) break;
        records += done;
        left.push(...damaged);
        for (const { tenantId } of damaged) passed.set(tenantId, (passed.get(tenantId) ?? 0) + 1);
      }
      if (left.length > 0) return;
      await ring.dropOldKeks(tx);
      await ring.prove(tx);
    });
    if (left.length > 0) return hold(ports, actor, left);
    // As it is stored, with nobody between.
    await store.write((tx) => ring.prove(tx), { durable: false });
    await store.checkpoint();
    await eraseFromSnapshots(ports, actor);
  }
  const holding = await spread.erase();
  if (holding.length > 0) return holdForNodes(ports, actor, holding);
  root.erasePrevious();

  const started = await store.read.settings.get(startedSetting);
  const before = started === undefined ? 0 : Number(started);
  const erasure = root.erasure.overwritesInPlace ? 'overwritten in place' : `best effort on ${root.erasure.fileSystem}`;
  const keys = await store.write(async (tx): Promise<readonly Key[]> => {
    const erased = await tx.keys.listErasable(before);
    const unrecoverableAt = clock.now();
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
        },
      });
    }
    if (asked !== undefined) {
      // Not one that was asked for meanwhile.
      if ((await tx.settings.get(askedSetting)) === asked) await tx.settings.set(askedSetting, null);
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
    if (!turning) return [];
    await markErased(tx, actor, await listUnerased(tx, before), { now: unrecoverableAt, erasure });
    await tx.audit.append({
      kind: 'erasure.finished',
      actor,
      tenantId: serviceTenantId,
      subject: service,
      details: { rootEpoch: root.current.epoch, keys: erased.length, records },
    });
    await tx.settings.set(startedSetting, null);
    await tx.settings.set(heldSetting, null);
    return erased;
  });
  await spread.finish();
  log.info('erasure turn finished', { rootEpoch: root.current.epoch, keys: keys.length });
  return null;
};

export interface ErasureScheduler extends ErasureTurns {
  /** Finishes a turn that was cut off, or runs one for destructions that have not had theirs. Called at start. */
  resume(): Promise<void>;
  /** Resolves when no turn runs; none begins afterwards. */
  stop(): Promise<void>;
}

export const createErasureScheduler = (
  ports: TurnPorts & { readonly fleet: Pick<Fleet, 'holds'> },
  /** How long destructions gather before their common turn, and how long a failed turn waits, and one that is held back. */
  delays: { readonly gatherMs: number; readonly retryMs: number; readonly heldMs: number },
): ErasureScheduler => {
  const { store, root, log, fleet } = ports;
  const run = runErasureTurn(ports);
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let stopped = false;
  let held: ErasureHold | null = null;
  let failure: string | null = null;

  const isDue = async (): Promise<boolean> =>
    (await isTurnDue(store.read, ever)) || (await store.read.settings.get(askedSetting)) !== undefined;
  const later = (ms: number): void => {
    if (stopped || timer !== undefined) return;
    timer = setTimeout(() => {
      timer = undefined;
      start();
    }, ms);
    timer.unref();
  };
  const start = (): void => {
    if (running !== undefined || stopped || !fleet.holds('erasure')) return;
    running = run()
      .then(
        async (holding) => {
          held = holding;
          failure = null;
          // Whatever the operator does about the damaged records is noticed by looking again, which costs next to nothing.
          if (holding !== null) later(delays.heldMs);
          // Destructions that came during the turn need one of their own.
          else if (await isDue()) later(delays.gatherMs);
        },
        (error: unknown) => {
          failure = error instanceof Error ? error.message : 'failed';
          log.error('the erasure turn failed; it will be tried again', { error });
          later(delays.retryMs);
        },
      )
      .catch((error: unknown) => {
        log.error('the erasure turn could not be followed up', { error });
      })
      .finally(() => {
        running = undefined;
      });
  };

  return {
    schedule: () => later(delays.gatherMs),
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
      if (root.previous !== undefined) held = await run();
      if (held !== null) later(delays.heldMs);
      else if (await isDue()) later(delays.gatherMs);
    },
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
};
