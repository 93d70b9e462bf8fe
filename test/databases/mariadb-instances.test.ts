// More than one MariaDB: a replica with an agent of its own, backups that are restored inside and
// outside the group, the way from file_key_management and back; and what happens to a database
// whose master key is soft-deleted, disabled or destroyed. The real servers, agents and service;
// the commands of docs/databases/mariadb.md.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createGroup } from '../support/console-api.ts';
import { freePort } from '../support/daemon.ts';
import { endProcess, until } from '../support/host.ts';
import { type Mariadb, mariadbIsThere, pageBlock, pageOptions, startMariadb } from '../support/mariadb.ts';
import { writeKeyFile } from '../support/mariadb-key-file.ts';
import {
  bindingOf,
  filesBelowWith,
  type Instance,
  type MariadbSite,
  startMariadbSite,
  statusOf,
  untilEmpty,
  untilIdle,
} from '../support/mariadb-site.ts';
import { library } from '../support/pkcs11-host.ts';
import { inLongTier } from '../support/tiers.ts';
import { run } from '../support/tools.ts';

const present = mariadbIsThere();
const canary = 'the-canary-sings-0815';

/** A table with as many rows. */
const fill = (rows: number): string =>
  `CREATE DATABASE orders; CREATE TABLE orders.inno (id INT PRIMARY KEY, text VARCHAR(200)) ENGINE=InnoDB;
   INSERT INTO orders.inno SELECT seq, CONCAT('${canary}', seq) FROM orders.seq_1_to_${rows};`;
/** The lowest and the highest version that pages are encrypted with. */
const versionsOf = (database: Mariadb): Promise<readonly string[]> =>
  database.sql(
    'SELECT MIN(MIN_KEY_VERSION), MAX(CURRENT_KEY_VERSION) FROM information_schema.INNODB_TABLESPACES_ENCRYPTION',
  );
const count = (database: Mariadb): Promise<readonly string[]> =>
  database.sql(`SELECT COUNT(*) FROM orders.inno WHERE text LIKE '${canary}%'`);

describe.runIf(present)('MariaDB, and more than one of it', () => {
  let site: MariadbSite;
  beforeAll(async () => {
    site = await startMariadbSite();
  });
  afterAll(() => site?.end());

  describe.runIf(inLongTier('databases/mariadb-instances: versions of data keys'))('versions of data keys', () => {
    // With innodb_encryption_rotate_key_age above 0, MariaDB's threads wake each other without end
    // once a version is above it.
    test('an idle server asks for no keys: at first, after rotations, after a restart', async () => {
      const instance = site.instance('idle', await site.register('idle'));
      let database = await instance.initialize();
      await database.sql(fill(100));
      await untilEmpty(database, 'what is not encrypted yet');
      await untilIdle(database);
      for (const version of ['3', '5']) {
        await database.sql(pageBlock('sql', 'rotate the data keys'));
        await untilEmpty(database, 'what has old versions still');
        await database.sql(pageBlock('sql', 'let the encryption threads sleep'));
        await untilIdle(database);
        expect(await versionsOf(database)).toEqual([`${version}\t${version}`]);
      }
      await database.stop();
      database = await instance.start();
      expect(await database.sql('SELECT @@innodb_encryption_threads')).toEqual(['4']);
      expect(await count(database)).toEqual(['100']);
      await untilIdle(database);
      // New tables are encrypted without a rotation.
      await database.sql('CREATE TABLE orders.later ENGINE=InnoDB AS SELECT * FROM orders.inno');
      await untilEmpty(database, 'what is not encrypted yet');
      await untilIdle(database);
      await database.stop();
    });

    test('a key file with versions that began at random is rewritten, and its data stay readable', async () => {
      const application = await site.register('former');
      const first = site.instance('former-master', application);
      await (await first.initialize()).stop();
      const [, master = ''] = /^master (.*)$/m.exec(readFileSync(first.keyFile, 'utf8')) ?? [];
      const keys = [
        { id: 1, version: 5_968_189, bytes: randomBytes(32) },
        { id: 2, version: 6_088_033, bytes: randomBytes(32) },
        // Imported from file_key_management, then rotated.
        { id: 3, version: 1, bytes: randomBytes(32) },
        { id: 3, version: 9_999_999, bytes: randomBytes(32) },
      ];
      const instance = site.instance('former', application);
      writeKeyFile(instance, instance.config, master, { format: 2, sequence: 1, keys });
      let database = await instance.start();
      await database.sql(fill(100));
      await untilEmpty(database, 'what is not encrypted yet');
      await database.stop();
      // An earlier version of the plugin wrote key files of format 1, and no binding.
      rmSync(bindingOf(instance));
      writeKeyFile(instance, instance.config, master, { format: 1, sequence: 2, keys });

      // The rotation age was part of the configuration at that time.
      database = await instance.start('--innodb-encryption-rotate-key-age=1');
      expect(database.log()).toContain('the key file was rewritten in the current format');
      expect(await count(database)).toEqual(['100']);
      await database.sql(`INSERT INTO orders.inno VALUES (1000, '${canary}')`);
      await untilIdle(database);
      await database.stop();
      const keysOf = (): readonly string[] =>
        [...readFileSync(instance.keyFile, 'utf8').matchAll(/^(?:key|old) \d+ \d+/gm)].map(([line]) => line);
      expect(keysOf()).toEqual([
        ...['key 1 1', 'old 1 5968189', 'key 2 1', 'old 2 6088033'],
        ...['key 3 1', 'key 3 3', 'old 3 9999999'],
      ]);
      database = await instance.start();
      expect(await count(database)).toEqual(['101']);
      // A rotation leaves nothing under the old versions.
      await database.sql(pageBlock('sql', 'rotate the data keys'));
      await untilEmpty(database, 'what has old versions still');
      await database.sql(pageBlock('sql', 'let the encryption threads sleep'));
      await untilIdle(database);
      expect(await versionsOf(database)).toEqual(['5968191\t5968191']);
      expect(keysOf()).toEqual(expect.arrayContaining(['key 1 5968191', 'key 2 6088035', 'key 3 10000001']));
      await database.stop();
      database = await instance.start();
      expect(await count(database)).toEqual(['101']);
      expect(await database.sql('CHECK TABLE orders.inno')).toEqual(['orders.inno\tcheck\tstatus\tOK']);
      await database.stop();
    });

    test('a version that two copies of a database made apart is not taken for the same key', async () => {
      const application = await site.register('twins');
      const one = site.instance('twin-one', application);
      let database = await one.initialize();
      await database.sql(fill(100));
      await untilEmpty(database, 'what is not encrypted yet');
      await database.stop();
      const two = site.instance('twin-two', application, { empty: false });
      cpSync(join(one.folder, 'data'), join(two.folder, 'data'), { recursive: true });
      for (const end of ['', '.copy']) copyFileSync(`${one.keyFile}${end}`, `${two.keyFile}${end}`);
      for (const twin of [one, two]) {
        database = await twin.start();
        await database.sql(pageBlock('sql', 'rotate the data keys'));
        await untilEmpty(database, 'what has old versions still');
        await database.stop();
      }
      // The second twin gets the first one's file: the same version numbers, but other keys.
      for (const end of ['', '.copy']) copyFileSync(`${one.keyFile}${end}`, `${two.keyFile}${end}`);
      expect(await two.refused()).toMatch(
        /version 3 of key \d in the key file .* is not the key that this data directory was encrypted with/,
      );
    });
  });

  describe('a source in a group', () => {
    let groupId: string;
    let source: Instance;
    let database: Mariadb;
    let port: number;
    const overTcp = (): readonly string[] => ['--skip-networking=0', '--bind-address=127.0.0.1', `--port=${port}`];

    beforeAll(async () => {
      groupId = await createGroup(site.api, 'production');
      port = await freePort();
      source = site.instance('source', await site.register('source', groupId));
      database = await source.initialize('--server-id=1', ...overTcp());
      await database.sql(fill(100));
    });
    afterAll(() => database.stop());

    test('is followed by a replica with its own agent, its own keys and the same data', async () => {
      const standby = site.instance('standby', await site.register('standby', groupId), { ownAgent: true });
      const replica = await standby.initialize('--server-id=2', '--relay-log=relay');
      await database.sql(`CREATE USER replica@127.0.0.1; GRANT REPLICATION SLAVE ON *.* TO replica@127.0.0.1`);
      const source1 = `MASTER_HOST='127.0.0.1', MASTER_PORT=${port}, MASTER_USER='replica', MASTER_USE_GTID=slave_pos`;
      await replica.sql(`CHANGE MASTER TO ${source1}; START SLAVE;`);
      await database.sql(
        `INSERT INTO orders.inno VALUES (101, '${canary}'); ${pageBlock('sql', 'rotate the data keys')}`,
      );
      await database.sql(`INSERT INTO orders.inno VALUES (102, '${canary}')`);
      await until('the replica', async () => {
        const { code, out } = await replica.trySql('SELECT COUNT(*) FROM orders.inno');
        return code === 0 && out === '102\n' ? true : undefined;
      });
      expect(await site.label(replica)).not.toBe(await site.label(database));
      expect(filesBelowWith(standby.folder, canary)).toEqual([]);
      // Each host makes its own requests: the service distinguishes their agents.
      const path = `/api/tde/applications/${standby.application.record.applicationId}/instances`;
      const { items } = await site.api.call<{ items: readonly unknown[] }>('GET', path);
      expect(items.length).toBeGreaterThan(0);
      await replica.stop();
      await database.sql('DELETE FROM orders.inno WHERE id > 100');
    });

    describe('and its backup', () => {
      beforeAll(async () => {
        await source.shell('take a backup');
      });

      test('contains no plaintext, and names the master key only', () => {
        expect(filesBelowWith(join(site.folder, 'backup'), canary)).toEqual([]);
        expect(readFileSync(join(site.folder, 'backup-dke-keys'), 'utf8')).toContain('\nmaster mariadb.');
      });

      test('has the keys that were made while it was taken', async () => {
        const folder = join(site.folder, 'moving');
        const keys = join(site.folder, 'moving-dke-keys');
        const connection = ['--no-defaults', '--backup', '-uroot', `-S${database.socket}`, '--stream=mbstream'];
        const backup = spawn('mariabackup', connection, {
          stdio: ['ignore', 'pipe', 'pipe'],
          env: { ...process.env, ...source.environment },
        });
        const ended = once(backup, 'close');
        let said = '';
        backup.stderr.setEncoding('utf8').on('data', (text: string) => {
          said += text;
        });
        // The backup has loaded its keys and started to copy. It blocks while nothing reads its
        // copy, which is larger than a pipe.
        await until('the first copied bytes', async () => {
          if (backup.exitCode !== null || backup.signalCode !== null) throw new Error(said.slice(-2000));
          return backup.stdout.readableLength > 0 ? true : undefined;
        });
        await database.sql(
          `SET GLOBAL dke_key_management_create_data_key = 5; ${pageBlock('sql', 'rotate the data keys')}
           CREATE TABLE orders.young (id INT PRIMARY KEY) ENCRYPTED=YES ENCRYPTION_KEY_ID=5; INSERT INTO orders.young VALUES (1)`,
        );
        await untilEmpty(database, 'what has old versions still');
        mkdirSync(folder);
        const extract = spawn('mbstream', ['-x', '-C', folder], { stdio: ['pipe', 'inherit', 'inherit'] });
        const extracted = once(extract, 'close');
        backup.stdout.pipe(extract.stdin);
        expect(await ended, said.slice(-2000)).toEqual([0, null]);
        expect(await extracted).toEqual([0, null]);
        copyFileSync(source.keyFile, keys);
        cpSync(folder, join(site.folder, 'moving-raw'), { recursive: true });
        const prepared = await run('mariabackup', ['--prepare', `--target-dir=${folder}`], source);
        expect(prepared.code, prepared.complaints.slice(-2000)).toBe(0);
        const late = site.instance('late', source.application, { empty: false });
        copyFileSync(keys, late.keyFile);
        cpSync(folder, join(late.folder, 'data'), { recursive: true });
        const restored = await late.start('--server-id=4');
        expect(await count(restored)).toEqual(['100']);
        expect(await restored.sql('SELECT * FROM orders.young')).toEqual(['1']);
        await restored.stop();
      });

      test('is not prepared with the key file of another database', async () => {
        const folder = join(site.folder, 'foreign');
        cpSync(join(site.folder, 'moving-raw'), folder, { recursive: true });
        const other = site.instance('other', await site.register('other', groupId));
        await (await other.initialize()).stop();
        const settings = join(folder, 'backup-my.cnf');
        writeFileSync(settings, readFileSync(settings, 'utf8').replaceAll(source.keyFile, other.keyFile));
        const prepared = await run('mariabackup', ['--prepare', `--target-dir=${folder}`], other);
        expect(prepared.complaints).toMatch(
          /version \d+ of key \d+ in the key file .* is not the key that this data directory/,
        );
        expect(prepared.code).not.toBe(0);
      });

      test('is refused to an application outside the group', async () => {
        const stranger = site.instance('stranger', await site.register('stranger'), { empty: false });
        copyFileSync(join(site.folder, 'backup-dke-keys'), stranger.keyFile);
        cpSync(join(site.folder, 'backup'), join(stranger.folder, 'data'), { recursive: true });
        const label = await site.label(database);
        const log = await stranger.refused();
        expect(log).toContain(`dke_key_management: the service has no master key '${label}' for this application`);
        expect(log).toContain('belongs to an application of another group');
      });

      test('is restored on another instance of the group, which then takes a master key of its own', async () => {
        const target = site.instance('target', await site.register('target', groupId), {
          empty: false,
          ownAgent: true,
        });
        await target.shell('restore a backup');
        // The backup tool takes along which keys the data were encrypted with.
        const restoredKeys = readFileSync(bindingOf(target), 'utf8').match(/^key .*$/gm) ?? [];
        expect(restoredKeys.length).toBeGreaterThan(0);
        // The source has created keys since.
        expect(readFileSync(bindingOf(source), 'utf8').split('\n')).toEqual(expect.arrayContaining([...restoredKeys]));
        let restored = await target.start('--server-id=3');
        expect(await count(restored)).toEqual(['100']);
        const shared = await site.label(database);
        expect(await site.label(restored)).toBe(shared);
        await restored.sql(pageBlock('sql', 'rotate the master key'));
        const own = await site.label(restored);
        expect(own).not.toBe(shared);
        expect((await site.api.masterKey(target.application.record.applicationId, own)).state).toBe('active');
        await restored.stop();
        restored = await target.start('--server-id=3');
        expect(await count(restored)).toEqual(['100']);
        await restored.stop();
      });
    });
  });

  describe('the master key of a database', () => {
    let instance: Instance;
    let database: Mariadb;
    let keyPath: string;
    beforeAll(async () => {
      instance = site.instance('life', await site.register('life'));
      database = await instance.initialize();
      await database.sql(fill(50));
      const { id } = await site.api.masterKey(instance.application.record.applicationId, await site.label(database));
      keyPath = `/api/keys/${id}`;
    });

    test('that is soft-deleted keeps working: restart, and a change of keys', async () => {
      await site.api.call('DELETE', keyPath);
      await database.stop();
      database = await instance.start();
      expect(await count(database)).toEqual(['50']);
      await database.sql(pageBlock('sql', 'rotate the data keys'));
      await database.stop();
      database = await instance.start();
      expect(await count(database)).toEqual(['50']);
    });

    test('that is disabled refuses the start and says so; enabled, it starts', async () => {
      await database.sql(pageBlock('sql', 'rotate the master key'));
      const { id } = await site.api.masterKey(instance.application.record.applicationId, await site.label(database));
      keyPath = `/api/keys/${id}`;
      await database.stop();
      await site.api.call('POST', `${keyPath}/disable`);
      expect(await instance.refused()).toContain('CKR_KEY_FUNCTION_NOT_PERMITTED: the key of handle');
      await site.api.call('POST', `${keyPath}/enable`);
      database = await instance.start();
      expect(await count(database)).toEqual(['50']);
    });

    test('without the service there is no start, and the reason is in the log', async () => {
      await database.stop();
      await site.stopServer('SIGKILL');
      try {
        expect(await instance.refused()).toMatch(
          /dke_key_management: .*CKR_DEVICE_ERROR: https:.* cannot be reached \(ECONNREFUSED\); check that the service is running/,
        );
      } finally {
        await site.startServer();
      }
      database = await instance.start();
      expect(await count(database)).toEqual(['50']);
    });

    test('without the agent there is no start, and the reason is in the log', async () => {
      await database.stop();
      // The library installed without the files next to it.
      const alone = join(instance.folder, 'libdke_pkcs11.so');
      copyFileSync(library, alone);
      for (const pid of site.agents()) await endProcess(pid);
      const log = await instance.refused(`--dke-key-management-pkcs11-library=${alone}`);
      expect(log).toMatch(/dke_key_management: .*CKR_DEVICE_REMOVED: no agent listens at/);
      expect(await instance.refused('--dke-key-management-pkcs11-library=/nowhere.so')).toContain(
        'dke_key_management: the PKCS#11 library cannot be loaded: /nowhere.so',
      );
      database = await instance.start();
    });

    test('that is destroyed is no longer used: the server continues until its next start, which is refused', async () => {
      const label = await site.label(database);
      await site.destroyMasterKey(instance.application, label);
      expect(await count(database)).toEqual(['50']);
      const rotation = await database.trySql(pageBlock('sql', 'rotate the data keys'));
      expect(rotation.complaints).toMatch(/dke_key_management: .*destroyed/);
      await database.stop();
      expect(await instance.refused()).toContain(
        `the service has no master key '${label}' for this application: it was destroyed`,
      );
    });
  });

  describe('the way from file_key_management', () => {
    let instance: Instance;
    let database: Mariadb;
    const theirs = (): readonly string[] => [
      '--plugin-load-add=file_key_management',
      `--file-key-management-filename=${join(instance.folder, 'keys.enc')}`,
      `--file-key-management-filekey=FILE:${join(instance.folder, 'keys.pass')}`,
      ...pageOptions('60-dke.cnf').filter((option) => !/dke/.test(option)),
      '--log-bin=binlog',
    ];

    beforeAll(async () => {
      instance = site.instance('mover', await site.register('mover'));
      const { folder } = instance;
      writeFileSync(join(folder, 'keys.pass'), randomBytes(64).toString('hex'));
      const keys = [1, 2, 100].map((id) => `${id};${randomBytes(32).toString('hex')}\n`).join('');
      const encrypt = [
        'enc',
        '-aes-256-cbc',
        '-md',
        'sha1',
        '-pass',
        `file:${folder}/keys.pass`,
        '-out',
        `${folder}/keys.enc`,
      ];
      expect((await run('openssl', encrypt, { input: keys })).code).toBe(0);
      database = await startMariadb(folder, theirs());
      await database.sql(
        `${fill(70)} CREATE TABLE orders.own (id INT) ENCRYPTED=YES ENCRYPTION_KEY_ID=100; INSERT INTO orders.own VALUES (1);`,
      );
      await untilEmpty(database, 'what is not encrypted yet');
      await database.kill();
    });

    test('its keys are taken over through a pipe, and everything they have encrypted is readable, the redo log after a crash too', async () => {
      const pipe = join(instance.folder, 'import');
      const giving = instance.shell('give the unencrypted keys of file_key_management', [
        ['/run/dke-import', pipe],
        ['/etc/mysql', instance.folder],
      ]);
      database = await instance.initialize(`--dke-key-management-import-file=${pipe}`);
      await giving;
      expect(await count(database)).toEqual(['70']);
      expect(await database.sql('SELECT * FROM orders.own')).toEqual(['1']);
      expect(await statusOf(database)).toMatchObject({ data_keys: '3', data_key_versions: '3' });
      expect((await database.sql('SHOW BINARY LOGS')).length).toBeGreaterThan(1);
      await database.sql("SHOW BINLOG EVENTS IN 'binlog.000001'");
    });

    test('then new versions take their place', async () => {
      await database.sql(pageBlock('sql', 'rotate the data keys'));
      await untilEmpty(database, 'what has old versions still');
      const oldest = 'SELECT MIN(MIN_KEY_VERSION) > 1 FROM information_schema.INNODB_TABLESPACES_ENCRYPTION';
      expect(await database.sql(oldest)).toEqual(['1']);
      await database.stop();
      rmSync(join(instance.folder, 'import'));
      database = await instance.start();
      expect(await count(database)).toEqual(['70']);
    });

    test('and back: decrypted, then encrypted again', async () => {
      await database.sql(pageBlock('sql', 'decrypt the tables'));
      await database.sql(
        pageBlock('sql', 'decrypt a table that asks for encryption').replace('secrets.cards', 'orders.own'),
      );
      await untilEmpty(database, 'what is encrypted still');
      await database.stop();
      database = await instance.start(...pageOptions('decrypting.cnf'));
      await database.sql(pageBlock('sql', 'drop the encrypted binary logs'));
      await database.stop();
      database = await startMariadb(instance.folder, theirs());
      expect(await count(database)).toEqual(['70']);
      await untilEmpty(database, 'what is not encrypted yet');
      expect(await database.sql('CHECK TABLE orders.inno, orders.own')).toEqual(
        ['inno', 'own'].map((table) => `orders.${table}\tcheck\tstatus\tOK`),
      );
      expect(database.log().split('Starting MariaDB').at(-1)).not.toContain('dke_key_management');
      await database.stop();
    });
  });
});
