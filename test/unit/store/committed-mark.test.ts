// The number of confirmed audit records in addition to the database: as it was written at the next
// start, never lower without being accepted, and not known when anything of it was changed.
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { openCommittedMark } from '../../../server/adapters/store/engine/sqlite/committed-mark.ts';
import { openStore } from '../../../server/adapters/store/store.ts';
import { systemClock } from '../../../server/base/time.ts';
import type { Repositories } from '../../../server/ports/store.ts';
import { folderOfTest } from '../../support/folders.ts';

let folder: string;
let database: string;
beforeEach(() => {
  folder = folderOfTest();
  database = join(folder, 'dke.db');
});

const found = (): number | undefined => {
  const mark = openCommittedMark(database);
  mark.close();
  return mark.found?.records;
};
const write = (...records: readonly number[]): void => {
  const mark = openCommittedMark(database);
  for (const each of records) mark.write({ records: each, root: undefined });
  mark.close();
};

test('nothing is known before the first commit; then the last number is', () => {
  expect(found()).toBe(undefined);
  write(1, 2, 1_234_567);
  expect(found()).toBe(1_234_567);
  expect(statSync(`${database}.committed`).mode & 0o777).toBe(0o600);
});

test('a smaller number is not written over a larger one, unless the database was accepted as it is', () => {
  write(70);
  write(40);
  expect(found()).toBe(70);
  const mark = openCommittedMark(database);
  mark.accept();
  mark.write({ records: 41, root: Buffer.alloc(32, 7) });
  mark.close();
  expect(found()).toBe(41);
});

test('what was torn, cut or changed says nothing', () => {
  write(4_711);
  const path = `${database}.committed`;
  const whole = readFileSync(path);
  for (let at = 0; at < whole.length; at += 1) {
    const changed = Buffer.from(whole);
    changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
    writeFileSync(path, changed);
    expect([at, found()]).toEqual([at, undefined]);
    writeFileSync(path, whole.subarray(0, at));
    expect([at, found()]).toEqual([at, undefined]);
  }
});

test('a file that cannot be written hinders nothing', () => {
  database = join(folder, 'missing', 'dke.db');
  expect(() => write(5)).not.toThrow();
  expect(found()).toBe(undefined);
});

test('after commits, it counts exactly the records of the units that were committed', async () => {
  const open = () =>
    openStore({
      path: database,
      clock: systemClock,
      authenticateRow: () => '',
      onFatal: (error) => expect.fail(String(error)),
    });
  const store = await open();
  const append = (tx: Repositories) =>
    tx.audit.append({
      kind: 'key.disabled',
      actor: { kind: 'user', id: 'test', name: 'test', requestId: 'test', peer: null },
      tenantId: 'test',
      subject: { kind: 'key', id: 'test' },
      details: {},
    });
  const fails = async (tx: Repositories): Promise<never> => {
    await append(tx);
    throw new Error('taken back');
  };
  // The first has a commit of its own; the others share one.
  const units = [append, fails, append, fails].map((work) => store.write<unknown>(work));
  expect((await Promise.allSettled(units)).filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
  await expect(store.write(fails)).rejects.toThrow('taken back');
  expect(found()).toBe(2);
  // With an audit record, a unit is a durable one.
  await store.write(append, { durable: false });
  expect(found()).toBe(3);
  expect(await store.read.audit.size()).toBe(3);
  await store.close();
});
