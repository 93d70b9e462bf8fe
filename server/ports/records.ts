// A key record as it is stored: where it belongs, and its sealed bytes.

/** What a record is and where it belongs; all of it is bound into the seal. */
export interface RecordPlace {
  readonly tenantId: string;
  readonly objectId: string;
  readonly version: number;
  readonly class: RecordClass;
  /** Canonical text of the immutable attributes. */
  readonly attributes: string;
}

export const recordClasses = [
  'vault-copy', // a key's copy in the shared vault
  'sealed-copy', // the application's own copy of a master key
  'object-content', // the key that encrypts a token object's value
  'endpoint-secret', // a SigV4 secret access key
  'row-authentication', // the key that authenticates stored rows
  'token-hash', // the key that hashes access_guids, invitations and recovery codes
  'api-token-hash', // the key that hashes API tokens
  'session-hash', // the key that hashes the values of sessions
  'adopted-token-hash', // one of another service, whose access_guids came here with a snapshot
  'audit-signature', // the key that signs the audit log's checkpoints
  'snapshot-opening', // the key that one opening of a snapshot is answered to
  'second-factor', // the secret of a user's one-time passwords
  'self-test', // the service's own key for the health check's round trip
] as const;
export type RecordClass = (typeof recordClasses)[number];

export interface StoredRecord extends RecordPlace {
  /** Epoch of the KEK that sealed it. */
  readonly epoch: number;
  readonly record: Buffer;
}

/** Where a walk over older records has come to. */
export type RecordPosition = Pick<StoredRecord, 'epoch' | 'objectId' | 'version' | 'class'>;

/** A key record as it is there; null after it was wiped. */
export interface WholeRecord extends Omit<StoredRecord, 'record'> {
  readonly record: Buffer | null;
}
