// One run of the installer: each change is a step that leaves the place usable, and is reported.
import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { InstallReport, ProcessOf } from '../../server/contract/provider.ts';
import { codeOf, InstallError } from './error.ts';
import { type Layout, octal, otherLibraries } from './layout.ts';
import {
  inFolder,
  isRoot,
  makeFolders,
  makeFolderWhole,
  mostProgramBytes,
  readRegular,
  removeEmpty,
  replaceFile,
  setMode,
  setOwner,
  syncFolder,
  writeNew,
} from './owned-files.ts';
import { asOwner, effectiveOwner, type Owner, ownerOfPath } from './owner.ts';
import type { Payload } from './payload.ts';
import { usersOf } from './processes.ts';
import { buildFolder, readManifest, type State, statePath, takeLock, writeState } from './state.ts';
import { agentService, agentServiceUnit, agentSocket, agentSocketFolder, agentSocketUnit } from './units.ts';

export interface InstallOptions {
  readonly layout: Layout;
  /**
   * The OS user and group of the database; without it the present owner of the directory, or the
   * user who runs this unless that is root.
   */
  readonly owner: Owner | undefined;
  readonly logDirectory: string;
  readonly dryRun: boolean;
  /** Continues although processes have the library loaded. */
  readonly force: boolean;
  /** Where to write units for systemd; null: none. */
  readonly unitFolder: string | null;
  /** Told after each step: for a test that cuts the run off there. */
  readonly reached?: ((step: string) => void) | undefined;
}

export const named = (processes: readonly ProcessOf[]): string =>
  processes
    .slice(0, 5)
    .map(({ pid, name }) => `${pid} (${name})`)
    .join(', ') + (processes.length > 5 ? ` and ${processes.length - 5} more` : '');

/** One run: what it does, said as it goes; nothing is done in a dry run. */
export class Run {
  readonly options: InstallOptions;
  readonly layout: Layout;
  readonly owner: Owner;
  /** Who acts inside the tree. */
  readonly files: Owner;
  readonly steps: string[] = [];
  readonly remarks: string[] = [];

  constructor(options: InstallOptions) {
    this.options = options;
    this.layout = options.layout;
    this.owner = options.owner ?? this.#ownerOfPlace();
    this.files = this.layout.rootOnly ? { user: 'root', group: 'root', uid: 0, gid: 0 } : this.owner;
    if (!isRoot() && this.files.uid !== process.geteuid?.())
      throw new InstallError(
        'permission',
        `only root or ${this.files.user} can create files of ${this.files.user}`,
        `run this as root${this.layout.rootOnly ? '' : `, or as ${this.files.user}`}`,
      );
    const before = ownerOfPath(statePath(this.layout));
    if (before !== undefined && before.uid !== this.files.uid)
      throw new InstallError(
        'refused',
        `${this.layout.folder} was installed for ${before.user}:${before.group}, not for ${this.files.user}`,
        `use --owner ${before.user}:${before.group}; to change the owner, uninstall it with that owner first`,
      );
  }

  #ownerOfPlace(): Owner {
    const there =
      ownerOfPath(this.layout.folder) ?? ownerOfPath(join(this.layout.tree, 'dke')) ?? ownerOfPath(this.layout.tree);
    if (there !== undefined && (there.uid !== 0 || this.layout.rootOnly)) return there;
    if (!isRoot() || this.layout.rootOnly) return effectiveOwner();
    throw new InstallError(
      'config',
      'the owner of the database is not known',
      'name its OS user and group: --owner oracle:oinstall',
    );
  }

  do(step: string, change: () => void): void {
    this.steps.push(step);
    if (this.options.dryRun) return;
    try {
      change();
    } catch (error) {
      if (error instanceof InstallError) throw error;
      const code = codeOf(error);
      if (code === undefined) throw error;
      throw new InstallError(
        ['EACCES', 'EPERM', 'EROFS'].includes(code) ? 'permission' : 'refused',
        `cannot ${step} (${code})`,
        code === 'ENOSPC'
          ? 'free some space; nothing that is in use has changed'
          : 'nothing that is in use has changed; fix the cause and run this again',
      );
    }
    this.options.reached?.(step);
  }

  /** A step of the tree's owner. */
  doInside(step: string, change: () => void): void {
    this.do(step, () => asOwner(this.files, change));
  }

  report(
    action: InstallReport['action'],
    state: State | undefined,
    users: Pick<InstallReport, 'processes' | 'agents'>,
    version?: string,
  ): InstallReport {
    const { layout, steps, remarks, files } = this;
    const build = state?.current ?? null;
    return {
      action,
      changed: steps.length > 0 && !this.options.dryRun,
      dryRun: this.options.dryRun,
      library: layout.library,
      version: build === null ? null : (version ?? this.versionOf(build)),
      build,
      previous: state?.previous ?? null,
      owner: `${files.user}:${files.group}`,
      mode: octal(layout.mode),
      steps,
      remarks,
      processes: users.processes,
      agents: users.agents,
    };
  }

  versionOf(build: string): string | null {
    try {
      return readManifest(this.layout, build).version;
    } catch {
      return null;
    }
  }

  /** Refuses a tree with a library that is not ours. */
  refuseOthers(): void {
    const [first, ...more] =
      this.layout.name === 'hsm' && existsSync(this.layout.tree) ? otherLibraries(this.layout) : [];
    if (first === undefined) return;
    throw new InstallError(
      'refused',
      `${this.layout.tree} contains another library: ${[first, ...more].join(', ')}; a database loads the library that it finds there`,
      'move it out of the tree, or remove it',
    );
  }

  users(): ReturnType<typeof usersOf> {
    const users = usersOf(this.layout.library, join(this.layout.folder, 'agent'));
    if (users.hidden > 0)
      this.remarks.push(
        `processes of other users could not be checked (${users.hidden}): run this as root to check them`,
      );
    return users;
  }

  /** A library that is in use is replaced only when asked to. */
  refuseUsers(processes: readonly ProcessOf[], what: string): void {
    if (processes.length === 0) return;
    const who = `${processes.length === 1 ? 'a process has' : `${processes.length} processes have`} the library loaded: ${named(processes)}`;
    if (!this.options.force)
      throw new InstallError(
        'refused',
        `${who}; ${what} needs downtime, because the database would use two versions at the same time`,
        'shut the database down first; or use --force: a process uses the file that it loaded until it ends',
      );
    this.remarks.push(`${who}: each uses the old file until it ends`);
  }

  makePlace(): void {
    const { layout, files } = this;
    const wanted: readonly (readonly [string, number, Owner | undefined])[] = [
      [layout.base, 0o755, undefined],
      [layout.tree, layout.mode, files],
      [dirname(layout.folder), layout.mode, files],
      [layout.folder, layout.mode, files],
      [join(layout.folder, 'agent'), 0o755, files],
      // The parent folder of the state of both layouts does not belong to a database user.
      [dirname(layout.state), 0o755, undefined],
      [layout.state, 0o755, files],
      [join(layout.state, 'builds'), 0o755, files],
    ];
    for (const [path, mode, owner] of wanted) {
      const state = lstatSync(path, { throwIfNoEntry: false });
      if (state === undefined) {
        // Inside a directory of the owner as the owner; the first one is given to them by root.
        const upper = ownerOfPath(dirname(path));
        const make = (): void => void makeFolders(path, mode, owner);
        if (owner !== undefined && upper?.uid === owner.uid) this.doInside(`make ${path}`, make);
        else this.do(`make ${path}`, make);
      } else if (owner !== undefined && path !== layout.tree) {
        if (!state.isDirectory())
          throw new InstallError('refused', `${path} already exists and is not a directory`, 'move it elsewhere');
        const same = state.uid === owner.uid && state.gid === owner.gid;
        if (same && (state.mode & 0o7777) === mode) continue;
        const step = `give ${path} to ${owner.user}:${owner.group}, mode ${octal(mode)}`;
        if (same) this.doInside(step, () => setMode(path, mode));
        else this.do(step, () => setOwner(path, owner, mode));
      }
    }
  }

  makeLogDirectory(): void {
    const { logDirectory } = this.options;
    const state = lstatSync(logDirectory, { throwIfNoEntry: false });
    if (state === undefined) {
      this.do(`create ${logDirectory} for ${this.owner.user}:${this.owner.group}`, () => {
        makeFolders(logDirectory, 0o775, this.owner);
      });
    } else if (state.uid !== this.owner.uid && !(state.gid === this.owner.gid && (state.mode & 0o020) !== 0))
      this.remarks.push(
        `${logDirectory} belongs to ${ownerOfPath(logDirectory)?.user}: if ${this.owner.user} cannot write to it, its log goes to its own directory`,
      );
  }

  writeUnits(): void {
    const { unitFolder, logDirectory } = this.options;
    if (unitFolder === null) return;
    const texts = {
      [agentSocketUnit]: agentSocket(),
      [agentServiceUnit]: agentService({
        program: this.layout.agentScript,
        user: this.owner.user,
        group: this.owner.group,
        readsForOthers: false,
        logDirectory,
      }),
    };
    for (const [name, text] of Object.entries(texts)) {
      const path = join(unitFolder, name);
      if (existsSync(path) && readFileSync(path, 'utf8') === text) continue;
      this.do(`write ${path}`, () => replaceFile(path, Buffer.from(text), 0o644));
    }
    this.systemctl(['daemon-reload'], ['enable', '--now', agentSocketUnit]);
  }

  removeUnits(): void {
    const { unitFolder } = this.options;
    if (unitFolder === null) return;
    const service = join(unitFolder, agentServiceUnit);
    // An agent of another installation has another program.
    if (!existsSync(service) || !readFileSync(service, 'utf8').includes(`ExecStart=${this.layout.agentScript}\n`))
      return;
    this.systemctl(['disable', '--now', agentSocketUnit, agentServiceUnit]);
    for (const name of [agentSocketUnit, agentServiceUnit])
      this.do(`remove ${join(unitFolder, name)}`, () => rmSync(join(unitFolder, name), { force: true }));
    this.systemctl(['daemon-reload']);
    // What is left of the unit: a socket on which nothing listens, in a folder in which the library
    // of the database's user could start no agent.
    const state = lstatSync(agentSocketFolder, { throwIfNoEntry: false });
    if (state?.isDirectory() !== true || state.uid !== process.geteuid?.()) return;
    this.do(`remove ${agentSocketFolder}/agent.sock, and ${agentSocketFolder} when it is empty`, () => {
      inFolder(agentSocketFolder, (at) => rmSync(at('agent.sock'), { force: true }));
      removeEmpty(agentSocketFolder);
    });
  }

  systemctl(...commands: readonly (readonly string[])[]): void {
    if (!existsSync('/run/systemd/system')) {
      this.remarks.push(
        `systemd does not run here; when it does: ${commands.map((each) => `systemctl ${each.join(' ')}`).join('; ')}`,
      );
      return;
    }
    for (const each of commands) {
      this.do(`systemctl ${each.join(' ')}`, () => {
        const { status, stderr } = spawnSync('systemctl', [...each], { encoding: 'utf8' });
        if (status !== 0) this.remarks.push(`systemctl ${each.join(' ')} failed: ${stderr.trim().split('\n')[0]}`);
      });
    }
  }

  /** The agent's program of a build, whole or not there. */
  layAgent({ build, agent }: Payload): void {
    const folder = join(this.layout.folder, 'agent', build);
    if (existsSync(folder)) return;
    this.doInside(`install the agent's program in ${folder}`, () => {
      makeFolderWhole(folder, 0o755, (temporary) => {
        const folders = new Set<string>();
        for (const { path, mode, content } of agent) {
          for (let upper = dirname(path); upper !== '.'; upper = dirname(upper)) folders.add(upper);
          mkdirSync(join(temporary, dirname(path)), { recursive: true, mode: 0o755 });
          writeNew(join(temporary, path), content, mode);
        }
        for (const each of [...folders].sort().reverse()) {
          setMode(join(temporary, each), 0o755);
          syncFolder(join(temporary, each));
        }
      });
    });
  }

  /**
   * Puts library, script and the agent's name of a kept build in place. Repeating it does no harm.
   */
  switchTo(from: State | undefined, to: { readonly current: string; readonly previous: string | null }): State {
    const { layout } = this;
    const kept = buildFolder(layout, to.current);
    const script = join(kept, 'dke-agent');
    const begun: State = { format: 1, current: from?.current ?? null, previous: from?.previous ?? null, pending: to };
    const done: State = { format: 1, ...to, pending: null };
    this.doInside(`record that build ${to.current} is being installed`, () => writeState(layout, begun));
    this.doInside(`name the agent of build ${to.current} in ${layout.agentName}`, () => {
      if (existsSync(join(layout.folder, 'agent', to.current)))
        replaceFile(layout.agentName, Buffer.from(`${to.current}\n`), 0o644);
      else rmSync(layout.agentName, { force: true });
    });
    this.doInside(`install ${layout.agentScript}`, () => {
      if (existsSync(script)) replaceFile(layout.agentScript, readRegular(script, mostProgramBytes), layout.mode);
    });
    this.doInside(`install ${layout.library}`, () => {
      replaceFile(layout.library, readRegular(join(kept, 'library'), mostProgramBytes), layout.mode);
    });
    this.doInside(`record that build ${to.current} is current`, () => writeState(layout, done));
    return done;
  }

  /** Finishes what an interrupted run started. */
  finish(state: State | undefined): State | undefined {
    if (state?.pending == null) return state;
    this.remarks.push(
      `an earlier run was interrupted while it installed build ${state.pending.current}: it is now complete`,
    );
    return this.switchTo(state, state.pending);
  }

  /** Under the lock, which needs a place; a dry run changes nothing and needs none. */
  locked<T>(run: () => T): T {
    if (this.options.dryRun || !existsSync(this.layout.state)) return run();
    const release = asOwner(this.files, () => takeLock(this.layout));
    try {
      return run();
    } finally {
      asOwner(this.files, release);
    }
  }
}
