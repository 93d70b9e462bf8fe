// Freshness of the policy rows. A row's authentication code says that the service wrote the row, not that it is the newest one: so each
// row carries the version of the set that it was written in, and the set has a sum over all rows. Three things follow:
// - A row that is loaded and is older than the version known for it, or is in no version of this process's set, counts as tampered.
// - The sum that is stored, and signed with each checkpoint of the audit log, must be that of the rows: an old row, a removed one or an
//   added one changes it, also while the service is stopped.
// - A stored sum that is older than one already seen is refused.
// A row is changed only in a unit of work that has read it: what was read before may be older, and writing it back would undo a change.
//
// The sum adds one pseudorandom number for each row, modulo 2^256 (an incremental multiset hash: Clarke, Devadas, van Dijk, Gassend, Suh:
// "Incremental multiset hash functions", ASIACRYPT 2003, MSet-Add-Hash). The numbers and the sum stay secret, because a person who knows many of
// them could combine old rows to the same sum; what is stored is masked with a pad that belongs to its version.

import { type CompiledQuery, type Kysely, sql } from 'kysely';
import { ServiceError } from '../base/errors.ts';
import type { Integrity } from '../domain/vault.ts';
import type { RowSetHead } from '../ports/store.ts';
import { policyTables, type RowAuthenticator, refuseTampered, rowIntegrity, sealRow } from './row-codes.ts';
import type { PolicyTable, Schema } from './schema.ts';

type Loose = { readonly [column: string]: unknown };
/** What every policy table has. */
interface Coded {
  readonly id: string;
  readonly row_mac: string;
  readonly row_version: number;
}
/** One policy table stands for all of them: Kysely's types need the name of a table. */
type OneTable = Kysely<{ readonly vaults: { id: string; row_mac: string; row_version: number } }>;
const coded = (db: Kysely<Schema>): OneTable => db as unknown as OneTable;
const named = (table: PolicyTable): 'vaults' => table as 'vaults';

interface Head extends RowSetHead {
  readonly sum: bigint;
}

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

/** A row is older than the newest one known: the read began before a commit, or an older row was restored. Reading again shows which. */
export class OutdatedRow extends Error {
  override readonly name = 'OutdatedRow';
}

/**
 * Who reads: a `reader` throws OutdatedRow where reading again may help, `again` does not. A `transaction` sees what it writes. A number: the
 * version of the state that a long read sees.
 */
export type ReadingAs = 'reader' | 'again' | 'transaction' | number;

/** The policy rows of one connection. */
export interface PolicyRows {
  integrity(table: PolicyTable, row: Loose & { readonly row_mac: string }): Integrity;
  insert(table: PolicyTable, row: Loose & { readonly id: string }): Promise<void>;
  /** The same; false, and nothing is changed, when there is one of this id. */
  insertNew(table: PolicyTable, row: Loose & { readonly id: string }): Promise<boolean>;
  /**
   * Replaces these columns; does nothing when there is no such row. Throws 'key-tampered' when the stored one is not what the service wrote
   * last, and 'internal' when this unit of work has not read it.
   */
  update(table: PolicyTable, row: Loose & { readonly id: string }): Promise<void>;
  /** Answers how many there were. */
  remove(table: PolicyTable, ids: readonly string[]): Promise<number>;
  /** Inserts or replaces with a statement of the caller's, which gets the sealed rows. A code that is given instead of a row's own is kept. */
  put<R extends Loose & { readonly id: string }>(
    table: PolicyTable,
    rows: readonly { readonly row: R; readonly code: string | undefined }[],
    write: (sealed: readonly (R & { readonly row_mac: string; readonly row_version: number })[]) => Promise<void>,
  ): Promise<void>;
}

export interface RowSet {
  over(db: Kysely<Schema>, as: ReadingAs): PolicyRows;
  /** Reads all rows and keeps their versions in memory: from then on, old rows are refused. Nothing is written meanwhile. */
  load(
    db: Kysely<Schema>,
  ): Promise<{ readonly head: RowSetHead | undefined; readonly isSound: boolean; readonly rows: number }>;
  /** In one state of the database. `older`: names of restored older rows, as far as this process knows. */
  compare(db: Kysely<Schema>): Promise<{ readonly isSound: boolean; readonly older: readonly string[] }>;
  head(db: Kysely<Schema>): Promise<RowSetHead | undefined>;
  /** The newest version that this process has seen. */
  version(): number;
  /** Takes all rows as they are, under a version above `atLeast`. */
  adopt(db: Kysely<Schema>, atLeast: number): Promise<void>;
  /** The steps of the writer (writer.ts). */
  readonly transaction: {
    begin(): void;
    savepoint(): void;
    releaseSavepoint(): void;
    prepare(db: Kysely<Schema>): Promise<void>;
    committed(): void;
    rolledBack(): void;
  };
}

const modulus = 1n << 256n;
const inPage = 1_000;
const atOnce = 500;

const fromHex = (text: string): bigint => (/^[0-9a-f]{64}$/.test(text) ? BigInt(`0x${text}`) : 0n);
const toHex = (value: bigint): string => value.toString(16).padStart(64, '0');
const reduce = (value: bigint): bigint => ((value % modulus) + modulus) % modulus;

const inParts = async <T>(all: readonly T[], each: (part: readonly T[]) => Promise<void>): Promise<void> => {
  for (let at = 0; at < all.length; at += atOnce) await each(all.slice(at, at + atOnce));
};

/** `isShared`: other processes write to the database, too. */
export const createRowSet = (authenticate: RowAuthenticator, isShared: boolean): RowSet => {
  const known = new Map<PolicyTable, Map<string, number>>(policyTables.map((table) => [table, new Map()]));
  const versionsOf = (table: PolicyTable): Map<string, number> => known.get(table) ?? new Map();
  let isLoaded = false;
  /** The newest that this process has seen. */
  let newest: Head = { version: 0, tag: '', sum: 0n };

  /** Put together once: it is part of every commit. */
  let headStatement: CompiledQuery | undefined;

  // Of the transaction under way: what it found, what it has changed, and what the unit of work in it has.
  let base: Head | undefined;
  let batch = noChanges();
  let unit = noChanges();
  /** The rows that the unit of work has read or written. */
  let read = new Set<string>();
  /** Of the commit under way, by table and id: readers may see the rows before this process hears that they are committed. */
  let committing = new Map<string, number>();
  let next: Head | undefined;
  const nameOf = (table: PolicyTable, id: string): string => `${table} ${id}`;

  const element = (table: PolicyTable, id: string, code: string): bigint =>
    fromHex(authenticate(`row set element ${table} ${id} ${code}`));
  const mask = (version: number): bigint => fromHex(authenticate(`row set mask ${version}`));
  const masked = ({ version, sum }: Pick<Head, 'version' | 'sum'>): string => toHex(sum ^ mask(version));
  const tagOf = (version: number, text: string): string => authenticate(`row set ${version} ${text}`);

  const refuse = (): never => {
    throw new ServiceError(
      'key-tampered',
      'the stored rows are older than what the service wrote last: nothing was changed',
      {
        hint: 'restore the newest database; dke verify shows what differs',
      },
    );
  };
  /** Null: there is one that the service did not write. */
  const readHead = async (db: Kysely<Schema>): Promise<Head | null | undefined> => {
    const row = await db.selectFrom('row_set').selectAll().executeTakeFirst();
    if (row === undefined) return undefined;
    const version = Number(row.version);
    if (tagOf(version, row.sum) !== row.tag) return null;
    return { version, tag: row.tag, sum: fromHex(row.sum) ^ mask(version) };
  };
  const writeHead = async (db: Kysely<Schema>, version: number, sum: bigint): Promise<Head> => {
    const text = masked({ version, sum });
    const tag = tagOf(version, text);
    const parameters = [1, version, text, tag];
    headStatement ??= db
      .insertInto('row_set')
      .values({ id: 1, version, sum: text, tag })
      .onConflict((conflict) =>
        conflict.column('id').doUpdateSet((e) => ({
          version: e.ref('excluded.version'),
          sum: e.ref('excluded.sum'),
          tag: e.ref('excluded.tag'),
        })),
      )
      .compile();
    await db.executeQuery({ ...headStatement, parameters });
    return { version, tag, sum };
  };
  /** What the transaction under way began with. */
  const baseOf = async (db: Kysely<Schema>): Promise<Head> => {
    if (base !== undefined) return base;
    if (isLoaded && !isShared) base = newest;
    else {
      const found = await readHead(db);
      if (found === null || (found?.version ?? 0) < newest.version) return refuse();
      base = found ?? newest;
    }
    return base;
  };

  const scan = async (
    db: Kysely<Schema>,
    each: (table: PolicyTable, row: Coded) => void,
  ): Promise<{ readonly sum: bigint; readonly rows: number }> => {
    let sum = 0n;
    let rows = 0;
    for (const table of policyTables)
      for (let after = ''; ; ) {
        const page = await coded(db)
          .selectFrom(named(table))
          .select(['id', 'row_mac', 'row_version'])
          .where('id', '>', after)
          .orderBy('id')
          .limit(inPage)
          .execute();
        for (const row of page) {
          sum += element(table, row.id, row.row_mac);
          each(table, row);
        }
        rows += page.length;
        if (page.length < inPage) break;
        after = page.at(-1)?.id ?? after;
      }
    return { sum: sum % modulus, rows };
  };

  /** Whether the row is the newest one as far as this process knows. */
  const isNewest = (table: PolicyTable, { id, row_version: version }: Coded, as: ReadingAs): boolean => {
    if (!isLoaded) return true;
    const versions = versionsOf(table);
    const found = versions.get(id);
    // What was changed since a long read began is older in it.
    if (typeof as === 'number') return found === undefined || found > as || version >= found;
    if (as === 'transaction' && base !== undefined && version === base.version + 1) return true;
    if (found === undefined) return isShared || committing.get(nameOf(table, id)) === version;
    // Another process has written it.
    if (version > found && isShared && as !== 'transaction') versions.set(id, version);
    return version >= found;
  };

  const over = (db: Kysely<Schema>, as: ReadingAs): PolicyRows => {
    const integrity: PolicyRows['integrity'] = (table, row) => {
      if (as === 'transaction') read.add(nameOf(table, String(row.id)));
      if (rowIntegrity(authenticate, table, row) !== 'ok') return 'tampered';
      if (isNewest(table, row as unknown as Coded, as)) return 'ok';
      if (as === 'reader') throw new OutdatedRow('the row is older than the newest one');
      return 'tampered';
    };
    const versionNow = async (): Promise<number> => (await baseOf(db)).version + 1;
    const note = (
      table: PolicyTable,
      id: string,
      before: string | undefined,
      after: string | undefined,
      version: number,
    ) => {
      if (before !== undefined) unit.delta -= element(table, id, before);
      if (after !== undefined) unit.delta += element(table, id, after);
      unit.rows.push({ table, id, version: after === undefined ? undefined : version });
      read.add(nameOf(table, id));
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
        if (!read.has(nameOf(table, row.id)))
          throw new ServiceError('internal', `a unit of work changes a row of ${table} that it has not read`);
        refuseTampered({ integrity: isNewest(table, before, as) ? 'ok' : 'tampered' });
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
      },
    };
  };

  const keep = (found: Head | null | undefined): void => {
    if (found && found.version > newest.version) newest = found;
  };

  return {
    over,
    load: async (db) => {
      for (const versions of known.values()) versions.clear();
      const found = await readHead(db);
      const { sum, rows } = await scan(db, (table, { id, row_version }) =>
        versionsOf(table).set(id, Number(row_version)),
      );
      newest = found ?? { version: 0, tag: '', sum: 0n };
      isLoaded = true;
      const isSound = found !== null && (found === undefined ? rows === 0 : found.sum === sum);
      return { head: found ?? undefined, isSound, rows };
    },
    compare: async (db) => {
      const atLeast = newest.version;
      const found = await readHead(db);
      const older: string[] = [];
      const { sum } = await scan(db, (table, row) => {
        if (!isNewest(table, row, found?.version ?? 0)) older.push(nameOf(table, row.id));
      });
      if (!found) return { isSound: found === undefined && atLeast === 0, older };
      const isSound = found.version >= atLeast && found.sum === sum;
      if (isSound) keep(found);
      return { isSound, older };
    },
    head: async (db) => {
      const found = await readHead(db);
      return found ? { version: found.version, tag: found.tag } : undefined;
    },
    version: () => newest.version,
    adopt: async (db, atLeast) => {
      const stored = await readHead(db);
      const version = Math.max(atLeast, newest.version, stored?.version ?? 0) + 1;
      for (const versions of known.values()) versions.clear();
      const { sum } = await scan(db, (table, { id, row_version }) => versionsOf(table).set(id, Number(row_version)));
      newest = await writeHead(db, version, sum);
      base = newest;
    },
    transaction: {
      begin: () => {
        base = undefined;
        next = undefined;
        batch = noChanges();
        unit = noChanges();
        read = new Set();
      },
      savepoint: () => {
        unit = noChanges();
        read = new Set();
      },
      releaseSavepoint: () => {
        batch.delta += unit.delta;
        for (const row of unit.rows) batch.rows.push(row);
        unit = noChanges();
      },
      prepare: async (db) => {
        if (batch.rows.length === 0) return;
        const { version, sum } = await baseOf(db);
        next = await writeHead(db, version + 1, reduce(sum + batch.delta));
        committing = new Map(
          batch.rows.flatMap(({ table, id, version: to }) => (to === undefined ? [] : [[nameOf(table, id), to]])),
        );
      },
      committed: () => {
        keep(next);
        if (isLoaded)
          for (const { table, id, version } of batch.rows)
            if (version === undefined) versionsOf(table).delete(id);
            else versionsOf(table).set(id, version);
        committing = new Map();
        batch = noChanges();
      },
      rolledBack: () => {
        committing = new Map();
        batch = noChanges();
        unit = noChanges();
      },
    },
  };
};

/** The version of the state that a long read sees, as far as it can be read. */
export const readVersion = async (db: Kysely<Schema>): Promise<number> => {
  const { rows } = await sql<{ readonly version: number | string }>`select version from row_set`.execute(db);
  return Number(rows[0]?.version ?? 0);
};
