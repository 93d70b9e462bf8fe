// What a service opens before it knows whether it may use it: the data directory, the database and
// the keys.

import { createKeyRing } from '../../adapters/crypto/key-ring.ts';
import { openCore } from '../../adapters/crypto/open-core.ts';
import { systemClock } from '../../base/time.ts';
import type { Lifecycle } from '../lifecycle.ts';
import type { ServiceOptions } from '../running-service.ts';
import { type Certificates, openCertificates } from '../tls/own-certificate.ts';
import type { Disks } from './disks.ts';
import type { ServiceEvents } from './events.ts';
import type { Observed } from './observation.ts';
import { type OpenedRoot, openServiceRoot } from './root.ts';
import { openStorage, type Storage } from './storage.ts';

export interface OpenedData {
  readonly core: ReturnType<typeof openCore>;
  readonly ring: ReturnType<typeof createKeyRing>;
  readonly storage: Storage;
  readonly certificates: Certificates;
  readonly root: OpenedRoot;
}

/** Lock, core, database, certificates, root key and the keys under it. */
export const openData = async (
  options: ServiceOptions,
  lifecycle: Lifecycle,
  requestId: () => string,
  { observation, steps }: Pick<Observed, 'observation' | 'steps'>,
  events: ServiceEvents,
  disks: Disks,
): Promise<OpenedData> => {
  const { config, log, onFatal, onSealed } = options;
  const clock = systemClock;
  const { lockedBytes, allowUnlocked } = config.memory;
  const core = openCore({ allowUnlocked, ...(lockedBytes === undefined ? {} : { arenaBytes: lockedBytes }) });
  if (!core.memory.locked) log.warn('key memory is not locked: keys could be written to swap');
  const ring = createKeyRing(core.raw);
  const storage = await openStorage({
    config,
    acceptDatabase: options.acceptDatabase,
    ring,
    clock,
    log,
    lifecycle,
    onFatal,
    events,
    disks,
  });
  const certificates = openCertificates(config, core.raw, log, disks);
  const root = await openServiceRoot(
    {
      ...{
        config,
        core: core.raw,
        clock,
        log,
        requestId,
        disks,
        ask: options.ask,
        signal: options.signal,
        observation,
        refusals: options.refusals,
      },
      onSealed:
        onSealed === undefined
          ? undefined
          : async (handle) => {
              certificates.make();
              await onSealed({
                handle,
                certificatePath: certificates.path,
                readTls: () => ({
                  pairs: certificates.read(),
                  clientAuthorities: config.tls.clientCertificates ? [] : undefined,
                }),
              });
            },
    },
    storage.isFirstStart,
  );
  lifecycle.opened('the root key', () => root.root.release());
  if (!root.root.erasure.overwritesInPlace)
    log.warn('erasure is best effort: this file system keeps copies of overwritten data', {
      fileSystem: root.root.erasure.fileSystem,
    });
  await ring.unlock(storage.store, root.root);
  return {
    ...{ ring, certificates, root },
    core: steps === undefined ? core : { ...core, core: steps.core(core.core) },
    storage: steps === undefined ? storage : { ...storage, store: steps.store(storage.store) },
  };
};
