// The metrics of the real server: what they count, who may read them, and that they say nothing
// else.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Endpoint } from '../../server/contract/api/endpoints-routes.ts';
import type { IssuedToken } from '../../server/contract/api/tokens-routes.ts';
import { type Metric, metrics } from '../../server/domain/metrics.ts';
import { runCommand } from '../support/command.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { checkExposition, type Exposition, readExposition } from '../support/exposition.ts';
import { until } from '../support/host.ts';
import { type Site, startSite } from '../support/site.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';
import { callXks, requestMetadata } from '../support/xks-client.ts';

let site: Site;
let place: XksEndpoint;
const principal = 'arn:aws:iam::111122223333:user/metrics-must-not-show-me';

beforeAll(async () => {
  site = await startSite();
  place = await createXksEndpoint(site, 'watched "one"\\two');
});
afterAll(() => site?.end());

const get = (
  headers: Record<string, string> = {},
  { server }: Pick<Site, 'server'> = site,
): Promise<{ status: number; text: string; type: string }> =>
  new Promise((resolve, reject) => {
    const sent = request(
      new URL('/metrics', server.url),
      { ca: readFileSync(server.caFile), agent: false, headers },
      (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        answer.on('error', reject);
        answer.on('end', () =>
          resolve({ status: answer.statusCode ?? 0, text, type: String(answer.headers['content-type']) }),
        );
      },
    );
    sent.on('error', reject).end();
  });
const scrape = async (): Promise<Exposition> => readExposition((await get()).text);
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const encrypt = (metadata: object = {}) =>
  callXks(
    { server: site.server, configuration: place.configuration },
    {
      target: `/keys/${place.endpoint.keyId}/encrypt`,
      body: {
        requestMetadata: requestMetadata({ awsPrincipalArn: principal, ...metadata }),
        plaintext: 'AAAA',
        encryptionAlgorithm: 'AES_GCM',
      },
    },
  );

describe('the text', () => {
  test('is what Prometheus reads, with every metric of the table and no other', async () => {
    await encrypt();
    const { status, text, type } = await get();
    expect(status).toBe(200);
    expect(type).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(checkExposition(text)).toEqual([]);
    const { families } = readExposition(text);
    expect(families.map(({ name, type: kind, help }) => [name, kind, help])).toEqual(
      Object.entries<Metric>(metrics).map(([name, row]) => [name, row.type, row.help]),
    );
    for (const { name, samples } of families) {
      const { labels } = metrics[name as keyof typeof metrics] as Metric;
      for (const sample of samples)
        expect(
          Object.keys(sample.labels).filter((label) => label !== 'le'),
          name,
        ).toEqual(labels);
    }
  });

  test('is what promtool reads, where it is installed', async () => {
    const { text } = await get();
    let said: string;
    try {
      said = execFileSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8', stdio: 'pipe' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      console.log('skipped: no promtool on the PATH');
      return;
    }
    expect(said).toBe('');
  });

  test('names no caller, and no secret', async () => {
    await encrypt();
    await callXks(
      {
        server: site.server,
        configuration: { ...place.configuration, XksProxyUriPath: '/xks/a-made-up-prefix/kms/xks/v1' },
      },
      { target: '/health', body: {} },
    );
    const { text } = await get();
    expect(text).not.toContain('metrics-must-not-show-me');
    expect(text).not.toContain('a-made-up-prefix');
    expect(text).not.toContain(place.configuration.XksProxyAuthenticationCredential.RawSecretAccessKey);
    expect(text).not.toContain(site.token);
    expect(text).not.toMatch(/arn:aws/);
  });
});

describe('requests to the XKS proxy', () => {
  const endpoint = () => place.endpoint.id;

  test('are counted with how they ended, and put into buckets', async () => {
    const before = await scrape();
    await encrypt();
    await callXks(
      { server: site.server, configuration: place.configuration },
      { target: '/keys/nothing/metadata', body: { requestMetadata: requestMetadata() } },
    );
    const after = await scrape();
    const grown = (name: string, labels: Record<string, string>): number =>
      (after.value(name, labels) ?? 0) - (before.value(name, labels) ?? 0);
    const own = { endpoint: endpoint(), operation: 'encrypt' };
    expect(grown('dke_xks_requests_total', { ...own, status: '200', error: '' })).toBe(1);
    expect(
      grown('dke_xks_requests_total', {
        endpoint: endpoint(),
        operation: 'metadata',
        status: '404',
        error: 'KeyNotFoundException',
      }),
    ).toBe(1);
    expect(grown('dke_xks_request_duration_seconds_count', own)).toBe(1);
    expect(grown('dke_xks_request_duration_seconds_bucket', { ...own, le: '+Inf' })).toBe(1);
    expect(grown('dke_xks_request_duration_seconds_sum', own)).toBeGreaterThan(0);
    const bounds = after.samples
      .filter(
        ({ name, labels }) => name === 'dke_xks_request_duration_seconds_bucket' && labels.operation === 'encrypt',
      )
      .map(({ labels }) => labels.le);
    expect(bounds).toEqual([
      '0.005',
      '0.01',
      '0.025',
      '0.05',
      '0.075',
      '0.1',
      '0.15',
      '0.2',
      '0.25',
      '0.5',
      '1',
      '+Inf',
    ]);
  });

  test('above the rate are counted as throttled', async () => {
    const { settings } = await site.api.call<Endpoint>('GET', `/api/endpoints/${endpoint()}`);
    const labels = { endpoint: endpoint(), cause: 'rate' };
    expect((await scrape()).value('dke_xks_throttled_total', labels)).toBe(0);
    await site.api.call('PUT', `/api/endpoints/${endpoint()}/settings`, {
      ...settings,
      rate: { perSecond: 1, burst: 1 },
    });
    // A busy machine may not be faster than one a second.
    let throttled = 0;
    await until('more than one a second', async () => {
      const answers = await Promise.all([1, 2, 3, 4].map(() => encrypt()));
      throttled += answers.filter(({ status }) => status === 429).length;
      return throttled > 0 ? true : undefined;
    });
    await site.api.call('PUT', `/api/endpoints/${endpoint()}/settings`, settings);
    const after = await scrape();
    expect(after.value('dke_xks_throttled_total', labels)).toBe(throttled);
  });

  test('show which credential signs, and since when there is one', async () => {
    const { AccessKeyId } = place.configuration.XksProxyAuthenticationCredential;
    const labels = { endpoint: endpoint(), access_key_id: AccessKeyId };
    const unused = await site.api.call<{ XksProxyAuthenticationCredential: { AccessKeyId: string } }>(
      'POST',
      `/api/endpoints/${endpoint()}/credentials`,
    );
    const earliest = Date.now() / 1000;
    await encrypt();
    const now = await scrape();
    const name = 'dke_xks_credential_last_used_timestamp_seconds';
    expect(now.value(name, labels)).toBeGreaterThanOrEqual(earliest - 0.001);
    expect(now.value('dke_xks_credential_created_timestamp_seconds', labels)).toBeLessThanOrEqual(earliest);
    const second = { ...labels, access_key_id: unused.XksProxyAuthenticationCredential.AccessKeyId };
    expect(now.value(name, second)).toBeUndefined();
    expect(now.value('dke_xks_credential_created_timestamp_seconds', second)).toBeGreaterThan(0);
  });

  test('are told by the name of their endpoint, whatever stands in it', async () => {
    const info = (await scrape()).samples.find(
      ({ name, labels }) => name === 'dke_xks_endpoint_info' && labels.endpoint === endpoint(),
    );
    expect(info).toMatchObject({
      value: 1,
      labels: { name: 'watched "one"\\two', prefix: place.endpoint.prefix, state: 'enabled' },
    });
  });
});

test('requests of agents are counted by route and status', async () => {
  const registered = await registerApplication(site.api, 'db', await createGroup(site.api, 'databases'));
  const database = site.database(site.config('db', registered));
  try {
    expect(await database.call('open', { pin: 'any' })).toEqual({ rv: 'CKR_OK' });
    expect(await database.call('generate', { label: 'counted' })).toMatchObject({ rv: 'CKR_OK' });
  } finally {
    await database.stop();
  }
  await site.api.send('POST', '/tde/v1/nobody/db/keys/generate', {});
  const now = await scrape();
  expect(now.value('dke_tde_requests_total', { operation: 'generateKey', status: '200' })).toBe(1);
  expect(now.value('dke_tde_request_duration_seconds_count', { operation: 'generateKey' })).toBe(1);
  const refused = now.samples.filter(
    ({ name, labels }) => name === 'dke_tde_requests_total' && Number(labels.status) >= 400,
  );
  expect(refused.map(({ value }) => value)).toEqual([1]);
  expect(now.samples.filter(({ labels }) => Object.values(labels).includes('nobody'))).toEqual([]);
});

test('the service tells how it is', async () => {
  const now = await scrape();
  const soon = Date.now() / 1000;
  for (const name of ['127.0.0.1', 'localhost'])
    expect(now.value('dke_certificate_expiry_timestamp_seconds', { name })).toBeGreaterThan(soon + 800 * 86_400);
  expect(now.value('dke_healthy')).toBe(1);
  for (const check of ['store', 'root-key', 'round-trip']) expect(now.value('dke_health_check', { check })).toBe(1);
  expect(now.value('dke_keys_in_memory')).toBeGreaterThan(3);
  expect(now.value('dke_key_memory_used_bytes')).toBeLessThan(now.value('dke_key_memory_capacity_bytes') ?? 0);
  expect(now.value('dke_erasure_pending_keys')).toBe(0);
  expect(now.value('dke_erasure_state', { state: 'idle' })).toBe(1);
  expect(now.value('dke_request_log_dropped_total')).toBe(0);
  expect(now.value('dke_store_writes_waiting')).toBeGreaterThanOrEqual(0);
  expect(now.value('dke_event_loop_delay_seconds_count')).toBeGreaterThan(0);
  expect(now.value('dke_event_loop_active_seconds_total')).toBeGreaterThan(0);
  expect(now.value('process_open_fds')).toBeGreaterThan(10);
  expect(now.value('process_open_fds')).toBeLessThan(now.value('process_max_fds') ?? 0);
  expect(now.value('process_start_time_seconds')).toBeLessThan(soon);
  expect(now.value('process_resident_memory_bytes')).toBeGreaterThan(10_000_000);
});

test('a certificate file that the next start cannot serve is shown until it is back', async () => {
  const file = join(site.server.dataDirectory, 'tls.key');
  const failing = async () =>
    (await scrape()).families.find(({ name }) => name === 'dke_certificate_file_failing')?.samples[0]?.value;
  expect(await failing()).toBe(0);
  const whole = readFileSync(file);
  writeFileSync(file, 'no key');
  expect(await failing()).toBe(1);
  writeFileSync(file, whole);
  expect(await failing()).toBe(0);
});

describe('who may read them', () => {
  let token: string;
  beforeAll(async () => {
    token = (await site.api.call<IssuedToken>('POST', '/api/tokens', { name: 'prometheus', kind: 'metrics' })).token;
  });

  test('this host needs no token, unless a proxy stands before the service', async () => {
    expect((await get()).status).toBe(200);
    for (const header of ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip'])
      expect((await get({ [header]: '192.0.2.1' })).status, header).toBe(401);
  });

  test('a token for metrics reads them, and nothing else', async () => {
    expect(token).toMatch(/^dkem_/);
    expect((await get({ ...bearer(token), via: 'proxy' })).status).toBe(200);
    expect((await site.api.send('GET', '/api/status', undefined, bearer(token))).status).toBe(401);
    expect((await site.api.send('POST', '/api/session', { token }, { authorization: '' })).status).not.toBe(200);
  });

  test('an administrator’s token does not, nor one that is wrong or revoked', async () => {
    expect((await get(bearer(site.token))).status).toBe(401);
    expect((await get(bearer(`dkem_${'A'.repeat(43)}`))).status).toBe(401);
    const { record, token: short } = await site.api.call<IssuedToken>('POST', '/api/tokens', {
      name: 'short',
      kind: 'metrics',
    });
    expect((await get(bearer(short))).status).toBe(200);
    await site.api.call('DELETE', `/api/tokens/${record.id}`);
    const refused = await get(bearer(short));
    expect(refused.status).toBe(401);
    expect(refused.text).not.toContain(short);
    expect(JSON.parse(refused.text)).toMatchObject({
      code: 'unauthenticated',
      hint: expect.stringContaining('--kind'),
    });
  });

  test('the command makes such a token', async () => {
    const tokenFile = join(site.folder, 'admin-token');
    writeFileSync(tokenFile, `${site.token}\n`, { mode: 0o600 });
    const environment = { DKE_SERVER: site.server.url, DKE_CA_FILE: site.server.caFile, DKE_TOKEN_FILE: tokenFile };
    const out = join(site.folder, 'metrics-token');
    const made = await runCommand(['token', 'create', 'grafana', '--kind', 'metrics', '--out', out], { environment });
    expect(made).toMatchObject({ code: 0, stderr: '' });
    expect((await get(bearer(readFileSync(out, 'utf8').trim()))).status).toBe(200);
    expect((await runCommand(['token', 'list'], { environment })).stdout).toMatch(/metrics +grafana/);
  });

  test('tokens for metrics do not count where the last administrator token must stay', async () => {
    const { items } = await site.api.call<{ items: { id: string; kind: string }[] }>('GET', '/api/tokens');
    const own = items.filter(({ kind }) => kind === 'api');
    expect(own).toHaveLength(1);
    expect((await site.api.send('DELETE', `/api/tokens/${own[0]?.id}`)).status).toBe(409);
  });
});

test('where this host is not trusted, it needs a token too', async () => {
  const strict = await startSite({ toml: '[metrics]\nloopback = false\n' });
  try {
    const { token } = await strict.api.call<IssuedToken>('POST', '/api/tokens', { name: 'p', kind: 'metrics' });
    expect((await get(bearer(token), strict)).status).toBe(200);
    expect((await get({}, strict)).status).toBe(401);
    expect((await get({ authorization: 'Basic x' }, strict)).status).toBe(401);
  } finally {
    await strict.end();
  }
});
