// Commands that root runs and that read what belongs to another user: they do so with the rights of
// this user.

import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { loadConfig } from '../../app/config/config.ts';
import { readUnit } from '../../app/host/unit.ts';

export interface User {
  readonly uid: number;
  /** The owner of the file: only a user without a name gets it. */
  readonly gid: number;
}
export const ownerOf = (path: string): User => {
  const { uid = 0, gid = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {};
  return { uid, gid };
};

const ask = (args: readonly string[]): string | undefined => {
  const { status, stdout } = spawnSync('id', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  return status === 0 ? stdout.trim() : undefined;
};

/**
 * Whom the service runs as: the user of its unit, else the owner of its data. A dke.toml that
 * cannot be used is a finding.
 */
export const userOf = (config: string): User => {
  const unit = readUnit(config);
  if (unit !== undefined && unit.user !== '') {
    const uid = ask(['-u', unit.user]);
    if (uid !== undefined) return { uid: Number(uid), gid: Number(ask(['-g', unit.user])) };
  }
  try {
    const { dataDirectory } = loadConfig(resolve(config), process.cwd());
    return ownerOf(existsSync(dataDirectory) ? dataDirectory : config);
  } catch {
    return ownerOf(config);
  }
};

const nogroup = 65_534;
/** The user's own group. A file of the user may be in another one, such as root's. */
const groupOf = ({ uid, gid }: User): number => {
  const own = ask(['-g', String(uid)]);
  if (own !== undefined) return Number(own);
  return gid === 0 ? nogroup : gid;
};
const takeGroups = (uid: number, group: number): void => {
  try {
    (process as NodeJS.Process & { initgroups?: (user: number, group: number) => void }).initgroups?.(uid, group);
  } catch {
    // A user without a name has no other groups.
    process.setgroups?.([group]);
  }
};

/**
 * Makes root the user of the service. As root the checks would show other results: root can read
 * everything, and does not own the files that the user of the service must own.
 */
export const become = (user: User): void => {
  const { uid } = user;
  if (process.getuid?.() !== 0 || uid === 0) return;
  const group = groupOf(user);
  takeGroups(uid, group);
  process.setgid?.(group);
  process.setuid?.(uid);
};

/**
 * Runs `read` with the rights of the user, and is root again afterwards: links and FIFOs that this
 * user has put somewhere lead no further than the user comes.
 */
export const asUser = async <T>(user: User | undefined, read: () => T | Promise<T>): Promise<T> => {
  if (user === undefined || process.getuid?.() !== 0 || user.uid === 0) return read();
  const before = { groups: process.getgroups?.() ?? [], group: process.getegid?.() ?? 0 };
  const group = groupOf(user);
  try {
    takeGroups(user.uid, group);
    process.setegid?.(group);
    process.seteuid?.(user.uid);
    return await read();
  } finally {
    process.seteuid?.(0);
    process.setegid?.(before.group);
    process.setgroups?.(before.groups);
  }
};
