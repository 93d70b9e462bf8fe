// A proxy between a cloud and the service: terminates TLS with its own certificate and forwards requests, or fails in
// one of the ways in which such things go wrong.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, createServer, request, type Server } from 'node:https';
import type { Socket } from 'node:net';
import type { IssuedCertificate } from './authority.ts';
import { freePort } from './daemon.ts';

export interface FrontFault {
  /** Milliseconds before a request is passed on. */
  readonly delayMs?: number;
  /** Answers this instead of passing requests on. */
  readonly answer?: { readonly status: number; readonly body: string };
}

export interface PublicFront {
  readonly port: number;
  readonly url: string;
  /** From now on, for all requests. */
  behave(fault: FrontFault): void;
  show(certificate: IssuedCertificate): void;
  /** Nothing listens, until `open`. */
  close(): Promise<void>;
  open(): Promise<void>;
  /** Where requests go to. */
  leadTo(port: number): void;
}

export const startPublicFront = async (certificate: IssuedCertificate): Promise<PublicFront> => {
  const read = ({ certificate: cert, key }: IssuedCertificate) => ({
    cert: readFileSync(cert),
    key: readFileSync(key),
  });
  const agent = new Agent({ keepAlive: true, rejectUnauthorized: false });
  const sockets = new Set<Socket>();
  let fault: FrontFault = {};
  let target = 0;
  let shown = certificate;
  let server: Server;
  const port = await freePort();

  const open = async (): Promise<void> => {
    server = createServer(read(shown), (incoming, outgoing) => {
      const { answer, delayMs = 0 } = fault;
      if (answer !== undefined) {
        incoming.resume();
        outgoing.writeHead(answer.status, { 'content-type': 'text/html' }).end(answer.body);
        return;
      }
      const pass = (): void => {
        const sent = request(
          {
            host: '127.0.0.1',
            port: target,
            agent,
            method: incoming.method,
            path: incoming.url,
            headers: incoming.headers,
          },
          (received) => {
            outgoing.writeHead(received.statusCode ?? 502, received.headers);
            received.pipe(outgoing);
          },
        );
        sent.on('error', () => outgoing.destroy());
        incoming.pipe(sent);
      };
      // The delay is the injected fault; nothing waits for it.
      if (delayMs === 0) pass();
      else setTimeout(pass, delayMs);
    });
    server.on('connection', (socket: Socket) => {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    });
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  };
  await open();
  return {
    port,
    url: `https://localhost:${port}`,
    behave: (next) => {
      fault = next;
    },
    show: (next) => {
      shown = next;
      server.setSecureContext(read(next));
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
    open,
    leadTo: (next) => {
      target = next;
    },
  };
};
