// What a command on the host leaves when it makes a backup of the service or of the root key: first
// that it begins, then how it ended. So the service knows of each file, also of one whose command
// was cut off.

export interface BackupReceipt {
  /** Null: of an earlier version, which gave backups of the root key none. */
  readonly id: string | null;
  readonly state: 'begun' | 'made' | 'failed';
  readonly at: number;
  /** When it was made; null: not known. */
  readonly until: number | null;
  readonly bytes: number | null;
  /** Records of the audit log in it. */
  readonly records: number | null;
  readonly oldestRootEpoch: number | null;
  readonly rootEpoch: number | null;
  /** SHA-256 of a backup of the service up to its closing, Base64. */
  readonly digest: string | null;
}

const numberOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;

/**
 * Reads a receipt, also in the forms of earlier versions: `{backupId, at, bytes}` and `{epoch,
 * at}`. Undefined: the object is not a receipt.
 */
export const parseBackupReceipt = (found: object): BackupReceipt | undefined => {
  const given = found as { readonly [name: string]: unknown };
  const id = given.id ?? given.backupId ?? null;
  const at = numberOf(given.at);
  const rootEpoch = numberOf(given.rootEpoch ?? given.epoch);
  const { state = 'made' } = given;
  if (at === null || (id === null && rootEpoch === null)) return undefined;
  if (id !== null && (typeof id !== 'string' || !/^[0-9A-Za-z-]{1,64}$/.test(id))) return undefined;
  if (state !== 'begun' && state !== 'made' && state !== 'failed') return undefined;
  return {
    ...{ id, state, at, rootEpoch },
    until: numberOf(given.until),
    bytes: numberOf(given.bytes),
    records: numberOf(given.records),
    oldestRootEpoch: numberOf(given.oldestRootEpoch),
    digest: typeof given.digest === 'string' ? given.digest.slice(0, 64) : null,
  };
};
