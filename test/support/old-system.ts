// The root file system of an older release, for programs to run in: the C and C++ libraries, a
// shell and the basic tools of the release of Debian before this one, from the archive that this
// system itself is installed from. Or a copy of what DKE_OLD_SYSTEM names, such as an unpacked
// image of another distribution.
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Debian 11: glibc 2.31. Debian 10, with 2.28, is no longer in the archive. */
const release = 'bullseye';
/** With all that they depend on: enough to install packages of both kinds, with their scripts. */
const packages = [
  ...['libc6', 'libc-bin', 'libstdc++6', 'dash', 'bash', 'coreutils', 'diffutils', 'grep', 'sed', 'tar'],
  ...['ca-certificates', 'systemd', 'dpkg', 'rpm'],
];
const keys = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** The address of the archive of Debian. */
export const archive = (): string | undefined => {
  const format = ['--format', '$(SITE)', 'Created-By: Packages', 'Origin: Debian', 'Component: main'];
  const { stdout } = spawnSync('apt-get', ['indextargets', ...format], { encoding: 'utf8' });
  return stdout?.split('\n').find((line) => line !== '');
};

/** Fills the folder. Answers why that is not possible, or undefined. */
export const makeOldSystem = (folder: string, work: string): string | undefined => {
  const given = process.env.DKE_OLD_SYSTEM;
  if (given !== undefined) {
    cpSync(given, folder, { recursive: true, verbatimSymlinks: true });
  } else {
    const site = archive();
    if (site === undefined || !existsSync(keys)) return 'no archive of Debian is configured (apt-get update)';
    for (const each of ['lists/partial', 'cache/archives/partial']) mkdirSync(join(work, each), { recursive: true });
    writeFileSync(join(work, 'sources.list'), `deb [signed-by=${keys}] ${site} ${release} main\n`);
    writeFileSync(join(work, 'status'), '');
    const apt = (...args: string[]) =>
      spawnSync(
        'apt-get',
        [
          ...['-o', `Dir::Etc::sourcelist=${join(work, 'sources.list')}`, '-o', 'Dir::Etc::sourceparts=-'],
          ...['-o', `Dir::State::lists=${join(work, 'lists')}`, '-o', `Dir::State::status=${join(work, 'status')}`],
          ...['-o', `Dir::Cache=${join(work, 'cache')}`, '-o', 'APT::Sandbox::User=root'],
          ...args,
        ],
        { cwd: work, encoding: 'utf8' },
      );
    const download = ['install', '--yes', '--download-only', '--no-install-recommends', ...packages];
    for (const args of [['update'], download]) {
      const { status, stderr } = apt(...args);
      if (status !== 0) return `Debian's archive has no ${release} here: ${stderr.trim().split('\n').at(-1)}`;
    }
    const archives = join(work, 'cache/archives');
    for (const each of ['info', 'updates', 'alternatives'])
      mkdirSync(join(folder, 'var/lib/dpkg', each), { recursive: true });
    for (const name of readdirSync(archives).filter((each) => each.endsWith('.deb'))) {
      execFileSync('dpkg-deb', ['--extract', join(archives, name), folder]);
      // Writes the status entry that dpkg would write, so that dpkg can check whether the
      // dependencies of our packages are installed.
      const fields = execFileSync('dpkg-deb', ['--field', join(archives, name)], { encoding: 'utf8' });
      appendFileSync(join(folder, 'var/lib/dpkg/status'), `${fields.trim()}\nStatus: install ok installed\n\n`);
    }
    writeFileSync(join(folder, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n');
    writeFileSync(join(folder, 'etc/group'), 'root:x:0:\n');
  }
  for (const each of ['dev', 'proc', 'run', 'tmp', 'etc']) mkdirSync(join(folder, each), { recursive: true });
  writeFileSync(join(folder, 'etc/hosts'), '127.0.0.1 localhost\n');
  const { status, stderr } = spawnSync('unshare', enter(folder, ['/bin/sh', '-c', 'true']), { encoding: 'utf8' });
  return status === 0 ? undefined : `this host does not permit a change of the root directory: ${stderr.trim()}`;
};

/** For unshare: the mounts end with the program. */
const enter = (folder: string, command: readonly string[]): string[] => [
  '--mount',
  'sh',
  '-c',
  'mount --rbind /dev "$1/dev" && mount -t proc proc "$1/proc" && exec chroot "$@"',
  'sh',
  folder,
  ...command,
];

type Environment = Readonly<Record<string, string>>;
const environment = (more: Environment) => ({ PATH: '/usr/bin:/bin:/usr/sbin:/sbin', ...more });

export const runInside = (folder: string, command: readonly string[], more: Environment = {}): string =>
  execFileSync('unshare', enter(folder, command), { encoding: 'utf8', env: environment(more) });

export const startInside = (folder: string, command: readonly string[]): ChildProcess =>
  spawn('unshare', enter(folder, command), { stdio: ['ignore', 'pipe', 'inherit'], env: environment({}) });
