// Which pkcs11.toml the processes of a program will use. A program with the setuid or setgid bit (`oracle` is 6751 oracle:asmadmin with Grid
// Infrastructure) runs with rights that its caller does not have; the kernel marks such a process as secure (AT_SECURE), and then the
// library does not believe the caller's environment: it accepts the file that DKE_PKCS11_CONF names only if it belongs to the effective
// user, has mode 600 and is below a folder of the administrator. So a caller can only choose among the files of the database's user.
//
// The path of the program is the administrator's word. Only the mode and the owners of files are read.
import { lstatSync, realpathSync, statSync } from 'node:fs';
import { sep } from 'node:path';
import { type Finding, failed, ok, warning } from '../../server/base/checks.ts';
import { octal } from './layout.ts';
import { type Owner, ownerOfNumbers } from './owner.ts';

/** The folder of the administrator. */
export const administratorFolder = '/etc/dke';
const [setuid, setgid] = [0o4000, 0o2000];

/** Why a process that is marked as secure ignores the file that its caller names; null: it uses it. */
const refusalOf = (configPath: string, effectiveUid: number, folder: string): string | null => {
  const state = lstatSync(configPath, { throwIfNoEntry: false });
  if (state === undefined) return 'there is no such file';
  const real = realpathSync(configPath);
  if (!real.startsWith(folder + sep)) return `it is not below ${folder}`;
  const { uid, mode } = statSync(real);
  if (uid !== effectiveUid) return `it belongs to uid ${uid} and not to uid ${effectiveUid}`;
  return (mode & 0o777) === 0o600 ? null : `its mode is ${octal(mode & 0o777)} and not 600`;
};

/** What each kind of process of the program uses. `owner`: the OS user of the database. */
export const checkProgram = (
  program: string,
  configPath: string,
  owner: Owner,
  { folder = administratorFolder, fallback }: { readonly folder?: string; readonly fallback: string },
): Finding => {
  const { uid, gid, mode } = statSync(program);
  const changesUser = (mode & setuid) !== 0;
  const changesGroup = (mode & setgid) !== 0;
  const named = ownerOfNumbers(uid, gid);
  const evidence = `${program} has mode ${octal(mode & 0o7777)}, ${named.user}:${named.group}`;
  if (!changesUser && !changesGroup) return ok(`${evidence}: every process uses ${configPath} (DKE_PKCS11_CONF)`);
  // Of the instance, which the database's user starts; and of local clients, whom the bits give the rights of the owner.
  const kinds = [
    {
      who: `processes that ${owner.user} starts`,
      isSecure: (changesUser && uid !== owner.uid) || (changesGroup && gid !== owner.gid),
      effective: changesUser ? uid : owner.uid,
    },
    ...(changesUser ? [{ who: 'processes that other OS users start', isSecure: true, effective: uid }] : []),
    ...(!changesUser && changesGroup ? [{ who: 'processes of other OS users', isSecure: true, effective: null }] : []),
  ];
  const lines = kinds.map(({ who, isSecure, effective }) => {
    if (!isSecure) return { text: `${who} use ${configPath}`, ignored: false };
    const marked = `${who} (AT_SECURE)`;
    // It is the rights of a user who is not known here: another user cannot read a file of mode 600.
    const why = effective === null ? 'it does not belong to that user' : refusalOf(configPath, effective, folder);
    return why === null
      ? { text: `${marked} use ${configPath}`, ignored: false }
      : { text: `${marked} ignore ${configPath} (${why}) and use ${fallback}`, ignored: true };
  });
  const text = `${evidence}: ${lines.map((line) => line.text).join('; ')}`;
  if (!lines.some(({ ignored }) => ignored)) return ok(text);
  const fix = `move the file to ${folder}/NAME.toml, owner ${named.user}, mode 600, and set DKE_PKCS11_CONF to it`;
  return lines[0]?.ignored === true || changesUser ? failed(text, fix) : warning(text, fix);
};
