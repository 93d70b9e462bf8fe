// Loads what the HTTP client would read from its files at its first request: for a process that
// gives up its rights before that, and may no longer read them. One request to a server of its own
// on the loopback does it, whatever those files are.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client } from 'undici';

export const loadHttpClient = async (): Promise<void> => {
  const server = createServer((_incoming, outgoing) => void outgoing.end()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    // A client of our own: what stands behind undici's functions may be Node's.
    const client = new Client(`http://127.0.0.1:${port}`);
    const { body } = await client.request({ method: 'GET', path: '/' });
    await body.dump();
    await client.close();
  } finally {
    server.close();
    server.closeAllConnections();
  }
};
