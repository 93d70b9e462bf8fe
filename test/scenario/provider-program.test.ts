// Programs with the setuid or setgid bit, as `oracle` is with Grid Infrastructure: for each kind of
// process and each file that DKE_PKCS11_CONF can name, `dke provider check` says what the library
// then really does, with the library's reason. A copy of the probe is the program, below an /etc of
// its own, as the database's user and as another one. Needs root.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { commandPath } from '../support/command.ts';

const [oracle, oinstall, asmadmin, stranger] = [54_321, 54_322, 54_323, 54_399];
const owner = `${oracle}:${oinstall}`;
const usual = '/etc/dke/pkcs11.toml';
const build = resolve(import.meta.dirname, '../../build/provider/1.0');
// Not in memory: there, such bits are often ignored.
const parent = '/var/tmp';
const why =
  process.getuid?.() !== 0
    ? 'other users need root'
    : execFileSync('findmnt', ['-no', 'OPTIONS', '--target', parent], { encoding: 'utf8' }).includes('nosuid')
      ? `${parent} allows no setuid program`
      : null;
if (why !== null) console.log(`skipped: programs with the setuid bit: ${why}`);

const folder = why === null ? mkdtempSync(join(parent, 'dke-program-')) : parent;
afterAll(() => {
  if (why !== null) return;
  rmSync(folder, { recursive: true, force: true });
  for (const user of [oracle, stranger]) rmSync(`/tmp/dke-pkcs11-${user}`, { recursive: true, force: true });
});
const at = (path: string): string => join(folder, path);
const put = (path: string, uid: number, mode: number, text = ''): void => {
  if (text !== '') writeFileSync(at(path), text);
  chownSync(at(path), uid, oinstall);
  chmodSync(at(path), mode);
};
const makeFolder = (path: string, uid: number, mode = 0o755): void => {
  mkdirSync(at(path), { recursive: true });
  put(path, uid, mode);
};
const program = at('bin/oracle');
const library = at('library/libdke_pkcs11.so');
const logs = (): string => at('logs');

/** Every configuration has a log of its own: what is there shows which one a process has used. */
const config = (path: string, mode = 0o600, uid = oracle): void => {
  const log = path.replaceAll('/', '_');
  makeFolder(`logs/${log}`, 0, 0o777);
  const fields = [
    'server_url = "https://127.0.0.1:1/tde/v1/g/a"',
    'access_token = "g"',
    `log_dir = "${join(logs(), log)}"`,
  ];
  put(`etc/${path}`, uid, mode, `${fields.join('\n')}\n`);
};
const inOwnEtc = (...command: string[]): string[] => [
  ...['--mount', '--propagation', 'private', 'sh', '-c', 'mount --bind "$0" /etc && exec "$@"', at('etc'), ...command],
];

/**
 * Which configuration a process of the program uses, and the reason if it is another one than the
 * caller names.
 */
const libraryUses = (conf: string, user: number): string => {
  for (const log of execFileSync('ls', [logs()], { encoding: 'utf8' }).trim().split('\n'))
    rmSync(join(logs(), log, 'library.log'), { force: true });
  const ids = [`--reuid=${user}`, `--regid=${user === oracle ? oinstall : user}`, '--clear-groups'];
  spawnSync('unshare', inOwnEtc('setpriv', ...ids, program, library, '--call'), { env: { DKE_PKCS11_CONF: conf } });
  const said = execFileSync('sh', ['-c', `cat ${logs()}/*/library.log 2>/dev/null || true`], { encoding: 'utf8' });
  const chosen = / has chosen (\S+) by DKE_PKCS11_CONF/.exec(said);
  if (chosen !== null) return `use ${chosen[1]}`;
  const ignored = / is ignored: .* and of the file, (.*)\. (\S+) is used/.exec(said);
  if (ignored !== null) return `ignore ${conf} (${ignored[1]}) and use ${ignored[2]}`;
  // Not marked as secure: the log that was written is that of the file which the variable names.
  const [used = 'nothing'] = [conf, usual].filter((path) => said !== '' && hasLog(path));
  return `use ${used}`;
};
const hasLog = (path: string): boolean =>
  spawnSync('test', ['-s', join(logs(), path.slice('/etc/'.length).replaceAll('/', '_'), 'library.log')]).status === 0;

interface Part {
  readonly what: string;
  readonly results: readonly { readonly id: string; readonly evidence: string; readonly fix?: string }[];
}
/** What the command says of each file, in one run. */
const checkSays = (paths: readonly string[], ...named: string[]): ReadonlyMap<string, string> => {
  const args = ['provider', 'check', '--base', at('base'), '--owner', owner, ...named, '-o', 'json'];
  const all = [...args, ...paths.flatMap((path) => ['--conf', path])];
  const { stdout } = spawnSync('unshare', inOwnEtc(process.execPath, commandPath, ...all), { encoding: 'utf8' });
  const parts = JSON.parse(stdout) as readonly Part[];
  return new Map(
    paths.map((path) => [
      path,
      parts.find(({ what }) => what === `the database of ${path}`)?.results.find(({ id }) => id === 'program')
        ?.evidence ?? `nothing of ${path}: ${stdout}`,
    ]),
  );
};

const kinds = [
  { user: oracle, who: `processes that ${oracle} starts` },
  { user: stranger, who: 'processes that other OS users start' },
] as const;
const ofKind = (evidence: string, who: string): string =>
  new RegExp(`(?:${who}|every process)(?: \\(AT_SECURE\\))? uses? ([^\\s;]+)|${who} \\(AT_SECURE\\) (ignore [^;]*)`)
    .exec(evidence)
    ?.slice(1)
    .map((found, i) => (i === 0 && found !== undefined ? `use ${found}` : (found ?? '')))
    .join('') ?? evidence;

describe.runIf(why === null)('dke provider check says what the library of a setuid or setgid program does', () => {
  if (why === null) {
    chmodSync(folder, 0o755);
    for (const each of [
      'bin',
      'library',
      'base',
      'etc',
      'etc/dke',
      'etc/listed',
      'etc/open',
      'etc/dke/shared',
      'etc/other',
    ])
      makeFolder(each, 0);
    for (const each of ['etc/open', 'etc/dke/shared']) chmodSync(at(each), 0o777);
    copyFileSync(join(build, 'dke-probe'), program);
    copyFileSync(join(build, 'libdke_pkcs11.so'), library);
    put('library/dke-agent', 0, 0o755, '#!/bin/sh\nexit 3\n');
    for (const each of [
      'dke/pkcs11.toml',
      'dke/erp.toml',
      'listed/crm.toml',
      'open/hr.toml',
      'other/own.toml',
      'dke/shared/bi.toml',
    ])
      config(each);
    config('dke/read-only.toml', 0o400);
    config('dke/group.toml', 0o640);
    config('dke/of-root.toml', 0o600, 0);
    symlinkSync('../other/own.toml', at('etc/dke/link.toml'));
    put('etc/dke/config-folders', 0, 0o644, '# directories\n/none\n/etc/listed\n/etc/open\n');
  }
  const accepted = ['/etc/dke/erp.toml', '/etc/dke/read-only.toml', '/etc/listed/crm.toml'];
  const refused = ['group', 'of-root', 'link', 'none'].map((name) => `/etc/dke/${name}.toml`);
  const elsewhere = ['/etc/dke/shared/bi.toml', '/etc/open/hr.toml', '/etc/other/own.toml'];

  const [oneUser, everyUser] = [kinds.slice(0, 1), kinds];
  test.each([
    ['6751 of another group', 0o6751, asmadmin, [...accepted, ...refused, ...elsewhere, usual], everyUser],
    ['6751 of the group of the database’s user', 0o6751, oinstall, [...accepted, ...elsewhere], everyUser],
    ['755', 0o755, oinstall, elsewhere, oneUser],
  ] as const)('with mode %s', (_, mode, group, files, asked) => {
    chownSync(program, oracle, group);
    chmodSync(program, mode);
    const said = checkSays(files, '--program', program);
    const compared = files.flatMap((path) => asked.map((kind) => ({ path, ...kind })));
    const check = compared.map(({ path, who }) => `${who}: ${ofKind(said.get(path) ?? '', who)}`);
    expect(check).toEqual(compared.map(({ path, user, who }) => `${who}: ${libraryUses(path, user)}`));
    for (const path of files.filter((each) => accepted.includes(each))) expect(said.get(path)).not.toContain('ignore');
  });
  test('with the setgid bit alone, in the home of a database; a list that others can write names nothing', () => {
    chownSync(program, oracle, asmadmin);
    chmodSync(program, 0o2751);
    chmodSync(at('etc/dke/config-folders'), 0o666);
    const said = checkSays(['/etc/listed/crm.toml', ...accepted.slice(0, 1)], '--oracle-home', folder);
    for (const [path, evidence] of said) expect(ofKind(evidence, kinds[0].who)).toBe(libraryUses(path, oracle));
    expect(said.get('/etc/listed/crm.toml')).toContain('below a directory that /etc/dke/config-folders names');
  });
});
