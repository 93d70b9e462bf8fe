// The client of the API (server/clients/typescript) against a scripted service: requests,
// repetitions, and failures.
import type { LookupFunction } from 'node:net';
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { lookupWithin } from '../../../server/base/name-lookup.ts';
import {
  type Client,
  ConnectionError,
  openClient,
  operations,
  ProblemError,
  type Settings,
} from '../../../server/clients/typescript/index.ts';
import { openScriptedService, type ScriptedService } from '../../support/scripted-service.ts';

let service: ScriptedService;
const clients: Client[] = [];
const secret = 'dket_very-secret-token';
const open = (more: Partial<Settings> = {}): Client => {
  const client = openClient({ url: service.url, ca: service.ca, token: () => secret, ...more });
  clients.push(client);
  return client;
};
const problem = (status: number, code: string, more: object = {}, headers: Readonly<Record<string, string>> = {}) => ({
  status,
  headers,
  body: {
    type: `urn:dke:problem:${code}`,
    title: code,
    status,
    detail: `it is ${code}`,
    code,
    requestId: 'r-1',
    ...more,
  },
});
const page = (items: readonly string[], next: string | null) => ({
  body: { items: items.map((id) => ({ id })), next },
});

beforeAll(async () => {
  service = await openScriptedService();
});
afterAll(async () => {
  for (const client of clients) client.close();
  await service.close();
});

describe('what is sent and answered', () => {
  test('path, query, body, tenant and token', async () => {
    service.script({ headers: { etag: '"7"', 'x-request-id': 'r-7' }, body: { id: 'a b', name: 'orders' } });
    const dke = open({ tenant: 'acme' });
    const { body, etag, requestId, status } = await dke.keys.change(
      { path: { id: 'a b/c' }, body: { name: 'orders', tags: [] } },
      { ifMatch: '"6"' },
    );
    expect([body.name, etag, requestId, status]).toEqual(['orders', '"7"', 'r-7', 200]);
    const [request] = service.requests;
    expect(request).toMatchObject({ method: 'PUT', path: '/api/keys/a%20b%2Fc?tenant=acme' });
    expect(request?.headers).toMatchObject({
      authorization: `Bearer ${secret}`,
      'if-match': '"6"',
      'content-type': 'application/json',
    });
    expect(JSON.parse(request?.body ?? '')).toEqual({ name: 'orders', tags: [] });
  });

  test('a dry run, in the tenant that the call names, and no tenant where the platform is meant', async () => {
    service.script({ body: {} });
    const dke = open({ tenant: 'acme' });
    await dke.keys.delete({ path: { id: 'k' }, query: { dryRun: true, tenant: 'other' } });
    await dke.nodes.list();
    expect(service.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'DELETE /api/keys/k?tenant=other&dryRun=true',
      'GET /api/nodes',
    ]);
  });

  test('nodes that have not confirmed a change are named', async () => {
    service.script({
      body: {},
      headers: { 'x-dke-pending-nodes': 'one%2Ctwo,three', 'x-dke-pending-until': '2026-03-01T09:30:00.000Z' },
    });
    const reported: unknown[] = [];
    const { pending } = await open({ onPending: (nodes) => reported.push(nodes) }).keys.disable({ path: { id: 'k' } });
    expect(pending).toEqual({ names: ['one,two', 'three'], until: '2026-03-01T09:30:00.000Z' });
    expect(reported).toEqual([pending]);
  });

  test('a parameter of the path that is missing is an error before anything is sent', async () => {
    service.script({ body: {} });
    await expect(open().calls.call(operations.keys.get, {} as { path: { id: string } })).rejects.toThrow(
      'id is missing',
    );
    expect(service.requests).toEqual([]);
  });

  test.each(['..', '.', ''])('an id that would change the address is sent nowhere: %o', async (id) => {
    service.script({ body: {} });
    await expect(open().calls.call(operations.keys.get, { path: { id } })).rejects.toThrow('is no id');
    expect(service.requests).toEqual([]);
  });

  test('all headers of an answer or of a refusal are there, and made for those who ask', async () => {
    let made = 0;
    const Own = Headers;
    vi.stubGlobal(
      'Headers',
      class extends Own {
        constructor() {
          super();
          made += 1;
        }
      },
    );
    try {
      service.script(
        { body: {}, headers: { etag: '"7"', 'x-more': 'one' } },
        problem(404, 'not-found', {}, { 'x-more': 'two' }),
      );
      const { keys } = open();
      const answer = await keys.get({ path: { id: 'k' } });
      expect(answer.etag).toBe('"7"');
      const refused: unknown = await keys.get({ path: { id: 'k' } }).catch((error: unknown) => error);
      expect(made).toBe(0);
      expect(answer.headers.get('x-more')).toBe('one');
      expect((refused as ProblemError).headers.get('X-More')).toBe('two');
      expect(made).toBe(2);
    } finally {
      vi.unstubAllGlobals();
    }
  });

  test('what streams is read while it comes', async () => {
    service.script({ body: 'one\ntwo\n' });
    const { body } = await open().keys.export({ query: { format: 'csv' } });
    let text = '';
    for await (const part of body) text += Buffer.from(part).toString();
    expect(text).toBe('one\ntwo\n');
  });
});

describe('pages', () => {
  test('are read one by one, with the query of the first', async () => {
    service.script(page(['a', 'b'], 'c1'), page([], 'c2'), page(['c'], null));
    const found: string[] = [];
    for await (const key of open().keys.list.items({ query: { limit: 2 } })) found.push(key.id);
    expect(found).toEqual(['a', 'b', 'c']);
    expect(service.requests.map(({ path }) => path)).toEqual([
      '/api/keys?limit=2',
      '/api/keys?limit=2&after=c1',
      '/api/keys?limit=2&after=c2',
    ]);
  });

  test('a list that is left early asks for no further page', async () => {
    service.script(page(['a'], 'c1'), page(['b'], null));
    for await (const { body } of open().vaults.list.pages()) {
      expect(body.items).toHaveLength(1);
      break;
    }
    expect(service.requests).toHaveLength(1);
  });
});

describe('what is repeated', () => {
  const keysOf = () => service.requests.map(({ headers }) => headers['idempotency-key']);

  test('creating, under one key, after a lost and after a cut answer', async () => {
    service.script('lost', 'cut', {
      status: 201,
      body: { id: 'v' },
      headers: { 'idempotent-replayed': 'true', location: '/api/vaults/v' },
    });
    const { body, replayed, location } = await open().vaults.create({ body: { name: 'orders' } });
    expect([body.id, replayed, location]).toEqual(['v', true, '/api/vaults/v']);
    expect(new Set(keysOf()).size).toBe(1);
    expect(keysOf()).toHaveLength(3);
    expect(keysOf()[0]).toMatch(/^[0-9a-f-]{36}$/);
  });

  test('two calls have two keys, and a key that is given is used', async () => {
    service.script({ status: 201, body: { id: 'v' } });
    const dke = open();
    await dke.vaults.create({ body: { name: 'a' } });
    await dke.vaults.create({ body: { name: 'a' } });
    await dke.vaults.create({ body: { name: 'a' } }, { idempotencyKey: 'mine' });
    expect(new Set(keysOf()).size).toBe(3);
    expect(keysOf()[2]).toBe('mine');
  });

  test('reading, until the retries are used up', async () => {
    service.script('lost');
    await expect(open({ retries: 2 }).keys.get({ path: { id: 'k' } })).rejects.toMatchObject({
      code: 'ECONNRESET',
      sent: true,
    });
    expect(service.requests).toHaveLength(3);
  });

  test.each([
    ['an action without a key', (dke: Client) => dke.keys.rotate({ path: { id: 'k' } })],
    [
      'a change with If-Match, whose repeat would be refused',
      (dke: Client) => dke.keys.change({ path: { id: 'k' }, body: { name: 'a', tags: [] } }, { ifMatch: '"1"' }),
    ],
  ])('not %s, after a lost connection', async (_, call) => {
    service.script('lost', { body: {} });
    await expect(call(open())).rejects.toMatchObject({ name: 'ConnectionError', sent: true });
    expect(service.requests).toHaveLength(1);
  });

  test('everything that the service did not take, when it says when to come back', async () => {
    service.script(
      problem(429, 'rate-limited', {}, { 'retry-after': '0' }),
      problem(503, 'unavailable', {}, { 'retry-after': '0' }),
      { body: {} },
    );
    await open().keys.rotate({ path: { id: 'k' } });
    expect(service.requests).toHaveLength(3);
  });

  test('not a refusal without Retry-After, and none that lasts longer than the time limit', async () => {
    service.script(problem(503, 'unavailable'));
    await expect(open().keys.get({ path: { id: 'k' } })).rejects.toMatchObject({ code: 'unavailable' });
    service.script(problem(429, 'rate-limited', {}, { 'retry-after': '3600' }));
    await expect(open().keys.get({ path: { id: 'k' } })).rejects.toMatchObject({ code: 'rate-limited' });
    expect(service.requests).toHaveLength(1);
  });

  test('what may have been done, only under its key', async () => {
    const unconfirmed = problem(503, 'unavailable', { reason: 'unconfirmed' }, { 'retry-after': '0' });
    service.script(unconfirmed, { body: {} });
    await expect(open().keys.rotate({ path: { id: 'k' } })).rejects.toMatchObject({ reason: 'unconfirmed' });
    expect(service.requests).toHaveLength(1);
    service.script(unconfirmed, { status: 201, body: { id: 'v' } });
    await open().vaults.create({ body: { name: 'a' } });
    expect(service.requests).toHaveLength(2);
  });

  test('a connection that could not be made, for every operation', async () => {
    const other = await openScriptedService();
    await other.close();
    let lookups = 0;
    const counting: LookupFunction = (host, options, done) => {
      lookups += 1;
      lookupWithin(10_000)(host, options, done);
    };
    const dke = open({ url: `https://localhost:${other.port}`, agent: false, lookup: counting, retries: 2 });
    await expect(dke.keys.rotate({ path: { id: 'k' } })).rejects.toMatchObject({ code: 'ECONNREFUSED', sent: false });
    expect(lookups).toBe(3);
  });

  test('a certificate that is not trusted is not asked again', async () => {
    service.script({ body: {} });
    await expect(open({ ca: undefined }).keys.get({ path: { id: 'k' } })).rejects.toMatchObject({
      name: 'ConnectionError',
      code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    });
    expect(service.requests).toEqual([]);
  });
});

describe('a change of what was read', () => {
  test('reads again when another change came first', async () => {
    const read = (version: number) => ({ headers: { etag: `"${version}"` }, body: { name: `v${version}`, tags: [] } });
    service.script(read(1), problem(412, 'precondition-failed'), read(2), { body: { name: 'v2!', tags: [] } });
    const { body } = await open().calls.change(
      operations.keys.get,
      operations.keys.change,
      { id: 'k' },
      ({ name }) => ({
        name: `${name}!`,
        tags: [],
      }),
    );
    expect(body.name).toBe('v2!');
    expect(service.requests.map(({ headers }) => headers['if-match'])).toEqual([undefined, '"1"', undefined, '"2"']);
  });
});

describe('how a call fails', () => {
  test('with the problem of the service', async () => {
    const errors = [{ path: 'name', message: 'must not be empty' }];
    service.script(problem(400, 'validation', { errors, hint: 'give a name' }, { 'x-request-id': 'r-1' }));
    const error = await open()
      .vaults.create({ body: { name: '' } })
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ProblemError);
    expect(error).toMatchObject({
      status: 400,
      code: 'validation',
      detail: 'it is validation',
      requestId: 'r-1',
      hint: 'give a name',
      fields: errors,
    });
  });

  test('with the approval request', async () => {
    service.script({ status: 202, body: { id: 'a-1', state: 'pending', missing: 1 } });
    await expect(open().keys.delete({ path: { id: 'k' } })).rejects.toMatchObject({
      name: 'ApprovalRequired',
      approval: { id: 'a-1', missing: 1 },
    });
  });

  test.each([
    ['a page of a proxy', { status: 502, body: '<html>' }],
    ['JSON of another service', { status: 404, body: { error: 'no' } }],
    ['a redirect, which is not followed', { status: 302, headers: { location: 'https://example.invalid/' } }],
  ])('with %s', async (_, answer) => {
    service.script(answer);
    await expect(open().keys.get({ path: { id: 'k' } })).rejects.toMatchObject({
      name: 'UnexpectedAnswer',
      status: answer.status,
    });
    expect(service.requests).toHaveLength(1);
  });

  test('with the error of a file that cannot be read to its end', async () => {
    const failure = new Error('the disk failed');
    async function* read() {
      yield Buffer.from('a part');
      throw failure;
    }
    service.script({ status: 201, body: {} });
    await expect(open().snapshots.import({ body: { from: read(), size: 100 } })).rejects.toBe(failure);
  });

  test('when no answer comes within the time limit', async () => {
    service.script('silent');
    const error = await open({ timeoutMs: 50 })
      .keys.get({ path: { id: 'k' } })
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error).toMatchObject({ code: 'ETIMEDOUT' });
  });

  test('with the reason of the signal: before, during and between requests', async () => {
    const reason = new Error('no longer wanted');
    const controller = new AbortController();
    service.script('silent');
    await expect(open().keys.get({ path: { id: 'k' } }, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(service.requests).toEqual([]);
    service.script(() => {
      controller.abort(reason);
      return problem(503, 'unavailable', {}, { 'retry-after': '20' });
    });
    await expect(open().keys.get({ path: { id: 'k' } }, { signal: controller.signal })).rejects.toBe(reason);
    const between = new AbortController();
    service.script(problem(503, 'unavailable', {}, { 'retry-after': '20' }));
    const call = open().keys.get({ path: { id: 'k' } }, { signal: between.signal });
    await expect.poll(() => service.requests.length).toBe(1);
    between.abort(reason);
    await expect(call).rejects.toBe(reason);
  });

  test('without the token in the error', async () => {
    const errors: unknown[] = [];
    for (const answer of [
      'lost',
      { status: 502, body: '<html>' },
      problem(401, 'unauthenticated'),
      { status: 202, body: {} },
    ] as const) {
      service.script(answer);
      errors.push(
        await open({ retries: 0 })
          .keys.get({ path: { id: 'k' } })
          .catch((reason: unknown) => reason),
      );
    }
    const invalid = open({ token: () => Buffer.from(`${secret} \n ${secret}`) });
    errors.push(await invalid.keys.get({ path: { id: 'k' } }).catch((reason: unknown) => reason));
    expect(errors.every((error) => error instanceof Error)).toBe(true);
    expect(inspect(errors, { depth: null, showHidden: true })).not.toContain(secret);
  });
});

test('a token may be bytes, with a line end', async () => {
  service.script({ body: {} });
  await open({ token: Buffer.from(`${secret}\n`) }).keys.get({ path: { id: 'k' } });
  expect(service.requests[0]?.headers.authorization).toBe(`Bearer ${secret}`);
});
