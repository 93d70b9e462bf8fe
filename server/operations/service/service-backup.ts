// Backups of the whole service, which `dke backup create` makes on this host. The service names the recipients and signs; the command leaves a receipt
// in the data directory, whose digest of the file comes into the audit log, and people are reminded when the next one is due.

import { toRfc3339 } from '../../base/clock.ts';
import { ServiceError } from '../../base/errors.ts';
import { backupClosingText, type ServiceBackup } from '../../domain/service-backup.ts';
import type { BackupAuthority } from '../../ports/backup-authority.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { createReceipts } from '../shared/receipts.ts';
import { signerOf } from '../snapshots/make-snapshot.ts';
import { recipientsOf } from '../snapshots/recovery-keys.ts';

const setting = 'service:backup';

export const readServiceBackup = async (from: Pick<Repositories, 'settings'>): Promise<ServiceBackup | null> => {
  const text = await from.settings.get(setting);
  return text === undefined ? null : (JSON.parse(text) as ServiceBackup);
};

export const createServiceBackups = (ports: Pick<Ports, 'store' | 'clock'>, receipts: () => readonly ServiceBackup[]) =>
  createReceipts(ports, {
    setting,
    receipts,
    kept: readServiceBackup,
    isNewer: (one, other) => one.at > other.at,
    record: ({ backupId, at, bytes, digest }) => ({
      kind: 'service.backed-up',
      details: { backupId, at: toRfc3339(at), size: bytes, ...(digest === undefined ? {} : { digest }) },
    }),
  });

export const createBackupAuthority = ({
  store,
  ring,
}: {
  readonly store: Pick<Ports['store'], 'read'>;
  readonly ring: Ports['ring'];
}): BackupAuthority => ({
  recipients: () => recipientsOf(store.read),
  sign: async ({ backupId, digest, recoveryKeyIds }) => {
    const live = new Set((await recipientsOf(store.read)).map(({ id }) => id));
    const other = recoveryKeyIds.find((id) => !live.has(id));
    if (other !== undefined)
      throw new ServiceError('conflict', `the recovery key ${other} was removed while the backup was created`, {
        hint: 'create another backup',
      });
    const signer = await signerOf(ring, store.read);
    return { signer, signature: ring.signAudit(backupClosingText({ backupId, digest, signer })) };
  },
});
