// A proxy between a cloud and the service: terminates TLS with its own certificate and forwards
// requests, or fails in one of the ways in which such things go wrong.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, createServer, request, type Server } from 'node:https';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import type { SecureContextOptions } from 'node:tls';
import type { IssuedCertificate } from './authority.ts';
import { freePort } from './daemon.ts';

export interface FrontFault {
  /** Milliseconds before a request is passed on. */
  readonly delayMs?: number;
  /** Answers this instead of passing requests on. */
  readonly answer?: {
    readonly status: number;
    readonly body: string;
    readonly headers?: Readonly<Record<string, string>>;
  };
  /** Changes what is passed on. */
  readonly rewrite?: {
    readonly host?: string;
    readonly path?: (path: string) => string;
    readonly body?: (body: string) => string;
    /** The answer keeps its length. */
    readonly answer?: (body: string) => string;
  };
}

export interface PublicFront {
  readonly port: number;
  readonly url: string;
  /** From now on, for all requests. */
  behave(fault: FrontFault): void;
  show(certificate: IssuedCertificate, offer?: SecureContextOptions): void;
  /** Connections that are open end. */
  drop(): void;
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
      const { answer, rewrite, delayMs = 0 } = fault;
      if (answer !== undefined) {
        incoming.resume();
        outgoing.writeHead(answer.status, { 'content-type': 'text/html', ...answer.headers }).end(answer.body);
        return;
      }
      const pass = (): void => {
        const sent = request(
          {
            host: '127.0.0.1',
            port: target,
            agent,
            method: incoming.method,
            path: rewrite?.path?.(incoming.url ?? '') ?? incoming.url,
            headers: { ...incoming.headers, ...(rewrite?.host === undefined ? {} : { host: rewrite.host }) },
          },
          (received) => {
            outgoing.writeHead(received.statusCode ?? 502, received.headers);
            const { answer: changed } = rewrite ?? {};
            if (changed === undefined) received.pipe(outgoing);
            else text(received).then((whole) => outgoing.end(changed(whole)));
          },
        );
        sent.on('error', () => outgoing.destroy());
        if (rewrite?.body === undefined) {
          incoming.pipe(sent);
          return;
        }
        const { body } = rewrite;
        sent.removeHeader('content-length');
        text(incoming).then((whole) => sent.end(body(whole)));
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
    show: (next, offer = {}) => {
      shown = next;
      server.setSecureContext({ ...read(next), ...offer });
    },
    drop: () => {
      for (const socket of sockets) socket.destroy();
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
