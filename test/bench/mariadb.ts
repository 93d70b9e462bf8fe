// MariaDB under our key management and under file_key_management: start, inserts and reads, in
// turn, in one run. Both servers encrypt with the same options (those of
// docs/databases/mariadb.md), AES-256 keys and AES-CBC; only who has the keys differs. Main.ts
// prints.

import { randomBytes } from 'node:crypto';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Mariadb, newMariadbFolder, pageBlock, pageOptions, startMariadb } from '../support/mariadb.ts';
import { keyRequests, untilEmpty } from '../support/mariadb-site.ts';
import type { Ours } from './ours.ts';
import { cpuSeconds } from './processes.ts';
import { median } from './statistics.ts';

export const theirName = 'file_key_management';

export interface MariadbFigure {
  readonly ours: number;
  readonly theirs: number;
  /** How many times as fast we are: the median of pairs that were measured one after the other. */
  readonly times: number;
}

export interface MariadbFigures {
  /**
   * Milliseconds from the start of the process to the first accepted connection, the agent running.
   */
  readonly start: MariadbFigure;
  /** Like `start`, with a buffer pool of 4 GiB. */
  readonly largeStart: MariadbFigure;
  /** Like `start`, after a SIGKILL, with transactions to recover. */
  readonly crashStart: MariadbFigure;
  /** The plugin's measurement of library, agent and service at a start, in milliseconds. */
  readonly unwrapMs: number;
  /** Statements a second. */
  readonly inserts: MariadbFigure;
  readonly reads: MariadbFigure;
  /**
   * Servers without work, with the encryption threads of the page: key requests a second, and CPU
   * seconds a minute. `rotated`: after a rotation of our data keys, which file_key_management does
   * not have.
   */
  readonly idle: IdleFigures;
  readonly rotated: IdleFigures;
}
export interface IdleFigures {
  readonly keyRequests: Idle;
  readonly cpuSeconds: Idle;
}
type Idle = { readonly ours: number; readonly theirs: number };

interface Candidate {
  readonly folder: string;
  readonly options: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
}

// Without waiting for the shared disk, because this measures work.
const shared = [
  '--innodb-flush-log-at-trx-commit=0',
  '--innodb-flush-method=fsync',
  '--innodb-doublewrite=0',
  '--sync-binlog=0',
  '--log-bin=binlog',
];
// Next to the table: most reads decrypt a page; inserts are delayed by no reads, and their pages
// are encrypted when they are written.
const pools = {
  reads: '--innodb-buffer-pool-size=8M',
  inserts: '--innodb-buffer-pool-size=128M',
  // The pool of a dedicated database host: such a start spends its time on memory.
  large: '--innodb-buffer-pool-size=4G',
} as const;
const rows = 120_000;
/** Single starts vary more than the goal. */
const startsOfRound = 5;
const recoveriesOfRound = 2;
export const transactionsToRecover = 20_000;
// All of them are in the redo log, and none of their pages on the disk: as much to recover at every
// start.
const crashing = [
  '--innodb-flush-log-at-trx-commit=2',
  '--innodb-log-file-size=96M',
  '--innodb-adaptive-flushing=OFF',
  '--innodb-max-dirty-pages-pct=99',
];

const prepare = `
  SET SESSION sql_log_bin = 0;
  CREATE DATABASE bench;
  CREATE TABLE bench.rows (id INT PRIMARY KEY AUTO_INCREMENT, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY (k));
  INSERT INTO bench.rows (k, c, pad) SELECT FLOOR(RAND(1) * ${rows}), REPEAT(MD5(seq), 3), MD5(seq) FROM bench.seq_1_to_${rows};
  DELIMITER //
  CREATE PROCEDURE bench.inserts(n INT) BEGIN
    WHILE n > 0 DO
      INSERT INTO bench.rows (k, c, pad) VALUES (FLOOR(RAND() * ${rows}), REPEAT(MD5(n), 3), MD5(n));
      SET n = n - 1;
    END WHILE;
  END //
  CREATE PROCEDURE bench.reads(n INT) BEGIN
    DECLARE found CHAR(120);
    DECLARE wanted INT;
    WHILE n > 0 DO
      SET wanted = 1 + FLOOR(RAND() * ${rows});
      SELECT c INTO found FROM bench.rows WHERE id = wanted;
      SET n = n - 1;
    END WHILE;
  END //`;

/** Resolves when a server accepts connections at the socket. */
const accepted = (socket: string): Promise<void> =>
  new Promise((resolve) => {
    const attempt = (): void => {
      const connection = connect(socket);
      connection.once('connect', () => {
        connection.destroy();
        resolve();
      });
      connection.once('error', () => setTimeout(attempt, 1));
    };
    attempt();
  });

const timedStart = async ({ folder, options, environment }: Candidate, pool: string): Promise<[Mariadb, number]> => {
  rmSync(join(folder, 'mariadb.sock'), { force: true });
  const from = performance.now();
  const started = startMariadb(folder, [...options, pool], environment);
  await Promise.race([accepted(join(folder, 'mariadb.sock')), started]);
  const took = performance.now() - from;
  return [await started, took];
};

const statementsPerSecond = async (
  database: Mariadb,
  procedure: 'inserts' | 'reads',
  statements: number,
): Promise<number> => {
  const from = performance.now();
  await database.sql(`CALL bench.${procedure}(${statements})`);
  return (statements / (performance.now() - from)) * 1000;
};

interface Pair {
  readonly ours: number;
  readonly theirs: number;
}
const names = ['ours', 'theirs'] as const;

/**
 * Measures both, one right after the other, in alternating order, because the first one starts on a
 * colder machine.
 */
const inTurn = async (round: number, take: (name: (typeof names)[number]) => Promise<number>): Promise<Pair> => {
  const pair = { ours: 0, theirs: 0 };
  for (const name of round % 2 === 0 ? names : names.toReversed()) pair[name] = await take(name);
  return pair;
};

const figure = (pairs: readonly Pair[], times: (pair: Pair) => number): MariadbFigure => ({
  ours: median(pairs.map(({ ours }) => ours)),
  theirs: median(pairs.map(({ theirs }) => theirs)),
  times: median(pairs.map(times)),
});

/** What a server without work does: both in the same seconds. */
const measureIdle = async (servers: Readonly<Record<(typeof names)[number], Mariadb>>): Promise<IdleFigures> => {
  const seconds = 20;
  const read = async (database: Mariadb) => ({ keys: await keyRequests(database), cpu: cpuSeconds(database.pid) });
  const before = { ours: await read(servers.ours), theirs: await read(servers.theirs) };
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  const after = { ours: await read(servers.ours), theirs: await read(servers.theirs) };
  const grown = (member: 'keys' | 'cpu', per: number): Idle => ({
    ours: ((after.ours[member] - before.ours[member]) * per) / seconds,
    theirs: ((after.theirs[member] - before.theirs[member]) * per) / seconds,
  });
  return { keyRequests: grown('keys', 1), cpuSeconds: grown('cpu', 60) };
};

/**
 * Measures `rounds` pairs of inserts and of reads, five times as many of starts, and twice as many
 * of recoveries; a round takes about twenty seconds.
 */
export const measureMariadb = async (ours: Ours, rounds: number): Promise<MariadbFigures> => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-bench-mariadb-'));
  const encryption = pageOptions('60-dke.cnf').filter((option) => !option.includes('dke'));
  const { DKE_PKCS11_CONF: config = '' } = ours.environment;
  const paths = {
    dke_key_management_pkcs11_library: ours.library,
    dke_key_management_pkcs11_config: config,
    dke_key_management_key_file: join(folder, 'ours/keys/dke-keys'),
  };
  const keys = join(folder, 'keys.txt');
  writeFileSync(keys, [1, 2].map((id) => `${id};${randomBytes(32).toString('hex')}\n`).join(''), { mode: 0o600 });
  const theirOptions = ['--plugin-load-add=file_key_management', `--file-key-management-filename=${keys}`];
  const own = pageOptions('60-dke.cnf', paths);
  const candidates = {
    ours: { folder: join(folder, 'ours'), options: [...own, ...shared], environment: ours.environment },
    theirs: { folder: join(folder, 'theirs'), options: [...theirOptions, ...encryption, ...shared], environment: {} },
  } as const satisfies Record<string, Candidate>;
  const running = new Map<string, Mariadb>();
  const stop = async (name: string): Promise<void> => {
    await running.get(name)?.stop();
    running.delete(name);
  };
  try {
    for (const name of names) {
      const { folder: place, options, environment } = candidates[name];
      newMariadbFolder(place);
      const first = name === 'ours' ? ['--dke-key-management-initialize'] : [];
      const database = await startMariadb(place, [...options, ...first], environment);
      running.set(name, database);
      await database.sql(prepare);
      await stop(name);
    }
    const startAgain = async (name: (typeof names)[number], pool: string): Promise<number> => {
      await stop(name);
      const [database, took] = await timedStart(candidates[name], pool);
      running.set(name, database);
      return took;
    };
    const startsWith = async (pool: string): Promise<MariadbFigure> => {
      const pairs: Pair[] = [];
      for (let round = 0; round < startsOfRound * rounds; round++)
        pairs.push(await inTurn(round, (name) => startAgain(name, pool)));
      return figure(pairs, (pair) => pair.theirs / pair.ours);
    };
    const largeStart = await startsWith(pools.large);
    const start = await startsWith(pools.reads);
    const log = running.get('ours')?.log() ?? '';
    const lines = [...log.matchAll(/unwrapped by .* in (\d+) ms/g)].slice(-startsOfRound * rounds);
    const unwraps = lines.map(([, took]) => Number(took));
    const load = async (procedure: 'inserts' | 'reads', statements: number): Promise<MariadbFigure> => {
      const pairs: Pair[] = [];
      const one = (name: string): Promise<number> => {
        const database = running.get(name);
        if (database === undefined) throw new Error(`${name} does not run`);
        return statementsPerSecond(database, procedure, statements);
      };
      // The first round warms up.
      for (let round = 0; round <= rounds; round++) pairs.push(await inTurn(round, one));
      return figure(pairs.slice(1), (pair) => pair.ours / pair.theirs);
    };
    const reads = await load('reads', 60_000);
    for (const name of names) await startAgain(name, pools.inserts);
    const inserts = await load('inserts', 20_000);
    const crashed = async (name: (typeof names)[number]): Promise<void> => {
      await stop(name);
      const { folder: place, options, environment } = candidates[name];
      const database = await startMariadb(place, [...options, ...crashing, pools.inserts], environment);
      running.set(name, database);
      await database.sql(`CALL bench.inserts(${transactionsToRecover})`);
      await database.kill();
      running.delete(name);
      cpSync(join(place, 'data'), join(place, 'crashed'), { recursive: true });
    };
    const recoverAgain = async (name: (typeof names)[number]): Promise<number> => {
      await stop(name);
      const { folder: place, options } = candidates[name];
      rmSync(join(place, 'data'), { recursive: true });
      cpSync(join(place, 'crashed'), join(place, 'data'), { recursive: true });
      const [database, took] = await timedStart(
        { ...candidates[name], options: [...options, ...crashing] },
        pools.inserts,
      );
      running.set(name, database);
      return took;
    };
    const idleServer = async (name: (typeof names)[number]): Promise<Mariadb> => {
      await stop(name);
      const { folder: place, options, environment } = candidates[name];
      const database = await startMariadb(place, options, environment);
      running.set(name, database);
      await untilEmpty(database, 'what is not encrypted yet');
      return database;
    };
    const servers = { ours: await idleServer('ours'), theirs: await idleServer('theirs') };
    const idle = await measureIdle(servers);
    await servers.ours.sql(pageBlock('sql', 'rotate the data keys'));
    await untilEmpty(servers.ours, 'what has old versions still');
    await servers.ours.sql(pageBlock('sql', 'let the encryption threads sleep'));
    const rotated = await measureIdle(servers);
    for (const name of names) await crashed(name);
    const recoveries: Pair[] = [];
    for (let round = 0; round < recoveriesOfRound * rounds; round++) recoveries.push(await inTurn(round, recoverAgain));
    const crashStart = figure(recoveries, (pair) => pair.theirs / pair.ours);
    return { start, largeStart, crashStart, unwrapMs: median(unwraps), reads, inserts, idle, rotated };
  } finally {
    for (const database of running.values()) await database.kill();
    rmSync(folder, { recursive: true, force: true });
  }
};
