// What an administrator lives through with our service under a database: an upgrade and its
// rollback, an agent that dies under load, a service that is away, keys that are soft-deleted or
// destroyed from the console, and what the logs say of it all. The scenarios that any token can
// play are in scenarios.ts.
import { chmodSync, copyFileSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { request } from 'node:https';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { KeyMigration } from '../../server/contract/api/audit-routes.ts';
import type { DestroyedMasterKey } from '../../server/contract/api/master-keys-routes.ts';
import { endProcess, killProcess, until } from '../support/host.ts';
import type { Site } from '../support/site.ts';
import { tracesUnder } from './golden.ts';
import type { Instance } from './instance.ts';
import { checkLibraryLocation, placeFile } from './library.ts';
import { labelOf, readProfile } from './profile.ts';
import {
  configure,
  encrypted,
  insertRow,
  refused,
  rowsOf,
  type Stage,
  setStage,
  statusOf,
  walletPassword,
  words,
} from './scenarios.ts';
import { percentiles } from './timing.ts';
import type { TracedCall } from './trace.ts';
import { canary, filesHolding, libraryOf, nextLibrary, pin, startWorld, type World } from './world.ts';

const profile = readProfile('12c-19c');
const sql = words(profile);
let world: World;
let site: Site;
let stage: Stage;
const calls: TracedCall[] = [];

beforeAll(async () => {
  world = await startWorld.DKE();
  if (world.site === undefined) throw new Error('ours has a service');
  site = world.site;
});
afterEach(async () => {
  await stage.end();
  for (const each of tracesUnder(stage.traces()).values()) calls.push(...each);
});
afterAll(async () => {
  console.log(`per call:\n${percentiles(calls)}`);
  await world.end();
});

const ready = async (name = 'ERP'): Promise<Instance> => {
  stage = await setStage(world, profile);
  return await encrypted(stage, name);
};
const providerLog = (): string =>
  readdirSync(site.logDirectory)
    .map((name) => readFileSync(join(site.logDirectory, name), 'utf8'))
    .join('');
const applicationId = (): string => stage.group.applicationOf(stage.host);

/**
 * Requests of agents that the service has answered so far. This host reads the metrics without a
 * token.
 */
const served = async (): Promise<number> => {
  const text = await new Promise<string>((resolve, reject) => {
    const options = { ca: readFileSync(site.server.caFile), agent: false };
    const sent = request(new URL('/metrics', site.server.url), options, (answer) => {
      let got = '';
      answer.setEncoding('utf8').on('data', (part: string) => {
        got += part;
      });
      answer.on('end', () => resolve(got)).on('error', reject);
    });
    sent.on('error', reject).end();
  });
  const counts = [...text.matchAll(/^dke_tde_requests_total\{[^}]*\} (\d+)/gm)];
  if (counts.length === 0) throw new Error('the metrics count no request of an agent');
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
};
/** How many requests a piece of work costs the service. */
const costOf = async (work: () => Promise<unknown>): Promise<number> => {
  const before = await served();
  await work();
  return (await served()) - before;
};

interface InstanceRow {
  readonly host: string;
  readonly process: string;
  readonly libraryVersion: string;
}
const instances = async (id = applicationId()): Promise<readonly InstanceRow[]> =>
  (await site.api.call<{ items: readonly InstanceRow[] }>('GET', `/api/tde/applications/${id}/instances`)).items;

describe('the library is upgraded by hand', () => {
  const version = (text: string): readonly string[] =>
    [...text.matchAll(/version (\d+\.\d+)/g)].map(([, each = '']) => each);

  test('two versions work on one agent, and the older one comes back', async () => {
    const database = await ready('ERP');
    const other = stage.database('CRM', { host: await stage.group.host('host-of-crm') });
    await configure(other, 'HSM');
    await other.execute(sql.open());
    await other.execute(sql.setKey());
    const library = libraryOf(stage.host.base);
    const kept = join(stage.folder('ERP'), 'libdke_pkcs11.so.before');
    copyFileSync(library, kept);

    // The new library, with the database down.
    await database.execute('SHUTDOWN IMMEDIATE');
    placeFile(nextLibrary, library);
    chmodSync(library, 0o775);
    expect((statSync(library).mode & 0o777).toString(8)).toBe('775');
    await database.execute('STARTUP');
    await database.execute(sql.open());
    expect(await rowsOf(database, 'payments')).toEqual([`${canary} 1`]);
    await insertRow(database, 2);
    expect(new Set(version(database.alertLog()))).toEqual(new Set(['1.0', '1.1']));
    expect(providerLog()).toMatch(/"library":"1\.1".*"msg":"initialized"/);
    expect((await instances()).filter(({ libraryVersion }) => libraryVersion === '1.1').length).toBeGreaterThan(0);
    // A database that was not shut down continues with the old one, on the same agent.
    await other.advance(3);
    await other.execute(sql.setKey());
    expect(await statusOf(other)).toEqual(['OPEN']);
    expect(new Set(version(other.alertLog()))).toEqual(new Set(['1.0']));
    expect(site.agents()).toHaveLength(1);

    await database.execute('SHUTDOWN IMMEDIATE');
    placeFile(kept, library);
    await database.execute('STARTUP');
    await database.execute(sql.open());
    expect(await rowsOf(database, 'payments')).toEqual([1, 2].map((n) => `${canary} ${n}`));
    expect(version(database.alertLog()).at(-1)).toBe('1.0');
  });

  test('a copy that is left beside it under another name of a library keeps the database from loading any', async () => {
    const database = await ready();
    await database.execute('SHUTDOWN IMMEDIATE');
    const library = libraryOf(stage.host.base);
    mkdirSync(join(stage.host.base, 'hsm/dke/0.9'));
    copyFileSync(library, join(stage.host.base, 'hsm/dke/0.9/libdke_pkcs11.so'));
    await database.execute('STARTUP MOUNT');
    const { message } = await refused(database.execute(sql.open()), 'ORA-28376');
    expect(message).toContain('more than one library');
  });
});

describe('the agent', () => {
  test('dies three times under four foregrounds, and no unwrapping fails', async () => {
    const database = await ready();
    const clients = Array.from({ length: 4 }, () => database.connect());
    let done = 0;
    const deaths = [40, 120, 200];
    const work = clients.map(async (client) => {
      const wrong: unknown[] = [];
      for (let round = 0; round < 80; round += 1) {
        const answer = await database.unwrap(client, 'PAYMENTS');
        if (!answer.ok) wrong.push(answer);
        done += 1;
        if (deaths[0] !== undefined && done >= deaths[0]) {
          deaths.shift();
          for (const pid of site.agents()) killProcess(pid);
        }
      }
      return wrong;
    });
    expect((await Promise.all(work)).flat()).toEqual([]);
    expect(deaths).toEqual([]);
    await database.advance(3);
    expect(await statusOf(database)).toEqual(['OPEN']);
    for (const client of clients) await client.end();
  });

  test('that is not there and cannot be started is named in the error, and the database continues when it is back', async () => {
    const database = await ready();
    const start = join(stage.host.base, 'hsm/dke/1.0/dke-agent');
    chmodSync(start, 0o600);
    for (const pid of site.agents()) await endProcess(pid);
    const client = database.connect();
    const { message } = await refused(rowsOf(client, 'payments'), 'ORA-28407');
    expect(message).toMatch(/C_Initialize: CKR_DEVICE_REMOVED|CKR_DEVICE_REMOVED/);
    await client.end();
    chmodSync(start, 0o755);
    const next = database.connect();
    expect(await rowsOf(next, 'payments')).toEqual([`${canary} 1`]);
    await next.end();
  });
});

describe('the service is away', () => {
  test('a heartbeat that fails closes the keystore; what was written is there when it is back', async () => {
    const database = await ready();
    await database.advance(3);
    expect(await statusOf(database)).toEqual(['OPEN']);
    await site.stopServer('SIGKILL');
    const late = database.connect();
    const { message } = await refused(rowsOf(late, 'payments'), 'ORA-28407');
    expect(message).toMatch(/CKR_DEVICE_ERROR/);
    await database.advance(3);
    expect(await statusOf(database)).toEqual(['CLOSED']);
    expect(database.alertLog()).toMatch(/gen0: heartbeat failed: ORA-28407.*CKR_DEVICE_ERROR/);
    expect(providerLog()).toMatch(/CKR_DEVICE_ERROR|cannot be reached|not reach/);
    await refused(insertRow(database, 'no'), 'ORA-28365');

    await site.startServer();
    await database.execute(sql.open());
    await insertRow(database, 2);
    await database.advance(3);
    expect(await rowsOf(database, 'payments')).toEqual([1, 2].map((n) => `${canary} ${n}`));
    await late.end();
  });
});

describe('a master key', () => {
  const keyIdOf = async (database: Instance): Promise<string> =>
    (await site.api.masterKey(applicationId(), labelOf(profile, database.keyOf()))).id;

  test('that is soft-deleted in the console keeps working, in running processes and in new ones', async () => {
    const database = await ready();
    const id = await keyIdOf(database);
    await site.api.call('DELETE', `/api/keys/${id}`);
    await database.advance(3);
    const client = database.connect();
    expect(await rowsOf(client, 'payments')).toEqual([`${canary} 1`]);
    await database.execute('SHUTDOWN IMMEDIATE');
    await database.execute('STARTUP');
    await database.execute(sql.open());
    await insertRow(database, 2);
    expect(await statusOf(database)).toEqual(['OPEN']);
    const [reimported] = await site.api.audit(`subjectId=${id}&kind=key.reimported`);
    expect(reimported?.details).toMatchObject({
      host: hostname(),
      process: expect.stringMatching(/^ora_(gen0|fg1)_ERP$/),
    });
  });

  test('that is destroyed in the console closes every database that shares its access_guid', async () => {
    const database = await ready('ERP');
    // A standby on a second host uses the same pkcs11.toml, and its wallet view says OPEN.
    const second = database.makeStandby(await stage.group.host('shares', stage.host), 'STBY', stage.folder('STBY'));
    try {
      await configure(second, 'HSM');
      await second.execute(sql.open());
      expect(await statusOf(second)).toEqual(['OPEN']);
      const id = await keyIdOf(database);
      const label = labelOf(profile, database.keyOf());
      const path = `/api/tde/applications/${applicationId()}/master-keys/${id}`;
      // Looking before the act: both databases' processes are in the blast radius.
      const { items } = await site.api.call<{ items: readonly InstanceRow[] }>(
        'GET',
        `/api/tde/applications/${applicationId()}/instances`,
      );
      const names = items.map(({ process: name }) => name);
      expect(names).toEqual(expect.arrayContaining(['ora_fg0_ERP', 'ora_gen0_ERP', 'ora_fg0_STBY', 'ora_gen0_STBY']));
      await site.api.call<DestroyedMasterKey>('POST', `${path}/destroy`, { confirm: label });
      for (const each of [database, second]) {
        await until('the heartbeat that notices', async () => {
          await each.advance(3);
          return (await statusOf(each)).includes('CLOSED') ? true : undefined;
        });
        await refused(each.execute(sql.open()), 'ORA-28353');
      }
    } finally {
      if (second.state !== 'down') await second.die();
    }
  });
});

describe('a database outside of the group', () => {
  test('that opens what it has no key for is refused, and the audit log says who asked for which label', async () => {
    const source = await ready('SRC');
    const label = labelOf(profile, source.keyOf());
    source.copyTo(stage.folder('OUT'));
    await source.execute('SHUTDOWN IMMEDIATE');
    const host = await (await stage.other()).host('host-outside');
    const outside = stage.database('OUT', { host });
    await outside.execute('STARTUP MOUNT');
    await refused(outside.execute(sql.open()), 'ORA-28353');
    const denied = await until('the refusal', async () =>
      (await site.api.audit('kind=key.denied')).find(
        ({ details }) => details.label === label || details.name === label,
      ),
    );
    expect(denied.details).toMatchObject({ host: hostname(), process: 'ora_fg0_OUT', operation: expect.any(String) });
    await outside.die();
  });
});

describe('what a statement costs the service', () => {
  test('open, set key, a process that comes, a heartbeat: a bounded number of requests, whatever the history', async () => {
    const database = await ready();
    const first = await costOf(() => database.execute(sql.setKey()));
    for (let turn = 0; turn < 5; turn += 1) await database.execute(sql.setKey());
    const later = await costOf(() => database.execute(sql.setKey()));
    const client = database.connect();
    const costs = {
      setKey: later,
      newProcess: await costOf(() => rowsOf(client, 'payments')),
      cached: await costOf(() => rowsOf(client, 'payments')),
      heartbeat: await costOf(() => database.advance(3)),
      switchLog: await costOf(() => database.execute('ALTER SYSTEM SWITCH LOGFILE')),
      insert: await costOf(() => insertRow(database, 2)),
      close: await costOf(() => database.execute(sql.close)),
      open: await costOf(() => database.execute(sql.open())),
    };
    console.log(`requests: ${JSON.stringify(costs)}`);
    expect(later).toBeLessThanOrEqual(first);
    // Creates one key and one data object, and wraps one tablespace key and one redo key, each
    // after a search for its key.
    expect(costs.setKey).toBeLessThanOrEqual(14);
    expect(costs.newProcess).toBeLessThanOrEqual(6);
    expect(costs.cached).toBe(0);
    expect(costs.heartbeat).toBeLessThanOrEqual(1);
    expect(costs.switchLog).toBeLessThanOrEqual(3);
    expect(costs.insert).toBeLessThanOrEqual(2);
    expect(costs.close).toBe(0);
    expect(costs.open).toBeLessThanOrEqual(8);
    await client.end();
  });

  test('a rotation under foregrounds that write disturbs none of them', async () => {
    const database = await ready();
    const clients = Array.from({ length: 3 }, () => database.connect());
    const rounds = 12;
    const writing = clients.map(async (client, at) => {
      for (let round = 0; round < rounds; round += 1) await insertRow(client, `${at}-${round}`);
    });
    for (let turn = 0; turn < 3; turn += 1) await database.execute(sql.setKey());
    await Promise.all(writing);
    const fresh = database.connect();
    expect(await rowsOf(fresh, 'payments')).toHaveLength(1 + clients.length * rounds);
    expect(await database.headerOf('PAYMENTS')).toBe(database.keyOf());
    for (const each of [...clients, fresh]) await each.end();
  });

  test('foregrounds that come and go in numbers are all served', async () => {
    const database = await ready();
    for (let wave = 0; wave < 3; wave += 1) {
      const clients = Array.from({ length: 10 }, () => database.connect());
      const rows = await Promise.all(clients.map((client) => rowsOf(client, 'payments')));
      expect(rows).toEqual(Array(10).fill([`${canary} 1`]));
      await Promise.all(clients.map((client) => client.end()));
    }
  });
});

describe('the logs', () => {
  test('name the host, the process, the label and the operation', async () => {
    const database = await ready('HRM');
    const label = labelOf(profile, database.keyOf());
    const key = await site.api.masterKey(applicationId(), label);
    await database.advance(3);
    await database.destroy(database.keyOf());
    const records = await site.api.audit(`subjectId=${key.id}`);
    const by = { host: hostname(), process: 'ora_fg0_HRM' };
    expect(records.find(({ kind }) => kind === 'key.created')?.details).toMatchObject({ ...by, name: label });
    expect(records.find(({ kind }) => kind === 'key.destroyed')?.details).toMatchObject({ ...by, name: label });
    const used = await site.api.audit(`kind=instance.first-used&subjectId=${applicationId()}`);
    expect(used.map(({ details }) => details.process)).toEqual(
      expect.arrayContaining(['ora_fg0_HRM', 'ora_gen0_HRM', 'ora_lgwr_HRM']),
    );
    // The provider's log has the id that the audit record has.
    const created = records.find(({ kind }) => kind === 'key.created');
    expect(providerLog()).toContain(created?.requestId);
    // The log has the refused heartbeat with its process, call, code and label.
    await database.advance(3);
    const line = await until('the line of the heartbeat', async () =>
      providerLog()
        .split('\n')
        .find((each) => each.includes('ora_gen0_HRM') && each.includes('CKR_KEY_HANDLE_INVALID')),
    );
    expect(JSON.parse(line)).toMatchObject({
      process: 'ora_gen0_HRM',
      call: 'C_EncryptInit',
      cause: 'key-destroyed',
      label,
      id: expect.any(String),
    });
  });
});

describe('other releases and ways', () => {
  test('18c migrates a database without containers by sqlnet.ora and a restart, and back', async () => {
    stage = await setStage(world, profile, '18c');
    const database = stage.database('OLD', { cdb: false });
    const keyManagement = 'ADMINISTER KEY MANAGEMENT';
    await configure(database, 'FILE');
    await refused(
      database.execute(`ALTER SYSTEM SET TDE_CONFIGURATION = 'KEYSTORE_CONFIGURATION=HSM' SCOPE = BOTH`),
      'ORA-02065',
    );
    await database.execute(
      `${keyManagement} CREATE KEYSTORE '/opt/oracle/admin/wallet' IDENTIFIED BY "${walletPassword}"`,
    );
    await database.execute(`${keyManagement} SET KEYSTORE OPEN IDENTIFIED BY "${walletPassword}"`);
    await refused(database.execute(sql.setKey(walletPassword)), 'ORA-65090');
    await database.execute(`${keyManagement} SET KEY IDENTIFIED BY "${walletPassword}" WITH BACKUP USING 'first'`);
    await database.execute(`CREATE TABLESPACE secure DATAFILE 's.dbf' SIZE 1M ENCRYPTION USING 'AES256' ENCRYPT`);
    await database.execute('CREATE TABLE payments (c VARCHAR2(100)) TABLESPACE secure');
    await insertRow(database, 1);
    await configure(database, 'HSM|FILE');
    await database.execute(`${keyManagement} SET KEYSTORE OPEN IDENTIFIED BY "${pin}"`);
    await database.execute(
      `${keyManagement} SET ENCRYPTION KEY IDENTIFIED BY "${pin}" MIGRATE USING "${walletPassword}" WITH BACKUP USING 'before'`,
    );
    expect(await statusOf(database)).toEqual(['OPEN', 'OPEN']);
    // The migration is in the audit log: a master key was created.
    const created = await site.api.audit('kind=key.created');
    expect(created.map(({ details }) => details.name)).toContain(labelOf(profile, database.keyOf()));
    const { items } = await site.api.call<{ items: readonly KeyMigration[] }>('GET', '/api/audit/migrations');
    expect(items.find(({ keyName }) => keyName === labelOf(profile, database.keyOf()))).toMatchObject({
      origin: 'generated',
      host: hostname(),
      failures: 0,
    });
    await configure(database, 'FILE');
    const before = await site.api.audit('kind=key.created');
    await database.execute(
      `${keyManagement} SET ENCRYPTION KEY IDENTIFIED BY "${walletPassword}" REVERSE MIGRATE USING "${pin}" WITH BACKUP USING 'back'`,
    );
    expect(await site.api.audit('kind=key.created')).toHaveLength(before.length);
    expect(await rowsOf(database, 'payments')).toEqual([`${canary} 1`]);
  });

  test('23ai takes the library from PKCS11_LIBRARY_LOCATION, and refuses a path that others could change', async () => {
    stage = await setStage(world, readProfile('23ai'));
    const { base } = stage.host;
    const library = join(base, 'pkcs11/dke/1.0/libdke_pkcs11.so');
    placeFile(libraryOf(base), library);
    copyFileSync(join(base, 'hsm/dke/1.0/dke-agent'), join(base, 'pkcs11/dke/1.0/dke-agent'));
    const database = stage.database('NEW');
    await configure(database, 'HSM');
    const set = (path: string) => database.execute(`ALTER SYSTEM SET PKCS11_LIBRARY_LOCATION = '${path}' SCOPE = BOTH`);
    await refused(set(libraryOf(base)), 'ORA-46707');
    mkdirSync(join(base, 'pkcs11/link'));
    symlinkSync(library, join(base, 'pkcs11/link/libdke_pkcs11.so'));
    await refused(set(join(base, 'pkcs11/link/libdke_pkcs11.so')), 'ORA-46707');
    for (const folder of ['pkcs11', 'pkcs11/dke', 'pkcs11/dke/1.0']) chmodSync(join(base, folder), 0o755);
    chmodSync(join(base, 'pkcs11/dke'), 0o777);
    await refused(set(library), 'ORA-46707');
    chmodSync(join(base, 'pkcs11/dke'), 0o755);
    expect(checkLibraryLocation(library, base, process.getuid?.() ?? 0)).toEqual([]);
    await set(library);
    await database.execute(sql.open());
    await database.execute(sql.setKey());
    expect(await statusOf(database)).toEqual(['OPEN']);
  });
});

test('no file holds a row, the PIN or a password of a wallet', () => {
  expect(filesHolding(world.folder, canary, pin, walletPassword)).toEqual([]);
});
