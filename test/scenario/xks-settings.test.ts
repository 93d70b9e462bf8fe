// Settings of a key store endpoint on the real server: mutual TLS, secondary authorization, rate;
// and what the request log, the audit log and the `dke` command say of them.
import { readFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Endpoint, EndpointSettings } from '../../server/contract/api/endpoints-routes.ts';
import type { EndpointRequest } from '../../server/contract/api/requests-routes.ts';
import { type Authority, makeAuthority } from '../support/authority.ts';
import { until } from '../support/host.ts';
import { type Site, startSite } from '../support/site.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';
import { callXks, requestMetadata, type XksAnswer, type XksCallOptions } from '../support/xks-client.ts';

let site: Site;
beforeAll(async () => {
  site = await startSite({ toml: '[tls]\nclient_certificates = true\n' });
});
afterAll(() => site?.end());

const put = async ({ endpoint }: XksEndpoint, change: Partial<EndpointSettings>): Promise<Endpoint> => {
  const { settings } = await site.api.call<Endpoint>('GET', `/api/endpoints/${endpoint.id}`);
  return site.api.call('PUT', `/api/endpoints/${endpoint.id}/settings`, { ...settings, ...change });
};
const call = ({ configuration }: XksEndpoint, options: XksCallOptions): Promise<XksAnswer> =>
  callXks({ server: site.server, configuration }, options);
const encrypt = (place: XksEndpoint, metadata: object = {}, options: Partial<XksCallOptions> = {}) =>
  call(place, {
    target: `/keys/${place.endpoint.keyId}/encrypt`,
    body: { requestMetadata: requestMetadata(metadata), plaintext: 'AAAA', encryptionAlgorithm: 'AES_GCM' },
    ...options,
  });
/**
 * Why the newest request of the endpoint that was refused with this error was refused; undefined
 * while none is logged.
 */
const reason = async ({ endpoint }: XksEndpoint, errorName: string): Promise<string | null | undefined> =>
  (await site.api.call<{ items: EndpointRequest[] }>('GET', `/api/endpoints/${endpoint.id}/requests`)).items.find(
    (item) => item.errorName === errorName,
  )?.reason;

describe('mutual TLS', () => {
  let authority: Authority;
  let other: Authority;
  let place: XksEndpoint;
  let neighbour: XksEndpoint;
  const commonName = 'cks.kms.us-east-1.amazonaws.com';
  beforeAll(async () => {
    authority = makeAuthority(site.folder, 'cloud authority');
    other = makeAuthority(site.folder, 'other authority');
    place = await createXksEndpoint(site, 'mutual');
    neighbour = await createXksEndpoint(site, 'neighbour');
    await put(place, { clientCertificate: { authorities: authority.pem, commonName } });
    await put(neighbour, { clientCertificate: { authorities: other.pem, commonName } });
  });

  test('a certificate of the authority with the common name is taken', async () => {
    expect(await encrypt(place, {}, { client: authority.issue({ commonName }) })).toMatchObject({ status: 200 });
  });

  test('a bundle has the authority that issues and the root above it', async () => {
    const issuer = authority.below('cloud issuer');
    const client = issuer.issue({ commonName });
    await expect(put(place, { clientCertificate: { authorities: issuer.pem, commonName } })).rejects.toThrow(
      'the issuer of certificate 1 is not in the CA bundle',
    );
    await put(place, { clientCertificate: { authorities: issuer.pem + authority.pem, commonName } });
    expect(await encrypt(place, {}, { client })).toMatchObject({ status: 200 });
    await put(place, { clientCertificate: { authorities: authority.pem, commonName } });
  });

  test.each([
    ['no certificate', () => undefined, 'no client certificate was shown'],
    ['another common name', () => authority.issue({ commonName: 'cks.evil.example' }), 'is for cks.evil.example'],
    ["the authority of another endpoint's", () => other.issue({ commonName }), "is not of this endpoint's authorities"],
    [
      'an authority that was not named',
      () => makeAuthority(site.folder, 'stranger').issue({ commonName }),
      'does not verify',
    ],
    [
      'a certificate that is over',
      () => authority.issue({ commonName, notBefore: '20250101000000Z', notAfter: '20250201000000Z' }),
      'does not verify: CERT_HAS_EXPIRED',
    ],
    ["a server's certificate", () => authority.issue({ commonName, usage: 'serverAuth' }), 'does not verify'],
  ])('%s is refused, signed or not', async (_what, make, why) => {
    const client = make();
    const answer = await encrypt(place, {}, client === undefined ? {} : { client });
    expect(answer).toMatchObject({ status: 401, body: { errorName: 'AuthenticationFailedException' } });
    expect(answer.headers).toMatchObject({ connection: 'close' });
    await expect.poll(() => reason(place, 'AuthenticationFailedException')).toContain(why);
  });

  test('an authority that is removed is no longer accepted, on open connections either', async () => {
    const client = authority.issue({ commonName });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    try {
      expect(await encrypt(place, {}, { client, agent })).toMatchObject({ status: 200 });
      await put(place, { clientCertificate: { authorities: other.pem, commonName } });
      expect(await encrypt(place, {}, { client, agent })).toMatchObject({ status: 401 });
      await put(place, { clientCertificate: { authorities: authority.pem, commonName } });
      expect(await encrypt(place, {}, { client, agent })).toMatchObject({ status: 200 });
    } finally {
      agent.destroy();
    }
  });

  test.each([
    ['no PEM', 'nothing', '1 to 20 certificates in PEM'],
    ['a damaged certificate', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----', 'cannot be read'],
  ])('%s is not a CA bundle', async (_what, authorities, message) => {
    const body = { operatorProbes: true, rate: null, rules: [], clientCertificate: { authorities, commonName } };
    const answer = await site.api.send('PUT', `/api/endpoints/${place.endpoint.id}/settings`, body, {
      'if-match': '*',
    });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain(message);
  });

  test("a caller's own certificate is not a CA bundle", async () => {
    const { certificate } = authority.issue({ commonName });
    const body = {
      operatorProbes: true,
      rate: null,
      rules: [],
      clientCertificate: { authorities: readFileSync(certificate, 'utf8'), commonName },
    };
    const answer = await site.api.send('PUT', `/api/endpoints/${place.endpoint.id}/settings`, body, {
      'if-match': '*',
    });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain('is not a CA certificate');
  });
});

describe('rules', () => {
  let place: XksEndpoint;
  beforeAll(async () => {
    place = await createXksEndpoint(site, 'ruled');
    await put(place, {
      rules: [
        { name: 'administrators', effect: 'allow', when: { principal: ['arn:aws:iam::*:role/admin'] } },
        { name: 'not from lambda', effect: 'deny', when: { viaService: ['lambda.*'] } },
        { name: 'our account only', effect: 'allow', when: { account: ['111122223333'] } },
        { name: 'no one else', effect: 'deny', when: {} },
      ],
    });
  });

  test.each([
    ['the account that is allowed', {}, 200],
    ['another account', { awsPrincipalArn: 'arn:aws:iam::999999999999:user/eve' }, 403],
    ['what comes by lambda', { kmsViaService: 'lambda.us-east-1.amazonaws.com' }, 403],
    [
      'an administrator by lambda',
      { awsPrincipalArn: 'arn:aws:iam::9:role/admin', kmsViaService: 'lambda.us-east-1.amazonaws.com' },
      200,
    ],
  ])('%s', async (_who, metadata, status) => {
    expect(await encrypt(place, metadata)).toMatchObject({ status });
  });

  test('a refusal names the rule in the log, not in the answer', async () => {
    const answer = await encrypt(place, { kmsViaService: 'lambda.us-east-1.amazonaws.com' });
    expect(answer).toMatchObject({ status: 403, body: { errorName: 'AccessDeniedException' } });
    expect(JSON.stringify(answer.body)).not.toContain('lambda');
    await expect.poll(() => reason(place, 'AccessDeniedException')).toBe('denied by the rule not from lambda');
  });

  test('metadata is subject to them, health is not', async () => {
    const metadata = { requestMetadata: requestMetadata({ awsPrincipalArn: 'arn:aws:iam::9:user/eve' }) };
    expect(await call(place, { target: `/keys/${place.endpoint.keyId}/metadata`, body: metadata })).toMatchObject({
      status: 403,
    });
    expect(await call(place, { target: '/health', body: metadata })).toMatchObject({ status: 200 });
  });

  test.each([
    [
      'two of one name',
      [
        { name: 'a', effect: 'deny', when: {} },
        { name: 'a', effect: 'allow', when: {} },
      ],
    ],
    ['an unknown effect', [{ name: 'a', effect: 'ask', when: {} }]],
    ['an unknown subject', [{ name: 'a', effect: 'deny', when: { moon: ['full'] } }]],
    ['a subject without patterns', [{ name: 'a', effect: 'deny', when: { vpc: [] } }]],
  ])('%s: refused, and the old rules stay', async (_what, rules) => {
    const body = { operatorProbes: true, rate: null, clientCertificate: null, rules };
    const answer = await site.api.send('PUT', `/api/endpoints/${place.endpoint.id}/settings`, body, {
      'if-match': '*',
    });
    expect(answer.status).toBe(400);
    const { settings } = await site.api.call<Endpoint>('GET', `/api/endpoints/${place.endpoint.id}`);
    expect(settings.rules).toHaveLength(4);
  });
});

test('rules can be tried with every request that the log has recorded, whatever its texts are', async () => {
  const place = await createXksEndpoint(site, 'recorded');
  const rules = [{ name: 'no such VPC', effect: 'deny', when: { vpc: ['vpc-*'] } }] as const;
  await put(place, { rules });
  const texts = ['', 'vpc-ü', '\u0001', 'v'.repeat(2048)];
  const answers = [];
  for (const awsSourceVpc of texts) answers.push((await encrypt(place, { awsSourceVpc })).status);
  const path = `/api/endpoints/${place.endpoint.id}`;
  const recorded = await until('the log has them', async () => {
    const { items } = await site.api.call<{ items: EndpointRequest[] }>('GET', `${path}/requests?limit=100`);
    const found = items.filter(({ awsSourceVpc }) => awsSourceVpc !== null);
    return found.length === texts.length ? found : undefined;
  });
  expect(recorded.map(({ awsSourceVpc }) => awsSourceVpc).toSorted()).toEqual(texts.toSorted());
  const { items } = await site.api.call<{ items: { effect: string }[] }>('POST', `${path}/rules/simulate`, {
    requests: recorded.map(({ kmsOperation, principal, awsSourceVpc }) => ({
      ...{ kmsOperation, awsPrincipalArn: principal, awsSourceVpc },
    })),
  });
  // The simulation decides as the service has decided.
  expect(items.map(({ effect }) => effect)).toEqual(recorded.map(({ status }) => (status === 200 ? 'allow' : 'deny')));
  expect(answers.toSorted()).toEqual([200, 200, 200, 403]);
});

describe('a rate', () => {
  const many = (place: XksEndpoint, count: number): Promise<XksAnswer[]> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 4 });
    return Promise.all(Array.from({ length: count }, () => encrypt(place, {}, { agent }))).finally(() =>
      agent.destroy(),
    );
  };
  const statuses = (answers: readonly XksAnswer[]): readonly number[] =>
    [...new Set(answers.map(({ status }) => status))].sort();

  test('lets a burst through and refuses more with 429, until it is taken away', async () => {
    const place = await createXksEndpoint(site, 'slow');
    await put(place, { rate: { perSecond: 1, burst: 3 } });
    // At one a second, all of them would take a minute.
    const answers = await many(place, 60);
    expect(statuses(answers)).toEqual([200, 429]);
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(3);
    expect(answers.find(({ status }) => status === 429)?.body).toMatchObject({ errorName: 'ThrottlingException' });
    await put(place, { rate: null });
    expect(statuses(await many(place, 60))).toEqual([200]);
  });

  test('is not used up by those who cannot sign', async () => {
    const place = await createXksEndpoint(site, 'besieged');
    await put(place, { rate: { perSecond: 1, burst: 1 } });
    const { configuration } = place;
    const forged = {
      ...configuration,
      XksProxyAuthenticationCredential: {
        ...configuration.XksProxyAuthenticationCredential,
        RawSecretAccessKey: 'x'.repeat(64),
      },
    };
    expect(statuses(await many({ ...place, configuration: forged }, 20))).toEqual([401]);
    expect(await encrypt(place)).toMatchObject({ status: 200 });
  });
});

test('a change of settings is audited with fingerprints instead of certificates', async () => {
  const authority = makeAuthority(site.folder, 'audited authority');
  const place = await createXksEndpoint(site, 'audited');
  await put(place, {
    rate: { perSecond: 1800, burst: 3600 },
    clientCertificate: { authorities: authority.pem, commonName: 'cks' },
    rules: [{ name: 'r', effect: 'deny', when: { region: ['us-*'] } }],
  });
  const [record] = await site.api.audit(`kind=endpoint.settings-changed&subjectId=${place.endpoint.id}`);
  expect(record?.details).toMatchObject({
    name: 'audited',
    operatorProbes: true,
    rate: { perSecond: 1800, burst: 3600 },
    clientCertificate: { commonName: 'cks', authorities: [expect.stringMatching(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/)] },
    rules: [{ name: 'r', effect: 'deny', when: { region: ['us-*'] } }],
  });
  expect(JSON.stringify(record)).not.toContain('BEGIN CERTIFICATE');
});

test('a service that asks for no certificates refuses mutual TLS, and says what to set', async () => {
  const plain = await startSite();
  try {
    const place = await createXksEndpoint(plain, 'plain');
    const authority = makeAuthority(plain.folder, 'authority');
    const body = {
      operatorProbes: true,
      rate: null,
      rules: [],
      clientCertificate: { authorities: authority.pem, commonName: 'x' },
    };
    const answer = await plain.api.send('PUT', `/api/endpoints/${place.endpoint.id}/settings`, body, {
      'if-match': '*',
    });
    expect(answer.status).toBe(409);
    expect(answer.text).toContain('tls.client_certificates = true');
  } finally {
    await plain.end();
  }
});

test('rules survive a restart', async () => {
  const place = await createXksEndpoint(site, 'restarted');
  await put(place, { rules: [{ name: 'closed', effect: 'deny', when: {} }] });
  await site.stopServer();
  await site.startServer();
  expect(await encrypt(place)).toMatchObject({ status: 403 });
});
