// install, upgrade, rollback and uninstall of the provider on a database host. Every change is one
// step that leaves the place usable: the library that a database finds is the old one or the new
// one, whole, whenever the run is cut off, and the next run finishes what was started. pkcs11.toml
// is never touched; uninstall removes it when it is asked to.
import { existsSync, lstatSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { InstallReport, ProcessOf } from '../../server/contract/provider.ts';
import { InstallError } from './error.ts';
import { type Layout, libraryName } from './layout.ts';
import { inFolder, mostProgramBytes, readRegular, removeEmpty, wayOf } from './owned-files.ts';
import { asOwner } from './owner.ts';
import { type Payload, sha256 } from './payload.ts';
import { type InstallOptions, named, Run } from './run.ts';
import {
  keepBuild,
  type Manifest,
  readManifest,
  readState,
  removeOldBuilds,
  type State,
  stateName,
  statePath,
} from './state.ts';

const manifestOf = ({ build, version, library, agentScript, agent }: Payload): Manifest => ({
  format: 1,
  build,
  version,
  files: {
    [libraryName]: sha256(library),
    'dke-agent': sha256(agentScript),
    ...Object.fromEntries(agent.map(({ path, content }) => [`agent/${build}/${path}`, sha256(content)])),
  },
});

/** Records a library that was installed in another way, so that an upgrade can be undone. */
const adopt = (run: Run): State | undefined => {
  const { layout } = run;
  if (!existsSync(layout.library)) return undefined;
  // The files are read as their owner: root would read through a link what the owner may not see.
  const [library, agentScript] = asOwner(run.files, () => [
    readRegular(layout.library, mostProgramBytes),
    existsSync(layout.agentScript) ? readRegular(layout.agentScript, mostProgramBytes) : null,
  ]);
  const build = `found-${sha256(library).slice(0, 12)}`;
  run.doInside(`keep the existing library as build ${build}`, () => {
    const files = {
      [libraryName]: sha256(library),
      ...(agentScript === null ? {} : { 'dke-agent': sha256(agentScript) }),
    };
    keepBuild(layout, { format: 1, build, version: 'unknown', files }, { library, agentScript });
  });
  return { format: 1, current: build, previous: null, pending: null };
};

/** Files of the current build that are not as they were installed, relative to the folder. */
export const damagedFiles = (layout: Layout, build: string): string[] =>
  Object.entries(readManifest(layout, build).files).flatMap(([path, wanted]) => {
    try {
      return sha256(readRegular(join(layout.folder, path), mostProgramBytes)) === wanted ? [] : [path];
    } catch {
      return [path];
    }
  });

const remarkAgents = (run: Run, agents: readonly ProcessOf[]): void => {
  if (agents.length === 0) return;
  const pids = agents.map(({ pid }) => pid).join(' ');
  run.remarks.push(
    `the running agent (${named(agents)}) still uses the old program: kill ${pids}, and the next call starts the new one`,
  );
};

/** Lays down the build, keeps the one before. */
const lay = (run: Run, payload: Payload, state: State | undefined): State => {
  const { layout } = run;
  run.layAgent(payload);
  run.doInside(`keep build ${payload.build} in ${layout.state}`, () => keepBuild(layout, manifestOf(payload), payload));
  const previous = state?.current === payload.build ? state.previous : (state?.current ?? null);
  const done = run.switchTo(state, { current: payload.build, previous });
  run.doInside('remove files that neither this build nor a rollback needs', () => {
    removeOldBuilds(layout, [done.current, done.previous]);
  });
  return done;
};

const inPlace = ({ layout, files }: Run, build: string): boolean => {
  if (damagedFiles(layout, build).length > 0) return false;
  return [layout.library, layout.agentScript].every((path) => {
    const { uid, gid, mode } = lstatSync(path);
    return uid === files.uid && gid === files.gid && (mode & 0o7777) === layout.mode;
  });
};

const next = (run: Run): void => {
  if (run.layout.name === 'pkcs11')
    run.remarks.push(`the database's parameter: PKCS11_LIBRARY_LOCATION='${run.layout.library}'`);
  run.remarks.push(
    `next: pkcs11.toml with mode 600, owned by ${run.owner.user}:${run.owner.group}; then dke provider check`,
  );
};

/**
 * First installation. One that is there already in this very build is repaired where it is damaged;
 * another one is for `upgrade`.
 */
export const install = (options: InstallOptions, payload: Payload): InstallReport => {
  const run = new Run(options);
  const { layout } = run;
  run.refuseOthers();
  const users = run.users();
  const before = readState(layout);
  const current = before?.pending?.current ?? before?.current ?? null;
  if (current !== null && current !== payload.build)
    throw new InstallError(
      'refused',
      `build ${current} is installed in ${layout.folder}`,
      'dke provider upgrade replaces it',
    );
  if (current === null && existsSync(layout.library))
    throw new InstallError(
      'refused',
      `${layout.library} exists, and was not installed by this command`,
      'dke provider upgrade takes it over and keeps it for a rollback',
    );
  run.makePlace();
  run.makeLogDirectory();
  const state = run.locked(() => {
    const found = run.finish(before);
    if (found?.current === payload.build && inPlace(run, payload.build)) return found;
    // A damaged program of the same build is replaced: no working process uses it.
    if (found?.current === payload.build) {
      const damaged = damagedFiles(layout, payload.build).some((path) => path.startsWith('agent/'));
      if (damaged)
        run.doInside('remove the damaged program of the agent', () =>
          rmSync(join(layout.folder, 'agent', payload.build), { recursive: true, force: true }),
        );
    }
    return lay(run, payload, found);
  });
  run.writeUnits();
  if (run.steps.length === 0) run.remarks.push('nothing to do: this build is installed and undamaged');
  else next(run);
  return run.report('install', state, users, payload.version);
};

export const upgrade = (options: InstallOptions, payload: Payload): InstallReport => {
  const run = new Run(options);
  const { layout } = run;
  const before = readState(layout);
  if (before?.current == null && before?.pending == null && !existsSync(layout.library))
    throw new InstallError('not-found', `nothing is installed in ${layout.folder}`, 'dke provider install');
  run.refuseOthers();
  const users = run.users();
  const same = before?.current === payload.build && before.pending === null;
  if (same && inPlace(run, payload.build)) {
    run.remarks.push('nothing to do: this build is installed and undamaged');
    return run.report('upgrade', before, users);
  }
  run.refuseUsers(users.processes, 'an upgrade');
  run.makePlace();
  run.makeLogDirectory();
  const state = run.locked(() => lay(run, payload, run.finish(before) ?? adopt(run)));
  run.writeUnits();
  remarkAgents(run, users.agents);
  run.remarks.push(
    'next: start the database, and check its log for a connection and a key; dke provider rollback undoes this',
  );
  return run.report('upgrade', state, users, payload.version);
};

/** Puts the build before in place again; a second rollback takes the first one back. */
export const rollback = (options: InstallOptions): InstallReport => {
  const run = new Run(options);
  const { layout } = run;
  const before = readState(layout);
  if (before === undefined)
    throw new InstallError('not-found', `nothing is installed in ${layout.folder}`, 'dke provider install');
  const target = before.pending === null ? before.previous : before.pending.previous;
  if (target === null) throw new InstallError('refused', 'no earlier build is stored here: a rollback is not possible');
  run.refuseOthers();
  const users = run.users();
  run.refuseUsers(users.processes, 'a rollback');
  const state = run.locked(() => {
    const found = run.finish(before) ?? before;
    return run.switchTo(found, { current: target, previous: found.current });
  });
  remarkAgents(run, users.agents);
  run.remarks.push('next: start the database, and check its log for a connection and a key');
  return run.report('rollback', state, users);
};

export interface UninstallOptions extends InstallOptions {
  /** pkcs11.toml to remove too; null: it stays. */
  readonly purge: string | null;
  readonly configPath: string;
}

/** All that was installed, under the lock. */
const removeAll = (run: Run): void => {
  const { layout } = run;
  run.removeUnits();
  // The library first: from then on a database finds none. The state last, so that a run that was
  // cut off can be repeated.
  run.doInside(`remove ${layout.library}`, () => rmSync(layout.library, { force: true }));
  run.doInside(`remove ${layout.agentScript}`, () => rmSync(layout.agentScript, { force: true }));
  run.doInside("remove the agent's program", () =>
    rmSync(join(layout.folder, 'agent'), { recursive: true, force: true }),
  );
  run.do(`remove ${layout.folder}, and empty folders above it`, () => {
    for (const path of [layout.folder, dirname(layout.folder), layout.tree]) removeEmpty(path);
  });
  run.doInside(`empty ${layout.state}`, () => {
    for (const name of readdirSync(layout.state))
      if (name !== stateName) rmSync(join(layout.state, name), { recursive: true, force: true });
    rmSync(statePath(layout), { force: true });
  });
  // The folder above may belong to another user, who installed in the other layout.
  run.do(`remove ${layout.state}, and ${dirname(layout.state)} when it is empty`, () => {
    for (const path of [layout.state, dirname(layout.state)]) removeEmpty(path);
  });
};

export const uninstall = (options: UninstallOptions): InstallReport => {
  const run = new Run(options);
  const { layout } = run;
  const before = readState(layout);
  if (before === undefined)
    throw new InstallError(
      'not-found',
      `${layout.folder} contains nothing that this command installed`,
      existsSync(layout.library)
        ? `${layout.library} was not installed by this command: remove it manually`
        : undefined,
    );
  const users = run.users();
  run.refuseUsers(users.processes, 'an uninstallation');
  run.locked(() => removeAll(run));
  if (options.purge !== null) {
    const conf = options.purge;
    if (existsSync(conf))
      run.do(`remove ${conf}`, () => inFolder(wayOf(dirname(conf)), (at) => rmSync(at(basename(conf)))));
    const logDirectory = wayOf(options.logDirectory);
    if (existsSync(logDirectory))
      run.do(`remove ${logDirectory}`, () => {
        inFolder(logDirectory, (at, owner) =>
          // A folder of root is emptied only for root: another one on the way could take its place.
          asOwner(owner.uid === 0 ? run.owner : owner, () => {
            for (const name of readdirSync(at('.'))) rmSync(at(name), { recursive: true, force: true });
          }),
        );
        inFolder(dirname(logDirectory), (at) => rmdirSync(at(basename(logDirectory))));
      });
  }
  for (const { pid, name } of users.agents)
    run.remarks.push(`an agent still runs: ${pid} (${name}); it ends automatically, or: kill ${pid}`);
  const left = existsSync(layout.folder) ? readdirSync(layout.folder) : [];
  if (!options.dryRun && left.length > 0)
    run.remarks.push(`${layout.folder} stays: ${left.join(', ')} was not installed by this command`);
  const remain = [options.configPath, options.logDirectory].filter((path) => existsSync(path));
  if (remain.length > 0 && (options.purge === null || !options.dryRun))
    run.remarks.push(`stays: ${remain.join(', ')} (--purge removes both); the keys are in the service, as before`);
  return run.report('uninstall', undefined, users);
};
