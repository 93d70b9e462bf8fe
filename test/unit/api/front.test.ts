// The console API's front alone: authentication, refusals, and the headers of every answer.
import { describe, expect, test } from 'vitest';
import { ServiceError } from '../../../server/base/service-error.ts';
import { type Client, openClient } from '../../../server/clients/typescript/client.ts';
import { operations } from '../../../server/clients/typescript/gen/operations.ts';
import type { Operation } from '../../../server/clients/typescript/operation.ts';
import { apiRoutes } from '../../../server/contract/api/index.ts';
import type { RouteGroup, RouteRow } from '../../../server/contract/api/row.ts';
import type { Grant } from '../../../server/domain/access.ts';
import { adminToken, logged, openFront, otherToken, post, tenants, withToken } from './operations.ts';

const rows = Object.entries(apiRoutes).flatMap(([group, all]: [string, RouteGroup]) =>
  Object.entries(all).map(([name, row]): { name: string; row: RouteRow } => ({ name: `${group}.${name}`, row })),
);
const target = (row: RouteRow): string => row.path.replace(/\{\w+\}/g, 'some-id');
const problemOf = async (response: Response): Promise<Record<string, unknown>> => {
  expect(response.headers.get('content-type')).toBe('application/problem+json');
  return (await response.json()) as Record<string, unknown>;
};

describe('no one gets in without a credential', () => {
  test('these routes are open because the request contains its own credential; no other route is', () => {
    expect(rows.filter(({ row }) => row.needs === 'sign-in').map(({ name }) => name)).toEqual([
      'session.start',
      'session.methods',
      'session.beginPasskey',
      'session.passkey',
      'session.beginOpenId',
      'session.finishOpenId',
      'session.redeem',
      'deviceSignIn.start',
      'deviceSignIn.poll',
      'deviceSignIn.end',
    ]);
  });

  test('every change that is open to everybody is counted for its address before its body is read', async () => {
    const isCounted = ({ needs, method, attempt }: RouteRow): boolean =>
      needs !== 'sign-in' || method === 'get' || attempt !== undefined;
    expect(rows.filter(({ row }) => !isCounted(row))).toEqual([]);
    for (const { row } of rows.filter((each) => each.row.attempt !== undefined && each.row.needs === 'sign-in')) {
      const [tries, seconds] = row.attempt === 'poll' ? [60, 1] : [20, 3];
      const { request, calls, refusals, advance } = openFront();
      for (const body of ['{', '['.repeat(60_000), '{"unknown":1}', '"\\u0000"', 'x'.repeat(70_000)])
        for (let at = 0; at < tries / 5; at += 1)
          // A route that takes no body may reach the test's operation, which throws.
          expect(row.body === undefined ? [400, 413, 500] : [400, 413]).toContain(
            (await request(target(row), post(body))).status,
          );
      const answer = await request(target(row), post('{'));
      expect([answer.status, answer.headers.get('retry-after'), refusals]).toEqual([429, `${seconds}`, ['sign-ins']]);
      advance(3_000);
      expect((await request(target(row), post('{'))).status).toBe(400);
      expect([...calls.keys()].filter((name) => !name.startsWith('passkeys') && !name.startsWith('openId'))).toEqual(
        [],
      );
    }
  });

  test('a token that is not valid signs no one in', async () => {
    const { request, calls } = openFront();
    const response = await request('/api/session', post({ token: 'dket_wrong' }));
    expect([response.status, response.headers.get('set-cookie'), calls.size]).toEqual([401, null, 0]);
  });

  test.each(rows.filter(({ row }) => row.needs !== 'sign-in'))('$name answers 401', async ({ row }) => {
    const { request, calls } = openFront();
    const response = await request(target(row), { method: row.method.toUpperCase() });
    expect(response.status).toBe(401);
    expect((await problemOf(response)).code).toBe('unauthenticated');
    expect(calls.size).toBe(0);
  });

  test.each([
    ['/api/no-such-path', 'GET'],
    ['/api/vaults', 'PUT'],
    ['/api/', 'GET'],
  ])('neither does %s by %s tell more', async (path, method) => {
    expect((await openFront().request(path, { method })).status).toBe(401);
  });

  test.each([
    '',
    'Bearer',
    'Bearer ',
    'Basic abc',
    'Bearer dket_wrong',
    `Token ${adminToken}`,
    `Bearer ${adminToken} x`,
  ])('Authorization "%s" is not valid', async (authorization) => {
    const response = await openFront().request('/api/vaults', { headers: { authorization } });
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toContain('Bearer');
  });

  test('a body is not checked before the caller is known', async () => {
    const response = await openFront().request('/api/vaults', post('not json at all'));
    expect(response.status).toBe(401);
  });
});

describe('every answer', () => {
  test('has the security headers, is not cached, and echoes the request id', async () => {
    const { request } = openFront();
    for (const init of [{}, withToken()]) {
      const response = await request('/api/vaults', {
        ...init,
        headers: { ...(init.headers as Record<string, string>), 'x-request-id': 'call-42' },
      });
      expect(response.headers.get('x-request-id')).toBe('call-42');
      expect(response.headers.get('cache-control')).toBe('no-store');
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
      expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
    }
  });

  test.each(['a b', 'x'.repeat(129), '{"a":1}', ''])('replaces the request id "%s" by one of ours', async (given) => {
    const response = await openFront().request('/api/vaults', withToken({ headers: { 'x-request-id': given } }));
    expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe('a request that is not as the contract says is refused by name', () => {
  const { request } = openFront();
  const refused = async (init: RequestInit, path = '/api/vaults') => {
    const response = await request(path, withToken(init));
    return { status: response.status, problem: await problemOf(response) };
  };

  test('an unknown member', async () => {
    const { status, problem } = await refused(post({ name: 'a', owner: 'me' }));
    expect(status).toBe(400);
    expect(problem.errors).toEqual([{ path: 'owner', message: 'is unknown' }]);
  });

  test('a missing member', async () => {
    const { problem } = await refused(post({}));
    expect(problem.errors).toEqual([{ path: 'name', message: 'is missing' }]);
  });

  test('no body where one is needed', async () => {
    const { status, problem } = await refused({ method: 'POST' });
    expect(status).toBe(400);
    expect(problem.errors).toEqual([{ path: 'name', message: 'is missing' }]);
  });

  test.each(['{', '[1', 'null', '"text"', '[]', '{"name":"a"}trailing', '\ufeff{"name":"a"}'])(
    'the body %s',
    async (body) => {
      expect((await refused(post(body))).status).toBe(400);
    },
  );

  test('bytes that are not UTF-8', async () => {
    const body = Buffer.concat([Buffer.from('{"name":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]);
    const { status } = await refused({ method: 'POST', headers: { 'content-type': 'application/json' }, body });
    expect(status).toBe(400);
  });

  test('a body that is not declared as JSON', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
      const { status } = await refused({ method: 'POST', headers: { 'content-type': type }, body: '{"name":"a"}' });
      expect(status).toBe(415);
    }
  });

  test('a body that is too long, with and without a declared length', async () => {
    const long = JSON.stringify({ name: 'a'.repeat(70_000) });
    const declared = await refused(post(long, { 'content-length': String(long.length) }));
    expect(declared.status).toBe(413);
    expect(declared.problem.code).toBe('payload-too-large');
    const stream = new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(16_384)),
    });
    const endless = { method: 'POST', headers: { 'content-type': 'application/json' }, body: stream, duplex: 'half' };
    expect((await refused(endless as RequestInit)).status).toBe(413);
  });

  test.each(['limit=0', 'limit=1001', 'limit=ten', 'limit=1&limit=2', 'colour=red', 'after='])(
    'the query ?%s',
    async (query) => {
      const { status } = await refused({}, `/api/vaults?${query}`);
      expect(status).toBe(400);
    },
  );

  test('a name with control characters, or blanks at its ends, or none', async () => {
    for (const name of ['', ' a', 'a ', 'a\nb', 'a\u0000', 'x'.repeat(129), 'a\u2028b']) {
      expect((await refused(post({ name }))).status, JSON.stringify(name)).toBe(400);
    }
  });

  test('an unknown path, and a known one under another method', async () => {
    const unknown = await refused({}, '/api/nothing');
    expect([unknown.status, unknown.problem.code]).toEqual([404, 'not-found']);
    const response = await request('/api/vaults', withToken({ method: 'PUT' }));
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('POST, GET');
  });

  test('HEAD, which would carry out what GET does', async () => {
    const response = await request('/api/vaults', withToken({ method: 'HEAD' }));
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET']);
  });

  test('a member that is given twice', async () => {
    const { status, problem } = await refused(post('{"name":"a","na\\u006de":"b"}'));
    expect([status, problem.errors]).toEqual([400, [{ path: 'name', message: 'must appear only once' }]]);
  });

  test('without ever repeating a value, which may be a credential in the wrong place', async () => {
    const response = await request('/api/vaults', withToken(post({ name: { token: 'dket_secret' } })));
    expect(await response.text()).not.toContain('dket_secret');
  });
});

describe('answers', () => {
  test('times are RFC 3339 in UTC, and a create says where the new resource is', async () => {
    const response = await openFront().request('/api/vaults', withToken(post({ name: 'finance' })));
    expect(response.status).toBe(201);
    expect(response.headers.get('location')).toMatch(/\/vaults\/01981d2c-7c1f-7b35-9a04-52a1be40c0de$/);
    expect(((await response.json()) as { createdAt: string }).createdAt).toBe('2026-01-02T03:04:05.678Z');
  });

  test('a query arrives parsed', async () => {
    const response = await openFront().request('/api/vaults?limit=7&after=abc', withToken());
    expect(JSON.parse(((await response.json()) as { next: string }).next)).toEqual({ limit: 7, after: 'abc' });
  });

  test('an internal failure tells the caller only where to look', async () => {
    const { request } = openFront({
      'vaults.list': () => {
        throw new Error('SELECT secret FROM vault');
      },
    });
    const response = await request('/api/vaults', withToken());
    expect(response.status).toBe(500);
    const problem = await problemOf(response);
    expect(JSON.stringify(problem)).not.toContain('SELECT');
    expect(problem.hint).toContain(String(problem.requestId));
    expect(logged.length).toBeGreaterThan(0);
  });
});

describe('If-Match', () => {
  const disable = '/api/vaults/some-id/disable';

  test('admits the ETag that was read and refuses an older one', async () => {
    const { request, calls } = openFront();
    await request('/api/vaults', withToken(post({ name: 'a' })));
    const etag = (await request('/api/vaults/some-id', withToken())).headers.get('etag') ?? '';
    expect(etag).toMatch(/^"[\w-]{27}"$/);
    const first = await request(disable, withToken({ method: 'POST', headers: { 'if-match': etag } }));
    expect(first.status).toBe(200);
    const second = await request(disable, withToken({ method: 'POST', headers: { 'if-match': etag } }));
    expect(second.status).toBe(412);
    expect((await problemOf(second)).code).toBe('precondition-failed');
    expect(calls.get('vaults.disable')).toBe(1);
  });

  test('is not needed for a change that replaces nothing', async () => {
    const { request } = openFront();
    expect((await request(disable, withToken({ method: 'POST' }))).status).toBe(200);
  });

  const replacing = rows.filter(({ row }) => row.method === 'put' && row.changes !== undefined);

  test('is part of the type of every call that replaces', () => {
    const client: Client = openClient({ url: 'https://dke.example', ca: '', token: () => 'none' });
    // @ts-expect-error: which state is replaced is missing
    const change = () => client.keys.change({ path: { id: 'k' }, body: { name: 'n', tags: [] } });
    expect(change).toBeTypeOf('function');
    client.close();
    const known = Object.values(operations).flatMap((group) => Object.values(group));
    expect(known.filter((each: Operation) => each.replaces === true).length).toBe(replacing.length);
  });

  test.each(replacing)('$name needs it', async ({ row }) => {
    const { request, calls } = openFront();
    const response = await request(target(row), withToken({ ...post({}), method: 'PUT' }));
    expect(response.status).toBe(428);
    const problem = await problemOf(response);
    expect([problem.code, problem.hint]).toEqual(['precondition-required', expect.stringContaining('ETag')]);
    expect(calls.size).toBe(0);
  });
});

describe('Idempotency-Key', () => {
  const key = { 'idempotency-key': 'k1' };

  test('a repeat gets the first answer and makes nothing', async () => {
    const { request, calls } = openFront();
    const [first, second] = await Promise.all([
      request('/api/vaults', withToken(post({ name: 'a' }, key))),
      request('/api/vaults', withToken(post({ name: 'a' }, key))),
    ]);
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(await second.json()).toEqual(await first.json());
    expect(second.headers.get('location')).toBe(first.headers.get('location'));
    expect(calls.get('vaults.create')).toBe(1);
  });

  test('the same key with another request is refused, with another caller it is another key', async () => {
    const { request, calls } = openFront();
    await request('/api/vaults', withToken(post({ name: 'a' }, key)));
    expect((await request('/api/vaults', withToken(post({ name: 'b' }, key)))).status).toBe(409);
    expect((await request('/api/vaults', withToken(post({ name: 'b' }, key), otherToken))).status).toBe(201);
    expect(calls.get('vaults.create')).toBe(2);
  });

  test('a failed request may be tried again under its key', async () => {
    let failures = 1;
    const { request } = openFront({
      'tdeGroups.create': (_: unknown, { name }: { name: string }) => {
        if (failures-- > 0) throw new Error('once');
        return { id: 'g', tenantId: 't', name, vaultId: 'v', createdAt: 0, integrity: 'ok' };
      },
    });
    expect((await request('/api/tde/groups', withToken(post({ name: 'a' }, key)))).status).toBe(500);
    expect((await request('/api/tde/groups', withToken(post({ name: 'a' }, key)))).status).toBe(201);
  });

  test('an answer that contains a secret is not stored, and a repeated request is told so', async () => {
    const { request, calls } = openFront({
      'tokens.create': () => ({
        record: {
          id: 't9',
          kind: 'api',
          name: 'n',
          grants: [],
          createdAt: 0,
          expiresAt: null,
          revokedAt: null,
          lastUsedAt: null,
        },
        token: 'dket_fresh',
      }),
    });
    const first = await request('/api/tokens', withToken(post({ name: 'n' }, key)));
    expect(((await first.json()) as { token: string }).token).toBe('dket_fresh');
    const second = await request('/api/tokens', withToken(post({ name: 'n' }, key)));
    expect(second.status).toBe(409);
    expect(second.headers.get('location')).toMatch(/\/tokens\/t9$/);
    expect(await second.text()).not.toContain('dket_fresh');
    expect(calls.get('tokens.create')).toBe(1);
  });
});

describe('sessions', () => {
  const own = { origin: 'https://dke.example', 'sec-fetch-site': 'same-origin' };
  const signIn = async (front = openFront(), headers: Record<string, string> = own) => {
    const response = await front.request('/api/session', post({ token: adminToken }, headers));
    const cookie = response.headers.get('set-cookie') ?? '';
    return { front, response, cookie, value: cookie.split(';')[0] ?? '' };
  };

  test('signing in sets a cookie that no script reads and no other site sends', async () => {
    const { response, cookie } = await signIn();
    expect(response.status).toBe(200);
    expect(cookie).toMatch(/^__Host-dke-session=[\w-]{43}; /);
    for (const attribute of ['HttpOnly', 'Secure', 'SameSite=Strict', 'Path=/']) expect(cookie).toContain(attribute);
    expect(cookie).not.toContain('Domain');
    expect(cookie).not.toContain(adminToken);
    expect(await response.json()).toMatchObject({
      id: 'token-1',
      name: 'the tester',
      expiresAt: '2026-01-01T12:00:00.000Z',
    });
  });

  test('the cookie reads, and changes when our own page asks', async () => {
    const { front, value } = await signIn();
    expect((await front.request('/api/vaults', { headers: { cookie: value } })).status).toBe(200);
    const change = await front.request('/api/vaults', post({ name: 'a' }, { cookie: value, ...own }));
    expect(change.status).toBe(201);
  });

  test.each([
    {},
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: 'http://dke.example' },
    { origin: 'https://dke.example:8443' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'none' },
    { origin: 'https://dke.example', 'sec-fetch-site': 'cross-site' },
    { origin: 'https://evil.example', 'sec-fetch-site': 'same-origin' },
  ])('a change with the cookie from %j is refused', async (headers) => {
    const { front, value } = await signIn();
    const response = await front.request('/api/vaults', post({ name: 'a' }, { cookie: value, ...(headers as object) }));
    expect(response.status).toBe(403);
    expect(front.calls.size).toBe(0);
  });

  test('another site cannot sign a browser in', async () => {
    const { response, cookie } = await signIn(openFront(), { origin: 'https://evil.example' });
    expect([response.status, cookie]).toEqual([403, '']);
  });

  test('signing out ends the session, not just the cookie', async () => {
    const { front, value } = await signIn();
    const out = await front.request('/api/session', { method: 'DELETE', headers: { cookie: value, ...own } });
    expect(out.status).toBe(204);
    expect(out.headers.get('set-cookie')).toContain('Max-Age=0');
    expect((await front.request('/api/vaults', { headers: { cookie: value } })).status).toBe(401);
  });

  test('signing in again ends the session before', async () => {
    const { front, value } = await signIn();
    const second = await signIn(front, { ...own, cookie: value });
    expect((await front.request('/api/vaults', { headers: { cookie: value } })).status).toBe(401);
    expect((await front.request('/api/vaults', { headers: { cookie: second.value } })).status).toBe(200);
  });

  test('a session ends with its token', async () => {
    const { front, value } = await signIn();
    front.revoke();
    expect((await front.request('/api/vaults', { headers: { cookie: value } })).status).toBe(401);
  });

  test.each(['second-factor', 'new-password', 'enrolment'] as const)(
    'one that lacks its %s takes what finishes the sign-in, and nothing else',
    async (step) => {
      const cookie = `__Host-dke-session=unfinished-${step}`;
      const taken: string[] = [];
      for (const { name, row } of rows) {
        if (row.needs === 'sign-in') continue;
        const front = openFront();
        const response = await front.request(target(row), {
          method: row.method.toUpperCase(),
          headers: { cookie, 'content-type': 'application/json', ...own },
          ...(row.method === 'get' ? {} : { body: '{}' }),
        });
        const problem = response.status === 204 ? {} : ((await response.json()) as { code?: string });
        if (problem.code !== 'sign-in-incomplete') taken.push(name);
        else expect([name, response.status, front.calls.size]).toEqual([name, 403, 0]);
      }
      expect(taken).toEqual(rows.filter(({ row }) => row.unfinished?.includes(step)).map(({ name }) => name));
      expect(taken).toContain('session.end');
    },
  );

  test.each(['', 'x', `${'A'.repeat(43)}`, `${'A'.repeat(42)}B`])('the cookie "%s" opens nothing', async (value) => {
    const { front } = await signIn();
    const response = await front.request('/api/vaults', { headers: { cookie: `__Host-dke-session=${value}` } });
    expect(response.status).toBe(401);
  });

  test('a token and a session can ask who they are', async () => {
    const { front, value } = await signIn();
    const byToken = await (await front.request('/api/session', withToken())).json();
    expect(byToken).toMatchObject({ id: 'token-1', name: 'the tester', expiresAt: null });
    const bySession = await (await front.request('/api/session', { headers: { cookie: value } })).json();
    expect(bySession).toMatchObject({ id: 'token-1', expiresAt: '2026-01-01T12:00:00.000Z' });
  });
});

describe('secrets', () => {
  test('the secret of an endpoint credential comes as the file of AWS KMS, never kept in the operation’s buffer', async () => {
    const secretAccessKey = Buffer.from('0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/');
    const { request } = openFront({
      'endpoints.get': () => ({ prefix: 'demo' }),
      'endpoints.addCredential': () => ({
        credential: { id: 'c1', endpointId: 'e1', accessKeyId: 'ABCDEFGHIJKLMNOPQRST', createdAt: 0, lastUsedAt: null },
        secretAccessKey,
      }),
    });
    const response = await request('/api/endpoints/e1/credentials', withToken(post({})));
    expect(response.status).toBe(201);
    expect(response.headers.get('location')).toMatch(/\/endpoints\/e1\/credentials\/c1$/);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(await response.json()).toEqual({
      XksProxyUriPath: '/xks/demo/kms/xks/v1',
      XksProxyAuthenticationCredential: {
        AccessKeyId: 'ABCDEFGHIJKLMNOPQRST',
        RawSecretAccessKey: '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/',
      },
    });
    expect(secretAccessKey.every((byte) => byte === 0)).toBe(true);
  });
});

describe('destruction', () => {
  const path = '/api/tde/applications/a1/master-keys/k1/destroy';
  const key = {
    id: 'k1',
    tenantId: 't',
    vaultId: 'v',
    name: 'ORACLE.TDE.MK',
    kind: 'master',
    algorithm: 'aes',
    bits: 256,
    usages: ['encrypt'],
    state: 'active',
    disabledAt: null,
    currentVersion: 1,
    createdAt: 0,
    deletedAt: null,
    reimportedAt: null,
    destroyedAt: null,
    unrecoverableAt: null,
    copyOf: null,
    applicationId: 'a1',
    integrity: 'ok',
    groupId: 'g',
    handle: 1,
    label: 'T1JB',
    origin: 'generated',
    class: 'secret-key',
    sensitive: true,
    extractable: false,
    neverDecrypts: false,
    checkValue: null,
    publicKey: null,
    sealedCopy: true,
    vaultCopy: true,
    newest: true,
    firstUsedAt: null,
    lastUsedAt: null,
  };
  const blastRadius = {
    keyId: 'k1',
    applicationId: 'a1',
    applicationName: 'erp',
    instances: [],
    copies: { count: 0, items: [] },
    groupApplications: [],
    appIds: [],
    hosts: [],
    lastUsedAt: null,
  };
  const open = () =>
    openFront({
      'masterKeys.get': () => key,
      'keys.get': () => key,
      'masterKeys.destroyNeeds': () => ({ impact: {}, rules: [] }),
      'masterKeys.blastRadius': () => blastRadius,
      'masterKeys.destroy': () => ({ key: { ...key, state: 'destroyed', destroyedAt: 1 }, blastRadius }),
    });

  test.each([{}, { confirm: '' }, { confirm: 'oracle.tde.mk' }, { confirm: 'k1' }])(
    'needs the exact name: %j is refused',
    async (body) => {
      const { request, calls } = open();
      const response = await request(path, withToken(post(body)));
      expect(response.status).toBe(400);
      expect((await problemOf(response)).errors).toMatchObject([{ path: 'confirm' }]);
      expect(calls.has('masterKeys.destroy')).toBe(false);
    },
  );

  test('a dry run shows whom it would cut off and changes nothing', async () => {
    const { request, calls } = open();
    const response = await request(`${path}?dryRun=true`, withToken({ method: 'POST' }));
    expect(await response.json()).toMatchObject({ dryRun: true, blastRadius: { applicationName: 'erp' } });
    expect(calls.has('masterKeys.destroy')).toBe(false);
  });

  test('is done with the name', async () => {
    const response = await open().request(path, withToken(post({ confirm: 'ORACLE.TDE.MK' })));
    expect(await response.json()).toMatchObject({ dryRun: false, key: { state: 'destroyed' } });
  });
});

describe('exports and long requests', () => {
  const most = 4;
  async function* endless(): AsyncGenerator<readonly never[]> {
    for (;;) yield [];
  }
  const openExports = () =>
    openFront({ 'requests.export': () => endless(), 'requests.verify': () => new Promise(() => undefined) });

  test('of one caller are few at a time; those of another one have their own places', async () => {
    const { request } = openExports();
    const held: Response[] = [];
    for (let at = 0; at < most; at += 1) held.push(await request('/api/requests/export', withToken()));
    expect(held.map(({ status }) => status)).toEqual(Array(most).fill(200));
    const refused = await request('/api/requests/export', withToken());
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '5']);
    expect((await problemOf(refused)).code).toBe('rate-limited');
    expect((await request('/api/requests/verification', withToken())).status).toBe(429);
    expect((await request('/api/vaults', withToken())).status).toBe(200);
    expect((await request('/api/requests/export', withToken({}, otherToken))).status).toBe(200);
    await held[0]?.body?.cancel();
    expect((await request('/api/requests/export', withToken())).status).toBe(200);
    expect((await request('/api/requests/export', withToken())).status).toBe(429);
  });

  const readTo = async (response: Response): Promise<number> => {
    const reader = response.body?.getReader();
    for (let pieces = 0; ; pieces += 1) if ((await reader?.read())?.done !== false) return pieces;
  };
  async function* rows(): AsyncGenerator<readonly never[]> {
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      yield [];
    }
  }

  test('of every tenant ends when its caller may see one only, or less', async () => {
    const only = (role: Grant['role'], tenantId: string): Grant => ({ role, scope: null, tenantId });
    const ends = async (narrower: readonly Grant[], code: string): Promise<void> => {
      const front = openFront({ 'requests.export': () => rows() });
      const response = await front.request('/api/requests/export', withToken());
      expect(response.status).toBe(200);
      front.regrant(narrower);
      front.advance(1_000);
      await expect(readTo(response)).rejects.toMatchObject({ code });
    };
    await Promise.all([
      ends([only('administrator', tenants[0]?.id ?? '')], 'forbidden'),
      ends([only('auditor', tenants[0]?.id ?? '')], 'forbidden'),
      ends([only('administrator', tenants[1]?.id ?? '')], 'forbidden'),
      ends([], 'forbidden'),
      // Suspended meanwhile.
      ends([only('administrator', tenants[2]?.id ?? '')], 'unauthenticated'),
    ]);
  });

  test('end with the credential of their caller, be it a token or a session', async () => {
    for (const by of ['token', 'session'] as const) {
      const front = openFront({ 'requests.export': () => rows() });
      const signedIn = await front.request('/api/session', post({ token: adminToken }));
      const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? '';
      const credential = by === 'token' ? withToken() : { headers: { cookie } };
      const response = await front.request('/api/requests/export', credential);
      expect(response.status).toBe(200);
      front.revoke();
      front.advance(1_000);
      await expect(readTo(response)).rejects.toMatchObject({ code: 'unauthenticated' });
      // Its place is free for another one.
      expect((await front.request('/api/requests/export', withToken({}, otherToken))).status).toBe(200);
    }
  });

  test('what passes on its own says when to ask again, and what may have been done does not', async () => {
    for (const [error, after] of [
      [new ServiceError('unavailable', 'the store is away'), '1'],
      [new ServiceError('dependency-timeout', 'late'), '1'],
      [new ServiceError('unavailable', 'late', { retryAfterSeconds: 7 }), '7'],
      [new ServiceError('unavailable', 'not confirmed', { reason: 'unconfirmed' }), null],
      [new ServiceError('conflict', 'taken'), null],
    ] as const) {
      const { request } = openFront({
        'requests.export': () => {
          throw error;
        },
      });
      expect((await request('/api/requests/export', withToken())).headers.get('retry-after')).toBe(after);
    }
  });

  test('that fail take no place', async () => {
    const { request } = openFront({
      'requests.export': () => {
        throw new ServiceError('unavailable', 'the store is away');
      },
    });
    for (let at = 0; at <= most; at += 1) expect((await request('/api/requests/export', withToken())).status).toBe(503);
  });
});
