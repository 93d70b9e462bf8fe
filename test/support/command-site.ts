// A service with all that the rows of command-runs.ts use, and a process that runs commands beside
// it.
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { makeProgram } from '../../server/cli/program.ts';
import { makeAuthority } from './authority.ts';
import { openCommands, runCommand } from './command.ts';
import { furnish, openWorld, type World } from './command-runs.ts';
import { allTexts, isGroup, type OfferedCommand, offeredIn, pageTexts } from './offered-commands.ts';
import { layPackages, samplePackage } from './package-shelf.ts';
import { type ServerProcess, startServerProcess } from './server-process.ts';
import { read } from './sources.ts';

const optionsOf = ({ options }: OfferedCommand): string => options.map(([{ long, short }]) => long ?? short).join(' ');
const nameOf = (each: OfferedCommand): string => `${each.path} ${optionsOf(each)}`.trim();
/** The ways to call commands in the blocks of a page that begin in these lines. */
export const offeredInBlocks = async (page: string, lines: readonly number[]): Promise<readonly string[]> => {
  const texts = pageTexts(page, read(page)).filter(({ kind, line }) => kind === 'typed' && lines.includes(line));
  return offeredIn(await makeProgram('1.0.0'), texts).map(nameOf);
};
/** What is offered, one for each way to call it: those with the fewest options first. */
export const offeredCatalogue = async (): Promise<readonly (readonly [string, OfferedCommand])[]> => [
  ...new Map(
    offeredIn(await makeProgram('1.0.0'), allTexts())
      .filter(({ command }) => !isGroup(command))
      .sort((one, other) => one.options.length - other.options.length)
      .map((each): [string, OfferedCommand] => [nameOf(each), each]),
  ),
];

export interface CommandSite {
  readonly server: ServerProcess;
  readonly world: World;
  /** What commands find the service by. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  remove(): Promise<void>;
}

export const openCommandSite = async (): Promise<CommandSite> => {
  const phrase = '[[root.providers]]\nname = "NAME"\ntype = "passphrase"\nfile = "NAME-passphrase"\n';
  const former = mkdtempSync(join(tmpdir(), 'dke-stopped-'));
  for (const name of ['first', 'second'])
    writeFileSync(join(former, `${name}-passphrase`), `${name} passphrase of five words\n`, { mode: 0o600 });
  const once = await startServerProcess({ folder: former, toml: phrase.replaceAll('NAME', 'first') });
  await once.stop();
  writeFileSync(
    join(former, 'dke.toml'),
    readFileSync(join(former, 'dke.toml'), 'utf8').replace(/^port = \d+/m, 'port = 0') +
      phrase.replaceAll('NAME', 'second'),
  );
  let copies = 0;
  const server = await startServerProcess({
    toml: 'packages_directory = "packages"\n[tls]\nclient_certificates = true\n[erasure]\ngather_ms = 20\n',
  });
  layPackages(join(server.folder, 'packages'), { [samplePackage]: 'a package' });
  const { folder } = server;
  const at = (name: string): string => join(folder, name);
  writeFileSync(at('token'), `${server.adminToken}\n`, { mode: 0o600 });
  const environment = {
    DKE_SERVER: server.url,
    DKE_CA_FILE: server.caFile,
    DKE_TOKEN_FILE: at('token'),
    DKE_DEBUG: undefined,
    XDG_CONFIG_HOME: at('config'),
  };
  const commands = openCommands({ environment, cwd: folder });
  const world = openWorld({
    dke: (args) => commands.run(args),
    alone: (args, until) => runCommand(args, { environment, cwd: folder, ...(until === undefined ? {} : { until }) }),
    write: async (name, content) => writeFileSync(at(name), content, { mode: 0o600 }),
    caFile: server.caFile,
    url: server.url,
    config: 'dke.toml',
    base: ['--base', 'providers', '--owner', 'OWNER', '--log-directory', 'logs', '--unit-directory', 'units'],
    remove: (path) => rmSync(path),
    stopped: (empty) => {
      copies += 1;
      const copy = join(folder, `stopped-${copies}`);
      cpSync(former, copy, { recursive: true });
      chmodSync(join(copy, 'dke-data'), 0o700);
      if (empty !== undefined) {
        rmSync(join(copy, 'dke-data'), { recursive: true });
        writeFileSync(join(copy, 'dke.toml'), '[server]\nhost = "127.0.0.1"\nport = 0\n');
      }
      // A copy of a service that runs does not start.
      rmSync(join(copy, 'dke-data/instance'), { force: true });
      return join(copy, 'dke.toml');
    },
    owner: `${userInfo().username}:${userInfo().username}`,
  });
  mkdirSync(at('units'));
  writeFileSync(at('authority.pem'), makeAuthority(folder, 'callers').pem);
  await furnish(world);
  return {
    ...{ server, world, environment },
    remove: async () => {
      commands.end();
      await server.remove();
      rmSync(former, { recursive: true, force: true });
    },
  };
};
