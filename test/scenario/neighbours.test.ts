// A host that has other PKCS#11 libraries in its global scope, as hosts that load with RTLD_GLOBAL
// do: the functions of ours are its own. One process in C for each (test/native/host/neighbours.c),
// on the real agent and service.
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { startHostProcess, writeAnswers } from '../support/host-process.ts';
import { type Site, startSite } from '../support/site.ts';
import { makeSoftToken, softhsmModule } from '../support/softhsm.ts';

const build = resolve(import.meta.dirname, '../../build');
const ours = resolve(build, 'provider/1.0/libdke_pkcs11.so');
const next = resolve(build, 'tde/next/libdke_pkcs11.so');
const spy = '/usr/lib/x86_64-linux-gnu/pkcs11-spy.so';

let site: Site;
let config: string;
let answers: string;

beforeAll(async () => {
  site = await startSite();
  const application = await registerApplication(site.api, 'erp', await createGroup(site.api, 'finance'));
  config = site.config('pkcs11', application, 'connect_timeout_ms = 10000\ncall_timeout_ms = 30000\n');
  answers = writeAnswers(site.folder, randomBytes(32));
});
afterAll(() => site.end());

const works = async (neighbours: readonly string[], environment: Readonly<Record<string, string>> = {}) => {
  const options = { config, socket: site.socket, logDirectory: site.logDirectory, environment };
  const host = startHostProcess('neighbours', options, answers, ...neighbours);
  const end = await host.ended();
  expect(`${end} ${host.complaints()}`).toBe('0 ');
};

if (softhsmModule === undefined) console.log('skipped: softhsm2 is not installed');
test.runIf(softhsmModule !== undefined)('a second PKCS#11 library', async () => {
  const token = makeSoftToken(site.folder, 'neighbour', '1234');
  await works([softhsmModule ?? ''], token.environment);
  await works([softhsmModule ?? '', `self=${next}`], token.environment);
});

test('another version of the library itself', () => works([`self=${next}`]));

if (!existsSync(spy)) console.log('skipped: opensc-pkcs11 is not installed');
test.runIf(existsSync(spy))('a module that stands before others', () =>
  works([spy], { PKCS11SPY: ours, PKCS11SPY_OUTPUT: join(site.folder, 'spied') }),
);
