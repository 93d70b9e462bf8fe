// The row of a node that runs, for tests of the store alone.
import type { NodeRow } from '../../server/ports/node-link.ts';

export const nodeRow = (id: string): NodeRow => ({
  ...{ id, name: id, version: '1.0.0', state: 'active', startedAt: 1, heartbeatAt: 1, contactMs: 0, epoch: 0 },
  ...{ clockAheadMs: 0, rootEpoch: 1, oldestRootEpoch: 1, publicKey: Buffer.of(1), proof: Buffer.of(1) },
});
