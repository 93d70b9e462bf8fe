// pkcs11.toml is replaced while a database runs: by a new access_guid, whose old one is removed at
// once; by a file that cannot be used; by one of another application.
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { IssuedAccessGuid, RegisteredApplication } from '../../server/contract/api/tde-applications-routes.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import type { Database } from '../support/database.ts';
import { type Site, startSite } from '../support/site.ts';

const pin = 'any';
const iv = '00'.repeat(16);
const data = '42'.repeat(32);

let site: Site;
let application: RegisteredApplication;
let groupId: string;
let config: string;
let database: Database;
let handle: number;
let encrypted: string;

const logged = (): string =>
  readdirSync(site.logDirectory)
    .map((name) => readFileSync(join(site.logDirectory, name), 'utf8'))
    .join('');
const works = async (): Promise<void> => {
  expect(await database.call('decrypt', { handle, iv, data: encrypted })).toEqual({ rv: 'CKR_OK', data });
};
const path = (more = ''): string => `/api/tde/applications/${application.application.id}/access-guids${more}`;
const rotate = async (): Promise<IssuedAccessGuid> => {
  const issued = await site.api.call<IssuedAccessGuid>('POST', path());
  // An editor or a deployment changes the file in this way: another file gets its name.
  renameSync(site.config('next', issued), config);
  return issued;
};
const removeOldest = async (): Promise<void> => {
  type Row = { readonly id: string; readonly removedAt: string | null };
  const { items } = await site.api.call<{ readonly items: readonly Row[] }>('GET', path());
  const oldest = items.findLast(({ removedAt }) => removedAt === null);
  await site.api.call('DELETE', path(`/${oldest?.id}`));
};

beforeAll(async () => {
  site = await startSite();
  groupId = await createGroup(site.api, 'finance');
  application = await registerApplication(site.api, 'erp', groupId);
  config = site.config('pkcs11', application);
  database = site.database(config);
  expect((await database.call('open', { pin })).rv).toBe('CKR_OK');
  handle = (await database.call('generate', { label: 'MASTER' })).handle ?? 0;
  encrypted = (await database.call('encrypt', { handle, iv, data })).data ?? '';
});
afterAll(() => site.end());

test('a running database continues with a new access_guid when the old one is removed, and the log says so', async () => {
  await rotate();
  await removeOldest();
  await works();
  expect((await database.call('generate', { label: 'NEXT' })).rv).toBe('CKR_OK');
  await expect.poll(logged).toContain('the configuration file has changed: new calls use it');
  // The second rotation happens while calls are under way.
  await rotate();
  const running = Promise.all(Array.from({ length: 8 }, works));
  await removeOldest();
  await running;
  await works();
  // Another process of the same file shares it.
  const other = site.database(config);
  expect((await other.call('open', { pin })).rv).toBe('CKR_OK');
  expect((await other.call('find', { label: 'NEXT' })).handles).toHaveLength(1);
  await other.stop();
  await works();
});

test('a file that cannot be used changes nothing for running databases, and the log says why', async () => {
  const good = readFileSync(config, 'utf8');
  writeFileSync(config, `${good}speed = 9\n`);
  await expect
    .poll(async () => {
      await works();
      return logged();
    })
    .toMatch(/running processes keep the configuration that they have: .*speed is unknown/);
  const other = site.database(config);
  expect((await other.call('open', { pin })).rv).toBe('CKR_DEVICE_ERROR');
  await other.stop();
  writeFileSync(config, good);
  await works();
});

test('a file of another application is for processes that start later: handles of the running ones are keys of the first', async () => {
  const other = await registerApplication(site.api, 'payroll', groupId);
  renameSync(site.config('next', other), config);
  await expect
    .poll(async () => {
      await works();
      return logged();
    })
    .toMatch(/names another application now: restart the database/);
  const later = site.database(config);
  expect((await later.call('open', { pin })).rv).toBe('CKR_OK');
  expect((await later.call('generate', { label: 'PAYROLL' })).rv).toBe('CKR_OK');
  await works();
  await later.stop();
  await works();
});
