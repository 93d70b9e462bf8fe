// The main thread's half: the answers to the socket thread's questions, and its lines in the logs. Configurations that are open, with
// their ways to the service, are here: one serves every process that names the same unchanged configuration file for the same user.

import { realpathSync } from 'node:fs';
import type { MessagePort } from 'node:worker_threads';
import { core, type Peer } from '../../addon/core.ts';
import { Repeats } from '../../server/base/repeats.ts';
import type { WithdrawalOutcome } from '../../server/fronts/contract/tde.ts';
import type { Notice, Question, Reply, ToHost } from './bridge.ts';
import { ConfigError, checkConfig, type LogLevel, loadConfig, type ProviderConfig, userOf } from './config.ts';
import type { Log, Logs } from './log.ts';
import { ServiceCallError, type ServiceDoor } from './service.ts';
import { openHttpService } from './service-http.ts';
import { tlsFilesState } from './tls.ts';
import { ServiceWait } from './wait-for-service.ts';

export interface OpenContext {
  readonly id: number;
  readonly key: string;
  readonly config: ProviderConfig;
  readonly fingerprint: string;
  /** Of the files that the configuration names. */
  readonly files: string;
  readonly door: ServiceDoor;
  readonly wait: ServiceWait;
  readonly log: Log;
  users: number;
}

/** After a call that failed because its answer did not come in time. */
const afterWithdrawal = {
  'not-carried-out': ['info', 'the service has not executed the failed call, and will not execute it'],
  undone: ['info', 'the service has destroyed what the failed call had created'],
  kept: ['warn', 'the failed call was executed: it changed an object, or the object that it created is already in use'],
} as const satisfies Record<WithdrawalOutcome, readonly [LogLevel, string]>;

const openDoor = (config: ProviderConfig, log: Log): ServiceDoor =>
  openHttpService(
    config,
    (requestId, outcome) => {
      const [level, message] = afterWithdrawal[outcome];
      log.write(level, { id: requestId }, message);
    },
    (requestId, route, { names, until }) =>
      log.write(
        'warn',
        { id: requestId, route, pendingNodes: names.join(', '), pendingUntil: until ?? 'never' },
        'the change was made, but some nodes of the service have not confirmed it and may still use the old state',
      ),
  );

export class Contexts {
  readonly #byId = new Map<number, OpenContext>();
  readonly #byKey = new Map<string, OpenContext>();
  readonly #logs: Logs;
  #next = 1;

  constructor(logs: Logs) {
    this.#logs = logs;
  }

  get(id: number): OpenContext | undefined {
    return this.#byId.get(id);
  }

  /** Opens the file for one more process. Throws ConfigError. */
  open(path: string, peer: Peer): OpenContext {
    // Every peer's right to the file is checked, also when another process has it open already.
    const uid = userOf(path, peer.uid);
    const fingerprint = checkConfig(path, uid);
    // The library names the file by its real path, which is looked up for other peers only.
    const unchanged = (key: string): OpenContext | undefined => {
      const known = this.#byKey.get(key);
      return known?.fingerprint === fingerprint && known.files === tlsFilesState(known.config) ? known : undefined;
    };
    const context =
      unchanged(`${uid}:${path}`) ?? unchanged(`${uid}:${realpathSync(path)}`) ?? this.#make(path, uid, fingerprint);
    context.users++;
    return context;
  }

  #make(path: string, uid: number, fingerprint: string): OpenContext {
    const key = `${uid}:${realpathSync(path)}`;
    const config = loadConfig(path, uid);
    const log = this.#logs.of(config.logDir, config.logLevel);
    const door = openDoor(config, log);
    const files = tlsFilesState(config);
    const wait = new ServiceWait(door, log);
    const context: OpenContext = { id: this.#next++, key, config, fingerprint, files, door, wait, log, users: 0 };
    this.#byId.set(context.id, context);
    this.#byKey.set(key, context);
    const { redactedUrl: server_url, applicationId: app_id } = config;
    log.write('info', { config: path, uid, server_url, app_id }, 'configuration opened');
    return context;
  }

  release(id: number): void {
    const context = this.#byId.get(id);
    if (context === undefined || --context.users > 0) return;
    // The current one stays for the next process; one that was replaced goes with its last user.
    if (this.#byKey.get(context.key) === context) return;
    this.#byId.delete(id);
    context.wait.close();
    void context.door.close();
  }

  async close(): Promise<void> {
    for (const { wait } of this.#byId.values()) wait.close();
    await Promise.all([...this.#byId.values()].map(({ door }) => door.close()));
  }
}

type LogNotice = Extract<Notice, { readonly kind: 'log' }>;

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

/** Writes the lines of the socket thread. What fails, fails with every heartbeat and in every process: told once, then counted. */
const writeLines = (contexts: Contexts, log: Log) => {
  const logOf = ({ context }: LogNotice): Log => contexts.get(context ?? 0)?.log ?? log;
  const repeats = new Repeats<LogNotice>({
    now: () => performance.now(),
    quietMs: 60_000,
    longestMs: 3_600_000,
    most: 4096,
    mostOfFamily: 64,
    summary: (last, count, sinceMs) => {
      const since = `${count} more in ${Math.ceil(sinceMs / 1000)} s, this is the last`;
      logOf(last).write(last.level, { ...last.fields, count }, `${since}: ${last.message}`);
    },
  });
  const flushing = setInterval(() => repeats.flush(), 15_000).unref();
  return {
    write: (notice: LogNotice): void => {
      const { context, level, fields, message } = notice;
      const family = `${context} ${fields.cause ?? fields.call}`;
      const isCounted = fields.cause !== undefined || level === 'warn' || level === 'error';
      if (!isCounted || repeats.admit(`${family} ${fields.rv} ${message}`, notice, family))
        logOf(notice).write(level, fields, message);
    },
    close: (): void => {
      clearInterval(flushing);
      repeats.flush(true);
    },
  };
};

export const startHost = (options: HostOptions): Host => {
  const { port, logs, log } = options;
  const contexts = new Contexts(logs);
  const lines = writeLines(contexts, log);
  let server: number | null = null;

  const reply = (message: Reply, transfer: ArrayBuffer[] = []): void => {
    port.postMessage(message, transfer);
    if (server !== null) core.wakeFrameServer(server);
  };

  const answerOpen = async ({ id, config, peer, wait }: Extract<Question, { kind: 'open' }>): Promise<void> => {
    try {
      const context = contexts.open(config ?? options.defaultConfig, peer);
      const { spinUs, keyCheckMs, waitSeconds } = context.config;
      if (wait !== null && waitSeconds > 0)
        await context.wait.until({ ...wait, seconds: Math.min(wait.seconds, waitSeconds) });
      reply({ id, kind: 'opened', context: context.id, spinUs, keyCheckMs });
    } catch (error) {
      const known = error instanceof ConfigError ? error : null;
      const message = known?.message ?? 'the configuration cannot be opened';
      lines.write({
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
    const context = contexts.get(contextId);
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
        contexts.get(message.context)?.door.withdraw(message.caller);
        break;
      case 'listening':
        server = message.server;
        options.listening(server);
        break;
      case 'connections':
        options.counted(message.count);
        break;
      case 'release':
        contexts.release(message.context);
        break;
      case 'log':
        lines.write(message);
        break;
    }
  };

  port.on('message', (message: ToHost) => {
    if (message.kind === 'open') void answerOpen(message);
    else if (message.kind === 'call') void answerCall(message);
    else notice(message);
  });

  return {
    async close() {
      lines.close();
      port.close();
      await contexts.close();
    },
  };
};
