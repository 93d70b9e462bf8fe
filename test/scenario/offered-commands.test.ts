// Every command that DKE offers (test/support/offered-commands.ts) is run as a process beside a real
// service, with what its text leaves to the reader: it does its work, or is refused as its row says.
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeProgram } from '../../server/cli/program.ts';
import { makeAuthority } from '../support/authority.ts';
import { type CommandProcess, openCommands, runCommand } from '../support/command.ts';
import { argumentsOf, endOf, furnish, openWorld, rowOf, type World } from '../support/command-runs.ts';
import { allTexts, isGroup, type OfferedCommand, offeredIn } from '../support/offered-commands.ts';
import { layPackages, samplePackage } from '../support/package-shelf.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';

/** One for each way to call it. */
const optionsOf = ({ options }: OfferedCommand): string => options.map(([{ long, short }]) => long ?? short).join(' ');
const catalogue = [
  ...new Map(
    offeredIn(await makeProgram('1.0.0'), allTexts())
      .filter(({ command }) => !isGroup(command))
      .sort((one, other) => one.options.length - other.options.length)
      .map((each): [string, OfferedCommand] => [`${each.path} ${optionsOf(each)}`.trim(), each]),
  ),
].sort(([one], [other]) => (one < other ? -1 : 1));

let server: ServerProcess;
let world: World;
let former: string;
let copies = 0;
let commands: CommandProcess;
beforeAll(async () => {
  const phrase = '[[root.providers]]\nname = "NAME"\ntype = "passphrase"\nfile = "NAME-passphrase"\n';
  former = mkdtempSync(join(tmpdir(), 'dke-stopped-'));
  for (const name of ['first', 'second'])
    writeFileSync(join(former, `${name}-passphrase`), `${name} passphrase of five words\n`, { mode: 0o600 });
  const once = await startServerProcess({ folder: former, toml: phrase.replaceAll('NAME', 'first') });
  await once.stop();
  writeFileSync(
    join(former, 'dke.toml'),
    readFileSync(join(former, 'dke.toml'), 'utf8').replace(/^port = \d+/m, 'port = 0') +
      phrase.replaceAll('NAME', 'second'),
  );
  server = await startServerProcess({
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
  commands = openCommands({ environment, cwd: folder });
  world = openWorld({
    dke: (args) => commands.run(args),
    alone: (args, until) => runCommand(args, { environment, cwd: folder, ...(until === undefined ? {} : { until }) }),
    write: async (name, content) => writeFileSync(at(name), content, { mode: 0o600 }),
    caFile: server.caFile,
    url: server.url,
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
});
afterAll(async () => {
  commands?.end();
  await server?.remove();
  rmSync(former, { recursive: true, force: true });
});

let done = 0;
test.each(catalogue)('%s', async (_, offered) => {
  const { until, alone } = rowOf(offered);
  const args = await argumentsOf(world, offered);
  const [code, says] = until === undefined ? endOf(rowOf(offered), args) : [0, until];
  const ran = alone === true || until !== undefined ? await world.alone(args, until) : await world.dke(args);
  expect([ran.code, ran.code === code ? '' : (ran.stderr || ran.stdout).slice(0, 300)], args.join(' ')).toEqual([
    code,
    '',
  ]);
  expect(ran.stderr + ran.stdout).toMatch(says);
  expect(ran.stderr).not.toMatch(/^\s+at |unknown option|too many arguments/m);
  done += 1;
});

test('all of them were run', () => {
  console.info(`${done} of ${catalogue.length} commands were run`);
  expect(done).toBe(catalogue.length);
});
