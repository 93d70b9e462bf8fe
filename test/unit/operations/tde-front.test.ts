// The TDE front with requests that no agent sends: its heads, paths and headers under random input,
// over the real service. The answer is always a problem with a known code, and neither it nor the
// log contains a secret.
import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAll, describe, expect, test } from 'vitest';
import { serviceErrorCodes } from '../../../server/base/service-error.ts';
import { envelopeType, maxEnvelope, packEnvelope, type TdeRoutes, tdeRoutes } from '../../../server/contract/tde.ts';
import type { TdeCaller } from '../../../server/operations/index.ts';
import {
  administrator,
  callTde,
  instance,
  masterKey,
  registerCaller,
  sendTde,
  toLabel,
} from '../../support/open-service.ts';
import fc from '../../support/property.ts';
import { sharedService } from '../../support/shared.ts';

const opened = sharedService();
let caller: TdeCaller;
let accessGuid: string;
let handle: number;
beforeAll(async () => {
  ({ caller, accessGuid } = await registerCaller(opened, 'front'));
  handle = (
    await opened.operations.tde.generateKey(caller, { ...masterKey('k'), usages: ['wrap', 'unwrap', 'derive'] })
  ).handle;
});

const routes = Object.keys(tdeRoutes) as (keyof TdeRoutes)[];
const instanceHeader = Buffer.from(JSON.stringify(instance)).toString('base64url');
const headers = (more: Record<string, string> = {}) => ({
  authorization: `Bearer ${accessGuid}`,
  'content-type': envelopeType,
  'x-dke-instance': instanceHeader,
  ...more,
});
const codeOf = (head: unknown): string => (head as { readonly code: string }).code;
const isKnown = (status: number, head: unknown): void => {
  if (status === 200) return;
  expect(status).toBeGreaterThanOrEqual(400);
  expect(status).not.toBe(500);
  expect(serviceErrorCodes).toContain(codeOf(head));
};

const canary = Buffer.from('canary-0123456789abcdef-canary!!');
const inText = (text: string): boolean =>
  ['utf8', 'hex', 'base64', 'base64url'].some((form) => text.includes(canary.toString(form as 'hex').slice(0, 40)));

const base64 = fc.oneof(
  fc.uint8Array({ maxLength: 80 }).map((bytes) => Buffer.from(bytes).toString('base64')),
  fc.string({ maxLength: 40 }),
);
const word = fc.constantFrom(
  ...['aes', 'rsa', 'ec', 'generic', 'secret-key', 'private-key', 'public-key', 'data', 'token', 'session', 'aes-cbc'],
  ...[
    'key-wrap',
    'cipher',
    'oaep',
    'ecdh',
    'hkdf',
    'aes-gcm',
    'aes-ecb',
    'hmac',
    'sha256',
    'both',
    'extract',
    'expand',
    'wrap',
  ],
);
/** Words of the contract in places of the contract, with anything at all among them. */
const value = fc.oneof(
  { weight: 3, arbitrary: word },
  { weight: 3, arbitrary: base64 },
  { weight: 2, arbitrary: fc.integer() },
  fc.boolean(),
  fc.constant(null),
  fc.double(),
  fc.constantFrom(-1, 0, 1, 2 ** 31, 2 ** 53, 65_536),
);
const member = fc.constantFrom(
  ...[
    'class',
    'label',
    'algorithm',
    'bits',
    'usages',
    'sensitive',
    'extractable',
    'attributes',
    'padding',
    'iv',
    'way',
  ],
  ...['mechanism', 'into', 'on', 'object', 'recipient', 'key', 'from', 'handle', 'usage', 'digest', 'salt', 'info'],
  ...['steps', 'point', 'kdf', 'shared', 'padded', 'cipher', 'oaep', 'mgfDigest', 'aad', 'tagLength', '__proto__'],
);
const { tree } = fc.letrec<{ tree: unknown; leaf: unknown }>((tie) => ({
  leaf: value,
  tree: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    tie('leaf'),
    fc.dictionary(member, tie('tree'), { maxKeys: 8 }),
    fc.array(tie('tree'), { maxLength: 4 }),
  ),
}));

const object = (extra: object = {}) => ({ ...masterKey('fuzzed'), ...extra });
/** One good head of each route that has more than one member. */
const goodHeads: Partial<Record<keyof TdeRoutes, object>> = {
  generateKey: object(),
  generateKeyPair: { privateKey: object({ class: 'private-key', algorithm: 'ed25519' }), publicKey: null },
  createObject: object({ class: 'data', algorithm: null, bits: null, usages: [] }),
  cipherPart: {
    ...{ use: 'encrypt', state: '', last: false },
    cipher: { algorithm: 'aes-gcm', iv: Buffer.alloc(12).toString('base64'), aad: '', tagLength: 16 },
  },
  macPart: { use: 'sign', mac: { algorithm: 'hmac', digest: 'sha256' }, state: '', last: false },
  wrap: {
    mechanism: { way: 'key-wrap', padded: true },
    key: { from: 'session', class: 'secret-key', sensitive: false },
  },
  unwrap: { mechanism: { way: 'key-wrap', padded: true }, into: { on: 'token', object: object({ bits: null }) } },
  derive: {
    mechanism: { way: 'hkdf', digest: 'sha256', steps: 'both', salt: '', info: '' },
    into: {
      ...{ on: 'session', recipient: Buffer.alloc(32, 9).toString('base64'), class: 'secret-key', algorithm: 'aes' },
      ...{ bits: 256, sensitive: true, extractable: false },
    },
  },
};
type Path = readonly string[];
const pathsOf = (head: unknown, path: Path = []): readonly Path[] =>
  typeof head === 'object' && head !== null
    ? [path, ...Object.entries(head).flatMap(([name, inner]) => pathsOf(inner, [...path, name]))]
    : [path];
const replaced = (head: unknown, [name, ...rest]: Path, by: unknown): unknown =>
  name === undefined
    ? by
    : { ...(head as object), [name]: replaced((head as Record<string, unknown>)[name], rest, by) };

describe('heads', () => {
  test('of any content are answered, and none of it is revealed', async () => {
    const property = fc.asyncProperty(fc.constantFrom(...routes), tree, async (route, head) => {
      const body = fc.stringify(head).length > 50_000 ? {} : (head as object);
      const answer = await callTde(opened.service, accessGuid, route, body, { handle: 2 ** 30, raw: canary });
      isKnown(answer.status, answer.head);
      expect(inText(JSON.stringify(answer.head))).toBe(false);
    });
    await fc.assert(property, { numRuns: 800 });
  });

  test('with one member replaced or added are answered, whatever the member is', async () => {
    const cases = fc
      .constantFrom(...(Object.keys(goodHeads) as (keyof typeof goodHeads)[]))
      .chain((route) =>
        fc.record({ route: fc.constant(route), path: fc.constantFrom(...pathsOf(goodHeads[route])), by: value }),
      );
    const property = fc.asyncProperty(cases, async ({ route, path, by }) => {
      const head = replaced(goodHeads[route], path, by) as object;
      const answer = await callTde(opened.service, accessGuid, route, head, { handle, raw: canary });
      isKnown(answer.status, answer.head);
      expect(inText(JSON.stringify(answer.head))).toBe(false);
      const more = replaced(goodHeads[route], [...path.slice(0, -1), 'unknown'], by) as object;
      if (path.length > 0)
        expect(codeOf((await callTde(opened.service, accessGuid, route, more, { handle })).head)).toBe('validation');
    });
    await fc.assert(property, { numRuns: 500 });
  });

  test('that are not an envelope are refused', async () => {
    const path = `/tde/v1/${accessGuid}/db/objects/find`;
    const bodies = fc.oneof(
      fc.uint8Array({ maxLength: 64 }),
      fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.concat([Buffer.of(0, 0, 0, bytes.length), bytes])),
      fc.constant(Buffer.alloc(4, 0xff)),
      fc.constant(packEnvelope([])),
    );
    const property = fc.asyncProperty(bodies, async (body) => {
      const { status, head } = await sendTde(opened.service, path, headers(), body);
      expect([status, codeOf(head)]).toEqual([400, 'validation']);
    });
    await fc.assert(property, { numRuns: 300 });
    const deep = Buffer.from(`${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`);
    const nested = Buffer.concat([Buffer.alloc(4), deep]);
    nested.writeUInt32BE(deep.length);
    expect((await sendTde(opened.service, path, headers(), nested)).status).toBe(400);
    expect((await sendTde(opened.service, path, headers(), Buffer.alloc((1 << 20) + 1))).status).toBe(413);
  });
});

describe('the way to a route', () => {
  test('that is none does not exist, and no credential is checked on it', async () => {
    const at = (path: string) => sendTde(opened.service, path, headers(), packEnvelope({}));
    const base = `/tde/v1/${accessGuid}/db`;
    const nowhere = ['', '/', '/info/', '/INFO', '/info?x', '//info', '/objects/1', '/objects/1/none'];
    for (const path of [...nowhere, '/objects/:handle/get/x', '/objects//get', '/objects/1/2/get', '/%69nfo'])
      expect([path, codeOf((await at(base + path)).head)]).toEqual([path, 'not-found']);
    for (const name of ['0', '01', '-1', '1e3', '2147483648', '99999999999', ':handle', 'x', '%31', '１'])
      expect([name, codeOf((await at(encodeURI(`${base}/objects/${name}/get`))).head)]).toEqual([
        name,
        'key-not-found',
      ]);
  });

  test('requires the bearer token of the address, an app_id, and the caller', async () => {
    const at = (path: string, more: Record<string, string>) =>
      sendTde(opened.service, path, headers(more), packEnvelope({}));
    const good = `/tde/v1/${accessGuid}/db/info`;
    const other = (await registerCaller(opened, 'other')).accessGuid;
    expect((await at(good, {})).status).toBe(200);
    for (const [path, more] of [
      [good, { authorization: '' }],
      [good, { authorization: accessGuid }],
      [good, { authorization: `Basic ${accessGuid}` }],
      [good, { authorization: `Bearer ${other}` }],
      [`/tde/v1/${other}/db/info`, {}],
      [`/tde/v1/${accessGuid}/${'a'.repeat(65)}/info`, {}],
      [`/tde/v1/${accessGuid}/.x/info`, {}],
    ] as const)
      expect(codeOf((await at(path, more)).head)).toBe('unauthenticated');
    for (const text of ['', 'x', '{}', 'bm90IGpzb24', 'A'.repeat(5000)])
      expect(codeOf((await at(good, { 'x-dke-instance': text })).head)).toBe('validation');
    expect(codeOf((await at(good, { 'content-type': 'application/json' })).head)).toBe('validation');
  });

  test('keeps to the id of the call that was given, if it is one', async () => {
    const at = (id: string) =>
      sendTde(opened.service, `/tde/v1/${accessGuid}/db/info`, headers({ 'x-request-id': id }), packEnvelope({}));
    expect((await at('call-1')).requestId).toBe('call-1');
    expect((await at('a b')).requestId).toMatch(/^[0-9a-f-]{36}$/);
    expect((await at('x'.repeat(129))).requestId).toMatch(/^[0-9a-f-]{36}$/);
  });
});

test('an application that is disabled between the head and the body of a request is refused', async () => {
  const { caller: slow, accessGuid: own } = await registerCaller(opened, 'slow');
  const server = createServer((incoming, outgoing) => opened.service.handle(incoming, outgoing));
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const body = Buffer.from(packEnvelope({}));
  const head = once(server, 'request');
  try {
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      const sent = request(
        {
          host: '127.0.0.1',
          port: (server.address() as AddressInfo).port,
          method: 'POST',
          path: `/tde/v1/${own}/db/info`,
          headers: headers({ authorization: `Bearer ${own}`, 'content-length': String(body.length) }),
        },
        resolve,
      );
      sent.once('error', reject);
      sent.write(body.subarray(0, 1));
      head
        .then(() => opened.operations.applications.disable(administrator, slow.application.id))
        .then(() => sent.end(body.subarray(1)), reject);
    });
    const response = await answered;
    expect(JSON.parse(Buffer.concat(await response.toArray()).toString('utf8'))).toMatchObject({
      code: expect.stringMatching(/^(unauthenticated|forbidden|disabled|application-disabled)$/),
    });
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test('no secret that came in is in the log or in the audit log, and nothing failed inside', async () => {
  const { items } = await opened.operations.audit.list(administrator, { limit: 1000 });
  expect(inText(JSON.stringify(items))).toBe(false);
  expect(inText(JSON.stringify(opened.complaints))).toBe(false);
  expect(opened.complaints.filter(({ message }) => message === 'a TDE request failed')).toEqual([]);
});

// Reading such a head takes long, with any result.
test.each([
  ['long', (head: string) => head.replace('"attributes":""', `"attributes":"${'A'.repeat(600_000)}"`)],
  ['an array with many members', (head: string) => head.replace('"usages":[', `"usages":[${'"x",'.repeat(1_000)}`)],
  ['an object with many members', (head: string) => head.replace('{', `{${'"x":1,'.repeat(1_000)}`)],
  ['deep', (head: string) => head.replace('"usages":[', `"usages":${'['.repeat(1_000)}`)],
])('a head that is %s is refused before it is read', async (_, spoil) => {
  const json = Buffer.from(spoil(JSON.stringify({ ...masterKey('head'), attributes: '' })));
  const body = Buffer.alloc(4 + json.length);
  body.writeUInt32BE(json.length);
  json.copy(body, 4);
  const { status, head } = await sendTde(opened.service, `/tde/v1/${accessGuid}/db/keys`, headers(), body);
  expect(status).toBe(400);
  expect((head as { readonly title: string }).title).toBe('the head is too long');
});

test('the longest heads that an agent sends are read', async () => {
  const attributes = Buffer.alloc(64 * 1024, 1).toString('base64');
  const half = { ...masterKey('long'), algorithm: 'ec', bits: 256, attributes } as const;
  const { status } = await callTde(opened.service, accessGuid, 'generateKeyPair', {
    privateKey: { ...half, class: 'private-key', usages: ['sign'] },
    publicKey: { ...half, class: 'public-key', usages: ['verify'], sensitive: false, extractable: true },
  });
  expect(status).toBe(200);
});

test('a page of large objects is as short as an answer may be, and all of them are found', async () => {
  const attributes = Buffer.alloc(60 * 1024, 1).toString('base64');
  const { accessGuid: own, caller: owner } = await registerCaller(opened, 'large objects');
  const data = { class: 'data', algorithm: null, bits: null, usages: [], sensitive: false, extractable: true } as const;
  const made: number[] = [];
  for (let i = 0; i < 40; i++) {
    const large = { ...masterKey(`large ${i % 2}`), ...data, attributes };
    made.push((await opened.operations.tde.createObject(owner, large, Buffer.alloc(10))).handle);
  }
  const search = async (query: object): Promise<number[]> => {
    const found: number[] = [];
    for (let more = true; more; ) {
      const { head } = await callTde(opened.service, own, 'findObjects', {
        ...query,
        after: found.at(-1) ?? 0,
        limit: 256,
      });
      const page = head as TdeRoutes['findObjects']['answer'];
      expect(JSON.stringify(page).length).toBeLessThan(maxEnvelope);
      found.push(...page.objects.map((object) => object.handle));
      more = page.more;
    }
    return found;
  };
  expect(await search({})).toEqual(made);
  expect(await search({ label: toLabel('large 1') })).toEqual(made.filter((_, i) => i % 2 === 1));
});
