// A backup of the whole service, made and opened in this process. Those who attack it: a writer of
// the database (DBW), a writer of the place where backups are kept, who has a copy of the database
// (BW), and the holder of an old database with its root key (OF).
import {
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { core } from '../../../addon/core.ts';
import {
  draftOf,
  openBackupKey,
  readBackup,
  readBackupHead,
  writeBackup,
} from '../../../server/adapters/archives/backup-file.ts';
import { type Config, loadConfig } from '../../../server/app/config/config.ts';
import { createBackup, readBackupReceipts } from '../../../server/app/host/create-backup.ts';
import { backUpRootKey, verifyOffline } from '../../../server/app/host/offline.ts';
import { differingLines, restoreBackup, verifyBackup } from '../../../server/app/host/restore-backup.ts';
import { parseVerifierKey, type Verifier } from '../../../server/base/checkpoint.ts';
import { newId } from '../../../server/base/ids.ts';
import { formatRecoveryKey } from '../../../server/base/recovery-key.ts';
import { backupClosingText } from '../../../server/domain/service-backup.ts';
import { crashPoints } from '../../support/crash-points.ts';
import { sharedFolder } from '../../support/folders.ts';
import {
  administrator,
  dataObject,
  masterKey,
  type OpenedService,
  openTestService,
  registerCaller,
} from '../../support/open-service.ts';
import fc from '../../support/property.ts';
import { layReleased } from '../../support/released-services.ts';
import { makeRecoveryKey, makeSigner } from '../../support/snapshot-files.ts';
import { chooseSpoilt, putSpoilt } from '../../support/spoil.ts';
import { onSqlite, type StoredRows } from '../../support/test-store.ts';
import { sizeOf } from '../../support/tiers.ts';

const onDisk = onSqlite('a backup of its database file');
const ask = () => Promise.resolve(Buffer.from('a passphrase of the root key'));
const version = '1.0.0';
const toml = '[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n';

const folder = sharedFolder();
const at = (...names: readonly string[]): string => join(folder, ...names);
/** A folder as it was when everything was set up. */
let config: Config;
let opened: OpenedService;
let recovery: ReturnType<typeof makeRecoveryKey>;
let removed: ReturnType<typeof makeRecoveryKey>;
let verifier: Verifier;
let [backup, rootBackup] = ['', ''];
const doubts: string[] = [];
const differences: string[][] = [];

const database = (name = 'service'): string => at(name, 'dke-data', 'dke.db');
const onDatabase = <T>(path: string, work: (stored: DatabaseSync) => T): T => {
  const stored = new DatabaseSync(path);
  try {
    return work(stored);
  } finally {
    stored.close();
  }
};
const openingOf = (of: Verifier | undefined) => ({
  openKey: async (own: typeof core, preface: Parameters<typeof openBackupKey>[1]) =>
    openBackupKey(own, preface, recovery.id, recovery.key),
  trust: of && { verifier: of, logged: undefined },
  doubt: (why: string) => void doubts.push(why),
  rootBackup,
  ask,
});
const restoreTo = (machine: string, file: string, of: Verifier | undefined, applyConfiguration = true) =>
  restoreBackup(file, {
    ...openingOf(of),
    configPath: join(machine, 'dke.toml'),
    workingDirectory: machine,
    applyConfiguration,
    differs: (lines) => void differences.push([...lines]),
  });
const newMachine = (): string => mkdtempSync(at('machine-'));
/**
 * What DBW and BW have: the file, and the public recovery key. Its database is changed by `change`.
 */
const forge = async (
  name: string,
  change: (stored: DatabaseSync) => void | Promise<void>,
  configuration: string,
  head: Partial<Awaited<ReturnType<typeof readBackupHead>>['preface']> = {},
): Promise<string> => {
  const { preface } = await readBackupHead(backup);
  const copy = at(`${name}.db`);
  rmSync(copy, { force: true });
  onDatabase(database('stopped'), (stored) => stored.prepare('vacuum into ?').run(copy));
  const changed = new DatabaseSync(copy);
  await change(changed);
  changed.close();
  const attacker = makeSigner();
  const { recipients: _, ...named } = preface;
  rmSync(at(name), { force: true });
  await writeBackup(
    core,
    at(name),
    { ...named, ...head },
    [{ id: recovery.id, publicKey: recovery.publicKey }],
    [
      { name: 'configuration', from: Buffer.from(configuration) },
      { name: 'database', from: { path: copy } },
    ],
    {
      sign: async ({ backupId, digest }) => ({
        signer: attacker.verifier,
        signature: attacker.sign(backupClosingText({ backupId, digest, signer: attacker.verifier })),
      }),
    },
  );
  return at(name);
};

beforeAll(async () => {
  if (!onDisk) return;
  mkdirSync(at('service'));
  writeFileSync(at('service', 'dke.toml'), toml);
  config = loadConfig(at('service', 'dke.toml'), at('service'));
  opened = await openTestService({ folder: at('service'), toml });
  const { operations } = opened;
  [recovery, removed] = [makeRecoveryKey(), makeRecoveryKey()];
  for (const [name, { publicKey }] of Object.entries({ safe: recovery, 'a former safe': removed }))
    await operations.recoveryKeys.register(administrator, { name, publicKey: formatRecoveryKey(publicKey) });
  await operations.recoveryKeys.remove(administrator, removed.id, false);
  for (const name of ['first', 'second']) {
    const vault = await operations.vaults.create(administrator, { name });
    const key = await operations.keys.create(administrator, { name, vaultId: vault.id });
    await operations.keys.rotate(administrator, key.id);
    const endpoint = await operations.endpoints.create(administrator, { name, vaultId: vault.id, keyId: key.id });
    await operations.endpoints.addCredential(administrator, endpoint.id);
    const { caller } = await registerCaller(opened, name);
    await operations.tde.generateKey(caller, masterKey(`pages of ${name}`));
    await operations.tde.createObject(caller, dataObject(`note of ${name}`), Buffer.from('kept'));
    await operations.tenants.create(administrator, { name });
  }
  const parsed = parseVerifierKey((await operations.audit.log()).verifierKey);
  if (parsed === null) throw new Error('the log has a verifier key');
  verifier = parsed;
  [backup, rootBackup] = [at('service.backup'), at('root.backup')];
  await backUpRootKey(config, rootBackup, ask);
  // The service runs: it names the recipients, and signs.
  const made = await createBackup(config, version, backup, ask);
  expect(made.recoveryKeys).toEqual([recovery.id]);
  expect(parseVerifierKey(made.signer)).toMatchObject({ name: verifier.name, keyId: verifier.keyId });
});
afterAll(async () => opened?.stop());

describe.runIf(onDisk)('while the service runs', () => {
  test('a backup is not encrypted to a removed recovery key, and leaves nothing else behind', async () => {
    const { preface } = await readBackupHead(backup);
    expect(preface.recipients.map(({ recoveryKeyId }) => recoveryKeyId)).toEqual([recovery.id]);
    expect(preface.log).toBe(verifier.name);
    const left = readdirSync(config.dataDirectory).filter((name) =>
      /backup-(request|answer|under-way)|\.part$/.test(name),
    );
    expect(left).toEqual([]);
  });

  test.each([
    [
      'inserted',
      'insert into recovery_keys select ?, name, ?, created_at, null, row_mac, row_version from recovery_keys where id = ?',
    ],
    ['put over another one', 'update recovery_keys set id = ?, public_key = ? where id = ?'],
    ['with the public key of another one', 'update recovery_keys set public_key = coalesce(?2, ?1) where id = ?3'],
    ['set back to before its removal', 'update recovery_keys set removed_at = null where ?1 <> ?2 and ?3 <> id'],
  ])('DBW: a recovery key that was %s gets no backup', async (_, statement) => {
    const mine = makeRecoveryKey();
    const before = onDatabase(database(), (stored) => stored.prepare('select * from recovery_keys').all());
    try {
      onDatabase(database(), (stored) =>
        stored.prepare(statement).run(mine.id, mine.publicKey.toString('base64'), recovery.id),
      );
      await expect(createBackup(config, version, at('of-another'), ask)).rejects.toThrow(/was changed from outside/);
      expect(readdirSync(folder).filter((name) => name.startsWith('of-another'))).toEqual([]);
    } finally {
      onDatabase(database(), (stored) => {
        stored.exec('delete from recovery_keys');
        for (const row of before) {
          const columns = Object.keys(row);
          stored
            .prepare(`insert into recovery_keys (${columns}) values (${columns.map(() => '?')})`)
            .run(...(Object.values(row) as SQLInputValue[]));
        }
      });
    }
  });
});

describe.runIf(onDisk)('of a service that is stopped', () => {
  beforeAll(async () => {
    await opened.stop();
    cpSync(at('service'), at('stopped'), { recursive: true });
  });

  test('the command opens the root key, and signs', async () => {
    const made = await createBackup(config, version, at('cold.backup'), ask);
    expect(made.recoveryKeys).toEqual([recovery.id]);
    expect(await verifyBackup(config, at('cold.backup'), openingOf(verifier))).toMatchObject({
      authentic: true,
      depth: 'keys',
      findings: [],
    });
  });

  test('DBW: one that sets back a removed recovery key while it is stopped gets no backup', async () => {
    cpSync(at('stopped'), at('set-back'), { recursive: true });
    const own = loadConfig(at('set-back', 'dke.toml'), at('set-back'));
    onDatabase(database('set-back'), (stored) => stored.exec('delete from recovery_keys where removed_at is not null'));
    await expect(createBackup(own, version, at('set-back.backup'), ask)).rejects.toThrow(/dke quarantine show/);
    expect(existsSync(at('set-back.backup'))).toBe(false);
  });

  test('a backup that was verified with its root key leaves no key in memory', async () => {
    const before = core.memoryStatus().keys;
    const report = await verifyBackup(config, backup, openingOf(verifier));
    expect(report).toMatchObject({ authentic: true, depth: 'keys', findings: [] });
    expect(core.memoryStatus().keys).toBe(before);
  });

  test('BW: a forged backup is refused with the verifier key, and said to be not authentic without', async () => {
    const evil = `${toml}[snapshots]\nrestore_second_person = false\n# \u001b[2J\n`;
    const forged = await forge('forged', () => undefined, evil);
    const machine = newMachine();
    writeFileSync(join(machine, 'dke.toml'), toml);
    for (const attempt of [
      () => verifyBackup(config, forged, openingOf(verifier)),
      () => restoreTo(machine, forged, verifier, false),
    ])
      await expect(attempt()).rejects.toThrow(/not authentic: it was signed by dke\/audit\/test\+/);
    expect(readdirSync(machine)).toEqual(['dke.toml']);
    doubts.length = 0;
    differences.length = 0;
    expect(await verifyBackup(config, forged, openingOf(undefined))).toMatchObject({ authentic: false });
    expect(await restoreTo(machine, forged, undefined, false)).toMatchObject({ authentic: false });
    expect(doubts).toEqual(Array(2).fill(expect.stringContaining('no verifier key was given')));
    // Nothing of the forged configuration is applied, and its control characters are shown escaped.
    expect(readFileSync(join(machine, 'dke.toml'), 'utf8')).toBe(toml);
    expect(differences).toEqual([['+ [snapshots]', '+ restore_second_person = false', '+ # \\u{1b}[2J']]);
  });

  test('BW: the receipts of a restore say what the database has, not what the head of a forged backup says', async () => {
    const head = { records: 1, rootEpochs: [99] };
    const forged = await forge('forged head', () => undefined, toml, head);
    const machine = newMachine();
    cpSync(at('stopped', 'dke-data', 'root.key'), join(machine, 'root.key'));
    writeFileSync(join(machine, 'dke.toml'), `${toml}[root]\npath = "root.key"\n`);
    await restoreBackup(forged, {
      ...{ ...openingOf(undefined), rootBackup: undefined, differs: () => undefined, applyConfiguration: false },
      ...{ configPath: join(machine, 'dke.toml'), workingDirectory: machine },
    });
    const { preface } = await readBackupHead(backup);
    const receipt = readBackupReceipts(join(machine, 'dke-data')).at(-1);
    expect(receipt?.records).toBeGreaterThanOrEqual(preface.records);
    expect([receipt?.oldestRootEpoch, receipt?.rootEpoch]).toEqual([preface.rootEpochs[0], preface.rootEpochs.at(-1)]);
  });

  test('the configuration of a backup is applied only where that was asked for', async () => {
    const machine = newMachine();
    differences.length = 0;
    await expect(restoreTo(machine, backup, verifier, false)).rejects.toThrow(/--apply-configuration/);
    expect(differences).toEqual([
      toml
        .trimEnd()
        .split('\n')
        .map((line) => `+ ${line}`),
    ]);
    expect(readdirSync(machine)).toEqual([]);
    writeFileSync(join(machine, 'dke.toml'), '');
    await expect(restoreTo(machine, backup, verifier)).rejects.toThrow(/dke.toml exists/);
  });

  test('the lines that differ, with their number', () => {
    expect(differingLines('a\nb\nb\n', 'b\nc\na\n')).toEqual(['- b', '+ c']);
    expect(differingLines('same\n', 'same\n\n')).toEqual([]);
  });

  /** Tables that the restore itself writes: it marks the database as restored. */
  const written = new Set(['decisions', 'row_set', 'sqlite_sequence']);
  const contentOf = (path: string): Readonly<Record<string, readonly unknown[]>> =>
    onDatabase(path, (stored) => {
      const tables = stored.prepare("select name from sqlite_master where type = 'table' order by name").all();
      return Object.fromEntries(
        tables
          .map(({ name }) => String(name))
          .filter((name) => !written.has(name))
          .map((name) => [name, stored.prepare(`select * from ${name} order by 1, 2`).all()]),
      );
    });

  test('a restore and its verification change nothing of what was in the backup', async () => {
    const machine = newMachine();
    const restored = await restoreTo(machine, backup, verifier);
    expect(restored).toMatchObject({ authentic: true, findings: [] });
    expect(readFileSync(join(machine, 'dke.toml'), 'utf8')).toBe(toml);
    const own = loadConfig(join(machine, 'dke.toml'), machine);
    expect((await verifyOffline(own, ask)).findings).toEqual([]);
    const key = openBackupKey(core, (await readBackupHead(backup)).preface, recovery.id, recovery.key);
    const pieces: Buffer[] = [];
    await readBackup(core, backup, key, (name) =>
      name === 'database'
        ? { write: async (bytes) => void pieces.push(Buffer.from(bytes)), end: () => Promise.resolve() }
        : undefined,
    );
    core.release(key);
    writeFileSync(at('within.db'), Buffer.concat(pieces));
    expect(contentOf(join(machine, 'dke-data', 'dke.db'))).toEqual(contentOf(at('within.db')));
  });

  test('BW: each row that was changed in a backup is found, and the file refused with the verifier key', async () => {
    let changed = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(), { minLength: 6, maxLength: 6 }), async (choices) => {
        let what: string | undefined;
        const change = async (database: DatabaseSync): Promise<void> => {
          const stored: StoredRows = {
            query: async (statement, ...values) => database.prepare(statement).all(...values),
          };
          const spoilt = await chooseSpoilt(stored, choices);
          if (spoilt !== undefined && (await putSpoilt(stored, spoilt))) what = spoilt.what;
        };
        const forged = await forge('spoilt', change, toml);
        if (what === undefined) return;
        changed += 1;
        const machine = newMachine();
        await expect(restoreTo(machine, forged, verifier)).rejects.toThrow(/not authentic/);
        expect(readdirSync(machine)).toEqual([]);
        // Without it: no row is used before it was found.
        const findings = await verifyBackup(config, forged, openingOf(undefined)).then(
          (report) => report.findings,
          (error: Error) => [error.message],
        );
        expect(findings, what).not.toEqual([]);
      }),
      { numRuns: sizeOf('spoilt backups') },
    );
    expect(changed).toBeGreaterThan(0);
  });
});

describe.runIf(onDisk)('a crash at any write', () => {
  const place = at('crash');
  const put = (state: string): void => {
    rmSync(place, { recursive: true, force: true });
    renameSync(state, place);
  };

  test('of a backup: it is there, or it is not, and the next one has no trace of it', async () => {
    cpSync(at('stopped'), place, { recursive: true });
    const own = loadConfig(join(place, 'dke.toml'), place);
    const out = join(place, 'night.dkebackup');
    const { states } = await crashPoints(place, () => createBackup(own, version, out, ask));
    const found = new Set<string>();
    for (const state of states) {
      put(state);
      found.add(existsSync(out) ? 'there' : 'none');
      if (existsSync(out)) expect((await verifyBackup(own, out, openingOf(verifier))).findings).toEqual([]);
      else await createBackup(own, version, out, ask);
      await createBackup(own, version, join(place, 'next.dkebackup'), ask);
      const left = readdirSync(place, { recursive: true }).filter((name) =>
        /\.part|under-way|backup-failed|\.db\.backup|request|answer/.test(String(name)),
      );
      expect(left).toEqual([]);
    }
    expect([...found].toSorted()).toEqual(['none', 'there']);
  });

  test('of a backup that fails: the next one says that it has failed, so that no destroyed key waits for it', async () => {
    rmSync(place, { recursive: true, force: true });
    cpSync(at('stopped'), place, { recursive: true });
    const own = loadConfig(join(place, 'dke.toml'), place);
    const out = join(place, 'night.dkebackup');
    /** How each backup ended. */
    const ended = (): ReadonlyMap<string | null, string> =>
      new Map(readBackupReceipts(join(place, 'dke-data')).map(({ id, state }) => [id, state]));
    const { states } = await crashPoints(place, async () => {
      const running = createBackup(own, version, out, ask);
      // Another program takes the name in the meantime.
      writeFileSync(out, 'of another');
      await expect(running).rejects.toThrow();
    });
    expect([...ended().values()].at(-1)).toBe('failed');
    expect(readFileSync(out, 'utf8')).toBe('of another');
    let cutOff = 0;
    for (const state of states) {
      put(state);
      const names = readdirSync(place, { recursive: true }).map(String);
      const hasFailed = names.some((name) => /\.part$|backup-failed$/.test(name));
      const id = [...ended()].find(([, how]) => how === 'begun')?.[0];
      await createBackup(own, version, join(place, 'next.dkebackup'), ask);
      if (!hasFailed || id === undefined) continue;
      cutOff += 1;
      expect(ended().get(id)).toBe('failed');
    }
    expect(cutOff).toBeGreaterThan(3);
  });

  test('of a backup whose file another program has given a second name: destroyed keys wait for it', async () => {
    rmSync(place, { recursive: true, force: true });
    cpSync(at('stopped'), place, { recursive: true });
    const own = loadConfig(join(place, 'dke.toml'), place);
    const states = () => readBackupReceipts(join(place, 'dke-data')).map(({ state }) => state);
    const id = newId(Date.now());
    const draft = draftOf(join(place, 'night.dkebackup'), id);
    writeFileSync(draft, 'all of it');
    linkSync(draft, join(place, 'kept'));
    writeFileSync(join(place, 'dke-data', 'backup-under-way'), `${id} ${draft}`);
    await createBackup(own, version, join(place, 'next.dkebackup'), ask);
    expect(states()).not.toContain('failed');
    expect(existsSync(draft)).toBe(false);
  });

  test('of a backup that cannot begin: no destroyed key waits for it', async () => {
    const own = loadConfig(join(place, 'dke.toml'), place);
    await expect(createBackup(own, version, join(place, 'none', 'night.dkebackup'), ask)).rejects.toThrow();
    expect(readBackupReceipts(join(place, 'dke-data')).at(-1)?.state).toBe('failed');
  });

  test('of a restore: everything is there, or the next restore begins again; no service starts in between', async () => {
    rmSync(place, { recursive: true, force: true });
    mkdirSync(place);
    const { states } = await crashPoints(place, () => restoreTo(place, backup, verifier));
    const found = new Set<string>();
    for (const state of states) {
      put(state);
      const path = join(place, 'dke.toml');
      const isThere = existsSync(database('crash'));
      found.add(isThere ? 'there' : 'none');
      if (!isThere && existsSync(join(place, 'dke-data', 'restore-under-way')))
        await expect(openTestService({ folder: place, toml })).rejects.toThrow(
          /cut off: repeat it: dke backup restore FILE/,
        );
      if (!isThere) await restoreTo(place, backup, verifier);
      expect((await verifyOffline(loadConfig(path, place), ask)).findings).toEqual([]);
      const left = readdirSync(place, { recursive: true }).filter((name) =>
        /\.part|under-way|\.new/.test(String(name)),
      );
      expect(isThere ? left.filter((name) => !String(name).endsWith('restore-under-way')) : left).toEqual([]);
    }
    expect([...found].toSorted()).toEqual(['none', 'there']);
  });
});

test.runIf(onDisk)('a stopped service of an earlier version is not upgraded by a backup', async () => {
  const place = at('earlier');
  await layReleased('0003-rules-of-keys', place, null);
  writeFileSync(join(place, 'dke.toml'), toml);
  const own = loadConfig(join(place, 'dke.toml'), place);
  const before = readFileSync(database('earlier'));
  await expect(createBackup(own, version, at('earlier.backup'), ask)).rejects.toThrow(/is of another version/);
  expect(readFileSync(database('earlier')).equals(before)).toBe(true);
});
