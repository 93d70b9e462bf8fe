// Network: every address of the public name accepts connections.

import { connect } from 'node:net';
import { ok } from '../../../base/checks.ts';
import { type EndpointCheck, foretold } from '../context.ts';
import { portOf } from '../probe.ts';

const timeoutMs = 3_000;

/** Undefined when a connection was accepted, else why not. */
const refusal = (host: string, port: number): Promise<string | undefined> =>
  new Promise((resolve) => {
    const socket = connect({ host, port, timeout: timeoutMs });
    const settle = (answer: string | undefined): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', () => settle(undefined));
    socket.once('timeout', () => settle(`no answer in ${timeoutMs} ms`));
    socket.once('error', (error: NodeJS.ErrnoException) => settle(error.code ?? error.message));
  });

export const portOpen: EndpointCheck = {
  id: 'port-open',
  layer: 'network',
  title: 'every address of the public name accepts connections',
  needs: ['dns-resolves'],
  run: async ({ publicUrl, addresses = [] }) => {
    const port = portOf(publicUrl);
    const refusals = await Promise.all(
      addresses.map(async (address) => ({ address, reason: await refusal(address, port) })),
    );
    const closed = refusals.filter(({ reason }) => reason !== undefined);
    if (closed.length === 0) return ok(`port ${port} of ${addresses.join(', ')}`);
    return foretold(
      'no-connection',
      closed.map(({ address, reason }) => `${address} port ${port}: ${reason}`).join('; '),
      'open the port in the firewall, start the program that should listen there, or remove the address from DNS',
    );
  },
};
