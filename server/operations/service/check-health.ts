// Deep health: the store writes and reads, the root key is there, the service's own test key
// round-trips. A good answer is kept for ten seconds, a bad one for two, so that probes cost
// nothing and recovery shows soon.
//
// A store that takes no writes (a full disk) stops changes, not the use of keys: a monitor must not
// cut off databases and clouds that are served well. The same is true of a wrong clock, a full disk
// of the node, and settings with which the database may lose what it confirms: they make the node
// degraded, and every node tells the one that notifies (told-health.ts).

import { ServiceError } from '../../base/service-error.ts';
import type { NodeState } from '../../ports/node-state.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Health, HealthCheck, StatusOperations } from './service-operations.ts';

const keepGoodMs = 10_000;
const keepBadMs = 2_000;
/** Who asks for the health has little patience. */
const patienceMs = 2_000;
/** Signatures of requests are refused at 300 s. */
const clockMs = 30_000;
/** What stops the use of keys when it fails. */
const vital: readonly HealthCheck['name'][] = ['root-key', 'round-trip'];

/** Throws when it takes longer than that; what was asked for continues. */
const soon = async <T>(what: string, probe: Promise<T>): Promise<T> => {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new ServiceError('dependency-timeout', `${what} has not answered for ${patienceMs / 1000} s`)),
    patienceMs,
  );
  try {
    return await Promise.race([probe, late.promise]);
  } finally {
    clearTimeout(timer);
    probe.catch(() => undefined);
  }
};

type HealthPorts = Pick<Ports, 'store' | 'root' | 'ring' | 'directory' | 'clock' | 'log' | 'identity' | 'fleet'>;

const requireClock = (aheadMs: number): void => {
  if (Math.abs(aheadMs) <= clockMs) return;
  throw new ServiceError(
    'unavailable',
    `the clock of this node is ${Math.round(Math.abs(aheadMs) / 1000)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} those of the database and the other nodes`,
    { hint: 'correct it, and check its time service (docs/clock.md)' },
  );
};

const requireKept = (risks: readonly string[]): void => {
  if (risks.length === 0) return;
  throw new ServiceError('unavailable', `the database may lose what it confirms: ${risks.join(', ')}`, {
    hint: 'set them to on and reload the configuration of PostgreSQL (docs/postgresql.md)',
  });
};

const diskFault = (error: unknown): ServiceError => {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  return ['ENOSPC', 'EDQUOT'].includes(code)
    ? new ServiceError('unavailable', 'the disk of the data directory is full', {
        hint: 'free space on it',
        cause: error,
      })
    : new ServiceError('unavailable', `the data directory takes no file (${code})`, {
        hint: 'check its disk, and that it belongs to the user of the service',
        cause: error,
      });
};

export const checkHealth = (
  { store, root, ring, directory, clock, log, identity, fleet }: HealthPorts,
  dataDirectory: {
    /** Throws when it takes no file. */
    readonly probe: () => Promise<void>;
  } & Pick<NodeState, 'refusal'>,
): StatusOperations['health'] => {
  let probing: Promise<void> | undefined;
  /** One that hangs is not asked again. */
  const disk = (): Promise<void> => {
    probing ??= dataDirectory
      .probe()
      .catch((error: unknown) => {
        throw diskFault(error);
      })
      .finally(() => {
        probing = undefined;
      });
    return probing;
  };
  /** Who may not use keys, or is to be left alone, gets no requests. */
  const stays = (): boolean => !identity.stopping() && fleet.takesRequests();
  let last: { readonly health: Health; readonly until: number } | undefined;
  let running: Promise<Health> | undefined;

  const check = async (name: HealthCheck['name'], work: () => void | Promise<void>): Promise<HealthCheck> => {
    const begin = clock.monotonic();
    try {
      await work();
      return { name, healthy: true, detail: 'holds', durationMs: clock.monotonic() - begin };
    } catch (error) {
      const message = error instanceof Error ? error.message : 'failed';
      const hint = error instanceof ServiceError ? error.hint : undefined;
      const detail = hint === undefined ? message : `${message}: ${hint}`;
      // Once, not every two seconds: what fails is often the disk that the log is on.
      if (last?.health.checks.find((one) => one.name === name)?.healthy !== false)
        log.error('a health check failed', { check: name, error, ...(hint === undefined ? {} : { hint }) });
      return { name, healthy: false, detail, durationMs: clock.monotonic() - begin };
    }
  };
  const run = async (): Promise<Health> => {
    const checks = [
      await check('store', async () => {
        if (!fleet.hears())
          throw new ServiceError(
            'unavailable',
            'this node does not receive changes: its connection to the database is down',
          );
        await soon('the store', store.probe());
      }),
      await check('root-key', () => root.check()),
      await check('round-trip', () => ring.selfTest()),
      await check('clock', () => requireClock(fleet.clockAheadMs())),
      await check('disk', async () => {
        const refusal = dataDirectory.refusal();
        if (refusal !== undefined) throw refusal;
        await soon('the disk of the data directory', disk());
      }),
      // While it does not answer, nothing is known of it, and another check says so.
      await check('database', async () => {
        if (store.link !== undefined && fleet.hears())
          requireKept(await soon('the database', store.link.risks()).catch(() => []));
      }),
    ];
    const staying = stays();
    const healthy = staying && checks.every((one) => one.healthy);
    const usable = staying && checks.every((one) => one.healthy || !vital.includes(one.name));
    directory.setHealthy(usable);
    const health: Health = { healthy, usable, at: clock.now(), checks };
    last = { health, until: clock.monotonic() + (healthy ? keepGoodMs : keepBadMs) };
    return health;
  };

  return () => {
    // A good answer ends with the link to the database, and each that brings requests here when
    // there are to be none.
    const isStale = (last?.health.healthy === true && !fleet.hears()) || (last?.health.usable === true && !stays());
    if (last !== undefined && !isStale && clock.monotonic() < last.until) return Promise.resolve(last.health);
    running ??= run().finally(() => {
      running = undefined;
    });
    return running;
  };
};
