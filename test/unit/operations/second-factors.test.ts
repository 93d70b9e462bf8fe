// Second factors over the real store and addon: one-time passwords, recovery codes, tokens of one's
// own.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { ServiceErrorCode } from '../../../server/base/service-error.ts';
import type { SessionCaller, StartedSession } from '../../../server/operations/people/people-operations.ts';
import { administrator, auditKindsOf, type OpenedService, openTestService } from '../../support/open-service.ts';
import { bytesOf, errorOf, everything, goodPassword, makeUser, originOf } from '../../support/people.ts';
import { queryStored } from '../../support/test-store.ts';
import { codeOf } from '../../support/totp.ts';

let opened: OpenedService;
beforeAll(async () => {
  // The time is fixed, so no code expires between its creation and its check.
  vi.useFakeTimers({ toFake: ['Date'] });
  opened = await openTestService();
});
afterAll(async () => {
  vi.useRealTimers();
  await opened.remove();
});

const signIn = (name: string) => opened.operations.signIn.byPassword(name, bytesOf(goodPassword), originOf());
const enrol = async (caller: SessionCaller): Promise<{ secret: string; id: string; session: StartedSession }> => {
  const { id, secret } = await opened.operations.factors.begin(caller, 'phone');
  const text = secret.toString();
  const session = await opened.operations.factors.confirm(caller, id, bytesOf(codeOf(text, -1)), originOf());
  return { secret: text, id, session };
};
const give = (caller: SessionCaller, code: string) =>
  opened.operations.signIn.secondFactor(caller, { code: bytesOf(code) }, originOf());

describe('one-time passwords', () => {
  test('who has to make one may do so and nothing else; then the session is complete, under a new value', async () => {
    const { user, session } = await makeUser(opened.operations, 'ada', 'key-manager');
    expect(session.missing).toBe('enrolment');
    const enrolled = await enrol(session);
    expect(enrolled.session).toMatchObject({ missing: null, grants: [{ role: 'key-manager' }] });
    expect(enrolled.session.value).not.toBe(session.value);
    expect(await errorOf(opened.operations.sessions.authenticate(session.value, 'r', null))).toBe('unauthenticated');
    expect(await auditKindsOf(opened, user.id)).toContain('second-factor.added');

    const again = await signIn('ada');
    expect(again).toMatchObject({ missing: 'second-factor', grants: [] });
    expect(await errorOf(give(again, '000000'))).toBe('unauthenticated');
    const complete = await give(again, codeOf(enrolled.secret, 0));
    expect(complete.missing).toBeNull();
  });
  test('a code counts once, and a neighbour again', async () => {
    const { session } = await makeUser(opened.operations, 'bert', 'key-manager');
    const { secret } = await enrol(session);
    const code = codeOf(secret, 0);
    await give(await signIn('bert'), code);
    const caller = await signIn('bert');
    for (const wrong of [code, codeOf(secret, -1), codeOf(secret, 5)])
      expect(await errorOf(give(caller, wrong))).toBe('unauthenticated');
    expect((await give(caller, codeOf(secret, 1))).missing).toBeNull();
  });
  test.each(['counter', 'name'])(
    'of a row whose %s was changed beside the service is asked for, and its codes are refused',
    async (column) => {
      const change = column === 'counter' ? 'counter = counter - 2' : "name = 'tablet'";
      const { user, session } = await makeUser(opened.operations, `lea-${column}`, 'key-manager');
      const { secret, id } = await enrol(session);
      await queryStored(opened.folder, `update user_factors set ${change} where id = ?`, id);
      const caller = await signIn(user.name);
      // Not 'enrolment': another factor is accepted only after an administrator has removed this
      // one.
      expect(caller).toMatchObject({ missing: 'second-factor', grants: [] });
      expect(await errorOf(give(caller, codeOf(secret, 0)))).toBe('unauthenticated');
    },
  );
  test('two requests at once with one code: one of them', async () => {
    const { session } = await makeUser(opened.operations, 'carla', 'key-manager');
    const { secret } = await enrol(session);
    const callers = [await signIn('carla'), await signIn('carla')];
    const results = await Promise.allSettled(callers.map((caller) => give(caller, codeOf(secret, 0))));
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });
  test('wrong codes lock as wrong passwords do, and a right password between them clears nothing', async () => {
    const { session } = await makeUser(opened.operations, 'dora', 'key-manager');
    await enrol(session);
    const codes: ServiceErrorCode[] = [];
    // The password's own attempt counts until the second factor has been given.
    const callers = [await signIn('dora'), await signIn('dora')];
    for (const caller of [...callers, ...callers]) codes.push(await errorOf(give(caller, '000000')));
    expect(codes).toEqual(['unauthenticated', 'unauthenticated', 'unauthenticated', 'rate-limited']);
    expect(await errorOf(signIn('dora'))).toBe('rate-limited');
  });
  test('a password sign-in that runs at the same time as wrong codes takes no lock away', async () => {
    const { session } = await makeUser(opened.operations, 'doro', 'key-manager');
    await enrol(session);
    const caller = await signIn('doro');
    let guesses = 0;
    for (let round = 0; round < 20; round += 1) {
      const [, code] = await Promise.all([signIn('doro').catch(() => undefined), errorOf(give(caller, '000000'))]);
      if (code === 'unauthenticated') guesses += 1;
    }
    expect(guesses).toBeLessThan(5);
  });
  test('the secret is in the database as a sealed record alone', async () => {
    const { session } = await makeUser(opened.operations, 'emil', 'key-manager');
    const { secret, id } = await enrol(session);
    const factors = JSON.stringify(await queryStored(opened.folder, 'select * from user_factors'));
    const [record] = await queryStored(opened.folder, 'select record from key_records where object_id = ?', id);
    expect(factors).not.toContain(secret);
    expect(record?.record).toBeInstanceOf(Uint8Array);
  });
  test('the last one stays if the roles require one; others can be removed with their record', async () => {
    const { session } = await makeUser(opened.operations, 'frida', 'key-manager');
    const first = await enrol(session);
    const { factors } = opened.operations;
    expect(await errorOf(factors.remove(first.session, first.id))).toBe('conflict');
    const second = await enrol(first.session);
    await factors.remove(second.session, first.id);
    const [gone] = await queryStored(opened.folder, 'select record from key_records where object_id = ?', first.id);
    expect(gone?.record).toBeNull();
  });
  test('with the last one goes what was begun next to it, and its record', async () => {
    const { session } = await makeUser(opened.operations, 'ines', 'auditor');
    const { factors } = opened.operations;
    const { session: enrolled, id } = await enrol(session);
    const begun = await factors.begin(enrolled, 'tablet');
    await factors.remove(enrolled, id);
    expect(await queryStored(opened.folder, 'select id from user_factors where id = ?', begun.id)).toEqual([]);
    const [gone] = await queryStored(opened.folder, 'select record from key_records where object_id = ?', begun.id);
    expect(gone?.record).toBeNull();
  });
  test('an administrator removes the factors of a person who has lost them; the next sign-in makes new ones', async () => {
    const { user, session } = await makeUser(opened.operations, 'gerd', 'key-manager');
    const enrolled = await enrol(session);
    await opened.operations.users.removeFactors(administrator, everything, user.id);
    expect(await errorOf(opened.operations.sessions.authenticate(enrolled.session.value, 'r', null))).toBe(
      'unauthenticated',
    );
    expect((await signIn('gerd')).missing).toBe('enrolment');
  });
  test('whose roles change nothing is asked only once there is one', async () => {
    const { session } = await makeUser(opened.operations, 'hanna', 'auditor');
    expect(session.missing).toBeNull();
    await enrol(session);
    expect((await signIn('hanna')).missing).toBe('second-factor');
  });
});

describe('recovery codes', () => {
  test('ten, each good once, however it is typed; new ones take the place of the old', async () => {
    const { session } = await makeUser(opened.operations, 'ida', 'key-manager');
    expect(await errorOf(opened.operations.factors.makeRecoveryCodes({ ...session, missing: null }))).toBe('conflict');
    const enrolled = await enrol(session);
    const codes = (await opened.operations.factors.makeRecoveryCodes(enrolled.session)).map(String);
    expect(new Set(codes).size).toBe(10);
    const [first = '', second = ''] = codes;
    const use = async (code: string) =>
      opened.operations.signIn.secondFactor(await signIn('ida'), { recoveryCode: bytesOf(code) }, originOf());
    const typed = first.toLowerCase().replaceAll(/(.{4})(?=.)/g, '$1-');
    expect((await use(typed)).missing).toBeNull();
    expect(await errorOf(use(first))).toBe('unauthenticated');
    await opened.operations.factors.makeRecoveryCodes(enrolled.session);
    expect(await errorOf(use(second))).toBe('unauthenticated');
  });
});

describe("a token of one's own", () => {
  test('does what its owner may, acts as the owner, and ends with them', async () => {
    const { user, session } = await makeUser(opened.operations, 'jan', 'auditor');
    const expiresAt = Date.now() + 3_600_000;
    const input = { name: 'laptop', expiresAt, grants: undefined };
    const { token, record } = await opened.operations.profile.createToken(session, input);
    expect(record).toMatchObject({ ownerId: user.id, grants: [{ role: 'auditor' }] });
    const { actor, grants } = await opened.operations.authenticateAdmin(token, 'r', null);
    expect(actor).toMatchObject({ kind: 'user', id: user.id, name: 'jan (token laptop)' });
    expect(grants).toHaveLength(1);
    const more = { ...input, grants: [{ role: 'administrator', scope: null }] as const };
    expect(await errorOf(opened.operations.profile.createToken(session, more))).toBe('validation');
    // A user's own token is valid for a year at most.
    const until = (days: number) => ({ ...input, name: `${days} days`, expiresAt: Date.now() + days * 86_400_000 });
    expect(await errorOf(opened.operations.profile.createToken(session, until(367)))).toBe('validation');
    expect((await opened.operations.profile.createToken(session, until(365))).record.ownerId).toBe(user.id);
    await opened.operations.users.disable(administrator, everything, user.id);
    expect(await errorOf(opened.operations.authenticateAdmin(token, 'r', null))).toBe('unauthenticated');
  });

  test('is listed for its owner alone, page by page, and revoked by its owner alone', async () => {
    const { profile, tokens } = opened.operations;
    const { user, session } = await makeUser(opened.operations, 'lotte', 'auditor');
    const { session: other } = await makeUser(opened.operations, 'other', 'auditor');
    const expiresAt = Date.now() + 3_600_000;
    const make = (by: typeof session, name: string) => profile.createToken(by, { name, expiresAt, grants: undefined });
    const first = await make(session, 'first');
    const foreign = await make(other, 'first');
    const second = await make(session, 'second');
    const page = await profile.tokens(session, { limit: 1 });
    expect(page.items.map(({ id }) => id)).toEqual([first.record.id]);
    const rest = await profile.tokens(session, { limit: 1, after: page.next ?? '' });
    expect(rest).toMatchObject({ items: [{ id: second.record.id }], next: null });
    expect((await tokens.list(administrator, { userId: user.id })).items).toHaveLength(2);
    expect(await errorOf(profile.revokeToken(session, foreign.record.id))).toBe('not-found');
    expect((await profile.revokeToken(session, first.record.id)).revokedAt).not.toBeNull();
    expect(await errorOf(opened.operations.authenticateAdmin(first.token, 'r', null))).toBe('unauthenticated');
    expect((await opened.operations.authenticateAdmin(foreign.token, 'r', null)).actor.id).not.toBe(user.id);
  });
});

test('a user ends all their other sessions, and keeps the present one', async () => {
  const { profile, signIn, sessions } = opened.operations;
  const { user, session } = await makeUser(opened.operations, 'many-places', 'auditor');
  const again = () => signIn.byPassword(user.name, bytesOf(goodPassword), originOf());
  const others = [await again(), await again()];
  const { session: unrelated } = await makeUser(opened.operations, 'unrelated', 'auditor');
  expect(await profile.endOtherSessions(session)).toBe(2);
  for (const { value } of others)
    expect(await errorOf(sessions.authenticate(value, 'r', null))).toBe('unauthenticated');
  expect((await profile.sessions(session, {})).items.map(({ id }) => id)).toEqual([session.sessionId]);
  expect((await profile.sessions(unrelated, {})).items).toHaveLength(1);
  expect(await profile.endOtherSessions(session)).toBe(0);
});

describe('what a user signs in with is changed by the user who signed in, lately', () => {
  const minute = 60_000;
  /** Later by the clock, for the length of some work. */
  const later = async <T>(minutes: number, work: () => Promise<T>): Promise<T> => {
    const now = Date.now();
    vi.setSystemTime(now + minutes * minute);
    try {
      return await work();
    } finally {
      vi.setSystemTime(now);
    }
  };
  const changes = (session: StartedSession): Readonly<Record<string, () => Promise<unknown>>> => {
    const { factors, passkeys } = opened.operations;
    return {
      begin: () => factors.begin(session, 'another'),
      confirm: () => factors.confirm(session, 'none', bytesOf('000000'), originOf()),
      remove: () => factors.remove(session, 'none'),
      'recovery codes': () => factors.makeRecoveryCodes(session),
      'begin a passkey': () => passkeys.beginNew(session),
      'add a passkey': () => passkeys.finishNew(session, 'key', {}, originOf()),
    };
  };

  test('a sign-in of more than fifteen minutes ago changes no factor', async () => {
    const { session } = await makeUser(opened.operations, 'late', 'auditor');
    for (const [name, change] of Object.entries(changes(session))) {
      expect([name, await later(15.1, () => errorOf(change()))]).toEqual([name, 'forbidden']);
      expect([name, await later(14.9, () => change().then(String, ({ code }) => code))]).not.toEqual([
        name,
        'forbidden',
      ]);
    }
  });
  test('a second factor and a new password continue the session: neither its end nor its sign-in moves', async () => {
    const { user, session } = await makeUser(opened.operations, 'steady', 'auditor');
    const { session: enrolled, secret } = await later(10, () => enrol(session));
    expect(enrolled.expiresAt).toBe(session.expiresAt);
    expect(await later(16, () => errorOf(opened.operations.factors.begin(enrolled, 'more')))).toBe('forbidden');
    const began = await signIn(user.name);
    const complete = await later(12, () => give(began, codeOf(secret, 0)));
    expect(complete.expiresAt).toBe(began.expiresAt);
    const changed = await later(20, () =>
      opened.operations.profile.changePassword(
        complete,
        bytesOf(goodPassword),
        bytesOf(`${goodPassword}!`),
        originOf(),
      ),
    );
    expect(changed.expiresAt).toBe(began.expiresAt);
    expect(await later(21, () => errorOf(opened.operations.factors.begin(changed, 'more')))).toBe('forbidden');
  });
  test('a session that began with a token of the user changes neither factors nor profile', async () => {
    const { user, session } = await makeUser(opened.operations, 'tokened', 'auditor');
    const { session: enrolled, id } = await enrol(session);
    const { profile, factors, sessions } = opened.operations;
    const given = { name: 'a program', expiresAt: Date.now() + minute, grants: undefined };
    const { token } = await profile.createToken(enrolled, given);
    const program = await sessions.startByToken(token, originOf());
    expect(program.actor.id).toBe(user.id);
    const next = bytesOf(`${goodPassword} of a program`);
    const all = {
      ...changes(program),
      'remove a factor': () => factors.remove(program, id),
      'see the profile': () => profile.get(program),
      'change the password': () => profile.changePassword(program, bytesOf(goodPassword), next, originOf()),
      'make another token': () => profile.createToken(program, given),
      'end a session': () => profile.endSession(program, enrolled.sessionId),
      'end the other sessions': () => profile.endOtherSessions(program),
      'see the tokens': () => profile.tokens(program, {}),
      'revoke a token': () => profile.revokeToken(program, 'any'),
    };
    for (const [name, change] of Object.entries(all))
      expect([name, await errorOf(change())]).toEqual([name, 'not-found']);
    expect(await profile.get(enrolled)).toMatchObject({ factors: [{ id }] });
  });
});
