// Deep health: the store writes and reads, the root key is there, the service's own test key round-trips. A good answer is
// kept for ten seconds, a bad one for two, so that probes cost nothing and recovery shows soon.
//
// A store that takes no writes (a full disk) stops changes, not the use of keys: a monitor must not cut off databases
// and clouds that are served well.

import { ServiceError } from '../../base/errors.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Health, HealthCheck, StatusOperations } from './interface.ts';

const keepGoodMs = 10_000;
const keepBadMs = 2_000;
/** Who asks for the health has little patience. */
const storeMs = 2_000;

/** Throws when the store takes longer than that; what it is asked for continues. */
const soon = async (probe: Promise<void>): Promise<void> => {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new ServiceError('dependency-timeout', `the store has not answered for ${storeMs / 1000} s`)),
    storeMs,
  );
  try {
    await Promise.race([probe, late.promise]);
  } finally {
    clearTimeout(timer);
    probe.catch(() => undefined);
  }
};

export const checkHealth = ({
  store,
  root,
  ring,
  directory,
  clock,
  log,
  identity,
  fleet,
}: Pick<
  Ports,
  'store' | 'root' | 'ring' | 'directory' | 'clock' | 'log' | 'identity' | 'fleet'
>): StatusOperations['health'] => {
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
        await soon(store.probe());
      }),
      await check('root-key', () => root.check()),
      await check('round-trip', () => ring.selfTest()),
    ];
    // Who may not use keys, or is to be left alone, gets no requests.
    const staying = !identity.stopping() && !fleet.draining() && fleet.inContact();
    const healthy = staying && checks.every((one) => one.healthy);
    const usable = staying && checks.every((one) => one.healthy || one.name === 'store');
    directory.setHealthy(usable);
    const health: Health = { healthy, usable, at: clock.now(), checks };
    last = { health, until: clock.monotonic() + (healthy ? keepGoodMs : keepBadMs) };
    return health;
  };

  return () => {
    // A good answer ends with the link to the database.
    const isStale = last?.health.healthy === true && !fleet.hears();
    if (last !== undefined && !identity.stopping() && !isStale && clock.monotonic() < last.until)
      return Promise.resolve(last.health);
    running ??= run().finally(() => {
      running = undefined;
    });
    return running;
  };
};
