// SigV4 verification against two signers that share no code with it or with each other: every
// signature of theirs verifies, and a request of which any signed part was changed does not. SLOW=1
// tries twenty times as much.

import { describe, expect, test } from 'vitest';
import { core } from '../../../addon/core.ts';
import { createSigV4, type SignedRequest, type Verification } from '../../../server/fronts/xks/sigv4.ts';
import { createSigningKeys } from '../../../server/fronts/xks/sigv4-caches.ts';
import fc from '../../support/property.ts';
import { signXksRequest } from '../../support/sign.ts';
import { signWithAws4Fetch } from '../../support/sign-aws4fetch.ts';
import { sizeOf } from '../../support/tiers.ts';
import { secretKey } from '../../support/xks-directory.ts';

core.initialize();
const runs = sizeOf('signature properties');
const sigv4 = createSigV4(core, createSigningKeys(core));

const characters = (alphabet: string, minLength: number, maxLength: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...alphabet), minLength, maxLength });
const letters = 'abcdefghijklmnopqrstuvwxyz';
const idLetters = `${letters.toUpperCase()}234567`;
const keyLetters = `${letters}${letters.toUpperCase()}0123456789`;

// `keys/.` and `keys/..` are normalised by one of the signers, as by every URL; the proxy has no
// such path.
const keyId = characters(`${keyLetters}-._`, 1, 128).filter((id) => !/^\.{1,2}$/.test(id));
const target = fc.oneof(
  characters(`${keyLetters}_-`, 1, 64).map((prefix) => `/xks/${prefix}/kms/xks/v1/health`),
  fc
    .tuple(characters(`${keyLetters}_-`, 1, 64), keyId, fc.constantFrom('metadata', 'encrypt', 'decrypt'))
    .map(([prefix, id, operation]) => `/xks/${prefix}/kms/xks/v1/keys/${id}/${operation}`),
);
const host = fc
  .tuple(
    fc.array(characters(`${letters}0123456789`, 1, 12), { minLength: 1, maxLength: 4 }),
    fc.integer({ min: 1024, max: 65_535 }),
  )
  .map(([labels, port]) => `x${labels.join('.x')}:${port}`);
const headerValue = characters(`${keyLetters}!#$%&'*+-.^_\`|~ ;:,"()<>@[]{}=?/\\`, 1, 60)
  // Blanks at the ends are not part of a value.
  .map((value) => `v${value}v`);
const extraHeaders = fc.dictionary(
  characters(`${letters}0123456789-`, 1, 20).map((name) => `x-extra-${name}z`),
  headerValue,
  { maxKeys: 6 },
);
// Dates that exist, the last second of a day and a leap day among them.
const date = fc.oneof(
  fc.integer({ min: 0, max: 4_000_000_000 }).map((seconds) => new Date(seconds * 1000)),
  fc.constantFrom(new Date('2028-02-29T23:59:59Z'), new Date('2026-12-31T23:59:59Z'), new Date('2027-01-01T00:00:00Z')),
);

interface Signing {
  readonly signer: 'smithy' | 'aws4fetch';
  readonly target: string;
  readonly host: string;
  readonly body: Uint8Array<ArrayBuffer>;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly region: string;
  readonly date: Date;
  readonly headers: Readonly<Record<string, string>>;
}
const signing: fc.Arbitrary<Signing> = fc.record({
  signer: fc.constantFrom('smithy', 'aws4fetch'),
  target,
  host,
  body: fc.uint8Array({ maxLength: 2000 }).map((bytes) => new Uint8Array(bytes)),
  accessKeyId: characters(idLetters, 20, 30),
  secretAccessKey: characters(`${keyLetters}/+=`, 43, 64),
  region: fc.tuple(characters(letters, 2, 4), characters(letters, 3, 12), fc.nat(9)).map((parts) => parts.join('-')),
  date,
  headers: extraHeaders,
});

const sign = async (input: Signing): Promise<SignedRequest> => {
  const { signer, target: path, ...rest } = input;
  const request = { ...rest, path };
  const headers =
    signer === 'smithy'
      ? await signXksRequest(request)
      : (await signWithAws4Fetch({ ...request, headers: { 'content-type': 'application/json', ...input.headers } }))
          .headers;
  return { method: 'POST', target: path, rawHeaders: Object.entries(headers).flat(), body: input.body };
};
const verify = (request: SignedRequest, { accessKeyId, secretAccessKey, date: at }: Signing): Verification => {
  const secret = secretKey(secretAccessKey);
  try {
    return sigv4.verify(request, [{ id: 'one', accessKeyId, secret }], at.getTime());
  } finally {
    core.release(secret);
  }
};
const pairs = ({ rawHeaders }: SignedRequest): [name: string, value: string][] =>
  rawHeaders.flatMap((text, index) =>
    index % 2 === 0 ? [[text, rawHeaders[index + 1] ?? ''] as [string, string]] : [],
  );
const withPairs = (request: SignedRequest, headers: readonly (readonly [string, string])[]): SignedRequest => ({
  ...request,
  rawHeaders: headers.flat(),
});
const authorizationOf = (request: SignedRequest): string =>
  pairs(request).find(([name]) => name.toLowerCase() === 'authorization')?.[1] ?? '';
const withAuthorization = (request: SignedRequest, change: (value: string) => string): SignedRequest =>
  withPairs(
    request,
    pairs(request).map(([name, value]) => [name, name.toLowerCase() === 'authorization' ? change(value) : value]),
  );
const signedNames = (request: SignedRequest): readonly string[] =>
  /SignedHeaders=([^,]*)/.exec(authorizationOf(request))?.[1]?.split(';') ?? [];
/** Another character in its place, of the same kind so that the text keeps its form. */
const changeAt = (text: string, at: number): string => {
  const index = at % text.length;
  const before = text[index] ?? '';
  const next = /[0-9]/.test(before)
    ? String((Number(before) + 1) % 10)
    : before === 'z' || before === 'Z'
      ? String.fromCharCode(before.charCodeAt(0) - 1)
      : /[a-zA-Z]/.test(before)
        ? String.fromCharCode(before.charCodeAt(0) + 1)
        : 'q';
  return text.slice(0, index) + next + text.slice(index + 1);
};

const must = (
  input: fc.Arbitrary<[Signing, number]>,
  check: (input: Signing, at: number) => Promise<void>,
): Promise<void> =>
  fc.assert(
    fc.asyncProperty(input, ([each, at]) => check(each, at)),
    { numRuns: runs },
  );
const any = fc.tuple(signing, fc.nat(1_000_000));

describe('a request of either signer', () => {
  test('verifies, whatever its path, body, host, region, date, secret and other headers', () =>
    must(any, async (input) => {
      const verification = verify(await sign(input), input);
      expect(verification.ok, verification.ok ? '' : verification.reason).toBe(true);
    }));

  test('verifies with every spelling of header names, every order of headers, and additional unsigned headers', () =>
    must(any, async (input, at) => {
      const request = await sign(input);
      const headers = pairs(request).map(([name, value], index): [string, string] => [
        (index + at) % 2 === 0 ? name.toUpperCase() : name.toLowerCase(),
        value,
      ]);
      const turned = [...headers.slice(at % headers.length), ...headers.slice(0, at % headers.length)];
      turned.splice(
        at % turned.length,
        0,
        ['X-Forwarded-For', '10.0.0.1'],
        ['Via', '1.1 balancer'],
        ['x-forwarded-for', '10.0.0.2'],
      );
      expect(verify(withPairs(request, turned), input).ok).toBe(true);
    }));

  test('verifies with blanks before, behind and within header values, which the canonical form folds', () =>
    must(any, async (input) => {
      const request = await sign(input);
      const widened = pairs(request).map(([name, value]): [string, string] => [
        name,
        name.startsWith('x-extra-') ? ` \t${value.replaceAll(' ', '   ')} ` : value,
      ]);
      expect(verify(withPairs(request, widened), input).ok).toBe(true);
    }));
});

describe('refused is', () => {
  const refuses = (
    spoil: (request: SignedRequest, at: number, input: Signing) => SignedRequest | null,
  ): Promise<void> =>
    must(any, async (input, at) => {
      const request = await sign(input);
      const spoilt = spoil(request, at, input);
      if (spoilt !== null) expect(verify(spoilt, input).ok).toBe(false);
    });

  test.each(['GET', 'PUT', 'post', 'POSTX'])('the method %s', (method) =>
    refuses((request) => ({ ...request, method })),
  );
  test('another path', () => refuses((request, at) => ({ ...request, target: changeAt(request.target, at) })));
  test('a path with more or less of it', () =>
    refuses((request, at) => ({
      ...request,
      target: at % 2 === 0 ? request.target.slice(0, -1) : `${request.target}/`,
    })));
  test('a query, even an empty one', () =>
    refuses((request, at) => ({ ...request, target: `${request.target}${at % 2 === 0 ? '?' : '?a=b'}` })));
  test('a body of which a bit was changed', () =>
    refuses((request, at, { body }) => {
      if (body.length === 0) return null;
      const changed = Buffer.from(body);
      const index = at % changed.length;
      changed[index] = (changed[index] ?? 0) ^ (1 << (at % 8));
      return { ...request, body: changed };
    }));
  test('a longer or a shorter body', () =>
    refuses((request, at, { body }) => ({
      ...request,
      body: at % 2 === 0 && body.length > 0 ? body.subarray(0, -1) : Buffer.concat([body, Buffer.from([at & 0xff])]),
    })));
  test('a signed header of another value', () =>
    refuses((request, at) => {
      const names = signedNames(request);
      const name = names[at % names.length];
      return withPairs(
        request,
        pairs(request).map(([each, value]) => [each, each.toLowerCase() === name ? changeAt(value, at >> 3) : value]),
      );
    }));
  test('a signed header that is missing', () =>
    refuses((request, at) => {
      const names = signedNames(request);
      return withPairs(
        request,
        pairs(request).filter(([each]) => each.toLowerCase() !== names[at % names.length]),
      );
    }));
  test('a signed header that is repeated', () =>
    refuses((request, at) => {
      const names = signedNames(request);
      const copy = pairs(request).find(([each]) => each.toLowerCase() === names[at % names.length]);
      return copy === undefined ? null : withPairs(request, [...pairs(request), copy]);
    }));
  test('an Authorization header of which any character was changed', () =>
    refuses((request, at) => withAuthorization(request, (value) => changeAt(value, at))));
  test('an Authorization header that is cut, extended or repeated', () =>
    refuses((request, at) => {
      const value = authorizationOf(request);
      if (at % 3 === 0) return withPairs(request, [...pairs(request), ['Authorization', value]]);
      return withAuthorization(request, () => (at % 3 === 1 ? value.slice(0, at % value.length) : `${value}${at}`));
    }));
  test('a list of signed headers with one less or one more', () =>
    refuses((request, at) => {
      const names = [...signedNames(request)];
      if (at % 2 === 0) names.splice(at % names.length, 1);
      else names.push('zzz');
      return withAuthorization(withPairs(request, [...pairs(request), ['zzz', '1']]), (value) =>
        value.replace(/SignedHeaders=[^,]*/, `SignedHeaders=${names.join(';')}`),
      );
    }));
  test('the signature of another request', async () => {
    await fc.assert(
      fc.asyncProperty(signing, signing, async (one, other) => {
        const [request, second] = [
          await sign(one),
          await sign({ ...other, accessKeyId: one.accessKeyId, secretAccessKey: one.secretAccessKey }),
        ];
        const signature = authorizationOf(second).slice(-64);
        const crossed = withAuthorization(request, (value) => value.slice(0, -64) + signature);
        expect(verify(crossed, one).ok).toBe(authorizationOf(request).endsWith(signature));
      }),
      { numRuns: runs },
    );
  });
  test('another secret, or the same one of another access key id', () =>
    must(any, async (input, at) => {
      const request = await sign(input);
      expect(verify(request, { ...input, secretAccessKey: changeAt(input.secretAccessKey, at) }).ok).toBe(false);
      expect(verify(request, { ...input, accessKeyId: changeAt(input.accessKeyId, at) }).ok).toBe(false);
    }));
  test.each(['kms', 's3', 'kms-xks-proxy2', 'kms-xks-prox'])('a scope of the service %s', (service) =>
    must(any, async (input) => {
      const headers = await signXksRequest({ ...input, path: input.target, service });
      const request = {
        method: 'POST',
        target: input.target,
        rawHeaders: Object.entries(headers).flat(),
        body: input.body,
      };
      expect(verify(request, input)).toMatchObject({ ok: false });
    }),
  );
  test('a presigned query', () =>
    must(any, async (input) => {
      const signed = await signWithAws4Fetch({ ...input, path: input.target, presigned: true });
      const rawHeaders = Object.entries(signed.headers).flat();
      expect(verify({ method: 'POST', target: signed.target, rawHeaders, body: input.body }, input).ok).toBe(false);
    }));
  test.each(['UNSIGNED-PAYLOAD', 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD', 'STREAMING-UNSIGNED-PAYLOAD-TRAILER', 'e3b0'])(
    'a payload hash of %s, signed as such',
    (stated) =>
      must(any, async (input) => {
        const signed = await signWithAws4Fetch({
          ...input,
          path: input.target,
          headers: { ...input.headers, 'x-amz-content-sha256': stated },
        });
        const rawHeaders = Object.entries(signed.headers).flat();
        expect(verify({ method: 'POST', target: input.target, rawHeaders, body: input.body }, input).ok).toBe(false);
      }),
  );
});

describe('the clock', () => {
  const at = (seconds: number): Promise<void> =>
    must(any, async (input) => {
      const request = await sign(input);
      // The date has whole seconds.
      const stated = new Date(Math.floor(input.date.getTime() / 1000) * 1000);
      const answer = verify(request, { ...input, date: new Date(stated.getTime() + seconds * 1000) });
      expect(answer.ok, answer.ok ? '' : answer.reason).toBe(Math.abs(seconds) <= 300);
    });
  test.each([0, 1, 299, 300, 301, 3600, 86_400])('may be %i seconds ahead when that is at most 300', (seconds) =>
    at(seconds),
  );
  test.each([1, 299, 300, 301, 3600, 86_400])('may be %i seconds behind when that is at most 300', (seconds) =>
    at(-seconds),
  );
});
