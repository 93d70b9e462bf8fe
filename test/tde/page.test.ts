// docs/databases/oracle.md: its shell commands are run with a service behind them, and its SQL is
// played by the simulator, in the order of the page and for the release that it is written for.
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openPage, type PageRun } from '../support/page.ts';
import { library as built } from '../support/pkcs11-host.ts';
import { Instance } from './instance.ts';
import { placeAgent, placeFile } from './library.ts';
import type { DatabaseHost } from './process-table.ts';
import { type ProfileName, readProfile } from './profile.ts';
import { refused, statusOf, wallet } from './scenarios.ts';
import type { Row } from './views.ts';

let page: PageRun;
let host: DatabaseHost;
const instances: Instance[] = [];
const canary = 'card 4929 1234 5678 9012';

beforeAll(async () => {
  page = await openPage('databases/oracle');
  await page.done('Register the database');
  page.settle('pkcs11.toml');
  host = newHost('host');
});
afterAll(async () => {
  for (const each of instances) if (each.state !== 'down') await each.die();
  await page.end();
});

const newHost = (name: string): DatabaseHost => {
  const base = join(page.folder, name, 'extapi');
  for (const folder of ['hsm', 'pkcs11']) {
    const library = join(base, folder, 'dke/1.0/libdke_pkcs11.so');
    placeFile(built, library);
    placeAgent(built, library);
    for (const each of ['', 'dke', 'dke/1.0']) chmodSync(join(base, folder, each), 0o755);
  }
  return {
    base,
    traces: join(page.folder, name, 'traces'),
    environment: {
      DKE_PKCS11_CONF: join(page.folder, 'pkcs11.toml'),
      DKE_PKCS11_SOCKET: page.site.socket,
      DKE_AGENT_LOG_DIR: page.site.logDirectory,
    },
  };
};

const database = async (name: string, profile: ProfileName, release: string): Promise<Instance> => {
  const directory = join(page.folder, name);
  mkdirSync(directory);
  const made = new Instance({ name, directory, profile: readProfile(profile), release, host });
  instances.push(made);
  await made.execute('STARTUP');
  return made;
};

/** Runs a block of SQL as printed; returns the rows of its last query. */
const play = async (on: Instance, block: string): Promise<readonly Row[]> => {
  let rows: readonly Row[] = [];
  for (const statement of block.split(/;\s*$/m).map((each) => each.trim())) {
    if (statement === '') continue;
    const base = '/opt/oracle/extapi/64';
    const answer = await on.execute(statement.replace(base, host.base));
    if (/^SELECT/.test(statement)) rows = answer;
  }
  return rows;
};
const sql = (heading: string): readonly string[] => page.blocks(heading, 'sql');
const sqlnet = (on: Instance, heading: string): void => {
  const [line = ''] = page.blocks(heading, 'ini');
  on.writeSqlnet(line.replace(/^[^=]*=\s*/, '').trim());
};
const restart = async (on: Instance): Promise<void> => {
  await on.execute('SHUTDOWN IMMEDIATE');
  await on.execute('STARTUP');
};
const open = 'ADMINISTER KEY MANAGEMENT SET KEYSTORE OPEN IDENTIFIED BY "<keystore_pin>" CONTAINER = ALL';

describe('docs/databases/oracle.md', () => {
  test.each([
    ['11g Release 2', '11g', '11.2'],
    ['12c to 18c', '12c-19c', '18c'],
    ['19c', '12c-19c', '19c'],
    ['23ai', '23ai', '23ai'],
  ] as const)('from zero: %s', async (title, profile, release) => {
    const heading = `From zero: ${title}`;
    const on = await database(`Z${release.replace('.', '')}`, profile, release);
    if (profile === '11g' || release === '18c') sqlnet(on, heading);
    for (const block of sql(heading)) await play(on, block);
    expect(await statusOf(on)).toEqual(['OPEN']);
    await on.execute(`INSERT INTO payments VALUES ('${canary}')`);
    expect(await on.execute('SELECT card FROM payments')).toEqual([{ C: canary }]);
  });

  test('rotates, and the restart brings the new key', async () => {
    const on = await database('ROT', '12c-19c', '19c');
    await play(on, sql('From zero: 19c')[0] ?? '');
    const before = on.keyOf();
    await play(on, sql('Rotate the master key')[0] ?? '');
    expect(on.keyOf()).not.toBe(before);
    await on.execute(open);
    await on.advance(3);
    expect(await statusOf(on)).toEqual(['OPEN']);
  });

  test.each(['18c', '19c'])('migrates from a wallet and back: %s', async (release) => {
    const on = await database(`M${release}`, '12c-19c', release);
    const administer = 'ADMINISTER KEY MANAGEMENT';
    if (release === '19c') {
      await on.execute(`ALTER SYSTEM SET WALLET_ROOT = '/opt/oracle/admin/erp/wallet' SCOPE = SPFILE`);
      await restart(on);
      await on.execute(`ALTER SYSTEM SET TDE_CONFIGURATION = 'KEYSTORE_CONFIGURATION=FILE' SCOPE = BOTH`);
    }
    await on.execute(`${administer} CREATE KEYSTORE '${on.walletDirectory}' IDENTIFIED BY "<old_wallet_password>"`);
    await on.execute(`${administer} SET KEYSTORE OPEN IDENTIFIED BY "<old_wallet_password>" CONTAINER = ALL`);
    await on.execute(`${administer} SET KEY IDENTIFIED BY "<old_wallet_password>" WITH BACKUP CONTAINER = ALL`);
    await on.execute(`CREATE TABLESPACE secure DATAFILE 's.dbf' SIZE 1M ENCRYPTION ENCRYPT`);
    await on.execute('CREATE TABLE payments (card VARCHAR2(100)) TABLESPACE secure');
    await on.execute(`INSERT INTO payments VALUES ('${canary}')`);
    const heading = 'Migrate from a local wallet';
    const folder = on.walletDirectory;
    const { code, complaints } = await page.shell(`WALLET='${folder}'\n${page.blocks(heading).join('\n')}`);
    expect(code, complaints).toBe(0);
    expect(existsSync(join(folder, 'ewallet.p12.before-dke'))).toBe(true);
    const [password = '', migration = ''] = sql(heading);
    await play(on, password);
    if (release === '18c') {
      sqlnet(on, heading);
      await restart(on);
      // Up to 18c, sqlnet.ora replaces the first statement. The second one (CLOSE) is skipped: no
      // keystore is open after the restart.
      await play(on, migration.split('\n').slice(2).join('\n'));
    } else await play(on, migration);
    expect(await statusOf(on)).toEqual(['OPEN', 'OPEN']);
    expect((await wallet(on))[0]).toMatchObject({ WRL_TYPE: 'HSM', WALLET_ORDER: 'PRIMARY' });
    const { out } = await page.shell('dke audit list --kind key.created -o json');
    expect(out).toContain(`ora_fg0_${on.name}`);

    const [reverse = '', other = ''] = sql('Reverse migration');
    if (release === '18c') {
      on.writeSqlnet('(SOURCE=(METHOD=FILE))');
      await restart(on);
      await play(on, reverse.split('\n').slice(1).join('\n'));
    } else {
      await refused(play(on, reverse), 'ORA-28414');
      await play(on, other);
    }
    expect(await wallet(on)).toMatchObject([{ WRL_TYPE: 'FILE', STATUS: 'OPEN' }]);
    expect(await on.execute('SELECT card FROM payments')).toEqual([{ C: canary }]);
  });

  test('opens on its own', async () => {
    const on = await database('AUTO', '12c-19c', '19c');
    await play(on, sql('From zero: 19c')[0] ?? '');
    const rows = await play(on, sql('Auto-login')[0] ?? '');
    expect(rows[0]).toMatchObject({ WRL_TYPE: 'HSM', STATUS: 'OPEN', WALLET_TYPE: 'AUTO_LOGIN' });
  });

  test('opens nothing with the wallet in another place, or with a secret that was added while HSM is configured', async () => {
    const [printed = ''] = sql('Auto-login');
    const elsewhere = await database('AUT1', '12c-19c', '19c');
    await play(elsewhere, sql('From zero: 19c')[0] ?? '');
    await refused(play(elsewhere, printed.replaceAll('wallet/tde', 'wallet')), 'ORA-28367');
    const late = await database('AUT2', '12c-19c', '19c');
    await play(late, sql('From zero: 19c')[0] ?? '');
    // Every PIN is accepted, so that no statement fails; the last query shows it.
    const rows = await play(
      late,
      printed
        .replace(/^ADMINISTER KEY MANAGEMENT SET KEYSTORE CLOSE.*\n/m, '')
        .replace("CONFIGURATION=FILE'", "CONFIGURATION=HSM'")
        .replace(/^ADMINISTER KEY MANAGEMENT SET KEYSTORE OPEN.*\n/m, ''),
    );
    expect(rows[0]).toMatchObject({ WRL_TYPE: 'HSM', STATUS: 'CLOSED' });
    expect(late.alertLog()).toContain('secret HSM_PASSWORD added to the HSM keystore');
  });

  test('opens with a store of passwords, and without one EXTERNAL STORE is refused', async () => {
    const on = await database('STORE', '12c-19c', '19c');
    await play(on, (sql('From zero: 19c')[0] ?? '').split('\n').slice(0, 4).join('\n'));
    const [printed = ''] = sql('External store');
    await refused(play(on, printed.split('\n').slice(4).join('\n')), 'ORA-00988');
    await play(on, printed);
    expect(await statusOf(on)).toEqual(['OPEN']);
    // Each process has the secret from the store.
    await on.execute(`CREATE TABLESPACE secure DATAFILE 's.dbf' SIZE 1M ENCRYPTION ENCRYPT`);
    await on.execute('CREATE TABLE payments (card VARCHAR2(100)) TABLESPACE secure');
    await on.execute(`INSERT INTO payments VALUES ('${canary}')`);
    await on.advance(3);
    const client = on.connect();
    expect(await client.execute('SELECT card FROM payments')).toEqual([{ C: canary }]);
    await client.end();
  });

  test('configures a cluster, whose second instance opens what the first has set', async () => {
    const first = await database('RAC1', '12c-19c', '19c');
    for (const block of sql('Real Application Clusters')) await play(first, block);
    expect(await statusOf(first)).toEqual(['OPEN']);
    const second = first.joinCluster(host, 'RAC2');
    instances.push(second);
    await second.execute('STARTUP');
    await second.execute(open);
    expect(await statusOf(second)).toEqual(['OPEN']);
  });

  test('clones a pluggable database to another host of the group', async () => {
    const source = await database('CSRC', '12c-19c', '19c');
    const target = await database('CTGT', '12c-19c', '19c');
    for (const each of [source, target]) await play(each, sql('From zero: 19c')[0] ?? '');
    await source.execute('CREATE PLUGGABLE DATABASE sales');
    await source.execute('ALTER PLUGGABLE DATABASE sales OPEN');
    await source.execute('ALTER SESSION SET CONTAINER = sales');
    await source.execute(open.replace(' CONTAINER = ALL', ''));
    await source.execute('ADMINISTER KEY MANAGEMENT SET KEY IDENTIFIED BY "<keystore_pin>"');
    await source.execute(`CREATE TABLESPACE secure DATAFILE 'sales/s.dbf' SIZE 1M ENCRYPTION ENCRYPT`);
    await source.execute('CREATE TABLE payments (card VARCHAR2(100)) TABLESPACE secure');
    await source.execute(`INSERT INTO payments VALUES ('${canary}')`);
    await source.execute('ALTER SESSION SET CONTAINER = CDB$ROOT');
    const [there = '', here = ''] = sql('Standby, restore, clone');
    await play(source, there);
    copyFileSync(join(source.directory, 'twin.pdb'), join(target.directory, 'twin.pdb'));
    await play(target, here);
    expect(await target.execute('SELECT card FROM payments')).toEqual([{ C: canary }]);
  });

  test('every statement of the page belongs to a heading that was played', () => {
    const headings = [
      ...['11g Release 2', '12c to 18c', '19c', '23ai'].map((title) => `From zero: ${title}`),
      'Rotate the master key',
      'Migrate from a local wallet',
      'Reverse migration',
      'Auto-login',
      'External store',
      'Real Application Clusters',
      'Standby, restore, clone',
    ];
    const text = readFileSync(join(import.meta.dirname, '../../docs/databases/oracle.md'), 'utf8');
    expect(headings.flatMap((heading) => sql(heading))).toHaveLength(text.match(/^```sql$/gm)?.length ?? 0);
  });
});
