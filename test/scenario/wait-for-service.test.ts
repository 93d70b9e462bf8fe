// wait_seconds in pkcs11.toml: a database that starts before the service waits for it, and no other
// database waits along.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RegisteredApplication } from '../../server/contract/api/tde-applications-routes.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { until } from '../support/host.ts';
import { type Site, startSite } from '../support/site.ts';

const pin = 'x';
const timeouts = 'connect_timeout_ms = 10000\ncall_timeout_ms = 20000\n';
let site: Site;
let erp: RegisteredApplication;
beforeAll(async () => {
  site = await startSite();
  erp = await registerApplication(site.api, 'erp', await createGroup(site.api, 'finance'));
});
afterAll(() => site.end());

const logged = (text: string): boolean =>
  existsSync(site.logDirectory) &&
  readdirSync(site.logDirectory, { withFileTypes: true }).some(
    (entry) => entry.isFile() && readFileSync(join(site.logDirectory, entry.name), 'utf8').includes(text),
  );

test('C_Initialize waits until the service answers, and others do not wait', async () => {
  const patient = site.database(site.config('patient', erp, `${timeouts}wait_seconds = 600\n`));
  const hasty = site.database(site.config('hasty', erp, timeouts));
  await site.stopServer();
  let opened = false;
  const opening = patient.call('open', { pin }).then((answer) => {
    opened = true;
    return answer;
  });
  await until('the agent to say what it waits for', async () => (logged('waiting for the service') ? true : undefined));
  expect((await hasty.call('open', { pin })).rv).toBe('CKR_OK');
  expect((await hasty.call('find', { label: 'ANY' })).rv).toBe('CKR_DEVICE_ERROR');
  expect(opened).toBe(false);
  await site.startServer();
  expect((await opening).rv).toBe('CKR_OK');
  await until('the agent to say so', async () => (logged('the service answers') ? true : undefined));
  expect((await patient.call('find', { label: 'ANY' })).rv).toBe('CKR_OK');
});

test('a refusal is told at once, by the call that it concerns', async () => {
  const issued = { config: { ...erp.config } };
  const wrong = erp.accessGuid.replace(/.$/, (c) => (c === 'A' ? 'B' : 'A'));
  issued.config.pkcs11_toml = erp.config.pkcs11_toml.replaceAll(erp.accessGuid, wrong);
  const refused = site.database(site.config('refused', issued, `${timeouts}wait_seconds = 600\n`));
  expect((await refused.call('open', { pin })).rv).toBe('CKR_OK');
  expect((await refused.call('find', { label: 'ANY' })).rv).toBe('CKR_ACTION_PROHIBITED');
});

test('when the time is over, the first call tells why', async () => {
  await site.stopServer();
  const brief = site.database(site.config('brief', erp, `${timeouts}wait_seconds = 1\n`));
  expect((await brief.call('open', { pin })).rv).toBe('CKR_OK');
  await until('the agent to say so', async () => (logged('no longer waiting for the service') ? true : undefined));
  expect((await brief.call('find', { label: 'ANY' })).rv).toBe('CKR_DEVICE_ERROR');
  await site.startServer();
});
