// Apache Derby 10.14 with every page encrypted through the library: the commands of
// docs/databases/derby.md as they are printed, and what becomes of the database when its master
// key, its agent or its service goes. No file may hold what a table holds.
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { killProcess } from '../support/host.ts';
import { derbyPresent, jars, shortLived, startJava } from '../support/java.ts';
import { openPage, type PageRun } from '../support/page.ts';
import { filesHolding } from '../support/search.ts';
import { inLongTier } from '../support/tiers.ts';
import type { Outcome } from '../support/tools.ts';

const secret = 'card 4929 1234 5678 9012';
const oldSecret = 'card 5500 0000 0000 0004';

const killed = inLongTier('databases/derby: an agent that is killed');

describe.runIf(derbyPresent())('docs/databases/derby.md', () => {
  let page: PageRun;
  beforeAll(async () => {
    page = await openPage('databases/derby', { variables: { DKE_JCE: jars.jce, JDK_JAVA_OPTIONS: shortLived } });
    await page.done('Register the database');
    page.settle('pkcs11.toml');
  });
  afterAll(() => page.end());

  const path = (name: string): string => join(page.folder, name);
  const variable = (name: string): string => page.environment[name] ?? '';
  /**
   * Runs one file of statements; ij continues after an error and exits with 0, so only its output
   * shows the result.
   */
  const ij = (file: string): Promise<Outcome> => page.shell(`java @dke.options org.apache.derby.tools.ij ${file}`);
  /** The log of the last boot, which has the causes of what ij prints. */
  const log = (): string => readFileSync(path('derby.log'), 'utf8');
  const reads = async (): Promise<string> => (await ij('read.sql')).out;
  const written = (name: string, text: string): string => {
    writeFileSync(path(name), text);
    return name;
  };
  const inTheOpen = (): readonly string[] =>
    filesHolding([page.folder, page.logDirectory, page.site.server.dataDirectory], secret).filter(
      (file) => !file.endsWith('.sql'),
    );

  test('the keys are made: the service has the master key, the folder the wrapped data key', async () => {
    const out = await page.done('Create the keys');
    expect(out).toMatch(
      /^erp master 1\ndke data key, format 1\nreference = ([0-9a-f]{32})\nmaster = erp master 1\nwrapped = [0-9a-f]{80}\n$/,
    );
    expect(variable('reference')).toMatch(/^[0-9a-f]{32}$/);
  });

  test('a label that is taken makes no second master key', async () => {
    const { code, complaints } = await page.shell(`java @dke.options -jar "$DKE_JCE" new-master 'erp master 1'`);
    expect(code).toBe(1);
    expect(complaints).toContain(
      'no master key "erp master 1" was created: another key has this label; use another label',
    );
  });

  test('a database is created and read, and no file holds what it holds', async () => {
    expect(await page.done('Create the database')).not.toContain('ERROR XJ04');
    expect(await page.done('Open it')).toContain(secret);
    expect(inTheOpen()).toEqual([]);
    // Check of the search: it finds the statements, which are files too.
    expect(filesHolding([page.folder], secret)).toEqual([path('create.sql')]);
  });

  test('another data key is refused by Derby, a reference that is none by the provider', async () => {
    const right = variable('reference');
    const other = await page.shell(`other=$(java @dke.options -jar "$DKE_JCE" new keys 'erp master 1')`);
    expect(other.code, other.complaints).toBe(0);
    const url = `jdbc:derby:erp;${variable('encryption')};encryptionKey=`;
    expect((await ij(written('other.sql', `connect '${url}${variable('other')}';`))).out).toContain('ERROR XBCXK');
    await ij(written('none.sql', `connect '${url}${right.replace(/./g, '0')}';`));
    expect(log()).toContain('there is no data key');
  });

  test.runIf(killed)('thousands of rows are written while the agent is killed, and none is lost', async () => {
    const rows = 1500;
    const inserts = Array.from({ length: rows }, (_, i) => `insert into load values (${i}, '${secret} of row ${i}');`);
    const connect = `connect 'jdbc:derby:erp;${variable('encryption')};encryptionKey=${variable('reference')}';`;
    const text = [connect, 'create table load (id int primary key, text varchar(60));', ...inserts];
    const load = startJava(['@dke.options', 'org.apache.derby.tools.ij', written('load.sql', text.join('\n'))], page);
    for (const step of [1, 2]) {
      await load.printed('1 row inserted', step * 500);
      for (const pid of page.agents()) killProcess(pid);
    }
    const { out } = await load.ended();
    expect(out).not.toContain('ERROR');
    expect(out.split('1 row inserted')).toHaveLength(rows + 1);
    const counted = await ij(written('count.sql', `${connect}\nselect count(*), min(id), max(id) from load;`));
    expect(counted.out).toMatch(new RegExp(`^${rows} +\\|0 +\\|${rows - 1} *$`, 'm'));
    expect(inTheOpen()).toEqual([]);
  });

  test('a new master key wraps the data key, and the old one is no longer needed', async () => {
    expect(await page.done('Rotate the master key')).toContain('erp master 1 -> erp master 2');
    const gone = await page.shell(`dke tde key destroy 'erp master 1' --confirm 'erp master 1'`);
    expect(gone.code, gone.complaints).toBe(0);
    expect(await reads()).toContain(secret);
  });

  test('a new data key encrypts every page again, and the old one no longer opens it', async () => {
    const old = variable('reference');
    cpSync(path('read.sql'), path('read-old.sql'));
    expect(await page.done('Rotate the data key')).not.toContain('ERROR');
    expect(variable('reference')).not.toBe(old);
    expect((await ij('read-old.sql')).out).toContain('ERROR XBCXK');
    await page.done('Open it');
    expect(await reads()).toContain(secret);
    expect(inTheOpen()).toEqual([]);
  });

  test('a data key that cannot be made, or that Derby does not take, leaves the reference as it is', async () => {
    const right = variable('reference');
    const [rotate = ''] = page.blocks('Rotate the data key');
    const unchanged = (run: Outcome): void => expect(run.complaints).toContain('the data key was not changed');
    unchanged(await page.shell(rotate.replace("'erp master 2'", "'no such master'")));
    expect(variable('reference')).toBe(right);
    await page.shell(`reference=$(java @dke.options -jar "$DKE_JCE" new keys 'erp master 2')`);
    const wrong = variable('reference');
    unchanged(await page.shell(rotate));
    expect(variable('reference')).toBe(wrong);
    await page.shell(`reference=${right}`);
    expect(await reads()).toContain(secret);
  });

  test('a database that exists is encrypted, and decrypted again', async () => {
    const inPages = (): readonly string[] => filesHolding([path('old')], oldSecret);
    expect(await page.done('Encrypt an existing database')).not.toContain('ERROR XJ04');
    expect(inPages()).toEqual([]);
    expect((await ij('decrypt.sql')).out).not.toContain('ERROR');
    expect(inPages()).not.toEqual([]);
  });

  test('a soft-deleted master key still opens the database', async () => {
    const [, softDelete] = [await page.done('Disable or destroy the database', 1), await reads()];
    expect(softDelete).toContain(secret);
  });

  test('a disabled master key opens nothing until it is enabled', async () => {
    const [disable = '', enable = ''] = page.blocks('Disable or destroy the database')[0]?.split('\n') ?? [];
    expect((await page.shell(disable)).code).toBe(0);
    const refused = await reads();
    expect(refused).not.toContain(secret);
    expect(log()).toMatch(/master key "erp master 2" returned CKR_\w+, which means that it is disabled/);
    expect((await page.shell(enable)).code).toBe(0);
    expect(await reads()).toContain(secret);
  });

  test('an application of another group finds no master key', async () => {
    const stranger = await registerApplication(page.site.api, 'crm', await createGroup(page.site.api, 'sales'));
    const config = page.site.config('stranger', stranger);
    const { out } = await page.shell(`DKE_PKCS11_CONF=${config} java @dke.options org.apache.derby.tools.ij read.sql`);
    expect(out).not.toContain(secret);
    expect(log()).toContain('the token has no master key "erp master 2"');
  });

  test('while the service is away the database does not open, and says whom to ask', async () => {
    await page.site.stopServer();
    try {
      const refused = await reads();
      expect(refused).not.toContain(secret);
      expect(log()).toContain('CKR_DEVICE_ERROR');
    } finally {
      await page.site.startServer();
    }
    expect(await reads()).toContain(secret);
  });

  test('a destroyed master key opens the database never again, and the message says so', async () => {
    expect(await page.done('Disable or destroy the database', 2)).toContain('destroyed');
    const [message = ''] = page.blocks('Disable or destroy the database', 'text');
    const refused = await reads();
    expect(refused).not.toContain(secret);
    expect(log()).toContain(message.trim().replace(/[0-9a-f]{32}/, variable('reference')));
    expect(inTheOpen()).toEqual([]);
  });

  test('no key was ever in the clear: the audit log has each time that one was handed out', async () => {
    const handed = await page.site.api.audit('kind=key.sent');
    expect(handed.length).toBeGreaterThan(5);
  });
});
