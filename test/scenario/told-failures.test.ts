// What the system refuses is reported in one line, with what to do, and never as a stack: by `dke`
// and by the server.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StartError, toldError } from '../../server/base/start-error.ts';
import { show } from '../../server/cli/host/doctor.ts';
import { exitCodes } from '../../server/cli/terminal/exit-codes.ts';
import { commandPath } from '../support/command.ts';
import { programAt } from '../support/program.ts';
import { root } from '../support/sources.ts';

const other = 65_534;
/**
 * Whether another user can run these programs: only root starts one, and the folders above may be
 * closed.
 */
const isRoot = process.getuid?.() === 0;
const hasOther =
  isRoot && spawnSync(process.execPath, [commandPath, '--version'], { uid: other, gid: other, cwd: '/' }).status === 0;
if (!hasOther)
  console.log(`not as another user: ${isRoot ? 'it cannot read the programs' : 'only root can start one'}`);
const serverPath = programAt('server/app/process.js', 'server/app/process.ts');
let folder: string;
let closed: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'dke-told-'));
  chmodSync(folder, 0o755);
  closed = join(folder, 'dke.toml');
  writeFileSync(closed, '', { mode: 0o600 });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (program: string, args: readonly string[], more: Parameters<typeof spawnSync>[2] = {}) => {
  const { status, stderr } = spawnSync(process.execPath, [program, ...args], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, HOME: folder },
    ...more,
  });
  return { status, said: String(stderr).trimEnd().split('\n') };
};

test.each([['--help'], ['--version'], ['key', '--help']])('the output of dke %s on a full disk', (...args) => {
  const full = openSync('/dev/full', 'w');
  try {
    expect(run(commandPath, args, { stdio: ['ignore', full, 'pipe'] })).toEqual({
      status: exitCodes.permission,
      said: ['dke: standard output: the disk is full: make space, then run it again (ENOSPC)'],
    });
    // Where standard error is full as well, only the exit code reports the failure.
    expect(run(commandPath, args, { stdio: ['ignore', full, full] }).status).toBe(exitCodes.permission);
  } finally {
    closeSync(full);
  }
});

describe.runIf(hasOther)('the configuration of another user', () => {
  const why = 'permission denied: run it as the user whose file this is (EACCES)';
  test.each([
    ['dke verify', commandPath, ['verify'], 'dke'],
    ['dke backup create', commandPath, ['backup', 'create', '--out', 'backup'], 'dke'],
    ['the server', serverPath, [], 'dke server'],
  ] as const)('%s', (_name, program, args, speaker) => {
    chmodSync(folder, 0o700);
    try {
      expect(run(program, [...args, '--config', closed], { uid: other, gid: other, cwd: '/' })).toEqual({
        status: exitCodes.permission,
        said: [`${speaker}: ${closed}: ${why}`],
      });
    } finally {
      chmodSync(folder, 0o755);
    }
  });
});

test('Ctrl-C at a question changes nothing, and says so', async () => {
  const output = pathToFileURL(join(root, 'server/cli/terminal/output.ts')).href;
  const program = join(folder, 'ask.ts');
  writeFileSync(
    program,
    `import { confirm } from ${JSON.stringify(output)};\nawait confirm('The key goes.', 'name\\u202e', undefined).catch((error: Error) => console.log(error.name, error.message));\n`,
  );
  const terminal = spawn('script', ['-qec', `${process.execPath} ${program}`, '/dev/null'], { stdio: 'pipe' });
  let shown = '';
  for await (const chunk of terminal.stdout.setEncoding('utf8')) {
    const isAsked = shown.includes('to continue: ');
    shown += String(chunk);
    if (!isAsked && shown.includes('to continue: ')) terminal.stdin.write('\u0003');
  }
  terminal.stdin.end();
  expect(shown).toContain('Type name\\u{202e} to continue: ');
  expect(shown).toContain('CommandError stopped at the question: nothing was changed');
});

test('what cannot be said to standard error ends no command before its work is done', () => {
  const full = openSync('/dev/full', 'w');
  const early =
    'const { stderr } = process, { on } = stderr;' +
    'stderr.on = function (...given) { on.apply(this, given); if (given[0] === "error") this.write("x"); return this; };';
  const env = { PATH: process.env.PATH, NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(early)}` };
  try {
    const config = join(folder, 'nothing-listens.toml');
    writeFileSync(config, '[server]\nhost = "127.0.0.1"\nport = 1\n');
    const args = ['server', 'health', '--config', config];
    expect(run(commandPath, args, { stdio: ['ignore', 'pipe', full], env }).status).toBe(exitCodes.unreachable);
  } finally {
    closeSync(full);
  }
});

/** Starts `dke server` and stops it once it serves. */
const serveOnce = async (name: string, log: string, stderr: 'pipe' | number) => {
  const own = join(folder, name);
  mkdirSync(own, { mode: 0o700 });
  const toml = `[server]\nhost = "127.0.0.1"\nport = 0\n[memory]\nallow_unlocked = true\n[log]\ndestination = "${log}"\n`;
  writeFileSync(join(own, 'dke.toml'), toml, { mode: 0o600 });
  const server = spawn(process.execPath, [commandPath, 'server', '--config', join(own, 'dke.toml')], {
    stdio: ['ignore', 'pipe', stderr],
  });
  const ended = once(server, 'exit');
  return { server, ended };
};

test('a server whose reader of standard output has gone serves on', async () => {
  const { server, ended } = await serveOnce('no-reader', 'stderr', 'pipe');
  server.stdout?.destroy();
  let log = '';
  for await (const chunk of server.stderr?.setEncoding('utf8') ?? []) {
    const before = log.includes('"listening"');
    log += String(chunk);
    if (!before && log.includes('"listening"')) server.kill('SIGTERM');
  }
  expect([(await ended)[0], log.includes('"stopped"')], log).toEqual([0, true]);
});

test('a server whose log goes to a full disk stops in good order', async () => {
  const full = openSync('/dev/full', 'w');
  try {
    const { server, ended } = await serveOnce('full-log', 'stderr', full);
    let said = '';
    for await (const chunk of server.stdout?.setEncoding('utf8') ?? []) {
      const before = said.includes('listening on');
      said += String(chunk);
      if (!before && said.includes('listening on')) server.kill('SIGTERM');
    }
    expect((await ended)[0], said).toBe(0);
  } finally {
    closeSync(full);
  }
});

test('what the system does not name is not called standard output', () => {
  const fault = (more: object): string => toldError(Object.assign(new Error('x'), { code: 'ENOSPC', ...more })).message;
  expect(fault({ syscall: 'write' })).toMatch(/^write: the disk is full/);
  expect(fault({ syscall: 'connect', address: '/run/x' })).toMatch(/^\/run\/x: /);
  expect(fault({ syscall: 'open', path: '/file' })).toMatch(/^\/file: /);
});

test('what a check has found is shown without what a terminal would obey', () => {
  const result = {
    id: 'x',
    layer: 'network',
    title: 'answers',
    durationMs: 0,
    fix: 'call \u009b2J',
    predicts: undefined,
  };
  const text = show({
    what: 'it',
    results: [{ ...result, state: 'failed', evidence: 'is \u001b]0;named\u0007 \u202ehere' }],
  });
  for (const shown of ['is \\u{1b}]0;named\\u{7} \\u{202e}here', 'call \\u{9b}2J']) expect(text).toContain(shown);
});

test('an earlier end that is set while a later one is waited for counts', () => {
  const addon = pathToFileURL(join(root, 'addon/core.ts')).href;
  const program = join(folder, 'end.ts');
  writeFileSync(
    program,
    `import { core } from ${JSON.stringify(addon)};\ncore.endProcessIn(3_600_000, 5);\nawait new Promise((resolve) => setTimeout(resolve, 200));\n` +
      'core.endProcessIn(1, 9);\nAtomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);\n',
  );
  expect(run(program, []).status).toBe(9);
});

test('a fault of ours is one line, and DKE_DEBUG=1 shows where', () => {
  const fault = new TypeError('x is not a function\n    second line');
  expect(toldError(fault)).toMatchObject({
    class: 'internal',
    message: 'unexpected: x is not a function; report it with what DKE_DEBUG=1 in the environment shows',
  });
  process.env.DKE_DEBUG = '1';
  try {
    expect(toldError(fault).message).toContain('told-failures.test.ts');
  } finally {
    delete process.env.DKE_DEBUG;
  }
  const known = new StartError('store', 'x');
  expect(toldError(known)).toBe(known);
  expect(toldError('text')).toMatchObject({ class: 'internal', message: expect.stringContaining('unexpected: text') });
});
