// A request in the access log, in the audit log, in the answer and in the trace, by one id; and
// that neither log nor receiver delays a request.
import { once } from 'node:events';
import { readFileSync, renameSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { IssuedToken } from '../../server/contract/api/tokens-routes.ts';
import type { InvitedUser } from '../../server/contract/api/users-routes.ts';
import { until } from '../support/host.ts';
import { type Site, startSite } from '../support/site.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';

interface Line {
  readonly time: string;
  readonly requestId: string;
  readonly front: string;
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
  readonly bytes: number;
  readonly caller: string | null;
  readonly peer: string;
}
interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly attributes: readonly { readonly key: string; readonly value: { readonly stringValue?: string } }[];
}

const spans: Span[] = [];
let answers = true;
const receiver = createServer(async (incoming, outgoing) => {
  const body = JSON.parse(Buffer.concat(await incoming.toArray()).toString('utf8'));
  // Slow from then on: it reads everything and never acknowledges it.
  if (!answers) return;
  for (const { scopeSpans = [] } of body.resourceSpans ?? [])
    for (const { spans: own = [] } of scopeSpans) spans.push(...own);
  outgoing.writeHead(200, { 'content-type': 'application/json' }).end('{}');
});

let site: Site;
let endpoint: XksEndpoint;
let path: string;
beforeAll(async () => {
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const { port } = receiver.address() as AddressInfo;
  site = await startSite({
    toml: `[access_log]\nfile = "access.log"\n[telemetry]\nendpoint = "http://127.0.0.1:${port}"\nmetrics = false\n`,
  });
  path = join(site.folder, 'access.log');
  endpoint = await createXksEndpoint(site, 'observed');
});
afterAll(async () => {
  await site?.end();
  receiver.closeAllConnections();
  receiver.close();
});

const lines = (file = path): readonly Line[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line);
const lineOf = (requestId: string): Promise<Line> =>
  until(`the line of ${requestId}`, async () => lines().find((line) => line.requestId === requestId));
const rootOf = (requestId: string): Promise<Span> =>
  until(`the span of ${requestId}`, async () =>
    spans.find(({ attributes }) =>
      attributes.some(({ key, value }) => key === 'dke.request_id' && value.stringValue === requestId),
    ),
  );
const stepsOf = ({ traceId, spanId }: Span): readonly string[] =>
  spans.filter((span) => span.traceId === traceId && span.parentSpanId === spanId).map(({ name }) => name);

test('a change is found by one id in the answer, the audit log, the access log and the trace', async () => {
  const { status, headers, text } = await site.api.send('POST', '/api/vaults', { name: 'found by its id' });
  expect(status).toBe(201);
  const requestId = String(headers['x-request-id']);
  const [record] = (await site.api.audit('kind=vault.created')).filter((one) => one.requestId === requestId);
  expect(record?.kind).toBe('vault.created');
  expect(await lineOf(requestId)).toEqual({
    ...{ requestId, front: 'api', method: 'POST', route: '/api/vaults', status: 201, peer: '127.0.0.1' },
    caller: record?.actorId,
    bytes: Buffer.byteLength(text),
    time: expect.stringMatching(/^\d{4}-.*Z$/),
    durationMs: expect.any(Number),
  });
  const span = await rootOf(requestId);
  expect(span.name).toBe('POST /api/vaults');
  await until('its steps', async () => (stepsOf(span).includes('store.write') ? true : undefined));
});

test('the caller’s own id is used, and a pattern replaces the path', async () => {
  const { endpoint: own } = endpoint;
  const answer = await site.api.send('GET', `/api/endpoints/${own.id}?x=1`, undefined, { 'x-request-id': 'mine.1' });
  expect(answer.headers['x-request-id']).toBe('mine.1');
  expect(await lineOf('mine.1')).toMatchObject({ route: '/api/endpoints/:id', method: 'GET' });
  const unknown = await site.api.send('GET', '/api/dket_not-a-path', undefined, { 'x-request-id': 'mine.2' });
  expect(unknown.status).toBe(404);
  expect(await lineOf('mine.2')).toMatchObject({ route: 'unknown', status: 404 });
});

test('a request of the cloud is described by its endpoint’s credential, with what it spent its time on', async () => {
  const sealed = await endpoint.encrypt(Buffer.from('a data key of thirty-two bytes!!'));
  expect(sealed.status).toBe(200);
  const line = await until('its line', async () =>
    lines().find(({ front, status }) => front === 'xks' && status === 200),
  );
  expect(line).toMatchObject({ method: 'POST', route: '/xks/:prefix/kms/xks/v1/keys/:key/encrypt' });
  expect(line.caller).toMatch(/^[0-9a-f-]{36}$/);
  expect(line.bytes).toBeGreaterThan(50);
  const span = await rootOf(line.requestId);
  await until('its steps', async () => (stepsOf(span).length >= 3 ? true : undefined));
  expect(stepsOf(span)).toEqual(expect.arrayContaining(['xks.read', 'xks.authenticate', 'xks.answer']));
});

test('requests over HTTP/2, for pages and for the health have lines with the bytes of their answers', async () => {
  const session = connect(site.server.url, { ca: readFileSync(site.server.caFile) });
  try {
    for (const [target, front] of [
      ['/health', 'health'],
      ['/', 'console'],
    ] as const) {
      const stream = session.request({ ':path': target, accept: 'text/html' });
      const [headers] = (await once(stream, 'response')) as [Record<string, string>];
      const body = Buffer.concat(await stream.toArray());
      const requestId = headers['x-request-id'] ?? '';
      expect(await lineOf(requestId)).toMatchObject({ front, bytes: body.length, caller: null });
    }
  } finally {
    session.close();
  }
});

test('no password, cookie or token is in a line, of requests that succeed and of those that fail', async () => {
  const invited = await site.api.call<InvitedUser>('POST', '/api/users', {
    name: 'ada',
    grants: [{ role: 'auditor', scope: null }],
  });
  const invitation = String((invited as { invitation: { token: string } | null }).invitation?.token);
  const password = 'correct horse battery staple of mine';
  const origin = { origin: site.server.url, authorization: '' };
  const sent = (target: string, body: object) => site.api.send('POST', target, body, origin);
  expect((await sent('/api/session/invitation', { invitation, password })).status).toBe(200);
  const signedIn = await sent('/api/session', { user: 'ada', password });
  expect(signedIn.status).toBe(200);
  const cookie = String(signedIn.headers['set-cookie']).split(';')[0] ?? '';
  expect(cookie).toContain('dke-session=');
  const wrong = 'another password, which is wrong';
  expect((await sent('/api/session', { user: 'ada', password: wrong })).status).toBe(401);
  await site.api.send('GET', '/api/session', undefined, {
    authorization: '',
    cookie,
    'x-request-id': 'own.1',
  });
  await lineOf('own.1');
  const text = readFileSync(path, 'utf8') + JSON.stringify(spans);
  for (const secret of [site.token, invitation, password, wrong, cookie.split('=')[1] ?? cookie])
    expect(text).not.toContain(secret);
});

test('SIGHUP opens the file again after it was moved away', async () => {
  renameSync(path, `${path}.moved`);
  site.server.child.kill('SIGHUP');
  await site.api.send('GET', '/api/status', undefined, { 'x-request-id': 'after.1' });
  await until('the new file', async () => {
    try {
      return lines().some(({ requestId }) => requestId === 'after.1') ? true : undefined;
    } catch {
      return undefined;
    }
  });
  expect(lines(`${path}.moved`).some(({ requestId }) => requestId === 'mine.1')).toBe(true);
});

test('a receiver that no longer answers delays no request; dropped spans are counted', async () => {
  answers = false;
  const { token } = await site.api.call<IssuedToken>('POST', '/api/tokens', { name: 'metrics', kind: 'metrics' });
  const dropped = async (): Promise<number> => {
    const { text } = await site.api.send('GET', '/metrics', undefined, { authorization: `Bearer ${token}` });
    // Either the queue is full first or the receiver's time is over: that depends on the speed of
    // this host.
    const counts = [...text.matchAll(/^dke_telemetry_dropped_total\{signal="traces",cause="\w+"\} (\d+)$/gm)];
    return counts.reduce((sum, [, count]) => sum + Number(count), 0);
  };
  const session = connect(site.server.url, { ca: readFileSync(site.server.caFile) });
  const status = async (): Promise<number> => {
    const stream = session.request({ ':path': '/api/vaults', authorization: `Bearer ${site.token}` });
    // Waiting for both begins at once: a stream may end before its headers are handled here.
    const [[headers]] = await Promise.all([once(stream, 'response'), stream.toArray()]);
    return Number((headers as Record<string, unknown>)[':status']);
  };
  try {
    await until('dropped spans', async () => {
      // A connection has 128 streams at most, and the server may end those of the last round a
      // little later.
      const all = await Promise.all(Array.from({ length: 50 }, status));
      expect(all.filter((each) => each !== 200)).toEqual([]);
      return (await dropped()) > 0 ? true : undefined;
    });
  } finally {
    session.close();
  }
});
