// Is the provider of this host installed as a database wants it, and does it work? Files first,
// then the library as a process loads it, then the way to the service (agent/threads/diagnose.ts),
// then a database's first calls, all as the database's OS user. Changes nothing, except that the
// last check may start the agent, as the database would.

import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { command } from '../../server/base/command-line.ts';
import {
  type Check,
  type CheckedPart,
  type CheckResult,
  type Finding,
  failed,
  notAsked,
  ok,
  runChecks,
  warning,
} from '../../server/base/diagnostic-checks.ts';
import type { ServiceInfo } from '../../server/contract/tde.ts';
import { diagnose } from '../agent/threads/diagnose.ts';
import { loadHttpClient } from '../agent/threads/load-http.ts';
import { codeOf } from './error.ts';
import { compareConfigurations, grouped } from './guids.ts';
import { damagedFiles } from './install.ts';
import { defaultBase, type Layout, libraryName, octal, otherLibraries, placeFaults } from './layout.ts';
import { mostProgramBytes, readRegular } from './owned-files.ts';
import { asOwnerAsync, effectiveOwner, type Owner, ownerOfPath } from './owner.ts';
import { libraryFolderOf, providerRoot } from './payload.ts';
import { usersOf } from './processes.ts';
import { checkProgram } from './program.ts';
import { readManifest, readState } from './state.ts';

export interface CheckOptions {
  readonly layout: Layout;
  /** The database's OS user; the owner of the library when absent. */
  readonly owner: Owner | undefined;
  /** pkcs11.toml files, one for each database. */
  readonly configPaths: readonly string[];
  readonly socket: string | undefined;
  /** The database's program, `oracle` for instance; not checked when absent. */
  readonly program: string | undefined;
  /**
   * Databases that share their keys are a fault and not a remark, and so is one that was compared
   * with none.
   */
  readonly distinct: boolean;
}

interface Context {
  readonly options: CheckOptions;
  readonly layout: Layout;
  readonly owner: Owner;
  readonly configPath: string;
}

const probeTime = 20_000;

/** dke-probe as the database's user; rejects never. */
const probe = (
  context: Context,
  ...flags: readonly string[]
): Promise<{ readonly code: number | null; readonly out: string; readonly error: string }> => {
  const { layout, owner, configPath, options } = context;
  const state = readState(layout);
  const installed = state?.current == null ? '' : join(layout.folder, 'agent', state.current, 'dke-probe');
  const program = existsSync(installed) ? installed : join(libraryFolderOf(providerRoot()), 'dke-probe');
  const other = process.geteuid?.() === 0 && owner.uid !== 0;
  const { HOME, PATH, XDG_RUNTIME_DIR, DKE_AGENT_LOG_DIR, DKE_PKCS11_SOCKET } = process.env;
  const socket = options.socket ?? DKE_PKCS11_SOCKET;
  return new Promise((resolve) => {
    const child = spawn(program, [layout.library, ...flags], {
      cwd: '/',
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: probeTime,
      killSignal: 'SIGKILL',
      ...(other ? { uid: owner.uid, gid: owner.gid } : {}),
      env: {
        PATH,
        DKE_PKCS11_CONF: configPath,
        ...(other ? {} : { HOME, XDG_RUNTIME_DIR }),
        ...(DKE_AGENT_LOG_DIR === undefined ? {} : { DKE_AGENT_LOG_DIR }),
        ...(socket === undefined ? {} : { DKE_PKCS11_SOCKET: socket }),
      },
    });
    let out = '';
    let error = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      error += text;
    });
    child.once('error', (fault) => resolve({ code: null, out, error: fault.message }));
    child.once('close', (code) => resolve({ code, out, error: error.trim().split('\n')[0] ?? '' }));
  });
};

const checkInstalled = ({ layout }: Context): Finding => {
  if (!existsSync(layout.library)) return failed(`${layout.library} is not there`, 'dke provider install');
  const state = readState(layout);
  if (state === undefined)
    return warning(
      `${layout.library} was not installed by this command: no rollback is possible`,
      'dke provider upgrade takes it over',
    );
  if (state.pending !== null)
    return failed(
      `an installation was interrupted while it installed build ${state.pending.current}`,
      'run it again: dke provider upgrade (or rollback, or install) finishes it',
    );
  const build = state.current ?? '';
  const { version } = readManifest(layout, build);
  return ok(
    `version ${version}, build ${build}${state.previous === null ? '' : `; build ${state.previous} is kept for a rollback`}`,
  );
};

const checkWhole = ({ layout }: Context): Finding => {
  const current = readState(layout)?.current;
  if (current == null) return notAsked('not installed by this command: nothing to compare with');
  const damaged = damagedFiles(layout, current);
  if (damaged.length === 0)
    return ok(`${Object.keys(readManifest(layout, current).files).length} files are unchanged since the installation`);
  return failed(
    `${damaged.slice(0, 3).join(', ')}${damaged.length > 3 ? ` and ${damaged.length - 3} more` : ''} changed or missing`,
    'dke provider install installs this build again; find out who changed it',
  );
};

const checkAlone = ({ layout }: Context): Finding => {
  if (layout.name !== 'hsm') return notAsked('a database that is configured with the complete path loads that one');
  const others = otherLibraries(layout);
  if (others.length > 0)
    return failed(
      `${others.join(', ')} is also under ${layout.tree}: a database loads only one library`,
      'move it out of the tree',
    );
  return ok(`${libraryName} is the only library under ${layout.tree}`);
};

const checkPlace = ({ layout, owner }: Context): Finding => {
  const expected = layout.rootOnly
    ? { uid: 0, gid: 0, name: 'root:root' }
    : { ...owner, name: `${owner.user}:${owner.group}` };
  const [first, ...more] = placeFaults(layout, expected);
  if (first !== undefined)
    return failed(
      more.length === 0 ? first : `${first} (and ${more.length} more: ${more.join('; ')})`,
      layout.rootOnly
        ? 'no symbolic links in the path; only root can write to the folders (ORA-46707)'
        : `chown ${expected.name} and chmod ${octal(layout.mode)}, or ${command`dke provider install --owner=${expected.name}`}`,
    );
  if (layout.rootOnly && layout.base !== defaultBase)
    return warning(
      `${layout.library} belongs to root`,
      `Oracle accepts PKCS11_LIBRARY_LOCATION only below ${defaultBase}/pkcs11`,
    );
  return ok(`${expected.name}, mode ${octal(layout.mode)}`);
};

const checkLoads = async (context: Context): Promise<Finding> => {
  const { code, out, error } = await probe(context);
  if (code !== 0)
    return failed(
      error || 'dke-probe did not end',
      'the library may be for another system: install the one for this host',
    );
  return ok(`loaded; its function list is that of Cryptoki ${/^cryptoki (.*)$/m.exec(out)?.[1] ?? '?'}`);
};

const checkUsers = ({ layout }: Context): Finding => {
  const { processes, agents, hidden } = usersOf(layout.library, join(layout.folder, 'agent'));
  const old = processes.filter((each) => each.old);
  const unseen = hidden > 0 ? `; those of other users could not be checked (${hidden})` : '';
  if (old.length > 0)
    return warning(
      `${old.map(({ pid, name }) => `${pid} (${name})`).join(', ')} still has a replaced library loaded${unseen}`,
      'restart that database',
    );
  const running = agents.map(({ pid }) => pid).join(', ');
  return ok(
    `loaded by ${processes.length === 1 ? 'one process' : `${processes.length} processes`}${running === '' ? '' : `; its agent runs as ${running}`}${unseen}`,
  );
};

const checkNewer = ({ layout }: Context): Finding => {
  const root = providerRoot();
  const folder = libraryFolderOf(root);
  return readFileSync(join(folder, libraryName)).equals(readRegular(layout.library, mostProgramBytes))
    ? ok('the library belongs to this version of the command')
    : warning('this version of the command has another library', 'dke provider upgrade installs it, with downtime');
};

const placeChecks: readonly Check<Context>[] = [
  { id: 'installed', layer: 'files', title: 'the provider is installed', needs: [], run: checkInstalled },
  { id: 'whole', layer: 'files', title: 'its files are complete and unchanged', needs: ['installed'], run: checkWhole },
  { id: 'alone', layer: 'files', title: 'there is only one library', needs: [], run: checkAlone },
  { id: 'place', layer: 'files', title: 'owner and mode are correct', needs: ['installed'], run: checkPlace },
  { id: 'loads', layer: 'library', title: 'a process can load it', needs: ['installed'], run: checkLoads },
  { id: 'newer', layer: 'library', title: 'it is up to date', needs: ['installed'], run: checkNewer },
  { id: 'users', layer: 'library', title: 'no process uses an old library', needs: ['installed'], run: checkUsers },
];

const checkCalls = async (context: Context): Promise<Finding> => {
  const { code, out, error } = await probe(context, '--call');
  if (code !== 0)
    return failed(
      `a database's first calls fail: ${error || 'no end within 20 s'}`,
      'docs/return-codes.md explains the code; library.log in the log directory says why',
    );
  const said = (name: string): string => new RegExp(`^${name} (.*)$`, 'm').exec(out)?.[1] ?? '?';
  return ok(`token ${said('token')}, ${said('description')}`);
};

const placeOf = async (context: Context): Promise<CheckedPart> => ({
  what: `the provider in ${context.layout.folder}`,
  results: await runChecks(placeChecks, context),
});

const databaseOf = async (
  context: Context,
  loads: boolean,
  applicationFound: (info: ServiceInfo) => void,
): Promise<CheckedPart> => {
  const { configPath, owner, options } = context;
  await loadHttpClient();
  // Its owner can read it; root, who may have created it, is not a database's user.
  const found = await asOwnerAsync(owner, () => diagnose({ configPath, socket: options.socket, applicationFound }));
  const results = found.filter(({ id, state }) => state !== 'skipped' || !['library', 'label'].includes(id));
  const need = results.find(({ state }) => state === 'failed');
  const last: Check<Context> = {
    id: 'calls',
    layer: 'library',
    title: "a database's first calls work",
    needs: [],
    run: (each) =>
      need === undefined && loads
        ? checkCalls(each)
        : notAsked(`blocked by: ${need?.title ?? 'a process can load it'}`),
  };
  const { program } = options;
  const reached: Check<Context> = {
    id: 'program',
    layer: 'configuration',
    title: 'every process of the program uses this configuration',
    needs: [],
    run: () =>
      program === undefined
        ? notAsked('no program is named')
        : checkProgram(program, configPath, owner, { fallback: defaultConfigPath }),
  };
  return {
    what: `the database of ${configPath}`,
    whoSays: 'the database prints',
    results: [...results, ...(await runChecks(program === undefined ? [last] : [reached, last], context))],
  };
};

/**
 * Which of several databases share their keys: those with one access_guid, and those whose
 * access_guids the service has issued to one application. In one group each application destroys
 * only its own keys, which the others may use.
 */
const compareKeys = async (
  paths: readonly string[],
  found: ReadonlyMap<string, ServiceInfo>,
  distinct: boolean,
): Promise<Finding> => {
  const { instances, shared, sameFile } = await compareConfigurations(paths);
  const fault = instances.find((each) => each.fault !== null);
  if (fault !== undefined) return failed(fault.fault ?? '', 'a file that cannot be read cannot be compared');
  const same = (group: readonly string[]): string =>
    sameFile.some((each) => group.every((path) => each.includes(path))) ? ' (one and the same file)' : '';
  const by = (name: (info: ServiceInfo) => string): readonly (readonly string[])[] =>
    grouped([...found].map(([path, info]) => [name(info), path]));
  const isShared = (group: readonly string[]): boolean =>
    shared.some((each) => group.every((path) => each.includes(path)));
  const nameOf = ([path = '']: readonly string[]): string => found.get(path)?.applicationName ?? '';
  const evidence = [
    ...shared.map((group) => `${group.join(', ')} share one access_guid${same(group)}`),
    ...by((info) => info.applicationId)
      .filter((group) => !isShared(group))
      .map((group) => `${group.join(', ')} have different access_guids of one application, ${nameOf(group)}`),
  ];
  if (evidence.length > 0)
    return (distinct ? failed : warning)(
      evidence.join('; '),
      'if a key is destroyed for one of them, it is destroyed for all: register an application for each before a destructive test',
    );
  const unknown = paths.filter((path) => !found.has(path));
  if (unknown.length > 0)
    return (distinct ? failed : warning)(
      `${unknown.join(', ')}: the access_guids differ, but the application is not known, because the service did not name it`,
      'repair what the check of that database says, then compare again: two access_guids can belong to one application',
    );
  const compared = `${paths.length} files: ${[...found.values()].map((info) => info.applicationName).join(', ')}`;
  const [inGroup] = by((info) => info.groupId);
  if (inGroup !== undefined)
    return warning(
      `${compared} are different applications, but ${inGroup.join(', ')} are in one group`,
      'a database that uses a key of another one in its group, after a clone for instance, loses it when that one destroys it',
    );
  return ok(`${compared} are different applications in different groups, with different access_guids`);
};

/**
 * Every check of several databases together. One file alone is compared with nothing, which is said
 * where distinct ones are asked for.
 */
const blastRadius = (
  paths: readonly string[],
  found: ReadonlyMap<string, ServiceInfo>,
  distinct: boolean,
): Promise<readonly CheckResult[]> => {
  const check: Check<null> = {
    id: 'blast-radius',
    layer: 'blast radius',
    title: 'each database has its own keys',
    needs: [],
    run: () =>
      paths.length > 1
        ? compareKeys(paths, found, distinct)
        : failed(
            'one pkcs11.toml was named: nothing was compared',
            'name the files of all databases, those of other hosts as copies: --conf FILE --conf FILE --distinct',
          ),
  };
  return runChecks([check], null);
};

/** Every check of this host. */
export const checkProvider = async (options: CheckOptions): Promise<readonly CheckedPart[]> => {
  const { layout, configPaths } = options;
  const ofPlace = layout.rootOnly ? undefined : ownerOfPath(layout.library);
  const owner = options.owner ?? ofPlace ?? effectiveOwner();
  const context: Context = { options, layout, owner, configPath: configPaths[0] ?? '' };
  const place = await placeOf(context);
  const loads = place.results.some(({ id, state }) => id === 'loads' && state === 'ok');
  const checked: CheckedPart[] = [place];
  const found = new Map<string, ServiceInfo>();
  for (const configPath of configPaths) {
    // With several databases each is checked as the owner of its own file.
    const own = options.owner ?? ownerOfFile(configPath) ?? owner;
    const heard = (info: ServiceInfo): void => void found.set(configPath, info);
    checked.push(await databaseOf({ ...context, owner: own, configPath }, loads, heard));
  }
  if (configPaths.length > 1 || options.distinct)
    checked.push({ what: 'the databases together', results: await blastRadius(configPaths, found, options.distinct) });
  return checked;
};

const ownerOfFile = (path: string): Owner | undefined => {
  try {
    const owner = ownerOfPath(path);
    return owner?.uid === 0 ? undefined : owner;
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return undefined;
  }
};

export const defaultConfigPath = '/etc/dke/pkcs11.toml';
