// The main thread's half: the answers to the socket thread's questions, and its lines in the logs.

import type { MessagePort } from 'node:worker_threads';
import { core } from '../../../addon/core.ts';
import { createFairQueue } from '../../../server/base/fair-queue.ts';
import { Repeats } from '../../../server/base/repeats.ts';
import { ServiceCallError } from '../service/service-door.ts';
import { ConfigError } from '../settings/config.ts';
import { limits } from '../settings/limits.ts';
import type { Log, Logs } from '../settings/log.ts';
import type { LogNotice, Notice, Question, Reply, ToHost } from './bridge.ts';
import { Contexts } from './contexts.ts';

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

/**
 * Writes the lines of the socket thread. What fails, fails with every heartbeat and in every
 * process: told once, then counted.
 */
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
  let server: number | null = null;

  const reply = (message: Reply, transfer: ArrayBuffer[] = []): void => {
    port.postMessage(message, transfer);
    if (server !== null) core.wakeFrameServer(server);
  };
  const contexts = new Contexts(logs, (uid, bytes) => reply({ id: 0, kind: 'held', uid, bytes }));
  const lines = writeLines(contexts, log);

  const opening = createFairQueue({
    running: Number.POSITIVE_INFINITY,
    runningEach: limits.openingAtOnce.most,
    waiting: Number.POSITIVE_INFINITY,
  });

  const answerOpen = async ({ id, config, peer, wait }: Extract<Question, { kind: 'open' }>): Promise<void> => {
    try {
      const open = () => contexts.open(config ?? options.defaultConfig, peer, config === null);
      const context = await opening.run(open, String(peer.uid));
      const { spinUs, keyCheckMs, waitSeconds, logLevel } = context.config;
      if (wait !== null && waitSeconds > 0)
        await context.wait.until({ ...wait, seconds: Math.min(wait.seconds, waitSeconds) });
      reply({ id, kind: 'opened', context: context.id, spinUs, keyCheckMs, isTraced: logLevel === 'debug' });
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
      reply({ id, kind: 'refused', told: known?.told ?? null, message });
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
      const { answer, raw, epoch } = await context.call(request, caller);
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
        contexts.get(message.context)?.withdraw(message.caller);
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
