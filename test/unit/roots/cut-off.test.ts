// A change of the root key file that ends at any of its writes, as by a power failure: the file is
// the former one or the new one, the root key is the same, and after the next start nothing else in
// the folder opens it.
import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { core, type KekRef } from '../../../addon/core.ts';
import { rootFilesBeside } from '../../../server/adapters/roots/durable-files.ts';
import { openFileRoot } from '../../../server/adapters/roots/file-root.ts';
import { openRoot } from '../../../server/adapters/roots/open-root.ts';
import { createWays } from '../../../server/adapters/roots/unlock-ways.ts';
import {
  changeWays,
  createWrapped,
  type NewWay,
  readWrapped,
  unlockWrapped,
} from '../../../server/adapters/roots/wrapped-file.ts';
import { crashPoints } from '../../support/crash-points.ts';
import { folderOfTest, sharedFolder } from '../../support/folders.ts';

core.initialize({ allowUnlocked: true });

let folder: string;
let path: string;
beforeEach(() => {
  folder = folderOfTest();
  path = join(folder, 'root.key');
});

const keys = join(sharedFolder(), 'keys');
const declared = (name: string) => ({ name, type: 'file', path: `${keys}.${name}` }) as const;
const openBy = (at: string, ...names: readonly string[]) =>
  openRoot(
    {
      core,
      root: { path: at, providers: names.map(declared) },
      ask: () => Promise.resolve(undefined),
      readDescriptor: () => Buffer.alloc(0),
    },
    false,
  );
const wayOf = async (name: string): Promise<NewWay> => ({
  name,
  type: 'file',
  createdAt: 1,
  ...(await createWays(core, () => Buffer.alloc(0)).make(declared(name), () => Promise.resolve(undefined))),
});
/** Who opens a state: after the file was opened once, as a start does it. */
const openersOf = async (state: string, candidates: readonly (readonly string[])[]): Promise<readonly string[]> => {
  const at = join(state, 'root.key');
  const found: string[] = [];
  for (const names of candidates) {
    const opened = await openBy(at, ...names).catch(() => undefined);
    if (opened?.state !== 'open') continue;
    expect(same(opened.root.current.key)).toBe(true);
    opened.root.release();
    found.push(names.join('+') || 'alone');
  }
  return found;
};
let probe: Buffer;
const context = {
  ...{ tenant: Buffer.alloc(16), object: Buffer.alloc(16), version: 1, epoch: 1, class: 'probe' },
  attributes: Buffer.alloc(0),
};
const same = (key: KekRef): boolean => {
  core.release(core.openRecord(key, context, probe));
  return true;
};
const keepProbe = (key: KekRef): void => {
  probe = core.sealRecord(key, context, core.generateAes(256));
};

/** At every write: one of these, and nothing that opens it stays beside the file. */
const expectOneOf = async (
  states: readonly string[],
  former: string,
  next: string,
  candidates: readonly (readonly string[])[],
): Promise<void> => {
  const found: string[] = [];
  for (const state of states) {
    const openers = await openersOf(state, candidates);
    found.push(openers.join(' and '));
    const left = readdirSync(state).filter((name) => /\.(new|old)$/.test(name));
    expect([...left, ...rootFilesBeside(join(state, 'root.key'))], state).toEqual([]);
    rmSync(state, { recursive: true, force: true });
  }
  expect([...new Set(found)].toSorted()).toEqual([former, next].toSorted());
  expect(found.length).toBeGreaterThan(6);
};

test('a root key that gets its first provider is unencrypted or wrapped', async () => {
  const root = openFileRoot(core, path, true);
  keepProbe(root.current.key);
  const one = await wayOf('one');
  const { states } = await crashPoints(folder, () => createWrapped(core, path, [one], [root.current]));
  await expectOneOf(states, 'alone', 'one', [[], ['one']]);
});

test('a provider that takes the place of another opens it, or the other does', async () => {
  const [one, two] = [await wayOf('one'), await wayOf('two')];
  createWrapped(core, path, [one]);
  const opened = await openBy(path, 'one');
  if (opened.state !== 'open') throw new Error('it does not open');
  keepProbe(opened.root.current.key);
  const file = readWrapped(core, path);
  const [entry] = file.head.providers;
  if (entry === undefined) throw new Error('no provider is there');
  const whole = unlockWrapped(core, file, entry, one.key);
  const { states } = await crashPoints(folder, () => changeWays(core, whole, { without: ['one'], add: [two] }));
  await expectOneOf(states, 'one', 'two', [['one'], ['two']]);
});

test('a copy of the root key beside it is named', async () => {
  openFileRoot(core, path, true).release();
  const copy = join(folder, 'key of yesterday');
  copyFileSync(path, copy);
  writeFileSync(join(folder, 'root.notes'), 'DKE-RO');
  // Not even opened: it may be a database that this process has locked.
  copyFileSync(path, join(folder, 'dke.db'));
  const opened = await openBy(path);
  expect(opened).toMatchObject({ state: 'open', remarks: [expect.stringContaining(`${copy} is a root key file`)] });
});

test('a damaged root key that was moved aside is named, whatever is left of it', async () => {
  openFileRoot(core, path, true).release();
  // What the service keeps there itself is none.
  for (const end of ['.backup', '.checkpoint']) writeFileSync(`${path}${end}`, '');
  const head = readFileSync(path);
  head[0] = (head[0] ?? 0) ^ 1;
  writeFileSync(`${path}.damaged`, head);
  writeFileSync(`${path}.old-1`, head.subarray(0, 5000));
  const opened = await openBy(path);
  expect(opened).toMatchObject({
    state: 'open',
    remarks: ['.damaged', '.old-1'].map((end) =>
      expect.stringContaining(`${path}${end} is a root key file, or was one`),
    ),
  });
});
