// The service's own log, as JSON lines with redacted texts, and the access log.

import { closeSync, openSync } from 'node:fs';
import { destination as openDestination, pino } from 'pino';
import { type LogFailure, type LogFile, openLogFile } from '../../base/log-file.ts';
import { redact } from '../../base/redaction.ts';
import { StartError } from '../../base/start-error.ts';
import { toRfc3339 } from '../../base/time.ts';
import type { Log } from '../../ports/log.ts';
import type { Config } from '../config/config.ts';
import { requireLogFile } from '../start-checks.ts';

export interface ServerLogs {
  readonly log: Log;
  readonly logState: LogFile['state'];
  /** Absent: none is configured. */
  readonly accessLog: LogFile | undefined;
  /** Opens the files again by their names: they may have been moved away. */
  reopen(): void;
  /** Writes what waits, and closes the files. */
  end(): Promise<void>;
}

/** Bytes of log lines that wait for a stream that takes none. */
const mostWaiting = 8 << 20;

/** How many causes of a cause are written. */
const mostCauses = 4;

/**
 * What others say of a failure: codes of the system and of PostgreSQL, errors of OAuth (RFC 6749,
 * 5.2).
 */
const saidFields = ['code', 'hint', 'error', 'error_description'] as const;
const saidBy = (error: Error): Readonly<Record<string, string>> =>
  Object.fromEntries(
    saidFields.flatMap((name) => {
      const value: unknown = (error as unknown as Readonly<Record<string, unknown>>)[name];
      return typeof value === 'string' && value !== '' ? [[name, redact(value)]] : [];
    }),
  );

/** Errors keep their stack, and what caused them without one; every text is redacted. */
const plain = (value: unknown): unknown => {
  if (!(value instanceof Error)) return typeof value === 'string' ? redact(value) : value;
  const causes: object[] = [];
  for (let { cause } = value; cause instanceof Error && causes.length < mostCauses; { cause } = cause)
    causes.push({ name: cause.name, message: redact(cause.message), ...saidBy(cause) });
  return {
    ...{ name: value.name, message: redact(value.message), ...saidBy(value) },
    ...(causes.length === 0 ? {} : { causes }),
    stack: redact(value.stack ?? ''),
  };
};

/**
 * Standard output or error: a full disk or a reader that has gone costs lines, never the service.
 */
const openStandardStream = (descriptor: 1 | 2): LogFile => {
  const stream = openDestination({ dest: descriptor, sync: true, maxLength: mostWaiting });
  let lost = 0;
  let failure: { since: number; message: string; lost: number } | null = null;
  stream.on('error', ({ message }: Error) => {
    failure ??= { since: Date.now(), message, lost: 0 };
    failure.message = message;
  });
  stream.on('write', () => {
    failure = null;
  });
  stream.on('drop', () => {
    lost += 1;
    if (failure !== null) failure.lost += 1;
  });
  const flushSync = (): void => {
    // `flushSync` would try forever to write what the stream does not take.
    if (failure !== null) return;
    try {
      stream.flushSync();
    } catch {
      // What was not written until the end is lost with the process.
    }
  };
  return {
    write: (line) => void stream.write(line),
    reopen: () => undefined,
    state: () => ({ lost, failure: failure === null ? null : { ...failure } }),
    flushSync,
    close: () => Promise.resolve(flushSync()),
  };
};

const openRotated = (
  options: Pick<Parameters<typeof openLogFile>[0], 'path' | 'rotateBytes' | 'rotateMs' | 'keep' | 'recovered'>,
  setting: string,
): LogFile => {
  requireLogFile(options.path, setting);
  try {
    closeSync(openSync(options.path, 'a', 0o640));
  } catch (error) {
    throw new StartError('permission', `${options.path} (${setting}) cannot be written`, {
      fix: 'name another file in dke.toml',
      cause: error,
    });
  }
  return openLogFile(options);
};

const openLog = ({
  level,
  destination,
  rotateBytes,
  rotateMs,
  keep,
}: Config['log']): { readonly log: Log; readonly file: LogFile } => {
  let file: LogFile;
  if (destination === 'stderr') file = openStandardStream(2);
  else if (destination === 'stdout') file = openStandardStream(1);
  else {
    const recovered = (failure: LogFailure): void =>
      log.warn('log lines could not be written', { ...failure, since: toRfc3339(failure.since) });
    file = openRotated({ path: destination, rotateBytes, rotateMs, keep, recovered }, 'log.destination');
  }
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, file);
  const write =
    (name: 'debug' | 'info' | 'warn' | 'error') =>
    (message: string, fields: { readonly [field: string]: unknown } = {}): void => {
      if (!logger.isLevelEnabled(name)) return;
      const safe = Object.fromEntries(Object.entries(fields).map(([field, value]) => [field, plain(value)]));
      logger[name](safe, redact(message));
    };
  const log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
  return { log, file };
};

export const openLogs = (config: Pick<Config, 'log' | 'accessLog'>): ServerLogs => {
  const { log, file } = openLog(config.log);
  const recovered = (failure: LogFailure): void =>
    log.warn('lines of the access log could not be written', { ...failure, since: toRfc3339(failure.since) });
  const accessLog =
    config.accessLog === undefined ? undefined : openRotated({ ...config.accessLog, recovered }, 'access_log.file');
  return {
    log,
    logState: file.state,
    accessLog,
    reopen: () => {
      file.reopen();
      accessLog?.reopen();
    },
    end: async () => {
      await accessLog?.close();
      await file.close();
    },
  };
};
