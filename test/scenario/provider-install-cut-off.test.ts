// An installer that is killed after any of its steps: a database finds one complete library, the
// old or the new one, and the next run completes the installation.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { damagedFiles, install, rollback, uninstall, upgrade } from '../../provider/install/install.ts';
import { type Layout, layoutOf, otherLibraries } from '../../provider/install/layout.ts';
import { inFolder, setOwner, wayOf } from '../../provider/install/owned-files.ts';
import { effectiveOwner } from '../../provider/install/owner.ts';
import { readState } from '../../provider/install/state.ts';
import type { InstallReport } from '../../server/contract/provider.ts';
import { whyNoOtherUsers } from '../support/other-users.ts';
import { smallPayload } from '../support/provider-install-child.ts';

const program = resolve(import.meta.dirname, '../support/provider-install-child.ts');
const a = smallPayload('a');
const b = smallPayload('b');
let base: string;
let layout: Layout;

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'dke-install-'));
  layout = layoutOf('hsm', base);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

/** Undefined when it was killed after that many steps. */
const run = (action: string, build = 'a', steps = 0): InstallReport | undefined => {
  const { status, signal, stdout, stderr } = spawnSync(
    process.execPath,
    [program, action, base, build, String(steps)],
    {
      encoding: 'utf8',
    },
  );
  if (signal === 'SIGKILL') return undefined;
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as InstallReport;
};

const options = () => ({
  layout,
  owner: effectiveOwner(),
  logDirectory: join(base, 'log'),
  dryRun: false,
  force: false,
  unitFolder: null,
});
const laid = (): Buffer | null => (existsSync(layout.library) ? readFileSync(layout.library) : null);
const isOneOf = (...wanted: readonly (Buffer | null)[]): boolean => {
  const found = laid();
  return wanted.some((each) => (each === null ? found === null : found?.equals(each) === true));
};
/** Complete, the only one, and without files of an interrupted run. */
const expectTidy = (current: string): void => {
  expect(readState(layout)).toMatchObject({ current, pending: null });
  expect(damagedFiles(layout, current)).toEqual([]);
  expect(otherLibraries(layout)).toEqual([]);
  const names = readdirSync(base, { recursive: true, encoding: 'utf8' });
  expect(names.filter((name) => name.includes('.dke-new-'))).toEqual([]);
};

// Each interruption is a process, and every write waits for the disk.
describe('cut off after each step', () => {
  test('an installation is absent or complete, and the next one finishes it', () => {
    const { steps } = install({ ...options(), dryRun: true }, a);
    expect(steps.length).toBeGreaterThan(10);
    // One created directory represents all.
    for (const cut of steps.flatMap((step, at) => (at > 0 && step.startsWith('make ') ? [] : [at + 1]))) {
      rmSync(base, { recursive: true, force: true });
      expect(run('install', 'a', cut), `cut after ${cut}`).toBeUndefined();
      expect(isOneOf(null, a.library), `cut after ${cut}`).toBe(true);
      expect(install(options(), a).build).toBe(a.build);
      expect(isOneOf(a.library)).toBe(true);
      expectTidy(a.build);
    }
  });

  test('an upgrade leaves the old or the new library, and the next one finishes it; so does a rollback', () => {
    install(options(), a);
    const steps = upgrade({ ...options(), dryRun: true }, b).steps.length;
    expect(steps).toBeGreaterThan(5);
    for (let cut = 1; cut <= steps; cut++) {
      rmSync(base, { recursive: true, force: true });
      install(options(), a);
      expect(run('upgrade', 'b', cut), `cut after ${cut}`).toBeUndefined();
      expect(isOneOf(a.library, b.library), `cut after ${cut}`).toBe(true);
      upgrade(options(), b);
      expect(isOneOf(b.library)).toBe(true);
      expectTidy(b.build);
      expect(rollback(options())).toMatchObject({ build: a.build, previous: b.build });
      expect(isOneOf(a.library)).toBe(true);
      expectTidy(a.build);
    }
  });

  test('a rollback leaves one of both, and may be asked for again', () => {
    const prepare = (): void => {
      rmSync(base, { recursive: true, force: true });
      install(options(), a);
      upgrade(options(), b);
    };
    prepare();
    const steps = rollback({ ...options(), dryRun: true }).steps.length;
    for (let cut = 1; cut <= steps; cut++) {
      prepare();
      expect(run('rollback', 'a', cut), `cut after ${cut}`).toBeUndefined();
      expect(isOneOf(a.library, b.library)).toBe(true);
      // After any interruption: the upgrade defines the end state.
      upgrade(options(), b);
      expect(isOneOf(b.library)).toBe(true);
      expectTidy(b.build);
    }
  });

  test('an uninstallation continues where it stopped', () => {
    install(options(), a);
    const steps = run('uninstall')?.steps.length ?? 0;
    expect(steps).toBeGreaterThan(3);
    for (let cut = 1; cut < steps - 1; cut++) {
      install(options(), a);
      expect(run('uninstall', 'a', cut), `cut after ${cut}`).toBeUndefined();
      uninstall({ ...options(), purge: null, configPath: join(base, 'pkcs11.toml') });
      expect(readdirSync(base)).toEqual(['log']);
    }
  });
});

describe('a place that is not as it was left', () => {
  test('a rollback of a rollback is the upgrade again; older builds go', () => {
    install(options(), a);
    upgrade(options(), b);
    rollback(options());
    expect(rollback(options())).toMatchObject({ build: b.build, previous: a.build });
    const third = smallPayload('c');
    upgrade(options(), third);
    expect(readdirSync(join(layout.state, 'builds')).sort()).toEqual([b.build, third.build].sort());
    expect(readdirSync(join(layout.folder, 'agent')).sort()).toEqual([b.build, third.build, 'current'].sort());
  });

  test('a library that was put there by hand is kept by the first upgrade, and a rollback brings it back', () => {
    mkdirSync(layout.folder, { recursive: true });
    writeFileSync(layout.library, 'by hand');
    writeFileSync(layout.agentScript, 'its agent');
    expect(() => install(options(), a)).toThrow(/was not installed by this command/);
    upgrade(options(), a);
    expectTidy(a.build);
    rollback(options());
    expect(readFileSync(layout.library, 'utf8')).toBe('by hand');
    expect(readFileSync(layout.agentScript, 'utf8')).toBe('its agent');
    expect(existsSync(layout.agentName)).toBe(false);
  });

  test('what was changed or removed is repaired by installing again', () => {
    install(options(), a);
    chmodSync(layout.library, 0o644);
    writeFileSync(join(layout.folder, 'agent', a.build, 'dist/main.js'), 'changed');
    rmSync(layout.agentScript);
    expect(damagedFiles(layout, a.build)).toHaveLength(2);
    expect(install(options(), a).changed).toBe(true);
    expectTidy(a.build);
    expect(install(options(), a)).toMatchObject({ changed: false, steps: [] });
  });

  test('another build is for upgrade, and an upgrade needs an installation', () => {
    expect(() => upgrade(options(), b)).toThrow(/nothing is installed/);
    install(options(), a);
    expect(() => install(options(), b)).toThrow(new RegExp(`build ${a.build} is installed`));
    expect(() => rollback(options())).toThrow(/no earlier build/);
  });

  test('what another user has put in the place of its files is neither followed nor waited for', () => {
    install(options(), a);
    const elsewhere = join(base, 'elsewhere.json');
    const put: Readonly<Record<string, (path: string) => void>> = {
      link: (path) => symlinkSync(elsewhere, path),
      fifo: (path) => expect(spawnSync('mkfifo', [path]).status).toBe(0),
    };
    for (const path of [join(layout.state, 'state.json'), join(layout.state, 'builds', a.build, 'manifest.json')]) {
      const kept = readFileSync(path);
      writeFileSync(elsewhere, kept);
      for (const [what, make] of Object.entries(put)) {
        rmSync(path, { force: true });
        make(path);
        const read = (): unknown =>
          path.endsWith('state.json') ? upgrade(options(), b) : damagedFiles(layout, a.build);
        expect(read, `${what} ${path}`).toThrow(`${path} is not a file that the installer wrote`);
        rmSync(path);
      }
      writeFileSync(path, kept);
    }
    const manifest = join(layout.state, 'builds', a.build, 'manifest.json');
    const text = JSON.parse(readFileSync(manifest, 'utf8')) as { files: Record<string, string> };
    for (const name of ['/etc/passwd', '../../../etc/passwd']) {
      writeFileSync(manifest, JSON.stringify({ ...text, files: { ...text.files, [name]: 'x' } }));
      expect(() => damagedFiles(layout, a.build)).toThrow('was not written by the installer');
    }
    for (const content of ['null', '{}', '{"build":1}', 'no JSON']) {
      writeFileSync(manifest, content);
      expect(() => damagedFiles(layout, a.build)).toThrow('was not written by the installer');
    }
  });

  if (whyNoOtherUsers !== undefined) console.log(`skipped: ${whyNoOtherUsers}`);
  describe.skipIf(whyNoOtherUsers !== undefined)('root', () => {
    const nobody = { user: 'nobody', group: 'nogroup', uid: 65_534, gid: 65_534 };
    const victim = (): string => {
      const path = join(base, 'of-root');
      mkdirSync(join(path, '1.0'), { recursive: true });
      return path;
    };
    const ownerOf = (path: string): number => statSync(path).uid;
    beforeEach(() => {
      chmodSync(base, 0o755);
      mkdirSync(layout.tree);
      chownSync(layout.tree, nobody.uid, nobody.gid);
    });

    test('gives no folder away that the owner of one above it puts in the place of the installation', () => {
      const path = victim();
      const dke = join(layout.tree, 'dke');
      const reached = (step: string): void => {
        if (step !== `make ${dke}`) return;
        renameSync(dke, `${dke}.old`);
        symlinkSync(path, dke);
        lchownSync(dke, nobody.uid, nobody.gid);
      };
      expect(() => install({ ...options(), owner: nobody, reached }, a)).toThrow(`${dke} is a symbolic link`);
      expect(ownerOf(join(path, '1.0'))).toBe(0);
      // The folder that is open is compared with the one that was checked.
      expect(() => setOwner(join(dke, '1.0'), nobody, 0o755)).toThrow(`${dke} is a symbolic link`);
      expect(ownerOf(join(path, '1.0'))).toBe(0);
    });

    test('makes no folder, and empties none, behind a link of the owner', () => {
      install({ ...options(), owner: nobody }, a);
      const path = victim();
      writeFileSync(join(path, '1.0', 'kept'), 'x');
      const link = join(layout.tree, 'logs');
      symlinkSync(path, link);
      lchownSync(link, nobody.uid, nobody.gid);
      for (const name of ['1.0', 'other']) {
        const logDirectory = join(link, name);
        const purge = { ...options(), owner: nobody, logDirectory, purge: join(base, 'none'), configPath: '/none' };
        if (name === '1.0') expect(() => uninstall(purge)).toThrow(`${link} is a symbolic link`);
        else
          expect(() => install({ ...options(), owner: nobody, logDirectory }, a)).toThrow(`${link} is a symbolic link`);
      }
      expect(readdirSync(path)).toEqual(['1.0']);
      expect(readdirSync(join(path, '1.0'))).toEqual(['kept']);
    });

    test('removes what is in the folder that it has opened, wherever its path leads meanwhile', () => {
      const path = victim();
      writeFileSync(join(path, '1.0', 'pkcs11.toml'), 'of another');
      const own = join(layout.tree, 'own');
      mkdirSync(own, { recursive: true });
      writeFileSync(join(own, 'pkcs11.toml'), 'ours');
      inFolder(own, (at) => {
        renameSync(own, `${own}.old`);
        symlinkSync(join(path, '1.0'), own);
        rmSync(at('pkcs11.toml'));
      });
      expect(readdirSync(`${own}.old`)).toEqual([]);
      expect(readdirSync(join(path, '1.0'))).toEqual(['pkcs11.toml']);
      // A folder that is another one since it was checked is not opened.
      expect(() => inFolder(own, (at) => rmSync(at('pkcs11.toml')))).toThrow();
      expect(readdirSync(join(path, '1.0'))).toEqual(['pkcs11.toml']);
    });

    test('follows no link of others behind its own, and no circle', () => {
      const path = victim();
      const theirs = join(layout.tree, 'theirs');
      symlinkSync(path, theirs);
      lchownSync(theirs, nobody.uid, nobody.gid);
      const link = join(base, 'mine');
      for (const to of [
        theirs,
        join('tree', '..', layout.tree.slice(base.length + 1), 'theirs'),
        join(theirs, '1.0'),
      ]) {
        rmSync(link, { force: true });
        symlinkSync(to, link);
        expect(() => wayOf(join(link, 'dke')), to).toThrow(`${theirs} is a symbolic link`);
      }
      rmSync(link);
      symlinkSync('mine', link);
      expect(() => wayOf(link)).toThrow('too many links');
    });

    test('follows its own links', () => {
      const link = join(base, 'mine');
      symlinkSync(layout.tree, link);
      expect(wayOf(join(link, 'dke'))).toBe(join(layout.tree, 'dke'));
    });
  });

  test('one installer at a time; the lock of a process ends with it, however it ends', async () => {
    install(options(), a);
    const program =
      "const { DatabaseSync } = require('node:sqlite');" +
      "new DatabaseSync(process.argv[1]).exec('begin exclusive'); console.log('locked'); setInterval(() => 0, 1000)";
    const holder = spawn(process.execPath, ['-e', program, join(layout.state, 'installer.lock')]);
    await once(holder.stdout, 'data');
    expect(() => upgrade(options(), b)).toThrow('another process is changing this installation');
    holder.kill('SIGKILL');
    await once(holder, 'close');
    expect(upgrade(options(), b).build).toBe(b.build);
    // Another user who could open it could lock it.
    expect(statSync(join(layout.state, 'installer.lock')).mode & 0o777).toBe(0o600);
    // A run of an earlier version that was cut off has left it.
    mkdirSync(join(layout.state, 'lock'));
    expect(rollback(options()).build).toBe(a.build);
    writeFileSync(join(layout.state, 'installer.lock'), 'what another program has put there'.repeat(100));
    expect(() => upgrade(options(), b)).toThrow('is not a lock of the installer');
  });
});
