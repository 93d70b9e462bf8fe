// The socket thread: blocks in the addon's loop, answers frames on its reused buffers, and sends
// late replies when the main thread has brought an answer. Nothing here waits but the loop itself,
// so one slow call does not delay the others.
import { readFileSync } from 'node:fs';
import { type MessagePort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { core, type FrameServerOptions, type Peer } from '../../../addon/core.ts';
import { tell } from '../causes.ts';
import { negotiate } from '../codec/wire.ts';
import { Connection, type Surroundings } from '../sessions/connection.ts';
import { sliceWaits } from '../sessions/slices.ts';
import { Accounts, type UserLimits } from '../sessions/user-limits.ts';
import { HostPort, type Reply } from './bridge.ts';
import { createAgentDispatcher, refuseFrame } from './dispatch.ts';

export interface ListenOptions {
  readonly port: MessagePort;
  readonly server: FrameServerOptions;
  /**
   * The user who may connect, in addition to root; null when everybody may: the configuration file
   * then says who may do what.
   */
  readonly onlyUser: number | null;
  readonly limits: UserLimits;
}

/**
 * Key arena, in bytes: what is wanted, and what there must be. It is locked, and takes memory only
 * as it fills.
 */
const arena = { arenaBytes: 32 << 20, leastArenaBytes: 4 << 20 } as const;
/** How many users together may fill the arena. */
const arenaShares = 4;
/**
 * Frames of this length are carried out even for a user who holds too much memory, one of each
 * connection.
 */
const smallFrame = 4096;
/**
 * About what a call takes in memory until its answer has come, here and in the main thread, in
 * addition to its frame.
 */
const pendingBytes = 8192;

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Names of local users, for the audit. Looked up once each, in /etc/passwd; the number does where
 * there is no line.
 */
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

const listen = async ({ port, server: options, onlyUser, limits }: ListenOptions): Promise<void> => {
  const { capacity } = core.initialize(arena);
  const accounts = new Accounts(limits, Math.floor(capacity / arenaShares));
  const host = new HostPort(port, (uid, bytes) => accounts.of(uid).note('memory', bytes));
  const connections = new Map<number, Connection>();
  const dispatch = createAgentDispatcher();
  const surroundings: Surroundings = {
    open: (config, peer, wait) => host.open(config, peer, wait),
    release: ({ id }) => host.release(id),
    log: (context, level, fields, message) => host.log({ context: context?.id ?? null, level, fields, message }),
    userName: userNames(),
    admit: (connection, admitted) => server.admit(connection, admitted),
    spin: (connection, microseconds) => server.setSpin(connection, microseconds),
    repeater: {
      learn: (connection, replay) => server.learn(connection, replay),
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
      connections.set(id, new Connection(id, peer, dialect, surroundings, accounts.of(peer.uid)));
      counted();
      return answer;
    },
    frame(id, callCode, request, length, reply) {
      const connection = connections.get(id);
      if (connection === undefined) return -1;
      const { account } = connection;
      const isSpare = length <= smallFrame && connection.pending === 0;
      if (!isSpare && account.isFull('memory')) return refuseFrame(connection, request, length, reply);
      const result = dispatch(connection, connection.dialect, request, length, reply);
      if (typeof result === 'number') return result;
      account.note('memory', length + pendingBytes);
      connection.pending++;
      void result.then((late) => {
        account.give('memory', length + pendingBytes);
        connection.pending--;
        if (!server.send(id, callCode, late)) {
          const refusal = Buffer.alloc(64);
          server.send(id, callCode, refusal.subarray(0, refuseFrame(connection, refusal, 0, refusal)));
        }
        core.wipe(late);
      });
      return 0;
    },
    refuse(id, request, length, reply) {
      const connection = connections.get(id);
      return connection === undefined ? -1 : refuseFrame(connection, request, length, reply);
    },
    tooMany({ pid, uid }) {
      const { message, told } = accounts.of(uid).exceeded('connections');
      surroundings.log(null, 'warn', { peer: pid, uid, cause: told }, message);
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
    // A slice that waits continues in the next turn of the event loop, after what has come in in
    // the meantime.
    if (server.run(sliceWaits()) === 'stopped') break;
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
