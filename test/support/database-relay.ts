// A TCP relay between services and their PostgreSQL, which represents the network and for the name
// of the database's host: it can lose all data without ending a connection, like a host that has
// vanished, and direct new connections to another server.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';

export interface DatabaseRelay {
  readonly host: string;
  readonly port: number;
  /** New connections go to the server with this socket. Those that are open stay where they are. */
  moveTo(socket: string): void;
  /**
   * What is sent on open connections is lost from now on, and nothing ends them; new ones are
   * accepted and get no answer, until `moveTo`. `which`: only connections whose first words
   * (application_name) contain this, and new ones continue as before.
   */
  swallow(which?: string): void;
  /** Ends open connections whose first words contain this. */
  cut(which: string): void;
  /**
   * What the database sends on open connections whose first words contain this is late by so long,
   * until it is 0 again.
   */
  delay(which: string, ms: number): void;
  /** Connections whose bytes are lost. */
  swallowed(): number;
  close(): Promise<void>;
}

interface Pair {
  readonly front: Socket;
  readonly back: Socket | undefined;
  words: string;
  lost: boolean;
  delayMs: number;
  /** What the database has sent, in order. */
  sent: Promise<void>;
}

export const openDatabaseRelay = async (first: string): Promise<DatabaseRelay> => {
  let target: string | undefined = first;
  const pairs = new Set<Pair>();
  const server = createServer((front) => {
    const back = target === undefined ? undefined : connect(target);
    const pair: Pair = { front, back, words: '', lost: back === undefined, delayMs: 0, sent: Promise.resolve() };
    pairs.add(pair);
    front
      .on('error', () => undefined)
      .on('data', (bytes) => {
        if (pair.words.length < 1_000) pair.words += bytes.toString('latin1');
        if (!pair.lost) back?.write(bytes);
      });
    back
      ?.on('error', () => undefined)
      .on('data', (bytes) => {
        if (pair.lost) return;
        const { delayMs } = pair;
        pair.sent = pair.sent.then(async () => {
          if (delayMs > 0) await setTimeout(delayMs);
          if (!pair.lost) front.write(bytes);
        });
      });
    front.on('close', () => {
      pairs.delete(pair);
      back?.destroy();
    });
    back?.on('close', () => {
      void pair.sent.then(() => {
        if (!pair.lost) front.destroy();
      });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    host: '127.0.0.1',
    port: typeof address === 'object' && address !== null ? address.port : 0,
    moveTo: (socket) => {
      target = socket;
    },
    swallow: (which) => {
      if (which === undefined) target = undefined;
      for (const pair of pairs) if (pair.words.includes(which ?? '')) pair.lost = true;
    },
    delay: (which, ms) => {
      for (const pair of pairs) if (pair.words.includes(which)) pair.delayMs = ms;
    },
    cut: (which) => {
      for (const { front, back, words } of pairs) {
        if (!words.includes(which)) continue;
        front.destroy();
        back?.destroy();
      }
    },
    swallowed: () => [...pairs].filter(({ lost }) => lost).length,
    close: async () => {
      server.close();
      for (const { front, back } of pairs) {
        front.destroy();
        back?.destroy();
      }
      if (server.listening) await once(server, 'close');
    },
  };
};
