// A sign-in within the last minutes: the proof that a change of what a user signs in with needs,
// because another person may be using an older session. A session keeps the time of its sign-in
// under each new value.

import { ServiceError } from '../../base/service-error.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import { sessionEnded } from './find-session.ts';
import type { SessionCaller } from './people-operations.ts';

const recentMs = 15 * 60_000;

/** 'forbidden' for a session that is older. */
export const requireRecent = async (
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { sessionId }: Pick<SessionCaller, 'sessionId'>,
): Promise<void> => {
  const session = await store.read.sessions.get(everyTenant, sessionId);
  if (session === undefined) throw sessionEnded();
  if (clock.now() - session.createdAt > recentMs)
    throw new ServiceError('forbidden', 'this requires a sign-in within the last 15 minutes', {
      hint: 'sign out, sign in again, and repeat it',
    });
};
