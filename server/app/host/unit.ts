// The unit of systemd that runs a service: what it may write, lock and bind, and as which user.
// What `systemctl show` says of a unit whose command names this dke.toml is believed; its text was
// chosen by root. Which lines open a closed folder is decided here, too: a folder that is hidden is
// not opened by ReadWritePaths=, with which the unit would not even start.
//
// Names of folders are those of dke.toml, whose writer may be another than root: a command is
// printed for root only where a name is nothing else for systemd, and only root can put
// another folder in its place (root-way.ts).

import { spawnSync } from 'node:child_process';
import { userInfo } from 'node:os';
import { resolve } from 'node:path';
import { extendUnit, shellWord } from '../../base/command-line.ts';
import { seenByRoot } from './root-way.ts';

export interface Unit {
  readonly name: string;
  /** A name; empty: root. */
  readonly user: string;
  /** Bytes. */
  readonly lockedMemory: number;
  /** Folders below which nothing can be written, and those of them that can. */
  readonly readOnly: readonly string[];
  readonly writable: readonly string[];
  /** Folders that are others inside the unit. */
  readonly hidden: readonly string[];
  readonly bindsLowPorts: boolean;
}

const unitName = 'dke-server.service';
const properties = [
  ...['LoadState', 'ExecStart', 'User', 'LimitMEMLOCK', 'AmbientCapabilities'],
  ...['ProtectSystem', 'ProtectHome', 'PrivateTmp', 'ReadWritePaths', 'ReadOnlyPaths', 'BindPaths'],
  ...['StateDirectory', 'LogsDirectory', 'CacheDirectory', 'RuntimeDirectory'],
];
const places = {
  StateDirectory: '/var/lib',
  LogsDirectory: '/var/log',
  CacheDirectory: '/var/cache',
  RuntimeDirectory: '/run',
};
const protectedFolders: Readonly<Record<string, readonly string[]>> = {
  strict: ['/'],
  full: ['/usr', '/boot', '/efi', '/etc'],
  yes: ['/usr', '/boot', '/efi'],
};
const homes = ['/home', '/root', '/run/user'];
/** The system's own files, which no unit keeps back. */
const alwaysWritable = ['/dev', '/proc', '/sys'];

/** The words of a text as systemd separates them: a word with blanks is in quotation marks. */
const words = (text: string): readonly string[] =>
  [...text.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');

const known = new Map<string, Unit | undefined>();
/**
 * Undefined: systemd knows no unit that runs a service with this configuration. Asked once: root,
 * who becomes the user of the service afterwards, hears it also where there is no bus for other
 * users.
 */
export const readUnit = (config: string): Unit | undefined => {
  const path = resolve(config);
  if (!known.has(path)) known.set(path, askSystemd(path));
  return known.get(path);
};

/** The user of the unit that runs the service; undefined: none is known, or it is root. */
const unitUser = (): string | undefined => {
  const found = [...known.values()].find((unit) => unit !== undefined)?.user;
  if (found !== undefined) return found === '' ? undefined : found;
  // A service that systemd has started.
  const own = process.geteuid?.() ?? 0;
  if (process.env.INVOCATION_ID === undefined || own === 0) return undefined;
  try {
    return userInfo().username;
  } catch {
    return `#${own}`;
  }
};

/**
 * A command that is offered, as whom it is typed. An operator pastes it as root, and the user of
 * the service has chosen what is in its folders.
 */
export const asServiceUser = (line: string): string => {
  const user = unitUser();
  return user === undefined ? line : `sudo -u ${shellWord(user)} ${line}`;
};

const askSystemd = (config: string): Unit | undefined => {
  const { status, stdout } = spawnSync('systemctl', ['show', unitName, `--property=${properties.join(',')}`], {
    encoding: 'utf8',
    timeout: 5_000,
    maxBuffer: 1 << 20,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  if (status !== 0) return undefined;
  const found = new Map(
    stdout.split('\n').flatMap((line) => {
      const at = line.indexOf('=');
      return at < 1 ? [] : [[line.slice(0, at), line.slice(at + 1)] as const];
    }),
  );
  const of = (name: string): string => found.get(name) ?? '';
  if (of('LoadState') !== 'loaded' || !words(of('ExecStart')).includes(config)) return undefined;
  const tmp = of('PrivateTmp') === 'yes' ? ['/tmp', '/var/tmp'] : [];
  const hidden = [...tmp, ...(['yes', 'tmpfs'].includes(of('ProtectHome')) ? homes : [])];
  const isHidden = (path: string): boolean => hidden.some((folder) => isBelow(path, folder));
  // Below an inaccessible home nothing can be mounted.
  const canBeBound = (path: string): boolean =>
    of('ProtectHome') !== 'yes' || !homes.some((folder) => isBelow(path, folder));
  const limit = of('LimitMEMLOCK');
  return {
    name: unitName.replace('.service', ''),
    user: of('User'),
    lockedMemory: limit === 'infinity' || limit === '' ? Number.POSITIVE_INFINITY : Number(limit),
    readOnly: [
      ...(protectedFolders[of('ProtectSystem')] ?? []),
      ...words(of('ReadOnlyPaths')),
      ...(of('ProtectHome') === 'read-only' ? homes : []),
    ],
    writable: [
      ...alwaysWritable,
      ...words(of('ReadWritePaths'))
        .map((path) => path.replace(/^[-+]+/, ''))
        .filter((path) => !isHidden(path)),
      ...words(of('BindPaths'))
        .map((bound) => bound.replace(/^-/, '').split(':')[1] ?? bound)
        .filter(canBeBound),
      ...Object.entries(places).flatMap(([name, place]) => words(of(name)).map((folder) => `${place}/${folder}`)),
    ],
    hidden,
    bindsLowPorts: of('User') === '' || of('AmbientCapabilities').toLowerCase().includes('cap_net_bind_service'),
  };
};

const isBelow = (path: string, folder: string): boolean =>
  folder === '/' || path === folder || path.startsWith(`${folder}/`);
const longestOf = (path: string, folders: readonly string[]): number =>
  Math.max(-1, ...folders.filter((folder) => isBelow(path, folder)).map(({ length }) => length));

/** Whether the service can write below a folder inside its unit: the closest rule counts. */
export const isWritableIn = ({ readOnly, writable, hidden }: Unit, folder: string): boolean =>
  longestOf(folder, writable) >= Math.max(longestOf(folder, readOnly), longestOf(folder, hidden));

/**
 * A path as the value of a setting of systemd, which reads `%` as its own. Each other character
 * that systemd reads is refused before (`nameFault`).
 */
const setting = (name: string, path: string): string => {
  const text = path.replaceAll('%', '%%');
  return `${name}=${/\s/.test(text) ? `"${text}"` : text}`;
};

/** What is empty after a boot: a unit that binds a folder of it does not start again. */
const forgotten = ['/tmp', '/run', '/var/run', '/dev'];

/** Why the unit is not opened for a folder, with what to name instead; undefined: it can be. */
const folderFault = ({ hidden }: Unit, folder: string): string | undefined => {
  if (/[\p{Cc}\p{Zl}\p{Zp}"'\\:]/u.test(folder))
    return `systemd reads a quotation mark, ":" or "\\" in a name as its own`;
  if (folder === '/' || hidden.includes(folder)) return 'the unit has another folder in its place';
  if (forgotten.some((each) => isBelow(folder, each))) return 'it is empty after a boot';
  const { fault } = seenByRoot(folder);
  return fault === undefined ? undefined : `${fault}: name a folder that only root can rename`;
};

/**
 * The command that lets the unit write these folders, or which of them need another name. Systemd
 * wants each of them to be there.
 */
export const openFolders = (unit: Unit, folders: readonly string[]): string => {
  const { name, user, hidden } = unit;
  const faults = folders.flatMap((folder) => {
    const fault = folderFault(unit, folder);
    return fault === undefined ? [] : [`name another folder than ${folder} in dke.toml: ${fault}`];
  });
  if (faults.length > 0) return faults.join('; ');
  const isHidden = (folder: string): boolean => hidden.some((each) => isBelow(folder, each));
  const lines = folders.map((folder) => setting(isHidden(folder) ? 'BindPaths' : 'ReadWritePaths', folder));
  const atHome = folders.some((folder) => isHidden(folder) && homes.some((home) => isBelow(folder, home)));
  const owner = user === '' ? 'root' : user;
  const made = folders.filter((folder) => !seenByRoot(folder).exists).map(shellWord);
  const make = made.length === 0 ? '' : `install -d -o ${shellWord(owner)} -m 700 ${made.join(' ')} && `;
  return make + extendUnit(name, 'folders', [...(atHome ? ['ProtectHome=tmpfs'] : []), ...lines]);
};
