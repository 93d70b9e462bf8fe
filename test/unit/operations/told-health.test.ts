// What nodes tell of their health is a text of the database: who can write to it may change it, a
// failover may lose it, and another start of the same node may have written another one.
import { beforeEach, expect, test } from 'vitest';
import { nodeSettings } from '../../../server/domain/node.ts';
import { readToldHealth, tellHealth } from '../../../server/operations/service/told-health.ts';
import type { Store } from '../../../server/ports/store.ts';
import { nodeRow } from '../../support/node-row.ts';
import { storeOfTest } from '../../support/open-store.ts';

const nodeId = 'n1';
const setting = nodeSettings.health(nodeId);
let time = 0;
const clock = { now: () => time, monotonic: () => time };
let store: Store;
let failing: readonly string[] = [];
let tell: () => Promise<void>;
beforeEach(async () => {
  store = Object.create(await storeOfTest(clock as never), { link: { value: {}, writable: true } });
  await store.write((tx) => tx.nodes.put(nodeRow(nodeId)));
  failing = ['disk'];
  const health = async () => ({ checks: failing.map((name) => ({ name, healthy: false, detail: 'full' })) }) as never;
  tell = tellHealth({ store, clock }, nodeId, { health, logState: () => ({ failure: null }) as never });
});
const set = (text: string | null) => store.write((tx) => tx.settings.set(setting, text));
const stored = () => store.read.settings.get(setting);

test('a text that no node has written is a failing check, and hides no other', async () => {
  for (const text of ['{', 'null', '[1]', '{"store":1}', JSON.stringify({ a: { b: 'c' } })]) {
    await set(text);
    expect(await readToldHealth(store.read, nodeId), text).toEqual({
      health: 'what this node has told cannot be read',
    });
  }
  await set('{"disk":"full"}');
  expect(await readToldHealth(store.read, nodeId)).toEqual({ disk: 'full' });
});

test('the node replaces such a text by its own', async () => {
  await set('{');
  await tell();
  expect(await stored()).toBe('{"disk":"full"}');
});

test.each([
  ['was lost', null],
  ['is of another start, which says that all is well', null],
  ['is of another fault', '{"clock":"late"}'],
])('a node whose text %s tells it again within a minute', async (_, text) => {
  await tell();
  await set(text);
  await tell();
  expect(await stored()).toBe(text ?? undefined);
  time += 60_000;
  await tell();
  expect(await stored()).toBe('{"disk":"full"}');
  failing = [];
  await tell();
  expect(await stored()).toBeUndefined();
  await set('{"disk":"full"}');
  time += 60_000;
  await tell();
  expect(await stored()).toBeUndefined();
});

test('a removed node, and one that has no row, tells nothing, until it has joined', async () => {
  await tell();
  await store.write((tx) => tx.nodes.setState(nodeId, 'removed'));
  expect(await stored()).toBeUndefined();
  failing = ['clock'];
  await tell();
  time += 60_000;
  await tell();
  expect(await stored()).toBeUndefined();
  expect(await store.write((tx) => tx.nodes.tell('of no row', 'health', '{}'))).toBe(false);
  await store.write((tx) => tx.nodes.put(nodeRow(nodeId)));
  await tell();
  expect(await stored()).toBe('{"clock":"full"}');
});

test('what nodes told that were removed earlier goes with old rows; what others tell stays', async () => {
  await store.write(async (tx) => {
    await tx.nodes.put(nodeRow('n2'));
    for (const id of [nodeId, 'n2'])
      for (const settingOf of Object.values(nodeSettings)) await tx.settings.set(settingOf(id), id);
    await tx.nodes.put({ ...nodeRow(nodeId), state: 'removed' });
    await tx.pruning.run(time, 0);
  });
  const left = async (id: string) =>
    Promise.all(Object.values(nodeSettings).map((settingOf) => store.read.settings.get(settingOf(id))));
  expect([await left(nodeId), await left('n2')]).toEqual([
    [undefined, undefined],
    ['n2', 'n2'],
  ]);
});
