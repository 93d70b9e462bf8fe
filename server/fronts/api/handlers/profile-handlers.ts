// Handlers of what people do with themselves.

import type { Operations } from '../../../operations/index.ts';
import { ValidationError } from '../api-problem.ts';
import { representPage, representToken } from '../represent.ts';
import { representOpenSession, representUser } from '../represent-people.ts';
import { type Handlers, SecretJson } from './handler.ts';
import { jsonOf, ownSession, startedSession } from './session-handlers.ts';

/** The bytes of several pieces in one, and the pieces that are secret wiped. */
const joinSecret = (pieces: readonly (string | Buffer)[]): SecretJson => {
  const parts = pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece));
  // Not from the shared pool, which is never wiped.
  const bytes = Buffer.allocUnsafeSlow(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) at += part.copy(bytes, at);
  for (const piece of pieces) if (typeof piece !== 'string') piece.fill(0);
  return new SecretJson(bytes);
};

const issuer = 'DKE';
/** The key URI that authenticator apps read. */
const totpDocument = (id: string, account: string, secret: Buffer): SecretJson => {
  const label = `${issuer}:${encodeURIComponent(account)}`;
  const copy = Buffer.from(secret);
  return joinSecret([
    `{"id":${JSON.stringify(id)},"secret":"`,
    secret,
    `","uri":"otpauth://totp/${label}?secret=`,
    copy,
    `&issuer=${issuer}&algorithm=SHA1&digits=6&period=30"}`,
  ]);
};

/** Four characters at a time, as people read them. */
const codesDocument = (codes: readonly Buffer[]): SecretJson =>
  joinSecret([
    '{"codes":[',
    ...codes.flatMap((code, at) => [
      at === 0 ? '"' : ',"',
      ...[0, 4, 8, 12].flatMap((from) => [...(from === 0 ? [] : ['-']), code.subarray(from, from + 4)]),
      '"',
    ]),
    ']}',
  ]);

export const profileHandlers = ({ profile, factors, passkeys, access }: Operations): Handlers['profile'] => ({
  get: async ({ session }) => representUser(await profile.get(ownSession(session))),
  changePassword: async ({ session, secrets: { current, password }, from }) => {
    const own = ownSession(session);
    if (password === undefined) throw new ValidationError([{ path: 'password', message: 'is missing' }]);
    return startedSession(access)(await profile.changePassword(own, current, password, from));
  },
  beginTotp: async ({ session, body: { name } }) => {
    const { id, account, secret } = await factors.begin(ownSession(session), name);
    return { id, answer: totpDocument(id, account, secret) };
  },
  confirmTotp: async ({ session, path, secrets: { code }, from }) => {
    if (code === undefined) throw new ValidationError([{ path: 'code', message: 'is missing' }]);
    return startedSession(access)(await factors.confirm(ownSession(session), path.id, code, from));
  },
  beginPasskey: async ({ session }) => ({ options: jsonOf(await passkeys.beginNew(ownSession(session))) }),
  addPasskey: async ({ session, body: { name, answer }, from }) =>
    startedSession(access)(await passkeys.finishNew(ownSession(session), name, answer, from)),
  makeRecoveryCodes: async ({ session }) => {
    const own = ownSession(session);
    return { id: own.sessionId, answer: codesDocument(await factors.makeRecoveryCodes(own)) };
  },
  removeFactor: async ({ session, path }) => representUser(await factors.remove(ownSession(session), path.id)),
  createToken: async ({ session, body: { name, expiresAt, grants } }) => {
    const own = ownSession(session);
    const { record, token } = await profile.createToken(own, { name, expiresAt: Date.parse(expiresAt), grants });
    return { id: record.id, answer: { record: representToken(record), token } };
  },
  tokens: async ({ session, query }) => representPage(await profile.tokens(ownSession(session), query), representToken),
  revokeToken: async ({ session, path }) => representToken(await profile.revokeToken(ownSession(session), path.id)),
  sessions: async ({ session, query }) =>
    representPage(await profile.sessions(ownSession(session), query), representOpenSession(session)),
  endSession: async ({ session, path }) =>
    representOpenSession(session)(await profile.endSession(ownSession(session), path.id)),
  endOtherSessions: async ({ session }) => ({ ended: await profile.endOtherSessions(ownSession(session)) }),
});
