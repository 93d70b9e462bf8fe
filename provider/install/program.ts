// Which pkcs11.toml the processes of a program will use. A program with the setuid or setgid bit
// (`oracle` is 6751 oracle:asmadmin with Grid Infrastructure) runs with rights that its caller does
// not have; the kernel marks such a process as secure (AT_SECURE), and then the library does not
// believe the caller's environment: it accepts the file that DKE_PKCS11_CONF names only if it
// belongs to the effective user, gives no other user a right, and is below a folder of the
// administrator. So a caller can only choose among the files of the database's user. The rule is
// that of provider/module/host/secure_config.c, in the same words.
//
// The path of the program is the administrator's word. Of the configuration only owner, mode and
// place are read, with the rights of the user as whom the program runs; of root's list of folders
// the first 16 KiB, and only if root alone can write it.
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { type Finding, failed, ok, warning } from '../../server/base/diagnostic-checks.ts';
import { codeOf } from './error.ts';
import { octal } from './layout.ts';
import { asOwner, type Owner, ownerOfNumbers } from './owner.ts';

/** The folder of the administrator, and in it the file in which root names more of them. */
export const administratorFolder = '/etc/dke';
const listName = 'config-folders';
const listMost = 16 * 1024;
const [setuid, setgid, othersWrite, notOwner] = [0o4000, 0o2000, 0o022, 0o177];

/** What a call of the file system says; undefined: what it is about cannot be reached. */
const tried = <T>(read: () => T): T | undefined => {
  try {
    return read();
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return undefined;
  }
};

/** Whether only root and the effective user can change the folder. */
const isSafe = (path: string, effectiveUid: number): boolean => {
  const state = tried(() => lstatSync(path));
  return state?.isDirectory() === true && [0, effectiveUid].includes(state.uid) && (state.mode & othersWrite) === 0;
};

/** Whether the path is below the folder, and all folders from there down to it are safe. */
const isBelow = (real: string, named: string, effectiveUid: number): boolean => {
  const place = tried(() => realpathSync(named));
  if (place === undefined || place === sep || !real.startsWith(place + sep)) return false;
  for (let each = dirname(real); each.length >= place.length; each = dirname(each))
    if (!isSafe(each, effectiveUid)) return false;
  return true;
};

/** The folders that root's list names; none when there is no list that only root can change. */
const listedFolders = (path: string): readonly string[] => {
  const fd = tried(() => openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK));
  if (fd === undefined) return [];
  try {
    const state = fstatSync(fd);
    if (!state.isFile() || state.uid !== 0 || (state.mode & othersWrite) !== 0) return [];
    const bytes = Buffer.alloc(listMost);
    const got = readSync(fd, bytes);
    const lines = bytes.toString('utf8', 0, got).split('\n');
    // A last line that does not fit is dropped: its beginning may name a folder that contains much
    // more.
    return (got === listMost ? lines.slice(0, -1) : lines).filter((line) => line.startsWith('/'));
  } finally {
    closeSync(fd);
  }
};

/**
 * Why a process that is marked as secure ignores the file that its caller names; null: it uses it.
 */
const refusalOf = (configPath: string, effectiveUid: number, folder: string): string | null => {
  const real = tried(() => realpathSync(configPath)) ?? configPath;
  const state = tried(() => lstatSync(real));
  if (state === undefined) return 'there is no such file that this program can reach';
  if (!state.isFile()) return 'it is not a regular file';
  if (state.uid !== effectiveUid) return 'it does not belong to the user as whom this program runs';
  if ((state.mode & notOwner) !== 0) return 'its mode is not 600';
  const list = join(folder, listName);
  return [folder, ...listedFolders(list)].some((each) => isBelow(real, each, effectiveUid))
    ? null
    : `it is neither below ${folder} nor below a directory that ${list} names, or others can write to one on the way`;
};

/** What each kind of process of the program uses. `owner`: the OS user of the database. */
export const checkProgram = (
  program: string,
  configPath: string,
  owner: Owner,
  { folder = administratorFolder, fallback }: { readonly folder?: string; readonly fallback: string },
): Finding => {
  const found = tried(() => statSync(program));
  if (found === undefined)
    return failed(`${program} is not there, or cannot be reached`, 'name the program of the database: --program FILE');
  const { uid, gid, mode } = found;
  const changesUser = (mode & setuid) !== 0;
  const changesGroup = (mode & setgid) !== 0;
  const named = ownerOfNumbers(uid, gid);
  const evidence = `${program} has mode ${octal(mode & 0o7777)}, ${named.user}:${named.group}`;
  if (!changesUser && !changesGroup) return ok(`${evidence}: every process uses ${configPath} (DKE_PKCS11_CONF)`);
  const group = changesGroup ? gid : owner.gid;
  // Two kinds of processes: the instance, which the database's user starts, and local clients,
  // which the mode bits give the rights of the owner.
  const kinds = [
    {
      who: `processes that ${owner.user} starts`,
      isSecure: (changesUser && uid !== owner.uid) || (changesGroup && gid !== owner.gid),
      effective: { ...(changesUser ? named : owner), gid: group },
    },
    ...(changesUser
      ? [{ who: 'processes that other OS users start', isSecure: true, effective: { ...named, gid: group } }]
      : [{ who: 'processes of other OS users', isSecure: true, effective: null }]),
  ];
  const lines = kinds.map(({ who, isSecure, effective }) => {
    if (!isSecure) return { text: `${who} use ${configPath}`, ignored: false };
    const marked = `${who} (AT_SECURE)`;
    // This file needs no variable, so that no rule decides about it.
    if (configPath === fallback) return { text: `${marked} use ${configPath}`, ignored: false };
    // Null: the process has the rights of a user who is not known here. Another user cannot read a
    // file of mode 600.
    const why =
      effective === null
        ? 'it does not belong to the user as whom this program runs'
        : asOwner(effective, () => refusalOf(configPath, effective.uid, folder));
    return why === null
      ? { text: `${marked} use ${configPath}`, ignored: false }
      : { text: `${marked} ignore ${configPath} (${why}) and use ${fallback}`, ignored: true };
  });
  const text = `${evidence}: ${lines.map((line) => line.text).join('; ')}`;
  if (!lines.some(({ ignored }) => ignored)) return ok(text);
  const fix =
    `move the file to ${folder}/NAME.toml, owner ${named.user}, mode 600, and set DKE_PKCS11_CONF to it; or let root name its ` +
    `directory in ${join(folder, listName)}`;
  return lines[0]?.ignored === true || changesUser ? failed(text, fix) : warning(text, fix);
};
