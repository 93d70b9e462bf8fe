// Two tenants on the real server, each with a key store endpoint and a database under load: what is
// done to one stops it, at once and to the letter, and the other does not miss a single answer.
// Then the way back, with the session that was open all along, and the end.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AuditLog } from '../../server/contract/api/audit-routes.ts';
import type { Root } from '../../server/contract/api/root-routes.ts';
import type { Session } from '../../server/contract/api/sign-in-routes.ts';
import type { ChangedTenant, Tenant } from '../../server/contract/api/tenants-routes.ts';
import type { IssuedToken } from '../../server/contract/api/tokens-routes.ts';
import { runCommand } from '../support/command.ts';
import { type ConsoleApi, createGroup, openConsoleApi, registerApplication } from '../support/console-api.ts';
import type { Database } from '../support/database.ts';
import { until } from '../support/host.ts';
import { type Site, startSite } from '../support/site.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';
import { callXks, requestMetadata } from '../support/xks-client.ts';

const iv = '00'.repeat(16);
const plain = '42'.repeat(32);

interface House {
  readonly id: string;
  readonly name: string;
  /** The API as an administrator of this tenant calls it. */
  readonly api: ConsoleApi;
  readonly endpoint: XksEndpoint;
  readonly database: Database;
  readonly handle: number;
  readonly encrypted: string;
}

let site: Site;
let acme: House;
let zeta: House;
const agent = new Agent({ keepAlive: true });

const build = async (name: string): Promise<House> => {
  const { id } = await site.api.call<Tenant>('POST', '/api/tenants', { name });
  const { token } = await site.api.call<IssuedToken>('POST', `/api/tokens?tenant=${name}`, {
    name: 'everything in it',
    grants: [{ role: 'administrator', scope: null }],
  });
  const api = openConsoleApi(site.server, token);
  const endpoint = await createXksEndpoint({ server: site.server, api }, 'cloud');
  const application = await registerApplication(api, 'db', await createGroup(api, 'group'));
  const database = site.database(site.config(name, application));
  expect((await database.call('open', { pin: '' })).rv).toBe('CKR_OK');
  const { handle = 0 } = await database.call('generate', { label: 'MK' });
  const { data: encrypted = '' } = await database.call('encrypt', { handle, iv, data: plain });
  return { id, name, api, endpoint, database, handle, encrypted };
};

/** The cloud's answer. */
const cloud = async ({ endpoint: { configuration, endpoint } }: House): Promise<string> => {
  const { status, body } = await callXks(
    { server: site.server, configuration },
    {
      agent,
      target: `/keys/${endpoint.keyId}/encrypt`,
      body: { requestMetadata: requestMetadata(), plaintext: 'AAAA', encryptionAlgorithm: 'AES_GCM' },
    },
  );
  return status === 200 ? '200' : `${status} ${String(body.errorName)}`;
};
/** What the database gets, in the session that it has open. */
const tde = async ({ database, handle, encrypted }: House): Promise<string> => {
  const { rv, data } = await database.call('decrypt', { handle, iv, data: encrypted });
  return rv === 'CKR_OK' && data !== plain ? 'another plaintext' : rv;
};
const people = async ({ api }: House): Promise<number> => (await api.send('GET', '/api/vaults')).status;
const served = async (house: House) => [await cloud(house), await tde(house), await people(house)];
const everything = ['200', 'CKR_OK', 200];

/** Calls one after another until it is stopped; counts every answer. */
const load = (work: () => Promise<string>) => {
  const answers = new Map<string, number>();
  let stopped = false;
  const running = (async () => {
    while (!stopped) {
      const answer = await work();
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
    }
  })();
  return {
    count: () => [...answers.values()].reduce((sum, count) => sum + count, 0),
    stop: async (): Promise<readonly string[]> => {
      stopped = true;
      await running;
      return [...answers.keys()];
    },
  };
};
type Load = ReturnType<typeof load>;
const more = (loads: readonly Load[]): Promise<unknown> => {
  const before = loads.map((each) => each.count());
  return until('more answers on every path', async () =>
    loads.every((each, at) => each.count() > (before[at] ?? 0) + 10) ? true : undefined,
  );
};
const change = <T = ChangedTenant>(house: House, action: string, body?: object): Promise<T> =>
  site.api.call('POST', `/api/tenants/${house.id}/${action}`, body);

beforeAll(async () => {
  site = await startSite();
  acme = await build('acme');
  zeta = await build('zeta');
});
afterAll(async () => {
  agent.destroy();
  await site?.end();
});

test('each has its own people, who act in it without saying so', async () => {
  const { tenantId, grants } = await acme.api.call<Session>('GET', '/api/session');
  expect(tenantId).toBe(acme.id);
  expect(grants).toEqual([{ role: 'administrator', scope: null, tenantId: acme.id }]);
  expect((await acme.api.send('GET', `/api/tenants/${zeta.id}`)).status).toBe(404);
  expect((await acme.api.send('GET', '/api/vaults?tenant=zeta')).status).toBe(404);
  expect((await acme.api.send('POST', `/api/tenants/${acme.id}/suspend`)).status).toBe(403);
});

test('one is suspended, deleted, restored under load; the other does not miss an answer', async () => {
  const others = [load(() => cloud(zeta)), load(() => tde(zeta))];
  // After any answer, acme continues to call in its open session.
  const asking = [load(() => cloud(acme)), load(() => tde(acme))];
  await more([...others, ...asking]);

  const planned = await site.api.call<ChangedTenant>('POST', `/api/tenants/${acme.id}/suspend?dryRun=true`);
  expect(planned).toMatchObject({ dryRun: true, tenant: { state: 'active' } });
  expect(planned.impact).toEqual({ vaults: 2, keys: 2, endpoints: 1, applications: 1, tokens: 1, copies: 0 });
  expect((await change(acme, 'suspend')).tenant.state).toBe('suspended');
  // From the answer on, not one more. The calls that were under way have ended with the loads that
  // stop here.
  const [toldCloud = [], toldDatabase = []] = await Promise.all(asking.map((each) => each.stop()));
  expect([...toldCloud].filter((answer) => !['200', '400 InvalidStateException'].includes(answer))).toEqual([]);
  expect([...toldDatabase].filter((answer) => !['CKR_OK', 'CKR_ACTION_PROHIBITED'].includes(answer))).toEqual([]);
  const stopped = ['400 InvalidStateException', 'CKR_ACTION_PROHIBITED', 401];
  expect(await served(acme)).toEqual(stopped);
  expect((await acme.endpoint.health()).body).toMatchObject({ errorName: 'InvalidStateException' });
  await more(others);

  await change(acme, 'resume');
  expect(await served(acme)).toEqual(everything);

  const deleted = await site.api.call<ChangedTenant>('DELETE', `/api/tenants/${acme.id}`);
  expect(Date.parse(deleted.tenant.purgeAt ?? '') - Date.parse(deleted.tenant.deletedAt ?? '')).toBe(30 * 86_400_000);
  expect(await served(acme)).toEqual(['404 InvalidUriPathException', 'CKR_ACTION_PROHIBITED', 401]);
  expect((await site.api.send('POST', '/api/vaults?tenant=acme', { name: 'late' })).status).toBe(409);
  await more(others);

  await change(acme, 'restore');
  expect(await served(acme)).toEqual(everything);
  await more(others);
  expect(await Promise.all(others.map((each) => each.stop()))).toEqual([['200'], ['CKR_OK']]);
  const kinds = (await site.api.audit(`subjectId=${acme.id}`)).map(({ kind }) => kind);
  expect(kinds).toEqual(['tenant.created', 'tenant.suspended', 'tenant.resumed', 'tenant.deleted', 'tenant.restored']);
  // The tenant's own auditors read what happened to it.
  expect((await acme.api.audit(`subjectId=${acme.id}`)).map(({ kind }) => kind)).toEqual(kinds);
});

test('what was stopped is stopped after a restart of the server too', async () => {
  await change(acme, 'suspend');
  await site.stopServer();
  await site.startServer();
  expect(await cloud(acme)).toBe('400 InvalidStateException');
  expect(await tde(acme)).toBe('CKR_ACTION_PROHIBITED');
  await until('the other one continues', async () => ((await tde(zeta)) === 'CKR_OK' ? true : undefined));
  expect(await cloud(zeta)).toBe('200');
  await change(acme, 'resume');
  expect(await served(acme)).toEqual(everything);
});

test('a purge asks for the name, and is the end: of its keys, not of their tombstones, nor of its neighbour', async () => {
  const own = [load(() => cloud(zeta)), load(() => tde(zeta))];
  expect((await site.api.send('POST', `/api/tenants/${acme.id}/purge`, { confirm: 'acme' })).status).toBe(409);
  await site.api.call('DELETE', `/api/tenants/${acme.id}`);
  expect((await site.api.send('POST', `/api/tenants/${acme.id}/purge`, { confirm: 'ACME' })).status).toBe(400);
  await change(acme, 'purge', { confirm: 'acme' });
  expect(await cloud(acme)).toBe('404 InvalidUriPathException');
  expect(await tde(acme)).not.toBe('CKR_OK');
  expect((await acme.api.send('GET', '/api/vaults')).status).toBe(401);
  await until('the erasure run', async () =>
    (await site.api.call<Tenant>('GET', `/api/tenants/${acme.id}`)).unrecoverableAt === null ? undefined : true,
  );
  expect((await site.api.send('POST', `/api/tenants/${acme.id}/restore`)).status).toBe(409);
  await more(own);
  expect(await Promise.all(own.map((each) => each.stop()))).toEqual([['200'], ['CKR_OK']]);
});

test('the destruction of a purged tenant is proved offline, by its part of the audit log', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-evidence-'));
  const tokenFile = join(folder, 'admin.token');
  writeFileSync(tokenFile, site.token, { mode: 0o600 });
  const environment = { DKE_SERVER: site.server.url, DKE_CA_FILE: site.server.caFile, DKE_TOKEN_FILE: tokenFile };
  try {
    const log = await site.api.call<AuditLog>('GET', '/api/audit/log');
    const evidence = join(folder, 'acme.ndjson');
    const exported = await runCommand(['audit', 'export', '--tenant', acme.id, '--out', evidence], { environment });
    expect([exported.code, exported.stderr]).toEqual([0, '']);
    // No service and no token are needed.
    const verified = await runCommand(['audit', 'verify', evidence, '--key', log.verifierKey, '-o', 'json'], {});
    expect(JSON.parse(verified.stdout)).toMatchObject({ valid: true, findings: [] });
    const records = readFileSync(evidence, 'utf8');
    for (const kind of ['tenant.purged', 'tenant.unrecoverable']) expect(records).toContain(kind);

    const inventory = await runCommand(['key', 'export', '--format', 'csv'], { environment });
    const [head = '', ...rows] = inventory.stdout.trimEnd().split('\r\n');
    const columns = head.split(',');
    const cellsOf = (row: string) => Object.fromEntries(row.split(',').map((cell, at) => [columns[at], cell]));
    const own = rows.map(cellsOf).filter(({ tenantId }) => tenantId === acme.id);
    expect(own.length).toBeGreaterThan(1);
    for (const { state, unrecoverableAt } of own)
      expect([state, unrecoverableAt]).toEqual(['destroyed', expect.stringMatching(/Z$/)]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('the whole life of one by the command, and any command in it', async () => {
  const tokenFile = join(site.folder, 'admin.token');
  writeFileSync(tokenFile, site.token, { mode: 0o600 });
  const environment = { DKE_SERVER: site.server.url, DKE_CA_FILE: site.server.caFile, DKE_TOKEN_FILE: tokenFile };
  const dke = async <T = Tenant>(...words: readonly string[]): Promise<T> => {
    const { code, stdout, stderr } = await runCommand([...words, '-o', 'json'], { environment });
    expect([words, code, stderr]).toEqual([words, 0, '']);
    return JSON.parse(stdout) as T;
  };
  const { id } = await dke('tenant', 'create', 'lab');
  await dke('vault', 'create', 'only here', '--tenant', 'lab');
  expect(JSON.stringify(await dke('vault', 'list'))).not.toContain('only here');
  // The key of the tenant, and not the root key.
  const { epoch } = await dke<Root>('root', 'show');
  expect((await dke<Root>('root', 'rotate', '--tenant', 'lab')).epoch).toBe(epoch);
  const { tenant, impact } = await dke<ChangedTenant>('tenant', 'suspend', 'lab', '--confirm', 'lab');
  expect([tenant.state, impact.vaults]).toEqual(['suspended', 1]);
  await dke('tenant', 'delete', 'lab', '--confirm', 'lab');
  expect((await dke('tenant', 'restore', 'lab')).state).toBe('suspended');
  expect((await dke('tenant', 'show', id)).name).toBe('lab');
});
