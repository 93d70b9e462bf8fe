// In front of the nodes of a fleet: each request goes to one node, and the answers to requests of
// one path can be kept back. TLS ends here, with the certificate of the fleet, so that a request is
// known by its path and not guessed from the bytes of a connection.
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';

export interface AnswerGate {
  readonly port: number;
  /** The next request goes to the node on this port. */
  sendTo(port: number): void;
  /** From now on, answers to requests whose path matches do not leave. */
  keepAnswers(path: RegExp): void;
  /** What the nodes answered to these requests so far, by status. */
  readonly kept: readonly number[];
  /**
   * Nothing is kept. The connections that wait for a kept answer end, as they do when their node
   * ends.
   */
  end(): void;
  close(): Promise<void>;
}

/** `folder` is the data directory of a node: its certificate is that of all. */
export const openAnswerGate = async (folder: string): Promise<AnswerGate> => {
  const [cert, key] = ['tls.crt', 'tls.key'].map((name) => readFileSync(join(folder, name)));
  let target = 0;
  let keeps: RegExp | undefined;
  let kept: number[] = [];
  const waiting = new Set<ServerResponse>();

  const pass = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const { method, url = '', headers } = incoming;
    const isKept = keeps?.test(url) === true;
    if (isKept) waiting.add(outgoing);
    const body = await buffer(incoming);
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      request({ host: '127.0.0.1', port: target, method, path: url, headers, ca: cert, agent: false }, resolve)
        .on('error', reject)
        .end(body);
    });
    const content = await buffer(answer);
    if (isKept) kept.push(answer.statusCode ?? 0);
    else outgoing.writeHead(answer.statusCode ?? 0, answer.headers).end(content);
  };
  const server = createServer({ cert, key }, (incoming, outgoing) => {
    // A kept request waits for `end`, also when its node has ended.
    pass(incoming, outgoing).catch(() => {
      if (!waiting.has(outgoing)) outgoing.destroy();
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    sendTo: (port) => {
      target = port;
    },
    keepAnswers: (path) => {
      keeps = path;
      kept = [];
    },
    get kept() {
      return kept;
    },
    end: () => {
      keeps = undefined;
      for (const outgoing of waiting) outgoing.destroy();
      waiting.clear();
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
