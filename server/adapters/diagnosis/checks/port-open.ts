// Network: every address of the public name accepts connections.

import { connect, type Socket } from 'node:net';
import { ok } from '../../../base/diagnostic-checks.ts';
import { callOutside } from '../../../base/outside.ts';
import { type EndpointCheck, foretold } from '../context.ts';
import { portOf } from '../probe.ts';

const timeoutMs = 3_000;

const accept = (socket: Socket): Promise<void> =>
  new Promise((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });

/** Undefined when a connection was accepted, else why not. */
const refusal = async (host: string, port: number): Promise<string | undefined> => {
  const socket = connect({ host, port });
  try {
    await callOutside({ place: host, totalMs: timeoutMs }, () => accept(socket));
    return undefined;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code ?? message;
  } finally {
    socket.destroy();
  }
};

export const portOpen: EndpointCheck = {
  id: 'port-open',
  layer: 'network',
  title: 'every address of the public name accepts connections',
  fault: 'an address of the public name refuses connections',
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
