// A pooler between a service and its PostgreSQL, as PgBouncer is one: it announces a server process
// of its own, and in transaction mode it gives each transaction the next of its connections.
import { mkdirSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';

export interface Pooler {
  /** The folder of its socket. */
  readonly host: string;
  close(): Promise<void>;
}

const name = '.s.PGSQL.5432';
/** The last message is ReadyForQuery, outside of a transaction. */
const isIdle = (bytes: Buffer): boolean => bytes.subarray(-6).equals(Buffer.from([0x5a, 0, 0, 0, 5, 0x49]));

/**
 * `announced`: as in session mode; false: the first connection's own number is announced, and the
 * others follow.
 */
export const openPooler = async (
  folder: string,
  database: string,
  mode: { readonly announced: boolean; readonly perTransaction: boolean },
): Promise<Pooler> => {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const open = new Set<Socket>();
  const track = (socket: Socket): Socket => {
    open.add(socket);
    return socket.on('error', () => undefined).on('close', () => open.delete(socket));
  };
  const server = createServer((front) => {
    track(front);
    const backs = [0, 1].map(() => track(connect(join(database, name))));
    const started = backs.map(() => false);
    let turn = 0;
    let isFirst = true;
    const waiting: Buffer[] = [];
    const isReady = (): boolean => started.every(Boolean);
    const flush = (): void => {
      if (isReady()) for (const bytes of waiting.splice(0)) backs[turn]?.write(bytes);
    };
    front.on('data', (bytes) => {
      if (isFirst) {
        isFirst = false;
        for (const back of backs) back.write(bytes);
        return;
      }
      waiting.push(bytes);
      flush();
    });
    for (const [at, back] of backs.entries()) {
      back.on('data', (bytes) => {
        if (!started[at]) {
          started[at] = isIdle(bytes);
          // BackendKeyData: another process is announced.
          const key = bytes.indexOf(Buffer.from([0x4b, 0, 0, 0, 12]));
          if (mode.announced && key >= 0) bytes.writeInt32BE(1, key + 5);
          if (at === 0) front.write(bytes);
          flush();
          return;
        }
        if (mode.perTransaction && isIdle(bytes)) turn = (turn + 1) % backs.length;
        front.write(bytes);
        flush();
      });
      back.on('close', () => front.destroy());
    }
    front.on('close', () => {
      for (const back of backs) back.destroy();
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(join(folder, name), resolve);
  });
  return {
    host: folder,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
};
