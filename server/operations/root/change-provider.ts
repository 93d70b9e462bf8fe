// A provider of the root key gets a new key while the service runs: `dke root rewrap` leaves the
// request next to the root key, sealed so that only a process that has the root key open can read
// it. The root key is rotated too, because older copies of its file still open with the former key.

import { newId } from '../../base/ids.ts';
import { serviceActor } from '../../domain/actor.ts';
import { rotationSetting } from '../../domain/changes.ts';
import type { Ports } from '../../ports/ports.ts';
import { aboutService, recordEvent } from '../shared/record-event.ts';

const everyMs = 1_000;

export const createProviderChanges = ({
  store,
  root,
  erasure,
  clock,
  log,
}: Pick<Ports, 'store' | 'root' | 'erasure' | 'clock' | 'log'>) => {
  let lookedAt = Number.NEGATIVE_INFINITY;
  return {
    run: async (): Promise<void> => {
      if (clock.monotonic() - lookedAt < everyMs) return;
      lookedAt = clock.monotonic();
      let change: ReturnType<typeof root.pendingChange>;
      try {
        change = root.pendingChange();
        if (change === undefined) return;
        const { name, type, apply } = change;
        // The file is changed last within the transaction: what fails leaves neither the change nor
        // its record.
        await store.write(async (tx) => {
          await recordEvent(tx, 'root.provider-rewrapped', serviceActor(newId(clock.now())), aboutService(), {
            name,
            type,
          });
          await tx.decisions.set(rotationSetting, 'root');
          apply();
        });
        erasure.schedule();
        log.info('a root provider has a new key; the root key is being rotated', { name });
      } catch (error) {
        log.error('a root provider could not get a new key', { error });
        change?.drop();
      }
    },
  };
};
