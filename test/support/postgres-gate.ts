// Stands between one node and its PostgreSQL, on a socket of its own, and takes away the link that
// hears of changes: the connections that read and write continue.
import { mkdirSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';

export interface PostgresGate {
  /** The folder of its socket: what a node has as `host`. */
  readonly host: string;
  /** Ends the link, and each new one. */
  cutLinks(): void;
  /** New links pass again. */
  letLinks(): void;
  close(): Promise<void>;
}

/** Statements that only the link sends. */
const hello = Buffer.from('listen dke');

export const openPostgresGate = async (folder: string, database: string): Promise<PostgresGate> => {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const links = new Set<Socket>();
  const open = new Set<Socket>();
  let isCut = false;
  const name = '.s.PGSQL.5432';
  const server = createServer((front) => {
    const back = connect(join(database, name));
    for (const [socket, other] of [
      [front, back],
      [back, front],
    ] as const) {
      open.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        open.delete(socket);
        links.delete(socket);
        other.destroy();
      });
    }
    front.on('data', (bytes) => {
      if (bytes.includes(hello)) {
        links.add(front);
        if (isCut) front.destroy();
      }
    });
    front.pipe(back);
    back.pipe(front);
  });
  await new Promise<void>((resolve) => {
    server.listen(join(folder, name), resolve);
  });
  return {
    host: folder,
    cutLinks: () => {
      isCut = true;
      for (const link of links) link.destroy();
    },
    letLinks: () => {
      isCut = false;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
};
