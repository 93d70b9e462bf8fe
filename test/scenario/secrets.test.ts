// Canaries: all jobs in one run with known secrets, then a search for them wherever they must not
// be. Files, logs, standard output, process lists, environments, answers of the API, and the
// JavaScript heaps of server and agent.
//
// Bearer credentials are JavaScript strings, because Node's HTTP parser creates them; heaps are
// searched for all others.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RegisteredApplication } from '../../server/contract/api/tde-applications-routes.ts';
import { type AgentProcess, startAgent } from '../support/agent-process.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import type { Database } from '../support/database.ts';
import { until } from '../support/host.ts';
import { type Site, startSite } from '../support/site.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';

const zeroIv = '00'.repeat(16);
const canary = (): Buffer => randomBytes(32);

/** Secrets that are bytes, and secrets that are text. */
const bytes = {
  'an imported token key': canary(),
  'an imported session key': canary(),
  'a data key that was wrapped': canary(),
  'a data key that was sent where it does not belong': canary(),
  'a plaintext of the cloud': canary(),
  'the value of a private data object': canary(),
};
const texts: Record<string, string> = {
  'a PIN': `pin-${canary().toString('hex')}`,
  'a token that is none': `dket_${canary().toString('base64url')}`,
};
/** What the heaps may hold: credentials that came in headers and addresses. */
const bearers = new Set<string>();

/** A secret in the forms in which it could have been written down. */
const forms = (secret: Buffer): readonly Buffer[] => {
  const hex = secret.toString('hex');
  return [
    secret,
    Buffer.from(hex),
    Buffer.from(hex.toUpperCase()),
    // Base64 of any alignment shares these inner characters.
    Buffer.from(secret.toString('base64').slice(0, 42)),
    Buffer.from(secret.toString('base64url').slice(0, 42)),
    Buffer.from([...secret].join(',')),
  ];
};
const secrets = (): ReadonlyMap<string, readonly Buffer[]> =>
  new Map([
    ...Object.entries(bytes).map(([name, secret]) => [name, forms(secret)] as const),
    ...Object.entries(texts).map(([name, text]) => [name, forms(Buffer.from(text))] as const),
  ]);
/** The names of the secrets that a text or a file holds. */
const held = (content: Buffer | string, among = secrets()): readonly string[] => {
  const haystack = typeof content === 'string' ? Buffer.from(content) : content;
  return [...among].filter(([, needles]) => needles.some((needle) => haystack.includes(needle))).map(([name]) => name);
};
const filesBelow = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile());

/** Takes what OpenTelemetry sends. */
const exported: Buffer[] = [];
const receiver = createServer(async (incoming, outgoing) => {
  exported.push(Buffer.concat(await incoming.toArray()));
  outgoing.writeHead(200, { 'content-type': 'application/json' }).end('{}');
});

let site: Site;
let agent: AgentProcess;
let database: Database;
let application: RegisteredApplication;
let endpoint: XksEndpoint;
const answers: string[] = [];

const list = async (path: string): Promise<void> => {
  const { status, text } = await site.api.send('GET', path);
  expect(status, path).toBe(200);
  answers.push(text);
};
const ok = async (answer: Promise<{ rv: string; handle?: number; data?: string }>) => {
  const given = await answer;
  expect(given.rv).toBe('CKR_OK');
  return given;
};

beforeAll(async () => {
  const NODE_OPTIONS = '--heapsnapshot-signal=SIGUSR2';
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const { port } = receiver.address() as AddressInfo;
  site = await startSite({
    toml:
      '[erasure]\ngather_ms = 20\n[log]\nlevel = "debug"\n[access_log]\nfile = "access.log"\n' +
      `[telemetry]\nendpoint = "http://127.0.0.1:${port}"\nmetrics_seconds = 1\n`,
    environment: { NODE_OPTIONS },
    inFolder: true,
  });
  agent = await startAgent(site.folder, {
    environment: { NODE_OPTIONS, DKE_AGENT_LOG_DIR: site.logDirectory },
    inFolder: true,
  });
  texts['the first administrator token'] = site.token;

  // The database's job.
  application = await registerApplication(site.api, 'erp', await createGroup(site.api, 'finance'));
  texts['an access_guid'] = application.accessGuid;
  const path = `/api/tde/applications/${application.application.id}`;
  const rotated = await site.api.call<RegisteredApplication>('POST', `${path}/access-guids`);
  texts['a second access_guid'] = rotated.accessGuid;
  const config = site.config('pkcs11', application, 'log_level = "debug"\n');
  database = site.database(config);
  await ok(database.call('open', { pin: texts['a PIN'] ?? '' }));
  const hex = (name: keyof typeof bytes): string => bytes[name].toString('hex');
  const master = (await ok(database.call('generate', { label: 'MASTER' }))).handle ?? 0;
  const imported =
    (await ok(database.call('import', { label: 'IMPORTED', value: hex('an imported token key') }))).handle ?? 0;
  const session =
    (await ok(database.call('import', { label: 'session', value: hex('an imported session key'), token: false })))
      .handle ?? 0;
  for (const handle of [master, imported, session]) {
    const plain = hex('a data key that was wrapped');
    const { data = '' } = await ok(database.call('encrypt', { handle, iv: zeroIv, data: plain }));
    expect((await ok(database.call('decrypt', { handle, iv: zeroIv, data }))).data).toBe(plain);
  }
  await ok(database.call('createData', { label: 'DATA', value: hex('the value of a private data object') }));
  // Calls that fail, with the secret in a place where an error message could repeat it.
  const misplaced = hex('a data key that was sent where it does not belong');
  expect((await database.call('import', { label: 'BAD', value: `${misplaced}00` })).rv).not.toBe('CKR_OK');
  expect((await database.call('encrypt', { handle: master, iv: zeroIv, data: `${misplaced}00` })).rv).toBe(
    'CKR_DATA_LEN_RANGE',
  );
  expect((await database.call('decrypt', { handle: 999_999, iv: zeroIv, data: misplaced })).rv).toBe(
    'CKR_KEY_HANDLE_INVALID',
  );
  expect((await database.call('attribute', { handle: imported, name: 'VALUE' })).rv).toBe('CKR_ATTRIBUTE_SENSITIVE');

  // The cloud's job.
  endpoint = await createXksEndpoint(site, 'cloud');
  texts['a secret access key'] = endpoint.configuration.XksProxyAuthenticationCredential.RawSecretAccessKey;
  const sealed = await endpoint.encrypt(bytes['a plaintext of the cloud']);
  expect(sealed.status).toBe(200);
  expect((await endpoint.decrypt(sealed.body)).status).toBe(200);
  expect((await endpoint.decrypt({ ...sealed.body, authenticationTag: 'AAAAAAAAAAAAAAAAAAAAAA==' })).status).toBe(400);

  // The administrator's operations, and their errors.
  const made = await site.api.call<{ token: string }>('POST', '/api/tokens', {
    name: 'second',
    grants: [{ role: 'auditor', scope: null }],
  });
  texts['a second administrator token'] = made.token;
  const wrong = texts['a token that is none'] ?? '';
  await site.api.send('GET', '/api/vaults', undefined, { authorization: `Bearer ${wrong}` });
  await site.api.send('GET', `/api/vaults?token=${wrong}`);
  await site.api.send('POST', '/api/vaults', { name: 'x', token: wrong });
  await site.api.send('POST', '/api/session', { token: wrong });
  await site.api.send('POST', '/api/session', { token: made.token });
  await site.api.send('GET', `/tde/v1/${application.accessGuid}/erp/info`);
  await site.api.send('POST', `/tde/v1/${application.accessGuid}/erp/nothing`, {});
  for (const text of [site.token, made.token, wrong, application.accessGuid, rotated.accessGuid]) bearers.add(text);

  // A key is destroyed, so that an erasure run processes everything.
  await ok(database.call('destroy', { handle: master }));
  await until('the erasure run', async () =>
    (await site.api.audit('kind=erasure.finished')).length > 0 ? true : undefined,
  );
  const keyId = endpoint.endpoint.keyId;
  for (const each of [
    '/api/status',
    '/api/vaults',
    '/api/keys',
    `/api/keys/${keyId}`,
    `/api/keys/${keyId}/versions`,
    '/api/tde/groups',
    '/api/tde/applications',
    path,
    `${path}/access-guids`,
    `${path}/instances`,
    `${path}/master-keys`,
    '/api/endpoints',
    `/api/endpoints/${endpoint.endpoint.id}`,
    '/api/tokens',
    '/api/openapi.json',
  ])
    await list(each);
  await until('the request log', async () => {
    const log = await site.api.send('GET', `/api/endpoints/${endpoint.endpoint.id}/requests?limit=1000`);
    answers.push(log.text);
    return (JSON.parse(log.text) as { items: unknown[] }).items.length >= 3 ? true : undefined;
  });
  await list('/api/audit?limit=1000');
});
afterAll(async () => {
  await site.end();
  await agent.stop();
  receiver.closeAllConnections();
  receiver.close();
});

test('the search finds what is there: the credential in pkcs11.toml, the token in its one line', () => {
  expect(held(readFileSync(join(site.folder, 'pkcs11.toml')))).toEqual(['an access_guid']);
  const lines = site.server.output().split('\n');
  expect(lines.filter((line) => held(line).length > 0)).toEqual([`administrator token (shown once): ${site.token}`]);
  for (const [name, secret] of Object.entries(bytes))
    for (const form of forms(secret)) expect(held(Buffer.concat([Buffer.from('...'), form]))).toEqual([name]);
});

describe('no secret is in', () => {
  test('any file of the data directory, while the server runs', () => {
    const files = filesBelow(site.server.dataDirectory);
    expect(files.map((path) => path.slice(site.server.dataDirectory.length + 1))).toEqual(
      expect.arrayContaining(['dke.db', 'dke.db-wal', 'root.key']),
    );
    for (const path of files) expect(held(readFileSync(path)), path).toEqual([]);
  });

  test('the server’s log, at its most talkative', () => {
    expect(site.server.log()).toMatch(/"level":20/);
    expect(held(site.server.log())).toEqual([]);
  });

  test('the access log, which has a line for each kind of request', () => {
    const log = readFileSync(join(site.folder, 'access.log'), 'utf8');
    const fronts = new Set(
      log
        .split('\n')
        .slice(0, -1)
        .map((line) => (JSON.parse(line) as { front: string }).front),
    );
    expect([...fronts].sort()).toEqual(['api', 'tde', 'xks']);
    expect(held(log)).toEqual([]);
    // Nor what names a database or an endpoint in an address.
    expect(log).not.toContain(endpoint.endpoint.prefix);
  });

  test('what OpenTelemetry has sent', async () => {
    const all = (): string => Buffer.concat(exported).toString('utf8');
    await until('traces and metrics', async () =>
      ['/api/vaults', 'xks.answer', 'core.cipher', 'store.write', 'dke_healthy'].every((name) => all().includes(name))
        ? true
        : undefined,
    );
    expect(held(all())).toEqual([]);
  });

  test('the agent’s and the library’s logs, at their most talkative', () => {
    const files = filesBelow(site.logDirectory);
    expect(files).not.toEqual([]);
    expect(readFileSync(files[0] ?? '', 'utf8')).toMatch(/"level":20/);
    for (const path of files) expect(held(readFileSync(path)), path).toEqual([]);
    const library = join(site.folder, 'library.log');
    if (existsSync(library)) expect(held(readFileSync(library))).toEqual([]);
  });

  test('what the database process and the agent wrote on their standard streams', () => {
    expect(held(database.complaints())).toEqual([]);
  });

  test('the command line or the environment of any process', () => {
    for (const pid of [site.server.child.pid, agent.child.pid, database.pid])
      for (const file of ['cmdline', 'environ'])
        expect(held(readFileSync(`/proc/${pid}/${file}`)), `${file} of ${pid}`).toEqual([]);
  });

  test('any answer of the API: lists, details, request log, audit log', () => {
    expect(answers.length).toBeGreaterThan(15);
    for (const answer of answers) expect(held(answer), answer.slice(0, 200)).toEqual([]);
  });

  test.each(['server', 'agent'] as const)('the JavaScript heap of the %s', async (who) => {
    const child = who === 'server' ? site.server.child : agent.child;
    const before = new Set(readdirSync(site.folder));
    child.kill('SIGUSR2');
    const snapshot = await until('the heap snapshot', async () => {
      const name = readdirSync(site.folder).find((each) => each.endsWith('.heapsnapshot') && !before.has(each));
      if (name === undefined) return undefined;
      const text = readFileSync(join(site.folder, name));
      return text.subarray(-4).toString().trim().endsWith('}') ? text : undefined;
    });
    const others = new Map([...secrets()].filter(([name]) => !bearers.has(texts[name] ?? '')));
    expect(others.size).toBeGreaterThan(Object.keys(bytes).length);
    // The control: the agent keeps its credential, and the search finds it.
    if (who === 'agent') expect(held(snapshot)).toEqual(['an access_guid']);
    expect(held(snapshot, others)).toEqual([]);
  });

  test('any file of the data directory, when the server has stopped', async () => {
    expect(await site.stopServer()).toBe(0);
    for (const path of filesBelow(site.server.dataDirectory)) expect(held(readFileSync(path)), path).toEqual([]);
    expect(held(site.server.log())).toEqual([]);
  });
});
