// The one door to files outside the data directory while the service runs: sinks, secrets,
// certificates, the mark of the folder of snapshots, and the checkpoint next to the root key. Their
// disks may hang (a network folder, a FIFO in the place of a file), and a thread that waits for one
// can neither be ended nor left: so each disk has a process, which is killed when a task takes too
// long. Files of the data directory are used here: without it nothing works.
//
// Who can choose it: the configuration names the paths; the host of the disk chooses when it
// answers. How long: `deadlineMs` from the call on. How often: `mostWaiting` calls of a disk. If it
// is lost: callers ask again; each task may be done twice.

import { type ChildProcess, fork } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { openBy } from '../../base/disk-files.ts';
import { ServiceError } from '../../base/service-error.ts';
import { StartError, type StartErrorClass } from '../../base/start-error.ts';
import type { ForeignDisk } from '../../ports/foreign-disk.ts';
import { type DiskTasks, diskTasks } from './disk-tasks.ts';

export interface DiskQuestion {
  /** A late answer of a process that was given up answers nothing. */
  readonly id: number;
  readonly task: keyof DiskTasks;
  readonly given: readonly unknown[];
}
export type DiskAnswer = { readonly id: number } & (
  | { readonly value: unknown }
  | { readonly message: string; readonly code: string | undefined; readonly startClass: StartErrorClass | undefined }
);

export interface Disks {
  /** `path`: on which disk. */
  ask<N extends keyof DiskTasks>(
    path: string,
    task: N,
    ...given: Parameters<DiskTasks[N]>
  ): Promise<Awaited<ReturnType<DiskTasks[N]>>>;
  readonly files: ForeignDisk;
  /**
   * The service stops: from now on a disk that does not answer within a second is not asked again.
   */
  hurry(): void;
  /** Waits for what is under way, and no longer than this. */
  close(graceMs: number): Promise<void>;
}

const deadlineMs = 5_000;
const hurriedMs = 1_000;
const mostWaiting = 64;
const program = ['disk-process.ts', 'disk-process.js']
  .map((name) => join(import.meta.dirname, name))
  .find((path) => existsSync(path));

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
  timer: NodeJS.Timeout | undefined;
}

const errorOf = ({ message, code, startClass }: Exclude<DiskAnswer, { readonly value: unknown }>): Error =>
  startClass === undefined
    ? Object.assign(new Error(message), code === undefined ? {} : { code })
    : new StartError(startClass, message);

/** A caller is told so, and not that the service has a fault. */
const noAnswer = (message: string): ServiceError => new ServiceError('unavailable', message);

type StartProcess = () => ChildProcess;
const startDiskProcess: StartProcess = () => {
  if (program === undefined) throw new Error('the program for disks is not installed');
  return fork(program, [], {
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    execArgv: ['--disable-sigusr1'],
  });
};

/** The process of one disk. `place`: for people. */
const createDisk = (place: string, limitMs: number, startProcess: StartProcess) => {
  let child: ChildProcess | undefined;
  /**
   * Whether the process was killed but still exists, because its disk hangs: it is not asked until
   * it has ended.
   */
  let isHanging = false;
  let isClosed = false;
  let hurries = false;
  /** Calls that wait for an answer, by the ids of their questions. */
  const waiting = new Map<number, Waiting>();
  let asked = 0;

  const settle = (id: number, work: (own: Waiting) => void): void => {
    const each = waiting.get(id);
    if (each === undefined) return;
    waiting.delete(id);
    clearTimeout(each.timer);
    work(each);
  };
  const rejectAll = (message: string): void => {
    for (const id of [...waiting.keys()]) settle(id, ({ reject }) => reject(noAnswer(message)));
  };
  const kill = (message: string): void => {
    isHanging = child !== undefined;
    child?.kill('SIGKILL');
    rejectAll(message);
  };
  const late = (): void => {
    isClosed ||= hurries;
    kill(`${place} did not answer within ${(hurries ? hurriedMs : limitMs) / 1000} s`);
  };
  const start = (): ChildProcess => {
    const made = startProcess();
    made.on('message', (answer: DiskAnswer) =>
      settle(answer.id, ({ resolve, reject }) => ('value' in answer ? resolve(answer.value) : reject(errorOf(answer)))),
    );
    const gone = (): void => {
      if (child !== made) return;
      child = undefined;
      isHanging = false;
      rejectAll(`the process for ${place} has ended`);
    };
    made.once('error', gone);
    made.once('exit', gone);
    // The process of a disk does not keep the service from ending.
    made.unref();
    made.channel?.unref?.();
    return made;
  };

  return {
    ask: (question: Omit<DiskQuestion, 'id'>): Promise<unknown> =>
      new Promise((resolve, reject) => {
        const refuse = (message: string): void => reject(noAnswer(message));
        if (isClosed) return refuse('the service is stopping');
        if (isHanging) return refuse(`${place} does not answer`);
        if (waiting.size >= mostWaiting) return refuse(`too much waits for ${place}`);
        child ??= start();
        const timer = setTimeout(late, hurries ? hurriedMs : limitMs);
        asked += 1;
        const id = asked;
        waiting.set(id, { resolve, reject, timer });
        // The error may come late, from a process that was given up: its calls are settled by then,
        // and nothing happens.
        child.send({ id, ...question }, (error) => {
          if (error !== null) settle(id, (own) => own.reject(noAnswer(`the process for ${place} has ended`)));
        });
      }),
    hurry: (): void => {
      hurries = true;
      for (const each of waiting.values()) {
        clearTimeout(each.timer);
        each.timer = setTimeout(late, hurriedMs);
      }
    },
    close: async (graceMs: number): Promise<void> => {
      isClosed = true;
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, graceMs);
      });
      const done = new Promise<void>((resolve) => {
        if (waiting.size === 0) resolve();
        else child?.on('message', () => (waiting.size === 0 ? resolve() : undefined));
      });
      await Promise.race([done, late]);
      clearTimeout(timer);
      kill('the service is stopping');
    },
  };
};

/** Files within a folder that are on one disk have one process. */
const deviceOf = (path: string): string => {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const found = statSync(folder, { throwIfNoEntry: false });
    if (found !== undefined) return String(found.dev);
    if (folder === dirname(folder)) return folder;
  }
};

/** `limitMs`: of a call. Disks are told apart when a path is first used, at the start. */
export const createDisks = (
  dataDirectory: string,
  limitMs = deadlineMs,
  startProcess: StartProcess = startDiskProcess,
): Disks => {
  const folders = new Map<string, ReturnType<typeof createDisk> | 'here'>();
  const byDevice = new Map<string, ReturnType<typeof createDisk>>();
  const diskOf = (path: string): ReturnType<typeof createDisk> | 'here' => {
    const folder = dirname(path);
    let disk = folders.get(folder);
    if (disk === undefined) {
      if (!relative(dataDirectory, folder).startsWith('..')) disk = 'here';
      else {
        const device = deviceOf(path);
        disk = byDevice.get(device) ?? createDisk(folder, limitMs, startProcess);
        byDevice.set(device, disk);
      }
      folders.set(folder, disk);
    }
    return disk;
  };
  const ask: Disks['ask'] = async (path, task, ...given) => {
    const disk = diskOf(path);
    const carryOut = diskTasks[task] as (...all: readonly unknown[]) => Promise<never>;
    return disk === 'here' ? carryOut(...given) : ((await disk.ask({ task, given })) as never);
  };
  return {
    ask,
    files: {
      // A copy: its memory is this one's alone.
      read: async (path) => Buffer.from(await ask(path, 'read', path)),
      replace: (path, content) => ask(path, 'replace', path, content),
      exists: (path) => ask(path, 'exists', path),
      rename: (from, to) => ask(from, 'rename', from, to),
      remove: (path) => ask(path, 'remove', path),
      open: (path, flag) => openBy((task, ...given) => ask(path, task, ...given) as never, path, flag),
      list: (folder) => ask(join(folder, 'any'), 'list', folder),
      space: (folder) => ask(join(folder, 'any'), 'space', folder),
    },
    hurry: () => {
      for (const disk of byDevice.values()) disk.hurry();
    },
    close: async (graceMs) => {
      await Promise.all([...byDevice.values()].map((disk) => disk.close(graceMs)));
    },
  };
};
