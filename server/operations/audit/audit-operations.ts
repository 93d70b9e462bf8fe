// What can be done with the audit log.

import type { TenantActor } from '../../domain/actor.ts';
import type { AuditEvent, AuditKind, AuditSeverity } from '../../domain/audit-event.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import type { LogSinkState } from '../../ports/log-sink.ts';
import type { StoredCheckpoint } from '../../ports/store.ts';

export interface AuditFilter extends PageRequest {
  readonly kind?: AuditKind | undefined;
  /** Only records of kinds that matter at least so much. */
  readonly severity?: AuditSeverity | undefined;
  readonly actorId?: string | undefined;
  readonly subjectId?: string | undefined;
  readonly requestId?: string | undefined;
  /** Inclusive. */
  readonly from?: number | undefined;
  /** Exclusive. */
  readonly to?: number | undefined;
  /** 'newest' first when absent. */
  readonly order?: 'newest' | 'oldest' | undefined;
}

export interface MigrationFilter extends PageRequest {
  readonly applicationId?: string | undefined;
  /** When the key was made: inclusive. */
  readonly from?: number | undefined;
  /** Exclusive. */
  readonly to?: number | undefined;
}

/** An application made a master key, and used it. */
export interface KeyMigration {
  /** Sequence number of the audit record that says that the key was created. */
  readonly sequence: number;
  readonly at: number;
  readonly tenantId: string;
  /**
   * 'first-key': the application had none here before, as when a database comes from a local
   * wallet.
   */
  readonly what: 'first-key' | 'further-key';
  readonly applicationId: string;
  readonly applicationName: string;
  readonly appId: string | null;
  readonly host: string | null;
  readonly process: string | null;
  readonly keyId: string;
  readonly keyName: string;
  readonly label: string | null;
  readonly origin: string | null;
  /**
   * What the application did from then on, for ten minutes or until it made the next key, by the
   * minute: counts by use.
   */
  readonly uses: { readonly [use: string]: number };
  readonly failures: number;
  readonly lastAt: number;
  /** The numbers of the records that this is from. */
  readonly records: readonly number[];
}

export interface AuditOperations {
  /** Newest first. A page may be short before the end. */
  migrations(actor: TenantActor, query: MigrationFilter): Promise<Page<KeyMigration>>;
  list(actor: TenantActor, query: AuditFilter): Promise<Page<AuditEvent>>;
  /** Who signs the checkpoints: to be kept away from the service. */
  log(): Promise<AuditLog>;
  /**
   * A new key signs from now on; the root key is rotated, so that no older copy of the database
   * opens the former one. Audited.
   */
  rotateKey(actor: TenantActor): Promise<AuditLog>;
  /** Newest first. */
  checkpoints(actor: TenantActor, query: PageRequest): Promise<Page<StoredCheckpoint>>;
  /** The sinks of the configuration file. */
  sinks(actor: TenantActor): Promise<readonly LogSinkState[]>;
  /**
   * Covers every record with a checkpoint; answers the newest one. Undefined when there is no
   * record.
   */
  checkpoint(): Promise<StoredCheckpoint | undefined>;
  /**
   * That a record is in the tree of the newest checkpoint, which is made when the record is newer.
   */
  prove(actor: TenantActor, sequence: number): Promise<AuditProof>;
  /**
   * Audited. The whole log from its beginning to the newest checkpoint, which is made for it, as
   * lines of text.
   */
  export(actor: TenantActor): Promise<AsyncIterable<readonly string[]>>;
  /**
   * Audited. The records of the tenant acted in, with the hashes of all that is between: enough for
   * the signed root.
   */
  exportTenant(actor: TenantActor): Promise<AsyncIterable<readonly string[]>>;
}

export interface AuditLog {
  /** The log's name in its checkpoints. */
  readonly origin: string;
  /** base/checkpoint.ts. */
  readonly verifierKey: string;
  /**
   * Verifier keys that were rotated, newest first, with the number of the last record that each one
   * signed.
   */
  readonly formerKeys: readonly { readonly verifierKey: string; readonly through: number }[];
  /** Since when the key signs; null: there is no record yet. */
  readonly keySince: number | null;
  readonly rotationDueAt: number | null;
  readonly size: number;
  readonly checkpoint: StoredCheckpoint | null;
}

export interface AuditProof {
  /** The record's text (domain/audit-event.ts): the tree's leaf is its hash. */
  readonly entry: string;
  readonly checkpoint: StoredCheckpoint;
  /** RFC 9162 section 2.1.3: the leaf's number is `sequence` - 1. */
  readonly hashes: readonly Buffer[];
}
