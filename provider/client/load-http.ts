// Loads what the HTTP client would read from its files at its first request: for a process that gives up its rights before that, and may
// not read them any more. One request to a server of its own on the loopback does it, whatever those files are.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { request } from 'undici';

export const loadHttpClient = async (): Promise<void> => {
  const server = createServer((_incoming, outgoing) => void outgoing.end()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const { body } = await request(`http://127.0.0.1:${port}/`, { reset: true });
    await body.dump();
  } finally {
    server.close();
    server.closeAllConnections();
  }
};
