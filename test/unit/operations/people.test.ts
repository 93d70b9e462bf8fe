// People over the real store, addon and Argon2id: invitations, passwords, sessions, lockout, who
// may manage whom.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { core } from '../../../addon/core.ts';
import { createPasswordHashes } from '../../../server/adapters/crypto/password-hashes.ts';
import { openStore } from '../../../server/adapters/store/store.ts';
import type { ServiceErrorCode } from '../../../server/base/service-error.ts';
import type { Grant, Role } from '../../../server/domain/access.ts';
import { acrossTenants, inTenant } from '../../../server/domain/actor.ts';
import { everyTenant } from '../../../server/domain/tenant.ts';
import { createStillAllowed, type StillAllowed } from '../../../server/fronts/api/credential-end.ts';
import { authenticateAdmin } from '../../../server/operations/access/manage-tokens.ts';
import { createMeter } from '../../../server/operations/data-path/meter.ts';
import { createAttempts } from '../../../server/operations/people/attempts.ts';
import { createClaimedRoles } from '../../../server/operations/people/claimed-roles.ts';
import { createLockout, failuresKey } from '../../../server/operations/people/lockout.ts';
import { createOpenIdOperations } from '../../../server/operations/people/open-id.ts';
import { createSessions } from '../../../server/operations/people/session-secrets.ts';
import type { IdentityProvider } from '../../../server/ports/identity.ts';
import type { PasswordHashes } from '../../../server/ports/people.ts';
import type { Ports } from '../../../server/ports/ports.ts';
import { folderOfTest } from '../../support/folders.ts';
import { administrator, auditKindsOf } from '../../support/open-service.ts';
import { bytesOf, everything, goodPassword, inviteUser, makeUser, originOf } from '../../support/people.ts';
import { restart, sharedService } from '../../support/shared.ts';
import { storedUser } from '../../support/stored.ts';
import { queryStored } from '../../support/test-store.ts';

const opened = sharedService();

const failing = async (work: Promise<unknown>): Promise<[ServiceErrorCode, string, string | undefined]> => {
  try {
    await work;
  } catch (error) {
    const { code, message, hint } = error as { code: ServiceErrorCode; message: string; hint?: string };
    return [code, message, hint];
  }
  throw new Error('it did not fail');
};
const codeOf = async (work: Promise<unknown>): Promise<ServiceErrorCode> => (await failing(work))[0];
const grant = (role: Role): Grant => ({ role, scope: null, tenantId: null });
const signIn = (name: string, password = goodPassword, from = originOf()) =>
  opened.operations.signIn.byPassword(name, bytesOf(password), from);
const authenticate = (value: string) => opened.operations.sessions.authenticate(value, 'call-2', null);

/** A store and what else a lockout needs, at a time that stands still. */
const openLockoutStore = async (more: object) => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-people-'));
  const clock = { now: () => 1_000, monotonic: () => 1_000 };
  const store = await openStore({
    path: join(folder, 'dke.db'),
    clock,
    authenticateRow: () => '',
    onFatal: () => undefined,
  });
  const ring = {
    hashToken: (purpose: string, text: string) => `${purpose} ${text}`,
    formerHashes: () => [],
    authenticateAttempt: (text: string) => `code of ${text}`,
    isFormerTokenHash: () => false,
    refreshHashKey: () => Promise.resolve(false),
    followHashKey: () => Promise.resolve(false),
  };
  const meter = createMeter(clock);
  const ports = { store, ring, clock, meter, usage: { refused: () => undefined }, ...more } as never as Ports;
  const remove = async (): Promise<void> => {
    await store.close();
    rmSync(folder, { recursive: true });
  };
  return { store, ports, remove };
};

describe('an invitation', () => {
  test('is good once, makes the password and signs the person in', async () => {
    const { operations } = opened;
    const { user, invitation } = await inviteUser(operations, 'Ada');
    expect(user).toMatchObject({ name: 'Ada', state: 'active', hasPassword: false });
    const started = await operations.signIn.redeem(invitation, bytesOf(goodPassword), originOf());
    expect(started).toMatchObject({ actor: { kind: 'user', id: user.id, name: 'Ada' }, missing: null });
    expect(await codeOf(operations.signIn.redeem(invitation, bytesOf(goodPassword), originOf()))).toBe(
      'unauthenticated',
    );
    expect((await signIn('ADA')).actor.id).toBe(user.id);
    expect(await auditKindsOf(opened, user.id)).toEqual(['user.created', 'invitation.issued', 'password.changed']);
  });
  test('the password is wiped, whatever comes of it', async () => {
    const { invitation } = await inviteUser(opened.operations, 'wiped');
    for (const text of ['short', goodPassword]) {
      const password = bytesOf(text);
      await opened.operations.signIn.redeem(invitation, password, originOf()).catch(() => undefined);
      expect(password.every((byte) => byte === 0)).toBe(true);
    }
  });
  test.each([
    ['too short', 'elevenchars'],
    ['too long', `${'x'.repeat(256)}y`],
    ['the user name', 'a.long.user.name'],
    ['one character', 'aaaaaaaaaaaaaaaa'],
    ['what everybody tries', 'Password123456'],
  ])('refuses a password that is %s', async (_, password) => {
    const name = 'A.Long.User.Name';
    const known = (await opened.operations.users.list(administrator, {})).items.find((each) => each.name === name);
    const { invitation } =
      known === undefined
        ? await opened.operations.users.create(administrator, everything, { name, grants: [grant('auditor')] })
        : await opened.operations.users.resetPassword(administrator, everything, known.id);
    const redeem = opened.operations.signIn.redeem(invitation?.token ?? '', bytesOf(password), originOf());
    expect(await codeOf(redeem)).toBe('validation');
  });
  test('a password may have twelve characters of any script, and blanks', async () => {
    const { invitation } = await inviteUser(opened.operations, 'unicode');
    await opened.operations.signIn.redeem(invitation, bytesOf('ключ в замке'), originOf());
    expect((await signIn('unicode', 'ключ в замке')).actor.name).toBe('unicode');
  });
});

describe('a password', () => {
  test('that is wrong, a user who is not there and one who is disabled get one answer', async () => {
    await makeUser(opened.operations, 'bert');
    const { user } = await makeUser(opened.operations, 'gone');
    await opened.operations.users.disable(administrator, everything, user.id);
    const answers = [
      await failing(signIn('bert', 'a wrong password, long')),
      await failing(signIn('nobody')),
      await failing(signIn('gone')),
    ];
    expect(new Set(answers.map(String)).size).toBe(1);
    expect(answers[0]?.[0]).toBe('unauthenticated');
  });
  test('an unknown name is in no record', async () => {
    await codeOf(signIn('this-was-a-password'));
    const { items } = await opened.operations.audit.list(administrator, { kind: 'sign-in.refused', limit: 1 });
    expect(items[0]).toMatchObject({ subjectId: 'sign-in', details: { reason: 'unknown-user' } });
    expect(JSON.stringify(items)).not.toContain('this-was-a-password');
  });
  test('is hashed once for every attempt, whether the user exists or not: timing reveals nothing', async () => {
    const asked: (string | null)[] = [];
    const hashes: PasswordHashes = {
      hash: () => Promise.reject(new Error('nothing is hashed here')),
      verify: async (_, stored) => {
        asked.push(stored);
        return 'wrong';
      },
    };
    const { createSignIn } = await import('../../../server/operations/people/sign-in.ts');
    const { ports, remove } = await openLockoutStore({ passwords: hashes });
    const { createSignInByPassword } = await import('../../../server/operations/people/sign-in-by-password.ts');
    const signIn = createSignIn(ports, undefined as never);
    const byPassword = createSignInByPassword(ports, { signIn, lockout: createLockout(ports) });
    for (const name of ['nobody', 'somebody']) await codeOf(byPassword(name, bytesOf('x'), originOf()));
    expect(asked).toEqual([null, null]);
    await remove();
  });
  test('takes the same work when there is no hash: the parameters are those of a real one', async () => {
    const parameters = { memory: 1024, passes: 1 };
    const hashes = createPasswordHashes(core, parameters);
    const stored = await hashes.hash(bytesOf(goodPassword), null);
    expect(stored).toMatch(/^\$argon2id\$v=19\$m=1024,t=1,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
    expect(await hashes.verify(bytesOf(goodPassword), stored, null)).toBe('holds');
    expect(await hashes.verify(bytesOf('another'), stored, null)).toBe('wrong');
    expect(await hashes.verify(bytesOf(goodPassword), null, null)).toBe('wrong');
    expect(await hashes.verify(bytesOf(goodPassword), 'not a hash', null)).toBe('wrong');
    expect(
      await createPasswordHashes(core, { memory: 2048, passes: 1 }).verify(bytesOf(goodPassword), stored, null),
    ).toBe('outdated');
  });
  test('is checked within a few hashes for a known address, however many other addresses guess', async () => {
    const hashes = createPasswordHashes(core, { memory: 1024, passes: 1 });
    const stored = await hashes.hash(bytesOf(goodPassword), '192.0.2.1');
    expect(await hashes.verify(bytesOf(goodPassword), stored, '192.0.2.1')).toBe('holds');
    let guesses = 0;
    const guess = (peer: string) =>
      hashes.verify(bytesOf('guess'), stored, peer).then(
        () => {
          guesses += 1;
        },
        () => undefined,
      );
    // 50 addresses, and one /64 of IPv6 that counts as one.
    const all = Array.from({ length: 50 }, (_, n) => [guess(`198.51.100.${n}`), guess(`2001:db8::${n + 1}`)]).flat();
    expect(await hashes.verify(bytesOf(goodPassword), stored, '192.0.2.1')).toBe('holds');
    expect(guesses).toBeLessThanOrEqual(2);
    await Promise.all(all);
    expect(guesses).toBeGreaterThan(50);
  });
  test('of a row that was changed from outside opens nothing', async () => {
    const { user } = await makeUser(opened.operations, 'mallory');
    await queryStored(opened.folder, 'update users set grants = ? where id = ?', JSON.stringify(everything), user.id);
    expect(await codeOf(signIn('mallory'))).toBe('unauthenticated');
    expect(await opened.operations.users.get(administrator, user.id)).toMatchObject({ integrity: 'tampered' });
  });
  test('is changed with the present one; other sessions end, and this one has a new value', async () => {
    const { user, session } = await makeUser(opened.operations, 'carla');
    const other = await signIn('carla');
    const { profile } = opened.operations;
    expect(
      await codeOf(
        profile.changePassword(session, bytesOf('not the present one'), bytesOf('a new sentence'), originOf()),
      ),
    ).toBe('validation');
    // The present one is not a new one.
    expect(
      await codeOf(profile.changePassword(session, bytesOf(goodPassword), bytesOf(goodPassword), originOf())),
    ).toBe('validation');
    const from = originOf({ before: session.value });
    const renewed = await profile.changePassword(session, bytesOf(goodPassword), bytesOf('a new sentence'), from);
    expect(renewed.value).not.toBe(session.value);
    expect((await authenticate(renewed.value)).actor.id).toBe(user.id);
    for (const { value } of [session, other]) expect(await codeOf(authenticate(value))).toBe('unauthenticated');
    expect(await codeOf(signIn('carla'))).toBe('unauthenticated');
  });
});

describe('lockout', () => {
  test('the fifth failure in a row locks a user, no matter who tries and who it is; an administrator unlocks', async () => {
    const { user } = await makeUser(opened.operations, 'dora');
    const attempts = async (name: string): Promise<string[]> => {
      const codes: string[] = [];
      for (let attempt = 0; attempt < 6; attempt += 1) codes.push(await codeOf(signIn(name, 'a wrong password, long')));
      return codes;
    };
    const expected = [...Array.from({ length: 5 }, () => 'unauthenticated'), 'rate-limited'];
    expect(await attempts('dora')).toEqual(expected);
    expect(await attempts('nobody-of-this-name')).toEqual(expected);
    const [code, message] = await failing(signIn('Dora'));
    expect([code, message]).toEqual(['rate-limited', expect.stringMatching(/possible at \d{4}-\d\d-\d\dT/)]);
    expect((await opened.operations.users.get(administrator, user.id)).lockedUntil).toBeGreaterThan(0);
    expect(await auditKindsOf(opened, user.id)).toContain('user.locked');
    await opened.operations.users.unlock(administrator, everything, user.id);
    expect((await signIn('dora')).actor.id).toBe(user.id);
  });
  test('a success is not counted, and resets the count', async () => {
    await makeUser(opened.operations, 'emil');
    for (let round = 0; round < 2; round += 1) {
      for (let attempt = 0; attempt < 4; attempt += 1)
        expect(await codeOf(signIn('emil', 'wrong wrong wrong'))).toBe('unauthenticated');
      await signIn('emil');
    }
  });
  test('simultaneous attempts are counted separately, and only as many as are allowed are checked', async () => {
    await makeUser(opened.operations, 'frida');
    const codes = await Promise.all(Array.from({ length: 12 }, () => codeOf(signIn('frida', 'wrong wrong wrong'))));
    expect(codes.filter((code) => code === 'unauthenticated')).toHaveLength(5);
  });
  test('an address has only so many attempts at once', async () => {
    const from = originOf();
    const codes: string[] = [];
    const { signIn } = opened.operations;
    const redeem = async (by: ReturnType<typeof originOf>) => {
      signIn.admit(by.peer);
      return signIn.redeem('dkei_wrong', bytesOf('x'), by);
    };
    for (let attempt = 0; attempt < 25; attempt += 1) codes.push(await codeOf(redeem(from)));
    expect(codes.filter((code) => code === 'rate-limited').length).toBeGreaterThan(2);
    expect(await codeOf(redeem(originOf()))).toBe('unauthenticated');
  });
  test('a completed sign-in subtracts itself alone: a lock that another attempt set stays, of the user and of the address', async () => {
    const { store, ports, remove } = await openLockoutStore({});
    const lockout = createLockout(ports);
    for (const [most, nameOf] of [
      [5, () => 'lena'],
      [30, (attempt: number) => `user ${attempt}`],
    ] as const) {
      const first = await lockout.begin(nameOf(0), '192.0.2.8');
      for (let attempt = 1; attempt < most; attempt += 1) await lockout.begin(nameOf(attempt), '192.0.2.8');
      await store.write((tx) => first.succeeded(tx, true));
      expect(await codeOf(lockout.begin(nameOf(most), '192.0.2.8'))).toBe('rate-limited');
      await store.write(async (tx) => {
        for (const kind of ['user', 'address'] as const)
          await tx.failures.remove(failuresKey(ports.ring, kind, kind === 'user' ? 'lena' : '192.0.2.8'));
      });
    }
    await remove();
  });
  test('an IPv6 network has more attempts than one address, and not as many as it has addresses', async () => {
    const { signIn } = opened.operations;
    const attempt = (peer: string) =>
      codeOf(
        (async () => {
          signIn.admit(peer);
          return signIn.redeem('dkei_wrong', bytesOf('x'), originOf({ peer }));
        })(),
      );
    const codes: string[] = [];
    for (let subnet = 0; subnet < 100; subnet += 1) codes.push(await attempt(`2001:db8:7:${subnet.toString(16)}::1`));
    expect(codes.slice(0, 80)).toEqual(Array.from({ length: 80 }, () => 'unauthenticated'));
    expect(codes.filter((code) => code === 'rate-limited').length).toBeGreaterThan(0);
    expect(await attempt('2001:db8:8::1')).toBe('unauthenticated');
  });
  test('all addresses of one /64 count as one', async () => {
    const { signIn } = opened.operations;
    // Another name each time: only the address counts.
    const attempt = (peer: string) =>
      codeOf(signIn.byPassword(`unknown-${peer.replaceAll(':', '.')}`, bytesOf('x'), originOf({ peer })));
    const codes: string[] = [];
    for (let host = 1; host <= 40; host += 1) codes.push(await attempt(`2001:db8:9:1::${host.toString(16)}`));
    expect(codes.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => 'unauthenticated'));
    expect(codes).toContain('rate-limited');
    expect(await attempt('2001:db8:9:2::1')).toBe('unauthenticated');
  });
});

describe('a session', () => {
  test('ends with a change of roles, of the password, with the user, and when it is ended', async () => {
    const { operations } = opened;
    const change = { displayName: 'G', email: null, subject: null, mustChangePassword: false };
    const ways: readonly [string, (id: string) => Promise<unknown>][] = [
      ['disabling', (id) => operations.users.disable(administrator, everything, id)],
      ['a reset', (id) => operations.users.resetPassword(administrator, everything, id)],
      [
        'other roles',
        (id) =>
          operations.users.update(administrator, everything, id, {
            ...change,
            grants: [grant('auditor'), grant('platform-operator')],
          }),
      ],
      ['deleting', (id) => operations.users.delete(administrator, everything, id)],
      ['ending all', (id) => operations.users.endSessions(administrator, everything, id)],
      ['removing factors', (id) => operations.users.removeFactors(administrator, everything, id)],
    ];
    for (const [at, [way, end]] of ways.entries()) {
      const { user, session } = await makeUser(operations, `gerd${at}`);
      expect((await authenticate(session.value)).actor.id).toBe(user.id);
      await end(user.id);
      expect([way, await codeOf(authenticate(session.value))]).toEqual([way, 'unauthenticated']);
    }
  });
  test('does not begin by a password that was reset while it was checked', async () => {
    const { user } = await makeUser(opened.operations, 'meanwhile');
    const [started] = await Promise.all([
      signIn('meanwhile').catch((error: { readonly code: string }) => error.code),
      opened.operations.users.resetPassword(administrator, everything, user.id),
    ]);
    // Whichever of them was first: a session of before ends with the reset.
    const found = typeof started === 'string' ? started : await codeOf(authenticate(started.value));
    expect(found).toBe('unauthenticated');
  });

  test('of another name or address of a person stays when nothing that counts has changed', async () => {
    const { user, session } = await makeUser(opened.operations, 'hanna');
    const same = { subject: null, mustChangePassword: false, grants: [grant('auditor')] };
    await opened.operations.users.update(administrator, everything, user.id, {
      ...same,
      displayName: 'Hanna H.',
      email: 'h@example.com',
    });
    expect((await authenticate(session.value)).missing).toBeNull();
  });
  test('of a taken name, a manager in one tenant learns that it is taken, and nothing else', async () => {
    const { tenants, users } = opened.operations;
    const [own, other] = [
      await tenants.create(administrator, { name: 'names here' }),
      await tenants.create(administrator, { name: 'names there' }),
    ];
    const of = (tenantId: string): readonly Grant[] => [{ role: 'auditor', scope: null, tenantId }];
    const manager: readonly Grant[] = [{ role: 'tenant-administrator', scope: null, tenantId: own.id }];
    const create = (name: string, tenantId: string, by: readonly Grant[] = everything) =>
      users.create(inTenant(administrator, tenantId), by, {
        ...{ name, displayName: name, email: null, subject: null, grants: of(tenantId) },
      });
    await create('lea', own.id);
    const { user } = await create('mia', other.id);
    const refused = (name: string) => failing(create(name, own.id, manager));
    const taken = await refused('lea');
    expect(taken[0]).toBe('conflict');
    expect(await refused('mia')).toEqual(taken);
    await users.disable(administrator, everything, user.id);
    expect(await refused('MIA')).toEqual(taken);
    const seen = (await users.list(inTenant(administrator, own.id), {})).items.map(({ name }) => name);
    expect([seen.includes('lea'), seen.includes('mia')]).toEqual([true, false]);
  });
  test('a user who can change things has to make a second factor first', async () => {
    const { session } = await makeUser(opened.operations, 'ida', 'key-manager');
    expect(session).toMatchObject({ missing: 'enrolment', grants: [] });
  });
  test('a user who must change the password does that first', async () => {
    const { user } = await makeUser(opened.operations, 'jan');
    const change = { displayName: 'Jan', email: null, subject: null, grants: [grant('auditor')] };
    await opened.operations.users.update(administrator, everything, user.id, { ...change, mustChangePassword: true });
    const started = await signIn('jan');
    expect(started).toMatchObject({ missing: 'new-password', grants: [] });
    const next = bytesOf('another good sentence');
    const renewed = await opened.operations.profile.changePassword(started, bytesOf(goodPassword), next, originOf());
    expect(renewed.missing).toBeNull();
  });
  test('is in the database only as a hash, and is valid after a restart', async () => {
    const { session } = await makeUser(opened.operations, 'karl');
    const rows = JSON.stringify(await queryStored(opened.folder, 'select * from sessions'));
    expect(rows).not.toContain(session.value);
    await restart(opened);
    expect((await authenticate(session.value)).actor.name).toBe('karl');
  });
  test('ends after the idle time, and after the maximum time in any case', async () => {
    let time = 1_000_000;
    const clock = { now: () => time, monotonic: () => time };
    const folder = folderOfTest();
    const store = await openStore({
      path: join(folder, 'dke.db'),
      clock,
      authenticateRow: (text) => text,
      onFatal: () => undefined,
    });
    let drawn = 0;
    const random = (bytes: Buffer): void => {
      drawn += 1;
      bytes.fill(drawn);
    };
    const core = { random, wipe: () => undefined };
    const ring = {
      hashToken: (purpose: string, text: string) => `${purpose} ${text}`,
      formerHashes: () => [],
      authenticateAttempt: (text: string) => `code of ${text}`,
      isFormerTokenHash: () => false,
      refreshHashKey: () => Promise.resolve(false),
      followHashKey: () => Promise.resolve(false),
    };
    const people = { secondFactor: 'optional', sessionIdleMs: 3_600_000, sessionMs: 12 * 3_600_000, invitationMs: 1 };
    const ports = { store, core, ring, clock, people, log: { warn: () => undefined } } as never;
    const token = {
      id: 't',
      tenantId: null,
      kind: 'api',
      name: 't',
      grants: [],
      hash: 'api-token any',
      createdAt: 0,
      expiresAt: null,
    } as const;
    await store.write((tx) =>
      tx.tokens.insert({ ...token, revokedAt: null, lastUsedAt: null, ownerId: null, personId: null, integrity: 'ok' }),
    );
    const actor = { kind: 'administrator', id: 't', name: 't', requestId: 'r', peer: null } as const;
    const { operations } = createSessions(ports, async () => ({ actor, grants: [] }), createClaimedRoles(ports));
    const { value, expiresAt } = await operations.startByToken('any', originOf());
    expect(expiresAt).toBe(time + 12 * 3_600_000);
    const holds = (): Promise<boolean> =>
      operations.authenticate(value, 'r', null).then(
        () => true,
        () => false,
      );
    for (let hours = 0; hours < 12.5; hours += 0.5) {
      expect([hours, await holds()]).toEqual([hours, hours < 12]);
      time += 30 * 60_000;
    }
    const idle = await operations.startByToken('any', originOf());
    const listed = async (): Promise<readonly string[]> =>
      (await operations.list(administrator, {})).items.map(({ id }) => id);
    // The one before has ended, though it was not removed yet.
    expect(await listed()).toHaveLength(1);
    time += 60 * 60_000;
    expect(await listed()).toEqual([]);
    expect(
      await operations.authenticate(idle.value, 'r', null).then(
        () => true,
        () => false,
      ),
    ).toBe(false);
    await store.close();
  });
  test('that ended on another node counts for less than a second here, and in no unit of work', async () => {
    let time = 1_000;
    const clock = { now: () => time, monotonic: () => time };
    let drawn = 0;
    const random = (bytes: Buffer): void => {
      drawn += 1;
      bytes.fill(drawn);
    };
    const core = { random, wipe: () => undefined };
    const people = { secondFactor: 'optional', sessionIdleMs: 3_600_000, sessionMs: 3_600_000, invitationMs: 1 };
    const { store, ports, remove } = await openLockoutStore({ core, clock, people, log: { warn: () => undefined } });
    const refuse = () => Promise.reject(new Error('no tokens'));
    const { operations, insert } = createSessions(ports, refuse, createClaimedRoles(createAttempts(ports)));
    const user = storedUser({ name: 'uma' });
    await store.write((tx) => tx.users.insert(user));
    const actor = { kind: 'user', id: user.id, name: user.name, requestId: 'r', peer: null } as const;
    /** A session that this node knows and another node ends: `sessions` does not hear of it. */
    const begin = async () => {
      const method = { method: 'password', proved: 1 } as const;
      const { value } = await store.write((tx) => insert(tx, { ...user, kind: 'user' }, method, originOf(), actor));
      const ask = (how?: 'fresh') =>
        operations.authenticate(value, 'r', null, { isUse: false, isFresh: how === 'fresh' });
      const { sessionId } = await ask();
      await store.write((tx) => tx.sessions.remove(sessionId));
      return ask;
    };
    const ended = { code: 'unauthenticated' };
    const inUnit = await begin();
    await inUnit();
    await expect(inUnit('fresh')).rejects.toMatchObject(ended);
    const ask = await begin();
    const until = time + 1_000;
    let underWay: StillAllowed = () => Promise.reject(new Error('no request was accepted'));
    for (; time < until; time += 1) {
      if (!(await ask().then(Boolean, () => false))) break;
      underWay = createStillAllowed(clock, async (how) => void (await ask(how)));
      await underWay();
    }
    time = until;
    await expect(underWay()).rejects.toMatchObject(ended);
    await remove();
  });
});

describe('who manages whom', () => {
  const tenantAdministrator = [grant('tenant-administrator')];
  test('a tenant administrator does nothing to a person who may do everything, and gives no one such a role', async () => {
    const { users } = opened.operations;
    const { user } = await makeUser(opened.operations, 'root', 'administrator');
    for (const work of [
      () => users.resetPassword(administrator, tenantAdministrator, user.id),
      () => users.disable(administrator, tenantAdministrator, user.id),
      () => users.delete(administrator, tenantAdministrator, user.id),
      () => users.removeFactors(administrator, tenantAdministrator, user.id),
      () => users.endSessions(administrator, tenantAdministrator, user.id),
    ])
      expect(await codeOf(work())).toBe('forbidden');
    const grants = [grant('administrator')];
    expect(await codeOf(users.create(administrator, tenantAdministrator, { name: 'lift', grants }))).toBe('validation');
  });
  test('no one changes their own roles, disables or deletes themselves', async () => {
    const { users } = opened.operations;
    const { user, session } = await makeUser(opened.operations, 'self', 'administrator');
    const self = acrossTenants(session.actor, administrator.tenantId);
    const change = { displayName: 'S', email: null, subject: null, mustChangePassword: false };
    for (const work of [
      () => users.update(self, everything, user.id, { ...change, grants: [grant('auditor')] }),
      () => users.disable(self, everything, user.id),
      () => users.delete(self, everything, user.id),
    ])
      expect(await codeOf(work())).toBe('conflict');
  });
  test('names differ not by case alone, and are free again after a deletion', async () => {
    const { users } = opened.operations;
    const { user } = await makeUser(opened.operations, 'Lena');
    const again = (): Promise<unknown> =>
      users.create(administrator, everything, { name: 'LENA', grants: [grant('auditor')] });
    expect(await codeOf(again())).toBe('conflict');
    await users.delete(administrator, everything, user.id);
    await again();
    expect(await codeOf(users.get(administrator, user.id))).toBe('not-found');
  });
  test('break-glass is not given to a user', async () => {
    const work = opened.operations.users.create(administrator, everything, {
      name: 'glass',
      grants: [grant('break-glass')],
    });
    expect(await codeOf(work)).toBe('validation');
  });
  test('what a user may do is shown, and nothing while the user is disabled', async () => {
    const { users } = opened.operations;
    const { user } = await makeUser(opened.operations, 'mona', 'auditor');
    const { rights } = await users.permissions(administrator, user.id);
    expect(rights.map(({ permission }) => permission)).toContain('audit:export');
    await users.disable(administrator, everything, user.id);
    expect((await users.permissions(administrator, user.id)).rights).toEqual([]);
  });
});

/** A user of the OpenID provider, as the store has one. */
const ofProvider = (name: string) => storedUser({ name, grants: [grant('auditor')], subject: name });

describe('a sign-in at an OpenID provider that manages roles', () => {
  test('does not enable a user who is disabled after it was read', async () => {
    const { store, ports, remove } = await openLockoutStore({
      core: { random: (bytes: Buffer) => bytes.fill(1), wipe: (bytes: Buffer) => bytes.fill(0) },
      identity: { publicUrl: () => 'https://keys.example' },
      people: { secondFactor: 'never', sessionIdleMs: 60_000, sessionMs: 60_000 },
    });
    const user = ofProvider('otto');
    const { grants } = user;
    await store.write((tx) => tx.users.insert(user));
    const disabling = {
      ...store,
      read: {
        ...store.read,
        users: {
          ...store.read.users,
          findBySubject: async (subject: string) => {
            const found = await store.read.users.findBySubject(subject);
            await store.write(async (tx) => {
              await tx.users.get(everyTenant, user.id);
              await tx.users.update({ ...user, state: 'disabled' });
            });
            return found;
          },
        },
      },
    };
    const provider: IdentityProvider = {
      label: 'provider',
      managesRoles: true,
      tokenMs: 86_400_000,
      begin: () => Promise.resolve({ url: 'https://provider.example', state: 'state', data: 'data' }),
      finish: () =>
        Promise.resolve({
          subject: 'otto',
          name: 'otto',
          displayName: null,
          email: null,
          roles: ['key-manager'],
          secondFactor: true,
        }),
    };
    const opening = { ...ports, store: disabling, provider };
    const attempts = createAttempts(opening);
    const claimedRoles = createClaimedRoles(attempts);
    const sessions = createSessions(opening as never, undefined as never, claimedRoles);
    const { createSignIn } = await import('../../../server/operations/people/sign-in.ts');
    const signIn = createSignIn(opening, sessions);
    const openId = createOpenIdOperations(opening, attempts, sessions, signIn, claimedRoles);
    const { binding } = await openId.begin();
    expect(await codeOf(openId.finish('?state=state&code=code', binding, originOf()))).toBe('unauthenticated');
    expect(await store.read.users.get(everyTenant, user.id)).toMatchObject({ state: 'disabled', grants });
    await remove();
  });
});

test.each(['by an administrator', 'by sign-out'])(
  'a session that is ended %s while a request looks it up is not believed afterwards',
  async (how) => {
    const { store, ports, remove } = await openLockoutStore({
      core: { random: (bytes: Buffer) => bytes.fill(1), wipe: (bytes: Buffer) => bytes.fill(0) },
      people: { secondFactor: 'never', sessionIdleMs: 60_000, sessionMs: 60_000 },
    });
    const user = storedUser({ name: 'ida' });
    await store.write((tx) => tx.users.insert(user));
    let meanwhile: (() => Promise<unknown>) | undefined;
    const users = {
      ...store.read.users,
      get: async (...asked: Parameters<typeof store.read.users.get>) => {
        const found = await store.read.users.get(...asked);
        const work = meanwhile;
        meanwhile = undefined;
        await work?.();
        return found;
      },
    };
    const opening = { ...ports, store: { ...store, read: { ...store.read, users } } };
    const sessions = createSessions(opening, undefined as never, createClaimedRoles(createAttempts(opening)));
    const holder = { kind: 'user', id: user.id, name: user.name, tenantId: null } as const;
    const proof = { method: 'password', proved: 1 } as const;
    const { value } = await store.write((tx) => sessions.insert(tx, holder, proof, originOf(), administrator));
    const [session] = (await sessions.list(everyTenant, user.id, {})).items;
    meanwhile = () =>
      how === 'by sign-out'
        ? sessions.operations.signOut(value, originOf())
        : sessions.end(administrator, everyTenant, session?.id ?? '', user.id);
    await sessions.operations.authenticate(value, 'r', null);
    expect(await codeOf(sessions.operations.authenticate(value, 'r', null))).toBe('unauthenticated');
    await remove();
  },
);

test('a token that is older than its owner’s subject ends when tokens of people of the provider do', async () => {
  const day = 86_400_000;
  const { store, ports, remove } = await openLockoutStore({
    usage: { tokenUsed: () => undefined, refused: () => undefined },
  });
  const owner = ofProvider('ida');
  await store.write((tx) => tx.users.insert(owner));
  const token = { id: 't', tenantId: null, kind: 'api', name: 't', grants: owner.grants, createdAt: 0 } as const;
  const value = `dket_${'a'.repeat(43)}`;
  const hash = ports.ring.hashToken('api-token', value);
  const kept = { expiresAt: 300 * day, revokedAt: null, lastUsedAt: null, ownerId: owner.id, integrity: 'ok' } as const;
  await store.write((tx) => tx.tokens.insert({ ...token, ...kept, personId: null, hash }));
  const works = (managesRoles: boolean, now: number) =>
    authenticateAdmin({
      ...ports,
      clock: { ...ports.clock, now: () => now },
      provider: { managesRoles, tokenMs: day } as IdentityProvider,
    })(value, 'r', null).then(
      () => true,
      () => false,
    );
  expect(await Promise.all([works(false, 2 * day), works(true, day - 1), works(true, day)])).toEqual([
    true,
    true,
    false,
  ]);
  await remove();
});
