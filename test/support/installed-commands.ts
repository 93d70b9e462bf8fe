// Where the rows of command-runs.ts run on a host with the packages and systemd: beside the
// service of the unit, and as the user that the pages name for each command. A person has a token
// in a home of its own, `sudo -u dke` reads and writes the data of the service, root installs the
// library, and the OS user of a database uses it. Files that another user has written are handed
// over as the pages say: with the mode 600.
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeAuthority } from './authority.ts';
import { type CommandHost, installed, type Ran, type Rows, rows } from './command-runs.ts';
import { type FreshSystem, homeOf } from './fresh-system.ts';
import { layPackages } from './package-shelf.ts';

type User = 'root' | 'ada' | 'dke' | 'oracle';
const folders: Readonly<Record<User, string>> = {
  ada: homeOf('ada'),
  root: '/root',
  dke: '/var/lib/dke/desk',
  oracle: homeOf('oracle'),
};
/** Who types it; all others are of people. */
const typists: readonly (readonly [command: RegExp, user: User])[] = [
  [/^(?:backup|server|verify|store migrate|support bundle)\b/, 'dke'],
  [/^root (?:backup|restore|rewrap|add-provider|remove-provider)\b/, 'dke'],
  [/^provider (?:install|upgrade|rollback|uninstall)\b/, 'root'],
  [/^doctor (?:--config\b|--$)/, 'root'],
  [/^(?:provider check|support provider|agent|doctor --conf)/, 'oracle'],
];
/** Starts a command as another user, with nothing between it and its signals. */
const as = (user: User): readonly string[] => [
  ...['setpriv', `--reuid=${user}`, `--regid=${user === 'oracle' ? 'oinstall' : user}`, '--init-groups'],
];
const typistOf = (args: readonly string[]): User =>
  typists.find(([command]) => command.test(args.join(' ')))?.[1] ?? 'ada';

const packageName = (name: string, version: string): string => `${name}_${version}_amd64.deb`;
export interface InstalledOptions {
  /** Packages of both are in /root. The second one is newer. */
  readonly versions: readonly [string, string];
}

const stoppedToml = '[server]\nhost = "127.0.0.1"\nport = 0\n';
const provider = (name: string): string =>
  `[[root.providers]]\nname = "${name}"\ntype = "passphrase"\nfile = "${name}-passphrase"\n`;

/** What more can be done here than beside a service of a test. */
const rowsOf = (host: FreshSystem, { versions: [now, next] }: InstalledOptions): Rows => {
  const must = async (user: User, ...command: readonly string[]): Promise<string> => {
    const { code, out, complaints } = await host.run([
      'runuser',
      '-u',
      user,
      '--',
      'env',
      '-C',
      folders[user],
      ...command,
    ]);
    if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}: ${complaints}\n${out}`);
    return out;
  };
  const apt = (version: string) =>
    must('root', 'apt-get', 'install', '--allow-downgrades', `./${packageName('dke-provider', version)}`);
  return {
    'backup restore': {
      ...rows['backup restore'],
      ends: (given) => (given.includes('--apply-configuration') ? [5, /is not empty/] : undefined),
      why: 'replaces the data of the service: the page is typed on a new machine',
    },
    'provider check': {
      operands: async (w) => {
        await installed.operands?.(w, '', []);
        return [];
      },
      ends: (given) => (given.includes('--oracle-home') ? [12, /bin\/oracle/] : undefined),
      why: 'needs an installation of Oracle Database: scenario/provider-install',
    },
    'provider rollback': {
      ...installed,
      operands: async (w, config, given) => {
        await installed.operands?.(w, config, given);
        await apt(next);
        await must('root', 'dke', 'provider', 'upgrade', '--owner', w.owner);
        await apt(now);
        return [];
      },
    },
  };
};

/** A new service of the installed package, with users and files for the commands of all rows. */
export const installCommands = async (host: FreshSystem, options: InstalledOptions): Promise<CommandHost> => {
  const { versions } = options;
  const at = (path: string): string => join(host.folder, path);
  const root = async (script: string): Promise<string> => {
    const { code, out, complaints } = await host.run(['bash', '-euc', script]);
    if (code !== 0) throw new Error(`${script}\nended with ${code}: ${complaints}\n${out}`);
    return out;
  };
  const give = (user: User, path: string): Promise<string> =>
    root(`chown -R ${user}: '${path}'; chmod -R go= '${path}'`);
  layPackages(at('/var/lib/dke/packages'), { [packageName('dke-provider', versions[0])]: 'a package' });
  await root(`systemctl stop dke-server; rm -rf /var/lib/dke/data /var/lib/dke/administrator-token
    groupadd oinstall; useradd -m -g oinstall oracle; id ada >/dev/null 2>&1 || useradd -m ada
    install -d -o dke -g dke -m 700 ${folders.dke}; chown -R dke: /var/lib/dke/packages
    cat > /etc/dke/dke.toml <<'END'
[server]
host = "0.0.0.0"
port = 443
public_names = ["keys.example.com", "localhost"]
packages_directory = "/var/lib/dke/packages"
[data]
directory = "/var/lib/dke/data"
[log]
destination = "stderr"
[tls]
client_certificates = true
END
    systemctl start dke-server
    install -m 644 /var/lib/dke/data/tls.crt /etc/dke/ca.pem
    install -o ada -m 600 /var/lib/dke/administrator-token ${folders.ada}/token
    cd /root; apt-get install -y ./${packageName('dke-provider', versions[0])}`);

  const handOver = async (args: readonly string[], user: User): Promise<void> => {
    for (const name of args.filter((each) => /^[\w.-]+$/.test(each) && !existsSync(at(join(folders[user], each)))))
      for (const folder of [folders.ada, folders.dke, folders.oracle])
        if (existsSync(at(join(folder, name)))) {
          await root(`install -o ${user} -g "$(id -g ${user})" -m 600 '${folder}/${name}' '${folders[user]}/${name}'`);
          break;
        }
  };
  const people = {
    DKE_SERVER: 'https://keys.example.com',
    DKE_CA_FILE: '/etc/dke/ca.pem',
    DKE_TOKEN_FILE: `${folders.ada}/token`,
  };
  const commandOf = (user: User, args: readonly string[]): readonly string[] => {
    const inFolder = (...more: readonly string[]): readonly string[] => [
      ...['env', '-C', folders[user], `HOME=${folders[user]}`, ...more],
    ];
    if (user === 'dke') return [...inFolder(), 'sudo', '-u', 'dke', 'dke', ...args];
    const variables = user === 'ada' ? Object.entries(people).map(([name, value]) => `${name}=${value}`) : [];
    return [...inFolder(...variables), ...(user === 'root' ? [] : as(user)), 'dke', ...args];
  };
  const ran = async (command: readonly string[]): Promise<Ran> => {
    const { code, out, complaints } = await host.run(command);
    return { code, stdout: out, stderr: complaints };
  };
  const dke = async (args: readonly string[]): Promise<Ran> => {
    const user = typistOf(args);
    await handOver(args, user);
    return ran(commandOf(user, args));
  };
  const alone = async (args: readonly string[], says?: RegExp): Promise<Ran> => {
    const user = typistOf(args);
    await handOver(args, user);
    const script = `says=$1; shift; "$@" >/run/alone.out 2>/run/alone.err & pid=$!
      if [ -n "$says" ]; then
        until grep -qE "$says" /run/alone.out || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
        kill $pid 2>/dev/null
      fi
      wait $pid; code=$?; cat /run/alone.err >&2; cat /run/alone.out; exit $code`;
    return ran(['bash', '-c', script, 'alone', says?.source ?? '', ...commandOf(user, args)]);
  };

  writeFileSync(at(`${folders.ada}/authority.pem`), makeAuthority(at('/tmp'), 'callers').pem);
  const former = '/var/lib/dke/former';
  mkdirSync(at(former), { recursive: true });
  for (const name of ['first', 'second'])
    writeFileSync(at(`${former}/${name}-passphrase`), `${name} passphrase of five words\n`);
  writeFileSync(at(`${former}/dke.toml`), stoppedToml + provider('first'));
  await give('dke', former);
  await alone(['server', '--config', `${former}/dke.toml`], /^listening on/m);
  let copies = 0;
  return {
    ...{ dke, alone, caFile: '/etc/dke/ca.pem', url: people.DKE_SERVER, owner: 'oracle:oinstall' },
    config: '/etc/dke/dke.toml',
    base: ['--owner', 'OWNER'],
    rows: rowsOf(host, options),
    write: async (name, content) => {
      for (const user of ['ada', 'dke'] as const) {
        const path = join(folders[user], name);
        writeFileSync(at(path), content);
        await give(user, path);
      }
    },
    remove: (path) => rmSync(at(path)),
    stopped: async (empty) => {
      copies += 1;
      const copy = `/var/lib/dke/stopped-${copies}`;
      // A copy of a service that runs does not start.
      await root(`cp -a ${former} ${copy}; rm -f ${copy}/dke-data/instance`);
      if (empty !== undefined) rmSync(at(`${copy}/dke-data`), { recursive: true });
      writeFileSync(
        at(`${copy}/dke.toml`),
        stoppedToml + (empty === undefined ? provider('first') + provider('second') : ''),
      );
      return `${copy}/dke.toml`;
    },
  };
};
