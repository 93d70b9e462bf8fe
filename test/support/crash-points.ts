// What is on the disk at each write of a folder's files, as a power failure would leave it: copies
// of the folder, made around the functions of the system that write, also of modules that are
// loaded already, and around the commits of the embedded database. For one piece of work at a time.
// On PostgreSQL each copy has what was committed by then beside it, as the end of the process would
// leave it, and there are copies around its commits as well.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs, { existsSync, readdirSync, readFileSync, readlinkSync, statSync, truncateSync } from 'node:fs';
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { join, relative } from 'node:path';
import { StatementSync } from 'node:sqlite';
import pg from 'pg';
import { dumpStored, onPostgresql } from './test-store.ts';

/** What is in a folder: names and contents. */
const contentOf = (folder: string): string => {
  const hash = createHash('sha256');
  for (const name of (readdirSync(folder, { recursive: true }) as string[]).toSorted()) {
    const path = join(folder, name);
    const isFile = statSync(path).isFile();
    hash.update(`${name}\0${isFile ? statSync(path).size : ''}\0`);
    if (isFile) hash.update(readFileSync(path));
  }
  return hash.digest('hex');
};

/** The file with the database of a copy. */
export const dumpOf = (state: string): string => `${state}.sql`;

/**
 * Watches a service on PostgreSQL. `dump` returns what it has committed, and dumps again only where
 * something was written since.
 */
const watchPostgres = (folder: string, around: <R>(call: () => R) => R) => {
  const { query } = pg.Client.prototype;
  let known: string | undefined;
  pg.Client.prototype.query = function (this: pg.Client, ...given: unknown[]): unknown {
    const [first] = given as readonly (string | { readonly text?: string } | undefined)[];
    const text = typeof first === 'string' ? first : (first?.text ?? '');
    const call = (): unknown => (query as (...values: unknown[]) => unknown).apply(this, given);
    if (/^\s*(?:select|begin|listen|show|savepoint|fetch)\b/i.test(text)) return call();
    const forget = (): void => {
      known = undefined;
    };
    const written = (): unknown => {
      forget();
      const answer = call();
      return answer instanceof Promise ? answer.finally(forget) : answer;
    };
    return text === 'commit' || /\broot_(?:runs|parcels)\b/.test(text) ? around(written) : written();
  } as typeof query;
  return {
    dump: (): string => {
      known ??= dumpStored(folder);
      return known;
    },
    end: (): void => {
      pg.Client.prototype.query = query;
    },
  };
};

/**
 * Folders with copies of `folder`, each state once. Of a write that ends in its middle, half of its
 * bytes are there.
 */
export const crashPoints = async <T>(
  folder: string,
  work: () => Promise<T> | T,
): Promise<{ readonly states: readonly string[]; readonly answer: T }> => {
  const states: string[] = [];
  let postgres: ReturnType<typeof watchPostgres> | undefined;
  const writeDump = fs.writeFileSync;
  const copy = (): string => {
    const state = `${folder}-${states.length}`;
    execFileSync('cp', ['-a', folder, state]);
    if (postgres !== undefined) writeDump(dumpOf(state), postgres.dump());
    states.push(state);
    return state;
  };
  const around =
    <A extends readonly unknown[], R>(call: (...args: A) => R) =>
    (...args: A): R => {
      copy();
      const answer = call(...args);
      if (answer instanceof Promise) return answer.finally(copy) as R;
      copy();
      return answer;
    };
  const half = (written: string): void => {
    const place = relative(folder, written);
    if (place.startsWith('..')) return;
    const path = join(copy(), place);
    truncateSync(path, Math.floor(statSync(path).size / 2));
  };
  const { renameSync, rmSync, fsyncSync, writeFileSync } = fs;
  const real = { renameSync, rmSync, fsyncSync, writeFileSync };
  const statements = { run: StatementSync.prototype.run, all: StatementSync.prototype.all };
  /** A commit of the embedded database: everything of it, or nothing. */
  const aroundCommit = (name: keyof typeof statements) =>
    function (this: StatementSync, ...values: never[]): unknown {
      const call = (): unknown => (statements[name] as (...given: never[]) => unknown).apply(this, values);
      return this.sourceSQL === 'commit' ? around(call)() : call();
    };
  const realPromises = { open: promises.open, rename: promises.rename };
  const restore = (): void => {
    postgres?.end();
    Object.assign(fs, real);
    Object.assign(promises, realPromises);
    Object.assign(StatementSync.prototype, statements);
    syncBuiltinESMExports();
  };
  try {
    Object.assign(fs, {
      renameSync: around(real.renameSync),
      rmSync: around(real.rmSync),
      fsyncSync: around(real.fsyncSync),
      writeFileSync: (file: fs.PathOrFileDescriptor, ...rest: [string | Uint8Array]) => {
        around(real.writeFileSync)(file, ...rest);
        half(typeof file === 'number' ? readlinkSync(`/proc/self/fd/${file}`) : String(file));
      },
    });
    Object.assign(promises, {
      rename: around(realPromises.rename),
      open: async (...args: Parameters<typeof realPromises.open>) => {
        const handle = await realPromises.open(...args);
        if (args[1] !== 'wx') return handle;
        copy();
        const sync = handle.sync.bind(handle);
        handle.sync = async () => {
          half(String(args[0]));
          await sync();
        };
        return handle;
      },
    });
    if (onPostgresql) postgres = watchPostgres(folder, (call) => around(call)());
    Object.assign(StatementSync.prototype, { run: aroundCommit('run'), all: aroundCommit('all') });
    syncBuiltinESMExports();
    const answer = await work();
    restore();
    const known = new Set<string>();
    const isNew = (state: string): boolean => {
      const content = `${contentOf(state)} ${existsSync(dumpOf(state)) ? readFileSync(dumpOf(state), 'utf8') : ''}`;
      const isKnown = known.has(content);
      known.add(content);
      if (isKnown) for (const path of [state, dumpOf(state)]) rmSync(path, { recursive: true, force: true });
      return !isKnown;
    };
    return { answer, states: states.filter(isNew) };
  } finally {
    restore();
  }
};
