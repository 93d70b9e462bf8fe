// Every statement of every runbook, as `dke runbook` and the console print it, on a simulated
// database of each release that the runbook is offered for, with our service behind it.
import { copyFileSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writeChecksums } from '../../provider/packaging/release.ts';
import { readRunbooks } from '../../server/adapters/runbooks/read-runbooks.ts';
import type { AuditRecord } from '../../server/contract/api/audit-routes.ts';
import type { FilledRunbook } from '../../server/contract/api/runbooks-routes.ts';
import { type RunbookName, runbookNames } from '../../server/domain/runbooks.ts';
import { runCommand } from '../support/command.ts';
import type { Site } from '../support/site.ts';
import type { Instance } from './instance.ts';
import type { DatabaseHost } from './process-table.ts';
import { type ProfileName, readProfile } from './profile.ts';
import { type Play, passwords, playRunbook, type StepAnswer } from './runbook-play.ts';
import { automaticLogin, configure, createPayments, insertRow, rowsOf, type Stage, setStage } from './scenarios.ts';
import { canary, libraryOf, pin, startWorld, type World } from './world.ts';

let world: World;
beforeAll(async () => {
  world = await startWorld.DKE();
});
afterAll(() => world.end());

type Variant = readonly [release: FilledRunbook['release'], profile: ProfileName, simulated: string, cdb: boolean];
const variants: readonly Variant[] = [
  ['11g', '11g', '11.2', false],
  ['12c-18c', '12c-19c', '12.1', false],
  ['12c-18c', '12c-19c', '18c', true],
  ['19c', '12c-19c', '19c', false],
  ['19c', '12c-19c', '19c', true],
  ['19c', '23ai', '23ai', true],
];
const isOld = (on: Instance): boolean => on.profile.statements.value === 'alter-system';
const all = (on: Instance): string => (on.control.cdb ? ' CONTAINER = ALL' : '');
const open = async (on: Instance, password = pin): Promise<void> => {
  await on.execute(
    isOld(on)
      ? `ALTER SYSTEM SET ENCRYPTION WALLET OPEN IDENTIFIED BY "${password}"`
      : `ADMINISTER KEY MANAGEMENT SET KEYSTORE OPEN IDENTIFIED BY "${password}"${all(on)}`,
  );
};
const setKey = async (on: Instance, password = pin): Promise<void> => {
  await on.execute(
    isOld(on)
      ? `ALTER SYSTEM SET ENCRYPTION KEY IDENTIFIED BY "${password}"`
      : `ADMINISTER KEY MANAGEMENT SET KEY IDENTIFIED BY "${password}" WITH BACKUP${all(on)}`,
  );
};
const row = (name: string): string => `${canary} ${name}`;

/** Data under the master key of each container. */
const fill = async (on: Instance): Promise<void> => {
  await createPayments(on, 'secure01.dbf');
  await insertRow(on, 'root');
  if (!on.control.cdb) return;
  await on.execute('ALTER SESSION SET CONTAINER = sales');
  await createPayments(on, 'sales/secure01.dbf');
  await on.execute(`CREATE TABLE cards (c VARCHAR2(100) ENCRYPT) TABLESPACE secure`);
  await insertRow(on, 'sales');
  await on.execute('ALTER SESSION SET CONTAINER = CDB$ROOT');
};
const expectReadable = async (on: Instance, pdb = 'sales'): Promise<void> => {
  await on.execute(`ALTER SESSION SET CONTAINER = ${on.control.containers[0]?.name}`);
  expect(await rowsOf(on, 'payments')).toEqual([row('root')]);
  if (!on.control.cdb) return;
  await on.execute(`ALTER SESSION SET CONTAINER = ${pdb}`);
  expect(await rowsOf(on, 'payments')).toEqual([row('sales')]);
  await on.execute('ALTER SESSION SET CONTAINER = CDB$ROOT');
};

/**
 * The host of a target: with a configuration of its own, and without a library where the runbook
 * installs it.
 */
const targetHost = async (stage: Stage, kind: string, installs: boolean): Promise<DatabaseHost> => {
  const like = await stage.group.host(`${stage.groupName}-${kind}`, stage.host);
  const environment = { ...like.environment, DKE_PKCS11_CONF: stage.folder(`${kind}.toml`) };
  return { ...like, environment, ...(installs ? { base: stage.folder(`${kind}-extapi`) } : {}) };
};
const addPdb = async (on: Instance): Promise<void> => {
  if (!on.control.cdb) return;
  await on.execute('CREATE PLUGGABLE DATABASE sales');
  await on.execute('ALTER PLUGGABLE DATABASE sales OPEN');
};
/** A database whose master keys are in the service. */
const integrated = async (stage: Stage, cdb: boolean, name = 'ERP', keystores: 'HSM' | 'HSM|FILE' = 'HSM') => {
  const on = stage.database(name, { cdb, host: stage.host });
  await configure(on, keystores);
  await addPdb(on);
  await open(on);
  await setKey(on);
  await fill(on);
  return on;
};
const administer = 'ADMINISTER KEY MANAGEMENT';
/** A database whose master keys are in a wallet that opens on its own. */
const local = async (stage: Stage, cdb: boolean): Promise<Instance> => {
  const on = stage.database('ERP', { cdb, host: stage.host });
  await configure(on, 'FILE');
  await addPdb(on);
  if (!isOld(on)) {
    await on.execute(`${administer} CREATE KEYSTORE '${on.walletDirectory}' IDENTIFIED BY "${passwords.old}"`);
    await open(on, passwords.old);
  }
  await setKey(on, passwords.old);
  await fill(on);
  if (isOld(on)) await on.orapki({ autoLogin: passwords.old });
  else
    await on.execute(
      `${administer} CREATE AUTO_LOGIN KEYSTORE FROM KEYSTORE '${on.walletDirectory}' IDENTIFIED BY "${passwords.old}"`,
    );
  return on;
};
const statuses = async (on: Instance): Promise<readonly string[]> =>
  (await on.execute('SELECT WRL_TYPE, STATUS FROM V$ENCRYPTION_WALLET')).map(
    ({ WRL_TYPE, STATUS }) => `${WRL_TYPE} ${STATUS}`,
  );

interface Scene {
  readonly play: Omit<Play, 'stage' | 'commands'>;
  readonly after: () => Promise<void>;
}
/** `installs`: the commands of `dke` run too. */
type SetScene = (stage: Stage, cdb: boolean, installs: boolean) => Promise<Scene>;

/** The newest key of the database's own history is the one that it uses. */
const newestFirst = (on: Instance, { rows: [newest] }: StepAnswer): void => {
  const used = on.control.containers.map(({ id }) => on.keyOf(id));
  expect(used).toContain(newest?.KEY_ID);
};
/** The audit log has the key that the database uses, and who made it. */
const audited =
  (applicationId: string) =>
  async (on: Instance): Promise<void> => {
    const { items } = (await world.site?.api.call<{ items: readonly AuditRecord[] }>(
      'GET',
      '/api/audit?kind=key.created&limit=50',
    )) ?? { items: [] };
    const made = items.filter(({ details }) => JSON.stringify(details).includes(`ora_fg0_${on.name}`));
    expect(made.length, applicationId).toBeGreaterThan(0);
  };
const laidDown = (on: Instance): void => {
  const library = libraryOf(on.host.base);
  expect((statSync(library).mode & 0o777).toString(8)).toBe('775');
  expect(statSync(library).uid).toBe(process.getuid?.());
};
const printedNothingBad = (): void => undefined;
const promises = (applicationId: string): NonNullable<Play['promises']> => ({
  'check-audit': audited(applicationId),
  'check-history': newestFirst,
  history: newestFirst,
  'history-all': (on, { rows }) => {
    for (const { id } of on.control.containers) expect(rows.map(({ KEY_ID }) => KEY_ID)).toContain(on.keyOf(id));
  },
  columns: (_, { rows }) => expect(rows).toMatchObject([{ TABLE_NAME: 'CARDS', COLUMN_NAME: 'C' }]),
  data: (_, { rows }) => expect(rows).toEqual([{ 'COUNT(*)': 1 }]),
  obtain: (_, { out }) => expect(out).toMatch(/^dke-provider_\S+\.deb: OK$/m),
  logs: (_, { out }) => expect(out).toContain('"msg":"initialized"'),
  library: laidDown,
  replace: laidDown,
  // Exit code 0 is what these commands promise.
  provider: printedNothingBad,
  'access-guid': printedNothingBad,
  'dry-run': (on) => expectReadable(on),
});

const plainScene = async (stage: Stage, cdb: boolean) => {
  const database = await integrated(stage, cdb);
  return { play: { database }, after: () => expectReadable(database) };
};
const plain: SetScene = plainScene;

const scenes: Readonly<Record<RunbookName, SetScene>> = {
  rotate: async (stage, cdb) => {
    const database = await integrated(stage, cdb);
    const keys = () => database.control.containers.map(({ id }) => database.keyOf(id));
    const before = keys();
    const after = async () => {
      expect(keys().filter((key) => before.includes(key))).toEqual([]);
      await expectReadable(database);
    };
    return { play: { database }, after };
  },
  check: plain,
  'restart-after-rotation': plain,
  migrate: async (stage, cdb) => {
    const database = await local(stage, cdb);
    const after = async () => {
      for (const { keys } of database.control.containers)
        expect(Object.values(keys).map(({ keystore }) => keystore)).not.toContain('F');
      await expectReadable(database);
    };
    return { play: { database }, after };
  },
  'reverse-migrate': async (stage, cdb) => {
    const database = await integrated(stage, cdb, 'ERP', 'HSM|FILE');
    await database.execute(
      `${administer} CREATE KEYSTORE '${database.walletDirectory}' IDENTIFIED BY "${passwords.wallet}"`,
    );
    const met = new Set<string>();
    const after = async () => {
      // The form of the specification is tried first; the releases that require the other one
      // answer with its error.
      const other = database.profile.releases[database.release]?.reverse.value === 'FILE|HSM';
      expect([...met]).toEqual(other ? ['reverse ORA-28414'] : []);
      for (const { keys } of database.control.containers)
        expect(Object.values(keys).map(({ keystore }) => keystore)).not.toContain('H');
      expect(new Set(await statuses(database))).toEqual(new Set(['FILE OPEN']));
      await expectReadable(database);
    };
    return { play: { database, met, typed: { database: { pdb: 'sales' } } }, after };
  },
  standby: async (stage, cdb, installs) => {
    const database = await integrated(stage, cdb);
    if (!isOld(database)) await automaticLogin(database, passwords.wallet);
    const host = await targetHost(stage, 'standby', installs);
    const target = database.makeStandby(host, 'STBY', stage.folder('STBY'));
    mkdirSync(target.walletDirectory, { recursive: true });
    await target.execute('STARTUP MOUNT');
    const after = async () => {
      await insertRow(database, 'later');
      expect(await target.applyFrom(database)).toBeGreaterThan(0);
      await target.die();
    };
    return { play: { database, target }, after };
  },
  restore: async (stage, cdb, installs) => {
    const database = await integrated(stage, cdb);
    database.copyTo(stage.folder('backup'), ['data']);
    await setKey(database);
    const host = await targetHost(stage, 'target', installs);
    const target = stage.database('TGT', { host, cdb });
    target.backup = stage.folder('backup');
    // The server parameter file is restored before, as the runbook says.
    Object.assign(target.control.parameters, database.control.parameters);
    copyFileSync(stage.host.environment.DKE_PKCS11_CONF ?? '', join(target.directory, 'pkcs11.toml'));
    return { play: { database, target }, after: () => expectReadable(target) };
  },
  'clone-pdb': async (stage, cdb) => {
    const database = await integrated(stage, cdb);
    const target = stage.database('TGT', { cdb, host: await stage.group.host(`${stage.groupName}-target`) });
    await configure(target, 'HSM');
    await open(target);
    await setKey(target);
    for (const each of [database, target]) mkdirSync(join(each.directory, 'exports'));
    const both = { clone: 'twin', pdb: 'sales', path: 'exports', owner: 'sh', encrypted_table: 'payments' };
    const typed = {
      database: { ...both, from: 'sales/', to: 'twin/' },
      'target-host': both,
      target: { ...both, from: 'twin/', to: 'plugged/' },
    };
    const after = async () => {
      await target.execute('ALTER SESSION SET CONTAINER = twin');
      expect(await rowsOf(target, 'payments')).toEqual([row('sales')]);
      const { id = 0 } = target.control.containers.find(({ name }) => name === 'TWIN') ?? {};
      const sources = database.control.containers.map((each) => database.keyOf(each.id));
      expect(sources).not.toContain(target.keyOf(id));
      expect(sources).not.toContain(await target.headerOf('PAYMENTS', id));
    };
    return { play: { database, target, typed }, after };
  },
  'upgrade-library': async (stage, cdb) => {
    const scene = await plainScene(stage, cdb);
    const { directory } = scene.play.database;
    writeFileSync(join(directory, 'dke-provider_1.0.0_amd64.deb'), 'a package');
    writeChecksums(directory, ['dke-provider_1.0.0_amd64.deb']);
    return scene;
  },
  destroy: async (stage, cdb) => {
    const { play, after } = await plainScene(stage, cdb);
    play.database.backup = stage.folder('backup');
    const { environment } = await (await stage.other()).host(`${stage.groupName}-another`);
    return { play: { ...play, typed: { host: { other_config: environment.DKE_PKCS11_CONF ?? '' } } }, after };
  },
};

let installedBase: string | undefined;
/** Where `dke provider install` has laid library and agent, once for all. */
const installed = async (site: Site): Promise<string> => {
  if (installedBase !== undefined) return installedBase;
  const base = join(site.folder, 'extapi');
  const owner = `${process.getuid?.()}:${process.getgid?.()}`;
  const places = ['--base', base, '--log-directory', site.logDirectory, '--unit-directory', join(site.folder, 'units')];
  const { code, stderr } = await runCommand(['provider', 'install', '--owner', owner, ...places]);
  expect(code, stderr).toBe(0);
  installedBase = base;
  return base;
};

const runbooks = readRunbooks();
/** What does not differ with containers is played without them only where the release has none. */
const isPlayed = (name: RunbookName, [release, , , cdb]: Variant): boolean =>
  runbooks[name].releases.includes(release) && (cdb || release === '11g' || runbooks[name].byContainers);

describe.each(variants)('for %s, on a simulated %s %s (containers: %s)', (...variant) => {
  const [release, profile, simulated, cdb] = variant;
  test.each(runbookNames.filter((name) => isPlayed(name, variant)))('%s', async (name) => {
    const { site } = world;
    if (site === undefined) throw new Error('ours has a service');
    // The commands of `dke` are the same for every release.
    const commands = simulated === '19c' && cdb;
    const bare = await setStage(world, readProfile(profile), simulated);
    const stage = commands ? { ...bare, host: { ...bare.host, base: await installed(site) } } : bare;
    try {
      const { play, after } = await scenes[name](stage, cdb, commands);
      const query = new URLSearchParams({ release, containers: cdb ? 'cdb' : 'non-cdb' });
      const application = stage.group.applicationOf(stage.host);
      const runbook = await site.api.call<FilledRunbook>(
        'GET',
        `/api/tde/applications/${application}/runbooks/${name}?${query}`,
      );
      await playRunbook(runbook, { ...play, stage, commands, promises: promises(application) });
      await after();
      if (commands) await expectPrinted(stage, runbook, application);
    } finally {
      await stage.end();
    }
  });
});

/** `dke runbook show` prints what the console shows. */
const expectPrinted = async (
  { world: { site } }: Stage,
  runbook: FilledRunbook,
  application: string,
): Promise<void> => {
  if (site === undefined) throw new Error('ours has a service');
  const token = join(site.folder, 'token');
  writeFileSync(token, site.token, { mode: 0o600 });
  const { stdout, stderr } = await runCommand(['runbook', 'show', runbook.name, application], {
    environment: { DKE_SERVER: site.server.url, DKE_CA_FILE: site.server.caFile, DKE_TOKEN_FILE: token },
  });
  const lines = stdout.split('\n').map((line) => line.trim());
  const typed = runbook.steps.flatMap(({ sql, shell, setting }) => [sql, shell, setting]);
  const expected = typed.flatMap((each) => each?.split('\n') ?? []).map((line) => line.trim());
  expect(
    expected.filter((line) => !lines.includes(line)),
    stderr,
  ).toEqual([]);
};

test('a LOCAL auto-login keystore that is copied to a standby does not open there, and the runbook shows it', async () => {
  const { site } = world;
  if (site === undefined) throw new Error('ours has a service');
  const stage = await setStage(world, readProfile('12c-19c'), '19c');
  try {
    const { play } = await scenes.standby(stage, false, false);
    await play.database.execute(
      `${administer} CREATE LOCAL AUTO_LOGIN KEYSTORE FROM KEYSTORE '${play.database.walletDirectory}' IDENTIFIED BY "${passwords.wallet}"`,
    );
    const application = stage.group.applicationOf(stage.host);
    const runbook = await site.api.call<FilledRunbook>('GET', `/api/tde/applications/${application}/runbooks/standby`);
    await expect(playRunbook(runbook, { ...play, stage, commands: false })).rejects.toThrow(
      'standby/check (19c) promises',
    );
    expect(play.target?.alertLog()).toContain('the local auto-login keystore is of another host');
  } finally {
    await stage.end();
  }
});
