// What the service tells about itself to an administrator.

import type { Ports } from '../../ports/ports.ts';
import type { StatusOperations } from './interface.ts';

export const readStatus =
  ({
    store,
    core,
    root,
    directory,
    identity,
    clock,
    deadlines,
    erasure,
  }: Pick<
    Ports,
    'store' | 'core' | 'root' | 'directory' | 'identity' | 'clock' | 'deadlines' | 'erasure'
  >): StatusOperations['status'] =>
  async () => {
    const { capacity, used, keys, locked } = core.memoryStatus();
    return {
      version: identity.version,
      nodeVersion: process.versions.node,
      startedAt: identity.startedAt,
      rootEpoch: root.current.epoch,
      erasure: {
        ...root.erasure,
        pendingKeys: await store.read.keys.erasable(clock.now() + 1),
        ...(await erasure.state()),
      },
      clock: await deadlines.state(),
      store: { dialect: store.dialect, path: store.path },
      memory: { capacity, used, keys, locked },
      requestLog: directory.requestLog(),
    };
  };
