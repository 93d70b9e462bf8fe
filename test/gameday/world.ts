// The service of a game day with everything around it: the built server on a small disk, with a
// clock that can be set, a certificate of its own and a file sink; the load of fault-workload.ts;
// and, where it takes part, MariaDB with the built plugin, library and agent.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Root } from '../../server/contract/api/root-routes.ts';
import type { Tenant } from '../../server/contract/api/tenants-routes.ts';
import { type CommandRun, runCommand } from '../support/command.ts';
import { openWorkload, type Workload } from '../support/fault-workload.ts';
import { until } from '../support/host.ts';
import { builtServer } from '../support/killed-server.ts';
import type { Mariadb } from '../support/mariadb.ts';
import { type Instance, insertUntilStopped, type MariadbSite, startMariadbSite } from '../support/mariadb-site.ts';
import { type ShiftedClock, shiftedClock } from '../support/shifted-clock.ts';
import { type Site, startSite } from '../support/site.ts';
import { mountSmallDisk, type SmallDisk } from '../support/small-disk.ts';
import { openWatch, type Watch } from './watch.ts';

export interface MariadbPart {
  readonly site: MariadbSite;
  readonly instance: Instance;
  /** The server that runs now. */
  database: Mariadb;
  readonly load: ReturnType<typeof insertUntilStopped>;
}

export interface World {
  readonly folder: string;
  /** The folder of the database, the root key and its checkpoint. */
  readonly data: string;
  readonly site: Site;
  readonly workload: Workload;
  readonly watch: Watch;
  readonly clock: ShiftedClock;
  /** Undefined: this host mounts none. */
  readonly disk: SmallDisk | undefined;
  readonly mariadb: MariadbPart | undefined;
  /** Deleted on the first day, with 30 days left. */
  readonly deletedTenant: string;
  readonly certificate: { readonly file: string; readonly copy: string };
  /** The newest backup of the root key; it is created again when the root key was replaced. */
  backUpRoot(): Promise<string>;
  /** `dke`, with the service's address and the administrator's token. */
  dke(...args: readonly string[]): Promise<CommandRun>;
  /** `dke` on the host of the service, about its folder. */
  onHost(...args: readonly string[]): Promise<CommandRun>;
  end(options: { readonly keep: boolean }): Promise<void>;
}

export const passphraseFile = 'passphrase';

const makeCertificate = (folder: string): World['certificate'] => {
  const [file, key] = ['keys.crt', 'keys.key'].map((name) => join(folder, name)) as [string, string];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-days', '365'];
  execFileSync(
    'openssl',
    [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-keyout',
      key,
      '-out',
      file,
    ].concat(subject),
    { stdio: 'pipe' },
  );
  const copy = `${file}.copy`;
  copyFileSync(file, copy);
  return { file, copy };
};

const openMariadb = async (site: MariadbSite): Promise<MariadbPart> => {
  const instance = site.instance('orders', await site.register('orders'));
  const database = await instance.initialize();
  await database.sql(
    'CREATE DATABASE orders; CREATE TABLE orders.load_rows (id INT PRIMARY KEY, text TEXT) ENGINE=InnoDB;',
  );
  const part = { site, instance, database };
  return Object.assign(part, { load: insertUntilStopped(part) });
};

export const openWorld = async (options: { readonly seed: number; readonly mariadb: boolean }): Promise<World> => {
  const { seed } = options;
  const folder = mkdtempSync(join(tmpdir(), 'dke-gameday-'));
  const mounted = mountSmallDisk('64m');
  const disk = typeof mounted === 'string' ? undefined : mounted;
  const data = join(folder, 'dke-data');
  if (disk === undefined) mkdirSync(data, { mode: 0o700 });
  else symlinkSync(disk.folder, data);
  const certificate = makeCertificate(folder);
  const clock = shiftedClock(folder);
  mkdirSync(join(folder, 'audit'), { mode: 0o700 });
  writeFileSync(join(folder, passphraseFile), 'a passphrase for the game day\n', { mode: 0o600 });
  const toml = [
    '[tls]',
    `certificate = "${certificate.file}"`,
    `key = "${join(folder, 'keys.key')}"`,
    '[erasure]',
    'gather_ms = 20',
    '[snapshots]',
    'restore_second_person = false',
    '[[audit.sinks]]',
    'name = "file"',
    'type = "file"',
    `path = "${join(folder, 'audit', 'audit.ndjson')}"`,
    '',
  ].join('\n');
  const of = { folder, toml, program: [builtServer], environment: clock.environment };
  const mariadbSite = options.mariadb ? await startMariadbSite(of) : undefined;
  const site = mariadbSite ?? (await startSite(of));
  const { token, api } = site;
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, `${token}\n`, { mode: 0o600 });
  const { id: deletedTenant } = await api.call<Tenant>('POST', '/api/tenants', { name: 'deleted on the first day' });
  await api.call('DELETE', `/api/tenants/${deletedTenant}`);
  // Clients have a copy of the certificate.
  const place = {
    get server() {
      return { ...site.server, caFile: certificate.copy };
    },
  };
  const workload = await openWorkload(place, token, { seed });
  const mariadb = mariadbSite === undefined ? undefined : await openMariadb(mariadbSite);
  let backups = 0;
  const onHost: World['onHost'] = (...args) =>
    runCommand([...args, '--config', join(folder, 'dke.toml'), '-o', 'json'], { cwd: folder });
  return {
    folder,
    data,
    site,
    workload,
    watch: openWatch(place.server, api),
    clock,
    disk,
    mariadb,
    deletedTenant,
    certificate,
    onHost,
    dke: (...args) =>
      runCommand(args, {
        environment: { DKE_SERVER: site.server.url, DKE_CA_FILE: certificate.copy, DKE_TOKEN_FILE: tokenFile },
        cwd: folder,
      }),
    backUpRoot: async () => {
      backups += 1;
      const file = join(folder, `root-backup-${backups}.key`);
      const made = await onHost('root', 'backup', '--out', file, '--new-passphrase-file', passphraseFile);
      if (made.code !== 0) throw new Error(`dke root backup: ${made.stderr}`);
      await until('the service to know the backup', async () => {
        const { epoch, backup } = await api.call<Root>('GET', '/api/root');
        return backup?.epoch === epoch ? true : undefined;
      });
      return file;
    },
    end: async ({ keep }) => {
      disk?.free();
      await mariadb?.load.stop();
      await site.server.stop('SIGKILL');
      if (keep && disk !== undefined) execFileSync('cp', ['-a', disk.folder, join(folder, 'kept-data')]);
      if (keep) execFileSync('cp', ['-a', folder, `${folder}-kept`]);
      await site.end();
      disk?.end();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
