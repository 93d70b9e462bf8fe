// MariaDB's tables, logs and temporary files under keys of the service: what is on the disk,
// restarts, rotation under load, crashes in the middle of it, and key files that are not what they
// should be. The real server, agent and service; the commands of docs/databases/mariadb.md.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { killProcess, until } from '../support/host.ts';
import { type Mariadb, mariadbIsThere, pageBlock } from '../support/mariadb.ts';
import {
  filesBelowWith,
  type Instance,
  insertUntilStopped,
  type MariadbSite,
  startMariadbSite,
  statusOf,
  untilEmpty,
} from '../support/mariadb-site.ts';
import { run } from '../support/tools.ts';

const present = mariadbIsThere();
const canary = 'the-canary-sings-4711';

const rotateMaster = (): string => pageBlock('sql', 'rotate the master key');
const rotateData = (): string => pageBlock('sql', 'rotate the data keys');

describe.runIf(present)('MariaDB on the key management of the service', () => {
  let site: MariadbSite;
  let instance: Instance;
  let database: Mariadb;

  beforeAll(async () => {
    site = await startMariadbSite();
    instance = site.instance('orders', await site.register('orders'));
    database = await instance.initialize();
  });
  afterAll(() => site?.end());

  test('the master key is a key of the service that never leaves it, and the key file names it', async () => {
    const label = await site.label(database);
    expect(label).toMatch(/^mariadb\.[0-9a-f]{32}$/);
    const key = await site.api.masterKey(instance.application.record.applicationId, label);
    expect(key).toMatchObject({ sensitive: true, extractable: false, origin: 'generated', state: 'active' });
    expect(readFileSync(instance.keyFile, 'utf8')).toContain(`\nmaster ${label}\n`);
    expect(statSync(instance.keyFile).mode & 0o777).toBe(0o600);
    expect(await statusOf(database)).toMatchObject({ data_keys: '2', failures: '0', memory_locked: 'ON' });
  });

  test('data keys lie in memory that is locked, left out of core dumps and not inherited', () => {
    // The keyring: a mapping of 32 KiB. proc(5): lo, locked; dd, not dumped; dc, not copied at a
    // fork.
    const mappings = readFileSync(`/proc/${database.pid}/smaps`, 'utf8').split(/^(?=[0-9a-f]+-)/m);
    const flags = mappings
      .filter((text) => /^Size: +32 kB$/m.test(text))
      .map((text) => /^VmFlags: (.*)$/m.exec(text)?.[1] ?? '');
    expect(flags.filter((line) => ['lo', 'dd', 'dc'].every((flag) => line.split(' ').includes(flag)))).toHaveLength(1);
  });

  test('no plaintext is in any file: InnoDB, its redo log and undo, binary log, Aria tables', async () => {
    await database.sql(`
      CREATE DATABASE orders;
      CREATE TABLE orders.inno (id INT PRIMARY KEY AUTO_INCREMENT, text VARCHAR(200), KEY (text)) ENGINE=InnoDB;
      CREATE TABLE orders.packed (id INT PRIMARY KEY AUTO_INCREMENT, text VARCHAR(200)) ENGINE=InnoDB ROW_FORMAT=COMPRESSED;
      CREATE TABLE orders.aria (id INT PRIMARY KEY AUTO_INCREMENT, text VARCHAR(200)) ENGINE=Aria;
      CREATE TABLE orders.load_rows (id INT PRIMARY KEY, text TEXT) ENGINE=InnoDB;`);
    for (const table of ['inno', 'packed', 'aria']) {
      const insert = `INSERT INTO orders.${table} (text) SELECT CONCAT('${table}-${canary}', seq) FROM orders.seq_1_to_500;`;
      await database.sql(`${insert} UPDATE orders.${table} SET text = CONCAT(text, '${table}-${canary}');`);
    }
    // A transaction that is under way: undo and redo hold it.
    const open = spawn('mariadb', ['--no-defaults', '-uroot', `-S${database.socket}`, '--unbuffered', '-NB'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    open.stdin.write(`BEGIN; UPDATE orders.inno SET text = 'inno-${canary}'; SELECT 'changed';\n`);
    await once(open.stdout, 'data');
    await database.sql('FLUSH TABLES; FLUSH BINARY LOGS;');
    await untilEmpty(database, 'what is not encrypted yet');
    for (const table of ['inno', 'packed']) expect(filesBelowWith(instance.folder, `${table}-${canary}`)).toEqual([]);
    // According to the page, MariaDB has no encryption for Aria's own log.
    const names = filesBelowWith(instance.folder, `aria-${canary}`).map((path) => path.split('/').at(-1));
    expect(names.filter((name) => !/^aria_log\.\d+$/.test(name ?? ''))).toEqual([]);
    open.stdin.end('ROLLBACK;\n');
    await once(open, 'exit');
    // Check of the search: it finds the same data without encryption.
    const naked = `SET SESSION sql_log_bin = 0; SET GLOBAL innodb_encrypt_tables = ON; CREATE TABLE orders.naked (text VARCHAR(200)) ENCRYPTED=NO;`;
    await database.sql(
      `${naked} INSERT INTO orders.naked VALUES ('naked-${canary}'); FLUSH TABLES orders.naked FOR EXPORT; UNLOCK TABLES;`,
    );
    expect(filesBelowWith(database.data, `naked-${canary}`).map((path) => path.split('/').at(-1))).toContain(
      'naked.ibd',
    );
    await database.sql(
      `SET SESSION sql_log_bin = 0; DROP TABLE orders.naked; SET GLOBAL innodb_encrypt_tables = 'FORCE'`,
    );
  });

  test('no plaintext is in temporary files, which have no name', async () => {
    const deletedFiles = (): readonly string[] =>
      readdirSync(`/proc/${database.pid}/fd`)
        .map((fd) => `/proc/${database.pid}/fd/${fd}`)
        .filter((path) => {
          try {
            return readlinkSync(path).startsWith(join(instance.folder, 'tmp')) && statSync(path).size > 0;
          } catch {
            return false;
          }
        });
    // A sort of more than its buffer, whose result is not read: its files stay open.
    const rows = `SELECT CONCAT('${canary}', seq, REPEAT('y', 500)) AS text FROM orders.seq_1_to_40000 ORDER BY MD5(seq)`;
    const client = spawn('mariadb', ['--no-defaults', '-uroot', `-S${database.socket}`, '--quick', '-NB'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    client.stdin.end(`SET SESSION sort_buffer_size = 32768; ${rows};`);
    await once(client.stdout, 'readable');
    const files = await until('a temporary file', async () => (deletedFiles().length > 0 ? deletedFiles() : undefined));
    expect(files.filter((path) => readFileSync(path).includes(canary))).toEqual([]);
    client.stdout.destroy();
    client.kill();
    await once(client, 'exit');
  });

  test('after a restart everything is there', async () => {
    await database.stop();
    database = await instance.start();
    expect(await database.sql(`SELECT COUNT(*) FROM orders.inno WHERE text LIKE 'inno-${canary}%'`)).toEqual(['500']);
    expect(await database.sql('CHECK TABLE orders.inno, orders.packed, orders.aria')).toEqual(
      ['inno', 'packed', 'aria'].map((table) => `orders.${table}\tcheck\tstatus\tOK`),
    );
    expect(database.log()).toMatch(
      /dke_key_management: 2 data keys \(2 versions\) unwrapped by master key 'mariadb\.\w+' in \d+ ms/,
    );
  });

  test('master key and data keys are rotated under load, and nothing is lost', async () => {
    const load = insertUntilStopped({ database });
    const before = await site.label(database);
    for (let round = 0; round < 3; round++) await database.sql(`${rotateMaster()} ${rotateData()}`);
    await untilEmpty(database, 'what has old versions still');
    const confirmed = await load.stop();
    expect(confirmed.length).toBeGreaterThan(0);
    const status = await statusOf(database);
    expect(status).toMatchObject({
      master_key_rotations: '3',
      data_key_changes: '3',
      data_key_versions: '8',
      failures: '0',
    });
    expect(status.master_key).not.toBe(before);
    await database.stop();
    database = await instance.start();
    expect(await database.sql('SELECT id FROM orders.load_rows ORDER BY id')).toEqual(confirmed.map(String));
    expect(await database.sql('CHECK TABLE orders.load_rows')).toEqual(['orders.load_rows\tcheck\tstatus\tOK']);
    // Rotation of the master key wraps again and touches no page.
    await untilEmpty(database, 'what has old versions still');
    await database.sql(rotateMaster());
    await untilEmpty(database, 'what has old versions still');
    // The old ones stay in the service.
    expect((await site.api.masterKey(instance.application.record.applicationId, before)).state).toBe('active');
  });

  test('a table has its own key, and an id that was not made is refused', async () => {
    const block = pageBlock('sql', 'make a data key');
    await database.sql(`CREATE DATABASE secrets; ${block}`);
    const ids = `SELECT CURRENT_KEY_ID FROM information_schema.INNODB_TABLESPACES_ENCRYPTION WHERE NAME = 'secrets/cards'`;
    expect(await database.sql(ids)).toEqual(['9']);
    const refused = await database.trySql('CREATE TABLE secrets.other (id INT) ENCRYPTED=YES ENCRYPTION_KEY_ID=10');
    expect(refused.complaints).toContain('ERROR 1005');
    const again = await database.trySql('SET GLOBAL dke_key_management_create_data_key = 9');
    expect(again.complaints).toContain('ERROR 1105 (HY000) at line 1: dke_key_management: key 9 already exists');
  });

  test('keys are rotated by users who may set global variables, and by no others', async () => {
    await database.sql('CREATE USER clerk@localhost; GRANT ALL ON orders.* TO clerk@localhost');
    const before = await statusOf(database);
    for (const statement of [
      rotateMaster(),
      "SET GLOBAL dke_key_management_rotate_data_keys = 'all'",
      'SET GLOBAL dke_key_management_create_data_key = 77',
    ]) {
      const login = ['--no-defaults', '-uclerk', `-S${database.socket}`];
      const { code, complaints } = await run('mariadb', [...login, '-e', statement]);
      expect(code).toBe(1);
      expect(complaints).toContain('ERROR 1227');
    }
    expect(await statusOf(database)).toMatchObject({ data_keys: before.data_keys, master_key: before.master_key });
  });

  test.each(['all,1', '0', '1,', 'x', '1;2', '4294967296', '-1'])('rotate_data_keys does not take %s', async (text) => {
    const { complaints } = await database.trySql(`SET GLOBAL dke_key_management_rotate_data_keys = '${text}'`);
    expect(complaints).toContain('key ids separated by commas');
  });

  test('without the service MariaDB continues; a rotation fails with a clear message and changes nothing', async () => {
    const before = readFileSync(instance.keyFile, 'utf8');
    await site.stopServer('SIGKILL');
    try {
      const { complaints } = await database.trySql(rotateMaster());
      expect(complaints).toMatch(
        /dke_key_management: .*CKR_DEVICE_ERROR: https:.* cannot be reached \(ECONNREFUSED\); check that the service is running/,
      );
      expect(await database.sql('SELECT COUNT(*) FROM orders.inno')).toEqual(['500']);
      await database.sql(`INSERT INTO orders.inno (text) VALUES ('written without the service')`);
      expect(readFileSync(instance.keyFile, 'utf8')).toBe(before);
    } finally {
      await site.startServer();
    }
    await database.sql(rotateMaster());
    expect(readFileSync(instance.keyFile, 'utf8')).not.toBe(before);
  });

  test('while a rotation waits for the service, no one else waits', async () => {
    const stopped = site.server.child.pid ?? 0;
    const before = await site.label(database);
    process.kill(stopped, 'SIGSTOP');
    let ended = false;
    const rotation = database.trySql(rotateMaster()).finally(() => {
      ended = true;
    });
    try {
      await until('the rotation', async () => {
        const [running] = await database.sql(
          "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%rotate_master_key%'",
        );
        // The query itself is one of the matches.
        return Number(running) > 1 ? true : undefined;
      });
      await database.sql(`INSERT INTO orders.inno (text) VALUES ('meanwhile'); CREATE TABLE orders.meanwhile (id INT);
        SET GLOBAL sort_buffer_size = 2097152; SHOW GLOBAL VARIABLES LIKE 'dke%'; FLUSH TABLES;`);
      expect(await site.label(database)).toBe(before);
      expect(ended).toBe(false);
    } finally {
      process.kill(stopped, 'SIGCONT');
    }
    expect((await rotation).code).toBe(0);
    expect(await site.label(database)).not.toBe(before);
  });

  test.each(['dke-keys.copy.new', 'dke-keys.copy', 'dke-keys.new', 'dke-keys'])(
    'killed as %s appears, MariaDB loses nothing',
    async (name) => {
      await database.sql('TRUNCATE orders.load_rows');
      const load = insertUntilStopped({ database });
      const seen = new Promise<void>((resolve) => {
        const watcher = watch(join(instance.folder, 'keys'), (_, file) => {
          if (file !== name) return;
          process.kill(database.pid, 'SIGKILL');
          watcher.close();
          resolve();
        });
      });
      const rotation = database.trySql(`${rotateData()} ${rotateMaster()}`);
      await seen;
      await database.kill();
      await rotation;
      const confirmed = await load.stop();
      database = await instance.start();
      const there = new Set(await database.sql('SELECT id FROM orders.load_rows'));
      expect(confirmed.filter((number) => !there.has(String(number)))).toEqual([]);
      expect(await database.sql('CHECK TABLE orders.load_rows, orders.inno')).toEqual(
        ['load_rows', 'inno'].map((table) => `orders.${table}\tcheck\tstatus\tOK`),
      );
      await database.sql(`${rotateData()} ${rotateMaster()}`);
      expect(readFileSync(instance.keyFile, 'utf8')).toBe(readFileSync(`${instance.keyFile}.copy`, 'utf8'));
    },
  );

  test('the agent killed during rotations costs at most a rotation', async () => {
    for (let round = 0; round < 3; round++) {
      const before = await statusOf(database);
      const rotation = database.trySql(rotateMaster());
      for (const pid of site.agents()) killProcess(pid);
      const { code, complaints } = await rotation;
      if (code === 0) continue;
      expect(complaints).toContain('dke_key_management: ');
      expect(await site.label(database)).toBe(before.master_key);
    }
    // The library starts an agent when there is none.
    await database.sql(rotateMaster());
    await database.stop();
    database = await instance.start();
    expect(await database.sql('CHECK TABLE orders.inno')).toEqual(['orders.inno\tcheck\tstatus\tOK']);
  });

  describe('the key file', () => {
    const copy = (): string => `${instance.keyFile}.copy`;
    let good: string;
    beforeAll(async () => {
      await database.stop();
      good = readFileSync(instance.keyFile, 'utf8');
    });
    afterAll(async () => {
      await database.stop();
    });
    const both = (text: string): void => {
      for (const path of [instance.keyFile, copy()]) writeFileSync(path, text);
    };

    test.each([
      ['damaged', (text: string) => text.replace('sequence ', 'sequence 1'), 'its checksum is wrong'],
      [
        'cut off',
        (text: string) => text.slice(0, text.length / 2),
        'its checksum is wrong: it is damaged or truncated',
      ],
      ['empty', () => '', 'it is truncated or empty'],
      ['another file', () => 'x'.repeat(400), 'it is not a key file'],
      ['newer', (text: string) => text.replace('keys 2\n', 'keys 3\n'), 'a newer plugin wrote it'],
    ])('that is %s is taken from its copy and repaired', async (_, spoil, why) => {
      writeFileSync(instance.keyFile, spoil(good));
      database = await instance.start();
      expect(database.log()).toContain(why);
      expect(database.log()).toContain('its .copy is used');
      expect(readFileSync(instance.keyFile, 'utf8')).toBe(good);
      await database.stop();
    });

    test('that is there is not created again by initializing again, nor changed by options', async () => {
      database = await instance.initialize('--dke-key-management-rotate-master-key=ON');
      expect(readFileSync(instance.keyFile, 'utf8')).toBe(good);
      expect(database.log()).toContain('initialization is complete: remove initialize from the configuration');
      expect(database.log()).toContain('the options that change keys are ignored');
      await database.stop();
    });

    test('that is lost with its copy is missed, and not created again', async () => {
      for (const path of [instance.keyFile, copy()]) rmSync(path);
      expect(await instance.refused()).toContain(
        `dke_key_management: there is no key file ${instance.keyFile}. If this database has encrypted data`,
      );
      expect(existsSync(instance.keyFile)).toBe(false);
      both(good);
    });

    test('that is damaged twice refuses the start with the reason, and is left as it is', async () => {
      const bad = good.replace('key 1', 'key 3');
      both(bad);
      const log = await instance.refused();
      expect(log).toContain(
        `dke_key_management: the key file ${instance.keyFile} cannot be used: its checksum is wrong`,
      );
      expect(log).toContain('Restore the key file from a backup');
      expect(readFileSync(instance.keyFile, 'utf8')).toBe(bad);
      both(good);
    });

    test('whose lines were changed under a right checksum is refused by the master key', async () => {
      const body = good
        .slice(0, good.indexOf('crc32 '))
        .replace(/^key 1 (\d+)/m, (_, version: string) => `key 1 ${Number(version) + 1}`);
      both(`${body}crc32 ${crc32(body).toString(16).padStart(8, '0')}\n`);
      expect(await instance.refused()).toContain('CKR_ENCRYPTED_DATA_INVALID: the key file was changed');
      both(good);
    });

    test('has room for a thousand versions, and says so when it is full', async () => {
      const full = await site.instance('full', instance.application).initialize();
      // The longest id makes the longest lines.
      await full.sql('SET GLOBAL dke_key_management_create_data_key = 4294967295');
      const more = `SET GLOBAL dke_key_management_rotate_data_keys = '${Array(40).fill('4294967295').join(',')}';`;
      await full.sql(more.repeat(24));
      expect((await full.trySql(more)).complaints).toContain('it can contain 1000 versions of keys');
      await full.sql("SET GLOBAL dke_key_management_rotate_data_keys = '1'");
      expect(await statusOf(full)).toMatchObject({ data_key_versions: '964' });
      await full.stop();
    });

    test('of another database is refused before a page is decrypted', async () => {
      const other = site.instance('other', instance.application);
      const stranger = await other.initialize();
      await stranger.stop();
      for (const path of [instance.keyFile, copy()]) copyFileSync(other.keyFile, path);
      expect(await instance.refused()).toMatch(
        /dke_key_management: (version \d+ of key 1 in the key file .* is not the key that this data directory was encrypted with|the key file .* does not contain version \d+ of key 1)/,
      );
      for (const path of [instance.keyFile, copy()]) rmSync(path);
      expect(await instance.refused('--dke-key-management-initialize')).toContain('Restore the key file from a backup');
      expect(existsSync(instance.keyFile)).toBe(false);
      both(good);
      database = await instance.start();
      expect(await database.sql('CHECK TABLE orders.inno')).toEqual(['orders.inno\tcheck\tstatus\tOK']);
      expect(await other.refused(`--dke-key-management-key-file=${instance.keyFile}`)).toContain(
        'another server uses the key file',
      );
      await database.stop();
    });
  });
});
