// What the installer remembers of a place, so that an upgrade can be taken back and a run that was cut off be finished:
//
//   <state>/state.json      which build is current, which was before, which one is being put in place
//   <state>/builds/<build>/ library, dke-agent and manifest.json of a build: what a rollback puts back
//   <state>/lock            one installer at a time
//
// The agent's program of a build is at <folder>/agent/<build>, for as long as the build is current or the one before.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf, InstallError } from './error.ts';
import { makeFolderWhole, removeLeftovers, replaceFile, writeNew } from './files.ts';
import type { Layout } from './layout.ts';

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
export const statePath = ({ state }: Layout): string => join(state, stateName);
export const buildsFolder = ({ state }: Layout): string => join(state, 'builds');
export const buildFolder = (layout: Layout, build: string): string => join(buildsFolder(layout), build);

/** Undefined when nothing was installed here. */
export const readState = (layout: Layout): State | undefined => {
  const path = statePath(layout);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
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

export const readManifest = (layout: Layout, build: string): Manifest =>
  JSON.parse(readFileSync(join(buildFolder(layout, build), 'manifest.json'), 'utf8')) as Manifest;

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

/** Removes builds and agents' programs that no rollback leads to, and what a cut off run left. Answers the builds removed. */
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

/** When the process with this number began, in ticks since the host's start: a number is used again, a pair of both is not. */
const startOf = (pid: number): string | undefined => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
};

/** Takes the lock; answers how to give it back. One left by a process that has ended is taken over. */
export const takeLock = (layout: Layout): (() => void) => {
  const path = join(layout.state, 'lock');
  const holder = join(path, 'holder');
  const take = (): boolean => {
    try {
      mkdirSync(path, { mode: 0o755 });
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return false;
      throw error;
    }
    writeNew(holder, Buffer.from(`${process.pid} ${startOf(process.pid) ?? ''}`), 0o644);
    return true;
  };
  if (!take()) {
    const [pid = '', start = ''] = existsSync(holder) ? readFileSync(holder, 'utf8').split(' ') : [];
    if (pid !== '' && startOf(Number(pid)) === start)
      throw new InstallError('refused', `process ${pid} is changing this installation`, 'wait until it has ended');
    rmSync(path, { recursive: true, force: true });
    if (!take())
      throw new InstallError('refused', 'another process is changing this installation', 'wait until it has ended');
  }
  return () => rmSync(path, { recursive: true, force: true });
};
