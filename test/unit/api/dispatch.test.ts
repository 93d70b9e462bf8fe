// The router passes Node's own unchanged request to data paths: over plain HTTP/1.1 and HTTP/2,
// with a front that echoes its view. The behaviour of the fronts is in test/conformance.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect as connectHttp2, createServer as createHttp2, type Http2Server } from 'node:http2';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { Hono } from 'hono';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDispatch } from '../../../server/fronts/shared/dispatch.ts';
import { answerInPieces } from '../../../server/fronts/shared/outbox.ts';

const others = new Hono();
others.get('/page', (c) => c.text(`page of ${c.req.path}`));
/** More than the system keeps for a connection. */
const long = Buffer.alloc(32 * 1024 * 1024, 'long ');
others.get('/long', () => answerInPieces(long, { headers: { 'content-type': 'text/plain' } }));
others.post('/page', async (c) => c.text(`read ${(await c.req.text()).length}`));

/** Reads the body, then answers with the target, the Host and the body's length. */
const tell = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
  let size = 0;
  incoming.on('data', (part: Buffer) => {
    size += part.length;
  });
  incoming.on('end', () => {
    outgoing.writeHead(200, { 'Content-Type': 'text/plain' });
    outgoing.end(`raw ${incoming.method} ${incoming.url} ${incoming.headers.host ?? ''} ${size}`);
  });
};
const handle = createDispatch(others, [
  { route: '/raw/*', owns: (target) => target?.startsWith('/raw/') === true, handle: tell },
]);

let http1: Server;
let http2: Http2Server;
beforeAll(async () => {
  http1 = createServer(handle).listen(0, '127.0.0.1');
  http2 = createHttp2((incoming, outgoing) =>
    handle(incoming as unknown as IncomingMessage, outgoing as unknown as ServerResponse),
  ).listen(0, '127.0.0.1');
  await Promise.all([once(http1, 'listening'), once(http2, 'listening')]);
});
afterAll(() => {
  http1.close();
  http2.close();
});

/** One raw request, one answer: its status and body. */
const converse = async (request: string): Promise<string> => {
  const socket = connect((http1.address() as AddressInfo).port, '127.0.0.1');
  socket.end(request, 'latin1');
  let answer = '';
  for await (const part of socket) answer += String(part);
  return `${answer.split(' ', 2)[1]} ${answer.slice(answer.indexOf('\r\n\r\n') + 4)}`;
};
const ask = (target: string, host = 'a.example', method = 'GET'): Promise<string> =>
  converse(`${method} ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);

test.each([
  '/raw/plain',
  '/raw/../page',
  '/raw/%2e%2e/page',
  '/raw//twice',
  '/raw/a%2Fb%zz?query=1#part',
  '/raw/back\\slash',
  '/raw/[]{}|^`',
])('%s reaches its front as it came', async (target) => {
  expect(await ask(target)).toContain(`raw GET ${target} a.example 0`);
});

test.each(['a b', 'exa mple:x', '[::1', 'a.example:99999', '%%%', 'a@b'])(
  'a Host that is not a host name, %s, is the front’s business',
  async (host) => {
    expect(await ask('/raw/x', host, 'POST')).toContain(`raw POST /raw/x ${host} 0`);
    expect(await ask('/page', host)).toMatch(/^400 /);
  },
);

test('what only reads like a data path is none', async () => {
  expect(await ask('/page/../raw/x')).toMatch(/^404 /);
  expect(await ask('/%72aw/x')).toMatch(/^404 /);
  expect(await ask('/raw')).toMatch(/^404 /);
  expect(await ask('/Raw/x')).toMatch(/^404 /);
});

test('everything else is passed on', async () => {
  expect(await ask('/page')).toBe('200 page of /page');
  expect(await ask('/x/../page')).toBe('200 page of /page');
  expect(await ask('/page', 'a.example', 'POST')).toBe('200 read 0');
});

test('any method reaches the front, and HEAD gets no body', async () => {
  expect(await ask('/raw/x', 'a.example', 'DELETE')).toContain('raw DELETE /raw/x');
  expect(await ask('/raw/x', 'a.example', 'PROPFIND')).toContain('raw PROPFIND /raw/x');
  expect(await ask('/raw/x', 'a.example', 'HEAD')).toBe('200 ');
});

test('of a long answer, the service keeps no more than a few pieces for a peer that does not read', async () => {
  const accepted = once(http1, 'connection') as Promise<[Socket]>;
  const socket = connect((http1.address() as AddressInfo).port, '127.0.0.1');
  const [{ 0: ours }] = await Promise.all([accepted, once(socket, 'connect')]);
  socket.write('GET /long HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n');
  const parts: Buffer[] = [];
  parts.push(((await once(socket, 'data')) as [Buffer])[0]);
  socket.pause();
  // The service writes more pieces as long as the system takes bytes for the peer.
  for (let written = -1; written !== ours.bytesWritten && written < long.length; ) {
    written = ours.bytesWritten;
    expect(await ask('/page')).toBe('200 page of /page');
    expect(ours.writableLength).toBeLessThan(256 * 1024);
  }
  for await (const part of socket) parts.push(part as Buffer);
  const answer = Buffer.concat(parts);
  const body = answer.indexOf('\r\n\r\n') + 4;
  expect(answer.subarray(0, body).toString()).toContain(`content-length: ${long.length}\r\n`);
  expect(answer.subarray(body).equals(long)).toBe(true);
  expect(await ask('/long', 'a.example', 'HEAD')).toBe('200 ');
});

test('a long answer over HTTP/2 is complete', async () => {
  const session = connectHttp2(`http://127.0.0.1:${(http2.address() as AddressInfo).port}`);
  try {
    const stream = session.request({ ':path': '/long' });
    const parts: Buffer[] = [];
    for await (const part of stream) parts.push(part as Buffer);
    expect(Buffer.concat(parts).equals(long)).toBe(true);
  } finally {
    session.close();
  }
});

test('a body over HTTP/2 that comes after the handler has returned is read to its end', async () => {
  const session = connectHttp2(`http://127.0.0.1:${(http2.address() as AddressInfo).port}`);
  try {
    const stream = session.request({ ':method': 'POST', ':path': '/raw/./late' });
    stream.write('a'.repeat(1000));
    // Turns of both event loops go by: this one has answered a second request in the meantime.
    for (let turn = 0; turn < 5; turn++) {
      const other = session.request({ ':path': '/page' });
      other.resume();
      await once(other, 'end');
    }
    stream.end('b'.repeat(1000));
    let answer = '';
    for await (const part of stream) answer += String(part);
    expect(answer).toMatch(/^raw POST \/raw\/\.\/late .*2000$/);
  } finally {
    session.close();
  }
});
