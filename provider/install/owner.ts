// The database's OS user: looked up by name, and acted for. Root never writes into a directory that
// another user may change: what is done in there is done as that user, so that a link left there on
// purpose leads root nowhere.
import { spawnSync } from 'node:child_process';
import { lstatSync } from 'node:fs';
import { InstallError } from './error.ts';

export interface Owner {
  readonly user: string;
  readonly group: string;
  readonly uid: number;
  readonly gid: number;
}

/** A line of the user or group data base, which may come from a directory service. */
const lookUp = (database: 'passwd' | 'group', key: string): readonly string[] | undefined => {
  const { status, stdout } = spawnSync('getent', [database, key], { encoding: 'utf8' });
  return status === 0 ? stdout.trim().split(':') : undefined;
};

const numberIn = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : undefined;

/**
 * `user`, `user:group`, names or numbers; without a group the user's own. Throws InstallError
 * 'config'.
 */
export const parseOwner = (text: string): Owner => {
  const [user = '', group, ...rest] = text.split(':');
  const bad = (what: string): InstallError =>
    new InstallError(
      'config',
      `--owner ${text}: ${what}`,
      'name the OS user and group of the database: oracle:oinstall',
    );
  if (user === '' || group === '' || rest.length > 0) throw bad('must be user:group');
  const line = lookUp('passwd', user);
  const uid = numberIn(line?.[2]) ?? numberIn(user);
  if (uid === undefined) throw bad(`there is no user ${user}`);
  const wanted = group ?? line?.[3];
  if (wanted === undefined) throw bad(`user ${user} has no primary group: name a group`);
  const groupLine = lookUp('group', wanted);
  const gid = numberIn(groupLine?.[2]) ?? numberIn(wanted);
  if (gid === undefined) throw bad(`there is no group ${wanted}`);
  return { user: line?.[0] ?? user, group: groupLine?.[0] ?? wanted, uid, gid };
};

export const ownerOfNumbers = (uid: number, gid: number): Owner => ({
  user: lookUp('passwd', String(uid))?.[0] ?? String(uid),
  group: lookUp('group', String(gid))?.[0] ?? String(gid),
  uid,
  gid,
});

export const effectiveOwner = (): Owner => ownerOfNumbers(process.geteuid?.() ?? 0, process.getegid?.() ?? 0);

/** The owner of something that is there already. */
export const ownerOfPath = (path: string): Owner | undefined => {
  const state = lstatSync(path, { throwIfNoEntry: false });
  return state === undefined ? undefined : ownerOfNumbers(state.uid, state.gid);
};

const switchTo = ({ user, uid, gid }: Owner): (() => void) => {
  const groups = process.getgroups?.() ?? [];
  const { status, stdout } = spawnSync('id', ['-G', '--', user], { encoding: 'utf8' });
  process.setgroups?.(status === 0 ? stdout.trim().split(' ').map(Number) : [gid]);
  process.setegid?.(gid);
  process.seteuid?.(uid);
  return () => {
    process.seteuid?.(0);
    process.setegid?.(0);
    process.setgroups?.(groups);
  };
};

const mustSwitch = ({ uid }: Owner): boolean => process.geteuid?.() === 0 && uid !== 0;

/**
 * Runs it as this user when we are root; otherwise as who we are. The user is the whole process's
 * in the meantime.
 */
export const asOwner = <T>(owner: Owner, run: () => T): T => {
  if (!mustSwitch(owner)) return run();
  const back = switchTo(owner);
  try {
    return run();
  } finally {
    back();
  }
};

export const asOwnerAsync = async <T>(owner: Owner, run: () => Promise<T>): Promise<T> => {
  if (!mustSwitch(owner)) return run();
  const back = switchTo(owner);
  try {
    return await run();
  } finally {
    back();
  }
};
