// Snapshots whose files are back, for example because their disk is mounted again: what was
// destroyed in the meantime is erased from them, and then they are held again.

import { newId } from '../../base/ids.ts';
import { serviceActor } from '../../domain/actor.ts';
import type { Ports } from '../../ports/ports.ts';
import { listSnapshots } from './erase-destroyed.ts';
import { verifySnapshot } from './verify-snapshot.ts';

type RecoverPorts = Pick<Ports, 'store' | 'core' | 'ring' | 'archive' | 'clock' | 'exclusion' | 'log'>;

export const recoverMissing = (ports: RecoverPorts): (() => Promise<void>) => {
  const { store, archive, clock, log } = ports;
  const verify = verifySnapshot(ports);
  return async () => {
    if (!(await archive.reached())) return;
    for (const { id, verification, integrity } of await listSnapshots(store.read, ['missing'])) {
      // A file that came back damaged is for an operator to verify.
      if (verification?.valid === false || integrity !== 'ok' || !(await archive.has(id))) continue;
      const { state } = await verify(serviceActor(newId(clock.now())), id, null);
      log.info('the missing file of a snapshot has been found again', { snapshotId: id, state });
    }
  };
};
