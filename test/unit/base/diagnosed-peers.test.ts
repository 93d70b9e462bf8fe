// What the diagnostics of an endpoint call has an end in total: a peer that is never silent, and
// never done, keeps no diagnosis.
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, test } from 'vitest';
import { tlsHandshake } from '../../../server/adapters/diagnosis/checks/tls-handshake.ts';
import type { EndpointContext } from '../../../server/adapters/diagnosis/context.ts';

test('a handshake that drips is none', async () => {
  const server = createServer((socket) => {
    // A record of TLS that does not become complete.
    socket.write(Buffer.from('1603030fff', 'hex'));
    const timer = setInterval(() => socket.write(Buffer.alloc(1)), 50);
    socket.on('error', () => undefined).once('close', () => clearInterval(timer));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const closed = new Promise<void>((resolve) =>
    server.once('connection', (socket) => socket.once('close', () => resolve())),
  );
  const { port } = server.address() as AddressInfo;
  const context = { publicUrl: new URL(`https://127.0.0.1:${port}/`) } as unknown as EndpointContext;
  expect(await tlsHandshake([]).run(context)).toMatchObject({
    state: 'failed',
    evidence: expect.stringContaining('127.0.0.1 did not answer completely within 3 s'),
  });
  await closed;
  server.close();
});
