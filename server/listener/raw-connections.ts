// The connections as the kernel has them, counted and ended by their raw sockets. What is above them (TLS, HTTP/2) may forget one: Node does so when a
// peer leaves in the middle of padded DATA, and the socket then stays open and counted permanently. So a raw socket ends with what is above it,
// or when nothing was received or sent on it for longer than any connection may be silent, and with the listener.
//
// Who can choose it: every peer that reaches the port. How many: `mostConnections`. How long: `silentMs` without a byte in either direction.

import type { Server } from 'node:https';
import { Socket } from 'node:net';

interface Open {
  readonly socket: Socket;
  bytes: number;
  movedAt: number;
}

export interface RawConnections {
  /** What ends the raw socket that this one is on, whatever has become of the rest. */
  of(over: Socket): () => void;
  /** Ends all of them. */
  destroy(): void;
  stop(): void;
}

const sweepMs = 5_000;
/**
 * What a TLS socket of a server is on. Not found by the addresses: a peer that is gone no longer has them. Where Node does not say it, the sweep ends the
 * socket.
 */
const under = (over: Socket): unknown => (over as { readonly _parent?: unknown })._parent;

export const watchRawConnections = (
  server: Server,
  silentMs: number,
  now: () => number = () => performance.now(),
): RawConnections => {
  const open = new Set<Open>();
  // Before TLS takes it: the listeners that are there come behind this one.
  server.prependListener('connection', (socket: Socket) => {
    const each = { socket, bytes: 0, movedAt: now() };
    open.add(each);
    socket.once('close', () => open.delete(each));
  });
  const sweep = setInterval(() => {
    for (const each of open) {
      const bytes = each.socket.bytesRead + each.socket.bytesWritten;
      if (bytes !== each.bytes) Object.assign(each, { bytes, movedAt: now() });
      else if (now() - each.movedAt > silentMs) each.socket.destroy();
    }
  }, sweepMs);
  sweep.unref();
  return {
    of: (over) => {
      const socket = under(over);
      return () => {
        if (socket instanceof Socket) socket.destroy();
      };
    },
    destroy: () => {
      for (const { socket } of open) socket.destroy();
    },
    stop: () => clearInterval(sweep),
  };
};
