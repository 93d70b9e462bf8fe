// Handlers of what people do with themselves.

import { ServiceError } from '../../../base/errors.ts';
import type { Operations } from '../../../operations/index.ts';
import type { SessionCaller } from '../../../operations/people/face.ts';
import { ValidationError } from '../errors.ts';
import { representPage } from '../represent.ts';
import { representOpenSession, representUser } from '../represent-people.ts';
import type { Handlers } from './handler.ts';
import { startedSession } from './session.ts';

/** The session of the request: 'not-found' for a token. */
export const ownSession = (session: SessionCaller | null): SessionCaller => {
  if (session === null)
    throw new ServiceError('not-found', 'a token has no profile', { hint: 'sign in as a user, not with a token' });
  return session;
};

export const profileHandlers = ({ profile, access }: Operations): Handlers['profile'] => ({
  get: async ({ session }) => representUser(await profile.get(ownSession(session))),
  changePassword: async ({ session, secrets: { current, password }, from }) => {
    const own = ownSession(session);
    if (password === undefined) throw new ValidationError([{ path: 'password', message: 'is missing' }]);
    return startedSession(access)(await profile.changePassword(own, current, password, from));
  },
  sessions: async ({ session, query }) =>
    representPage(await profile.sessions(ownSession(session), query), representOpenSession),
  endSession: async ({ session, path }) => representOpenSession(await profile.endSession(ownSession(session), path.id)),
});
