// A disk that hangs: syncs do not end for a long time. Clouds are served in the meantime, callers
// of changes get the outcome of their change, health shows the cause, and when the disk continues,
// the data match all answers.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Status } from '../../server/contract/api/status-routes.ts';
import type { Vault } from '../../server/contract/api/vaults-routes.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import type { Database } from '../support/database.ts';
import { until } from '../support/host.ts';
import { type HungDisk, makeHungDisk } from '../support/hung-disk.ts';
import { type PostgresServer, startPostgres } from '../support/postgresql.ts';
import { type Site, startSite } from '../support/site.ts';
import { inLongTier } from '../support/tiers.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';

const stores = {
  'the embedded database': async (disk: HungDisk) => ({
    postgres: undefined,
    site: await startSite({ environment: disk.environment }),
  }),
  PostgreSQL: async (disk: HungDisk) => {
    const postgres = await startPostgres({ environment: disk.environment });
    const { host, database } = postgres.createDatabase('dke');
    const toml = `[erasure]\ngather_ms = 20\n[store]\ntype = "postgresql"\nhost = "${host}"\ndatabase = "${database}"\n`;
    return { postgres, site: await startSite({ toml }) };
  },
} as const;

const tried: readonly (keyof typeof stores)[] = inLongTier('scenario/hung-disk: PostgreSQL')
  ? ['the embedded database', 'PostgreSQL']
  : ['the embedded database'];

describe.each(tried)('%s', (kind) => {
  const plain = randomBytes(32);
  let disk: HungDisk;
  let postgres: PostgresServer | undefined;
  let site: Site;
  let endpoint: XksEndpoint;
  let database: Database;
  let handle: number;
  const label = `ORACLE.TDE.HSM.MK.06${randomBytes(16).toString('hex').toUpperCase()}`;
  beforeAll(async () => {
    disk = makeHungDisk();
    ({ postgres, site } = await stores[kind](disk));
    endpoint = await createXksEndpoint(site, 'cloud');
    const application = await registerApplication(site.api, 'erp', await createGroup(site.api, 'databases'));
    database = site.database(site.config('erp', application));
    expect(await database.call('open', { pin: 'x' })).toEqual({ rv: 'CKR_OK' });
    ({ handle = 0 } = await database.call('generate', { label }));
  });
  afterAll(async () => {
    disk?.goOn();
    await site?.end();
    await postgres?.remove();
    disk?.remove();
  });
  const change = async (name: string) => {
    const { status, text } = await site.api.send('POST', '/api/vaults', { name });
    return { name, status, ...(JSON.parse(text) as { code?: string; detail?: string; hint?: string }) };
  };
  const expectServed = async (): Promise<void> => {
    const sealed = await endpoint.encrypt(plain);
    expect(sealed.status).toBe(200);
    expect((await endpoint.decrypt(sealed.body)).body.plaintext).toBe(plain.toString('base64'));
    const iv = '00'.repeat(16);
    const { rv, data = '' } = await database.call('encrypt', { handle, iv, data: plain.toString('hex') });
    expect(rv).toBe('CKR_OK');
    expect((await database.call('decrypt', { handle, iv, data })).data).toBe(plain.toString('hex'));
  };

  test('requests are served, changes are answered with what became of them, and health is degraded with its reason', async () => {
    await expectServed();
    disk.hang();
    const first = change('in the commit that hangs');
    await disk.reached();
    const second = change('behind it');
    const requests = Promise.all([expectServed(), expectServed()]);
    for (const { status, code, detail, hint } of [await first, await second]) {
      expect({ status, code }).toEqual({ status: 503, code: 'unavailable' });
      expect(detail).toMatch(/has not (answered|confirmed the change) for [0-9]+ s/);
      expect(hint).toContain('disk');
    }
    await requests;
    await expectServed();
    expect(await change('refused at once')).toMatchObject({
      status: 503,
      detail: expect.stringContaining('nothing was changed'),
    });
    await until('health to say so', async () =>
      (await site.api.send('GET', '/health')).text === '{"status":"degraded"}' ? true : undefined,
    );
    expect((await endpoint.health()).status).toBe(200);
    const { health } = await site.api.call<Status>('GET', '/api/status');
    expect(health.checks.find(({ name }) => name === 'store')).toMatchObject({
      healthy: false,
      detail: expect.stringMatching(/has not answered for [0-9]+ s/),
    });

    const outcomes = [await first, await second];
    disk.goOn();
    await until('a change', async () => ((await change('well again')).status === 201 ? true : undefined));
    await until('good health', async () =>
      (await site.api.send('GET', '/health')).text === '{"status":"healthy"}' ? true : undefined,
    );
    const { items } = await site.api.call<{ items: Vault[] }>('GET', '/api/vaults');
    for (const { name, detail = '' } of outcomes)
      if (detail.includes('nothing was changed')) expect(items.map((vault) => vault.name)).not.toContain(name);
    expect(items.map(({ name }) => name)).not.toContain('refused at once');
    expect(site.server.child.exitCode).toBeNull();
    await expectServed();
  });

  test('what was committed late is refused from then on, as what was committed in time', async () => {
    disk.hang();
    const disabling = site.api.send('POST', `/api/keys/${endpoint.endpoint.keyId}/disable`);
    await disk.reached();
    expect((await disabling).status).toBe(503);
    disk.goOn();
    const { state } = await until('the key', async () => {
      const key = await site.api.call<{ state: string }>('GET', `/api/keys/${endpoint.endpoint.keyId}`);
      const answer = await endpoint.encrypt(plain);
      // With either outcome, the use of the key must agree with its shown state.
      return (key.state === 'disabled') === (answer.status === 400) ? key : undefined;
    });
    expect(['active', 'disabled']).toContain(state);
    await until('a change', async () => ((await change(`after ${state}`)).status === 201 ? true : undefined));
    await site.api.call('POST', `/api/keys/${endpoint.endpoint.keyId}/enable`);
    await expectServed();
  });

  test('what was committed late is not made again under its Idempotency-Key, and the repeat says where to look', async () => {
    const ask = () => site.api.send('POST', '/api/vaults', { name: 'late' }, { 'idempotency-key': 'late' });
    disk.hang();
    const asked = ask();
    await disk.reached();
    const first = await asked;
    expect(first.status).toBe(503);
    // The embedded database shows it before it is safe, PostgreSQL does not; neither begins it
    // again.
    expect([409, 503]).toContain((await ask()).status);
    disk.goOn();
    await until('a change', async () => ((await change('after late')).status === 201 ? true : undefined));
    const late = async () =>
      (await site.api.call<{ items: Vault[] }>('GET', '/api/vaults')).items.filter(({ name }) => name === 'late')
        .length;
    const made = await late();
    expect([0, 1]).toContain(made);
    const again = await ask();
    if (made === 0) expect(again.status).toBe(201);
    else {
      expect(again.status).toBe(409);
      const { hint } = JSON.parse(again.text) as { readonly hint: string };
      const requestId = /--request-id=([0-9a-f-]{36})/.exec(hint)?.[1];
      const { items } = await site.api.call<{ items: { kind: string }[] }>('GET', `/api/audit?requestId=${requestId}`);
      expect(items.map(({ kind }) => kind)).toEqual(['vault.created']);
    }
    expect(await late()).toBe(1);
  });
});
