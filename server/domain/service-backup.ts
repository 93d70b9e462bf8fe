// What the audit key signs about the file of a backup of the whole service.

import { canonicalJson } from '../base/bytes.ts';

/** The end of the file of a backup. */
export interface BackupClosing {
  readonly backupId: string;
  readonly digest: string;
  /** Verifier key of the audit log. */
  readonly signer: string;
}

/** What is signed. */
export const backupClosingText = ({ backupId, digest, signer }: BackupClosing): string =>
  `dke backup 2\n${canonicalJson({ backupId, digest, signer })}`;

export interface BackupToSign {
  readonly backupId: string;
  readonly digest: string;
  /** Ids of the recovery keys that the file is encrypted to. */
  readonly recoveryKeyIds: readonly string[];
}
