// A user whose requests reach alternating nodes: each flow starts at one node and ends at the
// other, behind a load balancer without sticky sessions.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAuthenticator } from '../support/authenticator.ts';
import { startFleet, type TestFleet } from '../support/fleet.ts';
import { clientSecret, type OpenIdProvider, startOpenIdProvider } from '../support/open-id-provider.ts';
import { goodPassword } from '../support/people.ts';
import { codeOf } from '../support/totp.ts';

const publicUrl = 'https://localhost';
let folder: string;
let provider: OpenIdProvider;
let fleet: TestFleet;
let ca: Buffer;
/** The ports of the nodes that answered, in their order. */
let answeredBy: number[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dke-nodes-sign-in-'));
  const groups = new Map([['carla', ['dke-auditors']]]);
  provider = await startOpenIdProvider(folder, `${publicUrl}/api/session/openid/callback`, groups);
  const secretFile = join(folder, 'client-secret');
  writeFileSync(secretFile, `${clientSecret}\n`, { mode: 0o600 });
  const toml = [
    `[oidc]\nissuer = "${provider.issuer}"\nclient_id = "dke"\nclient_secret_file = "${secretFile}"\nca = "${provider.caFile}"`,
    'second_factor = "provider"\nrole_claim = "groups"\n[oidc.roles]\ndke-auditors = "auditor"\n',
  ].join('\n');
  fleet = await startFleet(['one', 'two'], { toml, publicUrl });
  ca = readFileSync(fleet.caFile);
});
afterAll(async () => {
  await fleet?.end();
  await provider?.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Answer {
  readonly status: number;
  readonly location: string | undefined;
  readonly body: Record<string, unknown>;
}
/**
 * A browser: keeps its cookies, and opens a connection for each request, which the balancer sends
 * to the next node.
 */
const openBrowser = (token?: string) => {
  const cookies = new Map<string, string>();
  /** `straightTo`: the port of a node, past the balancer. */
  const ask = (method: string, path: string, body?: object, straightTo?: number): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const ports = fleet.members.map(({ server }) => server.port);
      const port = straightTo ?? ports[answeredBy.length % ports.length] ?? 0;
      if (straightTo === undefined) fleet.balancer.use([port]);
      const sent = request(
        {
          host: '127.0.0.1',
          port: straightTo ?? fleet.balancer.port,
          path,
          method,
          ca,
          agent: false,
          headers: {
            host: 'localhost',
            origin: publicUrl,
            ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
            cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          },
        },
        (answer) => {
          answeredBy.push(port);
          for (const line of answer.headers['set-cookie'] ?? []) {
            const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
            cookies.set(name, value);
          }
          let text = '';
          answer.setEncoding('utf8').on('data', (part: string) => {
            text += part;
          });
          answer.on('error', reject).on('end', () =>
            resolve({
              status: answer.statusCode ?? 0,
              location: answer.headers.location,
              body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>),
            }),
          );
        },
      );
      sent.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body));
    });
  return {
    ask,
    /** One that must succeed. */
    call: async (method: string, path: string, body?: object): Promise<Record<string, unknown>> => {
      const answer = await ask(method, path, body);
      expect([path, answer.status < 300, answer.body]).toEqual([path, true, answer.body]);
      return answer.body;
    },
  };
};
/** Every request since the last look went to another node than the one before. */
const expectTurns = (): void => {
  expect(answeredBy.length).toBeGreaterThan(1);
  for (const [at, port] of answeredBy.entries()) expect(port).not.toBe(answeredBy[at - 1]);
};
const invite = async (name: string) => {
  const [member] = fleet.members;
  const made = await member?.api.call<{ invitation: { token: string } }>('POST', '/api/users', {
    name,
    grants: [{ role: 'key-manager', scope: null }],
  });
  const browser = openBrowser();
  await browser.call('POST', '/api/session/invitation', {
    invitation: made?.invitation.token,
    password: goodPassword,
  });
  return browser;
};

test('an invitation, a password and a one-time code', async () => {
  answeredBy = [];
  const joined = await invite('otto');
  const { id, secret } = await joined.call('POST', '/api/profile/totp', { name: 'phone' });
  await joined.call('POST', `/api/profile/totp/${id}/confirm`, { code: codeOf(String(secret)) });
  expect(await joined.call('GET', '/api/session')).toMatchObject({ name: 'otto', missing: null });
  const browser = openBrowser();
  const begun = await browser.call('POST', '/api/session', { user: 'otto', password: goodPassword });
  expect(begun).toMatchObject({ missing: 'second-factor' });
  const code = codeOf(String(secret), 1);
  await browser.call('POST', '/api/session/second-factor', { code });
  expect(await browser.call('GET', '/api/session')).toMatchObject({ name: 'otto', missing: null });
  // A code counts once, wherever it was used.
  const other = openBrowser();
  await other.call('POST', '/api/session', { user: 'otto', password: goodPassword });
  expect((await other.ask('POST', '/api/session/second-factor', { code })).status).toBe(401);
  expectTurns();
});

test('what counts once is given to both nodes at the same time: one of them takes it', async () => {
  /**
   * Sends one request from as many browsers as there are nodes, each at another node; returns the
   * browser whose request was accepted.
   */
  const atOnce = async (browsers: readonly ReturnType<typeof openBrowser>[], path: string, body: object) => {
    const asked = fleet.members.map(({ server }, at) => browsers[at]?.ask('POST', path, body, server.port));
    const statuses = (await Promise.all(asked)).map((answer) => answer?.status ?? 0);
    expect([path, statuses.map((status) => (status < 300 ? 'taken' : status)).sort()]).toEqual([path, [401, 'taken']]);
    return browsers[statuses.findIndex((status) => status < 300)] ?? openBrowser();
  };
  const two = () => fleet.members.map(() => openBrowser());
  for (const name of ['ruth', 'saul']) {
    const made = await apiOf(0).call<{ invitation: { token: string } }>('POST', '/api/users', {
      name,
      grants: [{ role: 'key-manager', scope: null }],
    });
    const invited = { invitation: made.invitation.token, password: goodPassword };
    const browser = await atOnce(two(), '/api/session/invitation', invited);
    const { id, secret } = await browser.call('POST', '/api/profile/totp', { name: 'phone' });
    await browser.call('POST', `/api/profile/totp/${id}/confirm`, { code: codeOf(String(secret)) });
    const { codes } = (await browser.call('POST', '/api/profile/recovery-codes')) as { codes: readonly string[] };
    // Not a code of the moment: on a slow machine its moment is over.
    for (const recoveryCode of codes.slice(0, 2)) {
      const begun = two();
      for (const each of begun) await each.call('POST', '/api/session', { user: name, password: goodPassword });
      await atOnce(begun, '/api/session/second-factor', { recoveryCode });
    }
  }
});

test('a session that an API token began ends with the token, at once and on every node', async () => {
  const { record, token } = await apiOf(0).call<{ record: { id: string }; token: string }>('POST', '/api/tokens', {
    name: 'for an hour',
    grants: [{ role: 'auditor', scope: null }],
    expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
  });
  const browser = openBrowser();
  await browser.call('POST', '/api/session', { token });
  const [one, two] = fleet.members.map(({ server }) => server.port);
  for (const port of [one, two]) expect((await browser.ask('GET', '/api/session', undefined, port)).status).toBe(200);
  // The other node has just believed the session, and asks for the token at each use.
  await apiOf(0).call('DELETE', `/api/tokens/${record.id}`);
  expect((await browser.ask('GET', '/api/session', undefined, two)).status).toBe(401);
  expect((await browser.ask('GET', '/api/session', undefined, one)).status).toBe(401);
});

test('a passkey is made, is a second factor, and signs in on its own', async () => {
  answeredBy = [];
  const authenticator = createAuthenticator(publicUrl);
  type Question = { readonly challenge: string; readonly user: { readonly id: string } };
  const questionOf = async (browser: ReturnType<typeof openBrowser>, path: string): Promise<Question> =>
    (await browser.call('POST', path)).options as Question;
  const joined = await invite('petra');
  const made = authenticator.make(await questionOf(joined, '/api/profile/passkeys/options'));
  await joined.call('POST', '/api/profile/passkeys', { name: 'laptop', answer: made });
  const second = openBrowser();
  await second.call('POST', '/api/session', { user: 'petra', password: goodPassword });
  const passkey = authenticator.answer(await questionOf(second, '/api/session/second-factor/options'));
  await second.call('POST', '/api/session/second-factor', { passkey });
  expect(await second.call('GET', '/api/session')).toMatchObject({ name: 'petra', missing: null });
  const alone = openBrowser();
  const answer = authenticator.answer(await questionOf(alone, '/api/session/passkey/options'));
  await alone.call('POST', '/api/session/passkey', { answer });
  expect(await alone.call('GET', '/api/session')).toMatchObject({ name: 'petra', missing: null });
  // A question is answered once, at whichever node.
  for (const _ of fleet.members)
    expect((await openBrowser().ask('POST', '/api/session/passkey', { answer })).status).toBe(401);
  expectTurns();
});

test('the way to an OpenID provider and back', async () => {
  answeredBy = [];
  const browser = openBrowser();
  const { url } = await browser.call('POST', '/api/session/openid');
  const { pathname, search } = new URL(await provider.signIn(String(url), 'carla'));
  expect(await browser.ask('GET', `${pathname}${search}`)).toMatchObject({ status: 303, location: '/' });
  expect(await browser.call('GET', '/api/session')).toMatchObject({ name: 'carla' });
  expect(await browser.ask('GET', `${pathname}${search}`)).toMatchObject({ location: '/?refused=unauthenticated' });
  expectTurns();
});

/** The answer of each node, one after the other. */
const atEach = async ({ ask }: ReturnType<typeof openBrowser>): Promise<readonly number[]> => {
  const statuses: number[] = [];
  for (const _ of fleet.members) statuses.push((await ask('GET', '/api/session')).status);
  return statuses;
};
/** The next request of a browser goes to this node. */
const goTo = (index: number): void => {
  answeredBy = Array.from({ length: index }, () => 0);
};
const apiOf = (index: number) => {
  const member = fleet.members[index];
  if (member === undefined) throw new Error('there is no such node');
  return member.api;
};

test('the key of sessions is rotated at one node: sessions end at both, and those that start at the other one are valid at both', async () => {
  goTo(0);
  const before = await invite('rosa');
  expect(await atEach(before)).toEqual([200, 200]);
  await apiOf(0).call('POST', '/api/sessions/rotate-key');
  // A look-up is believed for a second.
  await expect.poll(() => atEach(before), { timeout: 60_000 }).toEqual([401, 401]);
  for (const index of [1, 0]) {
    goTo(index);
    const after = openBrowser();
    await after.call('POST', '/api/session', { user: 'rosa', password: goodPassword });
    expect(await atEach(after)).toEqual([200, 200]);
  }
  expect(await atEach(before)).toEqual([401, 401]);
});

test('the key of API tokens is rotated at one node: tokens are valid at both, until the former key ends', async () => {
  const make = async (index: number, name: string) => {
    const body = { name, grants: [{ role: 'auditor', scope: null }] };
    return openBrowser((await apiOf(index).call<{ token: string }>('POST', '/api/tokens', body)).token);
  };
  const [used, unused] = [await make(0, 'used'), await make(1, 'unused')];
  await apiOf(1).call('POST', '/api/tokens/rotate-key', {});
  // Node one meets the new key when it creates a token, and the token of the former key after that.
  goTo(0);
  const made = await make(0, 'made since');
  for (const each of [made, used]) expect(await atEach(each)).toEqual([200, 200]);
  await expect(apiOf(0).call('POST', '/api/tokens/end-former-key', {})).rejects.toThrow('unused');
  expect(await apiOf(0).call('POST', '/api/tokens/end-former-key', { force: true })).toEqual({
    tokensEnded: 1,
    tokensLeft: 0,
  });
  for (const index of [0, 1]) {
    goTo(index);
    expect(await atEach(unused)).toEqual([401, 401]);
    for (const each of [made, used]) expect(await atEach(each)).toEqual([200, 200]);
  }
  // A token that a node has only under its former key, and the token of the caller: both are still
  // found.
  await apiOf(0).call('POST', '/api/tokens/rotate-key', {});
  goTo(1);
  expect(await atEach(used)).toEqual([200, 200]);
});

test('a command that asks at one node, is approved at the other, and takes its token once at both', async () => {
  const made = await apiOf(0).call<{ invitation: { token: string } }>('POST', '/api/users', {
    name: 'vera',
    grants: [{ role: 'auditor', scope: null }],
  });
  const person = openBrowser();
  await person.call('POST', '/api/session/invitation', { invitation: made.invitation.token, password: goodPassword });
  const command = openBrowser();
  const { deviceCode, userCode } = await command.call('POST', '/api/device-sign-in', { host: 'build-7' });
  const ports = fleet.members.map(({ server }) => server.port);
  for (const port of ports)
    expect((await command.ask('POST', '/api/device-sign-in/token', { deviceCode }, port)).body.state).toBe('pending');
  expect((await person.ask('POST', '/api/device-sign-in/find', { userCode }, ports[1])).body.host).toBe('build-7');
  await person.call('POST', '/api/device-sign-in/approve', { userCode, hours: 1 });
  const answers = await Promise.all(
    ports.map((port) => openBrowser().ask('POST', '/api/device-sign-in/token', { deviceCode }, port)),
  );
  expect(answers.map(({ body }) => body.state).sort()).toEqual(['expired', 'issued']);
  const issued = answers.find(({ body }) => body.state === 'issued')?.body.issued as { readonly token: string };
  for (const port of ports)
    expect((await openBrowser(issued.token).ask('GET', '/api/session', undefined, port)).status).toBe(200);
});
