// A request whose head has arrived, and whose body comes later. `Expect: 100-continue` tells when the server has the head.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { OutgoingHttpHeaders } from 'node:http';
import { connect } from 'node:http2';
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

/** None is empty: a body may be shorter than eight bytes, and what is written after its last byte may never be reported as written. */
const piecesOf = (body: Buffer): readonly Buffer[] =>
  [...Array.from({ length: 8 }, (_, at) => body.subarray(at, at + 1)), body.subarray(8)].filter(
    ({ length }) => length > 0,
  );

/** Writes the whole body; the last piece is not awaited, because the server may answer and close as soon as it has it. */
const writePieces = async (to: Writable, body: Buffer): Promise<void> => {
  const pieces = piecesOf(body);
  for (const piece of pieces.slice(0, -1))
    await new Promise<void>((resolve, reject) => {
      to.write(piece, (error) => (error == null ? resolve() : reject(error)));
    });
  to.end(pieces.at(-1));
};

const overHttp1 = async ({ server, path, headers, body }: Place): Promise<HalfRequest> => {
  const sent = request({
    ...{ host: '127.0.0.1', port: server.port, method: 'POST', path, agent: false },
    ca: readFileSync(server.caFile),
    headers: { ...headers, 'content-length': body.length, expect: '100-continue' },
  });
  const answered = once(sent, 'response');
  answered.catch(() => undefined);
  sent.flushHeaders();
  await once(sent, 'continue');
  return {
    finish: async () => {
      await writePieces(sent, body);
      const [answer] = await answered;
      answer.resume();
      return answer.statusCode;
    },
    close: () => sent.destroy(),
  };
};

const overHttp2 = async ({ server, path, headers, body }: Place): Promise<HalfRequest> => {
  const { host, ...others } = headers;
  const session = connect(`https://127.0.0.1:${server.port}`, { ca: readFileSync(server.caFile) });
  const stream = session.request({
    ...{ ':method': 'POST', ':path': path, ':authority': String(host ?? `127.0.0.1:${server.port}`) },
    ...others,
    ...{ 'content-length': body.length, expect: '100-continue' },
  });
  const answered = once(stream, 'response');
  answered.catch(() => undefined);
  await once(stream, 'continue');
  return {
    finish: async () => {
      await writePieces(stream, body);
      const [answer] = await answered;
      stream.resume();
      return Number(answer[':status']);
    },
    close: () => session.destroy(),
  };
};

export const openHalfRequest = (version: HttpVersion, place: Place): Promise<HalfRequest> =>
  version === 'HTTP/1.1' ? overHttp1(place) : overHttp2(place);
