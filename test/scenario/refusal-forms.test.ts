// A refusal has the form of the front that was asked, over HTTP/1 and HTTP/2, also where no front
// has seen the request: the cloud's own form for the XKS proxy, a problem document for the APIs.
import { readFileSync } from 'node:fs';
import { connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2';
import { Agent, request } from 'node:https';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { converse } from '../support/raw-tls.ts';
import { type Site, startSite } from '../support/site.ts';
import { createXksEndpoint } from '../support/xks-call.ts';
import { callXks, callXksOverHttp2, requestMetadata, signXksCall, type XksPlace } from '../support/xks-client.ts';

interface Answer {
  readonly status: number;
  readonly type: unknown;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Readonly<Record<string, unknown>>;
}
type Ask = (path: string, headers?: Readonly<Record<string, string>>) => Promise<Answer>;
const answerOf = (status: number, headers: IncomingHttpHeaders, text: string): Answer => ({
  ...{ status, type: headers['content-type'], headers },
  body: JSON.parse(text) as Answer['body'],
});

let site: Site;
let xksPath: string;
let place: XksPlace;
beforeAll(async () => {
  site = await startSite();
  const { endpoint, configuration } = await createXksEndpoint(site, 'rated');
  place = { server: site.server, configuration };
  xksPath = `${endpoint.uriPath}/kms/xks/v1/health`;
  const settings = { operatorProbes: true, clientCertificate: null, rules: [] };
  await site.api.call('PUT', `/api/endpoints/${endpoint.id}/settings`, {
    ...{ ...settings, rate: { perSecond: 1, burst: 1 } },
  });
});
afterAll(() => site.end());

const post = { 'content-type': 'application/json' } as const;
const overHttp1: Ask = (path, headers = {}) => {
  const { port, caFile } = site.server;
  return new Promise((resolve, reject) => {
    const agent = new Agent({ ca: readFileSync(caFile) });
    const asked = request(
      { agent, port, host: '127.0.0.1', path, method: 'POST', headers: { ...post, ...headers } },
      (incoming) => {
        let text = '';
        incoming.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        incoming.on('end', () => {
          agent.destroy();
          resolve(answerOf(incoming.statusCode ?? 0, incoming.headers, text));
        });
      },
    );
    asked.on('error', reject);
    asked.end('{}');
  });
};
const overHttp2: Ask = async (path, headers = {}) => {
  const { port, caFile } = site.server;
  const session = connectHttp2(`https://127.0.0.1:${port}`, { ca: readFileSync(caFile) });
  try {
    return await new Promise((resolve, reject) => {
      session.on('error', reject);
      const stream = session.request({ ':method': 'POST', ':path': path, ...post, ...headers });
      let text = '';
      let received: IncomingHttpHeaders = {};
      stream.on('response', (given) => {
        received = given;
      });
      stream.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      stream.on('error', reject);
      stream.on('end', () =>
        resolve(answerOf(Number((received as Record<string, unknown>)[':status']), received, text)),
      );
      stream.end('{}');
    });
  } finally {
    session.close();
  }
};

const expectProblem = ({ status, type, headers, body }: Answer, wanted: number, code: string): void => {
  expect([status, type]).toEqual([wanted, 'application/problem+json']);
  expect(body).toMatchObject({ type: `urn:dke:problem:${code}`, status: wanted, code, title: expect.any(String) });
  expect(body).not.toHaveProperty('errorName');
  expect(headers['x-request-id']).toBe(body.requestId);
  expect(body.requestId).toMatch(/^[0-9a-f-]{36}$/);
};
const expectXks = ({ status, type, body }: Answer, wanted: number, errorName: string): void => {
  expect([status, String(type).replace(/;.*/, '')]).toEqual([wanted, 'application/json']);
  expect(Object.keys(body).toSorted()).toEqual(['errorMessage', 'errorName']);
  expect(body.errorName).toBe(errorName);
};

describe.each([
  ['HTTP/1', overHttp1, callXks],
  ['HTTP/2', overHttp2, callXksOverHttp2],
])('over %s', (_name, ask, call) => {
  const long = { 'x-long': 'x'.repeat(9_000) };
  test.each(['/api/vaults', '/tde/v1/guid/app/info', '/health'])('headers that are too long for %s', async (path) => {
    expectProblem(await ask(path, long), 431, 'validation');
  });
  test('headers that are too long for the XKS proxy', async () => {
    expectXks(await ask(xksPath, long), 431, 'ValidationException');
  });
  test('too many requests of the XKS proxy', async () => {
    const body = { requestMetadata: requestMetadata({ kmsOperation: 'KmsHealthCheck' }) };
    const answers = await Promise.all(Array.from({ length: 4 }, () => call(place, { target: '/health', body })));
    const limited = answers.filter(({ status }) => status === 429);
    expect(limited.length).toBeGreaterThan(0);
    for (const answer of limited)
      expectXks({ ...answer, type: answer.headers['content-type'] }, 429, 'ThrottlingException');
  });
  test('too many sign-ins of the API', async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, () => ask('/api/session/invitation')));
    const limited = answers.filter(({ status }) => status === 429);
    expect(limited.length).toBeGreaterThan(0);
    for (const answer of limited) {
      expectProblem(answer, 429, 'rate-limited');
      expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    }
  });
});

test('headers whose request has not been read as one have the members of both', async () => {
  const pieces = ['POST /api/vaults HTTP/1.1\r\nHost: a\r\n', `X-Long: ${'x'.repeat(9_000)}\r\n\r\n`];
  const {
    answers: [answer],
  } = await converse(
    site.server,
    pieces.map((each) => Buffer.from(each)),
    { stays: false },
  );
  expect([answer?.status, answer?.headers.get('content-type')]).toEqual([431, 'application/json']);
  expect(JSON.parse(answer?.body ?? '')).toMatchObject({ errorName: 'ValidationException', code: 'validation' });
});

test.each([
  ['the XKS proxy', 'errorName'],
  ['the API', 'code'],
])(
  'a body for %s that is not HTTP is refused in the form of its request, whatever it contains',
  async (front, member) => {
    const signed = await signXksCall(place, '/health', '{}');
    // Who asks is known before the body is read.
    const asked: readonly [path: string, headers: Readonly<Record<string, string>>] =
      front === 'the API'
        ? ['/api/vaults', { host: 'a', authorization: `Bearer ${site.server.adminToken}` }]
        : [signed.path, signed.headers];
    const fields = Object.entries({ ...asked[1], ...post, 'transfer-encoding': 'chunked' });
    const head = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    const pieces = [
      `POST ${asked[0]} HTTP/1.1\r\n${head}\r\n1\r\n{\r\n`,
      `GET ${front === 'the API' ? signed.path : '/api/vaults'} HTTP/1.1\r\nHost: a\r\n\r\n`,
    ];
    const {
      answers: [answer],
    } = await converse(
      site.server,
      pieces.map((each) => Buffer.from(each)),
      { stays: false },
    );
    expect(answer?.status).toBe(400);
    const members = Object.keys(JSON.parse(answer?.body ?? '') as object);
    expect(['errorName', 'code'].filter((each) => members.includes(each))).toEqual([member]);
  },
);
