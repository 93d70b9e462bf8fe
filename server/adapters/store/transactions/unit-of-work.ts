// The writer's transactions: each unit of work with what it has changed, so that the commit tells
// the other processes, and the mark of the committed records moves with it.

import { CompiledQuery, type Kysely } from 'kysely';
import { newId } from '../../../base/ids.ts';
import { ServiceError } from '../../../base/service-error.ts';
import type { Clock } from '../../../base/time.ts';
import type { ChangeMark } from '../../../domain/change-protocol.ts';
import { type Changes, mergeChanges } from '../../../domain/changes.ts';
import type { Repositories, WrittenRecords } from '../../../ports/store.ts';
import type { Engine, HeadOfChanges } from '../engine/engine.ts';
import { createRepositories } from '../repositories/repositories.ts';
import { createWrittenRecords } from '../repositories/written-records.ts';
import type { RowSet } from '../rows/row-set.ts';
import type { Schema } from '../schema/schema.ts';
import { createWriter, type Stalls, type Writer, type WriterConnection } from './commit-writer.ts';
import { noteChanges } from './noted-changes.ts';
import type { StoreErrors } from './translate-error.ts';

/** How long the database may give no sign before who waits for it is answered. */
const stalledAfterMs = 5_000;
const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`;

const stallsOf = (engine: Engine, clock: Clock, onLate: () => void): Stalls => ({
  afterMs: stalledAfterMs,
  now: () => clock.monotonic(),
  undone: (forMs) =>
    new ServiceError('unavailable', `${engine.place} has not answered for ${seconds(forMs)}: nothing was changed`, {
      hint: engine.whenStalled,
    }),
  unknown: (forMs) =>
    new ServiceError(
      'unavailable',
      `${engine.place} has not confirmed the change for ${seconds(forMs)}: it may be made yet`,
      { hint: `check whether it was made before you repeat it; ${engine.whenStalled}`, reason: 'unconfirmed' },
    ),
  onLate,
});

export interface TransactionOptions {
  readonly engine: Engine;
  readonly db: Kysely<Schema>;
  readonly set: RowSet;
  readonly clock: Clock;
  readonly errors: StoreErrors;
  /**
   * Memory may have other KEKs than the database: another process has changed them, or a unit of
   * work that made some was undone. Called in a unit of work, before it writes.
   */
  readonly onKeks?: ((tx: Repositories) => Promise<void>) | undefined;
  /** In a unit of work that changes what other nodes must know: what it throws undoes the unit. */
  readonly onChange?: (() => void) | undefined;
  /**
   * A commit has succeeded whose units had been told that the outcome is unknown: what memory has
   * of these things is no longer true.
   */
  readonly onLate?: ((changes: Changes) => void) | undefined;
}

export interface Transactions {
  readonly writer: Writer;
  /** What a unit of work uses. */
  readonly tx: Repositories;
  /** The newest change that this process knows. */
  mark(): ChangeMark;
  readonly written: WrittenRecords;
}

/** Whether KEKs are in memory that may not be stored: of units of work that were undone. */
const createDoubts = (compare: () => Promise<void>) => {
  let isDoubtful = false;
  const doubt = (undone: readonly Changes[]): void => {
    isDoubtful ||= undone.some(({ keks }) => keks === true);
  };
  return {
    isDoubtful: () => isDoubtful,
    doubt,
    compare: async (): Promise<void> => {
      await compare();
      isDoubtful = false;
    },
    /** A commit: where it fails, it is not known whether these were undone. */
    unless: async (done: readonly Changes[], commit: () => Promise<void>): Promise<void> => {
      const before = isDoubtful;
      doubt(done);
      await commit();
      isDoubtful = before;
    },
  };
};

export const createTransactions = (options: TransactionOptions): Transactions => {
  const { engine, db, set, clock, errors, onKeks, onChange, onLate } = options;
  const run = async (text: string): Promise<void> => {
    await db.executeQuery(CompiledQuery.raw(text));
  };
  const { shared } = engine;
  /** What the unit of work under way has changed, and those of the transaction before it. */
  let unit: Changes[] = [];
  let done: Changes[] = [];
  /** Whether the transaction under way is a durable one. */
  let lasting = true;
  let mark: ChangeMark = { epoch: 0, history: '' };
  let keks: number | undefined;
  const { transaction } = set;
  const memory = createWrittenRecords(shared?.lineage);
  const plain = createRepositories(db, set, 'transaction', clock, memory.append);
  /**
   * Audit records after the newest append of the unit of work under way, of the units before it,
   * and of what is committed.
   */
  const records: { unit?: number | undefined; done?: number | undefined; committed?: number | undefined } = {};
  const audit: Repositories['audit'] = {
    ...plain.audit,
    append: async (event) => {
      records.unit = await plain.audit.append(event);
      return records.unit;
    },
  };
  const tx = noteChanges({ ...plain, audit }, (changes) => {
    onChange?.();
    unit.push(changes);
  });
  const endUnit = (): void => {
    transaction.releaseSavepoint();
    done.push(...unit);
    memory.endUnit();
    records.done = records.unit ?? records.done;
  };
  const beginUnit = (): void => {
    unit = [];
    records.unit = undefined;
    memory.beginUnit();
    transaction.savepoint();
  };
  const keksInMemory = createDoubts(async () => onKeks?.(plain));
  let told: HeadOfChanges | undefined;
  const connection: WriterConnection = {
    begin: async (durable) => {
      errors.requireTrusted();
      lasting = durable;
      unit = [];
      done = [];
      records.unit = undefined;
      records.done = undefined;
      memory.begin();
      transaction.begin();
      const found = await engine.begin(run, durable);
      // A request that changes nothing has found the work of this change done.
      if (found !== undefined) mark = { epoch: found.epoch, history: found.history };
      if (found?.keks === keks && !keksInMemory.isDoubtful()) return;
      await keksInMemory.compare();
      keks = found?.keks;
    },
    isLocked: (error) => engine.kindOf(error) === 'busy',
    prepare: async () => {
      errors.requireTrusted();
      const changed = await transaction.prepare(db);
      // What others read, keep and forward of the audit log stays. So does what a process that
      // outlives a crash of the database compares with it: the version of the policy rows, and the
      // newest change. Else the database is older than what is known of it, and refused.
      const isCompared = shared !== undefined && (changed || done.length > 0);
      if (!lasting && (isCompared || records.done !== undefined)) {
        lasting = true;
        await engine.outlast(run);
      }
      const as = { previous: mark, history: newId(clock.now()) };
      told = done.length === 0 ? undefined : await shared?.announce(mergeChanges(done), as);
    },
    commit: async () => {
      await keksInMemory.unless(done, () => engine.commit(run));
      transaction.committed();
      memory.commit();
      records.committed = records.done ?? records.committed;
      if (lasting && records.committed !== undefined && engine.mark !== undefined) {
        const { tree } = memory.written;
        const root = tree?.size === records.committed ? tree.root : undefined;
        engine.mark.write({ records: records.committed, root });
      }
      if (told !== undefined) {
        mark = { epoch: told.epoch, history: told.history };
        ({ keks } = told);
      }
      engine.committed();
    },
    rollback: () => {
      keksInMemory.doubt([...done, ...unit]);
      transaction.rolledBack();
      return engine.rollback(run);
    },
    savepoint: () => {
      beginUnit();
      return run('savepoint unit');
    },
    releaseSavepoint: async () => {
      await run('release savepoint unit');
      endUnit();
    },
    rollbackToSavepoint: async () => {
      keksInMemory.doubt(unit);
      beginUnit();
      await run('rollback to savepoint unit');
      if (keksInMemory.isDoubtful()) await keksInMemory.compare();
    },
    endOnlyUnit: endUnit,
  };
  const stalls = stallsOf(engine, clock, () => onLate?.(mergeChanges(done)));
  return { writer: createWriter(connection, errors.ofWriting, stalls), tx, mark: () => mark, written: memory.written };
};
