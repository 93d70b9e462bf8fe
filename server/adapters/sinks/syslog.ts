// Sink `syslog`: RFC 5424 messages over TLS with octet counting (RFC 5425). A message has at most 8
// KiB: receivers split a longer one, and what follows would be a message that people have written
// (a name, a rule). A longer record is several messages, each with its part.
//
// The protocol has no acknowledgement, and TCP's is one of the peer's kernel: what a collector that
// hung had not read is lost when it ends. So the last `mostKept` bytes are kept, more than the
// buffers of both kernels, and sent again on the next connection when this one broke. One that the
// peer has closed was read to its end, but for what the collector had not stored: only the last
// batch is sent again. The number, the log's name and the record's hash tell repeats, and tell a
// record of another history from the one that the collector has under its number. What a collector
// loses after it has read it, and what was not read when this service ends, no sender of this
// protocol can know.

import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { connect, type TLSSocket } from 'node:tls';
import { leafHash } from '../../base/merkle-tree.ts';
import { lookupWithin } from '../../base/name-lookup.ts';
import { callOutside } from '../../base/outside.ts';
import { toRfc3339 } from '../../base/time.ts';
import { type AuditSeverity, auditKinds } from '../../domain/audit-event.ts';
import type { LogItem, LogSink } from '../../ports/log-sink.ts';
import { readSinkTls, type SinkTls } from './tls.ts';

export interface SyslogSinkOptions extends SinkTls {
  readonly name: string;
  readonly host: string;
  readonly port: number;
}

/** Log audit, and for requests local use 0 (RFC 5424 section 6.2.1). */
const facilities = { audit: 13, requests: 16 } as const;
const severities: Readonly<Record<AuditSeverity, number>> = { critical: 2, high: 3, medium: 4, low: 5, info: 6 };
/** The look-up of the name, the connection and the handshake, in milliseconds. */
const openMs = 10_000;
/**
 * How long a collector may take for what is sent: the first moment, and then at the lowest rate. A
 * slow one gets all that is sent again; one that drips keeps the sink no longer than that.
 */
const pace = { firstMs: 10_000, bytesPerSecond: 16_384 };
const takeMs = ({ firstMs, bytesPerSecond }: typeof pace, bytes: number): number =>
  firstMs + Math.ceil(bytes / bytesPerSecond) * 1_000;
/** Longest message, in bytes: receivers should accept so many (RFC 5425, 4.3.1). */
const longestMessage = 8_192;
/** Longest value in the structured data, in characters: longer names are cut off. */
const longestName = 256;
const mostKept = 16 * 1024 * 1024;
/**
 * The number that RFC 5612 keeps for documentation: the element's name only has to be one without
 * another meaning.
 */
const elementId = 'dke@32473';

const parameter = (name: string, value: string | number): string =>
  `${name}="${String(value)
    .slice(0, longestName)
    .replaceAll(/["\\\]]/g, '\\$&')}"`;
/** Header fields are printable ASCII without blanks. */
const headerField = (text: string, longest: number): string =>
  text.replaceAll(/[^\x21-\x7e]/g, '_').slice(0, longest) || '-';

type RequestItem = LogItem & { readonly kind: 'request' };
const warning = 4;

const requestMessage = (
  { sequence, request, text }: RequestItem,
  log: string,
  host: string,
  processId: number,
): readonly string[] => {
  const severity = request.errorName === null ? severities.info : warning;
  const data = [
    parameter('sequence', sequence),
    parameter('log', log),
    parameter('endpoint', request.endpointId ?? '-'),
    parameter('requestId', request.requestId),
  ];
  const header = [
    `<${facilities.requests * 8 + severity}>1`,
    toRfc3339(request.at),
    headerField(host, 255),
    'dke',
    String(processId),
    headerField(`request.${request.operation}`, 32),
  ].join(' ');
  return inParts(header, data, text);
};

/** A part of UTF-8 text: at most `most` bytes, and only whole characters. */
const cut = (bytes: Buffer, from: number, most: number): Buffer => {
  let end = Math.min(bytes.length, from + most);
  while (end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(from, end);
};

const inParts = (header: string, data: readonly string[], text: string): readonly string[] => {
  const whole = `${header} [${elementId} ${data.join(' ')}] ${text}`;
  if (Buffer.byteLength(whole) <= longestMessage) return [whole];
  const bytes = Buffer.from(text, 'utf8');
  const headOf = (part: number, of: number): string =>
    `${header} [${elementId} ${[...data, parameter('part', `${part} of ${of}`)].join(' ')}] `;
  const room = longestMessage - Buffer.byteLength(headOf(9_999, 9_999));
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += parts.at(-1)?.length ?? 0) parts.push(cut(bytes, at, room));
  return parts.map((part, index) => `${headOf(index + 1, parts.length)}${part.toString('utf8')}`);
};

/** One message, or several when the record is long. */
export const syslogMessages = (item: LogItem, log: string, host: string, processId: number): readonly string[] => {
  if (item.kind === 'request') return requestMessage(item, log, host, processId);
  const isRecord = item.kind === 'record';
  const severity = isRecord ? severities[auditKinds[item.event.kind].severity] : severities.info;
  const data = isRecord
    ? [
        parameter('sequence', item.sequence),
        parameter('log', log),
        parameter('hash', leafHash(Buffer.from(item.text, 'utf8')).toString('hex')),
        parameter('actor', item.event.actorName),
        parameter('subject', `${item.event.subjectKind} ${item.event.subjectId}`),
        parameter('requestId', item.event.requestId),
      ]
    : [parameter('checkpoint', item.sequence), parameter('log', log)];
  const header = [
    `<${facilities.audit * 8 + severity}>1`,
    toRfc3339(isRecord ? item.event.at : item.at),
    headerField(host, 255),
    'dke',
    String(processId),
    headerField(isRecord ? item.event.kind : 'audit.checkpoint', 32),
  ].join(' ');
  return inParts(header, data, item.text);
};

/** What the peer may not have read: batches, the oldest first. */
const createKept = () => {
  const batches: Buffer[] = [];
  let size = 0;
  return {
    batches,
    size: (): number => size,
    add: (bytes: Buffer): void => {
      batches.push(bytes);
      size += bytes.length;
      while (size > mostKept && batches.length > 1) size -= batches.shift()?.length ?? 0;
    },
    /** Everything but the last one was read. */
    shorten: (): void => {
      const last = batches.at(-1);
      batches.splice(0, batches.length, ...(last === undefined ? [] : [last]));
      size = last?.length ?? 0;
    },
  };
};

export const openSyslogSink = (options: SyslogSinkOptions, allowed = pace): LogSink => {
  const { name, host, port } = options;
  const self = hostname();
  let socket: TLSSocket | undefined;
  /** A new one, that has not been sent again what was kept. */
  let opening: TLSSocket | undefined;
  const kept = createKept();
  const stopping = new AbortController();

  const frame = (items: readonly LogItem[], log: string): Buffer =>
    Buffer.concat(
      items.flatMap((item) => {
        const messages = syslogMessages(item, log, self, process.pid).map((message) => Buffer.from(message, 'utf8'));
        return messages.flatMap((message) => [Buffer.from(`${message.length} `), message]);
      }),
    );

  const open = (): Promise<TLSSocket> =>
    callOutside({ place: `${host}:${port}`, totalMs: openMs, stopping: stopping.signal }, async (signal) =>
      connectTls(signal, await readSinkTls(options)),
    );
  const connectTls = (signal: AbortSignal, files: Awaited<ReturnType<typeof readSinkTls>>): Promise<TLSSocket> =>
    new Promise((resolve, reject) => {
      const giveUp = (): void => void made.destroy(signal.reason);
      signal.addEventListener('abort', giveUp);
      const made = connect({
        host,
        port,
        // Server names are names (RFC 6066); an address is compared with the certificate all the
        // same.
        ...(isIP(host) === 0 ? { servername: host } : {}),
        minVersion: 'TLSv1.2',
        lookup: lookupWithin(openMs * 0.8),
        ...files,
      });
      made.once('secureConnect', () => {
        signal.removeEventListener('abort', giveUp);
        made.setKeepAlive(true, 30_000);
        resolve(made);
      });
      made.on('error', reject);
      made.on('close', (isBroken) => {
        if (socket === made) {
          socket = undefined;
          if (!isBroken) kept.shorten();
        }
        reject(new Error(`${host}:${port} has closed the connection`));
      });
      // A peer of this protocol says nothing; reading notices that it goes.
      made.resume();
    });

  const write = (to: TLSSocket, bytes: Buffer): Promise<void> =>
    new Promise((resolve, reject) => {
      const late = (): void => void to.destroy(new Error(`${host}:${port} does not accept data`));
      const timer = setTimeout(late, takeMs(allowed, bytes.length));
      const end = (error?: Error | null): void => {
        clearTimeout(timer);
        to.off('close', gone);
        if (error === undefined || error === null) resolve();
        else reject(error);
      };
      const gone = (): void => end(to.errored ?? new Error(`${host}:${port} has closed the connection`));
      to.once('close', gone);
      to.write(bytes, end);
    });

  /** What the peer may not have read. */
  const sendAgain = (to: TLSSocket): Promise<void> => {
    const call = { place: `${host}:${port}`, totalMs: takeMs(allowed, kept.size()), stopping: stopping.signal };
    return callOutside(call, async (signal) => {
      const giveUp = (): void => void to.destroy(signal.reason);
      signal.addEventListener('abort', giveUp);
      try {
        for (const batch of kept.batches) await write(to, batch);
      } finally {
        signal.removeEventListener('abort', giveUp);
      }
    });
  };

  return {
    name,
    type: 'syslog',
    target: `${host}:${port}`,
    wholeLogs: false,
    send: async (items, log) => {
      if (stopping.signal.aborted) throw new Error('the service is stopping');
      const bytes = frame(items, log);
      if (socket === undefined) {
        opening = await open();
        await sendAgain(opening);
        socket = opening;
      }
      await write(socket ?? (await Promise.reject(new Error(`${host}:${port} has closed the connection`))), bytes);
      kept.add(bytes);
    },
    close: async () => {
      stopping.abort();
      const open = socket;
      if (open === undefined) {
        opening?.destroy(new Error('the service is stopping'));
        return;
      }
      await new Promise<void>((resolve) => {
        open.once('close', () => resolve());
        open.end();
        open.setTimeout(1_000, () => open.destroy());
      });
    },
  };
};
