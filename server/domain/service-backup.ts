// A backup of the whole service, as its receipt says, and what the audit key signs about its file.

import { canonicalJson } from '../base/bytes.ts';

export interface ServiceBackup {
  readonly backupId: string;
  readonly at: number;
  readonly bytes: number;
  /** SHA-256 of the file up to its closing, Base64. Absent in receipts of earlier versions. */
  readonly digest?: string;
}

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
  /** Those that the file is encrypted to. */
  readonly recoveryKeyIds: readonly string[];
}
