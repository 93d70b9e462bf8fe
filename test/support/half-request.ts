// A request whose head has arrived and whose body follows later. `Expect: 100-continue` shows when
// the server has the head.
import { readFileSync } from 'node:fs';
import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { type ClientHttp2Stream, connect, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from 'node:http2';
import { request } from 'node:https';
import type { Writable } from 'node:stream';

export type HttpVersion = 'HTTP/1.1' | 'HTTP/2';

export interface HalfRequest {
  /** Sends the body a byte at a time; answers the status. */
  finish(): Promise<number>;
  close(): void;
}

interface Place {
  readonly server: { readonly port: number; readonly caFile: string };
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer;
}

/**
 * Splits a body into single bytes and the rest. No piece is empty: Node never calls back for an
 * empty write after the answer.
 */
const piecesOf = (body: Buffer): readonly Buffer[] => {
  const single = Math.min(8, body.length);
  const pieces = Array.from({ length: single }, (_, at) => body.subarray(at, at + 1));
  return body.length > single ? [...pieces, body.subarray(single)] : pieces;
};

/** The next event of this name. Rejects, naming it, when the request fails or closes first. */
const next = <T>(request: Writable, event: 'continue' | 'response', what: string): Promise<T> =>
  new Promise((resolve, reject) => {
    request.once(event, resolve);
    request.on('error', (cause) => reject(new Error(`${what} did not come: the request failed`, { cause })));
    request.once('close', () => reject(new Error(`${what} did not come: the connection closed first`)));
  });

const halfRequest = async <T>(
  request: ClientRequest | ClientHttp2Stream,
  body: Buffer,
  statusOf: (answer: T) => number,
  close: () => void,
): Promise<HalfRequest> => {
  const answered = next<T>(request, 'response', 'the answer');
  answered.catch(() => undefined);
  await Promise.race([
    next(request, 'continue', '100 Continue'),
    answered.then((answer) => {
      throw new Error(`the server answered ${statusOf(answer)} before the body`);
    }),
  ]);
  return {
    finish: async () => {
      for (const piece of piecesOf(body))
        await Promise.race([new Promise<void>((resolve) => request.write(piece, () => resolve())), answered]);
      request.end();
      return statusOf(await answered);
    },
    close,
  };
};

const overHttp1 = ({ server, path, headers, body }: Place): Promise<HalfRequest> => {
  const sent = request({
    ...{ host: '127.0.0.1', port: server.port, method: 'POST', path, agent: false },
    ca: readFileSync(server.caFile),
    headers: { ...headers, 'content-length': body.length, expect: '100-continue' },
  });
  sent.flushHeaders();
  const statusOf = (answer: IncomingMessage): number => {
    answer.resume();
    return answer.statusCode ?? 0;
  };
  return halfRequest(sent, body, statusOf, () => sent.destroy());
};

const overHttp2 = ({ server, path, headers, body }: Place): Promise<HalfRequest> => {
  const { host, ...others } = headers;
  const session = connect(`https://127.0.0.1:${server.port}`, { ca: readFileSync(server.caFile) });
  const stream = session.request({
    ...{ ':method': 'POST', ':path': path, ':authority': String(host ?? `127.0.0.1:${server.port}`) },
    ...others,
    ...{ 'content-length': body.length, expect: '100-continue' },
  });
  session.on('error', (error) => stream.destroy(error));
  const statusOf = (answer: IncomingHttpHeaders & IncomingHttpStatusHeader): number => {
    stream.resume();
    return answer[':status'] ?? 0;
  };
  return halfRequest(stream, body, statusOf, () => session.destroy());
};

export const openHalfRequest = (version: HttpVersion, place: Place): Promise<HalfRequest> =>
  version === 'HTTP/1.1' ? overHttp1(place) : overHttp2(place);
