// The wrapped root key file (addon/FORMAT.md, 2): every provider opens it, a changed file does not
// open, and replaced or rotated keys are overwritten.
import { chmodSync, chownSync, copyFileSync, existsSync, linkSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { CoreError, core, type KekRef } from '../../../addon/core.ts';
import {
  changeWays,
  createWrapped,
  type NewWay,
  type OpenWrapped,
  readWrapped,
  unlockWrapped,
} from '../../../server/adapters/roots/wrapped-file.ts';
import { wrappedRoot } from '../../../server/adapters/roots/wrapped-root.ts';
import { folderOfTest } from '../../support/folders.ts';
import { run } from '../../support/tools.ts';

core.initialize({ allowUnlocked: true });
let folder: string;
let path: string;
beforeEach(() => {
  folder = folderOfTest();
  path = join(folder, 'root.key');
});

const way = (name: string): NewWay => ({
  name,
  type: 'passphrase',
  key: core.generateKek(),
  parameters: { salt: '00' },
  createdAt: 1,
});
const openBy = ({ name, key }: NewWay): OpenWrapped => {
  const file = readWrapped(core, path);
  const entry = file.head.providers.find((each) => each.name === name);
  if (entry === undefined) throw new Error(`${name} is not in the file`);
  return unlockWrapped(core, file, entry, key);
};
/** Whether two keys are the same: what one sealed, the other opens. */
const same = (a: KekRef, b: KekRef): boolean => {
  const context = {
    tenant: Buffer.alloc(16),
    object: Buffer.alloc(16),
    version: 1,
    epoch: 1,
    class: 'probe',
    attributes: Buffer.alloc(0),
  };
  const record = core.sealRecord(a, context, core.generateAes(256));
  try {
    core.release(core.openRecord(b, context, record));
    return true;
  } catch {
    return false;
  }
};
const current = (opened: OpenWrapped): KekRef => wrappedRoot(core, opened).current.key;

test('each provider opens the same root key, and another key opens none', () => {
  const [a, b] = [way('a'), way('b')];
  createWrapped(core, path, [a, b]);
  expect(same(current(openBy(a)), current(openBy(b)))).toBe(true);
  expect(() => openBy({ ...a, key: core.generateKek() })).toThrow(
    expect.objectContaining({ code: 'authentication-failed' }),
  );
  expect(() => openBy({ ...a, key: b.key })).toThrow(CoreError);
});

test('a new epoch opens by each provider, and the old one is overwritten in its place', () => {
  const [a, b] = [way('a'), way('b')];
  createWrapped(core, path, [a, b]);
  const root = wrappedRoot(core, openBy(a));
  const first = root.current.key;
  const before = readFileSync(path);
  root.addEpoch();
  expect(openBy(b).roots.map(({ epoch }) => epoch)).toEqual([2, 1]);
  root.settle();
  root.erasePrevious();
  const after = readFileSync(path);
  expect(after.subarray(16_384, 16_384 + 4096).equals(Buffer.alloc(4096))).toBe(true);
  expect(before.subarray(16_384, 16_384 + 4096).equals(Buffer.alloc(4096))).toBe(false);
  expect(openBy(b).roots.map(({ epoch }) => epoch)).toEqual([2]);
  expect(same(current(openBy(b)), first)).toBe(false);
  root.addEpoch();
  root.erasePrevious();
  expect(openBy(a).roots.map(({ epoch }) => epoch)).toEqual([3]);
});

test('an epoch whose write was reported as failed is used, not written a second time', () => {
  const a = way('a');
  createWrapped(core, path, [a]);
  const one = wrappedRoot(core, openBy(a));
  const another = wrappedRoot(core, openBy(a));
  // This write stands for one that reached the file but was reported as failed.
  another.addEpoch();
  one.addEpoch();
  expect(one.current.epoch).toBe(2);
  expect(same(one.current.key, another.current.key)).toBe(true);
});

test('a provider that was removed no longer opens the new file; those that stay do, with the same root key', () => {
  const [a, b, c] = [way('a'), way('b'), way('c')];
  createWrapped(core, path, [a, b]);
  const opened = openBy(a);
  changeWays(core, opened, { without: ['b'], add: [c] });
  expect(readWrapped(core, path).head.providers.map(({ name }) => name)).toEqual(['a', 'c']);
  expect(same(current(openBy(c)), opened.roots[0]?.key ?? (0 as KekRef))).toBe(true);
  const [entry] = readWrapped(core, path).head.providers;
  if (entry === undefined) throw new Error('no provider is there');
  expect(() => unlockWrapped(core, readWrapped(core, path), entry, b.key)).toThrow(CoreError);
  expect(() => changeWays(core, openBy(a), { without: ['a', 'c'], add: [] })).toThrow(/requires a provider/);
  expect(existsSync(`${path}.old`)).toBe(false);
});

test('a change that was cut off before its end is finished: what was replaced is overwritten', () => {
  const a = way('a');
  createWrapped(core, path, [a]);
  const replaced = join(folder, 'kept');
  // Cut off behind the second name: the file is still itself.
  linkSync(path, `${path}.old`);
  expect(readWrapped(core, path).head.providers).toHaveLength(1);
  expect(existsSync(`${path}.old`)).toBe(false);
  // Cut off behind the replacement.
  copyFileSync(path, `${path}.old`);
  linkSync(`${path}.old`, replaced);
  expect(openBy(a).roots).toHaveLength(1);
  expect(existsSync(`${path}.old`)).toBe(false);
  expect(readFileSync(replaced).every((byte) => byte === 0)).toBe(true);
});

test('a changed byte is found wherever the file has data, and the error names the file and the fix', () => {
  const a = way('a');
  createWrapped(core, path, [a]);
  const good = readFileSync(path);
  const used = [...good.keys()].filter((at) => good[at] !== 0);
  for (const at of used) {
    const bad = Buffer.from(good);
    bad[at] = (bad[at] ?? 0) ^ 0x40;
    writeFileSync(path, bad, { mode: 0o600 });
    expect(() => openBy(a), `byte ${at}`).toThrow(CoreError);
  }
  const bad = Buffer.from(good);
  bad[20] = (bad[20] ?? 0) ^ 1;
  writeFileSync(path, bad);
  expect(() => openBy(a)).toThrow(/root\.key has a damaged head: put back its copy; nothing was changed/);
});

test.runIf(process.getuid?.() === 0)(
  'a backup that root gives to a group of the user is read, and a root key file is not',
  async () => {
    createWrapped(core, path, [way('backup')]);
    chmodSync(folder, 0o755);
    chownSync(path, 0, 10_001);
    chmodSync(path, 0o440);
    const module = resolve(import.meta.dirname, '../../../server/adapters/roots/wrapped-file.ts');
    // The program is loaded as root: it may be in a folder that no other user reads.
    const script = `import { readWrapped, readWrappedBackup } from ${JSON.stringify(module)};
    const [, path, how] = process.argv;
    for (const set of ['setgroups', 'setgid', 'setuid']) process[set](set === 'setgroups' ? [] : 10_001);
    if (how === 'backup') readWrappedBackup(path);
    else readWrapped({}, path);`;
    const read = (how: string) => run(process.execPath, ['--input-type=module', '--eval', script, path, how]);
    expect(await read('backup')).toMatchObject({ code: 0 });
    expect((await read('root key')).complaints).toContain('it must belong to user 10001');
    chmodSync(path, 0o444);
    expect((await read('backup')).complaints).toContain('it must have mode 600 or 400 (640 or 440');
  },
);
