// The content of the runbooks: what the specification asks for by release, that nothing in it stays
// unfilled, and that a file which is missing or wrong is refused by its name. What their statements
// do is in test/tde/runbooks.test.ts.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readRunbooks, runbookFolder } from '../../../server/adapters/runbooks/read-runbooks.ts';
import {
  containerNames,
  faultOfRunbook,
  fillRunbook,
  type Release,
  type RunbookName,
  type RunbookValues,
  releaseNames,
  runbookNames,
  runbookValues,
} from '../../../server/domain/runbooks.ts';

const runbooks = readRunbooks();
const warningsOf = (name: RunbookName): string => runbooks[name].warnings.map(({ text }) => text).join(' ');
const values = Object.fromEntries(Object.keys(runbookValues).map((name) => [name, `(${name})`])) as RunbookValues;
const fill = (name: RunbookName, release: Release, containers: 'cdb' | 'non-cdb' = 'cdb') =>
  fillRunbook(runbooks, name, release, release === '11g' ? 'non-cdb' : containers, values);
const textOf = (name: RunbookName, release: Release, containers?: 'cdb' | 'non-cdb'): string =>
  JSON.stringify(fill(name, release, containers)).replaceAll('\\"', '"');

const variants = runbookNames.flatMap((name) =>
  releaseNames.flatMap((release) =>
    containerNames.flatMap((containers) =>
      faultOfRunbook(runbooks, name, release, containers) === undefined ? [{ name, release, containers }] : [],
    ),
  ),
);

describe('a runbook', () => {
  test.each(variants)('$name on $release ($containers) has steps, and no place stays unfilled', (variant) => {
    const { steps, title, summary } = fillRunbook(runbooks, variant.name, variant.release, variant.containers, values);
    expect(steps.length).toBeGreaterThan(2);
    expect(JSON.stringify(steps)).not.toMatch(/\{[a-z]\w*\}/i);
    expect(`${title}${summary}`).not.toContain('{');
    expect(new Set(steps.map(({ id }) => id)).size).toBe(steps.length);
    for (const step of steps)
      expect(step.sql ?? step.shell ?? step.text ?? step.command, `${step.id} says what to do`).toBeTruthy();
  });

  test.each(variants)('$name on $release ($containers) has a literal password in each statement', (variant) => {
    const text = JSON.stringify(fillRunbook(runbooks, variant.name, variant.release, variant.containers, values).steps);
    expect(text).not.toContain('EXTERNAL STORE');
    for (const [, what = ''] of text.matchAll(/IDENTIFIED BY (\S+)/g)) expect(what).toMatch(/^\\+"<\w+>\\+"/);
  });

  test('reverse migration is refused on 11g R2, with the release that it needs', () => {
    expect(faultOfRunbook(runbooks, 'reverse-migrate', '11g', 'non-cdb')).toContain('12c to 18c or higher');
    expect(warningsOf('reverse-migrate')).toContain('11g R2 has no reverse migration');
  });

  test('11g R2 has no containers', () => {
    expect(faultOfRunbook(runbooks, 'rotate', '11g', 'cdb')).toContain('no container databases');
  });

  test('a rotation names every container of a CDB, and is followed by a restart', () => {
    expect(textOf('rotate', '19c')).toContain('CONTAINER = ALL');
    expect(textOf('rotate', '19c', 'non-cdb')).not.toContain('CONTAINER = ALL');
    expect(textOf('rotate', '11g')).toContain('ALTER SYSTEM SET ENCRYPTION KEY IDENTIFIED BY');
    for (const release of releaseNames) expect(textOf('rotate', release)).toContain('SHUTDOWN IMMEDIATE');
  });

  test('a migration names the keystores as the release requires', () => {
    expect(textOf('migrate', '19c')).toContain("TDE_CONFIGURATION = 'KEYSTORE_CONFIGURATION=HSM|FILE' SCOPE = BOTH");
    expect(textOf('migrate', '19c')).not.toContain('ENCRYPTION_WALLET_LOCATION');
    for (const release of ['11g', '12c-18c'] as const)
      expect(textOf('migrate', release)).toContain('ENCRYPTION_WALLET_LOCATION');
    expect(textOf('migrate', '11g')).toContain('orapki');
    expect(textOf('migrate', '12c-18c')).toContain('WITH BACKUP USING');
  });

  const restart = /^SHUTDOWN IMMEDIATE;\s+STARTUP;/;
  const history = /KEY_ID, CREATION_TIME, ACTIVATION_TIME FROM V\$ENCRYPTION_KEYS ORDER BY CREATION_TIME DESC/;
  const wallet = /FROM V\$ENCRYPTION_WALLET/;
  const audit = /^dke audit list/;
  const backUp = /^cp -p \S+ewallet\.p12/;
  const setAside = /mv \S+cwallet\.sso/;
  const both = /KEYSTORE_CONFIGURATION=HSM\|FILE' SCOPE = BOTH/;
  const onlyFile = /KEYSTORE_CONFIGURATION=FILE' SCOPE = BOTH/;
  const sqlnet = /only when it starts/;
  const openBoth = /KEYSTORE OPEN IDENTIFIED BY [^;]*;\s+SELECT WRL_TYPE, STATUS/;
  const migrate = /SET ENCRYPTION KEY IDENTIFIED BY .* MIGRATE USING .* WITH BACKUP USING/;
  const reverse = /SET ENCRYPTION KEY IDENTIFIED BY .* REVERSE MIGRATE USING .* WITH BACKUP USING/;
  const library = /^dke provider install /;
  const config = /chmod 600/;
  const password = /ALTER KEYSTORE PASSWORD/;
  test.each<readonly [RunbookName, Release, readonly RegExp[]]>([
    ['rotate', '19c', [/SET KEY IDENTIFIED BY .* CONTAINER = ALL/, history, wallet, restart]],
    [
      'migrate',
      '11g',
      [backUp, setAside, /^orapki wallet change_pwd/, sqlnet, restart, wallet, /MIGRATE USING/, audit],
    ],
    ['migrate', '12c-18c', [backUp, setAside, password, sqlnet, restart, openBoth, migrate, history, audit]],
    [
      'migrate',
      '19c',
      [backUp, setAside, password, both, openBoth, migrate, history, audit, /CREATE AUTO_LOGIN KEYSTORE/],
    ],
    ['reverse-migrate', '12c-18c', [setAside, openBoth, sqlnet, restart, reverse, wallet]],
    ['reverse-migrate', '19c', [setAside, openBoth, onlyFile, reverse, onlyFile, wallet]],
    ['standby', '19c', [/ewallet\.p12 \S+cwallet\.sso/, library, config, both, wallet]],
    ['restore', '19c', [library, config, both, /^RESTORE DATABASE/, /RECOVER DATABASE;\s+ALTER DATABASE OPEN/, wallet]],
    [
      'clone-pdb',
      '19c',
      [
        /^CREATE PLUGGABLE DATABASE \S+ FROM .* FILE_NAME_CONVERT .* KEYSTORE IDENTIFIED BY/,
        wallet,
        /DBA_ENCRYPTED_COLUMNS/,
        /UNPLUG INTO '\S+\.pdb'/,
        /^scp /,
        /USING '\S+' COPY FILE_NAME_CONVERT .* KEYSTORE IDENTIFIED BY/,
        /KEYSTORE OPEN/,
        /SELECT COUNT/,
      ],
    ],
    [
      'upgrade-library',
      '19c',
      [/SHA256SUMS/, /^SHUTDOWN/, /^dke provider upgrade/, /^STARTUP/, /\/\*\.log$/, /^dke provider rollback/],
    ],
  ])('%s on %s has its steps in their order', (name, release, expected) => {
    const texts = fill(name, release).steps.map(
      ({ sql, shell, command, text }) => sql ?? shell ?? command ?? text ?? '',
    );
    const order = expected.map((each) => each.source);
    const found: string[] = [];
    for (const text of texts)
      while (found.length < expected.length && expected[found.length]?.test(text) === true)
        found.push(order[found.length] ?? '');
    expect(found).toEqual(order);
  });

  test('what protects backups and exports is said where keys move', () => {
    for (const name of ['migrate', 'reverse-migrate', 'restore', 'destroy'] as const)
      expect(warningsOf(name)).toContain('ENCRYPTION_MODE=TRANSPARENT');
    for (const name of ['rotate', 'migrate', 'reverse-migrate', 'clone-pdb'] as const)
      expect(warningsOf(name)).toContain('ORA-00988');
  });

  test('a destruction begins with a check of who shares the access_guid', () => {
    expect(fill('destroy', '19c').steps[0]?.id).toBe('access-guid');
    expect(textOf('destroy', '19c')).toContain('--distinct');
  });

  test('differs with containers where it says so, and nowhere else', () => {
    const differs = runbookNames.filter(
      (name) =>
        textOf(name, '19c', 'cdb').replace('"containers":"cdb"', '') !==
        textOf(name, '19c', 'non-cdb').replace('"containers":"non-cdb"', ''),
    );
    expect(differs).toEqual(runbookNames.filter((name) => runbooks[name].byContainers));
  });

  test('asks 11g R2 for no column or view that came later', () => {
    for (const name of runbookNames.filter((each) => runbooks[each].releases.includes('11g')))
      expect(textOf(name, '11g')).not.toMatch(/WALLET_TYPE|WALLET_ORDER|V\$ENCRYPTION_KEYS|ADMINISTER KEY MANAGEMENT/);
  });

  test('says where a fact comes from that is not from the specification', () => {
    expect(fill('migrate', '19c').warnings.join(' ')).toContain(
      'it failed with ORA-00600. Back up the service instead. (Source: seen in public logs: Cosmian KMS, change log, tests on 23ai Free.)',
    );
  });
});

describe('the files of the runbooks', () => {
  const refused = (change: (folder: string) => void): string => {
    const folder = mkdtempSync(join(tmpdir(), 'dke-runbooks-'));
    try {
      cpSync(runbookFolder, folder, { recursive: true });
      change(folder);
      readRunbooks(folder);
      return 'read';
    } catch (error) {
      return (error as Error).message.replaceAll(folder, '');
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
  const edit = (name: string, from: string, to: string) => (folder: string) => {
    const path = join(folder, `${name}.toml`);
    const text = readFileSync(path, 'utf8');
    expect(text).toContain(from);
    writeFileSync(path, text.replace(from, to));
  };

  test('are read as they lie', () => expect(refused(() => undefined)).toBe('read'));
  test.each([
    ['is missing', (folder: string) => rmSync(join(folder, 'migrate.toml')), /\/migrate\.toml cannot be read/],
    ['is not TOML', edit('rotate', 'title =', 'title'), /\/rotate\.toml cannot be read/],
    [
      'has an unknown place',
      edit('rotate', '{masterKey}', '{masterkey}'),
      /\/rotate\.toml is not valid.*unknown place/s,
    ],
    ['has an unknown member', edit('check', 'downtime', 'downtimes'), /\/check\.toml is not valid/],
    ['has no grade', edit('shared', 'evidence = "seen"\n', ''), /\/shared\.toml is not valid/],
    [
      'names no source',
      edit('shared', 'source = "Cosmian KMS, change log, tests on 23ai Free"\n', ''),
      /\/shared\.toml is not valid.*needs a source/s,
    ],
    ['has an unknown grade', edit('shared', '"seen"', '"rumour"'), /\/shared\.toml is not valid/],
    [
      'takes a step that is not there',
      edit('check', 'use = "keystore-open"', 'use = "keystore"'),
      /"check" takes "keystore"/,
    ],
  ])('are refused when one %s', (_, change, message) => {
    expect(refused(change)).toMatch(message);
  });

  test('are next to the compiled code, for the packages', () => {
    const built = join(runbookFolder, '../../../../dist/server/adapters/runbooks/runbooks');
    expect(readRunbooks(built)).toEqual(runbooks);
  });
});
