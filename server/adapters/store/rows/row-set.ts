// Freshness of the policy rows. A row's authentication code says that the service wrote the row,
// not that it is the newest one: so each row carries the version of the set that it was written in,
// and the set has a sum over all rows. Three things follow:
// - A row that is loaded and is older than the version known for it, or is in no version of this
//   process's set, counts as tampered.
// - The sum that is stored, and signed with each checkpoint of the audit log, must be that of the
//   rows: an old row, a removed one or an added one changes it, also while the service is stopped.
// - A stored sum that is older than one already seen is refused.
// A row is changed only in a unit of work that has read it: what was read before may be older, and
// writing it back would undo a change.
//
// The sum adds one pseudorandom number for each row, modulo 2^256 (an incremental multiset hash:
// Clarke, Devadas, van Dijk, Gassend, Suh: "Incremental multiset hash functions", ASIACRYPT 2003,
// MSet-Add-Hash). The numbers and the sum stay secret, because a person who knows many of them
// could combine old rows to the same sum; what is stored is masked with a pad that belongs to its
// version.

import type { Kysely } from 'kysely';
import type { RowAuthenticator } from '../../../base/row-jobs.ts';
import { ServiceError } from '../../../base/service-error.ts';
import type { Difference } from '../../../domain/difference.ts';
import type { Integrity } from '../../../domain/vault.ts';
import type { LoadedRowSet, RowSetComparison, RowSetHead } from '../../../ports/store.ts';
import type { PolicyTable, Schema } from '../schema/schema.ts';
import { policyTables, refuseTampered, rowIntegrity, sealRow } from './row-codes.ts';
import { type Coded, coded, createHeads, type Head, type Heads, named, newestLayout, reduce } from './row-set-head.ts';

type Loose = { readonly [column: string]: unknown };
/** `version` is undefined for a row that was removed. */
interface Change {
  readonly table: PolicyTable;
  readonly id: string;
  readonly version: number | undefined;
}
interface Changes {
  delta: bigint;
  readonly rows: Change[];
}
const noChanges = (): Changes => ({ delta: 0n, rows: [] });

/**
 * A row is older than the newest one known: the read began before a commit, or an older row was
 * restored. Reading again shows which.
 */
export class OutdatedRow extends Error {
  override readonly name = 'OutdatedRow';
}

/**
 * Who reads: a `reader` throws OutdatedRow where reading again may help, `again` does not. A
 * `transaction` sees what it writes. A long read sees one state while others commit.
 */
export type ReadingAs = 'reader' | 'again' | 'transaction' | LongRead;

export interface LongRead {
  /** Version of the row set in the state that the read sees. */
  readonly version: number;
  /**
   * The newest version that this process knew before the read began: a commit since then is not in
   * the state, and need not be.
   */
  readonly known: number;
}

/** The policy rows of one connection. */
export interface PolicyRows {
  /** Whether this process has seen rows of the table. */
  knows(table: PolicyTable): boolean;
  /**
   * Ids of the rows that this process knows, in a unit of work: other reads may be of an earlier
   * state of the database, and know of none.
   */
  known(table: PolicyTable): readonly string[];
  integrity(table: PolicyTable, row: Loose & { readonly row_mac: string }): Integrity;
  insert(table: PolicyTable, row: Loose & { readonly id: string }): Promise<void>;
  /** Inserts the row. False: there is one of this id, and nothing is changed. */
  insertNew(table: PolicyTable, row: Loose & { readonly id: string }): Promise<boolean>;
  /**
   * Replaces these columns; does nothing when there is no such row. Throws 'key-tampered' when the
   * stored one is not what the service wrote last, or this unit of work has read it as tampered,
   * and 'internal' when this unit of work has not read it.
   */
  update(table: PolicyTable, row: Loose & { readonly id: string }): Promise<void>;
  /** Answers how many there were. */
  remove(table: PolicyTable, ids: readonly string[]): Promise<number>;
  /**
   * Inserts or replaces with a statement of the caller's, which gets the sealed rows. A code that
   * is given instead of a row's own is kept.
   */
  put<R extends Loose & { readonly id: string }>(
    table: PolicyTable,
    rows: readonly { readonly row: R; readonly code: string | undefined }[],
    write: (sealed: readonly (R & { readonly row_mac: string; readonly row_version: number })[]) => Promise<void>,
  ): Promise<void>;
}

export interface RowSet {
  over(db: Kysely<Schema>, as: ReadingAs): PolicyRows;
  /**
   * Reads all rows and keeps their versions in memory: from then on, old rows are refused. Nothing
   * is written in the meantime.
   */
  load(db: Kysely<Schema>): Promise<LoadedRowSet>;
  /**
   * In one state of the database. `older`: names of restored older rows, as far as this process
   * knows.
   */
  compare(db: Kysely<Schema>, as: ReadingAs): Promise<RowSetComparison>;
  head(db: Kysely<Schema>): Promise<RowSetHead | undefined>;
  /** The newest version that this process has seen. */
  version(): number;
  /** Takes all rows as they are, under a version above `atLeast`. */
  adopt(db: Kysely<Schema>, atLeast: number): Promise<void>;
  /**
   * In a unit of work: writes a sum of an earlier layout in the newest one, if it is that of the
   * rows. Another one stays, for the comparison to tell.
   */
  convert(db: Kysely<Schema>): Promise<void>;
  /** The steps of the writer (commit-writer.ts). */
  readonly transaction: {
    begin(): void;
    savepoint(): void;
    releaseSavepoint(): void;
    /** Answers whether a row has changed, and with it the version of the set. */
    prepare(db: Kysely<Schema>): Promise<boolean>;
    committed(): void;
    rolledBack(): void;
  };
}

const atOnce = 500;

const inParts = async <T>(all: readonly T[], each: (part: readonly T[]) => Promise<void>): Promise<void> => {
  for (let at = 0; at < all.length; at += atOnce) await each(all.slice(at, at + atOnce));
};

/** What this process knows of the rows, and the transaction under way. */
interface State {
  /** Versions of the rows, by id. */
  readonly known: ReadonlyMap<PolicyTable, Map<string, number>>;
  isLoaded: boolean;
  /** The newest that this process has seen. */
  newest: Head;
  /** What the transaction under way found, once it was asked for. */
  base: Head | undefined;
  /** What the transaction under way has changed, without the unit of work in it. */
  batch: Changes;
  unit: Changes;
  /** The rows that the unit of work has read or written, and whether they were sound. */
  read: Map<string, Integrity>;
  /**
   * Versions of the rows in the commit under way, by table and id: readers may see the rows before
   * this process hears that they are committed.
   */
  committing: Map<string, number>;
  next: Head | undefined;
}

const noHead: Head = { version: 0, tag: '', sum: 0n, layout: newestLayout };
const createState = (): State => ({
  known: new Map(policyTables.map((table) => [table, new Map()])),
  isLoaded: false,
  newest: noHead,
  base: undefined,
  batch: noChanges(),
  unit: noChanges(),
  read: new Map(),
  committing: new Map(),
  next: undefined,
});
const versionsOf = ({ known }: State, table: PolicyTable): Map<string, number> => known.get(table) ?? new Map();
const nameOf = (table: PolicyTable, id: string): string => `${table} ${id}`;
const keep = (state: State, found: Head | null | undefined): void => {
  if (found && found.version > state.newest.version) state.newest = found;
};

interface Context {
  readonly state: State;
  readonly heads: Heads;
  readonly authenticate: RowAuthenticator;
  /** Other processes write to the database, too. */
  readonly isShared: boolean;
}

const refuse = (): never => {
  throw new ServiceError(
    'key-tampered',
    'the stored rows are older than what the service wrote last: nothing was changed',
    {
      hint: 'restore the newest database; dke verify shows what differs',
    },
  );
};

/** What the transaction under way began with. */
const baseOf = async ({ state, heads, isShared }: Context, db: Kysely<Schema>): Promise<Head> => {
  if (state.base !== undefined) return state.base;
  if (state.isLoaded && !isShared) state.base = state.newest;
  else {
    const found = await heads.read(db);
    if (found === null || (found?.version ?? 0) < state.newest.version) return refuse();
    state.base = found ?? state.newest;
  }
  return state.base;
};

/** Whether the row is the newest one as far as this process knows. */
const isNewest = (
  { state, isShared }: Context,
  table: PolicyTable,
  { id, row_version: version }: Coded,
  as: ReadingAs,
): boolean => {
  if (!state.isLoaded) return true;
  const versions = versionsOf(state, table);
  const found = versions.get(id);
  // What was changed since a long read began is older in it.
  if (typeof as === 'object') return found === undefined || found > as.version || version >= found;
  if (as === 'transaction' && state.base !== undefined && version === state.base.version + 1) return true;
  if (found === undefined) return isShared || state.committing.get(nameOf(table, id)) === version;
  // Another process has written it.
  if (version > found && isShared && as !== 'transaction') versions.set(id, version);
  return version >= found;
};

/** The policy rows of one connection. */
const policyRowsOver = (context: Context, db: Kysely<Schema>, as: ReadingAs): PolicyRows => {
  const { state, heads, authenticate } = context;
  const integrityOf: PolicyRows['integrity'] = (table, row) => {
    if (rowIntegrity(authenticate, table, row) !== 'ok') return 'tampered';
    if (isNewest(context, table, row as unknown as Coded, as)) return 'ok';
    if (as === 'reader') throw new OutdatedRow('the row is older than the newest one');
    return 'tampered';
  };
  const integrity: PolicyRows['integrity'] = (table, row) => {
    const found = integrityOf(table, row);
    if (as === 'transaction') state.read.set(nameOf(table, String(row.id)), found);
    return found;
  };
  /** What every change begins with: its version, and the layout of the sum. */
  const versionNow = async (): Promise<number> => (await baseOf(context, db)).version + 1;
  const element = (table: PolicyTable, id: string, code: string): bigint =>
    heads.element((state.base ?? state.newest).layout, table, id, code);
  const note = (
    table: PolicyTable,
    id: string,
    before: string | undefined,
    after: string | undefined,
    version: number,
  ) => {
    if (before !== undefined) state.unit.delta -= element(table, id, before);
    if (after !== undefined) state.unit.delta += element(table, id, after);
    state.unit.rows.push({ table, id, version: after === undefined ? undefined : version });
    state.read.set(nameOf(table, id), 'ok');
  };
  const stored = async (table: PolicyTable, ids: readonly string[]): Promise<ReadonlyMap<string, Coded>> => {
    const found = new Map<string, Coded>();
    await inParts(ids, async (part) => {
      const rows = await coded(db)
        .selectFrom(named(table))
        .select(['id', 'row_mac', 'row_version'])
        .where('id', 'in', part)
        .execute();
      for (const row of rows) found.set(row.id, row);
    });
    return found;
  };
  const seal = <R extends Loose & { readonly id: string }>(table: PolicyTable, row: R, version: number) =>
    sealRow(authenticate, table, { ...row, row_version: version });
  const insertNew: PolicyRows['insertNew'] = async (table, row) => {
    const version = await versionNow();
    const sealed = seal(table, row, version);
    const made = await coded(db)
      .insertInto(named(table))
      .values(sealed)
      .onConflict((conflict) => conflict.column('id').doNothing())
      .returning('id')
      .executeTakeFirst();
    if (made !== undefined) note(table, row.id, undefined, sealed.row_mac, version);
    return made !== undefined;
  };
  return {
    knows: (table) => versionsOf(state, table).size > 0,
    known: (table) => (as === 'transaction' ? [...versionsOf(state, table).keys()] : []),
    integrity,
    insert: async (table, row) => {
      const version = await versionNow();
      const sealed = seal(table, row, version);
      await coded(db).insertInto(named(table)).values(sealed).execute();
      note(table, row.id, undefined, sealed.row_mac, version);
    },
    insertNew,
    update: async (table, row) => {
      const version = await versionNow();
      const before = (await stored(table, [row.id])).get(row.id);
      if (before === undefined) return;
      const read = state.read.get(nameOf(table, row.id));
      if (read === undefined)
        throw new ServiceError('internal', `a unit of work changes a row of ${table} that it has not read`);
      refuseTampered({ integrity: isNewest(context, table, before, as) ? read : 'tampered' });
      const { id, ...change } = seal(table, row, version);
      await coded(db).updateTable(named(table)).set(change).where('id', '=', id).execute();
      note(table, id, before.row_mac, change.row_mac, version);
    },
    remove: async (table, ids) => {
      if (ids.length === 0) return 0;
      const version = await versionNow();
      const found = await stored(table, ids);
      await inParts([...found.keys()], async (part) => {
        await coded(db).deleteFrom(named(table)).where('id', 'in', part).execute();
      });
      for (const { id, row_mac } of found.values()) note(table, id, row_mac, undefined, version);
      return found.size;
    },
    put: async (table, rows, write) => {
      const version = await versionNow();
      const before = await stored(
        table,
        rows.map(({ row }) => row.id),
      );
      const sealed = rows.map(({ row, code }) => {
        const whole = seal(table, row, version);
        return code === undefined ? whole : { ...whole, row_mac: code };
      });
      await write(sealed);
      for (const { id, row_mac } of sealed) note(table, id, before.get(id)?.row_mac, row_mac, version);
      for (const { row, code } of rows) if (code !== undefined) state.read.set(nameOf(table, row.id), 'tampered');
    },
  };
};

/** What the sum over the rows that were read says about the stored head. Empty: they agree. */
const differencesOf = (
  heads: Heads,
  found: Head | null | undefined,
  { sum, rows, atLeast }: { readonly sum: bigint; readonly rows: number; readonly atLeast: number },
): readonly Difference[] => {
  const foundIn = 'its table row_set';
  const inMemory = { expected: `at least ${atLeast}`, expectedIn: 'the memory of this process' };
  if (found === null)
    return [
      {
        ...{ what: 'code of the head of the policy rows', found: 'one that this service did not make', foundIn },
        ...{ expected: 'the code of its version and sum', expectedIn: 'this service' },
      },
    ];
  if (found === undefined)
    return atLeast === 0 ? [] : [{ what: 'version of the policy rows', found: 'none', foundIn, ...inMemory }];
  const older: readonly Difference[] =
    found.version >= atLeast
      ? []
      : [{ what: 'version of the policy rows', found: String(found.version), foundIn, ...inMemory }];
  if (found.sum === sum) return older;
  return [
    ...older,
    {
      ...{ what: `code of the policy rows in version ${found.version}`, found: heads.tag({ ...found, sum }) },
      ...{ foundIn: `its ${rows} policy rows`, expected: found.tag, expectedIn: foundIn },
    },
  ];
};

/** The steps of the writer. */
const transactionSteps = (context: Context): RowSet['transaction'] => {
  const { state, heads } = context;
  return {
    begin: () => {
      state.base = undefined;
      state.next = undefined;
      state.batch = noChanges();
      state.unit = noChanges();
      state.read = new Map();
    },
    savepoint: () => {
      state.unit = noChanges();
      state.read = new Map();
    },
    releaseSavepoint: () => {
      state.batch.delta += state.unit.delta;
      for (const row of state.unit.rows) state.batch.rows.push(row);
      state.unit = noChanges();
    },
    prepare: async (db) => {
      if (state.batch.rows.length === 0) return false;
      const { version, sum, layout } = await baseOf(context, db);
      state.next = await heads.write(db, { version: version + 1, sum: reduce(sum + state.batch.delta), layout });
      state.committing = new Map(
        state.batch.rows.flatMap(({ table, id, version: to }) => (to === undefined ? [] : [[nameOf(table, id), to]])),
      );
      return true;
    },
    committed: () => {
      keep(state, state.next);
      if (state.isLoaded)
        for (const { table, id, version } of state.batch.rows)
          if (version === undefined) versionsOf(state, table).delete(id);
          else versionsOf(state, table).set(id, version);
      state.committing = new Map();
      state.batch = noChanges();
    },
    rolledBack: () => {
      state.committing = new Map();
      state.batch = noChanges();
      state.unit = noChanges();
    },
  };
};

/**
 * Rows that another process has removed: a state whose sum is right lacks them.
 * Requests and sessions are rows, too, and would fill the memory of every other node.
 */
const forgetRemoved = ({ known }: State, present: ReadonlySet<string>, version: number): void => {
  for (const [table, versions] of known)
    for (const [id, own] of versions) if (own <= version && !present.has(nameOf(table, id))) versions.delete(id);
};

/**
 * `isShared`: other processes write to the database, too. `schemaOf`: what of its schema is not as
 * it is declared.
 */
export const createRowSet = (
  authenticate: RowAuthenticator,
  isShared: boolean,
  schemaOf: (db: Kysely<Schema>) => Promise<readonly Difference[]>,
): RowSet => {
  const state = createState();
  const heads = createHeads(authenticate);
  const context: Context = { state, heads, authenticate, isShared };
  return {
    over: (db, as) => policyRowsOver(context, db, as),
    load: async (db) => {
      for (const versions of state.known.values()) versions.clear();
      const found = await heads.read(db);
      const { sum, rows } = await heads.scan(db, (found ?? noHead).layout, (table, { id, row_version }) =>
        versionsOf(state, table).set(id, Number(row_version)),
      );
      state.newest = found ?? noHead;
      state.isLoaded = true;
      const differences = differencesOf(heads, found, { sum, rows, atLeast: 0 });
      return { head: found ?? undefined, differences, rows, schema: await schemaOf(db) };
    },
    compare: async (db, as) => {
      const atLeast = typeof as === 'object' ? as.known : state.newest.version;
      const found = await heads.read(db);
      const older: string[] = [];
      const seen: LongRead = { version: found?.version ?? 0, known: atLeast };
      const present = new Set<string>();
      const { sum, rows } = await heads.scan(db, (found ?? noHead).layout, (table, row) => {
        present.add(nameOf(table, row.id));
        if (!isNewest(context, table, row, seen)) older.push(nameOf(table, row.id));
      });
      const differences = differencesOf(heads, found, { sum, rows, atLeast });
      if (differences.length === 0) {
        keep(state, found);
        if (isShared) forgetRemoved(state, present, seen.version);
      }
      return { differences: [...(await schemaOf(db)), ...differences], older };
    },
    head: async (db) => {
      const found = await heads.read(db);
      return found ? { version: found.version, tag: found.tag } : undefined;
    },
    version: () => state.newest.version,
    adopt: async (db, atLeast) => {
      const stored = await heads.read(db);
      const version = Math.max(atLeast, state.newest.version, stored?.version ?? 0) + 1;
      for (const versions of state.known.values()) versions.clear();
      const { sum } = await heads.scan(db, newestLayout, (table, { id, row_version }) =>
        versionsOf(state, table).set(id, Number(row_version)),
      );
      state.newest = await heads.write(db, { version, sum, layout: newestLayout });
      state.base = state.newest;
    },
    convert: async (db) => {
      const found = await baseOf(context, db);
      if (found.layout === newestLayout || state.batch.rows.length > 0) return;
      let converted = 0n;
      const { sum } = await heads.scan(db, found.layout, (table, { id, row_mac }) => {
        converted += heads.element(newestLayout, table, id, row_mac);
      });
      if (sum !== found.sum) return;
      state.base = await heads.write(db, { version: found.version + 1, sum: reduce(converted), layout: newestLayout });
      state.next = state.base;
    },
    transaction: transactionSteps(context),
  };
};
