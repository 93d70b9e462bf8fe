// The main thread's half: configurations and their ways to the service, logs, and the answers to the socket thread's
// questions. One client context serves every process that names the same unchanged configuration file.
import { realpathSync } from 'node:fs';
import type { MessagePort } from 'node:worker_threads';
import { core, type Peer } from '../../addon/core.ts';
import { Repeats } from '../../server/base/repeats.ts';
import type { WithdrawalOutcome } from '../../server/fronts/contract/tde.ts';
import type { Notice, Question, Reply, ToHost } from './bridge.ts';
import { ConfigError, checkConfig, type LogLevel, loadConfig, type ProviderConfig } from './config.ts';
import type { Log, Logs } from './log.ts';
import { ServiceCallError, type ServiceDoor } from './service.ts';
import { openHttpService } from './service-http.ts';
import { tlsFilesState } from './tls.ts';

type LogNotice = Extract<Notice, { readonly kind: 'log' }>;

interface OpenContext {
  readonly id: number;
  readonly key: string;
  readonly config: ProviderConfig;
  readonly fingerprint: string;
  /** Of the files that the configuration names. */
  readonly files: string;
  readonly door: ServiceDoor;
  readonly log: Log;
  users: number;
}

export interface HostOptions {
  readonly port: MessagePort;
  readonly logs: Logs;
  /** Where lines go that belong to no configuration. */
  readonly log: Log;
  /** The configuration for peers that name none. */
  readonly defaultConfig: string;
  /** The socket thread listens. */
  readonly listening: (server: number) => void;
  /** The number of connections has changed. */
  readonly counted: (connections: number) => void;
}

export interface Host {
  close(): Promise<void>;
}

/** After a call that failed because its answer did not come in time. */
const afterWithdrawal = {
  'not-carried-out': ['info', 'the service has not carried out the failed call, and will not'],
  undone: ['info', 'the service has destroyed what the failed call had created'],
  kept: ['warn', 'the failed call was carried out: it changed an object, or what it created is in use already'],
} as const satisfies Record<WithdrawalOutcome, readonly [LogLevel, string]>;

export const startHost = (options: HostOptions): Host => {
  const { port, logs, log } = options;
  const byId = new Map<number, OpenContext>();
  const byKey = new Map<string, OpenContext>();
  let nextContext = 1;
  let server: number | null = null;

  /** What fails, fails with every heartbeat and in every process: told once, then counted. */
  const repeats = new Repeats<LogNotice>({
    now: () => performance.now(),
    quietMs: 60_000,
    longestMs: 3_600_000,
    most: 4096,
    mostOfFamily: 64,
    summary: (last, count, sinceMs) => {
      const since = `${count} more in ${Math.ceil(sinceMs / 1000)} s, this the last`;
      logOf(last).write(last.level, { ...last.fields, count }, `${since}: ${last.message}`);
    },
  });
  const flushing = setInterval(() => repeats.flush(), 15_000).unref();
  const logOf = ({ context }: LogNotice): Log => byId.get(context ?? 0)?.log ?? log;
  const write = (notice: LogNotice): void => {
    const { context, level, fields, message } = notice;
    const family = `${context} ${fields.cause ?? fields.call}`;
    const isCounted = fields.cause !== undefined || level === 'warn' || level === 'error';
    if (!isCounted || repeats.admit(`${family} ${fields.rv} ${message}`, notice, family))
      logOf(notice).write(level, fields, message);
  };

  const reply = (message: Reply, transfer: ArrayBuffer[] = []): void => {
    port.postMessage(message, transfer);
    if (server !== null) core.wakeFrameServer(server);
  };

  const open = (path: string, { uid }: Peer): OpenContext => {
    // Every peer's right to the file is checked, also when another process has it open already.
    const fingerprint = checkConfig(path, uid);
    // The library names the file by its real path, which is looked up for other peers only.
    const unchanged = (key: string): OpenContext | undefined => {
      const known = byKey.get(key);
      return known?.fingerprint === fingerprint && known.files === tlsFilesState(known.config) ? known : undefined;
    };
    const shared = unchanged(`${uid}:${path}`);
    if (shared !== undefined) return shared;
    const key = `${uid}:${realpathSync(path)}`;
    const known = unchanged(key);
    if (known !== undefined) return known;
    const config = loadConfig(path, uid);
    const contextLog = logs.of(config.logDir, config.logLevel);
    const context: OpenContext = {
      id: nextContext++,
      key,
      config,
      fingerprint,
      files: tlsFilesState(config),
      door: openHttpService(
        config,
        (requestId, outcome) => {
          const [level, message] = afterWithdrawal[outcome];
          contextLog.write(level, { id: requestId }, message);
        },
        (requestId, route, { names, until }) =>
          contextLog.write(
            'warn',
            { id: requestId, route, pendingNodes: names.join(', '), pendingUntil: until ?? 'never' },
            'the change is made, but some nodes of the service have not confirmed it and may act on the old state',
          ),
      ),
      log: contextLog,
      users: 0,
    };
    byId.set(context.id, context);
    byKey.set(key, context);
    const { redactedUrl: server_url, applicationId: app_id } = config;
    context.log.write('info', { config: path, uid, server_url, app_id }, 'configuration opened');
    return context;
  };

  const release = (id: number): void => {
    const context = byId.get(id);
    if (context === undefined || --context.users > 0) return;
    // The current one stays for the next process; one that was replaced goes with its last user.
    if (byKey.get(context.key) === context) return;
    byId.delete(id);
    void context.door.close();
  };

  const answerOpen = ({ id, config, peer }: Extract<Question, { kind: 'open' }>): void => {
    try {
      const context = open(config ?? options.defaultConfig, peer);
      context.users++;
      reply({
        id,
        kind: 'opened',
        context: context.id,
        spinUs: context.config.spinUs,
        keyCheckMs: context.config.keyCheckMs,
      });
    } catch (error) {
      const known = error instanceof ConfigError ? error : null;
      const message = known?.message ?? 'the configuration cannot be opened';
      write({
        kind: 'log',
        context: null,
        level: 'error',
        fields: {
          peer: peer.pid,
          uid: peer.uid,
          rv: 'CKR_DEVICE_ERROR',
          ...(known === null ? {} : { cause: known.told }),
        },
        message,
      });
      reply({ id, kind: 'refused', message });
    }
  };

  const answerCall = async ({ id, context: contextId, request, caller }: Extract<Question, { kind: 'call' }>) => {
    const { requestId } = caller;
    const context = byId.get(contextId);
    if (context === undefined) {
      return reply({
        id,
        kind: 'failed',
        code: 'internal',
        message: 'the configuration is closed',
        requestId,
        told: null,
        reason: null,
      });
    }
    const { route, handle } = request;
    try {
      const { answer, raw, epoch } = await context.door.call(request, caller);
      // Memory of its own: the answer's buffer holds more than the raw part.
      const own = new Uint8Array(raw);
      raw.fill(0);
      context.log.write('debug', { id: requestId, route, handle }, 'asked the service');
      reply({ id, kind: 'answered', answer, raw: own, epoch }, [own.buffer]);
    } catch (error) {
      const { code, message, told, reason } =
        error instanceof ServiceCallError
          ? error
          : { code: 'internal' as const, message: 'the call failed', told: null, reason: null };
      reply({ id, kind: 'failed', code, message, requestId, told, reason: reason ?? null });
    }
  };

  const notice = (message: Notice): void => {
    switch (message.kind) {
      case 'withdraw':
        byId.get(message.context)?.door.withdraw(message.caller);
        break;
      case 'listening':
        server = message.server;
        options.listening(server);
        break;
      case 'connections':
        options.counted(message.count);
        break;
      case 'release':
        release(message.context);
        break;
      case 'log':
        write(message);
        break;
    }
  };

  port.on('message', (message: ToHost) => {
    if (message.kind === 'open') answerOpen(message);
    else if (message.kind === 'call') void answerCall(message);
    else notice(message);
  });

  return {
    async close() {
      clearInterval(flushing);
      repeats.flush(true);
      port.close();
      await Promise.all([...byId.values()].map(({ door }) => door.close()));
    },
  };
};
