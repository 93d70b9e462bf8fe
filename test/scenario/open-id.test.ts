// Signing in at a real OpenID provider (oidc-provider) over TLS with an authority of the test:
// people whose subject is registered, people whose claim gives them roles, and the refusals.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, fetch } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ServiceErrorCode } from '../../server/base/service-error.ts';
import type { Grant } from '../../server/domain/access.ts';
import type { TenantActor } from '../../server/domain/actor.ts';
import { makeAuthority } from '../support/authority.ts';
import { clientSecret, type OpenIdProvider, startOpenIdProvider } from '../support/open-id-provider.ts';
import { administrator, type OpenedService, openTestService } from '../support/open-service.ts';
import { everything, makeUser, originOf } from '../support/people.ts';
import { startSite } from '../support/site.ts';
import { codeOf } from '../support/totp.ts';

const callback = 'https://keys.example/api/session/openid/callback';
const groups = new Map([
  ['ada', ['dke-auditors', 'others']],
  ['nobody', ['others']],
]);

let folder: string;
let provider: OpenIdProvider;
let issuer: string;
let caFile: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dke-open-id-'));
  provider = await startOpenIdProvider(folder, callback, groups);
  ({ issuer, caFile } = provider);
  writeFileSync(join(folder, 'client-secret'), `${clientSecret}\n`, { mode: 0o600 });
});
afterAll(async () => {
  await provider.close();
  rmSync(folder, { recursive: true, force: true });
});

const open = (more: string): Promise<OpenedService> =>
  openTestService({
    toml: `[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n[oidc]\nissuer = "${issuer}"\nclient_id = "dke"\nclient_secret_file = "${join(folder, 'client-secret')}"\nca = "${caFile}"\n${more}`,
  });
const signIn = async ({ operations }: OpenedService, who: string) => {
  const { url, binding } = await operations.openId.begin();
  const returned = new URL(await provider.signIn(url, who));
  return operations.openId.finish(returned.search, binding, originOf());
};
const errorOf = async (work: Promise<unknown>): Promise<ServiceErrorCode> => {
  try {
    await work;
  } catch (error) {
    return (error as { code: ServiceErrorCode }).code;
  }
  throw new Error('it did not fail');
};

describe('people who are registered', () => {
  let opened: OpenedService;
  beforeAll(async () => {
    opened = await open('second_factor = "provider"\n');
    await opened.operations.users.create(administrator, everything, {
      name: 'carla',
      subject: 'carla',
      grants: [{ role: 'key-manager', scope: null }],
    });
  });
  afterAll(() => opened.remove());

  test('sign in by their subject, and the provider has asked for the second factor', async () => {
    const started = await signIn(opened, 'carla');
    expect(started).toMatchObject({ actor: { kind: 'user', name: 'carla' }, missing: null });
    const [session] = (await opened.operations.sessions.list(administrator, {})).items;
    expect(session).toMatchObject({ method: 'openid', proved: 2, holder: { name: 'carla' } });
  });
  test('no one else does', async () => {
    expect(await errorOf(signIn(opened, 'stranger'))).toBe('forbidden');
  });
  test('another browser, a second time, another state: none of them holds', async () => {
    const { openId } = opened.operations;
    const { url, binding } = await openId.begin();
    const { search } = new URL(await provider.signIn(url, 'carla'));
    const other = await openId.begin();
    expect(await errorOf(openId.finish(search, other.binding, originOf()))).toBe('unauthenticated');
    expect(await errorOf(openId.finish(search, binding, originOf()))).toBe('unauthenticated');
    expect(await errorOf(openId.finish('?state=x&code=y', binding, originOf()))).toBe('unauthenticated');
    const third = await openId.begin();
    const state = new URL(third.url).searchParams.get('state') ?? '';
    const forged = `?state=${encodeURIComponent(state)}&code=forged&iss=${encodeURIComponent(issuer)}`;
    expect(await errorOf(openId.finish(forged, third.binding, originOf()))).toBe('unauthenticated');
  });
  test('the browser is led: a cookie on the way out, a session on the way back', async () => {
    const front = createHttpServer((incoming, outgoing) => opened.service.handle(incoming, outgoing));
    await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
    const base = `http://127.0.0.1:${(front.address() as AddressInfo).port}`;
    const ways = await (await fetch(`${base}/api/sign-in`)).json();
    expect(ways).toEqual({ openId: 'single sign-on', passkeys: true });
    const begun = await fetch(`${base}/api/session/openid`, { method: 'POST' });
    const cookie = begun.headers.get('set-cookie') ?? '';
    expect(cookie).toMatch(/^__Host-dke-sign-in=[\w-]{43}; .*HttpOnly.*Secure.*SameSite=Lax/);
    const { url } = (await begun.json()) as { url: string };
    const { search } = new URL(await provider.signIn(url, 'carla'));
    const back = await fetch(`${base}/api/session/openid/callback${search}`, {
      redirect: 'manual',
      headers: { cookie: cookie.split(';')[0] ?? '' },
    });
    expect([back.status, back.headers.get('location')]).toEqual([303, '/']);
    expect(back.headers.getSetCookie().join('\n')).toMatch(/__Host-dke-session=[\w-]{43}; .*SameSite=Strict/);
    const refused = await fetch(`${base}/api/session/openid/callback?state=x`, { redirect: 'manual' });
    expect(refused.status).toBe(303);
    expect(refused.headers.get('location')).toMatch(/^\/\?refused=/);
    expect(refused.headers.getSetCookie().join('\n')).not.toContain('dke-session');
    front.closeAllConnections();
    await new Promise((resolve) => front.close(resolve));
  });
});

describe('people whose claim gives them roles', () => {
  let opened: OpenedService;
  beforeAll(async () => {
    opened = await open(
      'role_claim = "groups"\nscopes = "openid profile email"\n[oidc.roles]\ndke-auditors = "auditor"\ndke-keys = "key-manager"\n',
    );
  });
  afterAll(() => opened.remove());

  test('are users from their first sign-in on, with what the claim says at each', async () => {
    const first = await signIn(opened, 'ada');
    expect(first).toMatchObject({ actor: { name: 'ada' }, missing: null, grants: [{ role: 'auditor' }] });
    const user = await opened.operations.users.get(administrator, first.actor.id);
    expect(user).toMatchObject({
      subject: 'ada',
      displayName: 'Person ada',
      email: 'ada@example.com',
      hasPassword: false,
    });
    groups.set('ada', ['dke-keys']);
    const second = await signIn(opened, 'ada');
    // Users who can change resources need a second factor, and the provider reports none.
    expect(second).toMatchObject({ actor: { id: first.actor.id }, missing: 'enrolment' });
    expect(await errorOf(opened.operations.sessions.authenticate(first.value, 'r', null))).toBe('unauthenticated');
  });
  test('have new roles when their sign-in is complete, and no earlier', async () => {
    const { users, factors } = opened.operations;
    const rolesOf = async (id: string) => (await users.get(administrator, id)).grants.map(({ role }) => role);
    groups.set('noa', ['dke-keys']);
    const begun = await signIn(opened, 'noa');
    const { id } = begun.actor;
    expect(begun).toMatchObject({ missing: 'enrolment', grants: [] });
    expect(await rolesOf(id)).toEqual([]);
    // A later sign-in, with fewer roles, takes the place of one that is not finished.
    groups.set('noa', ['dke-auditors']);
    expect(await signIn(opened, 'noa')).toMatchObject({ missing: null, grants: [{ role: 'auditor' }] });
    expect(await errorOf(opened.operations.sessions.authenticate(begun.value, 'r', null))).toBe('unauthenticated');
    groups.set('noa', ['dke-keys', 'dke-auditors']);
    const again = await signIn(opened, 'noa');
    expect(again).toMatchObject({ missing: 'enrolment', grants: [] });
    expect(await rolesOf(id)).toEqual(['auditor']);
    const totp = await factors.begin(again, 'phone');
    const code = Buffer.from(codeOf(totp.secret.toString('latin1')));
    const complete = await factors.confirm(again, totp.id, code, originOf());
    expect(complete).toMatchObject({ missing: null, grants: [{ role: 'auditor' }, { role: 'key-manager' }] });
    expect((await rolesOf(id)).toSorted()).toEqual(['auditor', 'key-manager']);
    // With the new factor, added roles of the claim wait for it, and removed roles are removed
    // immediately.
    groups.set('noa', ['dke-keys']);
    expect(await signIn(opened, 'noa')).toMatchObject({ missing: 'second-factor' });
    expect(await rolesOf(id)).toEqual(['key-manager']);
  });
  test('are not a second user who looks like one: joiners, selectors, other widths and cases of a name', async () => {
    const { users } = opened.operations;
    groups.set('zoë', ['dke-auditors']);
    await signIn(opened, 'zoë');
    const names = async () =>
      (await users.list(administrator, { limit: 200 })).items.map(({ name }) => name).toSorted();
    const before = await names();
    for (const alike of [
      ...['\u200d', '\u200c', '\ufe0f', '\ufe00', '\u{e0100}', '\u00ad', '\u2060', '\u034f'].flatMap((unseen) => [
        `zoë${unseen}`,
        `z${unseen}oë`,
      ]),
      ...['zoe\u0308', 'ZOË', 'ｚｏë', 'zoë ', 'zo\u00a0ë'],
    ]) {
      groups.set(alike, ['dke-auditors']);
      expect([alike, await errorOf(signIn(opened, alike))]).toEqual([alike, 'forbidden']);
    }
    expect(await names()).toEqual(before);
  });
  test('no one is let in without one', async () => {
    expect(await errorOf(signIn(opened, 'nobody'))).toBe('forbidden');
  });
  test('lose roles, sessions and their own API tokens when the claim gives them none', async () => {
    groups.set('lea', ['dke-auditors']);
    const session = await signIn(opened, 'lea');
    const { id } = session.actor;
    const { token } = await opened.operations.profile.createToken(session, {
      name: 'of lea',
      expiresAt: Date.now() + 3_600_000,
      grants: [{ role: 'auditor', scope: null }],
    });
    groups.set('lea', []);
    expect(await errorOf(signIn(opened, 'lea'))).toBe('forbidden');
    expect((await opened.operations.users.get(administrator, id)).grants).toEqual([]);
    expect(await errorOf(opened.operations.sessions.authenticate(session.value, 'r', null))).toBe('unauthenticated');
    expect(await errorOf(opened.operations.authenticateAdmin(token, 'r', null))).toBe('unauthenticated');
    // Later roles do not bring the token back.
    groups.set('lea', ['dke-auditors']);
    await signIn(opened, 'lea');
    expect(await errorOf(opened.operations.authenticateAdmin(token, 'r', null))).toBe('unauthenticated');
  });
  test('have tokens that expire within a day', async () => {
    groups.set('kim', ['dke-auditors']);
    const session = await signIn(opened, 'kim');
    const { profile } = opened.operations;
    const day = 86_400_000;
    const grants = [{ role: 'auditor', scope: null }] as const;
    expect(
      await errorOf(profile.createToken(session, { name: 'long', expiresAt: Date.now() + day + 60_000, grants })),
    ).toBe('validation');
    const { record } = await profile.createToken(session, {
      name: 'short',
      expiresAt: Date.now() + day - 60_000,
      grants,
    });
    expect(record.expiresAt).toBeLessThan(Date.now() + day);
  });
  test('get no password and no passkey here, from no one', async () => {
    groups.set('mia', ['dke-auditors']);
    const session = await signIn(opened, 'mia');
    const { operations } = opened;
    const password = () => Buffer.from('a long sentence of mia');
    expect(await errorOf(operations.profile.changePassword(session, undefined, password(), originOf()))).toBe(
      'conflict',
    );
    expect(await errorOf(operations.passkeys.beginNew(session))).toBe('conflict');
    expect(await errorOf(operations.users.resetPassword(administrator, everything, session.actor.id))).toBe('conflict');
  });
  test('are not a user who was made for another person: with a tenant, or with a password', async () => {
    const { operations } = opened;
    groups.set('boss', ['dke-keys']);
    const tenant = await operations.tenants.create(administrator, { name: 'customer' });
    const inTenant: TenantActor = { ...administrator, tenantId: tenant.id, reach: tenant.id };
    const own: readonly Grant[] = [{ role: 'tenant-administrator', scope: null, tenantId: tenant.id }];
    const grants = [{ role: 'auditor', scope: null }] as const;
    const details = { displayName: 'Squatter', email: null, mustChangePassword: false, grants };
    // A tenant's administrator names no subject, neither at once nor later.
    expect(await errorOf(operations.users.create(inTenant, own, { name: 'squatter', subject: 'boss', grants }))).toBe(
      'forbidden',
    );
    const { user } = await operations.users.create(inTenant, own, { name: 'squatter', grants });
    const named = { ...details, subject: 'boss' };
    expect(await errorOf(operations.users.update(inTenant, own, user.id, named))).toBe('forbidden');
    // Not even an administrator of the platform can let a claim extend the permissions of such a
    // user.
    await operations.users.update({ ...administrator, tenantId: tenant.id }, everything, user.id, {
      ...named,
      grants: [{ role: 'auditor', scope: null, tenantId: tenant.id }],
    });
    expect(await errorOf(signIn(opened, 'boss'))).toBe('forbidden');
    expect((await operations.users.get(administrator, user.id)).grants).toMatchObject([
      { role: 'auditor', tenantId: tenant.id },
    ]);
    // A password that another user has been invited to choose, and one that was chosen.
    const { user: platform, session } = await makeUser(operations, 'platform');
    groups.set('platform-boss', ['dke-keys']);
    await operations.users.update(administrator, everything, platform.id, {
      ...details,
      subject: 'platform-boss',
      grants: session.grants,
    });
    expect(await errorOf(signIn(opened, 'platform-boss'))).toBe('forbidden');
    expect((await operations.users.get(administrator, platform.id)).grants).toMatchObject([{ role: 'auditor' }]);
  });
});

test('a provider that does not answer keeps no one else out, and says so', async () => {
  const opened = await openTestService({
    toml: '[memory]\nallow_unlocked = true\n[oidc]\nissuer = "https://localhost:9"\nclient_id = "dke"\n',
  });
  expect(await errorOf(opened.operations.openId.begin())).toBe('unavailable');
  await opened.remove();
});

test('an answer of the provider without an end is not read', async () => {
  const authority = makeAuthority(folder, 'endless provider');
  const { certificate, key } = authority.issue({
    commonName: 'localhost',
    names: ['DNS:localhost'],
    usage: 'serverAuth',
  });
  let written = 0;
  const server = createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, (_, outgoing) => {
    outgoing.writeHead(200, { 'content-type': 'application/json' });
    const more = (): void => {
      while (!outgoing.destroyed && outgoing.write('x'.repeat(65_536))) written += 65_536;
    };
    outgoing.on('drain', more);
    more();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const opened = await openTestService({
    toml: `[memory]\nallow_unlocked = true\n[oidc]\nissuer = "https://localhost:${port}"\nclient_id = "dke"\nca = "${authority.certificate}"\n`,
  });
  expect(await errorOf(opened.operations.openId.begin())).toBe('unavailable');
  expect(written).toBeLessThan(64 * 1024 * 1024);
  await opened.remove();
  server.closeAllConnections();
  server.close();
});

test('what the provider says about its refusal is in the log of the running service', async () => {
  const wrong = join(folder, 'another-secret');
  writeFileSync(wrong, 'another secret of the test, long enough\n', { mode: 0o600 });
  const site = await startSite({
    publicUrl: 'https://keys.example',
    toml: `[oidc]\nissuer = "${issuer}"\nclient_id = "dke"\nclient_secret_file = "${wrong}"\nca = "${caFile}"\n`,
  });
  try {
    const dispatcher = new Agent({ connect: { ca: readFileSync(site.server.caFile) } });
    const begun = await fetch(`${site.server.url}/api/session/openid`, { method: 'POST', dispatcher });
    const cookie = (begun.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
    const { url } = (await begun.json()) as { url: string };
    const { search } = new URL(await provider.signIn(url, 'carla'));
    const back = await fetch(`${site.server.url}/api/session/openid/callback${search}`, {
      ...{ dispatcher, redirect: 'manual' as const, headers: { cookie } },
    });
    // The words of the provider are for the log: they may be markup, or an instruction.
    expect(back.headers.get('location')).toBe('/?refused=unauthenticated');
    expect(site.server.log()).toMatch(/"error":"invalid_client","error_description":"client authentication failed"/);
    await dispatcher.close();
  } finally {
    await site.end();
  }
});
