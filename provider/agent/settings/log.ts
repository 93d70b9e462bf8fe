// The agent's logs: JSON lines, rotated by size. What is logged is decided by the callers; what
// this file guarantees is that a line has a time, a level and no more than the fields it was given,
// and where it goes.
//
// The agent writes its own log in its own place. `log_dir` of a pkcs11.toml counts only where its
// user is the one that the agent runs as: no other user's path is opened with the agent's rights.
// Lines of other users are in the agent's own log, and only so many of each user that none fills
// it.
import { constants } from 'node:fs';
import { access, mkdir } from 'node:fs/promises';
import { homedir, tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import pino from 'pino';
import { openLogFile } from '../../../server/base/log-file.ts';
import { within } from '../../../server/base/time-limit.ts';
import { tell } from '../causes.ts';
import { type LogLevel, logLevels } from './config.ts';
import { LineShares, linesLeftOut } from './line-shares.ts';

export type LogFields = Readonly<Record<string, string | number | boolean | null>>;

export interface Log {
  write(level: LogLevel, fields: LogFields, message: string): void;
}

export interface OpenLog extends Log {
  /** The last of its users closes a file. */
  release(): void;
}

export interface Logs {
  /** The agent's own log. */
  own(level: LogLevel): Promise<Log>;
  /** The log of a configuration of this user, with lines up to this level. */
  of(uid: number, directory: string | null, level: LogLevel): Promise<OpenLog>;
  /** Flushes and closes every file. */
  close(): Promise<void>;
}

const rotateBytes = 10 << 20;
export const defaultLogDirectory = '/var/log/dke-pkcs11';

/** The name of this process's user, or its number: in a container a user need not have a name. */
export const userName = (): string => {
  try {
    return userInfo().username;
  } catch {
    return String(process.geteuid?.() ?? 'unknown');
  }
};

const homeFolder = (): string => {
  try {
    return homedir();
  } catch {
    return tmpdir();
  }
};

/** Where to log when the wanted directory cannot be written. */
const fallbackDirectory = (environment: NodeJS.ProcessEnv): string =>
  join(environment.XDG_STATE_HOME || join(homeFolder(), '.local', 'state'), 'dke-pkcs11');

/**
 * Directories that are made at most, so that a path where none can be made (in /proc) comes to an
 * end.
 */
const deepest = 64;

const makeFolder = async (directory: string, depth = 0): Promise<void> => {
  try {
    await mkdir(directory, { mode: 0o750 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return;
    if (code !== 'ENOENT' || depth === deepest) throw error;
    await makeFolder(dirname(directory), depth + 1);
    await mkdir(directory, { mode: 0o750 });
  }
};

/** A file system that does not answer in this time is one that cannot be written. */
const folderMs = 1500;

const makeWritable = async (directory: string): Promise<boolean> => {
  const made = makeFolder(directory).then(() => access(directory, constants.W_OK | constants.X_OK));
  return await within(folderMs, made).catch(() => false);
};

interface LogFileOf {
  readonly log: pino.Logger;
  readonly end: () => Promise<void>;
}

/** Up to a level. */
const upTo =
  (most: LogLevel, { log }: LogFileOf): Log['write'] =>
  (level, fields, message) => {
    if (logLevels.indexOf(level) <= logLevels.indexOf(most)) log[level](fields, message);
  };

export const openLogs = (environment: NodeJS.ProcessEnv = process.env): Logs => {
  const files = new Map<string, { readonly opened: Promise<LogFileOf>; users: number }>();
  const shares = new LineShares();
  // One file a user: several agents may share the directory, none may write into another's file.
  const fileName = `agent-${userName().replace(/[^\w.-]/g, '_')}.log`;
  const ownDirectory = environment.DKE_AGENT_LOG_DIR || defaultLogDirectory;

  const open = async (wanted: string): Promise<LogFileOf> => {
    const fallback = fallbackDirectory(environment);
    const directory = (await makeWritable(wanted)) ? wanted : (await makeWritable(fallback)) ? fallback : undefined;
    if (directory === undefined) {
      const log = pino({ level: 'debug', base: { pid: process.pid } }, pino.destination({ dest: 2, sync: true }));
      const { cause, line } = tell('log-directory', { wanted, directory: 'standard error' });
      log.warn({ cause }, line);
      return { log, end: async () => undefined };
    }
    // A full disk costs lines, never the agent.
    const file = openLogFile({
      path: join(directory, fileName),
      rotateBytes,
      rotateMs: Number.POSITIVE_INFINITY,
      keep: 10,
      followsLinks: false,
      recovered: (failure) => log.warn({ ...failure }, 'log lines could not be written'),
    });
    const log = pino({ level: 'debug', base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime }, file);
    log.info({ directory, file: fileName, wanted }, 'log opened');
    if (directory !== wanted) {
      const { cause, line } = tell('log-directory', { wanted, directory });
      log.warn({ cause }, line);
    }
    return { log, end: () => file.close() };
  };

  const take = (wanted: string) => {
    const known = files.get(wanted) ?? { opened: open(wanted), users: 0 };
    files.set(wanted, known);
    known.users++;
    return known;
  };

  return {
    own: async (level) => ({ write: upTo(level, await take(ownDirectory).opened) }),
    of: async (uid, directory, level) => {
      const isOwn = uid === process.geteuid?.();
      const wanted = isOwn && directory !== null ? directory : ownDirectory;
      const entry = take(wanted);
      const file = await entry.opened;
      const write = upTo(level, file);
      return {
        write: (at, fields, message) => {
          if (isOwn) return write(at, fields, message);
          const { admitted, left } = shares.take(uid);
          if (!admitted) return;
          if (left > 0) write('warn', { uid, count: left }, linesLeftOut);
          write(at, fields, message);
        },
        release: () => {
          if (--entry.users > 0 || files.get(wanted) !== entry) return;
          files.delete(wanted);
          void file.end();
        },
      };
    },
    async close() {
      await Promise.all([...files.values()].map(async ({ opened }) => (await opened).end()));
      files.clear();
    },
  };
};
