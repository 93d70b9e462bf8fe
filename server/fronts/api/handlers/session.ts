// Handlers of signing in and out.

import type { Operations } from '../../../operations/index.ts';
import type { StartedSession } from '../../../operations/people/face.ts';
import type { Session } from '../../contract/api/session.ts';
import { ValidationError } from '../errors.ts';
import { representSession } from '../represent-people.ts';
import { type Handlers, SessionChange } from './handler.ts';

/** The answer to whoever has just signed in. */
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

export const sessionHandlers = ({ signIn, sessions, access }: Operations): Handlers['session'] => {
  const answer = startedSession(access);
  return {
    start: async ({ body: { user, token }, secrets: { password }, from }) => {
      if (token !== undefined) return answer(await sessions.startByToken(token, from));
      if (user === undefined || password === undefined)
        throw new ValidationError([{ path: 'password', message: 'is missing' }]);
      return answer(await signIn.byPassword(user, password, from));
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
