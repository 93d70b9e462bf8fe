// Starts and stops the server: one HTTPS listener in one process. XKS requests go to their front on Node's own request and
// response before Hono sees anything (docs/decisions/0001); all else goes through Hono. What Node's parser accepts and the
// proxy's specification does not (two Host headers, absolute-form targets, Transfer-Encoding lists) is refused here.

import { existsSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, isIPv6, type Socket } from 'node:net';
import { join } from 'node:path';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import type { Context } from 'hono';
import { type DestinationStream, destination as openDestination, pino } from 'pino';
import { redact } from './base/redaction.ts';
import { StartError } from './base/start-error.ts';
import { openService } from './compose.ts';
import { type Config, checkFile, loadConfig } from './config.ts';

/** What the proxy's specification asks of TLS: 1.2 and 1.3, AEAD suites only. */
const ciphers = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
].join(':');

const maxHeaderBytes = 8 * 1024;
const headersTimeoutMs = 5_000;
const requestTimeoutMs = 10_000;
/** Above the 350 s after which common load balancers drop a silent connection: they close first, never we under them. */
const keepAliveTimeoutMs = 360_000;

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
  /** One line for people at a time: the first token, the certificate, the address. Not the log. */
  readonly say: (line: string) => void;
}

export interface RunningServer {
  /** `https://HOST:PORT` of the listener itself. */
  readonly url: string;
  readonly port: number;
  /** PEM file that a client of the self-signed certificate trusts. */
  readonly certificatePath: string;
  readonly adminToken: string | undefined;
  /** Resolves when the server has ended: undefined after `stop`, the reason when it ended by itself. */
  readonly ended: Promise<StartError | undefined>;
  /** Finishes running requests, at most for the drain time, then writes what waits. */
  stop(): Promise<void>;
  /** Reads the certificate again; running connections keep theirs. */
  reloadTls(): void;
}

interface ServerLog {
  readonly log: Parameters<typeof openService>[0]['log'];
  readonly end: () => void;
}

/** Errors keep their stack; every text is redacted. */
const plain = (value: unknown): unknown => {
  if (value instanceof Error)
    return { name: value.name, message: redact(value.message), stack: redact(value.stack ?? '') };
  return typeof value === 'string' ? redact(value) : value;
};

const openLog = ({ level, destination }: Config['log']): ServerLog => {
  let stream: DestinationStream & { flushSync(): void; end(): void };
  try {
    const to = destination === 'stderr' ? 2 : destination === 'stdout' ? 1 : destination;
    stream = openDestination({ dest: to, sync: true, mode: 0o640 });
  } catch (error) {
    throw new StartError('permission', `${destination} cannot be written: name another log destination`, {
      cause: error,
    });
  }
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, stream);
  const write =
    (name: 'debug' | 'info' | 'warn' | 'error') =>
    (message: string, fields: { readonly [field: string]: unknown } = {}): void => {
      if (!logger.isLevelEnabled(name)) return;
      const safe = Object.fromEntries(Object.entries(fields).map(([field, value]) => [field, plain(value)]));
      logger[name](safe, redact(message));
    };
  return {
    log: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') },
    end: () => stream.flushSync(),
  };
};

const hostName = 'host';
const codingName = 'transfer-encoding';
/** Why a request is refused before any front sees it, or undefined. */
const objectionTo = (incoming: IncomingMessage): string | undefined => {
  const { rawHeaders, url } = incoming;
  if (url === undefined || !url.startsWith('/')) return 'the request target is a path';
  let hosts = 0;
  let codings = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    if (name.length === hostName.length && name.toLowerCase() === hostName) hosts += 1;
    else if (name.length === codingName.length && name.toLowerCase() === codingName) {
      codings += 1;
      if ((rawHeaders[index + 1] ?? '').toLowerCase() !== 'chunked') return 'the only transfer coding is chunked';
    }
  }
  if (hosts !== 1) return 'a request has one Host header';
  return codings > 1 ? 'the only transfer coding is chunked' : undefined;
};

/** Refusals of the listener itself speak both dialects: `errorName` for the cloud key service, `code` for everybody. */
const refusalBody = (status: number, message: string): string =>
  JSON.stringify({
    errorName: 'ValidationException',
    errorMessage: message,
    type: 'about:blank',
    title: message,
    status,
    code: status === 413 ? 'payload-too-large' : 'validation',
  });

const refuse = (outgoing: ServerResponse, message: string): void => {
  const body = refusalBody(400, message);
  outgoing
    .writeHead(400, {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
      Connection: 'close',
    })
    .end(body);
};

const parserRefusals: Readonly<Record<string, readonly [number, string, string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'Request Header Fields Too Large', 'the headers are longer than 8 KiB'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'Request Timeout', 'the request did not arrive in time'],
};

/** What Node's parser refuses never becomes a request: the answer is written by hand. */
const answerParserError = (error: NodeJS.ErrnoException, socket: Socket): void => {
  const [status, reason, message] = parserRefusals[error.code ?? ''] ?? [
    400,
    'Bad Request',
    'the request is not HTTP/1.1',
  ];
  const body = refusalBody(status, message);
  socket.end(
    `HTTP/1.1 ${status} ${reason}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
};

const listen = (server: Server, host: string, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException): void => {
      const where = `${host} port ${port}`;
      const message =
        error.code === 'EADDRINUSE'
          ? `${where} is in use: stop what listens there, or set server.port`
          : error.code === 'EACCES'
            ? `${where} may not be opened: ports below 1024 need CAP_NET_BIND_SERVICE, or set server.port`
            : `${where} cannot be opened (${error.code ?? 'unknown'}): check server.host`;
      reject(new StartError('listen', message, { cause: error }));
    };
    server.once('error', fail);
    server.listen({ host, port, backlog: 1024 }, () => {
      server.off('error', fail);
      resolve((server.address() as AddressInfo).port);
    });
  });

const hostInUrl = (name: string): string => (isIPv6(name) ? `[${name}]` : name);

export const startServer = async ({ config, say }: StartOptions): Promise<RunningServer> => {
  if (config.tls !== undefined) {
    checkFile(config.tls.certificate, 'public');
    checkFile(config.tls.key, 'secret');
  }
  const { log, end: endLog } = openLog(config.log);
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
  const service = await openService({
    config,
    version,
    log,
    publicUrl,
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

  const viaHono = getRequestListener(service.app.fetch, { overrideGlobalObjects: false });
  let draining = false;
  const handle = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const objection = objectionTo(incoming);
    if (objection !== undefined) {
      refuse(outgoing, objection);
      return;
    }
    if (draining) outgoing.setHeader('Connection', 'close');
    if (service.xks.owns(incoming.url)) service.xks.handle(incoming, outgoing);
    else void viaHono(incoming, outgoing);
  };

  let server: Server;
  try {
    server = createServer(
      {
        key: service.tls.key,
        cert: service.tls.certificate,
        minVersion: 'TLSv1.2',
        maxVersion: 'TLSv1.3',
        ciphers,
        honorCipherOrder: true,
        ALPNProtocols: ['http/1.1'],
        handshakeTimeout: headersTimeoutMs,
        maxHeaderSize: maxHeaderBytes,
        headersTimeout: headersTimeoutMs,
        requestTimeout: requestTimeoutMs,
        keepAliveTimeout: keepAliveTimeoutMs,
        connectionsCheckingInterval: 1_000,
        noDelay: true,
      },
      handle,
    );
    server.maxConnections = config.limits.connections;
    // Who has not finished the handshake (noise, or silence for too long) cannot be answered, and is not waited for.
    const established = new WeakSet<Socket>();
    server.on('secureConnection', (socket) => established.add(socket));
    server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
      if (established.has(socket) && socket.writable && error.code !== 'ECONNRESET') answerParserError(error, socket);
      else socket.destroy();
    });
    port = await listen(server, config.server.host, config.server.port);
  } catch (error) {
    await service.stop();
    endLog();
    if (error instanceof StartError) throw error;
    throw new StartError('config', 'the certificate and its key cannot be used: check [tls]', { cause: error });
  }

  const reloadTls = (): void => {
    try {
      const { certificate, key } = service.readTls();
      server.setSecureContext({ cert: certificate, key, minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3', ciphers });
      log.info('the certificate was read again');
    } catch (error) {
      log.error('the certificate could not be read again; the old one stays', { error });
    }
  };

  let stopping: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    draining = true;
    const closed = new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
    const deadline = performance.now() + config.server.drainSeconds * 1000;
    // Node closes idle connections only when asked: a connection that becomes idle while draining is closed here.
    const sweep = setInterval(() => {
      if (performance.now() < deadline) server.closeIdleConnections();
      else server.closeAllConnections();
    }, 50);
    server.closeIdleConnections();
    await closed;
    clearInterval(sweep);
    await service.stop();
    log.info('stopped');
    endLog();
    finish(undefined);
  };

  const url = `https://${hostInUrl(config.server.host === '0.0.0.0' ? '127.0.0.1' : config.server.host)}:${port}`;
  log.info('listening', {
    url,
    publicUrl: publicUrl(),
    version,
    config: config.source ?? 'defaults',
  });
  if (service.adminToken !== undefined) say(`administrator token (shown once): ${service.adminToken}`);
  say(`certificate: ${service.tls.certificatePath}`);
  say(`listening on ${url}`);

  return {
    url,
    port,
    certificatePath: service.tls.certificatePath,
    adminToken: service.adminToken,
    ended,
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
    reloadTls,
  };
};

/**
 * Runs the server until a signal ends it; answers the exit code (base/start-error.ts lists the classes). SIGTERM and SIGINT
 * drain and stop, SIGHUP reads the certificate again.
 */
export const runServer = async (options: {
  readonly configPath: string | undefined;
  readonly say: (line: string) => void;
  readonly complain: (line: string) => void;
}): Promise<number> => {
  // What the service writes is for itself alone, the side files of its database included.
  process.umask(0o077);
  // Before the start: whoever reads "listening" may send a signal at once, and one that comes earlier waits for it.
  let server: RunningServer | undefined;
  let stopAsked = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.once(signal, () => {
      stopAsked = true;
      void server?.stop();
    });
  process.on('SIGHUP', () => server?.reloadTls());
  try {
    server = await startServer({ config: loadConfig(options.configPath, process.cwd()), say: options.say });
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
