// The file of the embedded database is deleted or replaced under the running service: that is
// noticed, nothing is changed, keys are used in the meantime, and everything that was confirmed is
// in a new file. The command in the refusal restores it.
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { ServiceError } from '../../server/base/service-error.ts';
import {
  administrator,
  masterKey,
  type OpenedService,
  openTestService,
  registerCaller,
} from '../support/open-service.ts';

let opened: OpenedService;
afterEach(() => opened?.remove().catch(() => rmSync(opened.folder, { recursive: true, force: true })));

const database = (): string => join(opened.config.dataDirectory, 'dke.db');
const vaults = async (): Promise<readonly string[]> =>
  (await opened.operations.vaults.list(administrator, {})).items.map(({ name }) => name).toSorted();
const create = (name: string) => opened.operations.vaults.create(administrator, { name });
const storeCheck = async () => (await opened.operations.health()).checks.find(({ name }) => name === 'store');
const noticed = () => expect.poll(async () => (await storeCheck())?.healthy, { interval: 200 }).toBe(false);
/** Stops it, and answers the reason that it gives. */
const stop = (): Promise<string> =>
  opened.service.stop().then(
    () => 'stopped',
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
/** Runs the command of the log message as a person would who pastes it into a shell. */
const putBack = (log: string): void => {
  const [, command = ''] = /put it back \((rm -f [^)]+)\)/.exec(log) ?? [];
  expect(command).toContain(database());
  execFileSync('sh', ['-c', command]);
};
const startAgain = async (): Promise<void> => {
  opened = await openTestService({ folder: opened.folder });
};

test('deleted: changes are refused, keys are used, and everything that was confirmed is put back', async () => {
  opened = await openTestService();
  const { caller } = await registerCaller(opened, 'erp');
  const { handle } = await opened.operations.tde.generateKey(caller, masterKey('pages'));
  await create('before');
  const iv = Buffer.alloc(16);
  const encrypt = () =>
    opened.operations.tde.encrypt(caller, handle, { algorithm: 'aes-cbc', iv }, Buffer.alloc(32, 7));
  // The first use of a new key is stored before it is answered.
  await encrypt();
  rmSync(database());
  await create('not noticed yet');
  await noticed();
  const refused = (await create('refused').catch((error: unknown) => error)) as ServiceError;
  expect(refused).toMatchObject({
    code: 'unavailable',
    message: `${database()} was deleted while the service runs: nothing can be changed`,
  });
  expect((await encrypt()).length).toBe(32);
  expect(await vaults()).toContain('not noticed yet');
  expect((await storeCheck())?.detail).toContain(refused.hint);
  const saved = readdirSync(opened.config.dataDirectory).filter((name) => name.includes('.saved-'));
  expect(saved).toHaveLength(1);
  expect(statSync(join(opened.config.dataDirectory, saved[0] ?? '')).mode & 0o777).toBe(0o600);
  const log = await stop();
  expect(log).toContain(refused.hint);
  expect(existsSync(database())).toBe(false);
  putBack(log);
  await startAgain();
  expect(await vaults()).toEqual(expect.arrayContaining(['before', 'not noticed yet']));
  expect(await vaults()).not.toContain('refused');
  expect((await opened.operations.health()).healthy).toBe(true);
  await create('after');
});

test('deleted, and the service is stopped before it could notice: the end saves it', async () => {
  opened = await openTestService();
  await create('only in the open file');
  for (const end of ['', '-wal', '-shm']) rmSync(`${database()}${end}`);
  const log = await stop();
  expect(log).toMatch(/was deleted while the service runs/);
  putBack(log);
  await startAgain();
  expect(await vaults()).toContain('only in the open file');
});

test('replaced by an older copy: what is open is saved, and the copy stays as it is', async () => {
  opened = await openTestService();
  await opened.stop();
  const older = join(opened.folder, 'older.db');
  copyFileSync(database(), older);
  await startAgain();
  await create('newer');
  rmSync(database());
  copyFileSync(older, database());
  await noticed();
  await expect(create('refused')).rejects.toThrow(/was replaced while the service runs/);
  const log = await stop();
  putBack(log);
  await startAgain();
  expect(await vaults()).toContain('newer');
});
