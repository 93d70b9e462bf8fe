// Bytes over TLS, as no HTTP client would send them, and what a server answers to them: the answers
// in turn, and whether the connection stays open. A final request checks that, never a wait.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type TLSSocket } from 'node:tls';

export interface RawAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}
export interface Conversation {
  readonly answers: readonly RawAnswer[];
  readonly closed: boolean;
}
export interface TlsPlace {
  readonly port: number;
  readonly caFile: string;
}

export const connectRaw = async (server: TlsPlace, alpn: string | undefined): Promise<TLSSocket> => {
  const socket = connect({
    port: server.port,
    host: '127.0.0.1',
    ca: readFileSync(server.caFile),
    ...(alpn === undefined ? {} : { ALPNProtocols: [alpn] }),
  });
  await once(socket, 'secureConnect');
  socket.setNoDelay(true);
  // A server that refuses early resets while we are still sending.
  socket.on('error', () => undefined);
  return socket;
};

const lastQuestion = 'GET /health HTTP/1.1\r\nHost: still-there\r\n\r\n';
const lastAnswer = '{"status":"healthy"}';

interface Parsed {
  readonly answer: RawAnswer;
  readonly rest: Buffer;
}
/** Null while the answer is incomplete. */
const parseAnswer = (bytes: Buffer, bodiless: boolean): Parsed | null => {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const [line = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1] ?? Number.NaN);
  if (Number.isNaN(status)) throw new Error(`this is not an answer: ${line}`);
  const headers = new Map(
    lines.map((text): [string, string] => {
      const colon = text.indexOf(':');
      return [text.slice(0, colon).toLowerCase(), text.slice(colon + 1).trim()];
    }),
  );
  const rest = bytes.subarray(end + 4);
  if (status < 200 || status === 204 || bodiless) return { answer: { status, headers, body: '' }, rest };
  if (headers.get('transfer-encoding') === 'chunked') {
    let body = '';
    for (let at = 0; ; ) {
      const newline = rest.indexOf('\r\n', at);
      if (newline < 0) return null;
      const size = Number.parseInt(rest.toString('latin1', at, newline), 16);
      if (rest.length < newline + size + 4) return null;
      body += rest.toString('utf8', newline + 2, newline + 2 + size);
      at = newline + size + 4;
      if (size === 0) return { answer: { status, headers, body }, rest: rest.subarray(at) };
    }
  }
  const length = Number(headers.get('content-length') ?? Number.NaN);
  if (Number.isNaN(length)) throw new Error(`an answer has no length: ${line}`);
  if (rest.length < length) return null;
  return { answer: { status, headers, body: rest.toString('utf8', 0, length) }, rest: rest.subarray(length) };
};

export interface ConverseOptions {
  /**
   * Asks a last question, so that a connection that stays open shows it; otherwise the server is
   * expected to close.
   */
  readonly stays: boolean;
  /** Ends our side after the last piece. */
  readonly end?: boolean;
  /** Answers have no bodies (HEAD). */
  readonly bodiless?: boolean;
}

/** Sends the pieces one after the other, each in a write of its own. */
export const converse = async (
  server: TlsPlace,
  pieces: readonly (string | Buffer)[],
  { stays, end = false, bodiless = false }: ConverseOptions,
): Promise<Conversation> => {
  const socket = await connectRaw(server, 'http/1.1');
  const answers: RawAnswer[] = [];
  let bytes: Buffer = Buffer.alloc(0);
  const over = new Promise<boolean>((resolve, reject) => {
    socket.on('data', (part: Buffer) => {
      bytes = Buffer.concat([bytes, part]);
      try {
        for (;;) {
          const isLast = bytes.includes(lastAnswer);
          const parsed = parseAnswer(bytes, bodiless && !isLast);
          if (parsed === null) return;
          bytes = parsed.rest;
          if (stays && parsed.answer.body === lastAnswer) {
            resolve(false);
            return;
          }
          answers.push(parsed.answer);
        }
      } catch (error) {
        reject(error);
      }
    });
    socket.on('close', () => resolve(true));
  });
  const send = (piece: string | Buffer): Promise<void> =>
    new Promise((resolve) => {
      socket.write(piece, () => resolve());
    });
  for (const piece of stays ? [...pieces, lastQuestion] : pieces) if (!socket.destroyed) await send(piece);
  if (end) socket.end();
  try {
    return { answers, closed: await over };
  } finally {
    socket.destroy();
  }
};
