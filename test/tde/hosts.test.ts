// Hosts as they are in production: a cluster of two hosts with one application, whose networks are
// apart; and a host with Grid Infrastructure, where the database's program has the setuid and
// setgid bits, so that the kernel marks its processes as secure (AT_SECURE), and where local
// clients are other OS users.
import { chmodSync, chownSync, copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { until } from '../support/host.ts';
import { whyNoOtherUsers } from '../support/other-users.ts';
import { library as built } from '../support/pkcs11-host.ts';
import { type Site, startSite } from '../support/site.ts';
import { Instance } from './instance.ts';
import { placeAgent, placeFile } from './library.ts';
import { type LinuxHost, startLinuxHost, whyNoHost } from './linux-host.ts';
import { processProgram } from './process.ts';
import type { DatabaseHost } from './process-table.ts';
import { readProfile } from './profile.ts';
import { configure, createPayments, insertRow, rowsOf, statusOf, words } from './scenarios.ts';
import { canary, libraryOf } from './world.ts';

const why = whyNoHost();
if (whyNoOtherUsers !== undefined) console.log(`skipped: ${whyNoOtherUsers}`);
if (why !== undefined) console.log(`skipped: ${why}`);
const profile = readProfile('12c-19c');
const row = (which: string): string => `${canary} ${which}`;

describe.runIf(why === undefined)('a host of its own', () => {
  let site: Site;
  let group: string;
  const hosts: LinuxHost[] = [];
  const databases: Instance[] = [];
  beforeAll(async () => {
    site = await startSite();
    chmodSync(site.folder, 0o755);
    group = await createGroup(site.api, 'hosts');
  });
  afterAll(async () => {
    for (const each of databases) if (each.state !== 'down') await each.die();
    for (const each of hosts) await each.end();
    await site.end();
  });

  const linuxHost = async (name: string): Promise<LinuxHost> => {
    const folder = join(site.folder, 'linux', name);
    mkdirSync(folder, { recursive: true });
    const made = await startLinuxHost(folder, site.server.port);
    hosts.push(made);
    return made;
  };
  /** pkcs11.toml of an application in /etc/dke of a host, of one user. */
  const configOn = async (
    host: LinuxHost,
    name: string,
    application: Awaited<ReturnType<typeof registerApplication>>,
    user = 0,
  ): Promise<void> => {
    const [path, ca] = [join(host.etc, `dke/${name}.toml`), join(host.etc, 'dke/ca.pem')];
    copyFileSync(site.server.caFile, ca);
    chmodSync(ca, 0o644);
    const text = readFileSync(site.config(`${name}-${hosts.length}`, application), 'utf8');
    writeFileSync(
      path,
      text.replace(/^ca_file = .*$/m, 'ca_file = "/etc/dke/ca.pem"').replace(site.logDirectory, '/run/log'),
    );
    chmodSync(path, 0o600);
    chownSync(path, user, user);
  };
  const base = (name: string): string => {
    const at = join(site.folder, 'bases', name);
    placeFile(built, libraryOf(at));
    placeAgent(built, libraryOf(at));
    return at;
  };
  const instance = (name: string, host: DatabaseHost, release = '19c'): Instance => {
    const directory = join(site.folder, 'databases', name);
    mkdirSync(directory, { recursive: true });
    const made = new Instance({ name, directory, profile, release, host, cdb: false });
    databases.push(made);
    return made;
  };
  const one = words(profile, false);

  test('a cluster: each instance reads what the other writes, over rotations and while one host has no network', async () => {
    const application = await registerApplication(site.api, 'rac', group);
    const nodes: DatabaseHost[] = [];
    const linux: LinuxHost[] = [];
    for (const name of ['node1', 'node2']) {
      const host = await linuxHost(name);
      await configOn(host, 'rac', application);
      mkdirSync(join(host.run, 'log'));
      mkdirSync(join(host.run, 'dke-pkcs11'));
      linux.push(host);
      nodes.push({
        base: base(name),
        traces: join(site.folder, 'traces', name),
        environment: { DKE_PKCS11_CONF: '/etc/dke/rac.toml' },
        through: host.through(),
      });
    }
    const [near, far] = nodes;
    if (near === undefined || far === undefined) throw new Error('two nodes');
    const first = instance('RAC', near);
    await configure(first, 'HSM');
    await first.execute(one.open());
    await first.execute(one.setKey());
    await createPayments(first);
    await insertRow(first, 'first');
    const second = first.joinCluster(far, 'RAC2');
    databases.push(second);
    await second.execute('STARTUP');
    await second.execute(one.open());
    expect(await rowsOf(second, 'payments')).toEqual([row('first')]);

    // A rotation by the second instance is in use by the first at once, and the other way round.
    await second.execute(one.setKey());
    await insertRow(second, 'second');
    const late = first.connect();
    expect(await rowsOf(late, 'payments')).toEqual([row('first'), row('second')]);
    await late.end();
    await first.execute(one.setKey());
    await first.advance(3);
    await second.advance(3);
    const client = second.connect();
    expect(await rowsOf(client, 'payments')).toEqual([row('first'), row('second')]);

    // One host loses its network: its keystore closes, and the other one continues.
    linux[1]?.cut();
    await until('the heartbeat that notices', async () => {
      await second.advance(3);
      return second.alertLog().includes('gen0: keystore closed') ? true : undefined;
    });
    expect(await statusOf(second)).toEqual(['CLOSED']);
    await first.advance(3);
    await insertRow(first, 'alone');
    await first.execute(one.setKey());
    linux[1]?.restore();
    await until('the network of the second host', () =>
      second.execute(one.open()).then(
        () => true,
        () => undefined,
      ),
    );
    const back = second.connect();
    expect(await rowsOf(back, 'payments')).toEqual(['first', 'second', 'alone'].map(row));
    await back.end();
    await client.end();

    // The service saw one application with two instances of the library.
    const { items } = await site.api.call<{ items: readonly { readonly process: string }[] }>(
      'GET',
      `/api/tde/applications/${application.application.id}/instances`,
    );
    const names = items.map(({ process: name }) => name);
    expect(names).toEqual(expect.arrayContaining(['ora_fg0_RAC', 'ora_gen0_RAC', 'ora_fg0_RAC2', 'ora_gen0_RAC2']));
  });

  describe.runIf(whyNoOtherUsers === undefined)('with Grid Infrastructure', () => {
    const oracle = { uid: 54_321, gid: 54_321 };
    const asmadmin = 54_322;
    const person = { uid: 54_323, gid: 54_323 };
    let host: LinuxHost;
    let program: string;
    beforeAll(async () => {
      host = await linuxHost('grid');
      for (const name of ['log', 'dke-pkcs11']) {
        mkdirSync(join(host.run, name));
        chownSync(join(host.run, name), oracle.uid, oracle.gid);
      }
      program = join(site.folder, 'oracle');
      copyFileSync(processProgram, program);
      chownSync(program, oracle.uid, asmadmin);
      chmodSync(program, 0o6751);
    });

    const databaseOf = (name: string, config: string | null): Instance => {
      const directory = join(site.folder, 'databases', name);
      const traces = join(site.folder, 'traces', name);
      for (const each of [directory, traces]) mkdirSync(each, { recursive: true });
      const environment = config === null ? {} : { DKE_PKCS11_CONF: config };
      const made = instance(name, { base: base(name), traces, environment, program, through: host.through(oracle) });
      for (const each of ['', 'wallet', 'wallet/tde', 'redo']) chownSync(join(directory, each), oracle.uid, oracle.gid);
      chownSync(traces, oracle.uid, oracle.gid);
      return made;
    };
    const applicationOf = async (name: string) => {
      const application = await registerApplication(site.api, name, await createGroup(site.api, `group-of-${name}`));
      await configOn(host, name, application, oracle.uid);
      return application.application.id;
    };
    const keysOf = async (id: string): Promise<readonly string[]> =>
      (
        await site.api.call<{ items: readonly { readonly name: string }[] }>(
          'GET',
          `/api/tde/applications/${id}/master-keys`,
        )
      ).items.map(({ name }) => name);
    const begin = async (database: Instance): Promise<void> => {
      await configure(database, 'HSM');
      await database.execute(one.open());
      await database.execute(one.setKey());
      await createPayments(database);
      await insertRow(database, database.name);
    };

    test('two databases of one host have their own applications, also for clients of another OS user', async () => {
      // A configuration of the usual name is there too, and neither database may use it.
      const usual = await applicationOf('pkcs11');
      const [erp, crm] = [await applicationOf('erp'), await applicationOf('crm')];
      const [first, second] = [databaseOf('ERP', '/etc/dke/erp.toml'), databaseOf('CRM', '/etc/dke/crm.toml')];
      for (const each of [first, second]) await begin(each);
      expect((await keysOf(erp)).some((label) => label.endsWith(first.keyOf()))).toBe(true);
      expect((await keysOf(crm)).some((label) => label.endsWith(second.keyOf()))).toBe(true);
      expect(await keysOf(usual)).toEqual([]);
      for (const each of [first, second]) {
        const client = each.connect(host.through(person));
        expect(await rowsOf(client, 'payments')).toEqual([row(each.name)]);
        await client.end();
        await each.execute('SHUTDOWN IMMEDIATE');
        await each.execute('STARTUP');
        await each.execute(one.open());
        expect(await rowsOf(each, 'payments')).toEqual([row(each.name)]);
      }
    });

    test('a caller cannot choose a file of his own, and the log says why', async () => {
      const foreign = await registerApplication(site.api, 'foreign', group);
      await configOn(host, 'foreign', foreign, person.uid);
      const database = databaseOf('ODD', '/etc/dke/foreign.toml');
      await begin(database);
      // The usual file was used instead, which the administrator has there for it.
      expect(await keysOf(foreign.application.id)).toEqual([]);
      const log = readdirSync(join(host.run, 'log'))
        .map((name) => readFileSync(join(host.run, 'log', name), 'utf8'))
        .join('');
      expect(log).toMatch(/DKE_PKCS11_CONF/);
      expect(log).toMatch(/does not belong to the user/);
    });
  });
});
