// The scripts of package.json on any system: each finds its Node, packages and build by setup.sh,
// and npm runs no install script. What they do on minimal systems: npm run test:fresh.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, mkdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { folderOfTest } from '../support/folders.ts';
import { whyNoOtherUsers } from '../support/other-users.ts';
import { read, root } from '../support/sources.ts';

const { scripts } = JSON.parse(read('package.json')) as { readonly scripts: Readonly<Record<string, string>> };

describe('the scripts of package.json', () => {
  test('all begin with setup.sh', () => {
    const others = Object.entries(scripts).filter(([, line]) => !line.startsWith('sh test/support/setup.sh '));
    // `package` needs its arguments before it knows what to set up.
    expect(others).toEqual([['package', 'sh provider/packaging/package.sh']]);
  });

  test('npm runs none of them, and of no package, during an installation', () => {
    expect(Object.keys(scripts).filter((name) => /^(pre|post)?(install|prepare|publish)/.test(name))).toEqual([]);
    expect(read('.npmrc')).toMatch(/^ignore-scripts=true$/m);
  });

  test('a user who may not install packages gets one line to type, before anything is built', () => {
    // Programs of a system without a compiler; `id` answers as for an ordinary user.
    const folder = folderOfTest();
    const bin = join(folder, 'bin');
    mkdirSync(bin);
    for (const each of [
      'sh',
      'dirname',
      'uname',
      'readlink',
      'grep',
      'mkdir',
      'sort',
      'tr',
      'apt-get',
      'apt-cache',
      'env',
    ])
      symlinkSync(spawnSync('sh', ['-c', `command -v ${each}`], { encoding: 'utf8' }).stdout.trim(), join(bin, each));
    writeFileSync(join(bin, 'id'), '#!/bin/sh\necho 1000\n');
    chmodSync(join(bin, 'id'), 0o755);
    const setup = join(root, 'test/support/setup.sh');
    const { status, stdout, stderr } = spawnSync('sh', [setup, 'demo', 'true'], {
      // DKE_NODE must agree with the link in node_modules, which this user could not change.
      env: { PATH: bin, ...(process.env.DKE_NODE === undefined ? {} : { DKE_NODE: process.env.DKE_NODE }) },
      encoding: 'utf8',
    });
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr.trim().split('\n')).toEqual([
      'dke: System packages are missing. Install them, then run the same command again:',
      expect.stringMatching(
        /^ *sudo apt-get update && sudo apt-get install -y --no-install-recommends .*\bcmake\b.*\bg\+\+/,
      ),
    ]);
  });
});

/** A checkout in which nothing is to be built, in a folder with a space in its name. */
const emptyCheckout = (): string => {
  const folder = join(folderOfTest(), 'a checkout');
  mkdirSync(join(folder, 'test/support'), { recursive: true });
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true });
  mkdirSync(join(folder, 'node_modules/.dke'));
  for (const each of ['setup.sh', 'packages.sh'])
    copyFileSync(join(root, 'test/support', each), join(folder, 'test/support', each));
  writeFileSync(join(folder, 'package-lock.json'), '{}');
  writeFileSync(join(folder, 'node_modules/.dke/complete'), '');
  return folder;
};
const nodeOfTests = { ...process.env, DKE_NODE: process.execPath };

describe('setup.sh', () => {
  test('waits for another run in the same checkout', async () => {
    const folder = emptyCheckout();
    const lock = join(folder, 'node_modules/.dke/lock');
    const first = spawn('flock', [lock, 'sh', '-c', 'echo taken; cat'], { stdio: ['pipe', 'pipe', 'inherit'] });
    await once(first.stdout, 'data');
    const second = spawn('sh', [join(folder, 'test/support/setup.sh'), 'tools', 'echo', 'ran'], {
      env: nodeOfTests,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const said: string[] = [];
    second.stdout.setEncoding('utf8').on('data', (text: string) => said.push(text));
    await once(second.stdout, 'data');
    expect(said.join('')).toBe('dke: waiting for another command that sets this checkout up\n');
    first.stdin.end();
    expect(await once(second, 'close')).toEqual([0, null]);
    expect(said.join('')).toMatch(/\nran\n$/);
  });

  test('makes nothing that other users may write, whatever the umask of its caller, and removes no bit of that', () => {
    const folder = emptyCheckout();
    const run = (umask: string): string =>
      spawnSync('sh', ['-c', 'umask "$1"; exec sh "$2" tools sh -c umask', 'sh', umask, 'test/support/setup.sh'], {
        cwd: folder,
        env: nodeOfTests,
        encoding: 'utf8',
      }).stdout.trim();
    expect(['000', '002', '077'].map(run)).toEqual(['0022', '0022', '0077']);
    expect(statSync(join(folder, 'node_modules/.dke/lock')).mode & 0o777).toBe(0o600);
  });

  test.runIf(whyNoOtherUsers === undefined)('tells a user who may not write there what to do', () => {
    const folder = emptyCheckout();
    chmodSync(join(folder, '..'), 0o755);
    symlinkSync(process.execPath, join(folder, 'node_modules/.bin/node'));
    // Something is to be done.
    rmSync(join(folder, 'node_modules/.dke/complete'));
    const { status, stderr } = spawnSync(
      'setpriv',
      ['--reuid=65534', '--regid=65534', '--clear-groups', 'sh', 'test/support/setup.sh', 'tools', 'true'],
      { cwd: folder, env: nodeOfTests, encoding: 'utf8' },
    );
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: [
        `dke: You may not write to ${folder}, where something has to be built. Do one of these:`,
        '  run the same command as root, to whom it belongs',
        '  make a copy of the sources that is yours, run npm ci there, then the same command',
        '',
      ].join('\n'),
    });
  });
});
