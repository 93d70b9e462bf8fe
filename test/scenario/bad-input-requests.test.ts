// What arrives at the server's port and is not as it should be: at the console API, at the XKS
// proxy, at the TDE API, and bytes that are not TLS at all. Each is refused with the error that its
// caller understands; after each the server is healthy and a key from before decrypts its
// ciphertext.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect as connectPlain, type Socket } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { RegisteredApplication } from '../../server/contract/api/tde-applications-routes.ts';
import { envelopeType, packEnvelope } from '../../server/contract/tde.ts';
import { curlXks } from '../demo/curl.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import type { Database } from '../support/database.ts';
import { type Site, startSite } from '../support/site.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';

const zeroIv = '00'.repeat(16);
const plain = '7e'.repeat(32);

let site: Site;
let ca: Buffer;
let application: RegisteredApplication;
let database: Database;
let handle: number;
let wrapped: string;
let endpoint: XksEndpoint;
let vaults: number;

beforeAll(async () => {
  site = await startSite();
  ca = readFileSync(site.server.caFile);
  endpoint = await createXksEndpoint(site, 'cloud');
  application = await registerApplication(site.api, 'erp', await createGroup(site.api, 'finance'));
  database = site.database(site.config('pkcs11', application));
  expect((await database.call('open', { pin: '' })).rv).toBe('CKR_OK');
  handle = (await database.call('generate', { label: 'MASTER' })).handle ?? 0;
  wrapped = (await database.call('encrypt', { handle, iv: zeroIv, data: plain })).data ?? '';
  vaults = (await site.api.call<{ items: unknown[] }>('GET', '/api/vaults?limit=1000')).items.length;
});
afterAll(() => site.end());

afterEach(async () => {
  expect(await site.api.send('GET', '/health')).toMatchObject({ status: 200 });
  expect(await database.call('decrypt', { handle, iv: zeroIv, data: wrapped })).toEqual({ rv: 'CKR_OK', data: plain });
  const { items } = await site.api.call<{ items: unknown[] }>('GET', '/api/vaults?limit=1000');
  expect(items).toHaveLength(vaults);
  expect(site.server.child.exitCode).toBe(null);
  const complaints = site.server
    .log()
    .split('\n')
    .filter((line) => line.includes('"level":50'));
  expect(complaints).toEqual([]);
});

const closed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    socket.once('close', () => resolve());
  });

const open = async (): Promise<TLSSocket> => {
  const socket = connect({ host: '127.0.0.1', port: site.server.port, ca });
  await once(socket, 'secureConnect');
  return socket;
};

interface Raw {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}
/** Sends bytes on a connection of their own and reads until the server closes it. */
const raw = async (...parts: (string | Buffer)[]): Promise<Raw> => {
  const socket = await open();
  let text = '';
  socket.setEncoding('latin1').on('data', (part: string) => {
    text += part;
  });
  // Refusing a body that is too long, the server closes before it has read it.
  socket.on('error', () => undefined);
  for (const part of parts) if (!socket.destroyed) socket.write(part);
  await closed(socket);
  const [head = '', body = ''] = text.split('\r\n\r\n');
  return { status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1] ?? 0), head, body };
};
const post = (path: string, body: string | Buffer, headers: Readonly<Record<string, string>> = {}): Promise<Raw> => {
  const all = {
    Host: 'localhost',
    Connection: 'close',
    Authorization: `Bearer ${site.token}`,
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(body)),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return raw(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n`, body);
};

describe('the console API', () => {
  test.each<[string, string | Buffer]>([
    ['no JSON', '{"name": "x"'],
    ['nothing', ''],
    ['a list', '[]'],
    ['a text', '"name"'],
    ['null', 'null'],
    ['a number', '1e999'],
    ['single quotes', "{'name':'x'}"],
    ['a byte order mark', '\ufeff{"name":"x"}'],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d])],
    ['a member that is unknown', '{"name":"x","owner":"y"}'],
    ['a member that is inherited elsewhere', '{"name":"x","__proto__":{"admin":true}}'],
    ['a number for a text', '{"name":1}'],
    ['an empty name', '{"name":""}'],
    ['a name with a control character', '{"name":"a\\u0007b"}'],
    ['a name that is too long', JSON.stringify({ name: 'x'.repeat(129) })],
    ['half a surrogate pair', '{"name":"\\ud800"}'],
    ['20,000 brackets', '['.repeat(20_000)],
    ['20,000 nested objects', `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`],
  ])('refuses %s as a problem document', async (_what, body) => {
    const answer = await post('/api/vaults', body);
    expect(answer.status).toBe(400);
    expect(answer.head).toMatch(/^content-type: application\/problem\+json/im);
    expect(JSON.parse(answer.body)).toMatchObject({ code: 'validation', status: 400, requestId: expect.any(String) });
  });

  test('refuses a body that is too long, whether it says so or not', async () => {
    const long = JSON.stringify({ name: 'x'.repeat(70_000) });
    expect((await post('/api/vaults', long)).status).toBe(413);
    const head = `POST /api/vaults HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer ${site.token}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const chunk = `2000\r\n${'x'.repeat(0x2000)}\r\n`;
    expect((await raw(head, chunk.repeat(10), '0\r\n\r\n')).status).toBe(413);
    expect((await post('/api/vaults', '{}', { 'Content-Length': '99999999999' })).status).toBe(413);
  });

  test('refuses a body that is not declared as JSON', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'application/jsonp'])
      expect((await post('/api/vaults', '{"name":"x"}', { 'Content-Type': type })).status, type).toBe(415);
  });

  test.each([
    ['no credential', ''],
    ['another scheme', `Basic ${Buffer.from('admin:admin').toString('base64')}`],
    ['a token of the right form that was never given', `Bearer dket_${'A'.repeat(43)}`],
    ['a token with something behind it', 'token-and-more'],
    ['an access_guid', 'guid'],
    ['2 KB of token', `Bearer ${'x'.repeat(2048)}`],
  ])('refuses %s with 401', async (_what, given) => {
    const header =
      given === 'token-and-more'
        ? `Bearer ${site.token}x`
        : given === 'guid'
          ? `Bearer ${application.accessGuid}`
          : given;
    const answer = await post('/api/vaults', '{"name":"x"}', { Authorization: header });
    expect(answer.status).toBe(401);
    expect(JSON.parse(answer.body)).toMatchObject({ code: 'unauthenticated' });
    expect(answer.body).not.toContain(site.token);
  });

  test.each([
    ['/api/vaults?limit=0', 400],
    ['/api/vaults?limit=1001', 400],
    ['/api/vaults?limit=ten', 400],
    ['/api/vaults?limit=1&limit=2', 400],
    ['/api/vaults?speed=9', 400],
    ['/api/audit?kind=key.guessed', 400],
    ['/api/audit?from=yesterday', 400],
    ["/api/vaults/' or 1=1 --", 400],
    ['/api/vaults/%27%20or%201%3D1', 404],
    ['/api/vaults/..%2f..%2fetc', 404],
    ['/api/vaults/%', 404],
    ['/api/keys/%ff%fe', 404],
    [`/api/keys/${'x'.repeat(4000)}`, 404],
    ['/api/nowhere', 404],
  ])('answers GET %s with %i', async (path, status) => {
    const target = path.includes(' ') ? path.replaceAll(' ', '\x01') : path;
    const answer = await raw(
      `GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer ${site.token}\r\n\r\n`,
    );
    expect(answer.status, answer.body).toBe(status);
    expect(JSON.parse(answer.body)).toMatchObject({ status });
  });

  test('answers a known path under another method with 405, and what it takes', async () => {
    const answer = await site.api.send('PUT', '/api/vaults', {});
    expect(answer.status).toBe(405);
    expect(answer.headers.allow).toMatch(/GET/);
  });
});

describe('the XKS proxy', () => {
  const errorName = (answer: Raw): unknown => (JSON.parse(answer.body) as { errorName?: unknown }).errorName;
  const path = (rest: string): string => `${endpoint.endpoint.uriPath}${rest}`;

  test.each([
    ['an unknown prefix', () => '/xks/nobody/kms/xks/v1/health'],
    ['the prefix in another case', () => path('/health').replace(endpoint.endpoint.prefix, 'CLOUD-PREFIX')],
    ['another version', () => path('/health').replace('/v1/', '/v2/')],
    ['a slash at the end', () => path('/health/')],
    ['two slashes', () => path('//health')],
    ['a dot segment', () => path('/keys/../health')],
    ['an encoded letter', () => path('/%68ealth')],
    ['a query', () => path('/health?x=1')],
    ['an unknown operation', () => path('/keys/x/rotate')],
    ['an external key id that is too long', () => path(`/keys/${'k'.repeat(129)}/metadata`)],
    ['no operation', () => path('')],
  ])('does not know %s: 404', async (_what, target) => {
    const answer = await post(target(), '{}');
    expect(answer.status).toBe(404);
    expect(errorName(answer)).toBe('InvalidUriPathException');
  });

  test('takes POST only', async () => {
    const answer = await raw(`GET ${path('/health')} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    expect(answer.status).toBe(405);
    expect(answer.head).toMatch(/^Allow: POST/im);
  });

  test('refuses a body of more than 64 KiB, whether it says so or not', async () => {
    const answer = await post(path('/health'), Buffer.alloc(65_537, 0x20));
    expect(answer.status).toBe(413);
    expect(errorName(answer)).toBe('ValidationException');
    const head = `POST ${path('/health')} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n`;
    expect((await raw(head, `2000\r\n${' '.repeat(0x2000)}\r\n`.repeat(9), '0\r\n\r\n')).status).toBe(413);
  });

  test.each([
    ['no JSON', '{'],
    ['a list', '[]'],
    ['one member twice', '{"requestMetadata":{},"requestMetadata":{}}'],
    ['no metadata', '{"plaintext":"AA==","encryptionAlgorithm":"AES_GCM"}'],
    [
      'Base64 that is not canonical',
      '{"requestMetadata":{"kmsRequestId":"1","kmsOperation":"E","awsPrincipalArn":"a","kmsKeyArn":"k"},"plaintext":"AB==","encryptionAlgorithm":"AES_GCM"}',
    ],
    [
      'a number for a text',
      '{"requestMetadata":{"kmsRequestId":1,"kmsOperation":"E","awsPrincipalArn":"a","kmsKeyArn":"k"},"plaintext":"AA==","encryptionAlgorithm":"AES_GCM"}',
    ],
    ['10,000 brackets', '['.repeat(10_000)],
  ])('refuses %s, correctly signed, as ValidationException', async (_what, body) => {
    const request = { ...endpoint.request(`/keys/${endpoint.endpoint.keyId}/encrypt`, {}), body };
    expect(await curlXks(request)).toMatchObject({ status: 400, body: { errorName: 'ValidationException' } });
  });

  test.each([
    ['no signature', {}],
    ['two Authorization headers', { Authorization: 'AWS4-HMAC-SHA256 a\r\nAuthorization: AWS4-HMAC-SHA256 b' }],
    ['a signature of another kind', { Authorization: 'Bearer x' }],
    [
      'a signature without a date',
      {
        Authorization:
          'AWS4-HMAC-SHA256 Credential=A/20260101/r/kms-xks-proxy/aws4_request, SignedHeaders=host, Signature=0',
      },
    ],
  ])('refuses %s: 401', async (_what, headers) => {
    const answer = await post(path(`/keys/${endpoint.endpoint.keyId}/metadata`), '{}', {
      Authorization: '',
      ...headers,
    });
    expect(answer.status).toBe(401);
    expect(errorName(answer)).toBe('AuthenticationFailedException');
  });
});

describe('the TDE API', () => {
  const instance = Buffer.from(
    JSON.stringify({ host: 'h', pid: 1, process: 'p', library: '1', agent: '1', osUser: 'o' }),
  ).toString('base64url');
  const call = (
    route: string,
    body: Buffer,
    headers: Readonly<Record<string, string>> = {},
    guid: string = application.accessGuid,
  ): Promise<Raw> =>
    post(`/tde/v1/${guid}/erp${route}`, body, {
      Authorization: `Bearer ${application.accessGuid}`,
      'Content-Type': envelopeType,
      'X-Dke-Instance': instance,
      ...headers,
    });

  test('takes what is right', async () => {
    const answer = await call('/info', packEnvelope({}));
    expect(answer.status).toBe(200);
  });

  test.each<[string, string, () => Buffer, number]>([
    ['no envelope', '/info', () => Buffer.alloc(0), 400],
    ['three bytes', '/info', () => Buffer.alloc(3), 400],
    ['a head longer than the body', '/info', () => Buffer.from([0, 0, 0, 200, 0x7b, 0x7d]), 400],
    ['a head longer than everything', '/info', () => Buffer.from([0xff, 0xff, 0xff, 0xff, 0x7b, 0x7d]), 400],
    ['a head that is not JSON', '/info', () => Buffer.from([0, 0, 0, 1, 0x7b]), 400],
    ['a head that is a list', '/info', () => packEnvelope([]), 400],
    ['an unknown member', '/info', () => packEnvelope({ speed: 9 }), 400],
    ['noise', '/info', () => randomBytes(512), 400],
    ['another class', '/keys', () => packEnvelope({ class: 'domain-parameters' }), 400],
    ['an unknown mode', `/objects/1/encrypt`, () => packEnvelope({ algorithm: 'aes-xts' }), 400],
    [
      'an IV that is too long',
      '/objects/1/encrypt',
      () => packEnvelope({ algorithm: 'aes-cbc', iv: 'A'.repeat(400) }),
      400,
    ],
    [
      'an IV that is too short',
      '/objects/1/encrypt',
      () => packEnvelope({ algorithm: 'aes-cbc', iv: 'AAAA' }, Buffer.alloc(16)),
      400,
    ],
    ['a handle of 0', '/objects/0/get', () => packEnvelope({}), 404],
    ['a negative handle', '/objects/-1/get', () => packEnvelope({}), 404],
    ['a handle beyond all', '/objects/99999999999999999999/get', () => packEnvelope({}), 404],
    ['a handle that was never given', '/objects/2147483647/get', () => packEnvelope({}), 404],
    ['a route that there is not', '/objects/1/export', () => packEnvelope({}), 404],
  ])('refuses %s', async (_what, route, body, status) => {
    const own = String(handle);
    const answer = await call(route.replace('/objects/1/', `/objects/${own}/`), body());
    expect(answer.status, answer.body).toBe(status);
    expect(JSON.parse(answer.body)).toMatchObject({ status, code: expect.any(String), requestId: expect.any(String) });
    expect(answer.body).not.toContain(application.accessGuid);
  });

  test('refuses a body of more than 1 MiB', async () => {
    expect((await call('/info', packEnvelope({}), { 'Content-Length': String((1 << 20) + 1) })).status).toBe(413);
    // Who sends it nevertheless may find the connection closed under the body, before the answer is
    // read.
    expect([0, 413]).toContain((await call('/info', packEnvelope({}, Buffer.alloc(1 << 20)))).status);
  });

  test('refuses another media type, a missing instance and one that is not JSON', async () => {
    expect((await call('/info', packEnvelope({}), { 'Content-Type': 'application/json' })).status).toBe(400);
    expect((await call('/info', packEnvelope({}), { 'X-Dke-Instance': '' })).status).toBe(400);
    expect((await call('/info', packEnvelope({}), { 'X-Dke-Instance': '!!!' })).status).toBe(400);
    expect((await call('/info', packEnvelope({}), { 'X-Dke-Instance': 'A'.repeat(5000) })).status).toBe(400);
  });

  test('refuses a credential that differs from the address, an unknown one, and an administrator’s token', async () => {
    const other = application.accessGuid.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
    expect((await call('/info', packEnvelope({}), {}, other)).status).toBe(401);
    expect((await call('/info', packEnvelope({}), { Authorization: `Bearer ${other}` }, other)).status).toBe(401);
    const token = { Authorization: `Bearer ${site.token}` };
    expect((await call('/info', packEnvelope({}), token, site.token)).status).toBe(401);
    expect((await call('/info', packEnvelope({}), { Authorization: '' })).status).toBe(401);
  });
});

describe('the character U+0000', () => {
  const passkey = {
    id: 'a',
    response: {
      clientDataJSON: Buffer.from(JSON.stringify({ challenge: 'x\0y' })).toString('base64url'),
      userHandle: Buffer.from('a\0b').toString('base64url'),
    },
  };
  test.each<[string, string, string, number]>([
    ['a name', '/api/vaults', '{"name":"a\\u0000b"}', 400],
    ['a path', '/api/vaults/a%00b/disable', '{}', 400],
    ['a query', '/api/vaults?tenant=a%00b', '{"name":"x"}', 400],
    ['the name of a user who signs in', '/api/session', '{"user":"a\\u0000b","password":"x"}', 400],
    ['an invitation', '/api/session/invitation', '{"invitation":"a\\u0000b","password":"x"}', 400],
    ['a user that a passkey names', '/api/session/passkey', JSON.stringify({ answer: passkey }), 401],
  ])('is refused in %s', async (_what, path, body, status) => {
    expect((await post(path, body)).status).toBe(status);
  });

  test('is refused in what a host says of itself', async () => {
    const host = { host: 'h', pid: 1, process: 'p', library: '1', agent: '1', osUser: 'o' };
    for (const name of Object.keys(host).filter((each) => each !== 'pid')) {
      const answer = await post(`/tde/v1/${application.accessGuid}/erp/info`, packEnvelope({}), {
        Authorization: `Bearer ${application.accessGuid}`,
        'Content-Type': envelopeType,
        'X-Dke-Instance': Buffer.from(JSON.stringify({ ...host, [name]: 'a\0b' })).toString('base64url'),
      });
      expect([name, answer.status]).toEqual([name, 400]);
    }
  });

  test('in what a cloud says of its request neither refuses it nor costs the record of it, or of others', async () => {
    const metadata = { kmsRequestId: 'a\0b', kmsOperation: 'E\0', awsPrincipalArn: 'p', kmsKeyArn: 'k' };
    const { keyId } = endpoint.endpoint;
    const call = (requestMetadata: object) =>
      curlXks(
        endpoint.request(`/keys/${keyId}/encrypt`, {
          ...{ requestMetadata, plaintext: 'AAAA', encryptionAlgorithm: 'AES_GCM' },
        }),
      );
    const answers = await Promise.all([
      call({ ...metadata, kmsRequestId: 'before' }),
      call(metadata),
      call({ ...metadata, awsPrincipalArn: 'p\0', kmsKeyArn: 'k\0' }),
      call({ ...metadata, kmsRequestId: 'after' }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, expect.any(Number), 200]);
    const recorded = async () =>
      (await site.api.call<{ items: { kmsRequestId: string | null }[] }>('GET', '/api/requests?limit=100')).items.map(
        ({ kmsRequestId }) => kmsRequestId,
      );
    await expect.poll(recorded).toEqual(expect.arrayContaining(['before', 'a\ufffdb', 'after']));
  });
});

describe('bytes that are not TLS', () => {
  const plainly = async (bytes: Buffer | string): Promise<Buffer> => {
    const socket = connectPlain(site.server.port, '127.0.0.1');
    const parts: Buffer[] = [];
    socket.on('data', (part: Buffer) => parts.push(part)).on('error', () => undefined);
    await once(socket, 'connect');
    socket.write(bytes);
    await closed(socket);
    return Buffer.concat(parts);
  };

  test.each<[string, () => Buffer | string]>([
    ['HTTP without TLS', () => 'GET /health HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['noise', () => randomBytes(4096)],
    ['zeros', () => Buffer.alloc(100_000)],
    ['the hello of SSH', () => 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['a record of an unknown kind', () => Buffer.from([0x63, 3, 3, 0, 2, 1, 1])],
    ['a record that is too long', () => Buffer.concat([Buffer.from([0x16, 3, 1, 0xff, 0xff]), randomBytes(0xffff)])],
    ['a hello of SSL 2', () => Buffer.from('802e0100020015000000100100800200800600400400800700c0', 'hex')],
  ])('%s ends that connection, and no other', async (_what, bytes) => {
    const other = await open();
    const ask = async (): Promise<void> => {
      other.write('GET /health HTTP/1.1\r\nHost: a\r\n\r\n');
      const [data] = (await once(other, 'data')) as [Buffer];
      expect(data.toString('latin1')).toMatch(/^HTTP\/1\.1 200 /);
    };
    // Its first request would have to arrive within 5 s.
    await ask();
    const answer = await plainly(bytes());
    expect(answer.toString('latin1')).not.toContain('HTTP/1.1 200');
    await ask();
    other.destroy();
  });

  test('who says nothing, or half of something, is let go', async () => {
    const silent = connectPlain(site.server.port, '127.0.0.1');
    await once(silent, 'connect');
    silent.on('error', () => undefined).resume();
    const half = await open();
    let answer = '';
    half.setEncoding('latin1').on('data', (part: string) => {
      answer += part;
    });
    half.write('POST /api/vaults HTTP/1.1\r\nHost: a\r\n');
    half.on('error', () => undefined);
    await Promise.all([closed(silent), closed(half)]);
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
  });

  test('200 unfinished connections do not stop the next one', async () => {
    const left = await Promise.all(
      Array.from({ length: 200 }, async () => {
        const socket = connectPlain(site.server.port, '127.0.0.1');
        socket.on('error', () => undefined);
        await once(socket, 'connect');
        socket.write(Buffer.from([0x16, 3, 1]));
        return socket;
      }),
    );
    expect((await site.api.send('GET', '/health')).status).toBe(200);
    for (const socket of left) socket.destroy();
  });
});
