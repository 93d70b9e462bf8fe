// The floor for the XKS figures: a bare node:https handler that reads a body and answers one of the
// size of an Encrypt answer. Started as a process of its own:
// `node xks-echo.ts <certificate> <key> <answer bytes> [batched]`; prints its port. `batched`: all
// answers of one turn of the event loop leave at its end, as the service's do.

import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';

const [certificate, key, size, batched] = process.argv.slice(2);
if (certificate === undefined || key === undefined || size === undefined)
  throw new Error('usage: xks-echo.ts <certificate> <key> <bytes>');
const answer = Buffer.alloc(Number(size), 0x20);

const send = (response: ServerResponse): void => {
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': answer.length });
  response.end(answer);
};
let waiting: ServerResponse[] = [];
const sendWaiting = (): void => {
  const taken = waiting;
  waiting = [];
  for (const response of taken) send(response);
};

const server = createServer(
  { cert: readFileSync(certificate), key: readFileSync(key), keepAliveTimeout: 400_000 },
  (request, response) => {
    request.on('data', () => {});
    request.on('end', () => {
      if (batched === undefined) send(response);
      else if (waiting.push(response) === 1) setImmediate(sendWaiting);
    });
  },
);
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
process.on('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
});
