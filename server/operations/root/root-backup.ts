// Whether there is a backup of the root key that is worth something. `dke root backup` leaves a receipt beside the root key, on the node
// where it ran; each node brings its own into the store, with an audit record. A new root key makes every backup of the one before worthless.

import { toRfc3339 } from '../../base/clock.ts';
import { newId, serviceTenantId } from '../../base/ids.ts';
import { serviceActor } from '../../domain/actor.ts';
import type { Ports } from '../../ports/ports.ts';
import type { RootBackup } from '../../ports/root-provider.ts';
import type { Repositories } from '../../ports/store.ts';

const setting = 'root:backup';
const everyMs = 10_000;

export const readRootBackup = async (from: Pick<Repositories, 'settings'>): Promise<RootBackup | null> => {
  const text = await from.settings.get(setting);
  return text === undefined ? null : (JSON.parse(text) as RootBackup);
};

/** The run looks for a new receipt, now and then. */
export const createRootBackups = ({ store, root, clock }: Pick<Ports, 'store' | 'root' | 'clock'>) => {
  let lookedAt = Number.NEGATIVE_INFINITY;
  return {
    turn: async (): Promise<void> => {
      if (clock.monotonic() - lookedAt < everyMs) return;
      lookedAt = clock.monotonic();
      const receipt = root.backup();
      if (receipt === undefined) return;
      const isNew = (known: RootBackup | null): boolean =>
        known === null || receipt.epoch > known.epoch || (receipt.epoch === known.epoch && receipt.at > known.at);
      if (!isNew(await readRootBackup(store.read))) return;
      await store.write(async (tx) => {
        if (!isNew(await readRootBackup(tx))) return;
        await tx.settings.set(setting, JSON.stringify(receipt));
        await tx.audit.append({
          kind: 'root.backed-up',
          actor: serviceActor(newId(clock.now())),
          tenantId: serviceTenantId,
          subject: { kind: 'service', id: 'service' },
          details: { rootEpoch: receipt.epoch, at: toRfc3339(receipt.at) },
        });
      });
    },
  };
};
