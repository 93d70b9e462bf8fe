// Who names the recipients of a backup of the whole service, and signs it.

import type { RecoveryPublicKey } from '../base/recovery-key.ts';
import type { BackupToSign } from '../domain/service-backup.ts';

/**
 * Who knows the recovery keys by rows that were verified, and signs: a service that is unsealed,
 * here or in its process.
 */
export interface BackupAuthority {
  recipients(): Promise<readonly RecoveryPublicKey[]>;
  sign(backup: BackupToSign): Promise<{ readonly signer: string; readonly signature: Buffer }>;
}
