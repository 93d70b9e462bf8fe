// What databases do with their keystore, as scenarios that run on any token and for every release:
// each asserts what a person at the database sees, and leaves a trace of every process behind. What
// only our service can show is in operations.test.ts.
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { copyDatabase } from './copy-database.ts';
import { Instance } from './instance.ts';
import { OraError } from './ora-error.ts';
import type { DatabaseHost } from './process-table.ts';
import { newestRelease, type Profile } from './profile.ts';
import type { Row } from './views.ts';
import { canary, type HostGroup, pin, type World } from './world.ts';

export const walletPassword = 'wallet-password-canary-77ab';

/** The statements of a release for what every release can do. */
export const words = (profile: Profile, cdb = profile.containers.value) => {
  const old = profile.statements.value === 'alter-system';
  const all = cdb ? ' CONTAINER = ALL' : '';
  return old
    ? {
        open: (password = pin) => `ALTER SYSTEM SET ENCRYPTION WALLET OPEN IDENTIFIED BY "${password}"`,
        close: 'ALTER SYSTEM SET ENCRYPTION WALLET CLOSE',
        setKey: (password = pin) => `ALTER SYSTEM SET ENCRYPTION KEY IDENTIFIED BY "${password}"`,
        migrate: `ALTER SYSTEM SET ENCRYPTION KEY IDENTIFIED BY "${pin}" MIGRATE USING "${walletPassword}"`,
        reverse: `ALTER SYSTEM SET ENCRYPTION KEY IDENTIFIED BY "${walletPassword}" REVERSE MIGRATE USING "${pin}"`,
      }
    : {
        open: (password = pin) => `ADMINISTER KEY MANAGEMENT SET KEYSTORE OPEN IDENTIFIED BY "${password}"${all}`,
        close: `ADMINISTER KEY MANAGEMENT SET KEYSTORE CLOSE IDENTIFIED BY "${pin}"${all}`,
        setKey: (password = pin) => `ADMINISTER KEY MANAGEMENT SET KEY IDENTIFIED BY "${password}" WITH BACKUP${all}`,
        migrate: `ADMINISTER KEY MANAGEMENT SET ENCRYPTION KEY IDENTIFIED BY "${pin}" MIGRATE USING "${walletPassword}" WITH BACKUP USING 'before_migration'`,
        reverse: `ADMINISTER KEY MANAGEMENT SET ENCRYPTION KEY IDENTIFIED BY "${walletPassword}" REVERSE MIGRATE USING "${pin}" WITH BACKUP USING 'before_reverse'`,
      };
};

export interface Stage {
  readonly world: World;
  readonly profile: Profile;
  readonly release: string;
  readonly groupName: string;
  readonly group: HostGroup;
  readonly host: DatabaseHost;
  /** Another group. */
  other(): Promise<HostGroup>;
  /** A database of this stage, on its host unless another is given; not started. */
  database(name: string, options?: { readonly host?: DatabaseHost; readonly cdb?: boolean }): Instance;
  folder(name: string): string;
  /** The folders of traces of every host of this stage. */
  traces(): readonly string[];
  end(): Promise<void>;
}

let stages = 0;

export const setStage = async (world: World, profile: Profile, release = newestRelease(profile)): Promise<Stage> => {
  stages += 1;
  const groupName = `group-${stages}`;
  const traces = new Set<string>();
  const watched = (group: HostGroup): HostGroup => ({
    ...group,
    host: async (name, like) => {
      const host = await group.host(name, like);
      traces.add(host.traces);
      return host;
    },
  });
  const group = watched(await world.group(groupName));
  const host = await group.host(`host-${stages}`);
  const place = join(world.folder, 'databases', String(stages));
  const databases: Instance[] = [];
  return {
    world,
    profile,
    release,
    groupName,
    group,
    host,
    folder: (name) => join(place, name),
    other: async () => watched(await world.group(`${groupName}-other`)),
    traces: () => [...traces],
    database: (name, { host: other = host, cdb } = {}) => {
      const directory = join(place, name);
      mkdirSync(directory, { recursive: true });
      const made = new Instance({
        name,
        directory,
        profile,
        release,
        host: other,
        ...(cdb === undefined ? {} : { cdb }),
      });
      databases.push(made);
      return made;
    },
    end: async () => {
      for (const each of databases) if (each.state !== 'down') await each.die();
    },
  };
};

// ---- what every scenario does -------------------------------------------------------------------

/** Sets the keystores of an instance in the way of its release; restarts it if necessary. */
export const configure = async (
  database: Instance,
  keystores: 'HSM' | 'HSM|FILE' | 'FILE' | 'FILE|HSM',
): Promise<void> => {
  const way = database.profile.releases[database.release]?.wallet.value;
  if (way === 'TDE_CONFIGURATION') {
    if (database.state === 'down') await database.execute('STARTUP');
    if (database.control.parameters.WALLET_ROOT === undefined) {
      await database.execute(`ALTER SYSTEM SET WALLET_ROOT = '/opt/oracle/admin/wallet' SCOPE = SPFILE`);
      await database.execute('SHUTDOWN IMMEDIATE');
      await database.execute('STARTUP');
    }
    await database.execute(`ALTER SYSTEM SET TDE_CONFIGURATION = 'KEYSTORE_CONFIGURATION=${keystores}' SCOPE = BOTH`);
    return;
  }
  const directory = '(METHOD_DATA=(DIRECTORY=/opt/oracle/admin/wallet))';
  const method = keystores.startsWith('FILE') ? 'FILE' : 'HSM';
  database.writeSqlnet(`(SOURCE=(METHOD=${method})${keystores === 'HSM' ? '' : directory})`);
  if (database.state !== 'down') await database.execute('SHUTDOWN IMMEDIATE');
  await database.execute('STARTUP');
};

export const refused = async (work: Promise<unknown>, code: string): Promise<OraError> => {
  const outcome = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(outcome).toBeInstanceOf(OraError);
  expect((outcome as OraError).code).toBe(code);
  return outcome as OraError;
};

export const wallet = async (database: Instance): Promise<readonly Row[]> =>
  await database.execute('SELECT WRL_TYPE, STATUS, WALLET_TYPE, WALLET_ORDER FROM V$ENCRYPTION_WALLET');
export const statusOf = async (database: Instance): Promise<readonly unknown[]> =>
  (await wallet(database)).map(({ STATUS }) => STATUS);
export const rowsOf = async (database: Pick<Instance, 'execute'>, table: string): Promise<readonly unknown[]> =>
  (await database.execute(`SELECT C FROM ${table}`)).map(({ C }) => C);
const keysOf = async (database: Instance): Promise<readonly Row[]> =>
  await database.execute('SELECT KEY_ID, CREATION_TIME, ACTIVATION_TIME FROM V$ENCRYPTION_KEYS');

export const createPayments = async (database: Pick<Instance, 'execute'>, file = 'secure01.dbf'): Promise<void> => {
  await database.execute(
    `CREATE TABLESPACE secure DATAFILE '${file}' SIZE 150M ENCRYPTION USING 'AES256' DEFAULT STORAGE(ENCRYPT)`,
  );
  await database.execute('CREATE TABLE payments (c VARCHAR2(100)) TABLESPACE secure');
};
export const insertRow = async (database: Pick<Instance, 'execute'>, which: string | number): Promise<void> => {
  await database.execute(`INSERT INTO payments VALUES ('${canary} ${which}')`);
};
const row = (which: string | number): string => `${canary} ${which}`;

/** A database on the token with a table of one row. */
export const encrypted = async (stage: Stage, name = 'ERP', options: Parameters<Stage['database']>[1] = {}) => {
  const database = stage.database(name, options);
  const sql = words(stage.profile);
  await configure(database, 'HSM');
  await database.execute(sql.open());
  await database.execute(sql.setKey());
  await createPayments(database);
  await insertRow(database, 1);
  return database;
};

const restart = async (database: Instance): Promise<void> => {
  await database.execute('SHUTDOWN IMMEDIATE');
  await database.execute('STARTUP');
  await database.execute(words(database.profile).open());
};

// ---- the scenarios ------------------------------------------------------------------------------

/** From nothing to encrypted data, closed and opened again. */
const firstKey = async (stage: Stage): Promise<void> => {
  const sql = words(stage.profile);
  const database = stage.database('ERP');
  await configure(database, 'HSM');
  expect(await wallet(database)).toMatchObject([
    { WRL_TYPE: 'HSM', STATUS: 'CLOSED', WALLET_TYPE: 'UNKNOWN', WALLET_ORDER: 'SINGLE' },
  ]);
  await database.execute(sql.open());
  expect(await statusOf(database)).toEqual(['OPEN_NO_MASTER_KEY']);
  await refused(createPayments(database), 'ORA-28361');
  await database.execute(sql.setKey());
  expect(await wallet(database)).toMatchObject([{ WRL_TYPE: 'HSM', STATUS: 'OPEN', WALLET_TYPE: 'HSM' }]);
  await refused(database.execute(sql.open()), 'ORA-28354');
  await createPayments(database, 'secure02.dbf');
  await insertRow(database, 1);
  // A column that is encrypted in a tablespace that is not.
  await database.execute(`CREATE TABLESPACE plain DATAFILE 'plain01.dbf' SIZE 10M`);
  await database.execute(`CREATE TABLE cards (c VARCHAR2(100) ENCRYPT) TABLESPACE plain`);
  await database.execute(`INSERT INTO cards VALUES ('${row('card')}')`);
  await database.execute('ALTER SYSTEM SWITCH LOGFILE');
  await insertRow(database, 2);
  expect(await rowsOf(database, 'payments')).toEqual([row(1), row(2)]);
  await database.execute(sql.close);
  expect(await statusOf(database)).toEqual(['CLOSED']);
  await refused(rowsOf(database, 'payments'), 'ORA-28365');
  await refused(rowsOf(database, 'cards'), 'ORA-28365');
  await database.execute(sql.open());
  expect(await rowsOf(database, 'cards')).toEqual([row('card')]);
  await restart(database);
  expect(await rowsOf(database, 'payments')).toEqual([row(1), row(2)]);
  // A store of passwords is the only way in which EXTERNAL STORE means something.
  await database.execute(sql.close);
  await refused(database.execute(sql.open().replace(/"[^"]*"/, 'EXTERNAL STORE')), 'ORA-00988');
  await database.execute('SHUTDOWN IMMEDIATE');
};

/**
 * SET KEY again: old data, read-only data and the heartbeat of a process that has not been
 * restarted.
 */
const rotation = async (stage: Stage): Promise<void> => {
  const sql = words(stage.profile);
  const database = await encrypted(stage);
  const first = database.keyOf();
  await database.execute(
    `CREATE TABLESPACE history DATAFILE 'history01.dbf' SIZE 10M ENCRYPTION DEFAULT STORAGE(ENCRYPT)`,
  );
  await database.execute('CREATE TABLE archive (c VARCHAR2(100)) TABLESPACE history');
  await database.execute(`INSERT INTO archive VALUES ('${row('old')}')`);
  await database.execute('ALTER TABLESPACE history READ ONLY');
  await database.advance(3);
  await database.execute(sql.setKey());
  await insertRow(database, 2);
  await database.execute(sql.setKey());
  const third = database.keyOf();
  if (stage.profile.statements.value === 'administer') {
    const [newest, ...older] = await keysOf(database);
    expect(newest?.KEY_ID).toBe(third);
    expect(older).toHaveLength(2);
    for (const key of [newest, ...older]) expect(key?.ACTIVATION_TIME).toEqual(expect.any(String));
  } else await refused(keysOf(database), 'ORA-00942');
  // The header of a read-only tablespace names the first key, which still exists.
  expect(await database.headerOf('PAYMENTS')).toBe(third);
  expect(await database.headerOf('ARCHIVE')).not.toBe(third);
  // gen0 continues with the key that it began with, until a restart.
  await database.advance(6);
  expect(await statusOf(database)).toEqual(['OPEN']);
  await restart(database);
  await database.advance(3);
  expect(await rowsOf(database, 'payments')).toEqual([row(1), row(2)]);
  expect(await rowsOf(database, 'archive')).toEqual([row('old')]);
  expect(first).not.toBe(third);
  await database.execute('SHUTDOWN IMMEDIATE');
};

/**
 * Rows whose blocks were only in memory are restored from the redo, over a log switch and a
 * rotation.
 */
const crashRecovery = async (stage: Stage): Promise<void> => {
  const sql = words(stage.profile);
  const database = await encrypted(stage);
  await database.insert('PAYMENTS', row('lazy 1'), { lazy: true });
  await database.execute('ALTER SYSTEM SWITCH LOGFILE');
  await database.insert('PAYMENTS', row('lazy 2'), { lazy: true });
  await database.execute(sql.setKey());
  await database.insert('PAYMENTS', row('lazy 3'), { lazy: true });
  expect(await rowsOf(database, 'payments')).toEqual([row(1)]);
  await database.execute('SHUTDOWN ABORT');
  await database.execute('STARTUP MOUNT');
  await refused(database.execute('ALTER DATABASE OPEN'), 'ORA-28365');
  await database.execute(sql.open());
  await database.execute('ALTER DATABASE OPEN');
  expect(await rowsOf(database, 'payments')).toEqual([1, 'lazy 1', 'lazy 2', 'lazy 3'].map(row));
  expect(database.alertLog()).toContain('Completed crash recovery: 3 changes');

  // Dies when a new master key exists and wraps nothing yet: the previous one stays in use, and the
  // next attempt creates another.
  const before = database.keyOf();
  database.beforeStep = async (step) => {
    if (step === 'rewrap') await database.die();
  };
  await refused(database.execute(sql.setKey()), 'ORA-03113');
  database.beforeStep = async () => undefined;
  await database.execute('STARTUP MOUNT');
  await database.execute(sql.open());
  await database.execute('ALTER DATABASE OPEN');
  expect(database.keyOf()).toBe(before);
  expect(database.control.keys.filter(({ activatedAt }) => activatedAt === null)).toHaveLength(1);
  expect(await rowsOf(database, 'payments')).toHaveLength(4);
  await database.execute(sql.setKey());
  expect(await database.headerOf('PAYMENTS')).not.toBe(before);
  expect(await rowsOf(database, 'payments')).toHaveLength(4);
  await database.execute('SHUTDOWN IMMEDIATE');
};

/** A tablespace unencrypted is encrypted while it is in use, and given a new key. */
const onlineEncryption = async (stage: Stage): Promise<void> => {
  const sql = words(stage.profile);
  const database = stage.database('ERP');
  await configure(database, 'HSM');
  await database.execute(sql.open());
  await database.execute(sql.setKey());
  await database.execute(`CREATE TABLESPACE plain DATAFILE 'plain01.dbf' SIZE 10M`);
  await database.execute('CREATE TABLE notes (c VARCHAR2(100)) TABLESPACE plain');
  await database.execute(`INSERT INTO notes VALUES ('an unencrypted note')`);
  const online = database.execute(`ALTER TABLESPACE plain ENCRYPTION ONLINE USING 'AES256' ENCRYPT`);
  if (stage.profile.releases[stage.release]?.onlineEncryption.value !== true) await refused(online, 'ORA-00922');
  else {
    await online;
    expect(await rowsOf(database, 'notes')).toEqual(['an unencrypted note']);
    expect(await database.headerOf('NOTES')).toBe(database.keyOf());
    await database.execute(`ALTER TABLESPACE plain ENCRYPTION ONLINE USING 'AES256' REKEY`);
    expect(await rowsOf(database, 'notes')).toEqual(['an unencrypted note']);
  }
  await database.execute('SHUTDOWN IMMEDIATE');
};

/**
 * Containers with a key each, rotated together and alone; the instance dies between two of them.
 */
const containers = async (stage: Stage): Promise<void> => {
  const sql = words(stage.profile);
  const database = stage.database('CDB', { cdb: true });
  await configure(database, 'HSM');
  for (const name of ['SALES', 'STOCK']) {
    await database.execute(`CREATE PLUGGABLE DATABASE ${name}`);
    await database.execute(`ALTER PLUGGABLE DATABASE ${name} OPEN`);
  }
  await database.execute(sql.open());
  expect(await statusOf(database)).toEqual(Array(3).fill('OPEN_NO_MASTER_KEY'));
  await database.execute(sql.setKey());
  const pdbs = database.control.containers.slice(1).map(({ id, name }) => ({ id, name }));
  for (const { name } of pdbs) {
    await database.execute(`ALTER SESSION SET CONTAINER = ${name}`);
    await createPayments(database, `${name.toLowerCase()}01.dbf`);
    await insertRow(database, name);
    await refused(database.execute(sql.setKey()), 'ORA-65040');
  }
  await database.execute('ALTER SESSION SET CONTAINER = CDB$ROOT');
  const before = database.control.containers.map(({ id }) => database.keyOf(id));
  expect(new Set(before).size).toBe(3);

  // Dies before the last of three containers has its key.
  let made = 0;
  database.beforeStep = async (step) => {
    if (step === 'generate') made += 1;
    if (made === 3) await database.die();
  };
  await refused(database.execute(sql.setKey()), 'ORA-03113');
  database.beforeStep = async () => undefined;
  await database.execute('STARTUP MOUNT');
  await database.execute(sql.open());
  await database.execute('ALTER DATABASE OPEN');
  const half = database.control.containers.map(({ id }) => database.keyOf(id));
  expect(half.map((id, at) => id === before[at])).toEqual([false, false, true]);
  for (const { name } of pdbs) {
    await database.execute(`ALTER SESSION SET CONTAINER = ${name}`);
    expect(await rowsOf(database, 'payments')).toEqual([row(name)]);
  }
  // A container alone, which is how some releases want it.
  await database.execute(`ADMINISTER KEY MANAGEMENT SET KEY FORCE KEYSTORE IDENTIFIED BY "${pin}" WITH BACKUP`);
  expect(await rowsOf(database, 'payments')).toEqual([row('STOCK')]);
  await database.execute('ALTER SESSION SET CONTAINER = CDB$ROOT');
  await database.execute(sql.setKey());
  expect(await statusOf(database)).toEqual(['OPEN', 'OPEN', 'OPEN']);
  await database.execute('SHUTDOWN IMMEDIATE');
};

/** A local wallet moves to the token with its data, and back where the release can. */
const migration = async (stage: Stage): Promise<void> => {
  const { profile } = stage;
  const sql = words(profile);
  const old = profile.statements.value === 'alter-system';
  const database = stage.database('ERP');
  await configure(database, 'FILE');
  expect(await statusOf(database)).toEqual(['NOT_AVAILABLE']);
  if (!old) {
    await database.execute(
      `ADMINISTER KEY MANAGEMENT CREATE KEYSTORE '${database.walletDirectory}' IDENTIFIED BY "first"`,
    );
    await database.execute(sql.open('first'));
    await refused(database.execute('ADMINISTER KEY MANAGEMENT SET KEY IDENTIFIED BY "first"'), 'ORA-46631');
  }
  await database.execute(sql.setKey('first'));
  await createPayments(database);
  await insertRow(database, 'under the wallet');
  expect(await wallet(database)).toMatchObject([{ WRL_TYPE: 'FILE', STATUS: 'OPEN', WALLET_TYPE: 'PASSWORD' }]);
  // The wallet's password is changed before, as the procedure has it.
  if (old) await database.orapki({ password: 'first', next: walletPassword });
  else
    await database.execute(
      `ADMINISTER KEY MANAGEMENT ALTER KEYSTORE PASSWORD IDENTIFIED BY "first" SET "${walletPassword}" WITH BACKUP`,
    );
  await database.execute(sql.close);
  await refused(database.execute(sql.open('wrong')), 'ORA-28353');

  await configure(database, 'HSM|FILE');
  await database.execute(sql.open());
  await refused(database.execute(sql.migrate.replace(walletPassword, 'not the wallet’s')), 'ORA-28353');
  await database.execute(sql.migrate);
  expect(await wallet(database)).toMatchObject([
    { WRL_TYPE: 'HSM', STATUS: 'OPEN', WALLET_ORDER: 'PRIMARY' },
    { WRL_TYPE: 'FILE', STATUS: 'OPEN', WALLET_ORDER: 'SECONDARY' },
  ]);
  await insertRow(database, 'under the token');
  const rows = [row('under the wallet'), row('under the token')];
  await database.execute('SHUTDOWN IMMEDIATE');
  await database.execute('STARTUP');
  await database.execute(sql.open());
  expect(await rowsOf(database, 'payments')).toEqual(rows);

  if (!profile.reverseMigration.value) {
    await refused(database.execute(sql.reverse), 'ORA-02065');
    await database.execute('SHUTDOWN IMMEDIATE');
    return;
  }
  await configure(database, 'FILE');
  if (database.profile.releases[database.release]?.reverse.value === 'FILE|HSM') {
    await refused(database.execute(sql.reverse), 'ORA-28414');
    await configure(database, 'FILE|HSM');
  }
  await database.execute(sql.reverse);
  await configure(database, 'FILE');
  if ((await statusOf(database))[0] === 'CLOSED') await database.execute(sql.open(walletPassword));
  expect(await wallet(database)).toMatchObject([{ WRL_TYPE: 'FILE', STATUS: 'OPEN', WALLET_ORDER: 'SINGLE' }]);
  await database.execute('SHUTDOWN IMMEDIATE');
  await database.execute('STARTUP');
  await database.execute(sql.open(walletPassword));
  expect(await rowsOf(database, 'payments')).toEqual(rows);
  await database.execute('SHUTDOWN IMMEDIATE');
};

/**
 * The PIN in a wallet that opens on its own; 11g has orapki for it, and stores no secret there. The
 * secret is added while FILE is configured and open: with HSM first, the token takes it and nothing
 * fails.
 */
export const automaticLogin = async (database: Instance, password = walletPassword): Promise<void> => {
  const administer = 'ADMINISTER KEY MANAGEMENT';
  const sql = words(database.profile, database.control.cdb);
  await database.execute(sql.close);
  await configure(database, 'FILE');
  const place = database.walletDirectory;
  await database.execute(`${administer} CREATE KEYSTORE '${place}' IDENTIFIED BY "${password}"`);
  await database.execute(sql.open(password));
  await database.execute(
    `${administer} ADD SECRET '${pin}' FOR CLIENT 'HSM_PASSWORD' IDENTIFIED BY "${password}" WITH BACKUP`,
  );
  await database.execute(
    `${administer} CREATE AUTO_LOGIN KEYSTORE FROM KEYSTORE '${place}' IDENTIFIED BY "${password}"`,
  );
  await configure(database, 'HSM|FILE');
  await database.execute('SHUTDOWN IMMEDIATE');
  await database.execute('STARTUP');
};

/** Data Guard: mrp0 reads redo of the primary over a rotation, and the standby takes over. */
const standby = async (stage: Stage): Promise<void> => {
  const sql = words(stage.profile);
  const automatic = stage.profile.statements.value === 'administer';
  const primary = await encrypted(stage, 'PRIM');
  if (automatic) await automaticLogin(primary);
  const host = await stage.group.host(`${stage.groupName}-standby`, stage.host);
  const second = primary.makeStandby(host, 'STBY', stage.folder('STBY'));
  // The wallet's files are copied; without automatic login the keystore is opened by hand.
  if (automatic) primary.copyTo(stage.folder('STBY'), ['wallet']);
  try {
    await configure(second, automatic ? 'HSM|FILE' : 'HSM');
    if (automatic) {
      await second.execute('SHUTDOWN IMMEDIATE');
      await second.execute('STARTUP MOUNT');
      expect((await wallet(second))[0]).toMatchObject({ WRL_TYPE: 'HSM', STATUS: 'OPEN', WALLET_TYPE: 'AUTO_LOGIN' });
    } else await second.execute(sql.open());
    await insertRow(primary, 2);
    await primary.execute(sql.setKey());
    await insertRow(primary, 3);
    await primary.execute('ALTER SYSTEM SWITCH LOGFILE');
    await insertRow(primary, 4);
    expect(await second.applyFrom(primary)).toBeGreaterThanOrEqual(4);
    await refused(
      second.execute(`INSERT INTO payments VALUES ('no')`),
      second.state === 'open' ? 'ORA-16000' : 'ORA-01109',
    );
    await primary.die();
    await second.activate();
    expect(await rowsOf(second, 'payments')).toEqual([1, 2, 3, 4].map(row));
    await insertRow(second, 5);
    expect(await second.headerOf('PAYMENTS')).toBe(primary.keyOf());
    await second.execute('SHUTDOWN IMMEDIATE');
  } finally {
    if (second.state !== 'down') await second.die();
  }
};

/**
 * A backup restored on another host of the group, recovered and opened; outside the group it does
 * not open.
 */
const restore = async (stage: Stage): Promise<void> => {
  const sql = words(stage.profile);
  const source = await encrypted(stage, 'SRC');
  await source.execute(sql.setKey());
  await source.insert('PAYMENTS', row('after the backup’s checkpoint'), { lazy: true });
  source.copyTo(stage.folder('backup'));
  // The backup continues naming the key of its day.
  await source.execute(sql.setKey());
  await source.execute('SHUTDOWN IMMEDIATE');

  const target = async (name: string, group: HostGroup): Promise<Instance> => {
    copyDatabase(stage.folder('backup'), stage.folder(name));
    return stage.database(name, { host: await group.host(`${stage.groupName}-${name}`) });
  };
  const inside = await target('TGT', stage.group);
  if (inside.profile.releases[inside.release]?.wallet.value === 'ENCRYPTION_WALLET_LOCATION')
    inside.writeSqlnet('(SOURCE=(METHOD=HSM))');
  await inside.execute('STARTUP MOUNT');
  await inside.execute(sql.open());
  await inside.execute('ALTER DATABASE OPEN');
  expect(await rowsOf(inside, 'payments')).toEqual([row(1), row('after the backup’s checkpoint')]);
  expect(await statusOf(inside)).toEqual(['OPEN']);
  await inside.execute('SHUTDOWN IMMEDIATE');

  const outside = await target('OUT', await stage.other());
  await outside.execute('STARTUP MOUNT');
  await refused(outside.execute(sql.open()), 'ORA-28353');
  await outside.die();
};

/**
 * A pluggable database cloned, unplugged and plugged in elsewhere: inside the group it opens,
 * outside it does not.
 */
const clone = async (stage: Stage): Promise<void> => {
  const sql = words(stage.profile);
  const cdb = async (name: string, host: DatabaseHost): Promise<Instance> => {
    const database = stage.database(name, { host, cdb: true });
    await configure(database, 'HSM');
    await database.execute(sql.open());
    return database;
  };
  const openHere = `ADMINISTER KEY MANAGEMENT SET KEYSTORE OPEN IDENTIFIED BY "${pin}"`;
  const source = await cdb('SRC', stage.host);
  await source.execute(sql.setKey());
  await source.execute('CREATE PLUGGABLE DATABASE sales');
  await source.execute('ALTER PLUGGABLE DATABASE sales OPEN');
  await source.execute('ALTER SESSION SET CONTAINER = sales');
  await source.execute(openHere);
  await source.execute(`ADMINISTER KEY MANAGEMENT SET KEY IDENTIFIED BY "${pin}"`);
  await createPayments(source, 'sales/secure01.dbf');
  await insertRow(source, 'of the source');
  await source.execute('ALTER SESSION SET CONTAINER = CDB$ROOT');
  const cloning = `CREATE PLUGGABLE DATABASE twin FROM sales FILE_NAME_CONVERT = ('sales/', 'twin/')`;
  await refused(source.execute(cloning), 'ORA-46697');
  await source.execute(`${cloning} KEYSTORE IDENTIFIED BY "${pin}"`);
  await source.execute('ALTER PLUGGABLE DATABASE twin OPEN');
  await source.execute('ALTER SESSION SET CONTAINER = twin');
  await source.execute(openHere);
  expect(await statusOf(source)).toEqual(['OPEN']);
  expect(await rowsOf(source, 'payments')).toEqual([row('of the source')]);
  await source.execute('ALTER SESSION SET CONTAINER = CDB$ROOT');
  await source.execute('ALTER PLUGGABLE DATABASE twin CLOSE IMMEDIATE');
  await source.execute(`ALTER PLUGGABLE DATABASE twin UNPLUG INTO 'twin.pdb'`);

  const plug = async (name: string, group: HostGroup): Promise<Instance> => {
    const target = await cdb(name, await group.host(`${stage.groupName}-${name}`));
    copyFileSync(join(stage.folder('SRC'), 'twin.pdb'), join(stage.folder(name), 'twin.pdb'));
    const plugging = `CREATE PLUGGABLE DATABASE twin USING 'twin.pdb' COPY FILE_NAME_CONVERT = ('twin/', 'plugged/') KEYSTORE IDENTIFIED BY "${pin}"`;
    // The root of the target has a master key of its own before.
    await refused(target.execute(plugging), 'ORA-28361');
    await target.execute(sql.setKey());
    await target.execute(plugging);
    await target.execute('ALTER PLUGGABLE DATABASE twin OPEN');
    await target.execute('ALTER SESSION SET CONTAINER = twin');
    return target;
  };
  const inside = await plug('TGT', stage.group);
  await inside.execute(openHere);
  expect(await rowsOf(inside, 'payments')).toEqual([row('of the source')]);
  const { id = 0 } = inside.control.containers.find(({ name }) => name === 'TWIN') ?? {};
  expect(await inside.headerOf('PAYMENTS', id)).toBe(source.keyOf(3));
  // From then on it uses its own key.
  await inside.execute(`ADMINISTER KEY MANAGEMENT SET KEY IDENTIFIED BY "${pin}"`);
  expect(await inside.headerOf('PAYMENTS', id)).toBe(inside.keyOf(id));
  expect(inside.keyOf(id)).not.toBe(source.keyOf(3));
  await insertRow(inside, 'of the clone');
  expect(await rowsOf(inside, 'payments')).toEqual([row('of the source'), row('of the clone')]);
  await inside.execute('SHUTDOWN IMMEDIATE');

  const outside = await plug('OUT', await stage.other());
  await refused(outside.execute(openHere), 'ORA-28353');
  await refused(rowsOf(outside, 'payments'), 'ORA-28365');
  // With all containers at once the others open, and this one has no key to read with.
  await outside.execute('SHUTDOWN IMMEDIATE');
  await outside.execute('STARTUP');
  await outside.execute(sql.open());
  expect(await statusOf(outside)).toEqual(['OPEN', 'OPEN_NO_MASTER_KEY']);
  await outside.execute('ALTER SESSION SET CONTAINER = twin');
  await refused(rowsOf(outside, 'payments'), 'ORA-28374');
  await outside.execute('SHUTDOWN IMMEDIATE');
  await source.execute('SHUTDOWN IMMEDIATE');
};

/** The master key is destroyed while the database runs. */
const destroyed = async (stage: Stage): Promise<void> => {
  const sql = words(stage.profile);
  const database = await encrypted(stage);
  const client = database.connect();
  expect(await rowsOf(client, 'payments')).toEqual([row(1)]);
  await database.advance(3);
  const key = database.control.containers[0]?.keys;
  for (const { id } of Object.values(key ?? {})) await database.destroy(id);
  // A process can still read with keys that it has unwrapped; a new process cannot.
  expect(await rowsOf(client, 'payments')).toEqual([row(1)]);
  const late = database.connect();
  await refused(rowsOf(late, 'payments'), 'ORA-28374');
  await refused(database.execute('ALTER SYSTEM SWITCH LOGFILE'), 'ORA-28407');
  // gen0 notices, and the keystore closes.
  await database.advance(3);
  expect(await statusOf(database)).toEqual(['CLOSED']);
  expect(database.alertLog()).toMatch(/heartbeat failed: ORA-28407.*C_EncryptInit: CKR_/);
  await refused(rowsOf(client, 'payments'), 'ORA-28365');
  await refused(database.execute(sql.open()), 'ORA-28353');
  await client.end();
  await late.end();
  await database.die();
};

export interface Scenario {
  readonly title: string;
  readonly run: (stage: Stage) => Promise<void>;
  /** The scenario runs only for releases with container databases. */
  readonly containers?: true;
}

export const scenarios: Readonly<Record<string, Scenario>> = {
  'first-key': { title: 'goes from nothing to encrypted data, closes and opens', run: firstKey },
  rotation: { title: 'rotates, and keeps what names older keys', run: rotation },
  'crash-recovery': { title: 'recovers from a crash out of encrypted redo', run: crashRecovery },
  'online-encryption': { title: 'encrypts a tablespace that is in use, where the release can', run: onlineEncryption },
  containers: {
    title: 'has a key for each container, also after a crash between two',
    run: containers,
    containers: true,
  },
  migration: { title: 'moves from a wallet to the token, and back where the release can', run: migration },
  standby: { title: 'has a standby that reads its redo and takes over', run: standby },
  restore: { title: 'is restored on a target of the group, and not outside of it', run: restore },
  clone: { title: 'has a clone that opens inside the group alone', run: clone, containers: true },
  destroyed: { title: 'loses its master key permanently', run: destroyed },
};
