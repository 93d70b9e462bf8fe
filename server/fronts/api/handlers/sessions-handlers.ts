// Handlers of everybody's sessions.

import type { Operations } from '../../../operations/index.ts';
import { representPage } from '../represent.ts';
import { representOpenSession } from '../represent-people.ts';
import type { Handlers } from './handler.ts';

export const sessionsHandlers = ({ sessions }: Operations): Handlers['sessions'] => ({
  list: async ({ actor, session, query }) =>
    representPage(await sessions.list(actor, query), representOpenSession(session)),
  end: async ({ actor, session, grants, path }) =>
    representOpenSession(session)(await sessions.end(actor, grants, path.id)),
  rotateKey: ({ actor }) => sessions.rotateKey(actor),
});
