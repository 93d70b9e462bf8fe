// A key record as it is stored: whose it is, where it belongs, and its sealed bytes.

import { canonicalJson } from '../base/bytes.ts';
import { ServiceError } from '../base/service-error.ts';
import type { Integrity } from '../domain/vault.ts';
import type { TablesBy } from './tables.ts';

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

/** Tables whose rows own records, as their declarations say; `service`: the service itself. */
export type RecordTable = TablesBy['owning'] | 'service';

/**
 * What the attributes of a record bind. A record that is moved below a row that says otherwise does
 * not open.
 */
export const recordAttributes = {
  key: ({ algorithm, bits, kind }: { readonly algorithm: string; readonly bits: number; readonly kind: string }) =>
    canonicalJson({ algorithm, bits, kind }),
  content: canonicalJson({ algorithm: 'aes', bits: 256 }),
  /** Secrets cannot be swapped between credentials. */
  credential: (accessKeyId: string) => canonicalJson({ accessKeyId }),
} as const;

export interface StoredRecord extends RecordPlace {
  /** Epoch of the KEK that sealed it. */
  readonly epoch: number;
  readonly record: Buffer;
}

/** The part of a record's place by which the record is found. */
export type RecordAddress = Pick<RecordPlace, 'tenantId' | 'objectId' | 'version' | 'class'>;

/**
 * Whose records are meant: a row of a table that was read with the right authentication code.
 * Nothing else leads to a record that can be opened, so a row that was changed from outside carries
 * no keys anywhere.
 */
export class RecordOwner {
  readonly tenantId: string;
  readonly table: RecordTable;
  readonly objectId: string;
  /**
   * The attributes of all records of this owner; null: each record has its own (the service's keys,
   * whose versions differ).
   */
  readonly attributes: string | null;
  readonly #isVerified = true;

  constructor(
    table: RecordTable,
    row: { readonly tenantId: string; readonly id: string; readonly integrity: Integrity },
    attributes: string | null,
  ) {
    if (row.integrity !== 'ok')
      throw new ServiceError('key-tampered', 'the stored record was changed from outside: its keys are not used', {
        hint: 'compare the database with a backup; the audit log has an alarm that names the record',
      });
    this.tenantId = row.tenantId;
    this.table = table;
    this.objectId = row.id;
    this.attributes = attributes;
  }

  /** Not an object that only looks like one. */
  static isOne(owner: object): owner is RecordOwner {
    return #isVerified in owner;
  }
}

/** A record in the place of its owner. The store and the key ring make them, from an owner. */
export class OwnedRecord implements StoredRecord {
  readonly owner: RecordOwner;
  readonly version: number;
  readonly class: RecordClass;
  readonly attributes: string;
  readonly epoch: number;
  readonly record: Buffer;
  readonly #isOwned = true;

  constructor(owner: RecordOwner, sealed: Pick<StoredRecord, 'version' | 'class' | 'attributes' | 'epoch' | 'record'>) {
    this.owner = owner;
    this.version = sealed.version;
    this.class = sealed.class;
    this.attributes = owner.attributes ?? sealed.attributes;
    this.epoch = sealed.epoch;
    this.record = sealed.record;
  }

  get tenantId(): string {
    return this.owner.tenantId;
  }
  get objectId(): string {
    return this.owner.objectId;
  }
  static isOne(record: object): record is OwnedRecord {
    return #isOwned in record;
  }
}

/** The records of one owner. */
export interface OwnedRecords {
  get(version: number, recordClass: RecordClass): Promise<OwnedRecord | undefined>;
  /** Every version, by version. */
  list(recordClass: RecordClass): Promise<readonly OwnedRecord[]>;
}

/** Where a walk over older records has come to. */
export type RecordPosition = Pick<StoredRecord, 'epoch' | 'objectId' | 'version' | 'class'>;

/** A key record as it is there; null after it was wiped. */
export interface WholeRecord extends Omit<StoredRecord, 'record'> {
  readonly record: Buffer | null;
}
