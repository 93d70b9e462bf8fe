// Loaded into a server (`--import`, with --expose-gc and --allow-natives-syntax) by a test of what
// rest does to it. After each answer of the XKS proxy a line on standard output says whether
// request, answer and socket have hidden classes or are hash tables; SIGUSR2 is twelve collections
// of the whole heap, then a line.

import { subscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { isMainThread } from 'node:worker_threads';

const isFast = new Function('value', 'return %HasFastProperties(value)') as (value: object) => boolean;

const collect = async (): Promise<void> => {
  for (let times = 0; times < 12; times += 1) {
    globalThis.gc?.();
    // Collections of one turn are one to V8, which counts them by age; tasks of theirs end between
    // turns.
    await setTimeout(10);
  }
  process.stdout.write('collected\n');
};

if (isMainThread) {
  process.on('SIGUSR2', () => void collect());
  subscribe('http.server.request.start', (message) => {
    const { request, response } = message as { readonly request: IncomingMessage; readonly response: ServerResponse };
    if (request.url?.startsWith('/xks/') !== true) return;
    const { socket } = request;
    response.once('close', () => {
      const shapes = { request: isFast(request), answer: isFast(response), socket: isFast(socket) };
      process.stdout.write(`shapes ${JSON.stringify(shapes)}\n`);
    });
  });
}
