// A database with many keys, through the library, the agent and the service: its heartbeat is an
// Init of each key, and one request proves them all (decision 34). No time is measured: a key that
// was disabled is asked for until it is refused.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createGroup, registerApplication } from '../support/console-api.ts';
import type { Database } from '../support/database.ts';
import { until } from '../support/host.ts';
import { type Site, startSite } from '../support/site.ts';

const iv = '00'.repeat(16);
const count = 40;
let site: Site;
let gen0: Database;
let fg0: Database;
const handles: number[] = [];

/** One Init of each key, as the process sees it. */
const beat = async (process: Database): Promise<readonly string[]> =>
  (await process.call('heartbeat', { handles, iv })).codes ?? [];
/** Requests of agents so far, by what they ask for. */
const asked = async (operation: string): Promise<number> => {
  const sent = request(new URL('/metrics', site.server.url), { ca: readFileSync(site.server.caFile), agent: false });
  sent.end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  const text = Buffer.concat(await answer.toArray()).toString('utf8');
  expect(answer.statusCode, text).toBe(200);
  const lines = text.split('\n').filter((line) => line.startsWith('dke_tde_requests_total{'));
  return lines
    .filter((line) => line.includes(`operation="${operation}"`))
    .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
};
const keyId = async (label: string): Promise<string> => {
  const { items } = await site.api.call<{ items: { id: string; name: string }[] }>(
    'GET',
    `/api/keys?kind=master&limit=100`,
  );
  return items.find(({ name }) => name === label)?.id ?? '';
};

beforeAll(async () => {
  site = await startSite();
  const issued = await registerApplication(site.api, 'erp', await createGroup(site.api, 'finance'));
  const config = site.config('erp', issued, 'connect_timeout_ms = 20000\ncall_timeout_ms = 60000\n');
  gen0 = site.database(config);
  fg0 = site.database(config);
  for (const each of [gen0, fg0]) expect((await each.call('open', { pin: 'x' })).rv).toBe('CKR_OK');
  for (let at = 0; at < count; at++) handles.push((await gen0.call('generate', { label: `PDB ${at}` })).handle ?? 0);
});
afterAll(() => site?.end());

test('heartbeats of all keys do not ask for each of them, also from a second process', async () => {
  expect(new Set(await beat(gen0))).toEqual(new Set(['CKR_OK']));
  const before = await asked('checkUse');
  for (const process of [gen0, fg0, gen0]) expect(new Set(await beat(process))).toEqual(new Set(['CKR_OK']));
  await until('a heartbeat after the answer no longer counts', async () => {
    await beat(gen0);
    return (await asked('refresh')) > 0 ? true : undefined;
  });
  // A key whose answer alone no longer counts is asked for alone.
  expect((await asked('checkUse')) - before).toBeLessThan(count);
});

test.each(['disable', 'destroy'])(
  'a key that is gone (%s) is refused at an Init, and the others are not',
  async (how) => {
    const at = how === 'disable' ? 3 : 5;
    const id = await keyId(`PDB ${at}`);
    const application = (await site.api.call<{ applicationId: string }>('GET', `/api/keys/${id}`)).applicationId;
    await beat(gen0);
    if (how === 'disable') await site.api.call('POST', `/api/keys/${id}/disable`);
    else
      await site.api.call('POST', `/api/tde/applications/${application}/master-keys/${id}/destroy`, {
        confirm: `PDB ${at}`,
      });
    // The use is refused at once, before any Init has noticed.
    const use = await fg0.call('encrypt', { handle: handles[at] ?? 0, iv, data: '42'.repeat(16) });
    expect(use.rv).toBe(how === 'disable' ? 'CKR_KEY_FUNCTION_NOT_PERMITTED' : 'CKR_KEY_HANDLE_INVALID');
    const codes = await until('the heartbeat that notices', async () => {
      const all = await beat(gen0);
      return all[at] === 'CKR_OK' ? undefined : all;
    });
    expect(codes.filter((code) => code !== 'CKR_OK')).toHaveLength(how === 'disable' ? 1 : 2);
  },
);
