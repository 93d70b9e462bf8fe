// The addresses of users, and the state that a list shows.

import type { User } from '../api/types.ts';

export const usersPath = '/api/users';
export const userPath = (id: string): string => `${usersPath}/${encodeURIComponent(id)}`;

/** An invitation that was not accepted goes before the state: such a user has never signed in. */
export const stateOfUser = ({ state, invitedUntil }: User): string =>
  state === 'active' && invitedUntil !== null ? 'invited' : state;
