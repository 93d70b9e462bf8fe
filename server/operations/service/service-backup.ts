// Backups of the whole service, which `dke backup create` makes on this host: the service names the
// recipients and signs. The receipt of the command is taken by operations/copies/take-receipts.ts.

import { ServiceError } from '../../base/service-error.ts';
import { backupClosingText } from '../../domain/service-backup.ts';
import type { BackupAuthority } from '../../ports/backup-authority.ts';
import type { Ports } from '../../ports/ports.ts';
import { signerOf } from '../snapshots/make-snapshot.ts';
import { recipientsOf } from '../snapshots/recovery-keys.ts';

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
