// What dke login makes of answers that are not those of the service: nothing is kept that could not
// be read again, a session that was begun ends, and a wait ends where waiting changes nothing.
import { chmodSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { makeProgramFor } from '../../../server/cli/program.ts';
import { callOnce } from '../../../server/cli/service/api-client.ts';
import { sessionFile } from '../../../server/cli/service/session-file.ts';
import { operations } from '../../../server/clients/typescript/gen/operations.ts';
import { sharedFolder } from '../../support/folders.ts';
import { openScriptedService, type Script, type ScriptedService } from '../../support/scripted-service.ts';

let service: ScriptedService;
const folder = sharedFolder();
const others = JSON.stringify({ 'https://other.example': { user: 'anna', token: 'dket_0123456789abcdef' } });
let told = '';
beforeAll(async () => {
  service = await openScriptedService();
  writeFileSync(join(folder, 'ca.pem'), service.ca);
  writeFileSync(join(folder, 'password'), 'a long passphrase\n123456\n', { mode: 0o600 });
});
afterAll(() => service.close());
beforeEach(() => {
  vi.stubEnv('XDG_CONFIG_HOME', folder);
  mkdirSync(join(folder, 'dke'), { recursive: true, mode: 0o700 });
  writeFileSync(sessionFile(), others, { mode: 0o600 });
});
afterEach(() => {
  rmSync(sessionFile(), { force: true });
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

const dke = async (...words: readonly string[]): Promise<void> => {
  told = '';
  vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    told += String(text);
    return true;
  });
  const all = ['--server', service.url, '--ca-file', join(folder, 'ca.pem'), ...words];
  await (await makeProgramFor('1', all)).parseAsync(['node', 'dke', ...all]);
};
const withPassword = () => dke('login', 'ada', '--password-fd', String(openSync(join(folder, 'password'), 'r')));

const cookie = { 'set-cookie': '__Host-dke-session=dke_session_1; Path=/; Secure; HttpOnly' };
const missing = { id: 'u', missing: 'second-factor', expiresAt: null };
const done = { id: 'u', missing: null, expiresAt: null };
const end = ['DELETE /api/session', '__Host-dke-session=dke_session_1'];

test.each([
  ['null', [{ headers: cookie, body: 'null' }]],
  ['a list', [{ headers: cookie, body: [] }]],
  ['an empty object', [{ headers: cookie, body: {} }]],
  ['a step that does not exist', [{ headers: cookie, body: { ...done, missing: 'toString' } }]],
  ['null after the second factor', [{ headers: cookie, body: missing }, { body: 'null' }]],
  [
    'a cookie that cannot be kept',
    [
      { headers: cookie, body: missing },
      { headers: { 'set-cookie': '__Host-dke-session=' }, body: done },
    ],
  ],
] as const)('a session that was begun ends, and the sign-ins at other services stay: %s', async (_, answers) => {
  service.script(...answers, { status: 204 });
  await expect(withPassword()).rejects.toMatchObject({
    exitClass: 'unreachable',
    message: "the answer is not from this service's API",
  });
  const sent = service.requests.map(({ method, path, headers }) => [`${method} ${path}`, headers.cookie]);
  expect(sent.at(-1)).toEqual(end);
  expect(readFileSync(sessionFile(), 'utf8')).toBe(others);
});

test('a cookie that no header can have is not kept', async () => {
  service.script({ headers: { 'set-cookie': '__Host-dke-session=a"b c; Path=/' }, body: done });
  await expect(withPassword()).rejects.toMatchObject({ exitClass: 'unreachable' });
  expect(readFileSync(sessionFile(), 'utf8')).toBe(others);
});

const started = {
  deviceCode: 'd'.repeat(43),
  userCode: 'BCDF-GHJK',
  url: 'https://keys.example/device',
  completeUrl: 'https://keys.example/device#BCDF-GHJK',
  expiresAt: '2027-01-31T00:00:00Z',
  intervalSeconds: 0,
};
const issued = {
  state: 'issued',
  intervalSeconds: 0,
  user: 'ina',
  issued: { record: { expiresAt: null }, token: 't' },
};

test.each([
  { ...issued, issued: { record: { expiresAt: null } } },
  { ...issued, issued: null },
  { ...issued, issued: { ...issued.issued, token: 'a"b c' } },
  { ...issued, user: null },
])('a token that is not in the answer is not kept, and may exist: %j', async (body) => {
  service.script({ body: started }, { body });
  await expect(dke('login')).rejects.toMatchObject({
    exitClass: 'may-exist',
    hint: expect.stringContaining('what was to be created may exist'),
  });
  expect(readFileSync(sessionFile(), 'utf8')).toBe(others);
});

test.each([
  ['lost' as const, 'may-exist'],
  [{ body: { state: 'pending', intervalSeconds: 0 } }, 'denied'],
])('a code that has expired after %j: %s', async (before, exitClass) => {
  service.script({ body: started }, before, {
    body: { state: 'expired', intervalSeconds: 0 },
  });
  await expect(dke('login')).rejects.toMatchObject({ exitClass, message: expect.stringContaining('has expired') });
});

const fault = { status: 500, body: { code: 'internal', detail: 'x', requestId: 'r' } };
const page = { headers: { 'content-type': 'text/html' }, body: '<html>' };
const replaced: Script = () => {
  service.present('untrusted');
  return 'lost';
};
test.each([
  ['a proxy that waited too long', [{ ...page, status: 504 }]],
  ['a fault of the service', [fault]],
  ['half of the answer', [{ body: '{"state":"issued",' }]],
  ['an answer of another service', [{ body: {} }]],
  ['a state that does not exist', [{ body: { ...issued, state: 'approved' } }]],
  ['a page that is not there, after a lost answer', ['lost', { ...page, status: 404 }]],
  [
    'a refusal, after a lost answer',
    ['lost', { status: 403, body: { code: 'forbidden', detail: 'x', requestId: 'r' } }],
  ],
  ['an answer of another service, after a lost one', ['lost', { body: 'null' }]],
  ['a certificate that is not trusted, after a lost answer', [replaced]],
] as const)('a sign-in may have its token when it ends by %s', async (_, answers) => {
  service.script({ body: started }, ...answers);
  try {
    await expect(dke('login')).rejects.toMatchObject({
      exitClass: 'may-exist',
      hint: expect.stringContaining('what was to be created may exist'),
    });
  } finally {
    service.present('own');
  }
  expect(readFileSync(sessionFile(), 'utf8')).toBe(others);
});

test.each([
  ['there is none when it could be ended', { status: 204 }, 'permission'],
  ['it may exist when it could not', fault, 'may-exist'],
  ['it may exist when the service is away', 'lost' as const, 'may-exist'],
])('a token that cannot be kept: %s', async (_, ended, exitClass) => {
  const unkept: Script = () => {
    chmodSync(sessionFile(), 0o644);
    return { body: { ...issued, issued: { record: {}, token: 'dket_new' } } };
  };
  service.script({ body: started }, unkept, ended);
  await expect(dke('login')).rejects.toMatchObject({ exitClass });
  expect(service.requests.at(-1)).toMatchObject({ method: 'POST', path: '/api/device-sign-in/end' });
});

test('a token is kept next to the sign-ins at other services', async () => {
  service.script({ body: started }, { body: { ...issued, issued: { record: {}, token: 'dket_new' } } });
  await dke('login');
  expect(JSON.parse(readFileSync(sessionFile(), 'utf8'))).toEqual({
    ...JSON.parse(others),
    [service.url]: { user: 'ina', token: 'dket_new' },
  });
});

test.each([
  null,
  {},
  { ...started, deviceCode: 5 },
  { ...started, url: undefined },
  { ...started, intervalSeconds: undefined },
  { ...started, intervalSeconds: 1e9 },
])('a sign-in that does not begin as one is not waited for: %j', async (body) => {
  service.script({ body: body === null ? 'null' : body });
  await expect(dke('login')).rejects.toMatchObject({ exitClass: 'unreachable' });
  expect(service.requests).toHaveLength(1);
});

test.each([
  ['null', { body: 'null' }],
  ['an empty object', { body: {} }],
  ['a page', { headers: { 'content-type': 'text/html' }, body: '<html>' }],
  ['a page that is not there', { status: 404, headers: { 'content-type': 'text/html' }, body: '<html>' }],
  ['a state that does not exist', { body: { ...issued, state: 'approved' } }],
  ['no interval', { body: { state: 'pending' } }],
  ['an interval that is none', { body: { state: 'pending', intervalSeconds: -1 } }],
  ['a fault of the service', { status: 500, body: { code: 'internal', detail: 'x', requestId: 'r' } }],
])('an answer that no wait changes ends the sign-in: %s', async (_, script) => {
  service.script({ body: started }, script);
  await expect(dke('login')).rejects.toThrow();
  expect(service.requests).toHaveLength(2);
  expect(told).not.toContain('Waiting');
});

test('the person is told once that the command waits for the service', async () => {
  const away = { status: 503, body: { code: 'unavailable', detail: 'starts', requestId: 'r' } };
  const busy = { status: 429, body: { code: 'rate-limited', detail: 'too many requests', requestId: 'r' } };
  service.script({ body: started }, away, 'lost', busy, away, { body: { state: 'refused' } });
  await expect(dke('login')).rejects.toMatchObject({ exitClass: 'denied', message: 'the sign-in was refused' });
  expect(service.requests).toHaveLength(6);
  expect(told.match(/Waiting/g)).toHaveLength(1);
  expect(told).toContain('Waiting: starts');
});

test('a lost connection passes; a certificate that is not trusted does not', async () => {
  const address = { url: service.url, ca: service.ca, timeoutMs: undefined };
  const ask = (place: typeof address) => callOnce(place, operations.deviceSignIn.poll, Buffer.from('{}'), {}, {});
  service.script('lost');
  await expect(ask(address)).rejects.toMatchObject({ exitClass: 'unreachable', passes: true });
  await expect(ask({ ...address, url: 'https://127.0.0.1:1' })).rejects.toMatchObject({ passes: true });
  const other = await openScriptedService();
  await expect(ask({ ...address, ca: other.ca })).rejects.toMatchObject({ exitClass: 'unreachable', passes: false });
  await other.close();
});
