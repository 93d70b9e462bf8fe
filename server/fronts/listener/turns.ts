// When new connections begin TLS: one in each turn of the event loop, and the origins in turn. A
// handshake takes about a millisecond of the thread that answers requests. When hundreds come at
// once and send their first message, calls on kept connections would wait behind all that one turn
// finds; so they wait behind one. Peers that begin and send their messages later, all together, are
// not in this order: they are limited by their number (raw-connections.ts). Who can choose it:
// every peer that reaches the port. How many wait: the connections that raw-connections.ts has
// admitted. A peer that floods delays those of other origins by one handshake each; the addresses
// of an IPv6 network (/48) are one origin.

import type { Socket } from 'node:net';

/** A connection that fails while it waits: its close takes it out of the queue. */
const leaveToClose = (): void => undefined;

/** `begin` is called with each socket once, unless it closes before. */
export const createTurns = (
  begin: (socket: Socket) => void,
  nextTurn: (work: () => void) => unknown = setImmediate,
): ((socket: Socket, origin: string) => void) => {
  /** The sockets of each origin; the origin whose turn is next comes first. */
  const waiting = new Map<string, Set<Socket>>();
  /** Whether one has begun in this turn. */
  let isTaken = false;

  const next = (): Socket | undefined => {
    for (const [origin, sockets] of waiting) {
      waiting.delete(origin);
      const [first] = sockets;
      if (first === undefined) continue;
      sockets.delete(first);
      first.off('error', leaveToClose);
      if (sockets.size > 0) waiting.set(origin, sockets);
      return first;
    }
    return undefined;
  };
  const take = (socket: Socket): void => {
    isTaken = true;
    nextTurn(() => {
      isTaken = false;
      const following = next();
      if (following !== undefined) take(following);
    });
    begin(socket);
  };
  return (socket, origin) => {
    if (!isTaken) {
      take(socket);
      return;
    }
    const sockets = waiting.get(origin) ?? new Set();
    waiting.set(origin, sockets.add(socket));
    // Until it begins, no one else listens to the socket: a reset without a listener would end the
    // process.
    socket.on('error', leaveToClose);
    socket.once('close', () => {
      sockets.delete(socket);
      if (sockets.size === 0 && waiting.get(origin) === sockets) waiting.delete(origin);
    });
  };
};
