// Every command of the catalogue where its surroundings fail it: answers that are not the
// service's, a full disk behind standard output and behind `--out`, a configuration that its user
// cannot read, no terminal for its question, and Ctrl-C at the question. It ends with words that
// say what is wrong and what to do; never with a stack, in the middle of a question, or with a
// secret that is in no file.
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, closeSync, existsSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exitCodes } from '../../server/cli/terminal/exit-codes.ts';
import { type CommandProcess, type CommandRun, commandPath, openCommands, runCommand } from '../support/command.ts';
import { argumentsOf, rowOf } from '../support/command-runs.ts';
import { type CommandSite, offeredCatalogue, openCommandSite } from '../support/command-site.ts';
import { type GarblingFront, garbled, openGarblingFront } from '../support/garbling-front.ts';
import type { OfferedCommand } from '../support/offered-commands.ts';
import { mountSmallDisk, type SmallDisk } from '../support/small-disk.ts';
import { isLong } from '../support/tiers.ts';

const all = await offeredCatalogue();
/** One way to call each, and in the long tier every way: the one with the most options. */
const catalogue = (isLong ? all : [...new Map(all.map(([, offered]) => [offered.path, offered])).entries()]).toSorted(
  ([one], [other]) => (one < other ? -1 : 1),
);
const isEndless = (offered: OfferedCommand): boolean =>
  rowOf(offered).until !== undefined || rowOf(offered).alone === true;
const has = ({ command }: OfferedCommand, name: string): boolean => command.options.some(({ long }) => long === name);
const hasOption = (name: string) => (each: readonly [string, OfferedCommand]) => has(each[1], name);

const other = 65_534;
const isRoot = process.getuid?.() === 0;
const hasOther =
  isRoot && spawnSync(process.execPath, [commandPath, '--version'], { uid: other, gid: other, cwd: '/' }).status === 0;
if (!hasOther) console.log('not as another user: only root can start one, and it must be able to read the programs');
const disk = mountSmallDisk('1m');
if (typeof disk === 'string') console.log(`no full disk: ${disk}`);
const small = disk as SmallDisk;

let site: CommandSite;
let front: GarblingFront;
let commands: CommandProcess;
let others: CommandProcess | undefined;
beforeAll(async () => {
  site = await openCommandSite();
  const { server, environment } = site;
  front = await openGarblingFront(server.url, readFileSync(server.caFile));
  commands = openCommands({ environment, cwd: server.folder });
  if (hasOther) others = openCommands({ environment: { HOME: '/' }, cwd: '/', user: other });
});
afterAll(async () => {
  commands?.end();
  others?.end();
  await front?.close();
  if (typeof disk !== 'string') small.end();
  await site?.remove();
});

/** What is wrong with how it ended; undefined: nothing. */
const faultOf = ({ code, stdout, stderr }: CommandRun, mayEnd = true): string | undefined => {
  const text = `${stdout}${stderr}`;
  const said = stderr.trim() === '' ? text.slice(0, 300) : stderr.slice(0, 600);
  if (code === null) return `it was ended: ${said}`;
  if (/^\s+at .+:\d+:\d+\)?$/m.test(text) || text.includes('unsettled top-level await')) return `a stack: ${said}`;
  if (code === exitCodes.internal || text.includes('unexpected:')) return `a fault of its own: ${said}`;
  if (code === exitCodes.waiting && !/approve/.test(text)) return `it ended in the middle: ${said}`;
  if (code === 0) return mayEnd ? undefined : `it says that it succeeded: ${said}`;
  // What failed, then why or what to do; also behind a question, after the results of checks, and
  // as JSON.
  return /dke[ \w]*: .+(?:: .|\n {2}\S|nothing was changed)|^error: .+\n|checks failed/m.test(stderr) ||
    /^\{"error".*(?:: \w|"hint")/m.test(stderr)
    ? undefined
    : `no word of what to do (${code}): ${said}`;
};
/** Options stand before the operands. */
const withOptions = (args: readonly string[], ...more: readonly string[]): readonly string[] => {
  const at = args.lastIndexOf('--');
  return [...args.slice(0, at), ...more, ...args.slice(at)];
};
const without = (args: readonly string[], name: string): readonly string[] => {
  const at = args.indexOf(name);
  return at < 0 ? args : [...args.slice(0, at), ...args.slice(at + 2)];
};

/** A lost connection is one for every command alike, and repeated with pauses. */
const ways = Object.entries(garbled).filter(([, how]) => isLong || (how !== 'lost' && how !== 'cut'));
let runs = 0;
test.each(catalogue.filter(([, offered]) => !isEndless(offered)))(
  '%s: answers that are not those of the service',
  async (_, offered) => {
    const given = await argumentsOf(site.world, offered);
    const faults: string[] = [];
    const args = ['--server', front.url, '--ca-file', front.caFile, '--timeout', '20', ...given];
    // Secrets that a garbled answer does not have are written nowhere.
    const out = given[given.indexOf('--out') + 1] ?? '';
    const file = given.includes('--out') ? join(site.server.folder, out) : undefined;
    let pass = 0;
    for (let most = 1; pass < most; pass += 1)
      for (const [what, how] of ways) {
        front.answer(how, pass);
        const ran = await commands.run(args);
        // The command sends no request, so garbled answers cannot reach it.
        if (front.asked() === 0) return;
        runs += 1;
        most = Math.min(isLong ? 4 : 1, Math.max(most, front.asked()));
        const fault = faultOf(ran);
        if (fault !== undefined) faults.push(`${what}, after ${pass}: ${fault}`);
        if (file === undefined || !existsSync(file)) continue;
        if (/undefined|\[object/.test(readFileSync(file, 'latin1'))) faults.push(`${what}: ${file} has no secret`);
        rmSync(file, { recursive: true });
      }
    expect(faults, given.join(' ')).toEqual([]);
  },
);

test.each(catalogue.filter(([, offered]) => !isEndless(offered)))(
  '%s: its output on a full disk',
  async (_, offered) => {
    const all = await argumentsOf(site.world, offered);
    const isSecret = has(offered, '--out') && has(offered, '--force') && !rowOf(offered).ends;
    const given = isSecret ? without(all, '--out') : all;
    const full = openSync('/dev/full', 'w');
    try {
      const child = spawn(process.execPath, [commandPath, ...given], {
        cwd: site.server.folder,
        env: { PATH: process.env.PATH, ...site.environment },
        stdio: ['ignore', full, 'pipe'],
      });
      let stderr = '';
      child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        stderr += text;
      });
      const code = await new Promise<number | null>((done) => child.on('close', done));
      runs += 1;
      expect(faultOf({ code, stdout: '', stderr }), given.join(' ')).toBeUndefined();
      if (isSecret && code === exitCodes.permission) expect(stderr).toContain('its secret is lost');
    } finally {
      closeSync(full);
    }
  },
);

test.skipIf(typeof disk === 'string').each(catalogue.filter(hasOption('--out')))(
  '%s: --out on a full disk',
  async (_, offered) => {
    const given = await argumentsOf(site.world, offered);
    small.fill();
    const ran = await commands.run(withOptions(without(given, '--out'), '--out', join(small.folder, 'out')));
    runs += 1;
    const left = existsSync(join(small.folder, 'out'));
    small.free();
    rmSync(join(small.folder, 'out'), { recursive: true, force: true });
    // What is refused before it would be written says so.
    expect([faultOf(ran, false), left], given.join(' ')).toEqual([undefined, false]);
  },
);

test.runIf(hasOther).each(catalogue.filter(hasOption('--config')))(
  '%s: the configuration of another user',
  async (_, offered) => {
    const given = await argumentsOf(site.world, offered);
    chmodSync(site.server.folder, 0o700);
    const config = join(site.server.folder, 'dke.toml');
    const ran = isEndless(offered)
      ? await runCommand(['--', ...withOptions(given, '--config', config)].slice(1), { cwd: '/' })
      : await (others as CommandProcess).run(withOptions(given, '--config', config));
    runs += 1;
    if (isEndless(offered)) return;
    expect([faultOf(ran, false)], given.join(' ')).toEqual([undefined]);
  },
);

const asking = catalogue.filter(
  ([, offered]) => has(offered, '--confirm') || offered.path.endsWith('recovery-key create'),
);
test.each(asking.filter(hasOption('--confirm')))('%s: no terminal for its question', async (_, offered) => {
  const given = without(await argumentsOf(site.world, offered), '--confirm');
  const ran = await commands.run(given);
  runs += 1;
  expect(faultOf(ran), given.join(' ')).toBeUndefined();
  if (/--confirm/.test(ran.stderr)) expect(ran.code).toBe(exitCodes.config);
});

/** At a terminal of its own, which answers the question with these keys. */
const atTerminal = async (args: readonly string[], keys: string): Promise<CommandRun & { asked: boolean }> => {
  const line = [process.execPath, commandPath, ...args].map((each) => `'${each.replaceAll("'", "'\\''")}'`).join(' ');
  const terminal = spawn('script', ['-qec', line, '/dev/null'], {
    cwd: site.server.folder,
    env: { PATH: process.env.PATH, TERM: 'dumb', ...site.environment },
    stdio: 'pipe',
  });
  let shown = '';
  let asked = false;
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
    if (asked || !/to continue: |assphrase[^\n]*: $/.test(shown)) return;
    asked = true;
    terminal.stdin.write(keys);
  });
  const code = await new Promise<number | null>((done) => terminal.on('close', done));
  return { code, stdout: '', stderr: shown.replaceAll('\r', ''), asked };
};
const keys = { 'Ctrl-C': '\u0003', 'Ctrl-D': '\u0004' } as const;
test.each(
  asking.flatMap(([name, offered]) => (['Ctrl-C', 'Ctrl-D'] as const).map((key) => [name, key, offered] as const)),
)('%s: %s at its question', async (_, key, offered) => {
  const given = without(await argumentsOf(site.world, offered), '--confirm');
  const args = offered.path.endsWith('recovery-key create')
    ? ['recovery-key', 'create', '--passphrase', '--out', 'unasked.key']
    : given;
  const ran = await atTerminal(args, keys[key]);
  runs += 1;
  expect(faultOf(ran), args.join(' ')).toBeUndefined();
  if (ran.asked)
    expect([ran.code, ran.stderr]).toEqual([exitCodes.refused, expect.stringContaining('nothing was changed')]);
});

test('the number of runs', () => {
  console.info(`${runs} runs of ${catalogue.length} commands`);
  expect(runs).toBeGreaterThan(catalogue.length);
});
