// The newest backup of the whole service that `dke backup create` made on this host. The command leaves a receipt in the data directory; the
// service keeps it, so that people are reminded when the next one is due.

import { toRfc3339 } from '../../base/clock.ts';
import type { ServiceBackup } from '../../domain/service-backup.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { createReceipts } from '../shared/receipts.ts';

const setting = 'service:backup';

export const readServiceBackup = async (from: Pick<Repositories, 'settings'>): Promise<ServiceBackup | null> => {
  const text = await from.settings.get(setting);
  return text === undefined ? null : (JSON.parse(text) as ServiceBackup);
};

export const createServiceBackups = (ports: Pick<Ports, 'store' | 'clock'>, receipt: () => ServiceBackup | undefined) =>
  createReceipts(ports, {
    setting,
    receipt,
    kept: readServiceBackup,
    isNewer: (one, other) => one.at > other.at,
    record: ({ backupId, at, bytes }) => ({
      kind: 'service.backed-up',
      details: { backupId, at: toRfc3339(at), size: bytes },
    }),
  });
