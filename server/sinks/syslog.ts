// Sink `syslog`: RFC 5424 messages over TLS with octet counting (RFC 5425). The protocol has no acknowledgement: when a
// connection has broken, the batch before is sent again on the next one, so that what the peer had not read is not lost; the
// number and the log's name in the structured data tell repeats.

import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { connect, type TLSSocket } from 'node:tls';
import { toRfc3339 } from '../base/clock.ts';
import { lookupWithin } from '../base/name-lookup.ts';
import { callOutside } from '../base/outside.ts';
import { type AuditSeverity, auditKinds } from '../domain/audit-event.ts';
import type { LogItem, LogSink } from '../ports/log-sink.ts';
import type { SinkTls } from './tls.ts';

export interface SyslogSinkOptions extends SinkTls {
  readonly name: string;
  readonly host: string;
  readonly port: number;
}

/** Log audit, and for requests local use 0 (RFC 5424 section 6.2.1). */
const facilities = { audit: 13, requests: 16 } as const;
const severities: Readonly<Record<AuditSeverity, number>> = { critical: 2, high: 3, medium: 4, low: 5, info: 6 };
const timeoutMs = 10_000;
/** The number that RFC 5612 keeps for documentation: the element's name only has to be one without another meaning. */
const elementId = 'dke@32473';

const parameter = (name: string, value: string | number): string =>
  `${name}="${String(value).replaceAll(/["\\\]]/g, '\\$&')}"`;
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
): string => {
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
  return `${header} [${elementId} ${data.join(' ')}] ${text}`;
};

export const syslogMessage = (item: LogItem, log: string, host: string, processId: number): string => {
  if (item.kind === 'request') return requestMessage(item, log, host, processId);
  const isRecord = item.kind === 'record';
  const severity = isRecord ? severities[auditKinds[item.event.kind].severity] : severities.info;
  const data = isRecord
    ? [
        parameter('sequence', item.sequence),
        parameter('log', log),
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
  return `${header} [${elementId} ${data.join(' ')}] ${item.text}`;
};

export const openSyslogSink = ({ name, host, port, ca, certificate, key }: SyslogSinkOptions): LogSink => {
  const self = hostname();
  let socket: TLSSocket | undefined;
  let before: Buffer | undefined;
  let closed = false;

  const frame = (items: readonly LogItem[], log: string): Buffer =>
    Buffer.concat(
      items.flatMap((item) => {
        const message = Buffer.from(syslogMessage(item, log, self, process.pid), 'utf8');
        return [Buffer.from(`${message.length} `), message];
      }),
    );

  const open = (): Promise<TLSSocket> => callOutside({ place: `${host}:${port}`, totalMs: timeoutMs }, connectTls);
  const connectTls = (signal: AbortSignal): Promise<TLSSocket> =>
    new Promise((resolve, reject) => {
      const giveUp = (): void => void made.destroy(signal.reason);
      signal.addEventListener('abort', giveUp);
      // Read at every connection: certificates are renewed.
      const files = {
        ...(ca === undefined ? {} : { ca: readFileSync(ca) }),
        ...(certificate === undefined ? {} : { cert: readFileSync(certificate) }),
        ...(key === undefined ? {} : { key: readFileSync(key) }),
      };
      const made = connect({
        host,
        port,
        // Server names are names (RFC 6066); an address is compared with the certificate all the same.
        ...(isIP(host) === 0 ? { servername: host } : {}),
        minVersion: 'TLSv1.2',
        lookup: lookupWithin(timeoutMs * 0.8),
        ...files,
      });
      made.once('secureConnect', () => {
        signal.removeEventListener('abort', giveUp);
        made.setKeepAlive(true, 30_000);
        resolve(made);
      });
      made.on('error', reject);
      made.on('close', () => {
        if (socket === made) socket = undefined;
        reject(new Error(`${host}:${port} has closed the connection`));
      });
      // A peer of this protocol says nothing; reading notices that it goes.
      made.resume();
    });

  const write = (to: TLSSocket, bytes: Buffer): Promise<void> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => to.destroy(new Error(`${host}:${port} does not accept data`)), timeoutMs);
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

  return {
    name,
    type: 'syslog',
    target: `${host}:${port}`,
    wholeLogs: false,
    send: async (items, log) => {
      if (closed) throw new Error('the service is stopping');
      const bytes = frame(items, log);
      if (socket === undefined) {
        const made = await open();
        if (closed) {
          made.destroy();
          throw new Error('the service is stopping');
        }
        socket = made;
        if (before !== undefined) await write(made, before);
      }
      await write(socket ?? (await Promise.reject(new Error(`${host}:${port} has closed the connection`))), bytes);
      before = bytes;
    },
    close: async () => {
      closed = true;
      const open = socket;
      if (open === undefined) return;
      await new Promise<void>((resolve) => {
        open.once('close', () => resolve());
        open.end();
        open.setTimeout(1_000, () => open.destroy());
      });
    },
  };
};
