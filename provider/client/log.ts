// The agent's logs: JSON lines, one file per directory, rotated by size. What is logged is decided by the callers; what
// this file guarantees is that a line has a time, a level and no more than the fields it was given.
import { accessSync, constants, mkdirSync } from 'node:fs';
import { homedir, tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { openLogFile } from '../../server/log-file.ts';
import { tell } from './causes.ts';
import type { LogLevel } from './config.ts';

export type LogFields = Readonly<Record<string, string | number | boolean | null>>;

export interface Log {
  write(level: LogLevel, fields: LogFields, message: string): void;
}

export interface Logs {
  /** The log in a directory; null for the default. Opened once, then shared; the lowest level asked for wins. */
  of(directory: string | null, level: LogLevel): Log;
  /** Flushes and closes every file. */
  close(): Promise<void>;
}

const rotateBytes = 10 << 20;
export const defaultLogDirectory = '/var/log/dke-pkcs11';

/** Of this process's user, or its number: in a container a user need not have a name. */
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

const makeWritable = (directory: string): boolean => {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o750 });
    accessSync(directory, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

export const openLogs = (environment: NodeJS.ProcessEnv = process.env): Logs => {
  const opened = new Map<string, { log: pino.Logger; end: () => Promise<void> }>();
  // One file a user: several agents may share the directory, none may write into another's file.
  const fileName = `agent-${userName().replace(/[^\w.-]/g, '_')}.log`;

  const open = (wanted: string, level: LogLevel) => {
    const directory = [wanted, fallbackDirectory(environment)].find(makeWritable);
    if (directory === undefined) {
      const log = pino({ level, base: { pid: process.pid } }, pino.destination({ dest: 2, sync: true }));
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
      recovered: (failure) => log.warn({ ...failure }, 'log lines could not be written'),
    });
    const log = pino({ level, base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime }, file);
    log.info({ directory, file: fileName, wanted }, 'log opened');
    if (directory !== wanted) {
      const { cause, line } = tell('log-directory', { wanted, directory });
      log.warn({ cause }, line);
    }
    return { log, end: () => file.close() };
  };

  return {
    of(directory, level) {
      const wanted = directory ?? (environment.DKE_AGENT_LOG_DIR || defaultLogDirectory);
      let entry = opened.get(wanted);
      if (entry === undefined) {
        entry = open(wanted, level);
        opened.set(wanted, entry);
      }
      const { log } = entry;
      if ((pino.levels.values[level] ?? 0) < (pino.levels.values[log.level] ?? 0)) log.level = level;
      return { write: (at, fields, message) => log[at](fields, message) };
    },
    async close() {
      await Promise.all([...opened.values()].map(({ end }) => end()));
      opened.clear();
    },
  };
};
