// Sign-ins that are under way elsewhere: at an authenticator, at the OpenID provider, or until the
// second factor. Each is in the database for minutes, found by the hash of a value that only the
// other party has, and used once. What it says decides who signs in and with which roles, so it has
// an authentication code: a row that was made or changed in the database is none.

import { canonicalJson } from '../../base/bytes.ts';
import type { StoredAttempt } from '../../ports/people.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';

export type Attempts = ReturnType<typeof createAttempts>;
type NewAttempt = Pick<StoredAttempt, 'kind' | 'userId' | 'data'> & { readonly holdsMs: number } & (
    | {
        /** What it is found by. */
        readonly value: string;
      }
    | { readonly hash: string }
  );

export const createAttempts = ({ ring, clock }: Pick<Ports, 'ring' | 'clock'>) => {
  const hashOf = (text: string): string => ring.hashToken('sign-in-attempt', text);
  const codeOf = ({ hash, kind, userId, data, expiresAt }: StoredAttempt): string =>
    ring.authenticateAttempt(canonicalJson([hash, kind, userId, data, expiresAt]));
  const sound = (found: StoredAttempt | undefined): StoredAttempt | undefined => {
    if (found === undefined || found.expiresAt <= clock.now()) return undefined;
    const [code = '', ...rest] = found.data.split('\n');
    const attempt = { ...found, data: rest.join('\n') };
    return code === codeOf(attempt) ? attempt : undefined;
  };
  return {
    hashOf,
    keep: (tx: Pick<Repositories, 'attempts'>, attempt: NewAttempt): Promise<void> => {
      const { kind, userId, data, holdsMs } = attempt;
      const hash = 'hash' in attempt ? attempt.hash : hashOf(attempt.value);
      const made = { kind, userId, data, hash, expiresAt: clock.now() + holdsMs };
      return tx.attempts.insert({ ...made, data: `${codeOf(made)}\n${made.data}` });
    },
    find: async (from: Pick<Repositories, 'attempts'>, value: string): Promise<StoredAttempt | undefined> =>
      sound(await from.attempts.get(hashOf(value))),
    /**
     * Finds an attempt and removes it, so that it cannot be used again. Undefined: it is unknown,
     * expired or changed from outside.
     */
    take: async (tx: Pick<Repositories, 'attempts'>, value: string): Promise<StoredAttempt | undefined> =>
      sound(await tx.attempts.take(hashOf(value))),
    /** `take` for an attempt of which only the hash is known. */
    takeHash: async (tx: Pick<Repositories, 'attempts'>, hash: string): Promise<StoredAttempt | undefined> =>
      sound(await tx.attempts.take(hash)),
  };
};
