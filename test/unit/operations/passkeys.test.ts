// Passkeys, with an authenticator in software: created by a signed-in user, then used as a sign-in
// and as a second factor.
import { describe, expect, test, vi } from 'vitest';
import type { SessionCaller, StartedSession } from '../../../server/operations/people/people-operations.ts';
import { createAuthenticator } from '../../support/authenticator.ts';
import { administrator } from '../../support/open-service.ts';
import { bytesOf, errorOf, everything, goodPassword, makeUser, originOf } from '../../support/people.ts';
import { sharedService } from '../../support/shared.ts';

const origin = 'https://keys.example';
const opened = sharedService();

type Question = { readonly challenge: string; readonly user: { readonly id: string } };
const add = async (caller: SessionCaller): Promise<[ReturnType<typeof createAuthenticator>, StartedSession]> => {
  const authenticator = createAuthenticator(origin);
  const { passkeys } = opened.operations;
  const answer = authenticator.make((await passkeys.beginNew(caller)) as Question);
  return [authenticator, await passkeys.finishNew(caller, 'laptop', answer, originOf())];
};
const ask = async (): Promise<Question> => (await opened.operations.passkeys.begin()) as Question;

describe('a passkey', () => {
  test('enrols a person who needs a second factor, then signs them in on its own', async () => {
    const { user, session } = await makeUser(opened.operations, 'ada', 'key-manager');
    expect(session.missing).toBe('enrolment');
    const [authenticator, enrolled] = await add(session);
    expect(enrolled.missing).toBeNull();
    const started = await opened.operations.passkeys.finish(authenticator.answer(await ask()), originOf());
    expect(started).toMatchObject({ actor: { kind: 'user', id: user.id }, missing: null });
  });
  test('is the second factor after a password', async () => {
    const { session } = await makeUser(opened.operations, 'bert', 'key-manager');
    const [authenticator] = await add(session);
    const { signIn, passkeys } = opened.operations;
    const caller = await signIn.byPassword('bert', bytesOf(goodPassword), originOf());
    expect(caller.missing).toBe('second-factor');
    const question = (await passkeys.beginSecond(caller)) as Question;
    const complete = await signIn.secondFactor(caller, { passkey: authenticator.answer(question) }, originOf());
    expect(complete.missing).toBeNull();
  });
  test('of a user without a password sets a first one within fifteen minutes of the sign-in only', async () => {
    const { user, session } = await makeUser(opened.operations, 'beth', 'auditor');
    const [authenticator] = await add(session);
    const { profile, users, passkeys } = opened.operations;
    await users.resetPassword(administrator, everything, user.id);
    const caller = await passkeys.finish(authenticator.answer(await ask()), originOf());
    const first = () => profile.changePassword(caller, undefined, bytesOf(`${goodPassword} again`), originOf());
    const now = Date.now();
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now + 16 * 60_000);
    try {
      expect(await errorOf(first())).toBe('forbidden');
    } finally {
      clock.mockRestore();
    }
    const changed = await first();
    expect(changed.expiresAt).toBe(caller.expiresAt);
  });
  test('answers a question once, of this service alone, and with its user verified', async () => {
    const { session } = await makeUser(opened.operations, 'carla', 'key-manager');
    const [authenticator] = await add(session);
    const finish = (answer: object) => opened.operations.passkeys.finish(answer, originOf());
    const answer = authenticator.answer(await ask());
    await finish(answer);
    for (const wrong of [
      answer,
      authenticator.answer({ challenge: 'bm90LWFza2Vk' }),
      authenticator.answer(await ask(), { origin: 'https://keys.example.evil' }),
      authenticator.answer(await ask(), { flags: 0x01 }),
      authenticator.answer(await ask(), { userId: 'nobody' }),
      createAuthenticator(origin).answer(await ask(), { userId: session.actor.id }),
      {},
    ])
      expect(await errorOf(finish(wrong))).toBe('unauthenticated');
  });
  test('of another user, of a disabled user, or removed signs no one in', async () => {
    const one = await makeUser(opened.operations, 'dora', 'key-manager');
    const other = await makeUser(opened.operations, 'emil', 'key-manager');
    const [authenticator] = await add(one.session);
    const finish = (answer: object) => opened.operations.passkeys.finish(answer, originOf());
    expect(await errorOf(finish(authenticator.answer(await ask(), { userId: other.user.id })))).toBe('unauthenticated');
    await opened.operations.users.disable(administrator, everything, one.user.id);
    expect(await errorOf(finish(authenticator.answer(await ask())))).toBe('unauthenticated');
    await opened.operations.users.enable(administrator, everything, one.user.id);
    await opened.operations.users.removeFactors(administrator, everything, one.user.id);
    expect(await errorOf(finish(authenticator.answer(await ask())))).toBe('unauthenticated');
  });
});
