// External key stores: their connection according to the service's own probe, and to the cloud if
// it can be queried. The cloud is the real `dke cloud`; the failures are injected between it and
// the service.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  ConnectCustomKeyStoreCommand,
  CreateCustomKeyStoreCommand,
  DisconnectCustomKeyStoreCommand,
  KMSClient,
} from '@aws-sdk/client-kms';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { ExternalKeyStore } from '../../server/contract/api/external-key-stores-routes.ts';
import { type Authority, type IssuedCertificate, makeAuthority } from '../support/authority.ts';
import { type CloudProcess, startCloudProcess } from '../support/cloud-process.ts';
import { runCommand } from '../support/command.ts';
import { until } from '../support/host.ts';
import { type PublicFront, startPublicFront } from '../support/public-front.ts';
import { type Site, startSite } from '../support/site.ts';
import { createXksEndpoint } from '../support/xks-call.ts';

const folder = mkdtempSync(join(tmpdir(), 'dke-stores-'));
let authority: Authority;
let good: IssuedCertificate;
let front: PublicFront;
const sites: Site[] = [];

beforeAll(async () => {
  authority = makeAuthority(folder, 'public authority');
  good = authority.issue({ commonName: 'front', names: ['DNS:localhost'], usage: 'serverAuth' });
  front = await startPublicFront(good);
});
afterEach(async () => {
  for (const site of sites.splice(0)) await site.end();
  front.behave({});
  front.show(good);
});
afterAll(async () => {
  await front?.close();
  rmSync(folder, { recursive: true, force: true });
});

const start = async (more = '', environment: NodeJS.ProcessEnv = {}): Promise<Site> => {
  const toml = `public_url = "${front.url}"\n[diagnostics]\ntrusted_authorities = "${authority.certificate}"\n${more}`;
  const site = await startSite({ toml, environment });
  sites.push(site);
  front.leadTo(site.server.port);
  return site;
};
const register = (site: Site, endpointId: string, customKeyStoreId = 'cks-1', region = 'eu-central-1') =>
  site.api.call<ExternalKeyStore>('POST', '/api/external-key-stores', {
    name: `store ${customKeyStoreId}`,
    customKeyStoreId,
    region,
    endpointId,
  });
const probe = (site: Site, { id }: ExternalKeyStore) =>
  site.api.call<ExternalKeyStore>('POST', `/api/external-key-stores/${id}/probe`);
const timedOut = 'XKS_PROXY_TIMED_OUT';
/** Probed again while it is too slow for the cloud's 250 ms: so is a busy machine. */
const probeInTime = (site: Site, store: ExternalKeyStore) =>
  until('a probe in time', async () => {
    const probed = await probe(site, store);
    return probed.connection.errorCode === timedOut ? undefined : probed;
  });

describe('the probe plays the cloud’s part', () => {
  test('each fault has the cloud’s code, and every change of state is audited once', async () => {
    const site = await start();
    const { endpoint } = await createXksEndpoint(site, 'watched');
    const store = await register(site, endpoint.id);
    expect(store.connection).toMatchObject({ state: 'DISCONNECTED', source: null, since: null, checkedAt: null });
    expect(await probeInTime(site, store)).toMatchObject({
      connection: { state: 'CONNECTED', errorCode: null, source: 'probe' },
    });
    const { connection } = await probeInTime(site, store);

    const expectFailure = async (errorCode: string, detail?: RegExp): Promise<void> => {
      const seen = (await (errorCode === timedOut ? probe : probeInTime)(site, store)).connection;
      expect(seen).toMatchObject({ state: 'FAILED', errorCode });
      if (detail !== undefined) expect(seen.detail).toMatch(detail);
    };
    front.behave({ delayMs: 300 });
    await expectFailure(timedOut, /GetHealthStatus took \d+ ms/);
    // Longer than the probe waits.
    front.behave({ delayMs: 6_000 });
    await expectFailure(timedOut, /did not answer completely/);
    front.behave({ answer: { status: 200, body: '<html>' } });
    await expectFailure('XKS_PROXY_INVALID_RESPONSE');
    // Without an errorName, it does not come from a proxy of keys.
    front.behave({ answer: { status: 404, body: '{}' } });
    await expectFailure('XKS_PROXY_INVALID_RESPONSE');
    front.behave({ answer: { status: 404, body: '{"errorName":"InvalidUriPathException"}' } });
    await expectFailure('XKS_PROXY_INVALID_CONFIGURATION');
    front.behave({ answer: { status: 401, body: '{"errorName":"AuthenticationFailedException"}' } });
    await expectFailure('INVALID_CREDENTIALS');
    front.behave({ answer: { status: 429, body: '{"errorName":"ThrottlingException"}' } });
    await expectFailure('XKS_PROXY_NOT_REACHABLE');
    front.behave({});
    front.show(
      makeAuthority(folder, 'stranger').issue({ commonName: 'x', names: ['DNS:localhost'], usage: 'serverAuth' }),
    );
    await expectFailure('XKS_PROXY_INVALID_TLS_CONFIGURATION');
    front.show(good);
    await front.close();
    await expectFailure('XKS_PROXY_NOT_REACHABLE', /ECONNREFUSED/);
    await front.open();
    await site.api.call('POST', `/api/keys/${endpoint.keyId}/disable`);
    await expectFailure('XKS_PROXY_NOT_REACHABLE', /the key cannot be used/);
    await site.api.call('POST', `/api/keys/${endpoint.keyId}/enable`);
    await site.api.call('POST', `/api/endpoints/${endpoint.id}/disable`);
    expect((await probe(site, store)).connection).toMatchObject({ state: 'DISCONNECTED', errorCode: null });
    await site.api.call('POST', `/api/endpoints/${endpoint.id}/enable`);
    const again = await probeInTime(site, store);
    expect(again.connection).toMatchObject({ state: 'CONNECTED', source: 'probe' });
    expect(Date.parse(again.connection.since ?? '')).toBeGreaterThan(Date.parse(connection.since ?? ''));

    const audit = await site.api.audit(`subjectId=${store.id}`);
    expect(audit.map(({ kind }) => kind)).toEqual([
      'external-key-store.registered',
      ...Array(audit.length - 1).fill('external-key-store.state-changed'),
    ]);
    // CONNECTED twice in a row, and NOT_REACHABLE by 429 and by a closed port one after another
    // with TLS between: each change once.
    const changes = audit.slice(1).map(({ details }) => details.errorCode ?? details.to);
    expect(changes.filter((change, at) => change === changes[at - 1])).toEqual([]);
    expect(changes).toContain(timedOut);
    // On a busy machine it is too slow in between, too.
    const seen = changes.filter((change) => change !== timedOut);
    expect(seen.filter((change, at) => change !== seen[at - 1])).toEqual([
      'CONNECTED',
      'XKS_PROXY_INVALID_RESPONSE',
      'XKS_PROXY_INVALID_CONFIGURATION',
      'INVALID_CREDENTIALS',
      'XKS_PROXY_NOT_REACHABLE',
      'XKS_PROXY_INVALID_TLS_CONFIGURATION',
      'XKS_PROXY_NOT_REACHABLE',
      'DISCONNECTED',
      'CONNECTED',
    ]);
  });

  test('looks on its own, and the diagnostics of the endpoint show it', async () => {
    const site = await start('[external_key_stores]\nprobe_seconds = 1\n');
    const { endpoint } = await createXksEndpoint(site, 'watched');
    const { id } = await register(site, endpoint.id);
    const state = async () =>
      (await site.api.call<ExternalKeyStore>('GET', `/api/external-key-stores/${id}`)).connection.state;
    await expect.poll(state).toBe('CONNECTED');
    front.behave({ answer: { status: 503, body: '{"errorName":"DependencyTimeoutException"}' } });
    await expect.poll(state).toBe('FAILED');
    const { results } = await site.api.call<{ results: { id: string; state: string; evidence: string }[] }>(
      'POST',
      `/api/endpoints/${endpoint.id}/diagnostics`,
      {},
    );
    const line = results.find((result) => result.id === 'store-status');
    expect(line).toMatchObject({ state: 'failed' });
    expect(line?.evidence).toContain(`cks-1 FAILED ${timedOut}`);
  });

  test('a failure that was repaired is not the headline of the diagnostics until the next probe', async () => {
    // After the one of its start, no probe comes during the test.
    const site = await start('[external_key_stores]\nprobe_seconds = 86400\n');
    const { endpoint } = await createXksEndpoint(site, 'repaired');
    const store = await register(site, endpoint.id);
    front.behave({ answer: { status: 404, body: '{"errorName":"InvalidUriPathException"}' } });
    const { connection } = await probeInTime(site, store);
    expect(connection.state).toBe('FAILED');
    front.behave({});
    const { results } = await site.api.call<{ results: { id: string; state: string }[] }>(
      'POST',
      `/api/endpoints/${endpoint.id}/diagnostics`,
      {},
    );
    expect(results.find(({ id }) => id === 'store-status')).toMatchObject({ state: 'ok' });
  });
});

describe('the cloud, where it can be asked', () => {
  test('has the last word, and what it is configured with is compared', async () => {
    const cloud: CloudProcess = await startCloudProcess(folder, authority.certificate);
    const text = readFileSync(cloud.credentialsFile, 'utf8');
    const accessKeyId = /key_id = (\S+)/.exec(text)?.[1] ?? '';
    const secretAccessKey = /access_key = (\S+)/.exec(text)?.[1] ?? '';
    const kms = new KMSClient({
      endpoint: cloud.url,
      region: 'us-east-1',
      credentials: { accessKeyId, secretAccessKey },
      requestHandler: { httpsAgent: new Agent({ ca: readFileSync(cloud.certificateFile) }) },
    });
    try {
      const site = await start(
        `[aws]\nread = true\nkms_endpoint = "${cloud.url}"\ncloudwatch_endpoint = "${cloud.url}"\n`,
        {
          AWS_ACCESS_KEY_ID: accessKeyId,
          AWS_SECRET_ACCESS_KEY: secretAccessKey,
          NODE_EXTRA_CA_CERTS: cloud.certificateFile,
        },
      );
      const { endpoint, configuration } = await createXksEndpoint(site, 'in the cloud');
      const { CustomKeyStoreId = '' } = await kms.send(
        new CreateCustomKeyStoreCommand({
          CustomKeyStoreName: 'orders',
          CustomKeyStoreType: 'EXTERNAL_KEY_STORE',
          XksProxyConnectivity: 'PUBLIC_ENDPOINT',
          XksProxyUriEndpoint: front.url,
          XksProxyUriPath: configuration.XksProxyUriPath,
          XksProxyAuthenticationCredential: configuration.XksProxyAuthenticationCredential,
        }),
      );
      const store = await register(site, endpoint.id, CustomKeyStoreId, 'us-east-1');
      const seen = async () => {
        const { connection } = await probeInTime(site, store);
        return `${connection.source}: ${connection.state}`;
      };
      // The endpoint would work; the cloud has not connected it.
      expect(await seen()).toBe('cloud: DISCONNECTED');
      await kms.send(new ConnectCustomKeyStoreCommand({ CustomKeyStoreId }));
      await expect.poll(seen).toBe('cloud: CONNECTED');
      await kms.send(new DisconnectCustomKeyStoreCommand({ CustomKeyStoreId }));
      await expect.poll(seen).toBe('cloud: DISCONNECTED');

      const other = await createXksEndpoint(site, 'another');
      const moved = await register(site, other.endpoint.id, CustomKeyStoreId, 'us-west-2');
      // The cloud answers this service for every key store of the account: of one with another
      // path, nothing is shown.
      const nothing = `AWS KMS has no custom key store ${CustomKeyStoreId} in us-west-2 with the path of this endpoint`;
      expect((await probe(site, moved)).connection).toMatchObject({
        source: 'cloud',
        state: 'DISCONNECTED',
        errorCode: null,
        detail: nothing,
      });
      const { results } = await site.api.call<{ results: { id: string; state: string; evidence: string }[] }>(
        'POST',
        `/api/endpoints/${other.endpoint.id}/diagnostics`,
        {},
      );
      const line = results.find(({ id }) => id === 'cloud-configuration');
      expect(line).toMatchObject({ state: 'failed' });
      expect(line?.evidence).toBe(nothing);
      expect(JSON.stringify(results)).not.toContain(configuration.XksProxyUriPath);
      expect(results.find(({ id }) => id === 'cloud-latency')?.state).toBe('skipped');

      const diagnosis = await site.api.call<{ results: { id: string; state: string; evidence: string }[] }>(
        'POST',
        `/api/endpoints/${endpoint.id}/diagnostics`,
        {},
      );
      const latency = diagnosis.results.find(({ id }) => id === 'cloud-latency');
      expect(latency?.state).not.toBe('skipped');
      expect(latency?.evidence).toMatch(/^XksProxyLatency: \d+ ms on average, \d+ ms at most$/);

      const unknown = await register(site, endpoint.id, 'cks-nowhere', 'us-east-1');
      expect((await probe(site, unknown)).connection).toMatchObject({
        state: 'DISCONNECTED',
        source: 'cloud',
        detail: 'AWS KMS has no custom key store cks-nowhere in us-east-1 with the path of this endpoint',
      });
      await cloud.stop();
      // A cloud that has stopped cannot be queried: the result of the probe counts.
      expect(await seen()).toBe('probe: CONNECTED');
    } finally {
      kms.destroy();
      await cloud.stop();
    }
  });
});

test('the command registers, lists, probes and forgets; a store is registered once', async () => {
  const site = await start();
  await createXksEndpoint(site, 'by command');
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, site.token, { mode: 0o600 });
  const environment = { DKE_SERVER: site.server.url, DKE_CA_FILE: site.server.caFile, DKE_TOKEN_FILE: tokenFile };
  const dke = (...args: string[]) => runCommand(['key-store', ...args, '-o', 'json'], { environment });
  const registration = ['register', 'orders', '--id', 'cks-9', '--region', 'eu-west-1', '--endpoint', 'by command'];
  expect(JSON.parse((await dke(...registration)).stdout)).toMatchObject({ customKeyStoreId: 'cks-9' });
  const twice = await dke(...registration);
  expect(twice.code).toBe(11);
  expect(twice.stderr).toContain('already registered');
  await expect
    .poll(async () => JSON.parse((await dke('probe', 'orders')).stdout))
    .toMatchObject({ connection: { state: 'CONNECTED' } });
  expect(JSON.parse((await dke('list')).stdout)).toMatchObject({ items: [{ name: 'orders' }] });
  expect((await dke('remove', 'orders')).code).toBe(0);
  expect(JSON.parse((await dke('list')).stdout)).toMatchObject({ items: [] });
  expect((await dke('show', 'orders')).code).toBe(10);
});
