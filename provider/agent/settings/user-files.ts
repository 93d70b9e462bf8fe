// Files that users name: pkcs11.toml, and the files of TLS that it names. What is there may be
// anything (a FIFO, a device, a file system that never answers, a file of someone else), so each is
// opened with the rights of the user who named it (addon/core/base/user_files.h), by a thread that
// nothing waits for longer than the deadline, and a user who names files that do not answer uses up
// only the user's own threads. A refusal says what the user's own open would say.
//
// What is read is taken apart on the main thread, which serves every user. So nothing of a file
// comes there uncounted: a user whose files change all the time waits, and others do not.
//
// Who chooses the path: any local user. What proves the user: the kernel, of the peer of the
// socket. How much: `mostEach` threads of one user, `mostWaiting` files that wait for them, each
// file no longer than its reader says, and what is read and taken apart in a second.
import { readFileSync } from 'node:fs';
import { getSystemErrorName } from 'node:util';
import { core, type Peer, type UserFileAnswer, type UserFileRequest } from '../../../addon/core.ts';
import { createFairQueue, QueueFull } from '../../../server/base/fair-queue.ts';
import { limits } from './limits.ts';

/** With whose rights a file is opened. */
export type FileUser = Pick<Peer, 'uid' | 'gid' | 'groups'>;

/** Thrown for anything that is not a small regular file. The message has the reason. */
export class UnsuitableFile extends Error {
  override readonly name = 'UnsuitableFile';
}

export type FoundFile = Extract<UserFileAnswer, { readonly state: string }>;

export interface ReadOptions {
  /** Longest file, in bytes. */
  readonly most: number;
  /** Whether symbolic links are followed. */
  readonly follow: boolean;
  /** The state that is known: such a file is not read again. */
  readonly known?: string;
  /** Checks what was opened, and may throw any error. */
  readonly check?: (found: FoundFile) => void;
}

const deadlineMs = limits.fileMs.most;
const mostEach = limits.filesAtOnce.most;
const mostWaiting = 256;
/** Most files that are read at the same time for all users together, each by a thread. */
const mostThreads = 1024;

/** What the main thread does for one byte of a user's file, in bytes of PEM that it takes apart. */
const work = { read: 1 / 16, pem: 1, toml: 4 } as const;
/**
 * How much of this work one user may cause, in the same unit: at once, and in a second. The latter
 * is about 2 % of a CPU.
 */
const share = { burst: limits.fileWork.most, perSecond: limits.fileWork.most / 16 } as const;

/** nogroup: of a user who is not in the list of users. */
const noGroup = 65_534;

/** The user's own group, for root on behalf of the user; the library does the same. */
const groupOf = (uid: number): number => {
  try {
    const line = readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .find((each) => each.split(':')[2] === String(uid));
    return Number(line?.split(':')[3] ?? noGroup);
  } catch {
    return noGroup;
  }
};

/** The user for whom a peer uses a file: root acts for its owner. */
export const actingFor = (peer: FileUser, owner: number): FileUser =>
  peer.uid !== 0 || owner === 0 ? peer : { uid: owner, gid: groupOf(owner), groups: [] };

/** Who this process is. */
export const ownUser = (): FileUser => ({
  uid: process.geteuid?.() ?? 0,
  gid: process.getegid?.() ?? 0,
  groups: process.getgroups?.() ?? [],
});

export class UserFiles {
  readonly #read: (request: UserFileRequest) => Promise<UserFileAnswer>;
  readonly #deadlineMs: number;
  readonly #now: () => number;
  readonly #queue = createFairQueue({ running: mostThreads, runningEach: mostEach, waiting: mostWaiting });
  readonly #done = new Map<number, { work: number; at: number }>();

  constructor(
    read: typeof core.readUserFile = (request) => core.readUserFile(request),
    deadline = deadlineMs,
    now = () => performance.now(),
  ) {
    this.#read = read;
    this.#deadlineMs = deadline;
    this.#now = now;
  }

  /** Counts work for a user before it is done. Throws UnsuitableFile when there was too much. */
  count({ uid }: FileUser, kind: keyof typeof work, bytes: number): void {
    const now = this.#now();
    const before = this.#done.get(uid) ?? { work: 0, at: now };
    const paid = (Math.max(now - before.at, 0) / 1000) * share.perSecond;
    const left = Math.max(before.work - paid, 0);
    const sum = left + work[kind] * bytes;
    if (sum > share.burst) throw new UnsuitableFile(`the files of uid ${uid} change too often: try again in a minute`);
    this.#done.set(uid, { work: sum, at: now });
  }

  /**
   * Throws UnsuitableFile. `bytes` are absent when the state is the known one; the receiver wipes
   * them where they are secret.
   */
  async read(user: FileUser, path: string, { most, follow, known = '', check }: ReadOptions): Promise<FoundFile> {
    const { uid, gid, groups } = user;
    const found = await this.#within(user, () => this.#read({ uid, gid, groups, path, follow, most, known }));
    if (!('state' in found)) {
      const own = process.geteuid?.() ?? 0;
      throw new UnsuitableFile(found.identity ? `this agent serves uid ${own} only` : getSystemErrorName(-found.error));
    }
    if (!found.regular) throw new UnsuitableFile('not a regular file');
    check?.(found);
    if (found.size > most) throw new UnsuitableFile(`longer than ${most} bytes`);
    try {
      this.count(user, 'read', found.bytes?.length ?? 0);
    } catch (error) {
      found.bytes?.fill(0);
      throw error;
    }
    return found;
  }

  /** The thread keeps its place in the queue until it is done, whatever the deadline is. */
  async #within(user: FileUser, read: () => Promise<UserFileAnswer>): Promise<UserFileAnswer> {
    const late = new UnsuitableFile(`no answer within ${this.#deadlineMs} ms`);
    let isLate = false;
    const answer = this.#queue.run(async () => {
      if (isLate) throw late;
      const found = await read();
      if (isLate && 'state' in found) found.bytes?.fill(0);
      return found;
    }, String(user.uid));
    let timer: NodeJS.Timeout | undefined;
    const expiry = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        isLate = true;
        reject(late);
      }, this.#deadlineMs);
    });
    try {
      return await Promise.race([answer, expiry]);
    } catch (error) {
      if (error instanceof QueueFull) throw new UnsuitableFile(`${mostWaiting} files of uid ${user.uid} wait already`);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }
}
