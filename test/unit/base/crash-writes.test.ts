// A power failure at each write of files that the service or its commands write outside the
// database: what is there before or after, and what a crash leaves is continued. Root keys,
// backups, restores and the node's own state have files of tests of their own
// (test/house/durable-files.test.ts).
import { X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { core } from '../../../addon/core.ts';
import { addReceipt, readReceipts } from '../../../server/adapters/roots/receipts.ts';
import { openFileSink } from '../../../server/adapters/sinks/file.ts';
import { watchOwnFile } from '../../../server/adapters/store/engine/sqlite/own-file.ts';
import { loadConfig } from '../../../server/app/config/config.ts';
import { activateNextCertificate, createNextCertificate } from '../../../server/app/host/next-certificate.ts';
import { lockInstance } from '../../../server/app/open/instance-lock.ts';
import { readNodeId } from '../../../server/app/open/storage.ts';
import { openCertificates } from '../../../server/app/tls/own-certificate.ts';
import { newId } from '../../../server/base/ids.ts';
import { changeOwnFile } from '../../../server/cli/service/own-file.ts';
import type { LogItem } from '../../../server/ports/log-sink.ts';
import { crashPoints } from '../../support/crash-points.ts';
import { folderOfTest } from '../../support/folders.ts';
import { quietLog } from '../../support/quiet-log.ts';

/** A folder of a service, and its configuration. */
const serviceIn = (folder: string) => {
  mkdirSync(join(folder, 'dke-data'), { recursive: true, mode: 0o700 });
  writeFileSync(join(folder, 'dke.toml'), '');
  return loadConfig(join(folder, 'dke.toml'), folder);
};
const makeCertificate = (folder: string): void =>
  openCertificates(serviceIn(folder), core, quietLog, { ask: () => Promise.reject(new Error('no other disk')) }).make();
const expectPair = (folder: string): void => {
  const read = (name: string): string => readFileSync(join(folder, 'dke-data', name), 'utf8');
  expect(new X509Certificate(read('tls.crt')).toString()).toContain('BEGIN CERTIFICATE');
  expect(read('tls.key')).toContain('PRIVATE KEY');
};

test("the service's own certificate: each state leads to a pair", async () => {
  const folder = join(folderOfTest(), 'service');
  serviceIn(folder);
  const { states } = await crashPoints(folder, () => makeCertificate(folder));
  expect(states.length).toBeGreaterThan(2);
  for (const state of states) {
    makeCertificate(state);
    expectPair(state);
  }
});

test('the next certificate is there as a whole, or is created again; its activation is completed', async () => {
  const folder = join(folderOfTest(), 'service');
  makeCertificate(folder);
  const next = (of: string): string => join(of, 'dke-data/tls.crt.next');
  const create = await crashPoints(folder, () => createNextCertificate(serviceIn(folder)));
  for (const state of create.states) {
    if (!existsSync(next(state))) createNextCertificate(serviceIn(state));
    expect(() => new X509Certificate(readFileSync(next(state)))).not.toThrow();
  }
  const activate = await crashPoints(folder, () => activateNextCertificate(serviceIn(folder)));
  for (const state of activate.states) {
    if (existsSync(next(state))) activateNextCertificate(serviceIn(state));
    expectPair(state);
    expect(readdirSync(join(state, 'dke-data')).filter((name) => name.includes('.next'))).toEqual([]);
  }
});

test('the id of a node is whole or not there, and stays', async () => {
  const folder = join(folderOfTest(), 'service');
  mkdirSync(folder);
  const { states, answer } = await crashPoints(folder, () => readNodeId(join(folder, 'node'), () => newId(0)));
  for (const state of states) {
    const path = join(state, 'node');
    if (existsSync(path)) expect(readNodeId(path, () => 'another one')).toBe(answer);
  }
  expect(readNodeId(join(folder, 'node'), () => 'another one')).toBe(answer);
});

test('the value of an instance is whole, or made again', async () => {
  const folder = join(folderOfTest(), 'service');
  mkdirSync(folder);
  const path = (of: string): string => join(of, 'instance');
  const { states, answer } = await crashPoints(folder, () => lockInstance(path(folder), quietLog));
  await answer?.();
  for (const state of states) {
    await (await lockInstance(path(state), quietLog))?.();
    expect(readFileSync(path(state), 'utf8')).toMatch(/^[0-9a-f]{64}\n$/);
  }
});

test('receipts: those before stay, and the new one is there or not', async () => {
  const folder = join(folderOfTest(), 'receipts');
  mkdirSync(folder);
  const path = (of: string): string => join(of, 'root.key.backups');
  addReceipt(path(folder), { at: 1 });
  const { states } = await crashPoints(folder, () => addReceipt(path(folder), { at: 2 }));
  for (const state of states) {
    const found = readReceipts(path(state), (receipt) => receipt as { at: number });
    expect([[1], [1, 2]]).toContainEqual(found.map(({ at }) => at));
  }
});

test("a sink's file that is rotated loses no record and has none twice", async () => {
  const folder = join(folderOfTest(), 'sink');
  mkdirSync(folder);
  const item = (sequence: number): LogItem =>
    ({ kind: 'record', sequence, text: JSON.stringify({ sequence, filler: 'x'.repeat(80) }) }) as unknown as LogItem;
  const open = (of: string) => openFileSink({ name: 'f', path: join(of, 'audit'), rotateBytes: 200, keep: 0 });
  const all = [1, 2, 3, 4, 5, 6].map(item);
  await open(folder).send(all.slice(0, 3), 'dke/audit/one');
  const { states } = await crashPoints(folder, () => open(folder).send(all.slice(3), 'dke/audit/one'));
  for (const state of states) {
    // The cursor was not stored: the same ones come again.
    await open(state).send(all.slice(3), 'dke/audit/one');
    const lines = readdirSync(state).flatMap((name) => readFileSync(join(state, name), 'utf8').split('\n'));
    const found = lines.flatMap((line) => /"sequence":(\d)/.exec(line)?.[1] ?? []).toSorted();
    expect(found).toEqual(['1', '2', '3', '4', '5', '6']);
  }
});

test('a database that was deleted is saved as a whole or under the name of a draft', async () => {
  const folder = join(folderOfTest(), 'data');
  mkdirSync(folder);
  const path = join(folder, 'dke.db');
  writeFileSync(path, 'the database');
  const own = watchOwnFile(path, async (to) => writeFileSync(to, 'the database'));
  rmSync(path);
  const { states } = await crashPoints(folder, () => own.check());
  for (const state of states)
    for (const name of readdirSync(state).filter((each) => !each.endsWith('.part')))
      expect(readFileSync(join(state, name), 'utf8')).toBe('the database');
  expect(states.length).toBeGreaterThan(1);
});

test("a file of the command's own is the former one or the new one", async () => {
  const folder = join(folderOfTest(), 'own');
  mkdirSync(folder);
  const path = (of: string): string => join(of, 'session');
  const put = (turn: number): void => changeOwnFile(path(folder), (write) => write({ turn }));
  put(1);
  const { states } = await crashPoints(folder, () => put(2));
  const found = states.map((state) => (JSON.parse(readFileSync(path(state), 'utf8')) as { turn: number }).turn);
  expect([...new Set(found)].toSorted()).toEqual([1, 2]);
});
