// What the installer remembers of a place, so that an upgrade can be taken back and a run that was
// cut off be finished:
//
//   <state>/state.json      which build is current, which was before, which one is being put in
//                           place
//   <state>/builds/<build>/ library, dke-agent and manifest.json of a build: what a rollback puts
//   back
//   <state>/installer.lock  one installer at a time
//
// The agent's program of a build is at <folder>/agent/<build>, for as long as the build is current
// or the one before.
import { closeSync, constants, existsSync, openSync, readdirSync, rmSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { codeOf, InstallError } from './error.ts';
import type { Layout } from './layout.ts';
import { makeFolderWhole, readRegular, removeLeftovers, replaceFile, writeNew } from './owned-files.ts';

export interface Manifest {
  readonly format: 1;
  readonly build: string;
  readonly version: string;
  /** sha256 by path below <folder>; the agent's files by their installed path. */
  readonly files: Readonly<Record<string, string>>;
}

export interface State {
  readonly format: 1;
  readonly current: string | null;
  readonly previous: string | null;
  /** A switch that was started: its target. */
  readonly pending: { readonly current: string; readonly previous: string | null } | null;
}

const buildName = /^[a-z0-9-]{1,40}$/;
const isBuild = (value: unknown): value is string => typeof value === 'string' && buildName.test(value);
const isBuildOrNull = (value: unknown): value is string | null => value === null || isBuild(value);

export const stateName = 'state.json';
/** Earlier versions had a folder named lock, which one that was cut off has left. */
const lockName = 'installer.lock';
const sqliteBusy = 5;
const mostStateBytes = 64 * 1024;
const mostManifestBytes = 1024 * 1024;
export const statePath = ({ state }: Layout): string => join(state, stateName);
export const buildsFolder = ({ state }: Layout): string => join(state, 'builds');
export const buildFolder = (layout: Layout, build: string): string => join(buildsFolder(layout), build);

/** Undefined when nothing was installed here. */
export const readState = (layout: Layout): State | undefined => {
  const path = statePath(layout);
  let text: string;
  try {
    text = readRegular(path, mostStateBytes).toString('utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
  const bad = (): InstallError =>
    new InstallError(
      'refused',
      `${path} was not written by the installer`,
      'move it elsewhere; then upgrade takes over the library',
    );
  let value: State;
  try {
    value = JSON.parse(text) as State;
  } catch {
    throw bad();
  }
  const { format, current, previous, pending } = value;
  const fits =
    format === 1 &&
    isBuildOrNull(current) &&
    isBuildOrNull(previous) &&
    (pending === null || (isBuild(pending?.current) && isBuildOrNull(pending.previous)));
  if (!fits) throw bad();
  return value;
};

export const writeState = (layout: Layout, state: State): void =>
  replaceFile(statePath(layout), Buffer.from(`${JSON.stringify(state, null, 2)}\n`), 0o644);

/**
 * The manifest of a kept build. The folder is the database user's: it names files below <folder>
 * only.
 */
export const readManifest = (layout: Layout, build: string): Manifest => {
  const path = join(buildFolder(layout, build), 'manifest.json');
  const isBelow = (name: string): boolean => !isAbsolute(name) && name !== '' && !name.split('/').includes('..');
  const text = readRegular(path, mostManifestBytes).toString('utf8');
  try {
    const manifest = JSON.parse(text) as Manifest;
    if (manifest.build === build && Object.keys(manifest.files).every(isBelow)) return manifest;
  } catch {
    // Not JSON, or not an object with files.
  }
  throw new InstallError('refused', `${path} was not written by the installer`, 'install the package again');
};

/** Keeps what a switch to this build puts in place. */
export const keepBuild = (
  layout: Layout,
  manifest: Manifest,
  files: { readonly library: Buffer; readonly agentScript: Buffer | null },
): void => {
  const path = buildFolder(layout, manifest.build);
  if (existsSync(path)) return;
  makeFolderWhole(path, 0o755, (folder) => {
    writeNew(join(folder, 'library'), files.library, 0o644);
    if (files.agentScript !== null) writeNew(join(folder, 'dke-agent'), files.agentScript, 0o644);
    writeNew(join(folder, 'manifest.json'), Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`), 0o644);
  });
};

/**
 * Removes builds and agents' programs that no rollback leads to, and what a cut off run left.
 * Answers the builds removed.
 */
export const removeOldBuilds = (layout: Layout, keep: readonly (string | null)[]): string[] => {
  const removed: string[] = [];
  for (const folder of [buildsFolder(layout), join(layout.folder, 'agent')]) {
    removeLeftovers(folder);
    if (!existsSync(folder)) continue;
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (!entry.isDirectory() || keep.includes(entry.name) || !isBuild(entry.name)) continue;
      rmSync(join(folder, entry.name), { recursive: true, force: true });
      removed.push(entry.name);
    }
  }
  removeLeftovers(layout.folder);
  removeLeftovers(layout.state);
  return removed;
};

/**
 * Takes the lock; answers how to give it back. It is one of the system (fcntl), so it ends with the
 * process that has it, and two never have it: there is no file whose holder is to be judged. The
 * file stays, because removing it would make another one lockable beside it.
 */
export const takeLock = (layout: Layout): (() => void) => {
  const path = join(layout.state, lockName);
  // For its owner alone: another user who can open it could lock it.
  closeSync(openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600));
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    database.exec('begin exclusive');
  } catch (error) {
    database.close();
    const { errcode } = error as { readonly errcode?: number };
    throw errcode === sqliteBusy
      ? new InstallError('refused', 'another process is changing this installation', 'wait until it has ended')
      : new InstallError('refused', `${path} is not a lock of the installer`, 'remove it, and run the command again');
  }
  return () => database.close();
};
