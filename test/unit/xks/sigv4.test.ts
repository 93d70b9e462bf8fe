// SigV4 verification: the published XKS-shaped requests, and requests signed by an independent
// signer, each spoilt in one way.
import { createHash, createHmac } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { core } from '../../../addon/core.ts';
import { createSigV4, type SignedRequest } from '../../../server/fronts/xks/sigv4.ts';
import { createSigningKeys } from '../../../server/fronts/xks/sigv4-caches.ts';
import type { XksCredentialView } from '../../../server/ports/xks-directory.ts';
import { signXksRequest } from '../../support/sign.ts';
import { readVectors, vectorFolder } from '../../support/vectors.ts';
import { secretKey } from '../../support/xks-directory.ts';

interface Cases {
  readonly credentials: readonly {
    readonly prefix: string;
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
  }[];
  readonly cases: readonly {
    readonly id: number;
    readonly name: string;
    readonly now: string;
    readonly expect: 'accept' | 'reject';
    readonly request: {
      readonly method: string;
      readonly path: string;
      readonly query: string;
      readonly headers: readonly (readonly [string, string])[];
      readonly body: string;
    };
  }[];
}

core.initialize();
const sigv4 = createSigV4(core, createSigningKeys(core));

const casesFile = vectorFolder('sigv4', 'xks-sigv4-cases.json');
describe.runIf(casesFile !== null)('the XKS-shaped requests', () => {
  const vectors: Cases = casesFile === null ? { credentials: [], cases: [] } : readVectors<Cases>(casesFile);
  const ours = vectors.credentials
    .filter(({ prefix }) => prefix === '/example/prefix')
    .map(
      (credential): XksCredentialView => ({
        id: credential.prefix,
        accessKeyId: credential.accessKeyId,
        secret: secretKey(credential.secretAccessKey),
      }),
    );
  test.each(vectors.cases.map((entry) => [entry.id, entry.expect, entry.name, entry] as const))(
    '%i: %s %s',
    (_id, expected, name, entry) => {
      const { request } = entry;
      const target = request.query === '' ? request.path : `${request.path}?${request.query}`;
      const verification = sigv4.verify(
        { method: request.method, target, rawHeaders: request.headers.flat(), body: Buffer.from(request.body, 'utf8') },
        ours,
        Date.parse(entry.now),
      );
      // The router refuses a GET and an invalid path before their signature; `app.test.ts` covers
      // those.
      if (/^GET on|dot segment|percent-encoded/.test(name))
        return expect(request.method === 'GET' || !/^\/[a-z/]*\/v1\/[a-z]*$/.test(request.path)).toBe(true);
      expect(verification.ok, verification.ok ? 'accepted' : verification.reason).toBe(expected === 'accept');
    },
  );
});

describe('a request signed by an independent signer', () => {
  const accessKeyId = 'AKIDTESTTESTTESTTEST';
  const secretAccessKey = 'wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEYwJalrXUtn';
  const credentials: readonly XksCredentialView[] = [{ id: 'one', accessKeyId, secret: secretKey(secretAccessKey) }];
  const now = Date.parse('2026-05-06T07:08:09Z');
  const path = '/xks/acme/kms/xks/v1/keys/Key-1/encrypt';
  const body = '{"a":1}';
  let good: SignedRequest;

  beforeAll(async () => {
    const headers = await signXksRequest({
      host: 'xks.example',
      path,
      body,
      accessKeyId,
      secretAccessKey,
      date: new Date(now),
    });
    good = { method: 'POST', target: path, rawHeaders: Object.entries(headers).flat(), body: Buffer.from(body) };
  });

  const withHeader = (request: SignedRequest, name: string, change: (value: string) => string): SignedRequest => ({
    ...request,
    rawHeaders: request.rawHeaders.map((text, index, all) =>
      index % 2 === 1 && all[index - 1]?.toLowerCase() === name ? change(text) : text,
    ),
  });

  test('verifies', () => {
    expect(sigv4.verify(good, credentials, now)).toMatchObject({ ok: true, credential: { id: 'one' } });
  });
  test('verifies again from the cached signing key', () => {
    expect(sigv4.verify(good, credentials, now).ok).toBe(true);
  });
  test('is refused when it was signed for another service, with the same key', async () => {
    const about = { host: 'xks.example', path, body, accessKeyId, secretAccessKey, date: new Date(now) };
    const verified = async (service: string) =>
      sigv4.verify(
        { ...good, rawHeaders: Object.entries(await signXksRequest({ ...about, service })).flat() },
        credentials,
        now,
      );
    expect(await verified('kms-xks-proxy')).toMatchObject({ ok: true });
    expect(await verified('s3')).toEqual({ ok: false, reason: 'the scope is for another service' });
  });
  test('verifies exactly 5 minutes off, in both directions, and not a millisecond more', () => {
    for (const side of [-1, 1]) {
      expect(sigv4.verify(good, credentials, now + side * 300_000).ok).toBe(true);
      expect(sigv4.verify(good, credentials, now + side * 300_001).ok).toBe(false);
    }
  });
  test.each<[string, (request: SignedRequest) => SignedRequest]>([
    ['another method', (request) => ({ ...request, method: 'PUT' })],
    ['another path', (request) => ({ ...request, target: request.target.replace('Key-1', 'key-1') })],
    ['a query', (request) => ({ ...request, target: `${request.target}?x=1` })],
    ['another body', (request) => ({ ...request, body: Buffer.from('{"a":2}') })],
    ['another host', (request) => withHeader(request, 'host', () => 'other.example')],
    ['a second host', (request) => ({ ...request, rawHeaders: [...request.rawHeaders, 'Host', 'xks.example'] })],
    [
      'a second Authorization',
      (request) => ({ ...request, rawHeaders: [...request.rawHeaders, 'authorization', 'x'] }),
    ],
    [
      'an upper-case signature',
      (request) =>
        withHeader(request, 'authorization', (value) => value.replace(/[0-9a-f]+$/, (hex) => hex.toUpperCase())),
    ],
    ['a shortened signature', (request) => withHeader(request, 'authorization', (value) => value.slice(0, -2))],
    [
      'an unknown access key id',
      (request) => withHeader(request, 'authorization', (value) => value.replace(accessKeyId, 'AKIDOTHEROTHEROTHERO')),
    ],
    [
      'another service',
      (request) => withHeader(request, 'authorization', (value) => value.replace('kms-xks-proxy', 's3')),
    ],
    [
      'an unsigned payload',
      (request) => ({ ...request, rawHeaders: [...request.rawHeaders, 'x-amz-content-sha256', 'UNSIGNED-PAYLOAD'] }),
    ],
    ['a date that does not exist', (request) => withHeader(request, 'x-amz-date', () => '20260231T070809Z')],
    [
      'no date',
      (request) => ({
        ...request,
        rawHeaders: request.rawHeaders.filter((_, index, all) => all[index - (index % 2)] !== 'x-amz-date'),
      }),
    ],
  ])('%s is refused', (_name, spoil) => {
    expect(sigv4.verify(spoil(good), credentials, now).ok).toBe(false);
  });
  /** Signed with the right secret, but only over these of its headers. */
  const signedOver = (...signed: readonly string[]): SignedRequest => {
    const headers = { host: 'xks.example', 'x-amz-date': '20260506T070809Z' };
    const hash = (data: string): string => createHash('sha256').update(data).digest('hex');
    const mac = (key: string | Buffer, data: string): Buffer => createHmac('sha256', key).update(data).digest();
    const lines = signed.map((name) => `${name}:${headers[name as keyof typeof headers]}\n`).join('');
    const canonical = `POST\n${path}\n\n${lines}\n${signed.join(';')}\n${hash(body)}`;
    const scope = '20260506/us-east-1/kms-xks-proxy/aws4_request';
    const key = scope.split('/').reduce<string | Buffer>(mac, `AWS4${secretAccessKey}`);
    const text = `AWS4-HMAC-SHA256\n${headers['x-amz-date']}\n${scope}\n${hash(canonical)}`;
    const authorization =
      `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${signed.join(';')}, ` +
      `Signature=${mac(key, text).toString('hex')}`;
    const rawHeaders = Object.entries({ ...headers, authorization }).flat();
    return { method: 'POST', target: path, rawHeaders, body: Buffer.from(body) };
  };
  test('host and x-amz-date are under the signature, or it is refused', () => {
    const answers = [['host', 'x-amz-date'], ['x-amz-date'], ['host']].map((signed) =>
      sigv4.verify(signedOver(...signed), credentials, now),
    );
    const reason = 'host and x-amz-date must be signed';
    expect(answers).toMatchObject([{ ok: true }, { ok: false, reason }, { ok: false, reason }]);
  });
  test('the secret of another credential is refused', () => {
    expect(sigv4.verify(good, [{ id: 'two', accessKeyId, secret: secretKey('x'.repeat(43)) }], now).ok).toBe(false);
  });
});
