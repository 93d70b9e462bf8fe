// `dke login` through the browser over the real store and addon: who decides what, once, and for
// how long.
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import type { Grant, Role } from '../../../server/domain/access.ts';
import { mostPending } from '../../../server/operations/people/device-sign-in.ts';
import type { StartedSession } from '../../../server/operations/people/people-operations.ts';
import { administrator, type OpenedService, openTestService } from '../../support/open-service.ts';
import { bytesOf, errorOf, everything, goodPassword, makeUser, originOf } from '../../support/people.ts';
import { queryStored } from '../../support/test-store.ts';

let opened: OpenedService;
let session: StartedSession;
let userId: string;
let users = 0;
beforeAll(async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  opened = await openTestService();
});
afterAll(async () => {
  vi.useRealTimers();
  await opened.remove();
});
const grant = (role: Role): Grant => ({ role, scope: null, tenantId: null });
beforeEach(async () => {
  users += 1;
  const made = await makeUser(opened.operations, `person-${users}`);
  [session, userId] = [made.session, made.user.id];
});

const device = () => opened.operations.deviceSignIn;
const start = () => device().start({ host: 'build-7' }, originOf());
const approve = (userCode: string, by = session, more: object = {}) =>
  device().approve(by, userCode, { hours: 8, ...more }, originOf());
const poll = (deviceCode: string) => device().poll(deviceCode, originOf());
const stateOf = async (deviceCode: string): Promise<string> => (await poll(deviceCode)).state;
const records = async (subjectId: string) => {
  const { items } = await opened.operations.audit.list(administrator, { subjectId, limit: 50 });
  return items.map(({ kind, actorName, details }) => ({ kind, actorName, details })).reverse();
};

test('a command gets a token of the person once they have approved it, and each step is in the audit log', async () => {
  const { deviceCode, userCode, url, completeUrl } = await start();
  expect([/^[A-Za-z0-9_-]{43}$/.test(deviceCode), userCode]).toEqual([
    true,
    expect.stringMatching(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/),
  ]);
  expect(completeUrl).toBe(`${url}#${userCode}`);
  expect(await stateOf(deviceCode)).toBe('pending');
  expect(await device().find(session, ` ${userCode.toLowerCase().replace('-', ' ')}`, originOf())).toMatchObject({
    host: 'build-7',
    roles: null,
    hours: 8,
  });
  await approve(userCode);
  const { state, issued } = await poll(deviceCode);
  expect([state, issued?.user, issued?.record.grants, issued?.record.ownerId]).toEqual([
    'issued',
    `person-${users}`,
    [grant('auditor')],
    userId,
  ]);
  expect(issued?.record.expiresAt).toBe(Date.now() + 8 * 3_600_000);
  const { actor } = await opened.operations.authenticateAdmin(issued?.token ?? '', 'r', null);
  expect([actor.kind, actor.id]).toEqual(['user', userId]);
  const kinds = (await records(userId)).map(({ kind }) => kind).filter((kind) => kind.startsWith('device'));
  expect(kinds).toEqual(['device-sign-in.approved', 'device-sign-in.issued']);
  expect((await records('sign-in')).at(-1)).toMatchObject({
    kind: 'device-sign-in.requested',
    details: { host: 'build-7' },
  });
  const whole = JSON.stringify([await records(userId), await records('sign-in')]);
  for (const secret of [deviceCode, userCode, issued?.token ?? '']) expect(whole).not.toContain(secret);
});

test('neither code nor token is in the database as it is', async () => {
  const { deviceCode, userCode } = await start();
  const rows = JSON.stringify(await queryStored(opened.folder, 'select * from sign_in_attempts'));
  expect(rows).toContain('build-7');
  for (const text of [deviceCode, userCode, userCode.replace('-', '')]) expect(rows).not.toContain(text);
});

test('a code counts once: for the person who decides, and for the command that takes the token', async () => {
  const { deviceCode, userCode } = await start();
  await approve(userCode);
  expect(await errorOf(approve(userCode))).toBe('not-found');
  expect(await errorOf(device().refuse(session, userCode, originOf()))).toBe('not-found');
  const { session: other } = await makeUser(opened.operations, `other-${users}`);
  expect(await errorOf(approve(userCode, other))).toBe('not-found');
  expect(await errorOf(device().find(other, userCode, originOf()))).toBe('not-found');
  const answers = await Promise.all(Array.from({ length: 8 }, () => poll(deviceCode)));
  expect(answers.map(({ state }) => state).sort()).toEqual([...Array(7).fill('expired'), 'issued']);
  expect(await stateOf(deviceCode)).toBe('expired');
  const { items } = await opened.operations.tokens.list(administrator, {});
  expect(items.filter(({ ownerId }) => ownerId === userId).length).toBe(1);
});

test('two people decide at once: one of them', async () => {
  const { userCode } = await start();
  const { session: other } = await makeUser(opened.operations, `twin-${users}`);
  const decisions = await Promise.allSettled([
    approve(userCode),
    approve(userCode, other),
    device().refuse(other, userCode, originOf()),
  ]);
  expect(decisions.filter(({ status }) => status === 'fulfilled').length).toBe(1);
});

test('a refusal gives nothing, and the command is told once', async () => {
  const { deviceCode, userCode } = await start();
  await device().refuse(session, userCode, originOf());
  expect([await stateOf(deviceCode), await stateOf(deviceCode)]).toEqual(['refused', 'expired']);
  expect((await records(userId)).at(-1)).toMatchObject({
    kind: 'device-sign-in.refused',
    details: { reason: 'by-person', host: 'build-7' },
  });
});

test('a code that expired, one that never was, and one of another form look the same', async () => {
  const { deviceCode, userCode } = await start();
  vi.setSystemTime(Date.now() + 10 * 60_000);
  const messages: string[] = [];
  for (const code of [userCode, 'BBBB-BBBB', '', '💥', 'x'.repeat(32)])
    messages.push(
      await approve(code).then(
        ({ host }) => host,
        (error: Error) => error.message,
      ),
    );
  expect(new Set(messages)).toEqual(new Set(['this code is not valid']));
  expect([await stateOf(deviceCode), await stateOf('A'.repeat(43))]).toEqual(['expired', 'expired']);
  expect((await records(userId)).at(-1)).toMatchObject({
    kind: 'device-sign-in.refused',
    details: { reason: 'unknown-code' },
  });
});

test('an approval needs a recent sign-in of a user, and roles that the user has', async () => {
  const { userCode } = await start();
  const administratorsGrant = { role: 'administrator', scope: null, tenantId: null } as const;
  expect(await errorOf(approve(userCode, session, { grants: [administratorsGrant] }))).toBe('validation');
  vi.setSystemTime(Date.now() + 16 * 60_000);
  const later = await start();
  expect(await errorOf(approve(later.userCode))).toBe('forbidden');
  const again = await opened.operations.signIn.byPassword(`person-${users}`, bytesOf(goodPassword), originOf());
  await approve(later.userCode, again);
  expect(await stateOf(later.deviceCode)).toBe('issued');
});

test.each([
  ['a role was taken away', () => change(['key-approver'])],
  ['the user was disabled', () => opened.operations.users.disable(administrator, everything, userId)],
  ['the user signed out', () => opened.operations.sessions.signOut(session.value, originOf())],
  ['the password was reset', () => opened.operations.users.resetPassword(administrator, everything, userId)],
])('an approval is over when %s before the token is issued', async (_, act) => {
  const { deviceCode, userCode } = await start();
  await approve(userCode);
  await act();
  expect([await stateOf(deviceCode), await stateOf(deviceCode)]).toEqual(['refused', 'expired']);
  const { items } = await opened.operations.tokens.list(administrator, {});
  expect(items.filter(({ ownerId }) => ownerId === userId)).toEqual([]);
  expect((await records('sign-in')).at(-1)).toMatchObject({ details: { reason: 'approval-ended' } });
});
const change = async (roles: readonly Role[]): Promise<unknown> => {
  const { displayName, email, subject, mustChangePassword } = await opened.operations.users.get(administrator, userId);
  const grants = roles.map((role) => ({ role, scope: null }));
  return opened.operations.users.update(administrator, everything, userId, {
    ...{ displayName, email, subject, mustChangePassword, grants },
  });
};

test.each(['data', 'expires_at', 'kind'])('a row whose %s was changed in the database is none', async (column) => {
  const { deviceCode, userCode } = await start();
  await approve(userCode);
  const to = { data: `replace(data, '"hours":8', '"hours":9')`, expires_at: 'expires_at + 1', kind: `'openid'` }[
    column
  ];
  await queryStored(opened.folder, `update sign_in_attempts set ${column} = ${to} where kind = 'device-code'`);
  expect(await stateOf(deviceCode)).toBe('expired');
});

test('who asks too early is slowed down', async () => {
  const { deviceCode } = await start();
  await poll(deviceCode);
  const answer = await poll(deviceCode);
  expect([answer.state, answer.intervalSeconds]).toEqual(['slow-down', 7]);
});

test('a token ends by its value, once; a token of a program and a foreign text stay as they are', async () => {
  const { deviceCode, userCode } = await start();
  await approve(userCode);
  const token = (await poll(deviceCode)).issued?.token ?? '';
  const { token: ofProgram } = await opened.operations.tokens.create(administrator, everything, {
    name: `program ${users}`,
    grants: [{ role: 'auditor', scope: null }],
  });
  for (const each of [token, token, ofProgram, 'dket_wrong', '']) await device().end(each, originOf());
  expect(await errorOf(opened.operations.authenticateAdmin(token, 'r', null))).toBe('unauthenticated');
  await opened.operations.authenticateAdmin(ofProgram, 'r', null);
});

test('a row that was put back after its token was revoked gives no second token', async () => {
  const { deviceCode, userCode } = await start();
  await approve(userCode);
  await queryStored(opened.folder, 'create table kept as select * from sign_in_attempts');
  const { issued } = await poll(deviceCode);
  await device().end(issued?.token ?? '', originOf());
  await queryStored(opened.folder, 'insert into sign_in_attempts select * from kept where true on conflict do nothing');
  await queryStored(opened.folder, 'drop table kept');
  const again = await poll(deviceCode);
  expect([again.state, again.issued]).toEqual(['expired', null]);
});

test('only so many requests wait at a time', async () => {
  await queryStored(opened.folder, `delete from sign_in_attempts`);
  const insert = `insert into sign_in_attempts (hash, kind, data, expires_at) values `;
  const rows = Array.from({ length: mostPending }, (_, at) => `('h${at}', 'user-code', '', ${Date.now() + 60_000})`);
  await queryStored(opened.folder, insert + rows.join(', '));
  expect(await errorOf(start())).toBe('rate-limited');
  vi.setSystemTime(Date.now() + 61_000);
  await start();
});
