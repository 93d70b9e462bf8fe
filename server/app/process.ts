// Starts and stops the server: one HTTPS listener in one process, and one router behind it
// (fronts/shared/dispatch.ts).

import { existsSync, readFileSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { HttpBindings } from '@hono/node-server';
import type { Context } from 'hono';
import { markProven } from '../base/connection-proof.ts';
import { writeDurably } from '../base/durable-files.ts';
import { ignoreForeignSignals } from '../base/foreign-signals.ts';
import { createLimitRefusals, type LimitRefusals } from '../base/limit-refusals.ts';
import { redact } from '../base/redaction.ts';
import { StartError, toldError } from '../base/start-error.ts';
import { createListener, type Listener, type TlsMaterial } from '../fronts/listener/listener.ts';
import { keepHelpersBack } from '../fronts/listener/v8-helper-threads.ts';
import type { Log } from '../ports/log.ts';
import { type Config, loadConfig } from './config/config.ts';
import { endStartInTime, endStopInTime, endWith, holdNewConnections } from './end-in-time.ts';
import { returnFreeMemory } from './free-memory.ts';
import { openLogs } from './open/logs.ts';
import type { Service } from './running-service.ts';
import { openService } from './service.ts';
import { tellServiceManager } from './service-manager.ts';

/**
 * The version in package.json, which is two folders up from the sources and three from what was
 * built of them.
 */
const readVersion = (): string => {
  for (const up of ['../../', '../../../']) {
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
  /**
   * A new file for the first administrator token, which is then not printed: standard output may go
   * to a log.
   */
  readonly tokenFile?: string | undefined;
  /**
   * When a stop begins: a process that is nothing but this server ends in time, whatever does not
   * answer.
   */
  readonly endInTime?: typeof endStopInTime;
}

/**
 * A file has mode 600 and is on the disk when this returns. If it cannot be written, the token is
 * printed: it is shown once.
 */
const showFirstToken = (token: string, path: string | undefined, say: (line: string) => void): void => {
  if (path === undefined) {
    say(`administrator token (shown once): ${token}`);
    return;
  }
  try {
    writeDurably(path, `${token}\n`, { flag: 'wx' });
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
  /**
   * Resolves when the server has ended: undefined after `stop`, the reason when it ended on its own
   * or its store did not take the last records.
   */
  readonly ended: Promise<StartError | undefined>;
  /**
   * Turns health bad for the notice time (a second call cuts it short), finishes running requests,
   * at most for the drain time, then writes what waits.
   */
  stop(): Promise<void>;
  /** Reads the certificate again; running connections keep theirs. */
  reloadTls(): void;
  /** Opens the log file again by its name: it may have been moved away. */
  reopenLog(): void;
}

/** Where a listener of this address is reached from its own host. */
const loopbackOf = (host: string): string => (host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host);

const hostInUrl = (name: string): string => (isIPv6(name) ? `[${name}]` : name);

/** The listener of the service that is open, and the certificates that it serves. */
const createTlsServing = (config: Config, log: Log, refusals: LimitRefusals) => {
  let listener: Listener | undefined;
  let served: TlsMaterial | undefined;
  let { port } = config.server;
  const url = (): string => `https://${hostInUrl(loopbackOf(config.server.host))}:${port}`;

  /** Serves `serving` from the next request on. */
  const listen = async (serving: Pick<Service, 'handle' | 'readTls'>): Promise<TlsMaterial> => {
    listener?.setHandle(serving.handle);
    const tls = serving.readTls();
    served = tls;
    if (listener !== undefined) listener.setTls(tls);
    else {
      listener = createListener({
        tls,
        maxConnections: config.limits.connections,
        trustedProxies: config.server.trustedProxies,
        handle: serving.handle,
        holdNew: holdNewConnections,
        refused: refusals.refused,
      });
      port = await listener.listen(config.server.host, config.server.port);
    }
    return tls;
  };
  return {
    url,
    port: () => port,
    publicUrl: (): string => {
      if (config.server.publicUrl !== undefined) return config.server.publicUrl;
      const name = hostInUrl(config.server.publicNames[0] ?? 'localhost');
      return port === 443 ? `https://${name}` : `https://${name}:${port}`;
    },
    listen,
    /** `listen` for an open service, whose certificates the listener follows. */
    serve: async (service: Service): Promise<void> => {
      try {
        service.tlsTaken(await listen(service));
      } catch (error) {
        if (error instanceof StartError) throw error;
        const own = { certificate: service.certificatePath, key: join(config.dataDirectory, 'tls.key') };
        const pairs = [config.tls.main ?? own, ...config.tls.additional];
        const files = pairs.map(({ certificate, key }) => `${certificate} and ${key}`).join(', or ');
        throw new StartError(
          'config',
          `the certificate and its key cannot be used: check [tls], and that these are whole and belong together: ${files}`,
          { cause: error },
        );
      }
      service.onClientAuthorities(() => {
        if (served === undefined) return;
        served = service.withAuthorities(served);
        listener?.setTls(served);
      });
    },
    reload: async (service: Service): Promise<void> => {
      if (listener === undefined || served === undefined) return;
      try {
        const tls = await service.renewTls();
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
    },
    close: async (): Promise<void> => listener?.close(config.server.drainSeconds * 1000),
  };
};

const asStartError = (error: unknown, what: string): StartError =>
  error instanceof StartError ? error : new StartError('internal', what, { cause: error });

/** What the service reads of a connection. */
const connection: Parameters<typeof openService>[0]['connection'] = {
  peerOf: (c) => bindings(c).incoming?.socket.remoteAddress ?? null,
  proven: (c, caller, tenantId) => {
    const socket = bindings(c).incoming?.socket;
    if (socket !== undefined) markProven(socket, caller, tenantId);
  },
  afterSent: (c, done) => {
    const { outgoing } = bindings(c);
    if (outgoing?.closed === true || outgoing?.destroyed === true) done();
    else outgoing?.once('close', done);
  },
};
const bindings = (c: Context): Partial<HttpBindings> => (c.env ?? {}) as Partial<HttpBindings>;

const countRefusals = (log: Log): LimitRefusals =>
  createLimitRefusals((line) => log.warn('a limit has refused callers', { ...line }));

/**
 * Balancers and operators hear of a stop before it begins. `left`: is told how much of it is left.
 */
const giveNotice = async (ms: number, signal: AbortSignal, left: (ms: number) => void): Promise<void> => {
  left(ms);
  if (ms === 0) return;
  await setTimeout(ms, undefined, { signal }).catch(() => undefined);
  left(0);
};

export const startServer = async ({
  config,
  acceptDatabase = false,
  ask,
  say,
  tokenFile,
  endInTime,
}: StartOptions): Promise<RunningServer> => {
  const logs = openLogs(config);
  const { log } = logs;
  const refusals = countRefusals(log);
  const serving = createTlsServing(config, log, refusals);
  const ended = Promise.withResolvers<StartError | undefined>();
  const sealed = Promise.withResolvers<string>();
  /** A second request to stop does not wait for the notice time. */
  const [stopping, stopNow] = [new AbortController(), new AbortController()];
  let service: Service | undefined;

  const sayListening = (certificatePath: string): void => {
    const urls = { url: serving.url(), publicUrl: serving.publicUrl() };
    log.info('listening', { ...urls, version, config: config.source ?? 'defaults' });
    say(`certificate: ${certificatePath}`);
    say(`listening on ${serving.url()}`);
  };
  const opening = openService({
    config,
    version,
    log,
    logState: logs.logState,
    accessLog: logs.accessLog,
    refusals,
    acceptDatabase,
    publicUrl: serving.publicUrl,
    ask,
    say,
    showFirstToken: (token) => showFirstToken(token, tokenFile, say),
    signal: stopping.signal,
    onSealed: async (waiting) => {
      await serving.listen(waiting);
      say('sealed: dke root unseal');
      sealed.resolve(waiting.certificatePath);
    },
    listening: () => ({ host: loopbackOf(config.server.host), port: serving.port() }),
    onFatal: (error) => {
      log.error(error.message, { error });
      ended.resolve(error);
    },
    connection,
  });
  const serve = async (opened: Service): Promise<void> => {
    try {
      await serving.serve(opened);
      service = opened;
    } catch (error) {
      // Why it cannot serve says more than what stopping it met.
      await opened.stop().catch((fault: unknown) => log.error('stopping the service failed', { error: fault }));
      await logs.end();
      throw error;
    }
  };
  const stop = async (): Promise<void> => {
    stopping.abort();
    const { drainSeconds, drainNoticeSeconds } = config.server;
    service?.announceStop();
    await giveNotice(service === undefined ? 0 : drainNoticeSeconds * 1000, stopNow.signal, (ms) =>
      endInTime?.(ms + drainSeconds * 1000, log),
    );
    await serving.close();
    const failure = await service?.stop().then(
      () => undefined,
      (error: unknown) => asStartError(error, 'stopping the service failed'),
    );
    if (failure === undefined) log.info('stopped');
    else log.error(failure.message, { error: failure });
    await logs.end();
    ended.resolve(failure);
  };

  const first = await Promise.race([opening, sealed.promise]).catch(async (error: unknown) => {
    await logs.end();
    throw error;
  });
  if (typeof first === 'string') {
    sayListening(first);
    opening.then(serve).then(
      () => {
        log.info('unsealed');
        say('unsealed');
      },
      (error: unknown) => {
        if (!stopping.signal.aborted) ended.resolve(asStartError(error, 'the start failed'));
      },
    );
  } else {
    await serve(first);
    sayListening(first.certificatePath);
  }

  let stopped: Promise<void> | undefined;
  /** One after the other, in the order of the signals. */
  let reloading: Promise<void> = Promise.resolve();
  return {
    url: serving.url(),
    port: serving.port(),
    certificatePath: typeof first === 'string' ? first : first.certificatePath,
    adminToken: typeof first === 'string' ? undefined : first.adminToken,
    ended: ended.promise,
    stop: () => {
      if (stopped === undefined) stopped = stop();
      else stopNow.abort();
      return stopped;
    },
    reloadTls: () => {
      const current = service;
      if (current !== undefined) reloading = reloading.then(() => serving.reload(current));
    },
    reopenLog: logs.reopen,
  };
};

/**
 * Runs the server until a signal ends it; answers the exit code (base/start-error.ts lists the
 * classes). SIGTERM and SIGINT drain and stop (a second one does not wait for the notice), SIGHUP
 * reads the certificate and opens the log file again.
 */
export const runServer = async (options: {
  readonly configPath: string | undefined;
  readonly acceptDatabase?: boolean | undefined;
  readonly tokenFile?: string | undefined;
  readonly ask?: StartOptions['ask'];
  readonly say: (line: string) => void;
  readonly complain: (line: string) => void;
}): Promise<number> => {
  ignoreForeignSignals();
  // What the service writes is for itself alone, the side files of its database included.
  process.umask(0o077);
  keepHelpersBack();
  returnFreeMemory();
  // Before the start: a reader of "listening" may send a signal at once, and one that comes earlier
  // waits for it.
  let server: RunningServer | undefined;
  let stopAsked = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => {
      stopAsked = true;
      tellServiceManager('STOPPING=1', 'running requests end');
      if (server === undefined) endStartInTime();
      else void server.stop();
    });
  process.on('SIGHUP', () => {
    server?.reopenLog();
    server?.reloadTls();
  });
  // A reader that has gone, or a full disk behind them, does not end the service, as it ends the
  // lists of `dke`.
  for (const stream of [process.stdout, process.stderr])
    stream.removeAllListeners('error').on('error', () => undefined);
  try {
    const { acceptDatabase, say, tokenFile, ask } = options;
    server = await startServer({
      config: loadConfig(options.configPath, process.cwd()),
      acceptDatabase,
      ask,
      say,
      tokenFile,
      endInTime: endStopInTime,
    });
    if (stopAsked) void server.stop();
    else tellServiceManager('READY=1', `listening on ${server.url}`);
    const reason = await server.ended;
    if (reason === undefined) return endWith(0);
    options.complain(reason.message);
    return endWith(reason.exitCode);
  } catch (error) {
    const known = toldError(error);
    options.complain(redact(known.message));
    return endWith(known.exitCode);
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
