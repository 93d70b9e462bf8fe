// HSQLDB 2.7 with rows, script, log and LOBs encrypted through the library: the commands of
// docs/databases/hsqldb.md as they are printed, and what happens to the database when its master
// key or its agent goes. No file may hold what a table holds.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { killProcess } from '../support/host.ts';
import { hsqldbPresent, jars, shortLived, startJava } from '../support/java.ts';
import { openPage, type PageRun } from '../support/page.ts';
import { filesHolding } from '../support/search.ts';
import type { Outcome } from '../support/tools.ts';

const card = 'card 4929 1234 5678 9012';
const names = ['Ada Lovelace of London', 'Grace Hopper of New York'];
const letter = 'Dear Charles, the engine weaves';
const everything = [card, ...names, letter];
const outOfUse = 'Disable or destroy the database';

describe.runIf(hsqldbPresent())('docs/databases/hsqldb.md', () => {
  let page: PageRun;
  beforeAll(async () => {
    const programs = resolve(import.meta.dirname, '../../build/test-java');
    mkdirSync(programs, { recursive: true });
    execFileSync('javac', ['-d', programs, join(import.meta.dirname, '../support/SqlClient.java')]);
    page = await openPage('databases/hsqldb', {
      variables: { DKE_JCE: jars.jce, JDK_JAVA_OPTIONS: shortLived, CLASSPATH: `${programs}:.` },
    });
    await page.done('Register the database');
    page.settle('pkcs11.toml');
    await page.done('Create the keys');
  });
  afterAll(() => page.end());

  const path = (name: string): string => join(page.folder, name);
  const open = (): Promise<Outcome> => page.heading('Open it');
  const opens = async (): Promise<void> => {
    const { out, complaints } = await open();
    expect(out, complaints).toBe(`${[card, ...names, letter].join('\n')}\n0\n`);
  };
  const inTheOpen = (folders = [page.folder, page.logDirectory, page.site.server.dataDirectory]) =>
    filesHolding(folders, ...everything);
  const refused = async (): Promise<string> => {
    const { code, out, complaints } = await open();
    expect(code).toBe(1);
    expect(out).toBe('');
    return complaints;
  };

  test('a database is created and read, and no file holds what it holds', async () => {
    await page.done('Create the database');
    await opens();
    expect(inTheOpen()).toEqual([]);
  });

  test('the same search finds all of it in a database that is not encrypted', async () => {
    const [create = ''] = page.blocks('Create the database');
    const plain = create.replace('file:shop/db;$crypt', 'file:plain/db').replace(/^iv=[^\n]*\n/, '');
    // The session continues with the key and the start value of the database that is encrypted.
    expect(plain).not.toMatch(/^iv=/m);
    const { code, complaints } = await page.shell(plain);
    expect(code, complaints).toBe(0);
    expect(filesHolding([path('plain')], card)).not.toEqual([]);
    expect(filesHolding([path('plain')], ...names)).not.toEqual([]);
    expect(filesHolding([path('plain')], letter)).not.toEqual([]);
    expect((await page.shell('rm -r plain')).code).toBe(0);
  });

  test('a database that was not shut down is recovered from its encrypted log', async () => {
    const { code, complaints } = await page.shell(
      `java @dke.options SqlClient "jdbc:hsqldb:file:crashed/db;$crypt" <<END
CREATE CACHED TABLE cards (id INT PRIMARY KEY, number VARCHAR(40))
SET FILES WRITE DELAY FALSE
INSERT INTO cards VALUES (1, '${card}')
END`,
    );
    expect(code, complaints).toBe(0);
    expect(readFileSync(path('crashed/db.log')).length).toBeGreaterThan(0);
    expect(inTheOpen()).toEqual([]);
    const read = await page.shell(
      `java @dke.options SqlClient "jdbc:hsqldb:file:crashed/db;$crypt" <<< 'SELECT number FROM cards'`,
    );
    expect(read.out, read.complaints).toBe(`${card}\n`);
  });

  test('hundreds of rows are written while the agent is killed, and none is lost', async () => {
    const rows = 1500;
    const inserts = Array.from({ length: rows }, (_, i) => `INSERT INTO rows VALUES (${i}, '${card} of row ${i}')`);
    const input = [
      'CREATE CACHED TABLE rows (id INT PRIMARY KEY, text VARCHAR(60))',
      ...inserts,
      'SELECT COUNT(*), MIN(id), MAX(id) FROM rows',
      'SHUTDOWN',
    ].join('\n');
    const { environment, folder } = page;
    const url = `jdbc:hsqldb:file:shop/db;${environment.crypt}`;
    const load = startJava(['@dke.options', 'SqlClient', url], { environment, folder, input });
    for (const step of [1, 2]) {
      await load.printed('1\n', step * 500);
      for (const pid of page.agents()) killProcess(pid);
    }
    expect((await load.ended()).out).toMatch(new RegExp(`^${rows}\\|0\\|${rows - 1}\n0\n$`, 'm'));
    expect(inTheOpen()).toEqual([]);
    await opens();
  });

  test('a new master key wraps the data key, and the old one is no longer needed', async () => {
    expect(await page.done('Rotate the master key')).toContain('shop master 1 -> shop master 2');
    const gone = await page.shell(`dke tde key destroy 'shop master 1' --confirm 'shop master 1'`);
    expect(gone.code, gone.complaints).toBe(0);
    await opens();
  });

  test('a copy under a new data key has everything, and the old key does not open it', async () => {
    writeFileSync(path('Copy.java'), page.blocks('Rotate the data key', 'java')[0] ?? '');
    await page.done('Rotate the data key');
    const select = `<<< 'SELECT text FROM letters'`;
    const copied = await page.shell(`java @dke.options SqlClient "jdbc:hsqldb:file:shop2/db;$copy" ${select}`);
    expect(copied.out, copied.complaints).toBe(`${letter}\n`);
    const withOld = await page.shell(`java @dke.options SqlClient "jdbc:hsqldb:file:shop2/db;$crypt" ${select}`);
    expect(withOld.code).toBe(1);
    expect(withOld.out).toBe('');
    expect(inTheOpen()).toEqual([]);
  });

  test('a soft-deleted master key still opens the database', async () => {
    await page.done(outOfUse, 1);
    await opens();
  });

  test('a disabled master key opens nothing until it is enabled', async () => {
    const [disable = '', enable = ''] = page.blocks(outOfUse)[0]?.split('\n') ?? [];
    expect((await page.shell(disable)).code).toBe(0);
    expect(await refused()).toMatch(/master key "shop master 2" returned CKR_\w+, which means that it is disabled/);
    expect((await page.shell(enable)).code).toBe(0);
    await opens();
  });

  test('a destroyed master key opens the database never again, and the message says so', async () => {
    await page.done(outOfUse, 2);
    const [message = ''] = page.blocks(outOfUse, 'text');
    expect(await refused()).toContain(message.trim().replace(/[0-9a-f]{32}/, page.environment.reference ?? ''));
    expect(inTheOpen()).toEqual([]);
  });
});
