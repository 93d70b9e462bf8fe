// The socket thread: blocks in the addon's loop, answers frames on its reused buffers, and sends late replies when the main
// thread has brought an answer. Nothing here waits but the loop itself, so one slow call holds nobody else up.
import { readFileSync } from 'node:fs';
import { type MessagePort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { core, type FrameServerOptions, type Peer } from '../../addon/core.ts';
import { HostPort, type Reply } from './bridge.ts';
import { tell } from './causes.ts';
import { negotiate } from './codec.ts';
import { Connection, type Surroundings } from './connection.ts';
import { createAgentDispatcher } from './dispatch.ts';

export interface ListenOptions {
  readonly port: MessagePort;
  readonly server: FrameServerOptions;
  /** The user who may connect, beside root; null when everybody may: the configuration file then says who may do what. */
  readonly onlyUser: number | null;
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Names of local users, for the audit. Looked up once each, in /etc/passwd; the number does where there is no line. */
const userNames = (): ((uid: number) => string) => {
  const known = new Map<number, string>();
  const find = (uid: number): string => {
    try {
      const line = readFileSync('/etc/passwd', 'utf8')
        .split('\n')
        .find((each) => each.split(':')[2] === String(uid));
      return line?.split(':')[0] ?? String(uid);
    } catch {
      return String(uid);
    }
  };
  return (uid) => {
    const name = known.get(uid) ?? find(uid);
    known.set(uid, name);
    return name;
  };
};

const listen = async ({ port, server: options, onlyUser }: ListenOptions): Promise<void> => {
  core.initialize();
  const host = new HostPort(port, (microseconds) => server.setSpin(microseconds));
  const connections = new Map<number, Connection>();
  const dispatch = createAgentDispatcher();
  const surroundings: Surroundings = {
    open: (config, peer) => host.open(config, peer),
    release: ({ id }) => host.tell({ kind: 'release', context: id }),
    log: (context, level, fields, message) =>
      host.tell({ kind: 'log', context: context?.id ?? null, level, fields, message }),
    userName: userNames(),
    repeater: {
      learn: (connection, routine) => server.learn(connection, routine),
      suspend: (connection, session, kind) => server.suspend(connection, session, kind),
      resume: (connection, session, kind) => server.resume(connection, session, kind),
      forget: (connection) => server.forget(connection),
    },
  };
  const counted = (): void => host.tell({ kind: 'connections', count: connections.size });
  const mayConnect = ({ uid }: Peer): boolean => onlyUser === null || uid === onlyUser || uid === 0;

  const server = core.createFrameServer(options, {
    connect(id, peer, version) {
      if (!mayConnect(peer)) {
        const { cause, line } = tell('peer-refused', { uid: peer.uid, owner: onlyUser ?? 0 });
        surroundings.log(null, 'warn', { peer: peer.pid, uid: peer.uid, cause }, line);
        return -1;
      }
      const { answer, dialect } = negotiate(version);
      connections.set(id, new Connection(id, peer, dialect, surroundings));
      counted();
      return answer;
    },
    frame(id, callCode, request, length, reply) {
      const connection = connections.get(id);
      if (connection === undefined) return -1;
      const result = dispatch(connection, connection.dialect, request, length, reply);
      if (typeof result === 'number') return result;
      void result.then((late) => {
        server.send(id, callCode, late);
        core.wipe(late);
      });
      return 0;
    },
    close(id) {
      const connection = connections.get(id);
      if (connection === undefined) return;
      connections.delete(id);
      connection.close();
      counted();
    },
  });
  host.tell({ kind: 'listening', server: server.id });

  for (;;) {
    if (server.turn() === 'stopped') break;
    for (let message = receiveMessageOnPort(port); message !== undefined; message = receiveMessageOnPort(port)) {
      host.deliver(message.message as Reply);
    }
    // Everything that a reply set free runs before the loop blocks again.
    await settled();
  }
  for (const connection of connections.values()) connection.close();
  port.close();
};

await listen(workerData as ListenOptions);
