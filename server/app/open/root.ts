// The root key of a service: opened by its providers, or by a passphrase that a person gives while
// the service is sealed.

import { readFileSync } from 'node:fs';
import type { Core } from '../../../addon/core.ts';
import { anchorBeside, anchorPathOf } from '../../adapters/roots/durable-files.ts';
import { type OpenRoot, openRoot, type SealedRoot } from '../../adapters/roots/open-root.ts';
import type { AskPassphrase } from '../../adapters/roots/unlock-ways.ts';
import type { LimitRefusals } from '../../base/limit-refusals.ts';
import { attemptRate, createOriginRates } from '../../base/origin-rates.ts';
import { StartError } from '../../base/start-error.ts';
import { type Clock, toRfc3339 } from '../../base/time.ts';
import { type MetricFamily, type MetricName, metrics } from '../../domain/metrics.ts';
import { createSealedApp } from '../../fronts/closed.ts';
import { createDispatch, type RawFront } from '../../fronts/shared/dispatch.ts';
import { type Observation, watchRoutes } from '../../fronts/shared/observe.ts';
import { createUnsealing } from '../../operations/root/unseal.ts';
import type { Log } from '../../ports/log.ts';
import type { RootProvider } from '../../ports/root-provider.ts';
import type { Config } from '../config/config.ts';
import type { Disks } from './disks.ts';

export interface OpenedRoot {
  readonly root: OpenRoot['root'];
  /** Passphrases that were refused while the service was sealed. */
  readonly failedUnseals: number;
}

export interface RootOptions {
  readonly config: Pick<Config, 'root'>;
  readonly core: Core;
  readonly clock: Clock;
  readonly log: Log;
  readonly requestId: () => string;
  readonly disks: Pick<Disks, 'files'>;
  readonly ask: AskPassphrase | undefined;
  readonly observation: Observation | undefined;
  readonly refusals: LimitRefusals | undefined;
  /** Ends the waiting for a passphrase. */
  readonly signal: AbortSignal | undefined;
  /** Serves what a sealed service answers. Absent: the service does not wait for its root key. */
  readonly onSealed: ((handle: RawFront['handle']) => Promise<void>) | undefined;
}

/** What is known of a service whose root key is not open. */
const sealedMetrics = (refusals: LimitRefusals | undefined) => (): readonly MetricFamily[] => {
  const family = (name: MetricName, samples: MetricFamily['samples']): MetricFamily => {
    const { type, help } = metrics[name];
    return { name, type, help, samples };
  };
  const totals = Object.entries(refusals?.totals() ?? {});
  return [
    family('dke_sealed', [{ labels: {}, value: 1 }]),
    family('dke_healthy', [{ labels: {}, value: 0 }]),
    family(
      'dke_limit_refusals_total',
      totals.map(([limit, value]) => ({ labels: { limit }, value })),
    ),
  ];
};

const waitForPassphrase = async (
  { config, clock, log, requestId, onSealed, signal, observation, refusals }: RootOptions,
  sealed: SealedRoot,
): Promise<OpenedRoot> => {
  const why = sealed.reasons.map(({ name, reason }) => `${name}: ${reason}`).join('; ');
  if (onSealed === undefined)
    throw new StartError('root-key', `the root key ${config.root.path} could not be opened: ${why}`);
  const unsealing = createUnsealing(sealed, { clock, log });
  const options = {
    ...({ state: 'sealed', requestId, unseal: unsealing.unseal } as const),
    metrics: sealedMetrics(refusals),
    refused: refusals?.refused,
    watch: watchRoutes({ requestId, describe: observation?.describe }),
  };
  const app = createSealedApp(options, createOriginRates(clock, attemptRate));
  log.warn('the service is sealed: its root key is not open', { reasons: sealed.reasons });
  const handle = createDispatch(app, []);
  await onSealed(observation?.watch(handle) ?? handle);
  const stopped = new Promise<never>((_, reject) => {
    const stop = (): void => reject(new StartError('root-key', `stopped while sealed: ${why}`));
    if (signal?.aborted === true) stop();
    signal?.addEventListener('abort', stop);
  });
  try {
    const root = await Promise.race([unsealing.root, stopped]);
    return { root, failedUnseals: unsealing.failures() };
  } finally {
    unsealing.stop();
  }
};

/**
 * The checkpoint next to the root key, as it was at the start and as this service has written it:
 * its disk may hang.
 */
const keptAnchor = (path: string, { files }: RootOptions['disks'], log: Log): RootProvider['anchor'] => {
  const own = anchorBeside(path);
  let note = own.read();
  let place = own.place();
  return {
    read: () => note,
    place: () => place,
    write: (next) => {
      note = next;
      place = `${anchorPathOf(path)} (written ${toRfc3339(Date.now())})`;
      files.replace(anchorPathOf(path), next).catch((error: unknown) => {
        log.error('the checkpoint of the audit log could not be written next to the root key', { error });
      });
    },
  };
};

/** The root of a service that runs: its disk is asked before it is waited for. */
const onItsDisk = (root: RootProvider, path: string, disks: RootOptions['disks'], log: Log): RootProvider => {
  const reach = async (): Promise<void> => {
    await disks.files.exists(path);
  };
  return Object.create(root, {
    anchor: { value: keptAnchor(path, disks, log) },
    reach: { value: reach },
    check: {
      value: async (): Promise<void> => {
        await reach();
        await root.check();
      },
    },
  }) as RootProvider;
};

/** `isFirstStart`: no key is sealed yet, so a root key is made where there is none. */
export const openServiceRoot = async (options: RootOptions, isFirstStart: boolean): Promise<OpenedRoot> => {
  const { config, core, log, ask, disks } = options;
  const opened = await openRoot(
    {
      core,
      root: config.root,
      ask: ask ?? (() => Promise.resolve(undefined)),
      readDescriptor: (descriptor) => readFileSync(descriptor),
    },
    isFirstStart,
  );
  const place = (root: RootProvider): RootProvider => onItsDisk(root, config.root.path, disks, log);
  if (opened.state !== 'open') {
    const unsealed = await waitForPassphrase(options, opened);
    return { ...unsealed, root: place(unsealed.root) };
  }
  for (const remark of opened.remarks) log.warn(remark);
  return { root: place(opened.root), failedUnseals: 0 };
};
