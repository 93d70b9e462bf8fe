// What dke login keeps: a session, or the token that a browser has approved, by the address of the
// service, in a file of the person's configuration folder, which no other user can read. Leaves out
// how one begins and ends: login.ts.

import { rmSync } from 'node:fs';
import { ownFile, readOwnFile, requireWritable, writeOwnFile } from './own-file.ts';

export const cookieName = '__Host-dke-session';

export type Kept = { readonly user: string } & ({ readonly session: string } | { readonly token: string });
/** Stored sign-ins, by the address of the service. */
type KeptSessions = { readonly [server: string]: Kept };

export const sessionFile = (): string => ownFile('session.json');

/** What a header can have, and what we write. */
const isValue = (value: unknown): boolean => typeof value === 'string' && /^[\x21-\x3a\x3c-\x7e]+$/.test(value);
const isKept = (value: unknown): value is Kept => {
  if (value === null || typeof value !== 'object') return false;
  const { user, session, token } = value as { readonly [member: string]: unknown };
  return typeof user === 'string' && (session === undefined ? isValue(token) : isValue(session));
};
const areKept = (value: unknown): value is KeptSessions =>
  value !== null && typeof value === 'object' && !Array.isArray(value) && Object.values(value).every(isKept);

/** Throws `CommandError`, which names the file, when it is not what we wrote. */
export const readKept = (): KeptSessions =>
  readOwnFile(sessionFile(), areKept, 'a file of sessions', 'remove it, and sign in again') ?? {};

export const writeKept = (sessions: KeptSessions): void => {
  if (Object.keys(sessions).length === 0) rmSync(sessionFile(), { force: true });
  else writeOwnFile(sessionFile(), sessions);
};

/**
 * What is kept, once it is certain that more can be: a sign-in that could not be kept would stay
 * valid in the service, and nothing here could use or end it. Before a sign-in begins. Throws
 * `CommandError`.
 */
export const readyToKeep = (): KeptSessions => {
  const kept = readKept();
  requireWritable(sessionFile());
  return kept;
};

/** The headers of the user who is signed in at this service; undefined without a session. */
export const sessionHeaders = (url: string): Readonly<Record<string, string>> | undefined => {
  const kept = readKept()[url];
  if (kept === undefined) return undefined;
  // A change with a session says where it comes from, as a browser does.
  return 'session' in kept
    ? { cookie: `${cookieName}=${kept.session}`, origin: url }
    : { authorization: `Bearer ${kept.token}` };
};
