// The erasure turn (design: destroy and erasure). After a destruction the store still has old pages, logs and backups that
// hold the destroyed key, sealed. The turn makes them worthless: a new root epoch, new tenant KEKs under it, every live
// record sealed anew, everything proved, then the old root key overwritten in place. Each step looks at what is there
// and does what is missing, so that a turn that was cut off at any point is finished by running it again; until the old
// root is overwritten both open.

import { toRfc3339 } from '../base/clock.ts';
import { newId, serviceTenantId } from '../base/ids.ts';
import { serviceActor } from '../domain/actor.ts';
import type { Key } from '../domain/key.ts';
import type { ErasureTurns } from '../ports/erasure.ts';
import type { Ports } from '../ports/ports.ts';
import type { Repositories } from '../ports/store.ts';

type TurnPorts = Pick<Ports, 'store' | 'ring' | 'root' | 'clock' | 'log'>;

/** Records sealed anew in one unit of work: small enough that other writers wait for milliseconds only. */
const batch = 200;
const startedSetting = 'erasure-started';

const writeKeks = async ({ store, ring }: TurnPorts, work: (tx: Repositories) => Promise<unknown>): Promise<void> => {
  try {
    await store.write(work);
  } finally {
    await ring.retainStored(store.read);
  }
};

export const runErasureTurn = (ports: TurnPorts) => async (): Promise<void> => {
  const { store, ring, root, clock, log } = ports;
  const actor = serviceActor(newId(clock.now()));
  const service = { kind: 'service', id: 'service' } as const;

  if (root.previous === undefined) {
    if ((await store.read.keys.listErasable(clock.now() + 1)).length === 0) return;
    root.addEpoch();
  }
  if (!(await ring.upToDate(store.read))) {
    await writeKeks(ports, async (tx) => {
      // What was destroyed before this moment was never sealed under the new keys.
      const startedAt = clock.now() + 1;
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
  let records = 0;
  for (;;) {
    const done = await store.write((tx) => ring.resealBatch(tx, batch));
    if (done === 0) break;
    records += done;
    // Between batches the event loop serves requests.
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
  }
  await writeKeks(ports, async (tx) => {
    while ((await ring.resealBatch(tx, batch)) > 0) records += batch;
    await ring.dropOldKeks(tx);
    await ring.prove(tx);
  });
  await ring.prove(store.read);
  await store.checkpoint();
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
    await tx.audit.append({
      kind: 'erasure.finished',
      actor,
      tenantId: serviceTenantId,
      subject: service,
      details: { rootEpoch: root.current.epoch, keys: erased.length, records },
    });
    await tx.settings.set(startedSetting, null);
    return erased;
  });
  log.info('erasure turn finished', { rootEpoch: root.current.epoch, keys: keys.length });
};

export interface ErasureScheduler extends ErasureTurns {
  /** Finishes a turn that was cut off, or runs one for destructions that have not had theirs. Called at start. */
  resume(): Promise<void>;
  /** Resolves when no turn runs; none begins afterwards. */
  stop(): Promise<void>;
}

export const createErasureScheduler = (
  ports: TurnPorts,
  /** How long destructions gather before their common turn, and how long a failed turn waits. */
  delays: { readonly gatherMs: number; readonly retryMs: number },
): ErasureScheduler => {
  const { store, root, clock, log } = ports;
  const run = runErasureTurn(ports);
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let stopped = false;

  const later = (ms: number): void => {
    if (stopped || timer !== undefined) return;
    timer = setTimeout(() => {
      timer = undefined;
      start();
    }, ms);
    timer.unref();
  };
  const start = (): void => {
    if (running !== undefined || stopped) return;
    running = run()
      .then(
        async () => {
          // Destructions that came during the turn need one of their own.
          if ((await store.read.keys.listErasable(clock.now() + 1)).length > 0) later(delays.gatherMs);
        },
        (error: unknown) => {
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
    resume: async () => {
      if (root.previous !== undefined) await run();
      if ((await store.read.keys.listErasable(clock.now() + 1)).length > 0) later(delays.gatherMs);
    },
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
};
