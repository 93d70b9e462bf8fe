// A TCP relay in front of a server that can hold back requests or answers, and cut
// connections: a request is carried out and its sender gets no answer.
import { connect, createServer, type Socket } from 'node:net';

export interface TcpGate {
  readonly port: number;
  /** From now on requests pass and answers are held here. */
  holdAnswers(): void;
  /** From now on requests are held here. */
  holdRequests(): void;
  /** What was held continues its way. */
  open(): void;
  /** Ends every connection; held data are lost. */
  cut(): void;
  /** Bytes that the server has answered and that are held. */
  readonly held: number;
  close(): Promise<void>;
}

export const openTcpGate = async (host: string, port: number): Promise<TcpGate> => {
  const pairs = new Set<{ readonly front: Socket; readonly back: Socket }>();
  let held: { readonly to: Socket; readonly bytes: Buffer; readonly isAnswer: boolean }[] = [];
  let holdsAnswers = false;
  let holdsRequests = false;
  const pass = (to: Socket, bytes: Buffer, isAnswer: boolean, isHandshake: boolean): void => {
    if (!isHandshake && (isAnswer ? holdsAnswers : holdsRequests)) held.push({ to, bytes, isAnswer });
    else to.write(bytes);
  };
  const server = createServer((front) => {
    const back = connect(port, host);
    const pair = { front, back };
    pairs.add(pair);
    // A TLS handshake passes: the client's first words and the server's answer to them.
    let serverSpoke = false;
    let clientReplied = false;
    front.on('data', (bytes) => {
      clientReplied ||= serverSpoke;
      pass(back, bytes, false, !clientReplied);
    });
    back.on('data', (bytes) => {
      serverSpoke = true;
      pass(front, bytes, true, !clientReplied);
    });
    for (const [socket, other] of [
      [front, back],
      [back, front],
    ] as const) {
      socket.on('error', () => undefined);
      socket.on('close', () => {
        other.destroy();
        pairs.delete(pair);
      });
    }
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const cut = (): void => {
    for (const { front, back } of pairs) {
      front.destroy();
      back.destroy();
    }
    held = [];
  };
  return {
    port: (server.address() as { readonly port: number }).port,
    holdAnswers: () => {
      holdsAnswers = true;
    },
    holdRequests: () => {
      holdsRequests = true;
    },
    open: () => {
      holdsAnswers = false;
      holdsRequests = false;
      for (const { to, bytes } of held.splice(0)) to.write(bytes);
    },
    cut,
    get held() {
      return held.filter(({ isAnswer }) => isAnswer).reduce((sum, { bytes }) => sum + bytes.length, 0);
    },
    close: async () => {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
