// Challenges of passkeys. Each is in the database until it is answered, once.

import { mostHeadLevels, parseShallow } from '../../base/json-members.ts';
import type { PasskeyQuestion } from '../../ports/identity.ts';
import type { StoredAttempt } from '../../ports/people.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Attempts } from './attempts.ts';

const holdsMs = 5 * 60_000;

/** No user's id has U+0000, which a database refuses. */
const textOfHandle = (handle: string): string | null => {
  const text = Buffer.from(handle, 'base64url').toString('utf8');
  return text.includes('\0') ? null : text;
};

/**
 * The challenge that an answer says it answers, and who the authenticator says it is of; checked
 * afterwards.
 */
export const readAnswer = (
  answer: object,
): { readonly challenge: string; readonly credentialId: string; readonly userId: string | null } | undefined => {
  try {
    const { id, response } = answer as { id?: unknown; response?: { clientDataJSON?: unknown; userHandle?: unknown } };
    const { challenge } = parseShallow(Buffer.from(String(response?.clientDataJSON), 'base64url'), mostHeadLevels) as {
      challenge?: unknown;
    };
    if (typeof challenge !== 'string' || typeof id !== 'string') return undefined;
    const handle = response?.userHandle;
    return {
      challenge,
      credentialId: id,
      userId: typeof handle === 'string' ? textOfHandle(handle) : null,
    };
  } catch {
    return undefined;
  }
};

export type PasskeyChallenges = ReturnType<typeof createPasskeyChallenges>;

export const createPasskeyChallenges = ({ store }: Pick<Ports, 'store'>, attempts: Attempts) => {
  const textOf = (challenge: string): string => `passkey\0${challenge}`;

  const keep = async (
    kind: StoredAttempt['kind'],
    userId: string | null,
    { options, challenge }: PasskeyQuestion,
  ): Promise<object> => {
    const attempt = { kind, userId, data: '', value: textOf(challenge), holdsMs };
    await store.write((tx) => attempts.keep(tx, attempt), { durable: false });
    return options;
  };

  /** The challenge of a response; it is used up by this. */
  const take = async (kind: StoredAttempt['kind'], userId: string | null, challenge: string): Promise<boolean> => {
    const attempt = await store.write((tx) => attempts.take(tx, textOf(challenge)), { durable: false });
    return attempt?.kind === kind && attempt.userId === userId;
  };

  return { keep, take };
};
