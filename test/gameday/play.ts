// How to inject each fault of a game day, what must be true in the meantime, and how operators
// repair it, with the documented commands.

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, readdirSync, rmSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { ClockState } from '../../server/contract/api/clock-routes.ts';
import type { Quarantine } from '../../server/contract/api/quarantine-routes.ts';
import type { Tenant } from '../../server/contract/api/tenants-routes.ts';
import { until } from '../support/host.ts';
import { pageBlock } from '../support/mariadb.ts';
import { quarantineCodeOf, ServerEnded } from '../support/server-process.ts';
import type { Fault } from './table.ts';
import { passphraseFile, type World } from './world.ts';

export interface Stage {
  readonly world: World;
  /** Waits until everything that the table promises of the fault was seen. */
  readonly promised: () => Promise<void>;
  /** A value that is not as it should be. */
  readonly expect: (what: string, found: unknown, expected: unknown) => void;
  /** Keys that were acknowledged and that the service has reported as missing. */
  readonly reported: (lost: ReadonlySet<string>) => void;
}

/** Ends the server, and answers how its next start was refused. */
const refusedStart = async ({ site }: World): Promise<ServerEnded> => {
  await site.stopServer();
  const ended = await site.startServer().then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(ended instanceof ServerEnded)) throw new Error(`the server should refuse to start, and: ${String(ended)}`);
  return ended;
};
const mariadbOf = ({ mariadb }: World) => {
  if (mariadb === undefined) throw new Error('MariaDB does not take part');
  return mariadb;
};
/** MariaDB takes rows in the meantime. */
const inserts = async (world: World): Promise<void> => {
  const { mariadb } = world;
  if (mariadb === undefined) return;
  const before = mariadb.load.confirmed();
  await until('a row', async () => (mariadb.load.confirmed() > before ? true : undefined));
};
/** Keys are used: the values of earlier days decrypt, and MariaDB takes rows. */
const serves = async (world: World): Promise<void> => {
  await world.workload.serve();
  await inserts(world);
};

export const play: Readonly<Record<Fault, (stage: Stage) => Promise<void>>> = {
  'killed server': async ({ world, promised, expect }) => {
    const { site, workload } = world;
    const { child } = site.server;
    const acknowledged = (): number => Object.values(workload.acknowledged()).reduce((sum, count) => sum + count, 0);
    const enough = acknowledged() + 10;
    const exited = once(child, 'exit');
    const timer = setInterval(() => {
      if (acknowledged() >= enough) child.kill('SIGKILL');
    }, 5);
    await workload.run(() => false).finally(() => clearInterval(timer));
    await exited;
    await promised();
    // What is in memory is enough for a database.
    await inserts(world);
    await site.startServer();
    expect('the book after a kill', await workload.check(false), []);
  },

  'killed agent': async ({ world, promised, expect }) => {
    const mariadb = mariadbOf(world);
    const before = await mariadb.site.label(mariadb.database);
    const agents = mariadb.site.agents();
    expect('running agents', agents.length, 1);
    for (const pid of agents) process.kill(pid, 'SIGKILL');
    await until('the end of the agent', async () =>
      mariadb.site.agents().some((pid) => agents.includes(pid)) ? undefined : true,
    );
    await inserts(world);
    // The next call of the library starts another one.
    await mariadb.database.sql(pageBlock('sql', 'rotate the master key'));
    expect('a new master key', (await mariadb.site.label(mariadb.database)) !== before, true);
    await promised();
  },

  'killed MariaDB': async ({ world, promised, expect }) => {
    const mariadb = mariadbOf(world);
    await inserts(world);
    const confirmed = mariadb.load.confirmed();
    await mariadb.database.kill();
    mariadb.database = await mariadb.instance.start();
    const [rows = ''] = await mariadb.database.sql('SELECT COUNT(*) FROM orders.load_rows');
    expect('rows that MariaDB has confirmed', Number(rows) >= confirmed, true);
    await promised();
  },

  'full disk': async ({ world, promised, expect }) => {
    const { disk, workload, site } = world;
    await workload.settle();
    disk?.fill();
    const refusal = await until('a refused change', () =>
      workload.change().then(
        () => undefined,
        (error: unknown) => String(error),
      ),
    );
    expect('the reason of a refused change', /full|room|space/.test(refusal), true);
    await promised();
    await serves(world);
    disk?.free();
    await workload.change();
    // An erasure run that met the full disk is tried again half a minute later, or at the next
    // start.
    if ((await workload.settle()) === 'failed') {
      await site.stopServer();
      await site.startServer();
    }
  },

  'clock jump': async ({ world, promised, expect }) => {
    const { clock, site, deletedTenant, workload } = world;
    clock.ahead(60 * 86_400_000);
    await promised();
    const state = async () => (await site.api.call<Tenant>('GET', `/api/tenants/${deletedTenant}`)).state;
    expect('a tenant that has 30 days left', await state(), 'deleted');
    await inserts(world);
    clock.ahead(0);
    await until('the end of the doubt', async () =>
      (await site.api.call<ClockState>('GET', '/api/clock')).jumped ? undefined : true,
    );
    expect('the tenant after the jump', await state(), 'deleted');
    await workload.serve();
  },

  'lost certificate': async ({ world, promised, expect }) => {
    const { site, certificate } = world;
    unlinkSync(certificate.file);
    const before = site.server.log().length;
    site.server.child.kill('SIGHUP');
    await until('the refusal of SIGHUP', async () =>
      site.server.log().slice(before).includes(certificate.file) ? true : undefined,
    );
    await serves(world);
    expect('health with the certificate in memory', await world.watch.health(), '200 healthy');
    const doctor = await world.onHost('doctor');
    expect('dke doctor names the certificate', doctor.code === 12 && doctor.stdout.includes(certificate.file), true);
    const { exitCode, message } = await refusedStart(world);
    expect('the exit code without a certificate', exitCode, 3);
    expect('the refusal names the certificate', message.includes(certificate.file), true);
    await promised();
    copyFileSync(certificate.copy, certificate.file);
    await site.startServer();
  },

  'lost root key file': async ({ world, promised, expect }) => {
    const { site, workload, data } = world;
    await workload.settle();
    const backup = await world.backUpRoot();
    unlinkSync(join(data, 'root.key'));
    await promised();
    await serves(world);
    const { exitCode, message } = await refusedStart(world);
    expect('the exit code without the root key', exitCode, 6);
    expect('the refusal names the root key', message.includes('root.key'), true);
    const restored = await world.onHost('root', 'restore', backup, '--passphrase-file', passphraseFile);
    expect('dke root restore', [restored.code, restored.stderr], [0, '']);
    await site.startServer();
  },

  'older database': async ({ world, promised, expect, reported }) => {
    const { site, workload, data } = world;
    await workload.settle();
    await site.stopServer();
    const [database, older] = [join(data, 'dke.db'), join(world.folder, 'older.db')];
    copyFileSync(database, older);
    await site.startServer();
    for (let made = 0; made < 3; made += 1) await (await workload.prepare('create'))();
    // A checkpoint covers them, and the sink has them.
    await site.api.send('GET', '/api/audit/export');
    await site.stopServer();
    for (const end of ['-wal', '-shm']) rmSync(`${database}${end}`, { force: true });
    copyFileSync(older, database);
    await site.startServer();
    await promised();
    const seen = await site.api.call<Quarantine>('GET', '/api/quarantine');
    expect('the finding', seen.finding, 'older');
    const records = seen.missing?.records ?? [];
    reported(new Set(records.map(({ subjectId }) => subjectId)));
    const code = await quarantineCodeOf(site.server);
    const confirmed = await world.dke('quarantine', 'confirm', '--code', code);
    expect('dke quarantine confirm', [confirmed.code, confirmed.stderr], [0, '']);
  },

  'deleted database file': async ({ world, promised, expect }) => {
    const { site, workload, data } = world;
    const database = join(data, 'dke.db');
    await (await workload.prepare('create'))();
    unlinkSync(database);
    await promised();
    await serves(world);
    const refused = await workload.change().then(
      () => 'made',
      (error: unknown) => String(error),
    );
    expect('a change is refused', /was deleted while the service runs/.test(refused), true);
    await site.stopServer();
    const saved = readdirSync(data).find((name) => name.includes('.saved-'));
    expect('the open database was saved', saved === undefined ? 'no' : 'yes', 'yes');
    const [, command = ''] = /put it back \((rm -f [^)]+)\)/.exec(site.server.log()) ?? [];
    expect('the log has the command', command.includes(saved ?? 'nothing'), true);
    execFileSync('sh', ['-c', command]);
    expect('the database is there', existsSync(database), true);
    await site.startServer();
  },
};
