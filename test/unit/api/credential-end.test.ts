// A credential that ends while a request is under way ends what is written for it: every route that
// may take long, and every change and list, which may wait. A long route without a decision here
// does not compile, and fails.
import { describe, expect, test } from 'vitest';
import { type ApiRoutes, apiRoutes } from '../../../server/contract/api/index.ts';
import type { RouteGroup, RouteRow } from '../../../server/contract/api/row.ts';
import { faultOfGrants, type Grant } from '../../../server/domain/access.ts';
import { adminToken, type FrontUnderTest, openFront, otherToken, post, tenants, withToken } from './operations.ts';

/**
 * `file`: ends before its next piece. `upload`: the next piece of the body is not taken. `answer`:
 * withheld. `change`: refused where it has not been made; made, it is answered.
 */
type Decision = 'file' | 'upload' | 'answer' | 'change';
type IsLong<R> = R extends
  | { readonly streams: readonly string[] }
  | { readonly long: string }
  | { readonly takes: string }
  ? true
  : false;
type LongRoute = {
  [G in keyof ApiRoutes]: {
    [N in keyof ApiRoutes[G]]: IsLong<ApiRoutes[G][N]> extends true ? `${G & string}.${N & string}` : never;
  }[keyof ApiRoutes[G]];
}[keyof ApiRoutes];

interface LongCase {
  readonly decision: Decision;
  /** The operation that takes long. */
  readonly operation: string;
  readonly body?: object;
}
const opening = { openingId: 'opening', sealedKey: 'AAAA' };
const cases: Readonly<Record<LongRoute, LongCase>> = {
  'keys.export': { decision: 'file', operation: 'keys.export' },
  'requests.export': { decision: 'file', operation: 'requests.export' },
  'requests.exportOne': { decision: 'file', operation: 'requests.export' },
  'requests.verify': { decision: 'answer', operation: 'requests.verify' },
  'audit.export': { decision: 'file', operation: 'audit.export' },
  'audit.exportTenant': { decision: 'file', operation: 'audit.exportTenant' },
  'packages.download': { decision: 'file', operation: 'packages.open' },
  'diagnostics.run': { decision: 'answer', operation: 'diagnostics.run', body: {} },
  'diagnostics.follow': { decision: 'file', operation: 'diagnostics.follow', body: {} },
  'snapshots.create': { decision: 'change', operation: 'snapshots.create', body: {} },
  'snapshots.export': { decision: 'file', operation: 'snapshots.export' },
  'snapshots.import': { decision: 'upload', operation: 'snapshots.import' },
  'snapshots.verify': { decision: 'answer', operation: 'snapshots.verify', body: {} },
  'snapshots.verifyOpened': { decision: 'answer', operation: 'snapshots.verify', body: opening },
  'snapshots.restore': { decision: 'change', operation: 'snapshots.restore', body: opening },
};

const rows = new Map<string, RouteRow>(
  Object.entries(apiRoutes).flatMap(([group, all]: [string, RouteGroup]) =>
    Object.entries(all).map(([name, row]): [string, RouteRow] => [`${group}.${name}`, row]),
  ),
);
const rowOf = (name: string): RouteRow => {
  const row = rows.get(name);
  if (row === undefined) throw new Error(`there is no route ${name}`);
  return row;
};

/** What an operation answers, whatever a route shows of it. */
const anything: unknown = new Proxy(() => undefined, {
  get: (_, name) => {
    if (name === Symbol.toPrimitive) return () => 0;
    if (name === Symbol.iterator) return () => [][Symbol.iterator]();
    return name === 'then' || name === 'toJSON' ? undefined : anything;
  },
  apply: () => [],
  ownKeys: () => [],
});
/** Pages, lines or events without an end. */
async function* withoutEnd(): AsyncGenerator<unknown> {
  for (;;) {
    await new Promise((resolve) => setImmediate(resolve));
    yield new Uint8Array(1);
  }
}
const pages = async function* pages(): AsyncGenerator<unknown> {
  for await (const _ of withoutEnd()) yield [];
};

const bodyOf = ({ row, body }: { readonly row: RouteRow; readonly body?: object | undefined }): RequestInit => {
  if (row.takes !== undefined)
    return {
      method: 'POST',
      headers: { 'content-type': row.takes },
      body: ReadableStream.from(withoutEnd()) as unknown as NonNullable<RequestInit['body']>,
      duplex: 'half',
    } as RequestInit;
  return body === undefined
    ? { method: row.method.toUpperCase() }
    : { ...post(body), method: row.method.toUpperCase() };
};
const ways = ['token', 'session'] as const;
const credentialOf = async (
  front: FrontUnderTest,
  by: (typeof ways)[number],
  init: RequestInit,
): Promise<RequestInit> => {
  if (by === 'token') return withToken(init);
  const signedIn = await front.request('/api/session', post({ token: adminToken }));
  const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? '';
  return { ...init, headers: { ...(init.headers as Record<string, string>), cookie, 'sec-fetch-site': 'same-origin' } };
};
const endIt = (front: FrontUnderTest): void => {
  front.revoke();
  front.advance(1_000);
};
const targetOf = (row: RouteRow): string => row.path.replace(/\{\w+\}/g, 'some-id');
/** What has no end of its own would otherwise be read forever. */
const mostPieces = 100;
const readOn = async (response: Response): Promise<string> => {
  const reader = response.body?.getReader();
  for (let pieces = 0; pieces < mostPieces; pieces += 1)
    if ((await reader?.read())?.done !== false) return 'ended in good order';
  return 'goes on';
};

test('every route that may take long has a decision', () => {
  const long = [...rows].filter(
    ([, row]) => row.streams !== undefined || row.long !== undefined || row.takes !== undefined,
  );
  expect(long.map(([name]) => name).toSorted()).toEqual(Object.keys(cases).toSorted());
  for (const [name, { streams, takes, long: kind }] of long) {
    const { decision } = cases[name as LongRoute];
    const wanted =
      streams !== undefined ? 'file' : takes !== undefined ? 'upload' : kind === 'reads' ? 'answer' : 'change';
    expect([name, decision]).toEqual([name, wanted]);
  }
});

describe.each(ways)('a %s that ends in the middle', (by) => {
  test.each(Object.entries(cases))('%s', async (name, { decision, operation, body }) => {
    const row = rowOf(name);
    const taken: unknown[] = [];
    const front: FrontUnderTest = openFront({
      'endpoints.get': () => ({ id: 'some-id' }),
      'snapshots.schedule': () => ({ settings: { undeleteDays: 1 } }),
      [operation]: async (...given: readonly unknown[]) => {
        if (decision === 'file') return /packages|snapshots/.test(operation) ? withoutEnd() : pages();
        if (decision === 'upload') {
          for await (const piece of given[1] as AsyncIterable<Uint8Array>) {
            taken.push(piece);
            if (taken.length === 2) endIt(front);
            if (taken.length === mostPieces) break;
          }
          throw new Error('the body ended');
        }
        if (decision === 'change') await front.inUnit(() => undefined);
        endIt(front);
        return anything;
      },
    });
    const response = await front.request(targetOf(row), await credentialOf(front, by, bodyOf({ row, body })));
    if (decision === 'file') {
      expect(response.status).toBe(200);
      endIt(front);
      await expect(readOn(response)).rejects.toMatchObject({ code: 'unauthenticated' });
      return;
    }
    expect([response.status, taken.length]).toEqual([
      decision === 'change' ? (row.creates ? 201 : 200) : 401,
      decision === 'upload' ? 2 : 0,
    ]);
  });

  test('a list and a dry run that took long are not shown', async () => {
    for (const [path, operation, init] of [
      ['/api/vaults', 'vaults.list', {}],
      ['/api/snapshots/some-id/restore?dryRun=true', 'snapshots.restore', post(opening)],
    ] as const) {
      const front: FrontUnderTest = openFront({
        [operation]: () => {
          endIt(front);
          return operation === 'vaults.list' ? { items: [], next: null } : anything;
        },
      });
      const response = await front.request(path, await credentialOf(front, by, init));
      expect([path, response.status]).toEqual([path, 401]);
    }
  });
});

test('a change whose unit of work comes too late is refused; one that is made is answered', async () => {
  const front: FrontUnderTest = openFront({}, undefined, { beforeUnit: () => endIt(front) });
  expect((await front.request('/api/vaults', withToken(post({ name: 'late' })))).status).toBe(401);
  expect((await front.request('/api/vaults/some-id', withToken({}, otherToken))).status).toBe(404);
});

/** A body whose second half comes when its caller is known and `middle` has happened. */
const slowly = async (front: FrontUnderTest, body: object, middle: () => void): Promise<RequestInit> => {
  const before = front.looks();
  const text = Buffer.from(JSON.stringify(body));
  async function* pieces(): AsyncGenerator<Uint8Array> {
    yield text.subarray(0, 5);
    while (front.looks() === before) await new Promise((resolve) => setImmediate(resolve));
    middle();
    yield text.subarray(5);
  }
  return credentialOf(front, 'session', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: ReadableStream.from(pieces()) as unknown as NonNullable<RequestInit['body']>,
    duplex: 'half',
  } as RequestInit);
};
const otherTenant = tenants[1]?.id ?? '';
const everywhere: Grant = { role: 'administrator', scope: null, tenantId: null };
const within: Grant = { role: 'tenant-administrator', scope: null, tenantId: otherTenant };

test('a change is decided by what its caller is granted in its unit of work, not when the request came', async () => {
  const given: string[] = [];
  const front: FrontUnderTest = openFront(
    {
      'tokens.create': async (_: unknown, own: readonly Grant[], { grants }: { readonly grants: readonly Grant[] }) =>
        front.inUnit(() => {
          if (faultOfGrants(grants, own) === undefined) given.push(...grants.map(({ role }) => role));
          return anything;
        }),
    },
    [everywhere, within],
  );
  const asked = { name: 'stays', grants: [everywhere] };
  // No time passes: what was read a moment ago is not believed either.
  const lost = await slowly(front, asked, () => front.regrant([within]));
  const refused = await front.request(`/api/tokens?tenant=${otherTenant}`, lost);
  expect([refused.status, await refused.json(), given]).toEqual([
    403,
    expect.objectContaining({ code: 'forbidden', detail: 'your roles changed during the request' }),
    [],
  ]);
  // What was gained in the meantime refuses no one.
  front.regrant([within]);
  const gained = await slowly(front, { name: 'small', grants: [within] }, () => front.regrant([within, everywhere]));
  await front.request(`/api/tokens?tenant=${otherTenant}`, gained);
  expect(given).toEqual(['tenant-administrator']);
});

test('a list is not shown by roles that ended while it was read', async () => {
  const front: FrontUnderTest = openFront({
    'search.find': () => {
      front.regrant([]);
      front.advance(1_000);
      return { items: [], more: false, searched: [] };
    },
  });
  expect((await front.request('/api/search?q=abc', withToken())).status).toBe(403);
});

/** These routes change nothing, though their method is not GET: they make no unit of work. */
const readingPosts = [
  ['/api/requests/correlate', 'requests.correlate', { text: 'e' }],
  ['/api/endpoints/some-id/rules/simulate', 'endpoints.simulateRules', { requests: [{ kmsOperation: 'Decrypt' }] }],
  ['/api/device-sign-in/find', 'deviceSignIn.find', { userCode: 'WDJB-MJHT' }],
] as const;
test.each(readingPosts)('%s shows nothing after the end of its credential', async (path, operation, body) => {
  const late: FrontUnderTest = openFront({ [operation]: () => anything });
  const whileItComes = await slowly(late, body, () => endIt(late));
  expect([(await late.request(path, whileItComes)).status, late.calls.get(operation)]).toEqual([401, undefined]);
  const long: FrontUnderTest = openFront({
    [operation]: () => {
      endIt(long);
      return anything;
    },
  });
  const response = await long.request(path, await credentialOf(long, 'session', post(body)));
  expect([response.status, long.calls.get(operation)]).toEqual([401, 1]);
});
