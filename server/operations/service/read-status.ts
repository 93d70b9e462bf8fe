// What the service tells about itself to an administrator.

import type { Ports } from '../../ports/ports.ts';
import { coveredUntil } from '../root/conclude-erasure.ts';
import type { StatusOperations } from './service-operations.ts';

export const readStatus =
  ({
    store,
    core,
    root,
    directory,
    identity,
    deadlines,
    erasure,
  }: Pick<
    Ports,
    'store' | 'core' | 'root' | 'directory' | 'identity' | 'deadlines' | 'erasure'
  >): StatusOperations['status'] =>
  async () => {
    const covered = await coveredUntil(store.read);
    const destroyed = await store.read.keys.erasable(covered);
    const { capacity, used, keys, locked } = core.memoryStatus();
    return {
      version: identity.version,
      nodeVersion: process.versions.node,
      libcryptoVersion: core.libcryptoVersion(),
      startedAt: identity.startedAt,
      rootEpoch: root.current.epoch,
      erasure: {
        ...root.erasure,
        pendingKeys: destroyed.pending,
        waitingKeys: destroyed.waiting,
        pendingObjects: await store.read.objects.countEnded(covered),
        ...(await erasure.state()),
      },
      clock: await deadlines.state(),
      store: { dialect: store.dialect, path: store.path },
      memory: { capacity, used, keys, locked },
      requestLog: directory.requestLog(),
    };
  };
