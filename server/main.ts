// Starts and stops the server: one HTTPS listener in one process, and one router behind it (fronts/shared/dispatch.ts).

import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { HttpBindings } from '@hono/node-server';
import type { Context } from 'hono';
import { destination as openDestination, pino } from 'pino';
import type { Service } from './app/interface.ts';
import { openService } from './app/service.ts';
import { toRfc3339 } from './base/clock.ts';
import { redact } from './base/redaction.ts';
import { StartError } from './base/start-error.ts';
import { checkFile } from './config/check-file.ts';
import { type Config, loadConfig } from './config/config.ts';
import { keepHelpersBack } from './listener/helpers.ts';
import { createListener, type Listener, type TlsMaterial } from './listener/listener.ts';
import { type LogFailure, type LogFile, openLogFile } from './log-file.ts';

/** The version in package.json, which lies one folder up from the sources and two from what was built of them. */
const readVersion = (): string => {
  for (const up of ['..', '../..']) {
    const path = join(import.meta.dirname, up, 'package.json');
    if (!existsSync(path)) continue;
    const { version } = JSON.parse(readFileSync(path, 'utf8')) as { readonly version?: unknown };
    if (typeof version === 'string') return version;
  }
  return 'unknown';
};
const version = readVersion();

export interface StartOptions {
  readonly config: Config;
  /** See ServiceOptions. */
  readonly acceptDatabase?: boolean | undefined;
  /** See ServiceOptions. */
  readonly ask?: Parameters<typeof openService>[0]['ask'];
  /** One line for people at a time: the first token, the certificate, the address. Not the log. */
  readonly say: (line: string) => void;
  /** A new file for the first administrator token, which is then not printed: standard output may go to a log. */
  readonly tokenFile?: string | undefined;
}

/** Mode 600, on the disk when it answers. What cannot be written is said after all: the token is shown once. */
const writeFirstToken = (path: string, token: string, say: (line: string) => void): void => {
  try {
    const file = openSync(path, 'wx', 0o600);
    writeSync(file, `${token}\n`);
    fsyncSync(file);
    closeSync(file);
    say(`administrator token: in ${path}`);
  } catch (error) {
    say(`${path} cannot be written (${(error as NodeJS.ErrnoException).code})`);
    say(`administrator token (shown once): ${token}`);
  }
};

export interface RunningServer {
  /** `https://HOST:PORT` of the listener itself. */
  readonly url: string;
  readonly port: number;
  /** PEM file that a client of the self-signed certificate trusts. */
  readonly certificatePath: string;
  readonly adminToken: string | undefined;
  /** Resolves when the server has ended: undefined after `stop`, the reason when it ended by itself or its store did not take the last records. */
  readonly ended: Promise<StartError | undefined>;
  /**
   * Turns health bad for the notice time (a second call cuts it short), finishes running requests, at most for the drain time,
   * then writes what waits.
   */
  stop(): Promise<void>;
  /** Reads the certificate again; running connections keep theirs. */
  reloadTls(): void;
  /** Opens the log file again by its name: it may have been moved away. */
  reopenLog(): void;
}

interface ServerLog extends Pick<LogFile, 'reopen' | 'state'> {
  readonly log: Parameters<typeof openService>[0]['log'];
  readonly end: () => Promise<void>;
}

/** Bytes of log lines that wait for a stream that takes none. */
const mostWaiting = 8 << 20;

/** Errors keep their stack; every text is redacted. */
const plain = (value: unknown): unknown => {
  if (value instanceof Error)
    return { name: value.name, message: redact(value.message), stack: redact(value.stack ?? '') };
  return typeof value === 'string' ? redact(value) : value;
};

/** Standard output or error: a full disk or a reader that has gone costs lines, never the service. */
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
  try {
    closeSync(openSync(options.path, 'a', 0o640));
  } catch (error) {
    throw new StartError('permission', `${options.path} cannot be written: name another ${setting}`, { cause: error });
  }
  return openLogFile(options);
};

const openLog = ({ level, destination, rotateBytes, rotateMs, keep }: Config['log']): ServerLog => {
  let file: LogFile;
  if (destination === 'stderr') file = openStandardStream(2);
  else if (destination === 'stdout') file = openStandardStream(1);
  else {
    const recovered = (failure: LogFailure): void =>
      log.warn('log lines could not be written', { ...failure, since: toRfc3339(failure.since) });
    file = openRotated({ path: destination, rotateBytes, rotateMs, keep, recovered }, 'log destination');
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
  return { log, reopen: file.reopen, state: file.state, end: file.close };
};

/** Where a listener of this address is reached from its own host. */
const loopbackOf = (host: string): string => (host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host);

const hostInUrl = (name: string): string => (isIPv6(name) ? `[${name}]` : name);

export const startServer = async ({
  config,
  acceptDatabase = false,
  ask,
  say,
  tokenFile,
}: StartOptions): Promise<RunningServer> => {
  for (const { certificate, key } of [config.tls.main ?? [], config.tls.additional].flat()) {
    checkFile(certificate, 'public');
    checkFile(key, 'secret');
  }
  const { log, end, reopen, state: logState } = openLog(config.log);
  const accessLog =
    config.accessLog === undefined
      ? undefined
      : openRotated(
          {
            ...config.accessLog,
            recovered: (failure) =>
              log.warn('lines of the access log could not be written', {
                ...failure,
                since: toRfc3339(failure.since),
              }),
          },
          'file in [access_log]',
        );
  const endLog = async (): Promise<void> => {
    await accessLog?.close();
    await end();
  };
  const reopenLog = (): void => {
    reopen();
    accessLog?.reopen();
  };
  let port = config.server.port;
  const publicUrl = (): string => {
    if (config.server.publicUrl !== undefined) return config.server.publicUrl;
    const name = hostInUrl(config.server.publicNames[0] ?? 'localhost');
    return port === 443 ? `https://${name}` : `https://${name}:${port}`;
  };
  let finish: (reason: StartError | undefined) => void = () => undefined;
  const ended = new Promise<StartError | undefined>((resolve) => {
    finish = resolve;
  });

  const bindings = (c: Context): Partial<HttpBindings> => (c.env ?? {}) as Partial<HttpBindings>;
  let listener: Listener | undefined;
  let served: TlsMaterial | undefined;
  let handle: Service['handle'] = () => undefined;
  const listen = async (serving: Pick<Service, 'handle' | 'readTls'>): Promise<void> => {
    handle = serving.handle;
    served = serving.readTls();
    if (listener !== undefined) return listener.setTls(served);
    listener = createListener({
      tls: served,
      maxConnections: config.limits.connections,
      trustedProxies: config.server.trustedProxies,
      handle: (incoming, outgoing) => handle(incoming, outgoing),
    });
    port = await listener.listen(config.server.host, config.server.port);
  };
  const url = (): string => `https://${hostInUrl(loopbackOf(config.server.host))}:${port}`;
  const sayListening = (certificatePath: string): void => {
    log.info('listening', { url: url(), publicUrl: publicUrl(), version, config: config.source ?? 'defaults' });
    say(`certificate: ${certificatePath}`);
    say(`listening on ${url()}`);
  };
  const leaving = new AbortController();
  let sealedUnder: (certificatePath: string) => void = () => undefined;
  const sealed = new Promise<string>((resolve) => {
    sealedUnder = resolve;
  });
  const opening = openService({
    config,
    version,
    log,
    logState,
    accessLog,
    acceptDatabase,
    publicUrl,
    ask,
    say,
    signal: leaving.signal,
    onSealed: async (waiting) => {
      await listen(waiting);
      say('sealed: dke root unseal');
      sealedUnder(waiting.certificatePath);
    },
    listening: () => ({ host: loopbackOf(config.server.host), port }),
    onFatal: (error) => {
      log.error(error.message, { error });
      finish(error);
    },
    connection: {
      peerOf: (c) => bindings(c).incoming?.socket.remoteAddress ?? null,
      afterSent: (c, done) => {
        bindings(c).outgoing?.once('close', done);
      },
    },
  });
  const first = await Promise.race([opening, sealed]);
  let service: Service | undefined;
  const serve = async (opened: Service): Promise<void> => {
    try {
      await listen(opened);
      if (served !== undefined) opened.tlsTaken(served);
      service = opened;
    } catch (error) {
      // Why it cannot serve says more than what its end met.
      await opened.stop().catch((fault: unknown) => log.error('stopping the service failed', { error: fault }));
      await endLog();
      if (error instanceof StartError) throw error;
      const own = { certificate: opened.certificatePath, key: join(config.dataDirectory, 'tls.key') };
      const pairs = [config.tls.main ?? own, ...config.tls.additional];
      const files = pairs.map(({ certificate, key }) => `${certificate} and ${key}`).join(', or ');
      throw new StartError(
        'config',
        `the certificate and its key cannot be used: check [tls], and that these are whole and belong together: ${files}`,
        { cause: error },
      );
    }
    opened.onClientAuthorities(() => {
      if (served === undefined) return;
      served = opened.withAuthorities(served);
      listener?.setTls(served);
    });
  };

  const reloadTls = (): void => {
    if (service === undefined || listener === undefined || served === undefined) return;
    try {
      const tls = service.renewTls(served);
      listener.setTls(tls);
      served = tls;
      service.tlsTaken(tls);
      log.info('the certificate was reloaded');
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'unknown fault';
      // What is wrong with the files is in the message; only a fault of ours needs its stack.
      log.error(
        `the certificate was not replaced, the old one stays: ${reason}`,
        error instanceof StartError ? {} : { error },
      );
    }
  };
  let stopping: Promise<void> | undefined;
  const hurried = new AbortController();
  const stop = async (): Promise<void> => {
    leaving.abort();
    const noticeMs = config.server.drainNoticeSeconds * 1000;
    service?.announceStop();
    if (service !== undefined && noticeMs > 0)
      await setTimeout(noticeMs, undefined, { signal: hurried.signal }).catch(() => undefined);
    await listener?.close(config.server.drainSeconds * 1000);
    const failure = await service?.stop().then(
      () => undefined,
      (error: unknown) =>
        error instanceof StartError
          ? error
          : new StartError('internal', 'stopping the service failed', { cause: error }),
    );
    if (failure === undefined) log.info('stopped');
    else log.error(failure.message, { error: failure });
    await endLog();
    finish(failure);
  };

  if (typeof first === 'string') {
    sayListening(first);
    opening.then(serve).then(
      () => {
        log.info('unsealed');
        say('unsealed');
      },
      (error: unknown) => {
        if (leaving.signal.aborted) return;
        finish(error instanceof StartError ? error : new StartError('internal', 'the start failed', { cause: error }));
      },
    );
  } else {
    // Before anything else can fail: it is made once, and the next start shows none.
    if (first.adminToken !== undefined) {
      if (tokenFile === undefined) say(`administrator token (shown once): ${first.adminToken}`);
      else writeFirstToken(tokenFile, first.adminToken, say);
    }
    await serve(first);
    sayListening(first.certificatePath);
  }

  return {
    url: url(),
    port,
    certificatePath: typeof first === 'string' ? first : first.certificatePath,
    adminToken: typeof first === 'string' ? undefined : first.adminToken,
    ended,
    stop: () => {
      if (stopping === undefined) stopping = stop();
      else hurried.abort();
      return stopping;
    },
    reloadTls,
    reopenLog,
  };
};

/**
 * Runs the server until a signal ends it; answers the exit code (base/start-error.ts lists the classes). SIGTERM and SIGINT
 * drain and stop (a second one does not wait for the notice), SIGHUP reads the certificate and opens the log file again.
 */
export const runServer = async (options: {
  readonly configPath: string | undefined;
  readonly acceptDatabase?: boolean | undefined;
  readonly tokenFile?: string | undefined;
  readonly ask?: StartOptions['ask'];
  readonly say: (line: string) => void;
  readonly complain: (line: string) => void;
}): Promise<number> => {
  // What the service writes is for itself alone, the side files of its database included.
  process.umask(0o077);
  keepHelpersBack();
  // Before the start: a reader of "listening" may send a signal at once, and one that comes earlier waits for it.
  let server: RunningServer | undefined;
  let stopAsked = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => {
      stopAsked = true;
      void server?.stop();
    });
  process.on('SIGHUP', () => {
    server?.reopenLog();
    server?.reloadTls();
  });
  // A reader that has gone, or a full disk behind them, does not end the service.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  try {
    const { acceptDatabase, say, tokenFile, ask } = options;
    server = await startServer({
      config: loadConfig(options.configPath, process.cwd()),
      acceptDatabase,
      ask,
      say,
      tokenFile,
    });
    if (stopAsked) void server.stop();
    const reason = await server.ended;
    if (reason === undefined) return 0;
    options.complain(reason.message);
    return reason.exitCode;
  } catch (error) {
    const known =
      error instanceof StartError
        ? error
        : new StartError('internal', error instanceof Error ? (error.stack ?? error.message) : 'unknown fault');
    options.complain(redact(known.message));
    return known.exitCode;
  }
};

if (import.meta.main) {
  const at = process.argv.indexOf('--config');
  process.exitCode = await runServer({
    configPath: at < 0 ? undefined : process.argv[at + 1],
    say: (line) => {
      process.stdout.write(`${line}\n`);
    },
    complain: (line) => {
      process.stderr.write(`dke server: ${line}\n`);
    },
  });
  process.exit();
}
