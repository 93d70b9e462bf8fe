// The state of a user that a list shows.

import type { User } from '../api/types.ts';

/** An invitation that was not accepted goes before the state: such a user has never signed in. */
export const stateOfUser = ({ state, invitedUntil }: User): string =>
  state === 'active' && invitedUntil !== null ? 'invited' : state;
