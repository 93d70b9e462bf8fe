// What nodes tell of their health is a text of the database: who can write to it may change it.
import { expect, test } from 'vitest';
import { readToldHealth, tellHealth } from '../../../server/operations/service/told-health.ts';
import type { Store } from '../../../server/ports/store.ts';

const nodeId = 'n1';
const withText = (first: string | undefined) => {
  let text = first;
  const settings = {
    get: () => Promise.resolve(text),
    set: (_: string, value: string | null) => {
      text = value ?? undefined;
      return Promise.resolve();
    },
  };
  const store = { link: {}, read: { settings }, write: (work: (tx: unknown) => unknown) => work({ settings }) };
  return { store: store as unknown as Store, text: () => text };
};

test('a text that no node has written is a failing check, and hides no other', async () => {
  for (const text of ['{', 'null', '[1]', '{"store":1}', JSON.stringify({ a: { b: 'c' } })])
    expect(await readToldHealth(withText(text).store.read, nodeId), text).toEqual({
      health: 'what this node has told cannot be read',
    });
  expect(await readToldHealth(withText('{"disk":"full"}').store.read, nodeId)).toEqual({ disk: 'full' });
});

test('the node replaces such a text by its own', async () => {
  const { store, text } = withText('{');
  const health = () => Promise.resolve({ checks: [{ name: 'disk', healthy: false, detail: 'full' }] } as never);
  await tellHealth({ store }, nodeId, { health, logState: () => ({ failure: null }) as never })();
  expect(text()).toBe('{"disk":"full"}');
});
