// Whether there is a backup of the root key that is worth something. `dke root backup` leaves a receipt next to the root key, on the node
// where it ran; each node brings its own into the store, with an audit record. A new root key makes every backup of the one before worthless.

import { toRfc3339 } from '../../base/clock.ts';
import type { Ports } from '../../ports/ports.ts';
import type { RootBackup } from '../../ports/root-provider.ts';
import type { Repositories } from '../../ports/store.ts';
import { createReceipts } from '../shared/receipts.ts';

const setting = 'root:backup';

export const readRootBackup = async (from: Pick<Repositories, 'settings'>): Promise<RootBackup | null> => {
  const text = await from.settings.get(setting);
  return text === undefined ? null : (JSON.parse(text) as RootBackup);
};

export const createRootBackups = ({ store, root, clock }: Pick<Ports, 'store' | 'root' | 'clock'>) =>
  createReceipts(
    { store, clock },
    {
      setting,
      receipts: () => [root.backup()].filter((receipt) => receipt !== undefined),
      kept: readRootBackup,
      isNewer: (one, other) => one.epoch > other.epoch || (one.epoch === other.epoch && one.at > other.at),
      record: ({ epoch, at }) => ({ kind: 'root.backed-up', details: { rootEpoch: epoch, at: toRfc3339(at) } }),
    },
  );
