// What the listener itself refuses, before any front sees a request: what Node's parser accepts and the proxy's specification
// does not (two Host headers, absolute-form targets, Transfer-Encoding lists), and what the parser refuses.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

const hostName = 'host';
const authorityName = ':authority';
const codingName = 'transfer-encoding';

const isNamed = (name: string, wanted: string): boolean =>
  name.length === wanted.length && name.toLowerCase() === wanted;

/** Why a request is refused before any front sees it, or undefined. */
export const objectionTo = (incoming: IncomingMessage): string | undefined => {
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
  if (hosts !== 1) return 'a request has one Host header';
  return codings > 1 ? 'the only transfer coding is chunked' : undefined;
};

/** Refusals of the listener speak both dialects: `errorName` for the cloud key service, `code` for everybody. */
const refusalBody = (status: number, message: string): string =>
  JSON.stringify({
    errorName: 'ValidationException',
    errorMessage: message,
    type: 'about:blank',
    title: message,
    status,
    code: status === 413 ? 'payload-too-large' : 'validation',
  });

export const refuse = (incoming: IncomingMessage, outgoing: ServerResponse, message: string): void => {
  const body = refusalBody(400, message);
  if (incoming.httpVersionMajor === 1) outgoing.setHeader('Connection', 'close');
  outgoing.writeHead(400, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }).end(body);
};

const parserRefusals: Readonly<Record<string, readonly [number, string, string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'Request Header Fields Too Large', 'the headers are longer than 8 KiB'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'Request Timeout', 'the request did not arrive in time'],
};

/** What Node's parser refuses never becomes a request: the answer is written by hand. */
export const answerParserError = (error: NodeJS.ErrnoException, socket: Duplex): void => {
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
