// What a database must bring so that the store can stand on it.

import type { CompiledQuery, Dialect, Kysely } from 'kysely';
import type { RequestHash } from '../../../base/request-minutes.ts';
import type { ChangeMark } from '../../../domain/change-protocol.ts';
import type { Changes } from '../../../domain/changes.ts';
import type { NodeLink } from '../../../ports/node-link.ts';
import type { SchemaList } from '../schema/compare-schema.ts';
import type { ColumnKinds } from '../schema/create-tables.ts';
import type { CommittedMark } from './sqlite/committed-mark.ts';
import type { OwnFile } from './sqlite/own-file.ts';

/**
 * What an error says about the store as a whole. `fatal`: nothing that was written since the last
 * commit is certain. `away`: the database was not reached, and nothing was changed. `unknown`: the
 * answer to a commit did not come. `busy`: another process keeps it locked. `text`: it has no such
 * character in a text.
 */
export type ErrorKind = 'fatal' | 'full' | 'constraint' | 'text' | 'away' | 'unknown' | 'busy' | undefined;

/** The newest change, and how often the set of KEKs has changed. */
export type HeadOfChanges = ChangeMark & { readonly keks: number };

/** Runs a statement on the writer's connection. */
type Run = (statement: string) => Promise<void>;

export interface Engine {
  readonly name: 'sqlite' | 'postgres';
  /** Null when the store is not a file. */
  readonly path: string | null;
  /** For people, without secrets. */
  readonly place: string;
  /** What to do about a full disk. */
  readonly whenFull: string;
  /** What to do about one that does not answer. */
  readonly whenStalled: string;
  /** One connection. */
  readonly writer: Dialect;
  /** Sees only what is committed. */
  readonly reader: Dialect;
  /**
   * A connection of its own for one long read of one state; the caller ends it. Null: `reader` has
   * enough of them.
   */
  lasting(): Dialect | null;
  /** Where a walk through the request log would delay others: what reads it instead of `reader`. */
  readonly requests:
    | {
        readonly reader: Dialect;
        /** Carries out a statement that returns records, and answers with their hashes. */
        hashes(query: CompiledQuery): Promise<readonly RequestHash[]>;
      }
    | undefined;
  readonly columns: ColumnKinds;
  readonly schema: SchemaList;
  kindOf(error: unknown): ErrorKind;
  /** The database has undone one transaction for another one's sake: done again, it may succeed. */
  isUndone(error: unknown): boolean;
  /** What an error of kind `away` means, and what to do, with the words of the database. */
  readonly whenAway: (error: unknown) => { readonly what: string; readonly hint: string } | undefined;
  /**
   * No other writer, of any process, until the end of the transaction. `durable`: see
   * WriterConnection. Where other processes use the database, answers the newest change, and how
   * often the set of KEKs has changed.
   */
  begin(run: Run, durable: boolean): Promise<HeadOfChanges | undefined>;
  /** The transaction under way, which was not begun as a durable one, becomes one. */
  outlast(run: Run): Promise<void>;
  commit(run: Run): Promise<void>;
  rollback(run: Run): Promise<void>;
  /** After each commit. */
  committed(): void;
  /** Where a database can lose confirmed changes without noticing it. */
  readonly mark: CommittedMark | undefined;
  /** Where the database is a file that can be deleted under the process. */
  readonly file: OwnFile | undefined;
  /** The writer runs. `pause` keeps it from beginning a transaction while the work is done. */
  started(writer: { pause(work: () => Promise<void>): Promise<void> }): void;
  /** Where several processes use the database. */
  readonly shared:
    | {
        readonly link: NodeLink;
        /**
         * Identifies the server that answers: a failover changes it, and may have taken back what
         * the former one had confirmed.
         */
        lineage(): string;
        /**
         * Within the transaction: what the others must read again. They hear of it when it is
         * committed. `history`: the id of this change.
         */
        announce(
          changes: Changes,
          as: { readonly previous: ChangeMark; readonly history: string },
        ): Promise<HeadOfChanges>;
        /**
         * Names of the nodes that are connected now, also while the database is of another version.
         */
        running(): Promise<readonly string[]>;
        /**
         * Like `running`, within a transaction of its own connection: from then on until its end,
         * no other process writes, whichever version it is of.
         */
        // biome-ignore lint/suspicious/noExplicitAny: a migration's database has the schema of its own time
        fence(db: Kysely<any>): Promise<readonly string[]>;
        /** What the first of several starts makes, the next ones find. */
        started(): Promise<void>;
      }
    | undefined;
  /** Moves the write-ahead log into the database and truncates it, where that is in our hands. */
  checkpoint(): Promise<void>;
  /** Before both dialects are closed. */
  close(): Promise<void>;
}
