// What the listener itself refuses, before any front sees a request: what Node's parser accepts and
// the proxy's specification does not (two Host headers, absolute-form targets, Transfer-Encoding
// lists), and what the parser refuses.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { newId } from '../../base/ids.ts';

const hostName = 'host';
const authorityName = ':authority';
const codingName = 'transfer-encoding';

const isNamed = (name: string, wanted: string): boolean =>
  name.length === wanted.length && name.toLowerCase() === wanted;

/**
 * Why a request is refused before any front sees it, or undefined. `fewestHosts`: 0 where a request
 * without a Host header is one.
 */
export const objectionTo = (incoming: IncomingMessage, fewestHosts = 1): string | undefined => {
  const { rawHeaders, url } = incoming;
  if (url === undefined || !url.startsWith('/')) return 'the request target is a path';
  let hosts = 0;
  let codings = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    if (isNamed(name, hostName) || name === authorityName) hosts += 1;
    else if (isNamed(name, codingName)) {
      codings += 1;
      if ((rawHeaders[index + 1] ?? '').toLowerCase() !== 'chunked') return 'the only transfer coding is chunked';
    }
  }
  if (hosts > 1 || hosts < fewestHosts) return 'a request has one Host header';
  return codings > 1 ? 'the only transfer coding is chunked' : undefined;
};

/**
 * Balancers check the health in HTTP/1.0, which has no Host header unless they are told to send
 * one.
 */
const isBalancerProbe = ({ httpVersionMinor, method, url, headers }: IncomingMessage): boolean => {
  if (httpVersionMinor !== 0 || method !== 'GET' || (url !== '/health' && url !== '/health/live')) return false;
  // What builds an address of it needs a name.
  headers.host ??= 'localhost';
  return true;
};

/**
 * Why a request that came as HTTP/1 is refused, or undefined: Node's parser also takes 0.9 and 2.0
 * there, and transfer codings in 1.0 (RFC 9112, 6.1).
 */
export const objectionToHttp1 = (incoming: IncomingMessage): string | undefined => {
  if (incoming.httpVersionMajor !== 1) return 'the request is not HTTP/1.1';
  if (incoming.httpVersionMinor === 0 && incoming.headers[codingName] !== undefined)
    return 'HTTP/1.0 has no transfer codings';
  return objectionTo(incoming, isBalancerProbe(incoming) ? 0 : 1);
};

/**
 * Whether the header fields of an HTTP/2 request are more than the listener said it takes (RFC
 * 9113, 6.5.2): Node does not count them.
 */
export const headersExceed = ({ rawHeaders }: IncomingMessage, most: number): boolean => {
  let size = (rawHeaders.length / 2) * 32;
  for (const text of rawHeaders) size += text.length;
  return size > most;
};

/** The front whose form a refusal has; undefined: nothing tells which front was asked. */
type Form = 'xks' | 'problem' | undefined;
/** `target`: as it came. A path that no front owns is answered in the form of the APIs. */
const formOf = (target: string): Form =>
  target.startsWith('/xks/') ? 'xks' : target.startsWith('/') ? 'problem' : undefined;

interface Refusal {
  readonly message: string;
  readonly status: number;
  readonly hint?: string;
}

/**
 * `errorName` for the cloud key service, a problem document (RFC 9457) for all others, and the
 * members of both where nothing tells which of them asks.
 */
const refusalOf = (form: Form, { status, message, hint }: Refusal) => {
  const id = newId(Date.now());
  const code = status === 413 ? 'payload-too-large' : 'validation';
  const body = JSON.stringify({
    ...(form === 'problem' ? {} : { errorName: 'ValidationException', errorMessage: message }),
    ...(form === 'xks'
      ? {}
      : {
          ...{ type: `urn:dke:problem:${code}`, title: message, status, detail: message },
          ...{ code, requestId: id, hint },
        }),
  });
  const headers = {
    'Content-Type': form === 'problem' ? 'application/problem+json' : 'application/json',
    'Content-Length': Buffer.byteLength(body),
    ...(form === 'xks' ? {} : { 'X-Request-Id': id }),
  };
  return { body, headers };
};

export const refuse = (incoming: IncomingMessage, outgoing: ServerResponse, message: string, status = 400): void => {
  const { body, headers } = refusalOf(formOf(incoming.url ?? ''), { status, message });
  if (incoming.httpVersionMajor !== 2) outgoing.setHeader('Connection', 'close');
  outgoing.writeHead(status, headers).end(body);
};

interface ParserRefusal extends Refusal {
  readonly reason: string;
}

/** For what has no response object: the answer is written by hand, and the connection ends. */
export const refuseByHand = (
  socket: Duplex,
  message: string,
  { status, reason, hint }: Omit<ParserRefusal, 'message'> = { status: 400, reason: 'Bad Request' },
  form?: Form,
): void => {
  const { body, headers } = refusalOf(form, { status, message, ...(hint === undefined ? {} : { hint }) });
  const lines = Object.entries({ ...headers, Connection: 'close' }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${reason}\r\n${lines.join('')}\r\n${body}`);
};

const parserRefusals: Readonly<Record<string, ParserRefusal>> = {
  HPE_CHUNK_EXTENSIONS_OVERFLOW: {
    message: 'the chunk extensions are longer than 16 KiB',
    status: 413,
    reason: 'Content Too Large',
  },
  HPE_HEADER_OVERFLOW: {
    message: 'the headers are longer than 8 KiB',
    status: 431,
    reason: 'Request Header Fields Too Large',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    message: 'the request did not arrive in time',
    status: 408,
    reason: 'Request Timeout',
    hint: 'check the connection, and repeat the request: a file needs at least 128 kbit/s',
  },
};

/**
 * The form for what the parser was reading: known where the piece that it refused begins with the
 * request and has no other one.
 */
const formOfPiece = (piece: Buffer | undefined): Form => {
  const lines = piece?.toString('latin1').match(/^[A-Z]+ \S+(?: HTTP\/1\.[01]\r?$)?/gm) ?? [];
  const [line = ''] = lines;
  return lines.length === 1 && piece?.indexOf(line, 0, 'latin1') === 0 ? formOf(line.split(' ')[1] ?? '') : undefined;
};

/**
 * What Node's parser refuses never becomes a request. `target`: of the request whose body was being
 * read; absent where none was.
 */
export const answerParserError = (
  error: NodeJS.ErrnoException & { readonly rawPacket?: Buffer },
  socket: Duplex,
  target?: string,
): void => {
  const known = parserRefusals[error.code ?? ''];
  const form = target === undefined ? formOfPiece(error.rawPacket) : formOf(target);
  if (known === undefined) refuseByHand(socket, 'the request is not HTTP/1.1', undefined, form);
  else refuseByHand(socket, known.message, known, form);
};
