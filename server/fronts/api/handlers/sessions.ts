// Handlers of everybody's sessions.

import type { Operations } from '../../../operations/index.ts';
import { representPage } from '../represent.ts';
import { representOpenSession } from '../represent-people.ts';
import type { Handlers } from './handler.ts';

export const sessionsHandlers = ({ sessions }: Operations): Handlers['sessions'] => ({
  list: async ({ actor, query }) => representPage(await sessions.list(actor, query), representOpenSession),
  end: async ({ actor, grants, path }) => representOpenSession(await sessions.end(actor, grants, path.id)),
  rotateKey: ({ actor }) => sessions.rotateKey(actor),
});
