// Whether the file under the database's name is still the one that is open. One that was deleted or
// replaced under the running service is kept by the open connections until the service stops, and
// is lost then. So it is compared, and at the end too: when it is another one, nothing is changed,
// and what is open is saved to a new file next to it.

import { chmodSync, closeSync, fsyncSync, openSync, rmSync, type Stats, statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { command } from '../../../../base/command-line.ts';
import { putInPlace } from '../../../../base/durable-files.ts';
import { ServiceError } from '../../../../base/service-error.ts';

export interface OwnFile {
  /** Compares, and saves where that is due and not done. */
  check(): Promise<void>;
  /** What every change is refused with; undefined: the file is the open one. */
  refusal(): ServiceError | undefined;
}

/** A file's identity, for threads that open it by its name. */
export interface FileIdentity {
  readonly dev: number;
  readonly ino: number;
}

export const identityOf = (path: string): FileIdentity => {
  const { dev, ino } = statSync(path);
  return { dev, ino };
};
export const isSameFile = (one: FileIdentity, other: FileIdentity | undefined): boolean =>
  one.dev === other?.dev && one.ino === other.ino;

const syncPath = (path: string): void => {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
};

/** `save` writes what is open to a new file. */
export const watchOwnFile = (path: string, save: (to: string) => Promise<void>): OwnFile => {
  const own = identityOf(path);
  let displaced: 'deleted' | 'replaced' | undefined;
  let savedTo: string | undefined;
  let failure: string | undefined;
  let running: Promise<void> | undefined;

  const saveNow = async (): Promise<void> => {
    const target = `${path}.saved-${new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '')}`;
    const draft = `${target}.part`;
    try {
      await save(draft);
      chmodSync(draft, 0o600);
      syncPath(draft);
      putInPlace(draft, target);
      savedTo = target;
    } catch (error) {
      failure = error instanceof Error ? error.message : 'unknown reason';
      rmSync(draft, { force: true });
    }
  };
  const compare = async (): Promise<void> => {
    if (displaced === undefined) {
      // What cannot be read now says nothing about it: the next check does.
      const found = await stat(path).catch(({ code }: NodeJS.ErrnoException): Stats | null | undefined =>
        code === 'ENOENT' ? undefined : null,
      );
      if (found === null || isSameFile(own, found)) return;
      displaced = found === undefined ? 'deleted' : 'replaced';
    }
    if (savedTo === undefined) await saveNow();
  };

  return {
    check: () => {
      running ??= compare().finally(() => {
        running = undefined;
      });
      return running;
    },
    refusal: () => {
      if (displaced === undefined) return undefined;
      return new ServiceError(
        'unavailable',
        `${path} was ${displaced} while the service runs: nothing can be changed`,
        {
          hint:
            savedTo === undefined
              ? `its content is only in this process, and could not be saved to a file next to it (${failure ?? 'not tried yet'}): do not stop the service; free space there (it retries every minute)`
              : `its content is saved: stop the service, put it back (${command`rm -f ${path} ${`${path}-wal`} ${`${path}-shm`}`} && ${command`mv ${savedTo} ${path}`}), and start the service`,
        },
      );
    },
  };
};
