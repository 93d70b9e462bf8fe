// Bodies that end in the middle while more data have arrived already: refused, and the process
// continues.
import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import { connect, createServer as createServer2, type Http2ServerRequest } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { admitCaller } from '../../../server/fronts/shared/admission.ts';
import { leaveUnread, piecesOf, readBody } from '../../../server/fronts/shared/read-body.ts';

/**
 * The answer of a service that calls `read` when all buffered data of a body have arrived. The body
 * arrives in pieces, without a length.
 */
const answerTo = async (body: Buffer, read: (incoming: IncomingMessage) => Promise<string>) => {
  const server = createServer(async (incoming, outgoing) => {
    while (!incoming.complete && incoming.readableLength < incoming.readableHighWaterMark) await setImmediate();
    const text = await read(incoming);
    const headers = new Headers();
    leaveUnread(incoming, headers);
    outgoing.writeHead(200, [...headers]).end(text);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const sent = request({
      port: (server.address() as AddressInfo).port,
      method: 'POST',
      headers: { 'transfer-encoding': 'chunked' },
    });
    sent.on('error', () => undefined);
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
    for (let at = 0; at < body.length; at += 8_192) sent.write(body.subarray(at, at + 8_192));
    sent.end();
    const [answer] = await answered;
    const parts: Buffer[] = [];
    for await (const part of answer) parts.push(part as Buffer);
    return { text: Buffer.concat(parts).toString(), connection: answer.headers.connection };
  } finally {
    server.closeAllConnections();
    server.close();
  }
};

const admitted = admitCaller({ id: 'caller' });
const megabyte = Buffer.alloc(1 << 20, 0x61);

test('one that is over the limit is refused at the first piece too many, and the connection ends', async () => {
  const refused = (incoming: IncomingMessage) =>
    readBody(incoming, 20_000, admitted).then(
      () => 'taken',
      (error: { code: string }) => error.code,
    );
  expect(await answerTo(megabyte, refused)).toEqual({ text: 'payload-too-large', connection: 'close' });
});

test('one that is taken piece by piece may be left', async () => {
  const first = async (incoming: IncomingMessage) => {
    for await (const piece of piecesOf(incoming, admitted))
      return String(piece.length > 0 && piece.length < megabyte.length);
    return 'none';
  };
  expect(await answerTo(megabyte, first)).toEqual({ text: 'true', connection: 'close' });
});

test('a body within the limit is read completely, in one piece or in many', async () => {
  for (const body of [Buffer.alloc(0), Buffer.from('a'), megabyte]) {
    const length = (incoming: IncomingMessage) => readBody(incoming, megabyte.length, admitted).then(String);
    const { text, connection } = await answerTo(body, length);
    expect(text).toBe(body.toString());
    expect(connection).toBe('keep-alive');
  }
});

test('pieces are wiped when they have been copied, and when they are refused', async () => {
  const wiped: number[] = [];
  const wipe = (bytes: Uint8Array): void => {
    wiped.push(bytes.length);
    bytes.fill(0);
  };
  await answerTo(megabyte, (incoming) =>
    readBody(incoming, megabyte.length, admitted, wipe).then((whole) => `${whole.length}`),
  );
  expect(wiped.reduce((sum, length) => sum + length, 0)).toBe(megabyte.length);
  wiped.length = 0;
  await answerTo(megabyte, (incoming) => readBody(incoming, 100_000, admitted, wipe).then(String, String));
  expect(wiped.reduce((sum, length) => sum + length, 0)).toBeGreaterThan(100_000);
});

/** The result for a body whose sender disconnects before or while it is read. */
interface Gone {
  readonly when: 'before' | 'while';
  /** Whether all of it had been sent. */
  readonly whole: boolean;
}

const gone: readonly Gone[] = [
  { when: 'before', whole: false },
  { when: 'before', whole: true },
  { when: 'while', whole: false },
  { when: 'while', whole: true },
];

const read = (incoming: IncomingMessage): Promise<string> =>
  readBody(incoming, megabyte.length, admitted).then(String, ({ code, message }) => `${code}: ${message}`);

/**
 * Reads after the sender has disconnected or, for 'while', disconnects it after the start of the
 * read and before its first data.
 */
const readWhenGone = async (incoming: IncomingMessage, { when }: Gone, leave: () => void): Promise<string> => {
  const closed = once(incoming, 'close').catch(() => undefined);
  if (when === 'while') {
    const text = read(incoming);
    incoming.pause();
    leave();
    return text;
  }
  leave();
  await closed;
  return read(incoming);
};

test.each(gone)('HTTP/1.1: a body whose sender went $when it was read, all sent: $whole, ended early', async (gone) => {
  const result = Promise.withResolvers<string>();
  const server = createServer((incoming) => {
    result.resolve(readWhenGone(incoming, gone, () => sent.destroy()));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const sent = request({
    port: (server.address() as AddressInfo).port,
    method: 'POST',
    headers: { 'content-length': 100 },
  });
  sent.on('error', () => undefined);
  sent.write(Buffer.alloc(gone.whole ? 100 : 50, 0x61));
  try {
    expect(await result.promise).toBe('validation: the body ended early');
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test.each(gone)('HTTP/2: a body whose sender went $when it was read, all sent: $whole, ended early', async (gone) => {
  const result = Promise.withResolvers<string>();
  const server = createServer2((incoming: Http2ServerRequest) => {
    result.resolve(readWhenGone(incoming as unknown as IncomingMessage, gone, () => sent.close(8)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const sent = session.request({ ':method': 'POST', ':path': '/' });
  sent.on('error', () => undefined);
  sent.write(Buffer.alloc(50, 0x61));
  if (gone.whole) sent.end();
  try {
    expect(await result.promise).toBe('validation: the body ended early');
  } finally {
    session.destroy();
    server.close();
  }
});
