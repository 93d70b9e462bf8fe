// The External Key Store Proxy API 1.0 against the real server over TLS: every member, limit, error
// and status of the four operations. What a test does not say of an answer (errorName and status,
// the message, the headers), the caller checks of each. Left out: the life of keys and credentials
// (xks-life.test.ts), signatures in depth (unit/xks), HTTP (xks-http.test.ts).
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Site, startSite } from '../support/site.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';
import {
  type CallerAnswer,
  type CallOptions,
  openXksCaller,
  wholeMetadata,
  type XksBody,
  type XksCaller,
} from '../support/xks-caller.ts';

let site: Site;
let caller: XksCaller;
let place: XksEndpoint;
beforeAll(async () => {
  site = await startSite();
  caller = openXksCaller(site.server);
  place = await createXksEndpoint(site, 'protocol');
});
afterAll(async () => {
  caller?.close();
  await site?.end();
});

type Operation = 'health' | 'metadata' | 'encrypt' | 'decrypt';
type Members = Readonly<Record<string, unknown>>;
const operations: readonly Operation[] = ['health', 'metadata', 'encrypt', 'decrypt'];

const target = (operation: Operation): string =>
  operation === 'health' ? '/health' : `/keys/${place.endpoint.keyId}/${operation}`;
const send = (operation: Operation, body: XksBody, options?: CallOptions): Promise<CallerAnswer> =>
  caller.send(place.configuration, target(operation), body, options);
const refused = async (operation: Operation, body: XksBody, errorName: string): Promise<void> => {
  const answer = await send(operation, body);
  expect(answer.errorName, answer.text).toBe(errorName);
};
const taken = async (operation: Operation, body: XksBody): Promise<CallerAnswer> => {
  const answer = await send(operation, body);
  expect(answer.status, answer.text).toBe(200);
  return answer;
};

const base64 = (bytes: Uint8Array | string): string => Buffer.from(bytes).toString('base64');
const plaintext = base64('a data key of thirty-two bytes!!');
const aad = base64('project=nile,department=marketing');
const encryptBody = (members: Members = {}): Members => ({
  requestMetadata: wholeMetadata(),
  plaintext,
  encryptionAlgorithm: 'AES_GCM',
  additionalAuthenticatedData: aad,
  ciphertextDataIntegrityValueAlgorithm: 'SHA_256',
  ...members,
});
const seal = async (members: Members = {}): Promise<Members> => (await taken('encrypt', encryptBody(members))).body;
const decryptBody = (sealed: Members, members: Members = {}): Members => ({
  requestMetadata: wholeMetadata({ kmsOperation: 'Decrypt' }),
  encryptionAlgorithm: 'AES_GCM',
  additionalAuthenticatedData: aad,
  ...sealed,
  ...members,
});
/** A body that the operation takes. */
const goodBody = async (operation: Operation, members: Members = {}): Promise<Members> => {
  if (operation === 'encrypt') return encryptBody(members);
  if (operation === 'decrypt') return decryptBody(await seal(), members);
  return { requestMetadata: wholeMetadata(), ...members };
};
const without = (members: Members, name: string): Members =>
  Object.fromEntries(Object.entries(members).filter(([key]) => key !== name));

const requiredMetadata = {
  health: ['kmsRequestId', 'kmsOperation'],
  metadata: ['kmsRequestId', 'kmsOperation', 'awsPrincipalArn'],
  encrypt: ['kmsRequestId', 'kmsOperation', 'awsPrincipalArn', 'kmsKeyArn'],
  decrypt: ['kmsRequestId', 'kmsOperation', 'awsPrincipalArn', 'kmsKeyArn'],
} as const satisfies Record<Operation, readonly string[]>;
const requiredMembers = {
  health: [],
  metadata: [],
  encrypt: ['plaintext', 'encryptionAlgorithm'],
  decrypt: ['ciphertext', 'initializationVector', 'authenticationTag', 'encryptionAlgorithm'],
} as const satisfies Record<Operation, readonly string[]>;
const optionalMembers = {
  health: [],
  metadata: [],
  encrypt: ['additionalAuthenticatedData', 'ciphertextDataIntegrityValueAlgorithm'],
  decrypt: ['additionalAuthenticatedData', 'ciphertextMetadata'],
} as const satisfies Record<Operation, readonly string[]>;
const notStrings: readonly unknown[] = [7, 0, true, false, {}, [], ['AAAA'], { a: 'AAAA' }];

describe('requestMetadata', () => {
  test.each(operations)('%s is refused without it, or with anything but an object', async (operation) => {
    const body = await goodBody(operation);
    // An empty object is an operator's question about health.
    const rest = { ...without(body, 'requestMetadata'), other: 1 };
    await refused(operation, rest, 'ValidationException');
    for (const requestMetadata of [null, 'text', 7, true, [], [{}]])
      await refused(operation, { ...rest, requestMetadata }, 'ValidationException');
  });

  test.each(operations.flatMap((operation) => requiredMetadata[operation].map((name) => [operation, name] as const)))(
    '%s is refused without %s, or with one that is not a string',
    async (operation, name) => {
      const body = await goodBody(operation);
      const bad = (value: unknown) => ({ ...body, requestMetadata: wholeMetadata({ [name]: value }) });
      for (const value of [undefined, null, ...notStrings]) await refused(operation, bad(value), 'ValidationException');
    },
  );

  test.each(operations)('%s needs nothing else of it', async (operation) => {
    const all = wholeMetadata();
    const names: readonly string[] = requiredMetadata[operation];
    const requestMetadata = Object.fromEntries(Object.entries(all).filter(([name]) => names.includes(name)));
    await taken(operation, await goodBody(operation, { requestMetadata }));
  });

  test.each(['awsSourceVpc', 'awsSourceVpce', 'kmsViaService'])(
    '%s is optional and a string; null is absent',
    async (name) => {
      for (const operation of operations) {
        const body = await goodBody(operation);
        const bad = (value: unknown) => ({ ...body, requestMetadata: wholeMetadata({ [name]: value }) });
        await taken(operation, bad('vpc-1'));
        await taken(operation, bad(null));
        for (const value of notStrings) await refused(operation, bad(value), 'ValidationException');
      }
    },
  );

  test.each(['awsPrincipalArn', 'kmsKeyArn'])('%s may have at most 2,048 characters', async (name) => {
    for (const operation of ['metadata', 'encrypt', 'decrypt'] as const) {
      const body = await goodBody(operation);
      const long = (length: number) => ({
        ...body,
        requestMetadata: wholeMetadata({ [name]: 'arn:aws:iam::1:role/'.padEnd(length, 'x') }),
      });
      await taken(operation, long(2048));
      await refused(operation, long(2049), 'ValidationException');
    }
  });

  test.each([
    ['an empty one', ''],
    ['an unknown one', 'RewrapUnderTheMoon'],
    ['one beyond ASCII', 'Größe 鍵 🔑'],
    ['one with control characters', 'a\u0000b\r\nc\u007f'],
    ['one that looks like markup', '<script>"\'`$(x)'],
    ['a long one', 'o'.repeat(2048)],
  ])('no kmsOperation or kmsRequestId is refused: %s', async (_what, value) => {
    for (const operation of operations) {
      const requestMetadata = wholeMetadata({ kmsOperation: value, kmsRequestId: value });
      await taken(operation, await goodBody(operation, { requestMetadata }));
    }
  });

  test('unknown members are accepted, whatever is in them', async () => {
    const more = { later: { deep: [1, null, { kmsKeyArn: 5 }] }, __proto__x: 1, constructor: 'c', plaintext: 7 };
    for (const operation of operations)
      await taken(
        operation,
        await goodBody(operation, { requestMetadata: wholeMetadata(more), constructor: [], later: more }),
      );
  });
});

describe('the body', () => {
  /** A valid body as text, which the rows spoil. */
  const text = async (operation: Operation): Promise<string> => JSON.stringify(await goodBody(operation));

  test.each<[string, (good: string) => string | Uint8Array]>([
    ['nothing', () => ''],
    ['blanks', () => ' \r\n'],
    ['a string', () => '"requestMetadata"'],
    ['a number', () => '1'],
    ['null', () => 'null'],
    ['an array', (good) => `[${good}]`],
    ['two documents', (good) => `${good}${good}`],
    ['something behind it', (good) => `${good}x`],
    ['a NUL behind it', (good) => `${good}\0`],
    ['its end missing', (good) => good.slice(0, -1)],
    ['a comma too many', (good) => `${good.slice(0, -1)},}`],
    ['a comma missing', (good) => good.replace(',', ' ')],
    ['a comment', (good) => `/* */${good}`],
    ['single quotes', (good) => good.replaceAll('"', "'")],
    ['names without quotes', (good) => good.replace('"requestMetadata"', 'requestMetadata')],
    ['NaN', (good) => `${good.slice(0, -1)},"x":NaN}`],
    ['a number that begins with zero', (good) => `${good.slice(0, -1)},"x":01}`],
    ['a raw control character in a string', (good) => `${good.slice(0, -1)},"x":"a\nb"}`],
    ['half an escape', (good) => `${good.slice(0, -1)},"x":"\\u12"}`],
    ['an unknown escape', (good) => `${good.slice(0, -1)},"x":"\\x41"}`],
    ['a lone surrogate', (good) => `${good.slice(0, -1)},"x":"\\ud800"}`],
    ['a byte order mark', (good) => `\ufeff${good}`],
    ['UTF-16', (good) => Buffer.from(good, 'utf16le')],
    [
      'invalid UTF-8',
      (good) => Buffer.concat([Buffer.from(`${good.slice(0, -1)},"x":"`), Buffer.from([0xff]), Buffer.from('"}')]),
    ],
    [
      'an overlong encoding',
      (good) =>
        Buffer.concat([Buffer.from(`${good.slice(0, -1)},"x":"`), Buffer.from([0xc0, 0xaf]), Buffer.from('"}')]),
    ],
    [
      'a surrogate in UTF-8',
      (good) =>
        Buffer.concat([Buffer.from(`${good.slice(0, -1)},"x":"`), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from('"}')]),
    ],
    ['a member twice', (good) => `${good.slice(0, -1)},"x":1,"x":1}`],
    ['requestMetadata twice', (good) => `{"requestMetadata":{},${good.slice(1)}`],
    [
      'a member of requestMetadata twice',
      (good) => good.replace('"kmsOperation"', '"kmsRequestId":"r","kmsOperation"'),
    ],
    ['a member twice, once with an escape', (good) => `{"request\\u004detadata":{},${good.slice(1)}`],
    ['nesting of 17', (good) => `${good.slice(0, -1)},"x":${'['.repeat(16)}${']'.repeat(16)}}`],
    ['nesting without end', (good) => `${good.slice(0, -1)},"x":${'['.repeat(30_000)}`],
  ])('is refused when it is %s', async (_what, spoil) => {
    for (const operation of operations) await refused(operation, spoil(await text(operation)), 'ValidationException');
  });

  test.each<[string, (good: string) => string]>([
    [
      'blanks around everything',
      // ARNs have colons of their own; Base64 has none.
      (good) => ` \t\r\n${good.replaceAll(/"arn:[^"]*"/g, '"arn"').replaceAll(/[{},:]/g, ' $& ')} \n`,
    ],
    [
      'its members in another order',
      (good) => JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(good)).reverse())),
    ],
    ['escapes in names', (good) => good.replace('"requestMetadata"', '"\\u0072equest\\u004detadata"')],
    ['nesting of 16', (good) => `${good.slice(0, -1)},"x":${'['.repeat(15)}${']'.repeat(15)}}`],
    ['numbers of every form', (good) => `${good.slice(0, -1)},"x":[0,-0,1e9,1.5E-3,123456789012345678901234567890]}`],
  ])('is taken with %s', async (_what, write) => {
    for (const operation of operations) await taken(operation, write(await text(operation)));
  });

  test('may have at most 64 KiB', async () => {
    for (const operation of operations) {
      const padded = async (size: number): Promise<string> => {
        const good = await text(operation);
        return `${good.slice(0, -1)},"x":"${'x'.repeat(size - Buffer.byteLength(good) - 7)}"}`;
      };
      await taken(operation, await padded(65_536));
      const answer = await send(operation, await padded(65_537));
      expect(answer).toMatchObject({ status: 413, errorName: 'ValidationException' });
    }
  });

  test('needs no Content-Type', async () => {
    const { requestMetadata } = (await goodBody('metadata')) as { requestMetadata: object };
    for (const type of ['text/plain', 'application/json; charset=utf-8', 'application/x-amz-json-1.1'])
      expect(
        await caller.send(
          place.configuration,
          '/health',
          { requestMetadata },
          { unsigned: true, headers: { 'content-type': type } },
        ),
      ).toMatchObject({ status: 200 });
  });
});

describe('GetHealthStatus', () => {
  test('answers with every member, in its type and within its limits', async () => {
    const { body } = await taken('health', { requestMetadata: { kmsRequestId: 'r', kmsOperation: 'KmsHealthCheck' } });
    expect(Object.keys(body).sort()).toEqual([
      'ekmFleetDetails',
      'ekmVendor',
      'xksProxyFleetSize',
      'xksProxyModel',
      'xksProxyVendor',
    ]);
    expect(Number.isInteger(body.xksProxyFleetSize) && Number(body.xksProxyFleetSize) > 0).toBe(true);
    for (const name of ['xksProxyVendor', 'xksProxyModel', 'ekmVendor'])
      expect(body[name]).toMatch(/^[\x20-\x7e]{1,100}$/);
    const details = body.ekmFleetDetails as Members[];
    expect(details.length >= 1 && details.length <= 10).toBe(true);
    for (const each of details) {
      expect(Object.keys(each).sort()).toEqual(['healthStatus', 'id', 'model']);
      expect(['ACTIVE', 'DEGRADED', 'UNAVAILABLE']).toContain(each.healthStatus);
    }
  });
  test("answers an operator's empty question, signed with everything, unsigned with the fleet size alone", async () => {
    expect((await taken('health', {})).body).toHaveProperty('xksProxyVendor');
    const answer = await send('health', {}, { unsigned: true });
    expect(answer).toMatchObject({ status: 200, body: { xksProxyFleetSize: 1 } });
    expect(Object.keys(answer.body)).toEqual(['xksProxyFleetSize']);
  });
  test('answers no unsigned question that is not JSON', async () => {
    expect(await send('health', 'x', { unsigned: true })).toMatchObject({ errorName: 'ValidationException' });
  });
  test('must be signed, and have requestMetadata, when operators may not probe', async () => {
    const { settings } = await site.api.call<{ settings: object }>('GET', `/api/endpoints/${place.endpoint.id}`);
    await site.api.call('PUT', `/api/endpoints/${place.endpoint.id}/settings`, { ...settings, operatorProbes: false });
    expect(await send('health', {}, { unsigned: true })).toMatchObject({ errorName: 'AuthenticationFailedException' });
    await refused('health', {}, 'ValidationException');
    await taken('health', { requestMetadata: wholeMetadata() });
    await site.api.call('PUT', `/api/endpoints/${place.endpoint.id}/settings`, settings);
  });
});

describe('GetKeyMetadata', () => {
  test('answers with three members', async () => {
    const { body } = await taken('metadata', await goodBody('metadata'));
    expect(body).toEqual({ keySpec: 'AES_256', keyUsage: ['ENCRYPT', 'DECRYPT'], keyStatus: 'ENABLED' });
  });
});

describe('Encrypt and Decrypt', () => {
  test.each(
    (['encrypt', 'decrypt'] as const).flatMap((operation) =>
      requiredMembers[operation].map((name) => [operation, name] as const),
    ),
  )('%s is refused without %s, or with one that is not a string', async (operation, name) => {
    const body = await goodBody(operation);
    await refused(operation, without(body, name), 'ValidationException');
    for (const value of [null, ...notStrings])
      await refused(operation, { ...body, [name]: value }, 'ValidationException');
  });
  test.each(
    (['encrypt', 'decrypt'] as const).flatMap((operation) =>
      optionalMembers[operation].map((name) => [operation, name] as const),
    ),
  )('%s is refused with %s that is not a string', async (operation, name) => {
    const body = await goodBody(operation);
    for (const value of notStrings) await refused(operation, { ...body, [name]: value }, 'ValidationException');
  });

  test.each(['AES_CBC', 'aes_gcm', 'AES_GCM ', '', 'AES_GCM\u0000', 'RSAES_OAEP_SHA_256'])(
    'the only encryptionAlgorithm is AES_GCM, not %j',
    async (encryptionAlgorithm) => {
      await refused('encrypt', encryptBody({ encryptionAlgorithm }), 'UnsupportedOperationException');
      await refused('decrypt', decryptBody(await seal(), { encryptionAlgorithm }), 'UnsupportedOperationException');
    },
  );
  test.each(['SHA_512', 'sha_256', 'SHA-256', '', 'MD5'])(
    'the only ciphertextDataIntegrityValueAlgorithm is SHA_256, not %j',
    (ciphertextDataIntegrityValueAlgorithm) =>
      refused('encrypt', encryptBody({ ciphertextDataIntegrityValueAlgorithm }), 'UnsupportedOperationException'),
  );

  test.each([1, 2, 3, 15, 16, 17, 32, 4096, 4300, 32_768])('%i bytes come back as they were', async (length) => {
    const bytes = Buffer.alloc(length, 0xa5);
    const sealed = await seal({ plaintext: base64(bytes) });
    expect(Buffer.from(String(sealed.ciphertext), 'base64')).toHaveLength(length);
    expect((await taken('decrypt', decryptBody(sealed))).body).toEqual({ plaintext: base64(bytes) });
  });
  test('an empty plaintext and an empty ciphertext are refused', async () => {
    await refused('encrypt', encryptBody({ plaintext: '' }), 'ValidationException');
    await refused('decrypt', decryptBody(await seal(), { ciphertext: '' }), 'ValidationException');
  });
  test('what is longer than is supported is refused as such', async () => {
    const long = base64(Buffer.alloc(32_769));
    await refused('encrypt', encryptBody({ plaintext: long }), 'UnsupportedOperationException');
    await refused('encrypt', encryptBody({ additionalAuthenticatedData: long }), 'UnsupportedOperationException');
    await refused('decrypt', decryptBody(await seal(), { ciphertext: long }), 'UnsupportedOperationException');
    await refused(
      'decrypt',
      decryptBody(await seal(), { additionalAuthenticatedData: long }),
      'UnsupportedOperationException',
    );
  });
  test.each([1, 8192, 32_768])('%i bytes of additional data are authenticated, to the last', async (length) => {
    const bytes = Buffer.alloc(length, 0x31);
    const sealed = await seal({ additionalAuthenticatedData: base64(bytes) });
    await taken('decrypt', decryptBody(sealed, { additionalAuthenticatedData: base64(bytes) }));
    bytes[length - 1] = 0x32;
    await refused(
      'decrypt',
      decryptBody(sealed, { additionalAuthenticatedData: base64(bytes) }),
      'InvalidCiphertextException',
    );
  });
  test('absent, null and empty additional data are the same', async () => {
    const none = [undefined, null, ''];
    for (const at of none) {
      const sealed = await seal({ additionalAuthenticatedData: at });
      for (const back of none) await taken('decrypt', decryptBody(sealed, { additionalAuthenticatedData: back }));
      await refused('decrypt', decryptBody(sealed), 'InvalidCiphertextException');
    }
  });

  test('an answer has its members, in their lengths', async () => {
    const sealed = await seal();
    const length = (name: string): number => Buffer.from(String(sealed[name]), 'base64').length;
    expect(Object.keys(sealed).sort()).toEqual([
      'authenticationTag',
      'ciphertext',
      'ciphertextDataIntegrityValue',
      'ciphertextMetadata',
      'initializationVector',
    ]);
    expect([
      length('initializationVector'),
      length('authenticationTag'),
      length('ciphertext'),
      length('ciphertextDataIntegrityValue'),
    ]).toEqual([12, 16, 32, 32]);
    expect(length('ciphertextMetadata')).toBeLessThanOrEqual(20);
    for (const value of Object.values(sealed)) expect(base64(Buffer.from(String(value), 'base64'))).toBe(value);
    expect(await seal({ ciphertextDataIntegrityValueAlgorithm: null })).not.toHaveProperty(
      'ciphertextDataIntegrityValue',
    );
  });
  test('two answers to one question have nothing in common', async () => {
    const [first, second] = [await seal(), await seal()];
    for (const name of Object.keys(first)) expect(second[name]).not.toBe(first[name]);
  });
  test('a decrypted answer has the plaintext alone', async () => {
    expect((await taken('decrypt', decryptBody(await seal()))).body).toEqual({ plaintext });
  });
});

describe('the integrity value', () => {
  const names = ['ciphertextMetadata', 'initializationVector', 'ciphertext', 'authenticationTag'] as const;
  const integrityValue = (additional: Buffer, parts: readonly Buffer[]): string =>
    createHash('sha256')
      .update(Buffer.concat([additional, ...parts]))
      .digest('hex');
  const parts = (sealed: Members): Buffer[] => names.map((name) => Buffer.from(String(sealed[name]), 'base64'));
  const stated = (sealed: Members): string =>
    Buffer.from(String(sealed.ciphertextDataIntegrityValue), 'base64').toString('hex');

  test('is the one of the published example', () => {
    const example = [
      '6b65795f76657273696f6e3d31',
      '1ccae5470f39700254779031',
      '821c642b5b71783367deaf18',
      'bc1c4dda7707d6812447c5955e99b261',
    ];
    expect(
      integrityValue(
        Buffer.from('project=nile,department=marketing'),
        example.map((hex) => Buffer.from(hex, 'hex')),
      ),
    ).toBe('a8703f2260bd8791ec2d15ea0b23e65a0631eedcf2a13a65cc82db3f47cf5ec7');
  });
  test.each([
    ['with additional data', aad],
    ['without', ''],
  ])('is over additional data, metadata, vector, ciphertext and tag in this order, %s', async (_what, additional) => {
    const sealed = await seal({ additionalAuthenticatedData: additional });
    const raw = Buffer.from(additional, 'base64');
    expect(stated(sealed)).toBe(integrityValue(raw, parts(sealed)));
    const [metadata = raw, iv = raw, ciphertext = raw, tag = raw] = parts(sealed);
    for (const other of [
      [iv, metadata, ciphertext, tag],
      [metadata, ciphertext, iv, tag],
      [metadata, iv, tag, ciphertext],
    ])
      expect(stated(sealed)).not.toBe(integrityValue(raw, other));
  });
});

describe('Base64', () => {
  const wrong: readonly (readonly [string, (good: string) => string])[] = [
    ['no padding', (good) => good.replace(/=+$/, '')],
    ['padding too much', (good) => `${good}=`],
    ['padding alone', () => '===='],
    ['padding inside', (good) => `${good.slice(0, 2)}==${good.slice(4)}`],
    ['bits behind the end', (good) => good.replace(/.(=+)$/, 'B$1')],
    ['the alphabet of URLs', (good) => `-_${good.slice(2)}`],
    ['a blank', (good) => `${good.slice(0, 4)} ${good.slice(4)}`],
    ['a newline', (good) => `${good}\n`],
    ['a NUL', (good) => `${good}\u0000`],
    ['a letter beyond ASCII', (good) => `${good.slice(0, 3)}é${good.slice(4)}`],
    ['a single letter', () => 'A'],
    ['a blank alone', () => ' '],
  ];
  // Each value ends with padding, so that each of the above is wrong.
  test.each(wrong)('%s is refused in every member', async (_what, spoil) => {
    const padded = base64('thirty-two bytes minus one, here');
    expect(padded.endsWith('=')).toBe(true);
    for (const name of ['plaintext', 'additionalAuthenticatedData'])
      await refused('encrypt', encryptBody({ [name]: spoil(padded) }), 'ValidationException');
    const sealed = await seal({ plaintext: padded, additionalAuthenticatedData: padded });
    const good = decryptBody(sealed, { additionalAuthenticatedData: padded });
    for (const name of ['ciphertext', 'additionalAuthenticatedData', 'authenticationTag', 'ciphertextMetadata'])
      await refused('decrypt', { ...good, [name]: spoil(String(good[name])) }, 'ValidationException');
    await refused('decrypt', { ...good, initializationVector: spoil(base64(Buffer.alloc(16))) }, 'ValidationException');
  });
  test('escapes belong to the JSON, not to the Base64', async () => {
    const body = JSON.stringify(encryptBody()).replace(
      plaintext,
      plaintext.replace('Y', '\\u0059').replaceAll('=', '\\u003d'),
    );
    const sealed = (await taken('encrypt', body)).body;
    expect((await taken('decrypt', decryptBody(sealed))).body).toEqual({ plaintext });
  });
});

describe('what does not decrypt', () => {
  test.each([0, 1, 8, 11, 13, 14, 15, 17, 32])('a vector of %i bytes is malformed', async (length) => {
    const initializationVector = base64(Buffer.alloc(length));
    await refused('decrypt', decryptBody(await seal(), { initializationVector }), 'ValidationException');
  });
  test.each([0, 4, 8, 12, 13, 14, 15, 17, 32])('a tag of %i bytes is malformed', async (length) => {
    const sealed = await seal();
    // A true beginning: a decoder that takes shorter tags would open it.
    const tag = Buffer.concat([Buffer.from(String(sealed.authenticationTag), 'base64'), Buffer.alloc(16)]).subarray(
      0,
      length,
    );
    await refused('decrypt', decryptBody(sealed, { authenticationTag: base64(tag) }), 'ValidationException');
  });
  test('metadata of more than 20 bytes are malformed', async () => {
    const sealed = await seal();
    const metadata = Buffer.concat([Buffer.from(String(sealed.ciphertextMetadata), 'base64'), Buffer.alloc(1)]);
    await refused('decrypt', decryptBody(sealed, { ciphertextMetadata: base64(metadata) }), 'ValidationException');
  });

  const invalid: readonly (readonly [string, (sealed: Members) => Members])[] = [
    ['a vector of 16 bytes, which we never make', () => ({ initializationVector: base64(Buffer.alloc(16)) })],
    ['no metadata', () => ({ ciphertextMetadata: undefined })],
    ['metadata that are null', () => ({ ciphertextMetadata: null })],
    ['empty metadata', () => ({ ciphertextMetadata: '' })],
    ['metadata of another caller', () => ({ ciphertextMetadata: base64('key_version=1') })],
    ['metadata of another layout', () => ({ ciphertextMetadata: base64(Buffer.alloc(20, 2)) })],
    [
      'a key version that does not exist',
      () => ({ ciphertextMetadata: base64(Buffer.concat([Buffer.from([1, 0, 0, 9]), Buffer.alloc(16)])) }),
    ],
    [
      'key version 0',
      () => ({ ciphertextMetadata: base64(Buffer.concat([Buffer.from([1, 0, 0, 0]), Buffer.alloc(16)])) }),
    ],
    [
      'a ciphertext cut short',
      (sealed) => ({ ciphertext: base64(Buffer.from(String(sealed.ciphertext), 'base64').subarray(1)) }),
    ],
    [
      'a ciphertext with a byte more',
      (sealed) => ({
        ciphertext: base64(Buffer.concat([Buffer.from(String(sealed.ciphertext), 'base64'), Buffer.alloc(1)])),
      }),
    ],
    ['a ciphertext that is made up', () => ({ ciphertext: base64(Buffer.alloc(32)) })],
  ];
  test.each(invalid)('%s is an invalid ciphertext', async (_what, spoil) => {
    const sealed = await seal();
    await refused('decrypt', decryptBody(sealed, spoil(sealed)), 'InvalidCiphertextException');
  });

  test.each(['ciphertext', 'initializationVector', 'authenticationTag', 'ciphertextMetadata'])(
    '%s of another ciphertext is an invalid ciphertext',
    async (name) => {
      const [sealed, other] = [await seal(), await seal()];
      await refused('decrypt', decryptBody(sealed, { [name]: other[name] }), 'InvalidCiphertextException');
    },
  );
  test('a bit changed in the first or the last byte of any member is an invalid ciphertext', async () => {
    const sealed = await seal();
    for (const name of [
      'ciphertext',
      'initializationVector',
      'authenticationTag',
      'ciphertextMetadata',
      'additionalAuthenticatedData',
    ])
      for (const end of [0, -1]) {
        const good = decryptBody(sealed);
        const bytes = Buffer.from(String(good[name]), 'base64');
        const at = end === 0 ? 0 : bytes.length - 1;
        bytes[at] = (bytes[at] ?? 0) ^ 0x80;
        await refused('decrypt', { ...good, [name]: base64(bytes) }, 'InvalidCiphertextException');
      }
  });
  test('an integrity value that is sent along is not a concern of Decrypt', async () => {
    await taken(
      'decrypt',
      decryptBody(await seal(), { ciphertextDataIntegrityValue: 'x', ciphertextDataIntegrityValueAlgorithm: 'MD5' }),
    );
  });
});

describe('paths', () => {
  const at = (path: string, options?: CallOptions): Promise<CallerAnswer> =>
    caller.send({ ...place.configuration, XksProxyUriPath: '' }, path, { requestMetadata: wholeMetadata() }, options);
  const base = (): string => place.configuration.XksProxyUriPath;

  test('the one that the endpoint names has at most 128 characters', () => {
    expect(base()).toMatch(/^[A-Za-z0-9/_-]{1,128}$/);
    expect(base()).toMatch(/^\/xks\/[A-Za-z0-9_-]{1,64}\/kms\/xks\/v1$/);
  });
  test('of the longest prefix is still short enough, and answers', async () => {
    const { vaultId, keyId } = place.endpoint;
    const prefix = `P-_${'x'.repeat(61)}`;
    const endpoint = await site.api.call<{ id: string; uriPath: string }>('POST', '/api/endpoints', {
      name: 'long',
      vaultId,
      keyId,
      prefix,
    });
    expect(endpoint.uriPath).toBe(`/xks/${prefix}/kms/xks/v1`);
    expect(endpoint.uriPath.length).toBeLessThanOrEqual(128);
    expect(await at(`${endpoint.uriPath}/health`, { unsigned: true })).toMatchObject({ status: 200 });
    expect(await at(`${endpoint.uriPath.replace('P-', 'p-')}/health`, { unsigned: true })).toMatchObject({
      errorName: 'InvalidUriPathException',
    });
    const body = { name: 'longer', vaultId, keyId, prefix: `${prefix}x` };
    expect((await site.api.send('POST', '/api/endpoints', body)).status).toBe(400);
  });

  test.each<[string, (good: string) => string]>([
    ['an unknown operation', (good) => `${good}/keys/k/sign`],
    ['no operation', (good) => `${good}/keys/k`],
    ['the path itself', (good) => good],
    ['a slash at the end', (good) => `${good}/health/`],
    ['more behind an operation', (good) => `${good}/health/x`],
    ['health of a key', (good) => `${good}/keys/k/health`],
    ['metadata of no key', (good) => `${good}/metadata`],
    ['an operation in capitals', (good) => `${good}/HEALTH`],
    ['another prefix', (good) => `${good.replace(/\/xks\/[^/]*/, '/xks/nobody')}/health`],
    ['no prefix', (good) => `${good.replace(/\/xks\/[^/]*/, '/xks')}/health`],
    ['another version', (good) => `${good.replace('/v1', '/v2')}/health`],
    ['a key id of 129 characters', (good) => `${good}/keys/${'k'.repeat(129)}/metadata`],
    ['a key id with a letter that none has', (good) => `${good}/keys/k~1/metadata`],
    ['a key id that is a dot', (good) => `${good}/keys/./metadata`],
    ['a key id that is two dots', (good) => `${good}/keys/../metadata`],
    ['a query', (good) => `${good}/health?a=b`],
    ['an empty query', (good) => `${good}/health?`],
  ])('%s is not a path', async (_what, spoil) => {
    expect(await at(spoil(base()))).toMatchObject({ status: 404, errorName: 'InvalidUriPathException' });
  });

  test.each([
    ['an unknown one', () => 'nobody'],
    ['one in another case', () => place.endpoint.keyId.toUpperCase()],
    ['one with a dot before it', () => `.${place.endpoint.keyId}`],
    ['one of 128 characters', () => 'k'.repeat(128)],
  ])('a key id: %s is not found, by any operation', async (_what, id) => {
    const sealed = await seal();
    for (const [operation, body] of [
      ['metadata', await goodBody('metadata')],
      ['encrypt', encryptBody()],
      ['decrypt', decryptBody(sealed)],
    ] as const)
      expect(await caller.send(place.configuration, `/keys/${id()}/${operation}`, body)).toMatchObject({
        status: 404,
        errorName: 'KeyNotFoundException',
      });
  });

  test.each(['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])(
    '%s is not allowed on any of them, and Allow says what is',
    async (method) => {
      for (const operation of operations) {
        const answer = await send(operation, '', { method, unsigned: true });
        expect(answer).toMatchObject({ status: 405, headers: { allow: 'POST' } });
      }
    },
  );
});

describe('signatures', () => {
  const signedAt = async (options: CallOptions): Promise<readonly CallerAnswer[]> =>
    Promise.all(operations.map(async (operation) => send(operation, await goodBody(operation), options)));
  const secondsAway = (seconds: number): CallOptions => ({ date: new Date(Date.now() + seconds * 1000) });
  const refusedAll = (answers: readonly CallerAnswer[]): void => {
    for (const answer of answers) expect(answer.errorName).toBe('AuthenticationFailedException');
  };

  // Some seconds are left for the request to arrive; the edge itself is in unit/xks, with a clock
  // that stands.
  test.each([-290, -60, 60, 290])('of a clock %i seconds off are taken', async (seconds) => {
    for (const { status } of await signedAt(secondsAway(seconds))) expect(status).toBe(200);
  });
  test.each([-86_400, -3600, -310, 310, 3600, 86_400])('of a clock %i seconds off are refused', async (seconds) => {
    refusedAll(await signedAt(secondsAway(seconds)));
  });
  test.each(['us-east-1', 'eu-central-1', 'cn-north-1', 'us-gov-west-1', 'x'])(
    'of the region %s are taken',
    async (region) => {
      for (const { status } of await signedAt({ region })) expect(status).toBe(200);
    },
  );
  test('that are missing are refused', async () => {
    const [, ...ofKeys] = await signedAt({ unsigned: true });
    refusedAll(ofKeys);
  });
  test('of an unknown access key id and of a wrong secret are refused alike', async () => {
    const unknown = await signedAt({ accessKeyId: 'AKIDNOBODYNOBODYNOBODY' });
    const wrong = await signedAt({ secretAccessKey: 'x'.repeat(64) });
    const old = await signedAt(secondsAway(-3600));
    refusedAll([...unknown, ...wrong, ...old]);
    expect(new Set([...unknown, ...wrong, ...old].map(({ text }) => text)).size).toBe(1);
  });
  test('are of the bytes that were sent, whatever these are', async () => {
    for (const body of ['', '{', Buffer.from([0xff, 0xfe, 0x00]), '{"a":"\u00e9"}', '{"a":"é"}'])
      expect((await send('encrypt', body)).errorName).toBe('ValidationException');
  });
});

describe('the order of the checks', () => {
  const wrongBody = '{';
  const unknown = (options: CallOptions, body: XksBody = wrongBody): Promise<CallerAnswer> =>
    caller.send(place.configuration, '/keys/nobody/decrypt', body, options);
  test('path before signature', async () => {
    expect(await caller.send(place.configuration, '/nothing', wrongBody, { unsigned: true })).toMatchObject({
      status: 404,
    });
  });
  test('size before signature', async () => {
    expect(await unknown({ unsigned: true }, 'x'.repeat(70_000))).toMatchObject({ status: 413 });
  });
  test('signature before body', async () => {
    expect(await unknown({ unsigned: true })).toMatchObject({ status: 401 });
  });
  test('body before key', async () => {
    expect(await unknown({})).toMatchObject({ errorName: 'ValidationException' });
  });
  test('key before ciphertext', async () => {
    const foreign = decryptBody(await seal(), { ciphertextMetadata: base64('key_version=1') });
    expect(await unknown({}, foreign)).toMatchObject({ errorName: 'KeyNotFoundException' });
  });
});
