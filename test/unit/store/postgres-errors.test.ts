// The classification of errors of PostgreSQL, of its client and of the kernel. None that a lost,
// stalled or stopped database causes may pass for a fault of the service.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, expect, test } from 'vitest';
import {
  asConnectionError,
  kindOf,
  leavesCommitOpen,
} from '../../../server/adapters/store/engine/postgres/error-kinds.ts';
import { OrderlyClient } from '../../../server/adapters/store/engine/postgres/orderly-client.ts';
import { StoreError } from '../../../server/adapters/store/engine/store-error.ts';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

const databaseError = (code: string): Error =>
  Object.assign(new pg.DatabaseError('said by the server', 0, 'error'), { code });

test.each([
  [
    'away',
    '08000 08003 08006 08P01 25006 25P02 25P03 25P04 28000 28P01 3D000 40000 40001 40003 40P01 53000 53200 53300 53400',
  ],
  ['away', '55P03 57000 57014 57P01 57P02 57P03 57P04 57P05'],
  ['full', '53100'],
  ['constraint', '23000 23502 23503 23505 23514'],
  ['fatal', '58000 58030 58P01 XX000 XX001 XX002'],
  // Faults of the service: a statement that is wrong, a value that does not fit.
  [undefined, '22001 22P02 42601 42703 42P01'],
])('the server says why, by SQLSTATE: %s for %s', (kind, codes) => {
  for (const code of codes.split(' ')) expect([code, kindOf(databaseError(code))]).toEqual([code, kind]);
});

test.each([
  'ECONNREFUSED ECONNRESET ECONNABORTED EPIPE ETIMEDOUT EHOSTUNREACH EHOSTDOWN ENETUNREACH ENETDOWN ENETRESET ENOTFOUND EAI_AGAIN ENOENT EACCES',
  'EPERM EMFILE ENFILE ENOBUFS ENOMEM EADDRNOTAVAIL EPROTO ERR_STREAM_DESTROYED ERR_STREAM_WRITE_AFTER_END ERR_SOCKET_CLOSED CERT_HAS_EXPIRED',
])('what ends a connection is a lost connection, and leaves a commit open: %s', (codes) => {
  for (const code of codes.split(' ')) {
    const lost = asConnectionError(Object.assign(new Error(''), { code }));
    expect([lost, kindOf(lost), leavesCommitOpen(lost)]).toMatchObject([{ message: code }, 'away', true]);
  }
});

test('a store that has failed stays failed, and a fault of the program stays one', () => {
  expect(kindOf(new StoreError('io', 'the store has failed'))).toBe('fatal');
  const fault = new TypeError('a value that cannot be sent');
  expect([asConnectionError(fault), kindOf(fault)]).toEqual([fault, undefined]);
});

test.each(['57P01', '57P02', '08006', '40003'])('a commit that ends with %s may be made', (code) => {
  expect(leavesCommitOpen(databaseError(code))).toBe(true);
});
test.each(['25P03', '53100', '57014', '40001'])('a commit that ends with %s is not made', (code) => {
  expect(leavesCommitOpen(databaseError(code))).toBe(false);
});

/** A listener that does this with each connection; answers its port. */
const listener = async (meet: (socket: Socket) => void): Promise<number> => {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket.on('error', () => undefined));
    meet(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  undo.push(async () => {
    for (const socket of open) socket.destroy();
    server.close();
    await once(server, 'close');
  });
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
};
const local = { host: '127.0.0.1', user: 'dke', database: 'dke' };
const ways: Readonly<Record<string, () => Promise<pg.ClientConfig>>> = {
  'a port without a listener': async () => ({ ...local, port: 1 }),
  'a socket that is missing': async () => {
    const folder = mkdtempSync(join(tmpdir(), 'dke-socket-'));
    undo.push(() => rmSync(folder, { recursive: true }));
    return { ...local, host: folder };
  },
  'a name that is not known': async () => ({ ...local, host: 'database.invalid' }),
  'an address without a route': async () => ({ ...local, host: '255.255.255.255' }),
  'a host that resets': async () => ({ ...local, port: await listener((socket) => socket.resetAndDestroy()) }),
  'a host that ends': async () => ({ ...local, port: await listener((socket) => socket.end()) }),
  'a host that does not answer': async () => ({
    ...local,
    connectionTimeoutMillis: 50,
    port: await listener(() => undefined),
  }),
  'a server without TLS': async () => ({
    ...local,
    ssl: {},
    port: await listener((socket) => socket.once('data', () => socket.write('N'))),
  }),
  'a server that refuses TLS with an error': async () => ({
    ...local,
    ssl: {},
    port: await listener((socket) => socket.once('data', () => socket.write('E'))),
  }),
  'a server whose TLS is none': async () => ({
    ...local,
    ssl: {},
    port: await listener((socket) => socket.once('data', () => socket.write('S').valueOf() && socket.write('no TLS'))),
  }),
  'a password file that cannot be read': async () => ({
    ...local,
    // AuthenticationCleartextPassword
    port: await listener((socket) => socket.once('data', () => socket.write(Buffer.from('520000000800000003', 'hex')))),
    password: () => {
      throw Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' });
    },
  }),
};
test.each(Object.entries(ways))('it is away: %s', async (_way, config) => {
  const client = new OrderlyClient(await config());
  const error: unknown = await client.open().catch((caught: unknown) => caught);
  expect([error, kindOf(error)]).toMatchObject([
    { name: 'ConnectionLost', message: expect.stringMatching(/./) },
    'away',
  ]);
  expect(client.isCurrent).toBe(false);
});
