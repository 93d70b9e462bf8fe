// The service's database. One interface for the embedded SQLite store and for others; the contract
// suite runs against each.
//
// `read` sees committed data. `write` runs one unit of work with every other writer waiting, and
// commits all or nothing; it resolves after the commit is durable. Several units may share one
// commit. Look-ups answer undefined when nothing is there. The first argument of a look-up in a
// tenant is that tenant: it does not find the rows of another one. Rows that belong to such a row
// (versions, access_guids, instances, credentials, diagnoses, the objects of a group) are looked up
// by it, after it was found. The comment of a list names its order. Rows whose authentication code
// is not valid have integrity 'tampered'; they are never rewritten as valid: saving one throws
// 'key-tampered'.

import type { Actor } from '../domain/actor.ts';
import type { ApiToken } from '../domain/api-token.ts';
import type { Approval, ApprovalState } from '../domain/approval.ts';
import type { AuditDetails, AuditEvent, AuditKind, AuditSeverity, SubjectKind } from '../domain/audit-event.ts';
import type { ChangeMark } from '../domain/change-protocol.ts';
import type { DecisionName } from '../domain/decisions.ts';
import type { Difference } from '../domain/difference.ts';
import type { Key } from '../domain/key.ts';
import type { KeyState } from '../domain/lifecycle.ts';
import type { NodeSetting, NodeState } from '../domain/node.ts';
import type { Notification, NotificationFilter, NotificationKind } from '../domain/notification.ts';
import type { Tenant, TenantScope } from '../domain/tenant.ts';
import type { Sound, Vault } from '../domain/vault.ts';
import type { IdempotencyRepository } from './kept-answers.ts';
import type {
  OwnedRecord,
  OwnedRecords,
  RecordAddress,
  RecordClass,
  RecordOwner,
  RecordPosition,
  StoredRecord,
  WholeRecord,
} from './key-record.ts';
import type { DutyHold, NodeLink, NodeRow } from './node-link.ts';
import type { OutsideCopyRepository } from './outside-copies.ts';
import type { PeopleRepositories } from './people.ts';
import type { PruningRepository, PurgeRepository } from './purge.ts';
import type { SearchRepository } from './search-index.ts';
import type {
  KeyBindingRepository,
  OpeningRepository,
  RecoveryKeyRepository,
  SnapshotRepository,
} from './snapshots.ts';
import type { TablesBy } from './tables.ts';
import type { TdeRepositories } from './tde-repositories.ts';
import type { TenantRows } from './tenant-rows.ts';
import type { Window } from './window.ts';
import type { XksRepositories } from './xks-repositories.ts';

export interface StoredKek {
  readonly tenantId: string;
  readonly epoch: number;
  readonly rootEpoch: number;
  readonly record: Buffer;
}

export interface StoredVersion {
  readonly keyId: string;
  readonly version: number;
  readonly createdAt: number;
}

/** An audit record before it has its sequence. */
export interface NewAuditEvent<K extends AuditKind = AuditKind> {
  readonly kind: K;
  readonly actor: Actor;
  readonly tenantId: string;
  readonly subject: { readonly kind: SubjectKind; readonly id: string };
  readonly details: AuditDetails<K>;
}

/** A signed statement about the first `size` audit records. */
export interface StoredCheckpoint {
  readonly size: number;
  readonly at: number;
  /** base/checkpoint.ts. */
  readonly note: string;
}

export interface StoredToken extends ApiToken {
  readonly hash: string;
  /**
   * The user who made it, also by other tokens, and so has seen its value. Its own id: no user has.
   * Null: the row is of an earlier version.
   */
  readonly personId: string | null;
}

/**
 * How many of each there are in a tenant: of vaults those not deleted, of keys those not destroyed,
 * of the others those in use.
 */
export interface TenantContents extends Readonly<Record<TablesBy['counted'], number>> {
  /** Files that left the service with its keys, which no erasure reaches. */
  readonly copies: number;
}

/** What happened to a notification, as it was then. */
export interface NotificationEvent {
  readonly sequence: number;
  readonly event: 'raised' | 'worse' | 'resolved';
  readonly at: number;
  readonly notification: Notification;
}

/** A version of a key, by when it was made. */
export interface KeyVersionAge {
  readonly createdAt: number;
  readonly keyId: string;
  readonly version: number;
}

/**
 * Times are milliseconds: `After` takes what is at it, `Before` does not. With `usedAfter` or
 * `usedBefore` the order is by the last use, and `after` is the time of that and the id
 * (`useCursor`).
 */
export interface KeyListFilter {
  readonly vaultId?: string | undefined;
  readonly kind?: Key['kind'] | undefined;
  readonly state?: KeyState | undefined;
  readonly applicationId?: string | undefined;
  readonly tag?: string | undefined;
  readonly createdAfter?: number | undefined;
  readonly createdBefore?: number | undefined;
  readonly usedAfter?: number | undefined;
  readonly usedBefore?: number | undefined;
  readonly neverUsed?: boolean | undefined;
}

/**
 * The audit log as this process knows it: the records that it has written since the last
 * checkpoint, as hashes of their content, and the tree over what it has written, or read soon after
 * others had. What the database has later is compared with it.
 */
export interface WrittenRecords {
  /** Undefined: not known yet. */
  readonly tree: { readonly size: number; readonly root: Buffer } | undefined;
  /**
   * The log is taken as it is, with these perfect subtrees; what was known is forgotten. To be
   * called in a unit of work.
   */
  startFrom(subtrees: readonly { readonly level: number; readonly hash: Buffer }[]): void;
  /**
   * Takes in the hashes of the records behind the first `after`, read in a state of the database
   * whose newest change is `last`.
   */
  saw(after: number, leaves: readonly Buffer[], last: ChangeMark): void;
  /**
   * The `last` of the newest call of `saw`. Undefined: there was none since the log was taken as it
   * is.
   */
  readonly last: ChangeMark | undefined;
  /** The database has had a failover since what the tree is made of was read. */
  readonly isMoved: boolean;
  /**
   * The hash of a record that this process has written; undefined: another one has, a checkpoint
   * covers it, or a failover may have taken it back.
   */
  hashOf(sequence: number): Buffer | undefined;
  /** The oldest one that is kept. */
  first(): number | undefined;
  /** A checkpoint covers them. */
  forget(through: number): void;
}

/** The set of all authenticated rows in one version, which grows with each change. */
export interface RowSetHead {
  readonly version: number;
  /**
   * Its authentication code, 64 hexadecimal digits: two sets of one version with different rows
   * have different ones.
   */
  readonly tag: string;
}

/**
 * `differences`: none when the rows are those that the service wrote last. `older`: names of
 * restored older rows, as far as they are known.
 */
export interface RowSetComparison {
  readonly differences: readonly Difference[];
  readonly older: readonly string[];
}

export interface LoadedRowSet {
  readonly head: RowSetHead | undefined;
  readonly differences: readonly Difference[];
  readonly rows: number;
  /** What of the schema is not as it is declared. */
  readonly schema: readonly Difference[];
}

export interface Repositories extends PeopleRepositories, TdeRepositories, XksRepositories {
  /** Everything, table by table: for the offline check. */
  readonly whole: {
    /** Tables whose rows are authenticated. */
    policyTables(): readonly string[];
    checkRows(table: string): Promise<{ readonly rows: number; readonly tampered: readonly string[] }>;
    /**
     * The set that all authenticated rows are in; undefined before the first one, or when the
     * service did not write it.
     */
    rowSet(): Promise<RowSetHead | undefined>;
    /**
     * Reads all of them: through `snapshot` while others may write. `older`: those of which the
     * service knows a newer version.
     */
    compareRowSet(): Promise<RowSetComparison>;
    /**
     * Where a record must be, of each class whose owners are known by their own rows alone; any
     * other record of such a class is too many.
     */
    places(): Promise<{ readonly classes: readonly RecordClass[]; readonly places: readonly RecordAddress[] }>;
    /** In one order, without the first `after`. */
    records(after: number, limit: number): Promise<readonly WholeRecord[]>;
    /** Token objects of every tenant with a handle greater than `after`, ordered by handle. */
    objects(
      after: number,
      limit: number,
    ): Promise<
      readonly {
        readonly handle: number;
        readonly id: string;
        readonly class: string;
        readonly destroyed: boolean;
        readonly hasContent: boolean;
      }[]
    >;
  };
  /** Marks: what work leaves for later. Nothing is decided by them. */
  readonly settings: {
    get(name: string): Promise<string | undefined>;
    /** Null removes it. */
    set(name: string, value: string | null): Promise<void>;
  };
  /**
   * Settings that decide something, in rows with authentication codes. Throws 'key-tampered' where
   * one was changed from outside.
   */
  readonly decisions: {
    get(name: DecisionName): Promise<string | undefined>;
    set(name: DecisionName, value: string | null): Promise<void>;
    /** Whether each decision has a row. */
    adopted(): Promise<'all' | 'some' | 'none'>;
    /**
     * Afterwards each has one. `isUpgrade`: with the value that an earlier version has kept,
     * otherwise without.
     */
    adopt(isUpgrade: boolean): Promise<void>;
  };
  readonly tenants: {
    /** Every tenant, purged ones too, ordered by id. */
    list(): Promise<readonly Tenant[]>;
    /** For decisions: throws 'key-tampered' where the row was changed from outside. */
    get(id: string): Promise<Sound<Tenant> | undefined>;
    /**
     * The tenant as it is stored, for display, memory, repair and purge: a row that was changed
     * from outside is returned, not refused.
     */
    stored(id: string): Promise<Tenant | undefined>;
    /** Not one that is purged. */
    findByName(name: string): Promise<Tenant | undefined>;
    insert(tenant: Tenant): Promise<void>;
    update(tenant: Tenant): Promise<void>;
    /** What is in it and would stop with it. */
    contents(id: string): Promise<Omit<TenantContents, 'copies'>>;
  };
  /** What the purge of a tenant removes. */
  readonly purge: PurgeRepository;
  /** What the clock removes. */
  readonly pruning: PruningRepository;
  readonly keks: {
    /** Every KEK, ordered by tenant, then epoch. */
    list(): Promise<readonly StoredKek[]>;
    insert(kek: StoredKek): Promise<void>;
    remove(tenantId: string, epoch: number): Promise<void>;
  };
  readonly records: {
    /** The only way to a record that can be opened. */
    of(owner: RecordOwner): OwnedRecords;
    /** Every record of a class of the service's own, by object, then version. */
    ofService(recordClass: RecordClass): Promise<readonly OwnedRecord[]>;
    /** Inserts or replaces. */
    put(record: OwnedRecord): Promise<void>;
    /** Inserts or replaces any number of records. */
    putAll(records: readonly OwnedRecord[]): Promise<void>;
    /** Puts what was sealed again where it stands. */
    replace(records: readonly StoredRecord[]): Promise<void>;
    /** Overwrites the sealed bytes, then removes them. True when there were some. */
    wipe(address: RecordAddress): Promise<boolean>;
    /**
     * Wipes all of these, or changes nothing and answers why: the unit of work continues. A unit
     * that catches an error of the database itself cannot, because PostgreSQL then refuses the rest
     * of it.
     */
    tryWipe(addresses: readonly RecordAddress[]): Promise<{ readonly failure: unknown } | undefined>;
    /** Which records there are of these objects of a tenant. */
    copies(tenantId: string, objectIds: readonly string[]): Promise<readonly RecordAddress[]>;
    /**
     * Records of a tenant sealed under an epoch below this one, by epoch, object, version and
     * class; those behind `after`.
     */
    listOlder(
      tenantId: string,
      epoch: number,
      limit: number,
      after?: RecordPosition | undefined,
    ): Promise<readonly StoredRecord[]>;
    /**
     * Which of these keys and objects are destroyed according to their rows, whether or not the
     * rows authenticate.
     */
    destroyedOwners(objectIds: readonly string[]): Promise<readonly string[]>;
  };
  readonly vaults: {
    /** For decisions: throws 'key-tampered' where the row was changed from outside. */
    get(tenant: TenantScope, id: string): Promise<Sound<Vault> | undefined>;
    /**
     * The vault as it is stored, for display, memory, repair and purge: a row that was changed from
     * outside is returned, not refused.
     */
    stored(tenant: TenantScope, id: string): Promise<Vault | undefined>;
    findByName(tenantId: string, name: string): Promise<Vault | undefined>;
    /** Vaults of the scope, ordered by id. */
    list(tenant: TenantScope, window: Window): Promise<readonly Vault[]>;
    /** Vaults of all tenants, in no order. */
    listByIds(ids: readonly string[]): Promise<readonly Vault[]>;
    /** A vault of any tenant whose dual control names this user as an approver. */
    findNaming(userId: string): Promise<Vault | undefined>;
    insert(vault: Vault): Promise<void>;
    update(vault: Vault): Promise<void>;
  };
  readonly keys: {
    /** For decisions: throws 'key-tampered' where the row was changed from outside. */
    get(tenant: TenantScope, id: string): Promise<Sound<Key> | undefined>;
    /**
     * The key as it is stored, for display, memory, repair and purge: a row that was changed from
     * outside is returned, not refused.
     */
    stored(tenant: TenantScope, id: string): Promise<Key | undefined>;
    /** Newest first. */
    list(tenant: TenantScope, filter: KeyListFilter, window: Window): Promise<readonly Key[]>;
    /** How many the list has, up to `most`. */
    count(tenant: TenantScope, filter: KeyListFilter, most: number): Promise<number>;
    insert(key: Key): Promise<void>;
    /** Without the times of its use. */
    update(key: Key): Promise<void>;
    /**
     * A use, not a change of policy: the first one is written once, the last one where it is later
     * than the known one.
     */
    touch(id: string, first: number, last: number): Promise<void>;
    countLive(vaultId: string): Promise<number>;
    /** The one of a vault that was used last; undefined: none was ever used. */
    lastUsedIn(vaultId: string): Promise<Key | undefined>;
    /**
     * For people: how many keys are destroyed and not unrecoverable; `pending`: those since this
     * time, which no erasure run has covered.
     */
    erasable(covered: number): Promise<{ readonly pending: number; readonly waiting: number }>;
    /**
     * Keys that were destroyed in this time and are not yet unrecoverable, ordered by the time of
     * their destruction, then id. `after`: the last key of the page before.
     */
    listErasable(
      times: { readonly since: number; readonly before: number },
      limit: number,
      after?: Key | undefined,
    ): Promise<readonly Key[]>;
    /**
     * Whose key material is stored, by tenant and object, with the key of that id; those behind
     * `after`.
     */
    materialOwners(
      after: { readonly tenantId: string; readonly objectId: string } | undefined,
      limit: number,
    ): Promise<readonly { readonly tenantId: string; readonly objectId: string; readonly key: Key | undefined }[]>;
    /** Keys of all tenants, in no order. */
    listByIds(ids: readonly string[]): Promise<readonly Key[]>;
    /** In all tenants: the copies of a key, and what it is a copy of; in any state. */
    otherCopies(key: Pick<Key, 'id' | 'copyOf'>): Promise<readonly Key[]>;
    versions(id: string): Promise<readonly (StoredVersion & { readonly vaultCopy: boolean })[]>;
    insertVersion(version: StoredVersion): Promise<void>;
  };
  readonly tokens: {
    get(tenant: TenantScope, id: string): Promise<StoredToken | undefined>;
    findByHash(hash: string): Promise<StoredToken | undefined>;
    /** Tokens of the scope, ordered by id. */
    list(tenant: TenantScope, window: Window): Promise<readonly StoredToken[]>;
    /**
     * Tokens of administrators of the whole platform that belong to no user. `lasting`: those that
     * do not expire.
     */
    countAdministrators(which: { readonly liveAt: number } | 'lasting'): Promise<number>;
    /**
     * Whether a live token of this tenant and owner, where null is the platform and the service,
     * has the name.
     */
    hasLive(tenantId: string | null, ownerId: string | null, name: string, now: number): Promise<boolean>;
    insert(token: StoredToken): Promise<void>;
    update(token: StoredToken): Promise<void>;
    touch(id: string, at: number): Promise<void>;
  };
  readonly audit: {
    /** Answers how many records there are then. */
    append<K extends AuditKind>(event: NewAuditEvent<K>): Promise<number>;
    list(
      tenant: TenantScope,
      filter: {
        readonly kind?: AuditKind | undefined;
        /** Only records of kinds that matter at least so much. */
        readonly severity?: AuditSeverity | undefined;
        readonly actorId?: string | undefined;
        readonly subjectId?: string | undefined;
        readonly requestId?: string | undefined;
        readonly from?: number | undefined;
        readonly to?: number | undefined;
        readonly order: 'newest' | 'oldest';
      },
      window: Window,
    ): Promise<readonly AuditEvent[]>;
    /** How many records there are. */
    size(): Promise<number>;
    /** How many are of one tenant. */
    count(tenantId: string): Promise<number>;
    /**
     * The root of a perfect subtree of the log's Merkle tree (base/merkle-tree.ts), all of whose
     * leaves are there.
     */
    subtree(level: number, position: number): Promise<Buffer>;
    insertCheckpoint(checkpoint: StoredCheckpoint): Promise<void>;
    latestCheckpoint(): Promise<StoredCheckpoint | undefined>;
    /**
     * Removes every checkpoint: for a log that gets another name, because they are of its former
     * one.
     */
    dropCheckpoints(): Promise<void>;
    /** Newest first, or oldest first; `after` is a size. */
    checkpoints(order: 'newest' | 'oldest', window: Window): Promise<readonly StoredCheckpoint[]>;
  };
  readonly approvals: {
    get(tenant: TenantScope, id: string): Promise<Approval | undefined>;
    /** Newest first. */
    list(
      tenant: TenantScope,
      filter: {
        readonly state?: ApprovalState | undefined;
        readonly subjectId?: string | undefined;
      },
      window: Window,
    ): Promise<readonly Approval[]>;
    /** Pending and approved ones, by id. */
    listOpen(): Promise<readonly Approval[]>;
    insert(approval: Approval): Promise<void>;
    update(approval: Approval): Promise<void>;
  };
  readonly notifications: {
    get(tenant: TenantScope, id: string): Promise<Notification | undefined>;
    /**
     * Open notifications, ordered by the time of their harm; `after` is that time and the id: see
     * `harmCursor`.
     */
    listOpen(tenant: TenantScope, filter: NotificationFilter, window: Window): Promise<readonly Notification[]>;
    /** Newest first. */
    listResolved(tenant: TenantScope, filter: NotificationFilter, window: Window): Promise<readonly Notification[]>;
    /**
     * Open notifications of these kinds, in every tenant. `subjects`: ids of what they are about,
     * at most some hundred; null: about anything.
     */
    listOpenOf(
      kinds: readonly NotificationKind[],
      subjects: readonly string[] | null,
    ): Promise<readonly Notification[]>;
    /** 'conflict' when one of this kind about this subject is open. */
    insert(notification: Notification): Promise<void>;
    update(notification: Notification): Promise<void>;
    appendEvent(event: Omit<NotificationEvent, 'sequence'>): Promise<void>;
    /** In their order. */
    listEvents(after: number, limit: number): Promise<readonly NotificationEvent[]>;
    countEvents(after: number): Promise<number>;
    /**
     * Open ones that are not acknowledged, by tenant and severity; those without any are absent.
     */
    countOpen(): Promise<readonly { readonly tenantId: string; readonly severity: string; readonly count: number }[]>;
    /**
     * Versions of keys that were made before this time, oldest first, from the one after `after`
     * on. `vault`: of those that their active general-purpose keys use now; null: of others.
     */
    oldVersions(
      before: number,
      after: KeyVersionAge | null,
      limit: number,
    ): Promise<
      readonly (KeyVersionAge & {
        readonly vault: Pick<Vault, 'id' | 'tenantId' | 'name' | 'profile'> | null;
      })[]
    >;
  };
  readonly snapshots: SnapshotRepository;
  readonly outsideCopies: OutsideCopyRepository;
  readonly openings: OpeningRepository;
  readonly recoveryKeys: RecoveryKeyRepository;
  readonly keyBindings: KeyBindingRepository;
  readonly tenantRows: TenantRows;
  readonly search: SearchRepository;
  readonly idempotency: IdempotencyRepository;
  readonly nodes: {
    /** Every node, ordered by name. */
    list(): Promise<readonly NodeRow[]>;
    get(id: string): Promise<NodeRow | undefined>;
    /** Inserts, or replaces the row of the same id. */
    put(node: NodeRow): Promise<void>;
    /** The settings of a node that is removed go with it. */
    setState(id: string, state: NodeState): Promise<void>;
    /**
     * Sets what a node tells the others in a setting of its own; null removes it. Answers whether
     * it did: a node without a row, or one that is removed, tells nothing.
     */
    tell(id: string, what: NodeSetting, value: string | null): Promise<boolean>;
    /**
     * Whether the node still has the duty, under this fencing number; it keeps it until the unit of
     * work ends. Of a shared store.
     */
    hasDuty(hold: DutyHold): Promise<boolean>;
  };
}

export interface Store {
  readonly dialect: string;
  /** Where other processes use the same store. */
  readonly link: NodeLink | undefined;
  /**
   * The number of the newest change that this process has made, or has found when its last unit of
   * work began; 0 when there is no other process.
   */
  epoch(): number;
  /** The change that `epoch()` numbers, with its id. */
  mark(): ChangeMark;
  /** The first of several starts has finished: the next one may begin. */
  started(): Promise<void>;
  /**
   * For a store that can lose confirmed changes without noticing it. `found`: how many audit
   * records it had at its last durable commit, and the root of their tree where that is known, as
   * read at the start; undefined: not known. `accept` takes the store as it is. Undefined where the
   * store answers for itself.
   */
  readonly committed:
    | {
        readonly found: { readonly records: number; readonly root: Buffer | undefined } | undefined;
        accept(): void;
        /** The file with the number, for reports. */
        place(): string;
      }
    | undefined;
  /** Null when the store is not a file. */
  readonly path: string | null;
  readonly read: Repositories;
  write<T>(
    work: (tx: Repositories) => Promise<T>,
    /**
     * `durable: false`: still all or nothing, but a power failure may undo it: for changes that no
     * caller waits for. What the database is compared with later stays all the same: audit records,
     * and in a shared store policy rows and what nodes hear of.
     * `background: true`: callers' units of work go first (writer.ts).
     */
    options?: { readonly durable?: boolean; readonly background?: boolean },
  ): Promise<T>;
  /**
   * Reads one state from beginning to end, while others write. Nothing may be written through it.
   */
  snapshot<T>(work: (from: Repositories) => Promise<T>): Promise<T>;
  /**
   * Does work on a copy of what a restore reads and writes. Only the work sees it, nothing of it
   * stays, and others write in the meantime. What it opens and seals has to be a ring of its own
   * (KeyRing.aside).
   */
  tryOut<T>(work: (tx: Repositories) => Promise<T>): Promise<T>;
  readonly written: WrittenRecords;
  /** The set of all authenticated rows: see `whole.compareRowSet`. */
  readonly rowSet: {
    /**
     * Once, when the key of the codes is open: from then on, rows that are older than the newest
     * ones count as tampered. `head` is undefined where no row has been written since rows have
     * versions.
     */
    load(): Promise<LoadedRowSet>;
    /** The newest version that this process knows. */
    version(): number;
    /** Takes the rows as they are, under a version above this one. */
    adopt(atLeast: number): Promise<void>;
    /**
     * Writes a sum of an earlier version of DKE under the keys of today, if it is that of the rows.
     */
    convert(): Promise<void>;
  };
  /** Name of the newest change of the tables. */
  readonly schema: string;
  /** Units of work that wait for their turn. */
  waiting(): number;
  /** A caller waits for a durable unit of work: uses of keys give way. */
  isWriting(): boolean;
  /**
   * Compares the file of an embedded database with the open one. When it was deleted or replaced,
   * changes are refused from then on, and what is open is saved to a new file.
   */
  checkFile(): Promise<void>;
  /** Compares the file, then writes and reads a row. */
  probe(): Promise<void>;
  /** Moves the write-ahead log into the database and truncates it, where there is one. */
  checkpoint(): Promise<void>;
  close(): Promise<void>;
}
