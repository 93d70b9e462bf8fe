// The sessions of dke login: a file of the person's configuration folder, which no other user can read. Leaves out how one begins and
// ends: login.ts.

import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { CommandError } from './exit-codes.ts';
import { readSecretFile } from './files.ts';

export const cookieName = '__Host-dke-session';

interface Kept {
  readonly user: string;
  readonly session: string;
}
/** By the address of the service. */
type KeptSessions = { readonly [server: string]: Kept };

export const sessionFile = (): string => {
  const { XDG_CONFIG_HOME: given } = process.env;
  return join(given === undefined || given === '' ? join(homedir(), '.config') : given, 'dke', 'session.json');
};

/** What a header can bear, and what we write. */
const isKept = (value: unknown): value is Kept => {
  if (value === null || typeof value !== 'object') return false;
  const { user, session } = value as { readonly [member: string]: unknown };
  return typeof user === 'string' && typeof session === 'string' && /^[\x21-\x3a\x3c-\x7e]+$/.test(session);
};
const areKept = (value: unknown): value is KeptSessions =>
  value !== null && typeof value === 'object' && !Array.isArray(value) && Object.values(value).every(isKept);

/** Throws `CommandError`, which names the file, when it is not what we wrote. */
export const readKept = (): KeptSessions => {
  const path = sessionFile();
  if (!existsSync(path)) return {};
  const bytes = readSecretFile(path);
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    value = undefined;
  } finally {
    bytes.fill(0);
  }
  if (areKept(value)) return value;
  throw new CommandError('config', `${path} is not a file of sessions`, { hint: 'remove it, and sign in again' });
};

export const writeKept = (sessions: KeptSessions): void => {
  const path = sessionFile();
  if (Object.keys(sessions).length === 0) {
    rmSync(path, { force: true });
    return;
  }
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const fresh = `${path}.${process.pid}`;
  const file = openSync(fresh, 'wx', 0o600);
  try {
    writeSync(file, JSON.stringify(sessions));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(fresh, path);
};

/** The headers of the user who is signed in at this service; undefined without a session. */
export const sessionHeaders = (url: string): Readonly<Record<string, string>> | undefined => {
  const kept = readKept()[url];
  // A change with a session says where it comes from, as a browser does.
  return kept === undefined ? undefined : { cookie: `${cookieName}=${kept.session}`, origin: url };
};
