// The addon in several threads of one process: each has its own environment, the key table is
// common to all, and a worker that is terminated in the middle of its work leaves nothing behind.
import { once } from 'node:events';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { CoreError, type KeyRef, type OperationRef } from '../../../addon/core.ts';
import { core, runCipher } from '../../support/core-keys.ts';

interface Report {
  readonly keys: readonly KeyRef[];
  readonly operation: OperationRef;
}
const start = async (keys: number): Promise<{ readonly worker: Worker; readonly report: Report }> => {
  const worker = new Worker(join(import.meta.dirname, '../../support/core-worker.ts'), { workerData: { keys } });
  const [report] = (await once(worker, 'message')) as [Report];
  return { worker, report };
};
const codeOf = (act: () => unknown): unknown => {
  try {
    act();
  } catch (error) {
    return error instanceof CoreError ? error.code : error;
  }
  return undefined;
};

test('a worker that is terminated in the middle of a call frees its keys, operations and request bodies', async () => {
  const mine = core.generateAes(256);
  const before = core.memoryStatus();
  const [one, two] = await Promise.all([start(30), start(50)]);
  // 30 and 50, and one pair each; two operations each.
  expect(core.memoryStatus().keys).toBe(before.keys + 82);
  expect(core.memoryStatus().operations).toBe(before.operations + 4);
  expect(new Set([...one.report.keys, ...two.report.keys]).size).toBe(80);

  await one.worker.terminate();
  expect(core.memoryStatus().keys).toBe(before.keys + 51);
  expect(core.memoryStatus().operations).toBe(before.operations + 2);
  for (const key of one.report.keys) expect(codeOf(() => core.describe(key))).toBe('bad-key');
  for (const key of two.report.keys) expect(core.describe(key)).toEqual({ kind: 'aes', bits: 256 });

  await two.worker.terminate();
  expect(core.memoryStatus()).toEqual(before);
  expect(core.describe(mine)).toEqual({ kind: 'aes', bits: 256 });
  core.release(mine);
});

test('a key is usable from another thread, and released for all of them at once', async () => {
  const { worker, report } = await start(2);
  const [first, second] = report.keys as [KeyRef, KeyRef];
  const parameters = { algorithm: 'aes-ecb' } as const;
  const sealed = runCipher(second, 'encrypt', parameters, Buffer.alloc(16));
  expect(runCipher(second, 'decrypt', parameters, sealed)).toEqual(Buffer.alloc(16));
  // The worker ciphers under it at this moment, and ends by its error.
  const ended = once(worker, 'error');
  core.release(first);
  expect(await ended).toEqual([expect.objectContaining({ message: 'no such key' })]);
});

test('an operation is known to its own thread alone', async () => {
  const { worker, report } = await start(1);
  const operations = core.memoryStatus().operations;
  expect(codeOf(() => core.cipherUpdate(report.operation, Buffer.alloc(1), Buffer.alloc(1)))).toBe('bad-argument');
  core.operationCancel(report.operation);
  expect(core.memoryStatus().operations).toBe(operations);
  await worker.terminate();
});

test('workers come and go without leaving memory behind', async () => {
  const before = core.memoryStatus();
  for (let round = 0; round < 10; round++) {
    const { worker } = await start(20);
    await worker.terminate();
  }
  expect(core.memoryStatus()).toEqual(before);
});
