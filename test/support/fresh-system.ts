// A host that has a minimal Debian and nothing of the project: a root file system made by
// debootstrap from the archive that this system itself is installed from, kept in build/, and
// unpacked for each host. A host of databases has their packages of Debian in addition. Hosts run
// in namespaces of their own, so that port 443, users and processes are theirs, and all of it ends
// with them; hosts that are made from each other share a network.
//
// A started host has no init: `systemctl` is a script that runs what the unit says (ExecStart as
// User, with its state directory and its ambient capabilities) and supports only installed units. A
// booted host has systemd itself, in systemd-nspawn.
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { until } from './host.ts';
import { archive } from './old-system.ts';
import { type Outcome, run } from './tools.ts';

const release = 'bookworm';
const packages = ['ca-certificates', 'sudo', 'jq', 'openssl', 'curl', 'systemd', 'procps', 'rpm'];
/** The packages that the guides of docs/databases require. */
const databasePackages = [
  ...['openjdk-17-jdk-headless', 'derby-tools', 'libhsqldb-java'],
  ...['postgresql-15', 'pgbackrest', 'opensc', 'libengine-pkcs11-openssl', 'gocryptfs', 'fuse3'],
];
export type FreshKind = 'minimal' | 'databases';
const cacheOf = (kind: FreshKind): string =>
  resolve(import.meta.dirname, '../../build', `fresh-system-2-${release}${kind === 'minimal' ? '' : `-${kind}`}.tar`);

const systemctl = `#!/bin/bash
set -eu
action=$1 unit=\${!#}
file=/usr/lib/systemd/system/$unit.service
[ -e "$file" ] || { echo "Unit $unit.service could not be found." >&2; exit 5; }
of() { sed -n "s/^$1=//p" "$file" | head -n 1; }
user=$(of User) state=/var/lib/dke pid=/run/$unit.pid out=/run/$unit.out
case $action in
  stop)
    [ ! -e "$pid" ] || { kill "$(cat "$pid")" 2>/dev/null || true
      while kill -0 "$(cat "$pid")" 2>/dev/null; do sleep 0.1; done; rm "$pid"; } ;;
  start | enable)
    for each in $(of StateDirectory); do install -d -o "$user" -g "$user" -m "$(of StateDirectoryMode)" "/var/lib/$each"; done
    cd "$state"
    capability=$(of AmbientCapabilities | tr A-Z a-z | sed s/^cap_//)
    : >"$out"
    ( umask "$(of UMask)"
      setsid setpriv --reuid="$user" --regid="$user" --init-groups --inh-caps="+$capability" --ambient-caps="+$capability" \\
        $(of ExecStart) >>"$out" 2>>/run/$unit.log </dev/null &
      echo $! >"$pid"; wait $! || true; echo ended >>"$out" ) >/dev/null 2>&1 &
    until grep -qE '^(listening on|ended)' "$out"; do sleep 0.1; done
    grep -q '^listening on' "$out" || { cat /run/$unit.log >&2; exit 1; } ;;
  *) echo "systemctl of the tests knows no $action" >&2; exit 2 ;;
esac
`;

/** Runs `fill` in a folder, and keeps what it leaves there; answers why it could not. */
const keep = (kind: FreshKind, fill: (folder: string) => string | undefined): string | undefined => {
  const file = cacheOf(kind);
  if (existsSync(file)) return undefined;
  const work = `${file}.work`;
  rmSync(work, { recursive: true, force: true });
  const failure = fill(work);
  if (failure !== undefined) return failure;
  execFileSync('tar', ['--directory', work, '--create', '--file', `${file}.new`, '.']);
  renameSync(`${file}.new`, file);
  rmSync(work, { recursive: true });
  return undefined;
};

const outcomeOf = (program: string, args: readonly string[]): string | undefined => {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8' });
  if (error !== undefined) return `${program} is not installed`;
  return status === 0 ? undefined : `${program}: ${(stderr.trim() || stdout.trim()).split('\n').at(-1)}`;
};

const makeMinimal = (folder: string): string | undefined => {
  const site = archive();
  if (site === undefined) return 'no archive of Debian is configured (apt-get update)';
  return outcomeOf('debootstrap', ['--variant=minbase', `--include=${packages.join(',')}`, release, folder, site]);
};

const withDatabases = (folder: string): string | undefined => {
  mkdirSync(folder);
  execFileSync('tar', ['--directory', folder, '--extract', '--file', cacheOf('minimal')]);
  copyFileSync('/etc/resolv.conf', join(folder, 'etc/resolv.conf'));
  // Services of packages do not start here.
  writeFileSync(join(folder, 'usr/sbin/policy-rc.d'), '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  const install = `mount -t proc proc "$1/proc" && chroot "$1" sh -c '
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update && apt-get -qq install --yes --no-install-recommends ${databasePackages.join(' ')} && apt-get clean'`;
  return outcomeOf('unshare', ['--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', install, 'sh', folder]);
};

/**
 * Why such a system is not available here, or undefined. Creates the copies from which all hosts
 * are created.
 */
export const whyNoFreshSystem = (kinds: readonly FreshKind[] = ['minimal', 'databases']): string | undefined => {
  if (process.getuid?.() !== 0) return 'it takes root';
  if (spawnSync('unshare', ['--mount', '--net', '--pid', '--fork', 'true']).status !== 0)
    return 'this host does not permit namespaces';
  return keep('minimal', makeMinimal) ?? (kinds.includes('databases') ? keep('databases', withDatabases) : undefined);
};

export interface FreshSystem {
  readonly folder: string;
  /** A script in bash in the session of a user, whose variables and folder last. */
  type(user: string, script: string, input?: string): Promise<Outcome>;
  /** A program of the host, as root. */
  run: Inside;
  end(): Promise<void>;
}

/** In the host. */
export const homeOf = (user: string): string =>
  ({ root: '/root', postgres: '/var/lib/postgresql' })[user] ?? join('/home', user);

/** The process that holds the namespaces: the child of unshare. */
const childOf = (pid: number): number | undefined => {
  const [first] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
  return first === undefined ? undefined : Number(first);
};

/** Lets every user mount with FUSE, as udev does. */
const fuseForAll =
  'mknod -m 666 "$1/run/fuse" c 10 229 && { [ ! -e /dev/fuse ] || mount --bind "$1/run/fuse" "$1/dev/fuse"; }';

type Inside = (command: readonly string[], input?: string) => Promise<Outcome>;

/** Programs in the namespaces of a host. */
const enter =
  (holder: number): Inside =>
  (command, input) =>
    run(
      'nsenter',
      [
        ...[`--target=${holder}`, '--mount', '--uts', '--ipc', '--net', '--pid', '--cgroup', '--root', '--wd', '--'],
        ...command,
      ],
      {
        environment: {
          ...{ PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8' },
          TMPDIR: '/tmp',
        },
        ...(input !== undefined && { input }),
      },
    );

const typingIn =
  (inside: Inside): FreshSystem['type'] =>
  (user, script, input) => {
    const state = `/tmp/session-${user}`;
    const home = homeOf(user);
    const keep = `{ declare -p | grep -v "^declare -[^ ]*r"; echo "cd $PWD"; } > ${state}`;
    const text = `cd ${home}; export HOME=${home}; [ ! -e ${state} ] || . ${state}; trap '${keep}' EXIT; set -eux -o pipefail\n${script}`;
    return inside(['runuser', '-u', user, '--', 'bash', '-c', text], input);
  };

const endHost = async (folder: string, holder: number, outer: ChildProcess): Promise<void> => {
  // The first process of the host: all others end with it.
  process.kill(holder, 'SIGKILL');
  if (outer.exitCode === null && outer.signalCode === null) await once(outer, 'exit');
  rmSync(folder, { recursive: true, force: true });
};

export interface FreshOptions {
  /** Names of this host. */
  readonly names?: readonly string[];
  /** Users besides root. */
  readonly users?: readonly string[];
  /** Default: 'minimal'. */
  readonly kind?: FreshKind;
  /** A host whose network this one shares. */
  readonly beside?: number | undefined;
}

export const startFreshSystem = async (
  folder: string,
  { names = [], users = [], kind = 'minimal', beside }: FreshOptions = {},
): Promise<FreshSystem & { readonly holder: number }> => {
  mkdirSync(folder, { recursive: true });
  execFileSync('tar', ['--directory', folder, '--extract', '--file', cacheOf(kind)]);
  writeFileSync(join(folder, 'etc/hosts'), `127.0.0.1 localhost ${names.join(' ')}\n`);
  writeFileSync(join(folder, 'usr/local/bin/systemctl'), systemctl, { mode: 0o755 });
  // What a person answers at a terminal.
  writeFileSync(join(folder, 'etc/apt/apt.conf.d/yes'), 'APT::Get::Assume-Yes "true";\n');
  const network = beside === undefined ? ['--net'] : [];
  const inNetwork = beside === undefined ? [] : ['nsenter', `--target=${beside}`, '--net', '--'];
  const [program = '', ...args] = [
    ...inNetwork,
    ...['unshare', '--mount', ...network, '--pid', '--fork', '--kill-child', 'sh', '-c'],
    `mount --rbind /dev "$1/dev" && ${fuseForAll} && mount -t proc proc "$1/proc" && { ip link set lo up || true; } && touch "$1/run/ready" && exec chroot "$1" sleep infinity`,
    'sh',
    folder,
  ];
  const outer: ChildProcess = spawn(program, args, { stdio: 'ignore' });
  await until('the host is there', async () => (existsSync(join(folder, 'run/ready')) ? true : undefined));
  const holder = childOf(outer.pid ?? 0);
  if (holder === undefined) throw new Error('the host has ended');
  const inside = enter(holder);
  for (const each of users) {
    const { code, complaints } = await inside(['useradd', '--create-home', '--shell', '/bin/bash', each]);
    if (code !== 0) {
      process.kill(holder, 'SIGKILL');
      throw new Error(complaints);
    }
    appendFileSync(join(folder, 'etc/sudoers'), `${each} ALL=(ALL) NOPASSWD: ALL\n`);
  }
  return {
    folder,
    holder,
    type: typingIn(inside),
    run: inside,
    end: () => endHost(folder, holder, outer),
  };
};

/**
 * A host that has booted with systemd, and a network of its own. Answers why it cannot: the host of
 * the tests may not permit it.
 */
export const bootFreshSystem = async (folder: string, names: readonly string[]): Promise<FreshSystem | string> => {
  const whyNot = whyNoFreshSystem(['minimal']) ?? outcomeOf('systemd-nspawn', ['--version']);
  if (whyNot !== undefined) return whyNot;
  mkdirSync(folder, { recursive: true });
  execFileSync('tar', ['--directory', folder, '--extract', '--file', cacheOf('minimal')]);
  writeFileSync(join(folder, 'etc/hosts'), `127.0.0.1 localhost ${hostname()} ${names.join(' ')}\n`);
  writeFileSync(join(folder, 'etc/apt/apt.conf.d/yes'), 'APT::Get::Assume-Yes "true";\n');
  // The kernel permits the locking of memory, and nspawn alone would not.
  const outer = spawn(
    'systemd-nspawn',
    [
      ...['--quiet', '--directory', folder, '--register=no', '--keep-unit', '--private-network', '--boot'],
      ...['--console=pipe', '--system-call-filter=@memlock @pkey'],
    ],
    { stdio: 'ignore' },
  );
  // The first child of nspawn is not the host yet: it makes the one that is, and ends.
  const holder = await until('systemd has started', async () => {
    if (outer.exitCode !== null) return 0;
    const child = childOf(outer.pid ?? 0);
    if (child === undefined) return undefined;
    const { out } = await enter(child)(['systemctl', 'is-system-running', '--wait']);
    return ['running', 'degraded'].includes(out.trim()) ? child : undefined;
  }).catch((error: unknown) => {
    if (outer.pid !== undefined) process.kill(childOf(outer.pid) ?? outer.pid, 'SIGKILL');
    throw error;
  });
  if (holder === 0) return `systemd-nspawn ended with ${outer.exitCode}`;
  const inside = enter(holder);
  return { folder, type: typingIn(inside), run: inside, end: () => endHost(folder, holder, outer) };
};
