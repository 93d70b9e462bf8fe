// Handlers of signing in and out.

import { ServiceError } from '../../../base/service-error.ts';
import type { PasskeyOptions, Session } from '../../../contract/api/sign-in-routes.ts';
import type { Operations } from '../../../operations/index.ts';
import type { SessionCaller, StartedSession } from '../../../operations/people/people-operations.ts';
import { ValidationError } from '../api-problem.ts';
import { representSession } from '../represent-people.ts';
import { BoundAnswer, type Handlers, SessionChange } from './handler.ts';

/** What a library made for a browser, as the JSON that it becomes. */
export const jsonOf = (value: object): PasskeyOptions => JSON.parse(JSON.stringify(value)) as PasskeyOptions;

/** The answer to a user who has just signed in. */
export const startedSession =
  (access: Operations['access']) =>
  (started: StartedSession): SessionChange<Session> =>
    new SessionChange(
      representSession(
        {
          actor: access.actIn(started.actor, started.grants, undefined),
          grants: started.grants,
          session: started,
        },
        access,
      ),
      started.value,
    );

/** The session of the request: 'not-found' for a token. */
export const ownSession = (session: SessionCaller | null): SessionCaller => {
  if (session === null)
    throw new ServiceError('not-found', 'a token has no profile', { hint: 'sign in as a user, not with a token' });
  return session;
};

export const sessionHandlers = ({ signIn, sessions, passkeys, openId, access }: Operations): Handlers['session'] => {
  const answer = startedSession(access);
  return {
    start: async ({ body: { user, token }, secrets: { password }, from }) => {
      if (token !== undefined) return answer(await sessions.startByToken(token, from));
      if (user === undefined || password === undefined)
        throw new ValidationError([{ path: 'password', message: 'is missing' }]);
      return answer(await signIn.byPassword(user, password, from));
    },
    methods: () => Promise.resolve({ openId: openId.label(), passkeys: signIn.hasPasskeys() }),
    beginPasskey: async () => ({ options: jsonOf(await passkeys.begin()) }),
    passkey: async ({ body, from }) => answer(await passkeys.finish(body.answer, from)),
    beginOpenId: async () => {
      const { url, binding } = await openId.begin();
      return new BoundAnswer({ url }, binding);
    },
    finishOpenId: async ({ search, binding, from }) => {
      try {
        // The browser is led back with the reason.
        signIn.admit(from.peer);
        return new SessionChange(undefined, (await openId.finish(search, binding, from)).value, '/');
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        // Only the code: any text could be in the address.
        return new SessionChange(undefined, null, `/?refused=${error.code}`);
      }
    },
    beginSecondFactor: async ({ session }) => ({ options: jsonOf(await passkeys.beginSecond(ownSession(session))) }),
    secondFactor: async ({ session, body: { passkey }, secrets: { code, recoveryCode }, from }) => {
      const own = ownSession(session);
      if (code !== undefined) return answer(await signIn.secondFactor(own, { code }, from));
      if (passkey !== undefined) return answer(await signIn.secondFactor(own, { passkey }, from));
      if (recoveryCode === undefined) throw new ValidationError([{ path: 'code', message: 'is missing' }]);
      return answer(await signIn.secondFactor(own, { recoveryCode }, from));
    },
    redeem: async ({ body: { invitation }, secrets: { password }, from }) => {
      if (password === undefined) throw new ValidationError([{ path: 'password', message: 'is missing' }]);
      return answer(await signIn.redeem(invitation, password, from));
    },
    get: (call) => Promise.resolve(representSession(call, access)),
    end: async ({ from, session }) => {
      if (session !== null && from.before !== undefined) await sessions.signOut(from.before, from);
      return new SessionChange(undefined, null);
    },
  };
};
