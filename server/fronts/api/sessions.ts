// Sessions of the console's pages. A session is a random value in a cookie; the server keeps the administrator token behind
// it sealed under a key that only the cookie yields, so that neither a dump of this memory nor the cookie alone after the
// session's end gives the token back. Every request opens the token and has it checked anew: a revoked token ends its
// sessions at once. Sessions belong to one process and end with it.

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';

export const sessionCookie = '__Host-dke-session';

const hour = 3_600_000;
/** A session ends so long after sign-in, and so long after its last request. */
const absoluteLimit = 12 * hour;
const idleLimit = hour;
/** The oldest go first. */
const maxSessions = 10_000;

interface SealedSession {
  readonly nonce: Buffer;
  readonly sealed: Buffer;
  readonly expiresAt: number;
  usedAt: number;
}

export interface Sessions {
  /** Text for the cookie, and the end of the session in milliseconds since the epoch. */
  start(token: string): { readonly value: string; readonly expiresAt: number };
  /** Null when there is no such session, or no longer. */
  open(value: string): { readonly token: string; readonly expiresAt: number } | null;
  end(value: string): void;
}

const deriveBytes = (secret: Buffer, use: string): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(0), `dke console session: ${use}`, 32));

/** The bytes of a cookie's value; null when it cannot be one of ours. */
const parseValue = (value: string): Buffer | null => {
  const secret = Buffer.from(value, 'base64url');
  return secret.length === 32 && secret.toString('base64url') === value ? secret : null;
};

export const createSessions = (clock: Clock): Sessions => {
  const sessions = new Map<string, SealedSession>();

  const dropEnded = (now: number): void => {
    for (const [name, session] of sessions) {
      if (now >= session.expiresAt || now >= session.usedAt + idleLimit) sessions.delete(name);
    }
  };

  return {
    start(token) {
      const now = clock.now();
      if (sessions.size >= maxSessions) dropEnded(now);
      const oldest = sessions.keys().next();
      if (sessions.size >= maxSessions && oldest.done !== true) sessions.delete(oldest.value);
      const secret = randomBytes(32);
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', deriveBytes(secret, 'seal'), nonce);
      const sealed = Buffer.concat([cipher.update(token, 'utf8'), cipher.final(), cipher.getAuthTag()]);
      const expiresAt = now + absoluteLimit;
      sessions.set(deriveBytes(secret, 'name').toString('hex'), { nonce, sealed, expiresAt, usedAt: now });
      return { value: secret.toString('base64url'), expiresAt };
    },

    open(value) {
      const secret = parseValue(value);
      if (secret === null) return null;
      const name = deriveBytes(secret, 'name').toString('hex');
      const session = sessions.get(name);
      const now = clock.now();
      if (session === undefined) return null;
      if (now >= session.expiresAt || now >= session.usedAt + idleLimit) {
        sessions.delete(name);
        return null;
      }
      session.usedAt = now;
      const decipher = createDecipheriv('aes-256-gcm', deriveBytes(secret, 'seal'), session.nonce);
      decipher.setAuthTag(session.sealed.subarray(-16));
      const token = Buffer.concat([decipher.update(session.sealed.subarray(0, -16)), decipher.final()]);
      return { token: token.toString('utf8'), expiresAt: session.expiresAt };
    },

    end(value) {
      const secret = parseValue(value);
      if (secret !== null) sessions.delete(deriveBytes(secret, 'name').toString('hex'));
    },
  };
};
