// What an OpenID provider can answer, from a provider of the test that says exactly that: claims
// that it leaves out, tokens that others have signed, how a client authenticates, errors that come
// back with the browser, other names of the issuer, and its certificate.
import { createSign, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ServiceError } from '../../server/base/service-error.ts';
import { makeAuthority } from '../support/authority.ts';
import { administrator, type OpenedService, openTestService } from '../support/open-service.ts';
import { originOf } from '../support/people.ts';

type Claims = Readonly<Record<string, unknown>>;
const keys = {
  own: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  other: generateKeyPairSync('rsa', { modulusLength: 2048 }),
};
const base64url = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const signed = (claims: Claims, key: KeyObject): string => {
  const text = `${base64url({ alg: 'RS256', kid: 'one' })}.${base64url(claims)}`;
  return `${text}.${createSign('sha256').update(text).sign(key, 'base64url')}`;
};

let folder: string;
let caFile: string;
let server: Server;
let origin: string;
/** What the provider does, set by each test. */
let provider: { claims: Claims; signer: KeyObject; metadata: Claims; nonce: string; seen: string[] };
beforeEach(() => {
  provider = { claims: {}, signer: keys.own.privateKey, metadata: {}, nonce: '', seen: [] };
});
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dke-open-id-answers-'));
  writeFileSync(join(folder, 'secret'), 'a secret with / and +\n', { mode: 0o600 });
  const authority = makeAuthority(folder, 'provider authority');
  caFile = authority.certificate;
  const { certificate, key } = authority.issue({
    commonName: 'localhost',
    names: ['DNS:localhost'],
    usage: 'serverAuth',
  });
  server = createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, (incoming, outgoing) => {
    const path = incoming.url ?? '';
    const issuer = provider.metadata.issuer ?? `${origin}/staff`;
    const answerOf = (body: string): object => {
      if (path.includes('/.well-known/'))
        return {
          issuer,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
          jwks_uri: `${origin}/keys`,
          ...provider.metadata,
        };
      if (path === '/keys')
        return { keys: [{ ...keys.own.publicKey.export({ format: 'jwk' }), kid: 'one', use: 'sig', alg: 'RS256' }] };
      provider.seen.push(
        `${incoming.headers.authorization?.split(' ')[0] ?? 'body'}${/client_secret=/.test(body) ? ' secret' : ''}`,
      );
      const now = Math.floor(Date.now() / 1000);
      const claims = {
        iss: issuer,
        sub: 'eve',
        aud: 'dke',
        iat: now,
        exp: now + 300,
        nonce: provider.nonce,
        preferred_username: 'eve',
      };
      const idToken = signed({ ...claims, ...provider.claims }, provider.signer);
      return { access_token: 'x', token_type: 'bearer', expires_in: 300, id_token: idToken };
    };
    let body = '';
    incoming.on('data', (part) => {
      body += part;
    });
    incoming.on('end', () => {
      outgoing.writeHead(200, { 'content-type': 'application/json' });
      outgoing.end(JSON.stringify(answerOf(body)));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `https://localhost:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

const open = (more = '', issuer = `${origin}/staff`): Promise<OpenedService> =>
  openTestService({
    toml: `[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n[oidc]\nissuer = "${issuer}"\nclient_id = "dke"\nclient_secret_file = "${join(folder, 'secret')}"\n${more}`,
  });
const trusted = (): string => `ca = "${caFile}"\n`;
const claimed = 'role_claim = "groups"\nsecond_factor = "provider"\n[oidc.roles]\ndke-auditors = "auditor"\n';
const signIn = async ({ operations }: OpenedService, answer = 'code=c') => {
  const { url, binding } = await operations.openId.begin();
  const sent = new URL(url).searchParams;
  provider.nonce = sent.get('nonce') ?? '';
  return operations.openId.finish(`?${answer}&state=${sent.get('state')}`, binding, originOf());
};
const errorOf = async (work: Promise<unknown>): Promise<Pick<ServiceError, 'code' | 'message' | 'hint'>> => {
  try {
    await work;
  } catch (error) {
    return error as ServiceError;
  }
  throw new Error('it did not fail');
};

describe('a service that believes the claim', () => {
  let opened: OpenedService;
  beforeAll(async () => {
    opened = await open(`${trusted()}${claimed}`);
  });
  afterAll(() => opened.remove());

  test.each<readonly [string, Claims]>([
    ['absent', {}],
    [
      'left out, with the link of Entra ID',
      { _claim_names: { groups: 'src1' }, _claim_sources: { src1: { endpoint: 'https://graph.example/' } } },
    ],
    ['null', { groups: null }],
    ['an object', { groups: { dke: true } }],
  ])('a claim that is %s takes nothing away, and the sign-in is refused for that reason', async (_, left) => {
    provider.claims = { groups: ['dke-auditors'] };
    const session = await signIn(opened);
    const { token } = await opened.operations.profile.createToken(session, {
      name: `of eve ${JSON.stringify(left).length}`,
      expiresAt: Date.now() + 3_600_000,
      grants: [{ role: 'auditor', scope: null }],
    });
    provider.claims = left;
    const error = await errorOf(signIn(opened));
    expect([error.code, error.message]).toEqual([
      'forbidden',
      'the OpenID provider has not said which groups or roles you have',
    ]);
    expect((await opened.operations.users.get(administrator, session.actor.id)).grants).toMatchObject([
      { role: 'auditor' },
    ]);
    expect(await opened.operations.authenticateAdmin(token, 'r', null)).toBeDefined();
    expect(await opened.operations.sessions.authenticate(session.value, 'r', null)).toBeDefined();
  });
  test('a claim that is told to be empty does', async () => {
    provider.claims = { groups: ['dke-auditors'] };
    const { actor } = await signIn(opened);
    provider.claims = { groups: [] };
    expect((await errorOf(signIn(opened))).code).toBe('forbidden');
    expect((await opened.operations.users.get(administrator, actor.id)).grants).toEqual([]);
  });
  test.each<readonly [string, Claims, string, string | null]>([
    ['an address that is not verified', { email: 'admin@keys.example', email_verified: false }, 'subject-0', null],
    ['one that a text says is not', { email: 'root@keys.example', email_verified: 'false' }, 'subject-1', null],
    ['a verified address', { email: 'ina@keys.example', email_verified: true }, 'ina@keys.example', 'ina@keys.example'],
    [
      'one that a text says is',
      { email: 'ole@keys.example', email_verified: 'true' },
      'ole@keys.example',
      'ole@keys.example',
    ],
    ['a name that looks like another one', { preferred_username: 'adm\u0131n' }, 'subject-4', null],
    ['a name with a letter of another script', { preferred_username: '\u0430dmin' }, 'subject-5', null],
  ])('the name of a user who comes with %s', async (_, claims, name, email) => {
    const sub = /^subject/.test(name) ? name : `subject of ${name}`;
    provider.claims = { groups: ['dke-auditors'], preferred_username: undefined, sub, ...claims };
    const { actor } = await signIn(opened);
    expect(await opened.operations.users.get(administrator, actor.id)).toMatchObject({ name, email });
  });
  test('an ID token that another key has signed is not believed', async () => {
    provider.claims = { groups: ['dke-auditors'] };
    provider.signer = keys.other.privateKey;
    expect((await errorOf(signIn(opened))).code).toBe('unauthenticated');
  });
  test('an error that comes back with the browser is named', async () => {
    const denied = await errorOf(signIn(opened, 'error=access_denied&error_description=AADSTS50105'));
    expect(denied.message).toBe('the OpenID provider has refused the sign-in (access_denied)');
    expect(denied.hint).toContain('ask its administrators');
    // What it says in words may be markup, or an instruction to the reader: it is not repeated.
    const words = await errorOf(signIn(opened, 'error=access_denied&error_description=%3Cscript%3Ecall%20us'));
    expect([words.message, words.hint]).toEqual([denied.message, denied.hint]);
    const forged = await errorOf(signIn(opened, 'error=%3Cb%3E'));
    expect(forged.message).toBe('the sign-in with the OpenID provider failed');
  });
});

describe('how the service authenticates', () => {
  test.each<readonly [string, readonly string[] | undefined, string]>([
    ['lists nothing', undefined, 'Basic'],
    ['lists both', ['client_secret_post', 'client_secret_basic'], 'Basic'],
    ['lists the body alone', ['client_secret_post'], 'body secret'],
  ])('at a provider that %s', async (_, methods, expected) => {
    const opened = await open(`${trusted()}${claimed}`);
    provider.claims = { groups: ['dke-auditors'] };
    if (methods !== undefined) provider.metadata = { token_endpoint_auth_methods_supported: methods };
    await signIn(opened);
    expect(provider.seen).toEqual([expected]);
    await opened.remove();
  });
});

describe('a provider that is not found is told with its cause', () => {
  test('another name of the issuer: the slash at the end', async () => {
    const opened = await open(trusted(), `${origin}/staff/`);
    const error = await errorOf(opened.operations.openId.begin());
    expect(error.message).toBe(
      `the OpenID provider calls itself ${origin}/staff, and dke.toml calls it ${origin}/staff/`,
    );
    expect(error.hint).toContain('with or without the slash');
    await opened.remove();
  });
  test('a certificate that is not trusted', async () => {
    const opened = await open();
    const error = await errorOf(opened.operations.openId.begin());
    expect([error.code, error.message]).toEqual([
      'unavailable',
      expect.stringMatching(/certificate of the OpenID provider is not trusted \(\w+\)/),
    ]);
    expect(error.hint).toContain('set ca under [oidc]');
    await opened.remove();
  });
});
