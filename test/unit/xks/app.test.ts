// The XKS front on a real HTTPS listener: the four operations, their refusals, and the log records.
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, request, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { core } from '../../../addon/core.ts';
import { createXksFront } from '../../../server/fronts/xks/xks-front.ts';
import { sharedFolder } from '../../support/folders.ts';
import { signXksRequest } from '../../support/sign.ts';
import { aesKey, createTestDirectory, secretKey, type TestDirectory } from '../../support/xks-directory.ts';

core.initialize();
const accessKeyId = 'AKIDTESTTESTTESTTEST';
const secretAccessKey = 'wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEYwJalrXUtn';
const base = '/xks/acme/kms/xks/v1';
const metadata = {
  kmsRequestId: 'request-1',
  kmsOperation: 'Encrypt',
  awsPrincipalArn: 'arn:aws:iam::1:user/ann',
  kmsKeyArn: 'arn:aws:kms:eu-west-1:1:key/1',
};
const settings = { operatorProbes: true, rate: null, clientCertificate: null, rules: [] };
const plaintext = Buffer.from('a data key of thirty-two bytes!!').toString('base64');

let server: Server;
let directory: TestDirectory;
const folder = sharedFolder();
let certificate: string;
let port: number;

beforeAll(async () => {
  certificate = core.createSelfSignedCertificate({
    keyPath: join(folder, 'key.pem'),
    names: ['localhost', '127.0.0.1'],
    days: 2,
  });
  writeFileSync(join(folder, 'certificate.pem'), certificate);
  let front: ReturnType<typeof createXksFront>;
  server = createServer({ key: readFileSync(join(folder, 'key.pem')), cert: certificate }, (incoming, outgoing) => {
    void front.handle(incoming, outgoing);
  });
  directory = createTestDirectory();
  let requests = 0;
  front = createXksFront({
    core,
    directory,
    clock: Date.now,
    requestId: () => `id-${++requests}`,
    product: { vendor: 'v', name: 'n', version: '1', node: 'node-1' },
    isOwnProbe: (path, mark) => mark === `mark of ${path}`,
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  directory.records.length = 0;
  directory.ownProbes.length = 0;
  directory.state.healthy = true;
  directory.endpoints.clear();
  directory.keys.clear();
  directory.keys.set('Key-1', aesKey('Key-1'));
  directory.endpoints.set('acme', {
    id: 'endpoint-1',
    name: 'acme',
    prefix: 'acme',
    tenantId: 't',
    enabled: true,
    suspended: false,
    settings,
    denyingRule: () => undefined,
    externalKeyId: 'Key-1',
    credentials: [{ id: 'credential-1', accessKeyId, secret: secretKey(secretAccessKey) }],
    use: { at: 0 },
  });
});

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Readonly<Record<string, unknown>>;
}
const send = (
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: string | Buffer,
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const outgoing = request({ host: '127.0.0.1', port, path, method, headers, ca: certificate }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('end', () =>
        resolve({
          status: incoming.statusCode ?? 0,
          headers: incoming.headers,
          body: JSON.parse(Buffer.concat(chunks).toString('utf8')),
        }),
      );
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
const post = async (path: string, body: object | string): Promise<Answer> => {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return send(
    'POST',
    path,
    await signXksRequest({ host: `127.0.0.1:${port}`, path, body: text, accessKeyId, secretAccessKey }),
    text,
  );
};
const encryptBody = {
  requestMetadata: metadata,
  plaintext,
  encryptionAlgorithm: 'AES_GCM',
  additionalAuthenticatedData: 'cHJvamVjdA==',
  ciphertextDataIntegrityValueAlgorithm: 'SHA_256',
};
const decryptBody = (sealed: Answer['body']): object => ({
  requestMetadata: metadata,
  encryptionAlgorithm: 'AES_GCM',
  additionalAuthenticatedData: 'cHJvamVjdA==',
  ...sealed,
});

describe('GetHealthStatus', () => {
  test('a signed request gets the whole answer', async () => {
    const answer = await post(`${base}/health`, {
      requestMetadata: { kmsRequestId: 'r', kmsOperation: 'KmsHealthCheck' },
    });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      xksProxyFleetSize: 1,
      xksProxyVendor: 'v',
      xksProxyModel: 'n 1',
      ekmVendor: 'v',
      ekmFleetDetails: [{ id: 'node-1', model: 'n 1', healthStatus: 'ACTIVE' }],
    });
  });
  test("an operator's unsigned probe gets the fleet size alone", async () => {
    expect(await send('POST', `${base}/health`, { 'content-type': 'application/json' }, '{}')).toMatchObject({
      status: 200,
      body: { xksProxyFleetSize: 1 },
    });
  });
  test('unsigned probes of an address have a rate, also those whose body is nonsense', async () => {
    const statuses = new Set<number>();
    for (let at = 0; at < 20_000 && !statuses.has(429); at += 16)
      for (const { status } of await Promise.all(
        Array.from({ length: 16 }, () => send('POST', `${base}/health`, {}, '[')),
      ))
        statuses.add(status);
    expect([...statuses].sort()).toEqual([400, 429]);
    // Signed ones are not concerned.
    expect((await post(`${base}/health`, {})).status).toBe(200);
  });
  test('an Authorization header that is there must verify', async () => {
    const answer = await send('POST', `${base}/health`, { authorization: 'AWS4-HMAC-SHA256 nonsense' }, '{}');
    expect(answer).toMatchObject({ status: 401, body: { errorName: 'AuthenticationFailedException' } });
  });
  test('with probes off, signature and requestMetadata are required', async () => {
    directory.endpoints.set('acme', {
      ...directory.endpoints.get('acme'),
      settings: { ...settings, operatorProbes: false },
    } as never);
    expect(await send('POST', `${base}/health`, {}, '{}')).toMatchObject({ status: 401 });
    expect(await post(`${base}/health`, {})).toMatchObject({ status: 400, body: { errorName: 'ValidationException' } });
  });
  test.each([
    ['is disabled', { enabled: false }],
    ['may not encrypt', { usages: ['decrypt'] }],
    ['is not there, or its vault is disabled', undefined],
  ])('of an endpoint whose key %s is UNAVAILABLE', async (_, change) => {
    if (change === undefined) directory.keys.clear();
    else directory.keys.set('Key-1', aesKey('Key-1', change));
    expect(
      await post(`${base}/health`, { requestMetadata: { kmsRequestId: 'r-1', kmsOperation: 'KmsHealthCheck' } }),
    ).toMatchObject({ status: 200, body: { ekmFleetDetails: [{ id: 'node-1', healthStatus: 'UNAVAILABLE' }] } });
  });
  test('what was changed between the head and the body of a request counts', async () => {
    const body = JSON.stringify({ requestMetadata: { kmsRequestId: 'r-1', kmsOperation: 'KmsHealthCheck' } });
    const lookedUp = vi.spyOn(directory.endpoints, 'get');
    const halves = new Promise<number | undefined>((resolve, reject) => {
      const outgoing = request(
        {
          host: '127.0.0.1',
          port,
          path: `${base}/health`,
          method: 'POST',
          headers: { 'content-type': 'application/json', 'content-length': String(body.length) },
          ca: certificate,
        },
        (incoming) => {
          incoming.resume();
          resolve(incoming.statusCode);
        },
      );
      outgoing.on('error', reject);
      outgoing.write(body.slice(0, 10));
      expect
        .poll(() => lookedUp.mock.calls.length)
        .toBe(1)
        .then(() => {
          directory.endpoints.delete('acme');
          outgoing.end(body.slice(10));
        }, reject);
    });
    expect(await halves).toBe(404);
    lookedUp.mockRestore();
  });
  test('an unhealthy service says so', async () => {
    directory.state.healthy = false;
    expect(await post(`${base}/health`, {})).toMatchObject({
      status: 503,
      body: { errorName: 'DependencyTimeoutException' },
    });
  });
});

describe('GetKeyMetadata', () => {
  test('names specification, usage and state', async () => {
    expect(await post(`${base}/keys/Key-1/metadata`, { requestMetadata: metadata })).toMatchObject({
      status: 200,
      body: { keySpec: 'AES_256', keyUsage: ['ENCRYPT', 'DECRYPT'], keyStatus: 'ENABLED' },
    });
  });
  test('says DISABLED of a disabled key', async () => {
    directory.keys.set('Key-1', aesKey('Key-1', { enabled: false }));
    expect(await post(`${base}/keys/Key-1/metadata`, { requestMetadata: metadata })).toMatchObject({
      status: 200,
      body: { keyStatus: 'DISABLED' },
    });
  });
  test('a key id in another case is not found', async () => {
    expect(await post(`${base}/keys/key-1/metadata`, { requestMetadata: metadata })).toMatchObject({
      status: 404,
      body: { errorName: 'KeyNotFoundException' },
    });
  });
});

describe('Encrypt and Decrypt', () => {
  test('what Encrypt answers, Decrypt opens', async () => {
    const sealed = await post(`${base}/keys/Key-1/encrypt`, encryptBody);
    expect(sealed.status).toBe(200);
    expect(Object.keys(sealed.body).sort()).toEqual([
      'authenticationTag',
      'ciphertext',
      'ciphertextDataIntegrityValue',
      'ciphertextMetadata',
      'initializationVector',
    ]);
    expect(Buffer.from(String(sealed.body.ciphertext), 'base64')).toHaveLength(32);
    expect(await post(`${base}/keys/Key-1/decrypt`, decryptBody(sealed.body))).toMatchObject({
      status: 200,
      body: { plaintext },
    });
  });
  test('a ciphertext of an older key version still opens', async () => {
    const old = core.generateAes(256);
    directory.keys.set('Key-1', aesKey('Key-1', { versions: new Map([[1, old]]) }));
    const sealed = await post(`${base}/keys/Key-1/encrypt`, encryptBody);
    directory.keys.set(
      'Key-1',
      aesKey('Key-1', {
        currentVersion: 2,
        versions: new Map([
          [1, old],
          [2, core.generateAes(256)],
        ]),
      }),
    );
    expect(await post(`${base}/keys/Key-1/decrypt`, decryptBody(sealed.body))).toMatchObject({
      status: 200,
      body: { plaintext },
    });
  });
  test.each([
    'ciphertext',
    'authenticationTag',
    'initializationVector',
    'ciphertextMetadata',
    'additionalAuthenticatedData',
  ])('a changed %s does not decrypt', async (member) => {
    const sealed = await post(`${base}/keys/Key-1/encrypt`, encryptBody);
    const whole = decryptBody(sealed.body) as Record<string, string>;
    const bytes = Buffer.from(whole[member] ?? '', 'base64');
    bytes[bytes.length - 1] = (bytes[bytes.length - 1] ?? 0) ^ 1;
    expect(await post(`${base}/keys/Key-1/decrypt`, { ...whole, [member]: bytes.toString('base64') })).toMatchObject({
      status: 400,
      body: { errorName: 'InvalidCiphertextException' },
    });
  });
  test('a ciphertext of one key opens under no other', async () => {
    const sealed = await post(`${base}/keys/Key-1/encrypt`, encryptBody);
    const version = directory.keys.get('Key-1')?.versions.get(1);
    directory.keys.set(
      'Key-1',
      aesKey('Key-1', { versions: new Map([[1, version ?? core.generateAes(256)]]), binding: Buffer.from('another') }),
    );
    expect(await post(`${base}/keys/Key-1/decrypt`, decryptBody(sealed.body))).toMatchObject({
      status: 400,
      body: { errorName: 'InvalidCiphertextException' },
    });
  });
  test.each([
    ['a disabled key', { enabled: false }, 400, 'InvalidStateException'],
    ['a key of another size', { bits: 128 }, 400, 'InvalidKeyUsageException'],
    ['a key that may not encrypt', { usages: ['decrypt'] }, 400, 'InvalidKeyUsageException'],
  ])('%s is refused', async (_name, overrides, status, errorName) => {
    directory.keys.set('Key-1', aesKey('Key-1', overrides));
    expect(await post(`${base}/keys/Key-1/encrypt`, encryptBody)).toMatchObject({ status, body: { errorName } });
  });
});

describe('bad input', () => {
  const encryptPath = `${base}/keys/Key-1/encrypt`;
  test.each([
    ['no JSON', 'nonsense', 400, 'ValidationException'],
    ['an array', '[]', 400, 'ValidationException'],
    ['a byte order mark', '\ufeff{}', 400, 'ValidationException'],
    ['a member twice', '{"requestMetadata":{},"requestMetadata":{}}', 400, 'ValidationException'],
    ['two documents', '{}{}', 400, 'ValidationException'],
    ['deep nesting', `{"a":${'['.repeat(100)}${']'.repeat(100)}}`, 400, 'ValidationException'],
    ['a number for a string', JSON.stringify({ ...encryptBody, plaintext: 5 }), 400, 'ValidationException'],
    ['Base64 without padding', JSON.stringify({ ...encryptBody, plaintext: 'YQ' }), 400, 'ValidationException'],
    ['Base64 that is not canonical', JSON.stringify({ ...encryptBody, plaintext: 'YR==' }), 400, 'ValidationException'],
    ['Base64 of the URL alphabet', JSON.stringify({ ...encryptBody, plaintext: '__-_' }), 400, 'ValidationException'],
    ['no plaintext', JSON.stringify({ ...encryptBody, plaintext: undefined }), 400, 'ValidationException'],
    [
      'another algorithm',
      JSON.stringify({ ...encryptBody, encryptionAlgorithm: 'AES_CBC' }),
      501,
      'UnsupportedOperationException',
    ],
    [
      'another integrity algorithm',
      JSON.stringify({ ...encryptBody, ciphertextDataIntegrityValueAlgorithm: 'MD5' }),
      501,
      'UnsupportedOperationException',
    ],
    ['no metadata', JSON.stringify({ ...encryptBody, requestMetadata: undefined }), 400, 'ValidationException'],
  ])('%s', async (_name, body, status, errorName) => {
    expect(await post(encryptPath, body)).toMatchObject({ status, body: { errorName } });
  });
  test.each([
    ['a GET', 'GET', encryptPath, 405],
    ['an unknown prefix', 'POST', '/xks/other/kms/xks/v1/health', 404],
    ['a doubled slash', 'POST', '/xks//acme/kms/xks/v1/health', 404],
    ['percent-encoding', 'POST', '/xks/acme/kms/xks/v1/%68ealth', 404],
    ['a dot segment', 'POST', '/xks/acme/kms/xks/v1/keys/../health', 404],
    ['a query', 'POST', `${base}/health?x=1`, 404],
    ['another version', 'POST', '/xks/acme/kms/xks/v2/health', 404],
  ])('%s is refused with JSON', async (_name, method, path, status) => {
    const answer = await send(method, path, {}, method === 'GET' ? '' : '{}');
    expect(answer.status).toBe(status);
    expect(answer.body.errorName).toBe('InvalidUriPathException');
  });
  test('a body over 64 KiB is refused, stated or chunked', async () => {
    const large = JSON.stringify({ requestMetadata: metadata, filler: 'x'.repeat(70_000) });
    expect(await post(encryptPath, large)).toMatchObject({ status: 413, body: { errorName: 'ValidationException' } });
    expect(await send('POST', encryptPath, { 'transfer-encoding': 'chunked' }, large)).toMatchObject({ status: 413 });
  });
  test('4,300 bytes of plaintext and 8,192 of additional data pass', async () => {
    const body = {
      ...encryptBody,
      plaintext: Buffer.alloc(4300, 1).toString('base64'),
      additionalAuthenticatedData: Buffer.alloc(8192, 2).toString('base64'),
    };
    expect((await post(encryptPath, body)).status).toBe(200);
  });
});

describe('the request log', () => {
  test('has who, what and how long, and no plaintext', async () => {
    await post(`${base}/keys/Key-1/encrypt`, encryptBody);
    expect(directory.records).toHaveLength(1);
    expect(directory.records[0]).toMatchObject({
      endpointId: 'endpoint-1',
      operation: 'encrypt',
      kmsOperation: 'Encrypt',
      kmsRequestId: 'request-1',
      principal: metadata.awsPrincipalArn,
      kmsKeyArn: metadata.kmsKeyArn,
      externalKeyId: 'Key-1',
      credentialId: 'credential-1',
      status: 200,
      errorName: null,
      peer: '127.0.0.1',
    });
    expect(JSON.stringify(directory.records)).not.toContain(plaintext);
  });

  test('a caller that disconnects before its body is complete gets no answer', async () => {
    const gone = request({
      host: '127.0.0.1',
      port,
      path: `${base}/health`,
      method: 'POST',
      ca: certificate,
      agent: false,
    });
    gone.on('error', () => undefined);
    gone.setHeader('Content-Length', 100);
    gone.write('{');
    await once(server, 'request');
    gone.destroy();
    await expect.poll(() => directory.records.at(-1)).toMatchObject({ status: 499, errorName: 'ConnectionClosed' });
  });

  test('has the own probes of the service, which are not a use of the key, signed or refused', async () => {
    const path = `${base}/keys/Key-1/encrypt`;
    const lastUse = () => directory.endpoints.get('acme')?.use.at;
    const sendMarked = async (mark: string, kmsOperation: string): Promise<Answer> => {
      const body = JSON.stringify({ ...encryptBody, requestMetadata: { ...metadata, kmsOperation } });
      const signed = { host: `127.0.0.1:${port}`, path, body, accessKeyId, secretAccessKey };
      return send('POST', path, { ...(await signXksRequest(signed)), 'x-dke-probe': mark }, body);
    };
    expect((await sendMarked(`mark of ${path}`, 'DkeDiagnostics')).status).toBe(200);
    expect((await send('POST', path, { 'x-dke-probe': `mark of ${path}` }, '{}')).status).toBe(401);
    expect(lastUse()).toBe(0);
    expect(directory.records).toHaveLength(2);
    expect(directory.ownProbes).toHaveLength(2);
    // Another party's word for it is not enough.
    expect((await sendMarked('another', 'DkeDiagnostics')).status).toBe(200);
    expect(directory.ownProbes).toHaveLength(2);
    expect(lastUse()).toBeGreaterThan(0);
  });

  test('has refused requests too', async () => {
    await send('POST', `${base}/keys/Key-1/encrypt`, {}, '{}');
    expect(directory.records[0]).toMatchObject({
      status: 401,
      errorName: 'AuthenticationFailedException',
      credentialId: null,
    });
  });
});
