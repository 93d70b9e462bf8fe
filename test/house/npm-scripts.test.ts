// The scripts of package.json on any system: each finds its Node, packages and build by setup.sh, and npm runs no install
// script. What they do on minimal systems: npm run test:fresh.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { folderOfTest } from '../support/folders.ts';
import { read, root } from '../support/sources.ts';

const { scripts } = JSON.parse(read('package.json')) as { readonly scripts: Readonly<Record<string, string>> };

describe('the scripts of package.json', () => {
  test('all begin with setup.sh', () => {
    const others = Object.entries(scripts).filter(([, line]) => !line.startsWith('sh test/support/setup.sh '));
    // It needs its arguments before it knows what to set up.
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
      env: { PATH: bin },
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
