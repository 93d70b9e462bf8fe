// What servers that share a store say to one another, through the store: who is there, what has
// changed, who has which duty. Nothing here waits for the writer's turn, so that a long unit of
// work of one node does not make the others look dead.

import type { ChangeMark } from '../domain/change-protocol.ts';
import type { Changes } from '../domain/changes.ts';
import type { Duty, NodeState } from '../domain/node.ts';
import type { RootRun, DatabaseCopy as StoredCopy } from '../domain/root-run.ts';

export interface NodeRow {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly state: NodeState;
  readonly startedAt: number;
  readonly heartbeatAt: number;
  /**
   * How long it keeps using keys without contact to the store, in milliseconds; 0: without a limit.
   */
  readonly contactMs: number;
  /** The last change that it shows. */
  readonly epoch: number;
  /** How far its host's clock is ahead of the store's, in milliseconds, at its last heartbeat. */
  readonly clockAheadMs: number;
  /** The newest and the oldest root key that it has. */
  readonly rootEpoch: number;
  readonly oldestRootEpoch: number;
  /**
   * The public key to which a new root key is sealed for it (X25519), and the proof that it has the
   * root key (operations/root/spread-root.ts).
   */
  readonly publicKey: Buffer;
  readonly proof: Buffer;
}

/**
 * A start of a node: the whole of what it says of itself in its row. `directory`: distinguishes a
 * data directory from a copy of it; empty: nothing does.
 */
export type NodeStart = Pick<NodeRow, 'name' | 'version' | 'startedAt' | 'contactMs'> & { readonly directory: string };

/** What a node shows to others of its root keys. */
export type NodeRootKeys = Pick<NodeRow, 'rootEpoch' | 'oldestRootEpoch' | 'publicKey' | 'proof'>;

export type OwnNodeRow = Pick<NodeRow, 'id'> & Omit<NodeStart, 'startedAt'> & NodeRootKeys;

/**
 * Since the last heartbeat, in milliseconds: by the store's wall clock as the link reads it, which
 * may jump; by the observer's monotonic clock as the fleet passes it on
 * (operations/nodes/heard-nodes.ts).
 */
export type SeenNode = NodeRow & { readonly silentMs: number };

export interface RootParcel {
  readonly nodeId: string;
  readonly epoch: number;
  readonly publicKey: Buffer;
  readonly sealed: Buffer;
}

/** A duty as a node has it: an owner that comes later has a higher number. */
export interface DutyHold {
  readonly duty: Duty;
  readonly nodeId: string;
  readonly fence: number;
}

export interface DutyRow {
  readonly duty: Duty;
  /** Null: it was given up. */
  readonly nodeId: string | null;
  readonly fence: number;
  /** Grows each time that the owner renews it. */
  readonly renewals: number;
}

export interface BeatingNode {
  readonly id: string;
  readonly shown: ChangeMark | undefined;
  readonly run?: NodeStart | undefined;
}

export interface Beat {
  /** Undefined: the row no longer exists. */
  readonly state: NodeState | undefined;
  /** The start of the node that the row was of before this beat. */
  readonly startedAt: number;
  /** The schema of the database (Store.schema). */
  readonly schema: string;
  /** The last change of all. */
  readonly last: ChangeMark;
  readonly rootRun: RootRun | undefined;
}

/** How far the database is with its own log, on which timeline of which cluster. */
export interface LogPosition {
  readonly system: string;
  readonly timeline: number;
  readonly position: string;
}

export interface DatabaseCopy extends StoredCopy {
  /** Whether the copy usually needs minutes until it is up to date. */
  readonly isSlow: boolean;
  /** Follows the name: why it may be behind for long, and what helps; empty: not known. */
  readonly hint: string;
}

/** All fail while the store is away; the next call tries to connect again. */
export interface NodeLink {
  /**
   * Keeps every other process from bearing this id, as long as the connection lasts. 'copy': one
   * with another data directory may still use keys under it, for so long, without being connected.
   */
  claim(
    id: string,
    directory: string,
  ): Promise<{ readonly state: 'claimed' | 'taken' } | { readonly state: 'copy'; readonly forMs: number }>;
  /**
   * Adds the node's row, or updates it; the node's next beat says which changes it shows. Answers
   * the time of its start, which tells it from its other ones; undefined: it was removed.
   */
  join(row: OwnNodeRow): Promise<number | undefined>;
  /**
   * `shown`: the last change that the node shows; undefined: none. It counts only while it is in
   * the history of the database that answers: after a failover, others would take it for another
   * change with its number. `run`: undefined before it has joined; otherwise the row becomes that
   * of this start. `now`: this host's clock.
   */
  beat(node: BeatingNode, now: number): Promise<Beat>;
  /** What the clocks of the store and of the other running nodes say. */
  clocks(): Promise<readonly number[]>;
  /** Reports which root keys it has, and the proof. */
  tellRoot(row: Pick<NodeRow, 'id'> & NodeRootKeys): Promise<void>;
  /**
   * Says that the node has ended in order: other nodes do not wait for it. A removed node stays
   * removed.
   */
  leave(id: string): Promise<void>;
  nodes(): Promise<readonly SeenNode[]>;
  /** The ids of nodes whose connection to the store is open. */
  connected(): Promise<ReadonlySet<string>>;
  /**
   * What has changed since this change. `more`: there is more, for the next question. 'pruned':
   * some of it is no longer stored. 'changed': another program has written some of it. `lost`: what
   * the database has in its place; this change is no longer in it: it has returned to an earlier
   * state. `records`: the audit records that are known.
   */
  changesSince(
    mark: ChangeMark,
    records: number,
  ): Promise<
    | {
        readonly last: ChangeMark;
        readonly changes: readonly Changes[];
        readonly marks: readonly ChangeMark[];
        readonly more: boolean;
        /**
         * Hashes of the next audit records, and the version of the policy rows, in the state in
         * which these changes were read.
         */
        readonly leaves: readonly Buffer[];
        readonly rows: number;
      }
    | 'pruned'
    | 'changed'
    | { readonly lost: ChangeMark }
  >;
  /** Forgets changes older than this. */
  pruneChanges(olderThanMs: number): Promise<void>;
  /** Tells all nodes that this one shows everything up to this change, as `beat` does. */
  tellShown(id: string, shown: ChangeMark): Promise<void>;
  /** Renews these, where they still are this node's; answers which were, and the rows of all. */
  renewDuties(
    held: readonly DutyHold[],
  ): Promise<{ readonly rows: readonly DutyRow[]; readonly renewed: ReadonlySet<Duty> }>;
  /**
   * Takes a duty when its row is still the same and no unit of work of its owner is being
   * committed; answers its new fencing number.
   */
  takeDuty(seen: DutyRow, nodeId: string): Promise<number | undefined>;
  giveUpDuty(hold: DutyHold): Promise<void>;

  rootRun(): Promise<RootRun | undefined>;
  /**
   * Changes it when it is still `before`, and this duty, if it is a duty's work, still this node's;
   * answers whether it was.
   */
  setRootRun(before: RootRun | undefined, after: RootRun | undefined, hold?: DutyHold): Promise<boolean>;
  putParcel(parcel: RootParcel): Promise<void>;
  parcel(nodeId: string): Promise<RootParcel | undefined>;
  /** Overwrites and deletes it. */
  wipeParcel(nodeId: string): Promise<void>;

  // --- copies of the database --------------------------------------------------------------------
  /** Everything that is committed durably is before it. */
  logPosition(): Promise<LogPosition>;
  /**
   * Copies that the database knows of: standbys, replication slots, the archive of its log.
   * 'other': it is no longer the database of this position.
   */
  copies(position: LogPosition): Promise<readonly DatabaseCopy[] | 'other'>;
  /** Settings of the server with which it may lose what it confirms, in words; empty: none. */
  risks(): Promise<readonly string[]>;
  /** Standbys that may lag behind what was confirmed, by name. */
  asynchronousStandbys(): Promise<readonly string[]>;

  /**
   * From now on: something was committed (by whomever), a node shows more, the connection is lost,
   * another process has come to have this node's id in the meantime.
   */
  listen(heard: {
    changed(newest: ChangeMark): void;
    applied(nodeId: string, epoch: number): void;
    rootRunChanged(): void;
    lost(): void;
    copied(): void;
  }): void;
  close(): Promise<void>;
}
