// `dke doctor endpoint` against real injected faults: the first failing line names each of them,
// with the exception that the cloud key service will raise.
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { CheckResult } from '../../server/base/diagnostic-checks.ts';
import type { Endpoint, ProxyConfiguration } from '../../server/contract/api/endpoints-routes.ts';
import { type Authority, type IssuedCertificate, makeAuthority } from '../support/authority.ts';
import { runCommand } from '../support/command.ts';
import { until } from '../support/host.ts';
import { type PublicFront, startPublicFront } from '../support/public-front.ts';
import { type Site, startSite } from '../support/site.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';
import { callXks, requestMetadata } from '../support/xks-client.ts';

const folder = mkdtempSync(join(tmpdir(), 'dke-doctor-'));
let authority: Authority;
let good: IssuedCertificate;
let front: PublicFront;
let site: Site;
let tokenFile: string;

const toml = (publicUrl: string): string =>
  `public_url = "${publicUrl}"\n[diagnostics]\ntrusted_authorities = "${authority.certificate}"\n`;
const serverCertificate = (issuer: Authority, names: readonly string[], dates: object = {}): IssuedCertificate =>
  issuer.issue({ commonName: 'front', names, usage: 'serverAuth', ...dates });

beforeAll(async () => {
  authority = makeAuthority(folder, 'public authority');
  good = serverCertificate(authority, ['DNS:localhost', 'IP:127.0.0.1']);
  front = await startPublicFront(good);
  site = await startSite({ toml: toml(front.url) });
  front.leadTo(site.server.port);
  tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, site.token, { mode: 0o600 });
});
afterAll(async () => {
  await front?.close();
  await site?.end();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  front.behave({});
  front.show(good);
});

interface Diagnosed {
  readonly what: string;
  readonly results: readonly CheckResult[];
}

const dke = (here: Site, ...args: string[]) =>
  runCommand(args, {
    environment: { DKE_SERVER: here.server.url, DKE_CA_FILE: here.server.caFile, DKE_TOKEN_FILE: tokenFile },
  });
/** What a busy machine fails, too: it is about time. */
const aboutTime: ReadonlySet<string> = new Set(['latency', 'recent-latency', 'cloud-latency']);
const diagnose = async (here: Site, endpoint: string, ...options: string[]) => {
  const run = await dke(here, 'doctor', 'endpoint', endpoint, '-o', 'json', ...options);
  const [diagnosed] = JSON.parse(run.stdout) as Diagnosed[];
  const results = diagnosed?.results ?? [];
  const others = results.filter(({ id }) => !aboutTime.has(id));
  return {
    code: run.code,
    results,
    states: Object.fromEntries(results.map(({ id, state }) => [id, state])),
    /** Failed because this machine is busy. */
    isLate: results.some(({ id, state }) => aboutTime.has(id) && state === 'failed'),
    /** The first line that is not in order; warnings count when nothing failed. */
    first: others.find(({ state }) => state === 'failed') ?? others.find(({ state }) => state === 'warning'),
  };
};
/**
 * A call of the cloud, signed with `configuration`, which may differ from the server's. The request
 * log is written in batches: the call ends when its record is there.
 */
const callAsCloud = async (here: Site, configuration: ProxyConfiguration, keyId: string, operation = 'metadata') => {
  const answer = await callXks(
    { server: here.server, configuration },
    { target: `/keys/${keyId}/${operation}`, body: { requestMetadata: requestMetadata() } },
  );
  const search = `/api/requests?requestId=${String(answer.headers['x-request-id'])}`;
  await expect.poll(async () => (await here.api.call<{ items: unknown[] }>('GET', search)).items).toHaveLength(1);
  return answer;
};
const withSecret = ({ configuration }: XksEndpoint, change: object): ProxyConfiguration => ({
  ...configuration,
  XksProxyAuthenticationCredential: { ...configuration.XksProxyAuthenticationCredential, ...change },
});
let count = 0;
const fresh = (): Promise<XksEndpoint> => {
  count += 1;
  return createXksEndpoint(site, `store-${count}`);
};

test('an endpoint that is in order: every line is ok or says why it was skipped', async () => {
  const { place, code, results, states } = await until('answers in time', async () => {
    const made = await fresh();
    expect(await callAsCloud(site, made.configuration, made.endpoint.keyId)).toMatchObject({ status: 200 });
    const diagnosed = await diagnose(site, made.endpoint.name);
    return diagnosed.isLate ? undefined : { place: made, ...diagnosed };
  });
  expect(results.filter(({ state }) => state === 'failed')).toEqual([]);
  expect(code).toBe(0);
  expect(results.length).toBeGreaterThan(25);
  expect(states).toMatchObject({
    'endpoint-enabled': 'ok',
    'key-found': 'ok',
    'dns-resolves': 'ok',
    'port-open': 'ok',
    'tls-handshake': 'ok',
    'tls-chain': 'ok',
    'tls-name': 'ok',
    'tls-served': 'warning',
    'public-health': 'ok',
    'keep-alive': 'ok',
    clock: 'ok',
    'health-status-node': 'ok',
    'health-status-public': 'ok',
    'credentials-sign': 'ok',
    'wrong-credential': 'ok',
    'caller-signatures': 'ok',
    'round-trip-node': 'ok',
    'round-trip-public': 'ok',
    'last-calls': 'ok',
  });
  const followed = await dke(site, 'doctor', 'endpoint', place.endpoint.name, '--follow');
  const lines = followed.stderr.trim().split('\n');
  expect(lines).toHaveLength(Object.keys(states).length);
  expect(lines[0]).toMatch(/^ok +connection +/);
  for (const options of [['--follow'], []])
    await expect
      .poll(async () => (await dke(site, 'doctor', 'endpoint', place.endpoint.name, ...options)).stdout)
      .toContain(`the endpoint ${place.endpoint.name} passed all checks`);
});

test('requests without a valid signature hide no other fault', async () => {
  const place = await fresh();
  expect(await callAsCloud(site, place.configuration, place.endpoint.keyId)).toMatchObject({ status: 200 });
  const stranger = withSecret(place, { RawSecretAccessKey: 'A'.repeat(64) });
  expect(await callAsCloud(site, stranger, 'x')).toMatchObject({ status: 401 });
  const { states } = await diagnose(site, place.endpoint.name);
  // The refused request names a credential of the endpoint. The key that it asks for does not
  // count.
  expect(states).toMatchObject({ 'key-asked-for': 'ok', 'caller-signatures': 'failed', 'recent-errors': 'ok' });
  await site.api.call('POST', `/api/keys/${place.endpoint.keyId}/disable`);
  expect((await diagnose(site, place.endpoint.name)).first).toMatchObject({ id: 'key-enabled', state: 'failed' });
});

test('its own requests count neither as use of the key and the credential, nor as latency, nor as refusals', async () => {
  const place = await fresh();
  const { id, keyId } = place.endpoint;
  expect((await diagnose(site, place.endpoint.name)).states).toMatchObject({
    'wrong-credential': 'ok',
    'round-trip-public': 'ok',
  });
  // Only the cloud's own first call counts.
  expect(await callAsCloud(site, place.configuration, keyId)).toMatchObject({ status: 200 });
  const latency = async () => {
    type Points = { readonly items: readonly { readonly requests: number; readonly errors: number }[] };
    const { items } = await site.api.call<Points>('GET', `/api/latency?endpointId=${id}`);
    return {
      requests: items.reduce((sum, each) => sum + each.requests, 0),
      errors: items.reduce((sum, each) => sum + each.errors, 0),
    };
  };
  await expect.poll(latency).toEqual({ requests: 1, errors: 0 });
  expect(await site.api.call('GET', `/api/keys/${keyId}/use`)).toMatchObject({ firstUsedAt: null, lastUsedAt: null });
  const recorded = async () => (await site.api.send('GET', `/api/endpoints/${id}/requests?limit=1000`)).text;
  await expect.poll(recorded).toContain('DkeDiagnostics');
});

test('its own requests are not taken for the cloud’s, and runs are kept', async () => {
  const place = await fresh();
  await diagnose(site, place.endpoint.name);
  const requests = `/api/endpoints/${place.endpoint.id}/requests`;
  await expect.poll(async () => (await site.api.send('GET', requests)).text).toContain('DkeDiagnostics');
  const { states } = await diagnose(site, place.endpoint.name);
  expect(states).toMatchObject({ 'caller-signatures': 'skipped', 'last-calls': 'warning', 'recent-errors': 'skipped' });
  const path = `/api/endpoints/${place.endpoint.id}/diagnostics`;
  const runs = await site.api.call<{ items: { id: string; results: CheckResult[] }[] }>('GET', path);
  expect(runs.items).toHaveLength(2);
  const [latest] = runs.items;
  expect(await site.api.call('GET', `${path}/${latest?.id}`)).toEqual(latest);
  const listed = await dke(site, 'doctor', 'runs', place.endpoint.name, '--limit', '1', '-o', 'json');
  expect(JSON.parse(listed.stdout)).toMatchObject({ items: [latest] });
  const shown = await dke(site, 'doctor', 'run', place.endpoint.name, latest?.id ?? '');
  expect(shown.stdout).toContain(latest?.results[0]?.evidence);
  const other = await fresh();
  expect((await site.api.send('GET', `/api/endpoints/${other.endpoint.id}/diagnostics/${latest?.id}`)).status).toBe(
    404,
  );
});

describe('network and TLS', () => {
  test('a closed port', async () => {
    const place = await fresh();
    await front.close();
    try {
      const { first, states, code } = await diagnose(site, place.endpoint.name);
      expect(first).toMatchObject({ id: 'port-open', predicts: 'XksProxyUriUnreachableException' });
      expect(first?.evidence).toContain('ECONNREFUSED');
      expect(states).toMatchObject({
        'tls-handshake': 'skipped',
        'round-trip-public': 'skipped',
        'round-trip-node': 'ok',
      });
      expect(code).toBe(12);
    } finally {
      await front.open();
    }
  });

  test.each([
    [
      'an expired certificate',
      () =>
        serverCertificate(authority, ['DNS:localhost'], { notBefore: '20250101000000Z', notAfter: '20250201000000Z' }),
      'tls-expiry',
      'expired on',
    ],
    [
      'an incomplete chain',
      () => {
        const issued = serverCertificate(authority.below('in between'), ['DNS:localhost']);
        const [leaf = ''] = readFileSync(issued.certificate, 'utf8').split(/(?<=-----END CERTIFICATE-----\n)/);
        writeFileSync(issued.certificate, leaf);
        return issued;
      },
      'tls-chain',
      'incomplete: the certificate of CN=in between was not sent',
    ],
    [
      'the certificate that the service has made for itself',
      () => ({ certificate: site.server.caFile, key: join(site.server.dataDirectory, 'tls.key') }),
      'tls-chain',
      'self-signed',
    ],
    [
      'a certificate for another name',
      () => serverCertificate(authority, ['DNS:other.example']),
      'tls-name',
      'not for localhost',
    ],
    [
      'an authority that the cloud does not trust',
      () => {
        const stranger = makeAuthority(folder, 'private authority');
        const issued = serverCertificate(stranger, ['DNS:localhost']);
        writeFileSync(issued.certificate, readFileSync(issued.certificate, 'utf8') + stranger.pem);
        return issued;
      },
      'tls-chain',
      'its authority CN=private authority is not trusted',
    ],
  ])('%s', async (_fault, make, id, evidence) => {
    const place = await fresh();
    front.show(make());
    const { first } = await diagnose(site, place.endpoint.name);
    expect(first).toMatchObject({ id, predicts: 'XksProxyUriUnreachableException' });
    expect(first?.evidence).toContain(evidence);
  });

  test('a name that does not resolve', async () => {
    const here = await startSite({ toml: toml('https://keys.invalid') });
    try {
      const place = await createXksEndpoint(here, 'unnamed');
      const { results } = await here.api.call<{ results: CheckResult[] }>(
        'POST',
        `/api/endpoints/${place.endpoint.id}/diagnostics`,
        {},
      );
      const first = results.find(({ state }) => state === 'failed');
      expect(first).toMatchObject({ id: 'dns-resolves', predicts: 'XksProxyUriUnreachableException' });
      expect(first?.evidence).toContain('keys.invalid does not resolve');
    } finally {
      await here.end();
    }
  });
});

describe('answers', () => {
  test.each([
    [
      'a public name that leads elsewhere',
      { status: 404, body: '<html>not here</html>' },
      'public-health',
      '/health answers 404',
    ],
    ['malformed answers', { status: 200, body: '{"status": "hea' }, 'public-health', 'another server answers'],
    ['answers of another kind', { status: 200, body: '{"status":"fine"}' }, 'health-status-public', 'malformed'],
  ])('%s', async (_fault, answer, id, evidence) => {
    const place = await fresh();
    front.behave({ answer });
    const { first } = await diagnose(site, place.endpoint.name);
    expect(first).toMatchObject({ id });
    expect(first?.evidence).toContain(evidence);
  });

  test('none at all', async () => {
    const place = await fresh();
    front.behave({ delayMs: 6_000 });
    const { first } = await diagnose(site, place.endpoint.name);
    expect(first).toMatchObject({ id: 'public-health', predicts: 'XksProxyUriUnreachableException' });
    expect(first?.reports?.connect).toBe('XKS_PROXY_TIMED_OUT');
    expect(first?.evidence).toContain('did not answer completely within 5 s');
  });

  test('answers about the key that are changed', async () => {
    const place = await fresh();
    front.behave({ rewrite: { answer: (body) => body.replace('"keySpec"', '"keyKind"') } });
    const { first } = await diagnose(site, place.endpoint.name);
    expect(first).toMatchObject({ id: 'round-trip-public', predicts: 'XksProxyInvalidResponseException' });
    expect(first?.evidence).toContain('keySpec is missing');
  });

  test.each([
    [150, 'warning', undefined],
    [300, 'failed', 'XksProxyUriUnreachableException'],
  ])('slow ones, by %i ms', async (delayMs, state, predicts) => {
    const place = await fresh();
    expect(await callAsCloud(site, place.configuration, place.endpoint.keyId)).toMatchObject({ status: 200 });
    front.behave({ delayMs });
    const first = await until('a diagnosis', async () => {
      const { results } = await diagnose(site, place.endpoint.name);
      const { id, state: found } = results.find((result) => result.id === 'latency') ?? {};
      // A busy machine adds to the delay.
      if (state === 'warning' && found === 'failed') return undefined;
      expect([id, found]).toEqual(['latency', state]);
      return results.find(
        (result) =>
          ['failed', 'warning'].includes(result.state) && !['tls-served', 'recent-latency'].includes(result.id),
      );
    });
    expect(first).toMatchObject({ id: 'latency', state });
    expect(first?.predicts).toBe(predicts);
  });
});

describe('signatures', () => {
  const exception = 'XksProxyIncorrectAuthenticationCredentialException';

  test('the cloud key store has another secret', async () => {
    const place = await fresh();
    await callAsCloud(site, withSecret(place, { RawSecretAccessKey: 'A'.repeat(64) }), place.endpoint.keyId);
    const { results } = await diagnose(site, place.endpoint.name);
    const found = results.find(({ id }) => id === 'caller-signatures');
    expect(found).toMatchObject({ state: 'failed', predicts: exception });
    expect(found?.evidence).toContain('the signature does not match');
    expect(found?.fix).toContain('another secret');
    // When the cloud has the secret, it is over.
    expect(await callAsCloud(site, place.configuration, place.endpoint.keyId)).toMatchObject({ status: 200 });
    expect((await diagnose(site, place.endpoint.name)).states).toMatchObject({ 'caller-signatures': 'warning' });
  });

  test('a credential of another place is a suspicion, and the summary names it', async () => {
    const place = await fresh();
    await callAsCloud(site, withSecret(place, { AccessKeyId: 'A'.repeat(24) }), place.endpoint.keyId);
    const { first, code } = await diagnose(site, place.endpoint.name);
    expect({ first, code }).toMatchObject({ first: { state: 'warning' }, code: 0 });
    const { stdout } = await dke(site, 'doctor', 'endpoint', place.endpoint.name);
    expect(stdout.split('\n')[0]).toMatch(
      /: sigv4 may fail: a request from .* was refused: unknown access key id A+\./,
    );
    expect(stdout).toContain(`the cloud key service reports ${exception}`);
  });

  test('the cloud has a credential that was exchanged', async () => {
    const place = await fresh();
    const { AccessKeyId } = place.configuration.XksProxyAuthenticationCredential;
    const path = `/api/endpoints/${place.endpoint.id}`;
    await site.api.call('POST', `${path}/credentials`);
    const { credentials } = await site.api.call<Endpoint>('GET', path);
    const old = credentials.find(({ accessKeyId }) => accessKeyId === AccessKeyId);
    await site.api.call('DELETE', `${path}/credentials/${old?.id}`);
    await callAsCloud(site, place.configuration, place.endpoint.keyId);
    const { results } = await diagnose(site, place.endpoint.name);
    const found = results.find(({ id }) => id === 'caller-signatures');
    expect(found).toMatchObject({ state: 'failed', predicts: exception });
    expect(found?.evidence).toContain(`unknown access key id ${AccessKeyId}, a credential that was removed`);
    // What others send since then does not displace it.
    await callAsCloud(site, withSecret(place, { AccessKeyId: 'B'.repeat(24) }), place.endpoint.keyId);
    const noisy = await diagnose(site, place.endpoint.name);
    expect(noisy.results.find(({ id }) => id === 'caller-signatures')).toEqual({
      ...found,
      durationMs: expect.any(Number),
    });
    const diagnosed = await diagnose(site, place.endpoint.name, '--cloud-access-key-id', AccessKeyId);
    expect(diagnosed.first).toMatchObject({ id: 'cloud-configuration', predicts: exception });
  });

  test('a request with its access key id to a path that no endpoint has is evidence', async () => {
    const change = (path: string): string => path.replace(/^\/xks\/[^/]+/, '/xks/none');
    const [place, other] = [await fresh(), await fresh()];
    expect(await callAsCloud(site, place.configuration, place.endpoint.keyId)).toMatchObject({ status: 200 });
    const sendAstray = (configuration: ProxyConfiguration) =>
      callXks(
        {
          server: site.server,
          configuration: { ...configuration, XksProxyUriPath: change(configuration.XksProxyUriPath) },
        },
        { target: `/keys/${place.endpoint.keyId}/metadata`, body: { requestMetadata: requestMetadata() } },
      );
    // A stranger does not know an access key id. Its record is written before the next one's.
    expect(await sendAstray(withSecret(other, { AccessKeyId: 'A'.repeat(24) }))).toMatchObject({ status: 404 });
    expect(await sendAstray(place.configuration)).toMatchObject({ status: 404 });
    const { found, code } = await until('the record is written', async () => {
      const diagnosed = await diagnose(site, place.endpoint.name);
      const one = diagnosed.results.find(({ id }) => id === 'caller-signatures');
      return one?.state === 'failed' ? { found: one, code: diagnosed.code } : undefined;
    });
    expect(found.evidence).toContain('was sent to a path that no endpoint has');
    expect(found.fix).toContain(place.configuration.XksProxyUriPath);
    expect(code).not.toBe(0);
    expect((await diagnose(site, other.endpoint.name)).states).toMatchObject({ 'caller-signatures': 'skipped' });
  });

  test('no credential at all', async () => {
    const place = await fresh();
    const path = `/api/endpoints/${place.endpoint.id}`;
    const { credentials } = await site.api.call<Endpoint>('GET', path);
    await site.api.call('DELETE', `${path}/credentials/${credentials[0]?.id}`);
    const { first } = await diagnose(site, place.endpoint.name);
    expect(first).toMatchObject({ id: 'health-status-node', predicts: exception });
  });

  test('a clock that is six minutes off', async () => {
    const library = execFileSync('sh', ['-c', 'ls /usr/lib/*/faketime/libfaketimeMT.so.1'], {
      encoding: 'utf8',
    }).trim();
    const here = await startSite({
      toml: toml(front.url),
      environment: { LD_PRELOAD: library, FAKETIME: '-6m', DONT_FAKE_MONOTONIC: '1' },
    });
    front.leadTo(here.server.port);
    try {
      const place = await createXksEndpoint(here, 'late');
      writeFileSync(join(folder, 'late-token'), here.token, { mode: 0o600 });
      const run = await runCommand(['doctor', 'endpoint', 'late', '-o', 'json'], {
        environment: {
          DKE_SERVER: here.server.url,
          DKE_CA_FILE: here.server.caFile,
          DKE_TOKEN_FILE: join(folder, 'late-token'),
        },
      });
      const [diagnosed] = JSON.parse(run.stdout) as Diagnosed[];
      const first = diagnosed?.results.find(({ state }) => state === 'failed');
      expect(first).toMatchObject({ id: 'clock', predicts: exception });
      expect(first?.evidence).toMatch(/this clock is 3[56]\d\.\d s behind/);
      // The time is not known: the cloud's refused request does.
      await callAsCloud(here, place.configuration, place.endpoint.keyId);
      const { results } = await here.api.call<{ results: CheckResult[] }>(
        'POST',
        `/api/endpoints/${place.endpoint.id}/diagnostics`,
        {},
      );
      const again = results.find(({ id }) => id === 'clock');
      // Anyone can date a request: it is a suspicion.
      expect(again).toMatchObject({ state: 'warning', predicts: exception });
      expect(again?.evidence).toMatch(/the request is dated 3[56]\d s after this clock/);
    } finally {
      front.leadTo(site.server.port);
      await here.end();
    }
  });
});

describe('key and vault', () => {
  test.each([
    ['another key id', () => randomUUID(), 'the key of this endpoint is'],
    ['another case', (id: string) => id.toUpperCase(), 'differs from'],
  ])('the cloud asks for %s', async (_fault, change, evidence) => {
    const place = await fresh();
    expect(await callAsCloud(site, place.configuration, change(place.endpoint.keyId))).toMatchObject({ status: 404 });
    const { first } = await diagnose(site, place.endpoint.name);
    expect(first).toMatchObject({ id: 'key-asked-for', predicts: 'XksKeyNotFoundException' });
    expect(first?.evidence).toContain(evidence);
    // The request for a wrong key is past: what is wrong now comes first.
    await site.api.call('POST', `/api/keys/${place.endpoint.keyId}/disable`);
    expect((await diagnose(site, place.endpoint.name)).first).toMatchObject({ id: 'key-enabled', state: 'failed' });
    await site.api.call('POST', `/api/keys/${place.endpoint.keyId}/enable`);
    const diagnosed = await diagnose(site, place.endpoint.name, '--cloud-key-id', change(place.endpoint.keyId));
    expect(diagnosed.first).toMatchObject({ id: 'cloud-configuration', predicts: 'XksKeyNotFoundException' });
  });

  test.each([
    [
      'a deleted key',
      'DELETE',
      (e: Endpoint) => `/api/keys/${e.keyId}`,
      'key-found',
      'soft-deleted',
      'XksKeyNotFoundException',
    ],
    [
      'a disabled key',
      'POST',
      (e: Endpoint) => `/api/keys/${e.keyId}/disable`,
      'key-enabled',
      'is disabled',
      'XksKeyInvalidConfigurationException',
    ],
    [
      'a disabled vault',
      'POST',
      (e: Endpoint) => `/api/vaults/${e.vaultId}/disable`,
      'vault-enabled',
      'is disabled',
      'XksKeyNotFoundException',
    ],
    [
      'a disabled endpoint',
      'POST',
      (e: Endpoint) => `/api/endpoints/${e.id}/disable`,
      'endpoint-enabled',
      'is disabled',
      'XksKeyInvalidConfigurationException',
    ],
  ] as const)('%s', async (_fault, method, path, id, evidence, predicts) => {
    const place = await fresh();
    await site.api.call(method, path(place.endpoint));
    const { first } = await diagnose(site, place.endpoint.name);
    expect(first).toMatchObject({ id, predicts });
    expect(first?.evidence).toContain(evidence);
  });
});

describe('what the cloud is configured with', () => {
  test.each([
    ['another address', ['--cloud-uri-endpoint', 'https://old.example'], 'the cloud calls https://old.example'],
    ['another path', ['--cloud-uri-path', '/xks/other/kms/xks/v1'], 'the cloud calls /xks/other/kms/xks/v1'],
  ])('%s', async (_fault, options, evidence) => {
    const place = await fresh();
    const { first } = await diagnose(site, place.endpoint.name, ...options);
    expect(first).toMatchObject({ id: 'cloud-configuration', predicts: 'XksProxyInvalidConfigurationException' });
    expect(first?.evidence).toContain(evidence);
  });
});

test('rules and rates that refuse the diagnostics are not faults', async () => {
  const place = await fresh();
  await site.api.call('PUT', `/api/endpoints/${place.endpoint.id}/settings`, {
    operatorProbes: false,
    rate: null,
    clientCertificate: null,
    rules: [{ name: 'closed', effect: 'deny', when: {} }],
  });
  const { states, code } = await diagnose(site, place.endpoint.name);
  expect(states).toMatchObject({
    'health-status-public': 'ok',
    'round-trip-public': 'skipped',
    'round-trip-node': 'skipped',
  });
  expect(code).toBe(0);
});

test('a service that is stopped', async () => {
  const here = await startSite();
  const environment = {
    DKE_SERVER: here.server.url,
    DKE_CA_FILE: join(folder, 'ca.pem'),
    DKE_TOKEN_FILE: tokenFile,
  };
  writeFileSync(environment.DKE_CA_FILE, readFileSync(here.server.caFile));
  await here.end();
  const { code, stdout } = await runCommand(['doctor', 'endpoint', 'any'], { environment });
  expect(code).toBe(12);
  expect(stdout).toContain('does not answer (ECONNREFUSED)');
  expect(stdout).toContain('XksProxyUriUnreachableException');
});
