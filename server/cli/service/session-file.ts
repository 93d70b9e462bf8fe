// What dke login keeps: a session, or the token that a browser has approved, by the address of the
// service, in a file of the person's configuration folder, which no other user can read. Leaves out
// how one begins and ends: login.ts.

import { rmSync } from 'node:fs';
import { CommandError } from '../terminal/exit-codes.ts';
import { changeOwnFile, ownFile, readOwnFile, requireWritable } from './own-file.ts';

export const cookieName = '__Host-dke-session';

declare const isParsed: unique symbol;
type Value = string & { readonly [isParsed]: true };
/** A sign-in that can be used, and that is read again once it is written: `parseKept` builds it. */
export type Kept = { readonly user: string } & ({ readonly session: Value } | { readonly token: Value });
/** An entry of the file that cannot be used. It stays as it is, and the others are usable. */
interface Unreadable {
  readonly unreadable: unknown;
}
/** Stored sign-ins, by the address of the service. */
export type KeptSessions = ReadonlyMap<string, Kept | Unreadable>;

export const sessionFile = (): string => ownFile('session.json');

/** What a header can have, and what we write. */
const isValue = (value: unknown): value is Value =>
  typeof value === 'string' && /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]{1,4096}$/.test(value);

/** Undefined: it could not be used. */
export const parseKept = (value: unknown): Kept | undefined => {
  if (value === null || typeof value !== 'object') return undefined;
  const { user, session, token } = value as { readonly [member: string]: unknown };
  if (typeof user !== 'string') return undefined;
  if (session !== undefined) return isValue(session) ? { user, session } : undefined;
  return isValue(token) ? { user, token } : undefined;
};

const parseFile = (value: unknown): KeptSessions | undefined =>
  value === null || typeof value !== 'object' || Array.isArray(value)
    ? undefined
    : new Map(Object.entries(value).map(([url, entry]) => [url, parseKept(entry) ?? { unreadable: entry }]));

/** Throws `CommandError`, which names the file, when it is not what we wrote. */
export const readKept = (): KeptSessions =>
  readOwnFile(sessionFile(), parseFile, 'a file of sessions', 'remove it, and sign in again') ?? new Map();

/** The sign-in at a service, where it can be used. */
export const keptAt = (sessions: KeptSessions, url: string): Kept | undefined => {
  const entry = sessions.get(url);
  return entry === undefined || 'unreadable' in entry ? undefined : entry;
};

/** Writes the sign-in at a service, or removes it; every other one stays as it is. */
export const writeKept = (url: string, kept: Kept | undefined): void =>
  changeOwnFile(sessionFile(), (write) => {
    const sessions = new Map(readKept());
    sessions.delete(url);
    if (kept !== undefined) sessions.set(url, kept);
    const entries = [...sessions].map(([at, entry]) => [at, 'unreadable' in entry ? entry.unreadable : entry]);
    if (entries.length === 0) rmSync(sessionFile(), { force: true });
    else write(Object.fromEntries(entries));
  });

/**
 * Makes certain that a sign-in can be kept: one that could not be kept would stay valid in the
 * service, and nothing here could use or end it. Before a sign-in begins. Throws `CommandError`.
 */
export const readyToKeep = (): void => {
  readKept();
  requireWritable(sessionFile());
};

/** The headers of the user who is signed in at this service; undefined without a session. */
export const sessionHeaders = (url: string): Readonly<Record<string, string>> | undefined => {
  const sessions = readKept();
  const kept = keptAt(sessions, url);
  if (kept === undefined && sessions.has(url))
    throw new CommandError('config', `${sessionFile()} has no usable sign-in for ${url}`, {
      hint: 'run dke login to replace it; other services are not affected',
    });
  if (kept === undefined) return undefined;
  // A change with a session says where it comes from, as a browser does.
  return 'session' in kept
    ? { cookie: `${cookieName}=${kept.session}`, origin: url }
    : { authorization: `Bearer ${kept.token}` };
};
