// The worker thread of replays.test.ts: the agent's real functions behind a real frame server, with
// or without replays in the addon. The service is unavailable: a key of the token is looked up and
// not found, after a wait.
import { setImmediate as turnOfTheEventLoop } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { core, type FrameServer } from '../../addon/core.ts';
import { negotiate } from '../../provider/agent/codec/wire.ts';
import { ServiceCallError, type ServiceDoor } from '../../provider/agent/service/service-door.ts';
import { Connection, type Surroundings } from '../../provider/agent/sessions/connection.ts';
import { createAgentDispatcher } from '../../provider/agent/threads/dispatch.ts';

const { path, withReplays } = workerData as { readonly path: string; readonly withReplays: boolean };

core.initialize({ allowUnlocked: true });
const dispatch = createAgentDispatcher();
const connections = new Map<number, Connection>();
const door: ServiceDoor = {
  call: async (_request, { requestId }) => {
    await turnOfTheEventLoop();
    throw new ServiceCallError('unavailable', 'the service is away', requestId);
  },
  withdraw: () => undefined,
  close: async () => undefined,
};
const surroundings: Surroundings = {
  open: async () => ({ id: 1, door, spinUs: 20, isTraced: false }),
  release: () => undefined,
  log: () => undefined,
  userName: String,
  ...(withReplays && {
    repeater: {
      learn: (connection, replay) => server.learn(connection, replay),
      suspend: (connection, session, kind) => server.suspend(connection, session, kind),
      resume: (connection, session, kind) => server.resume(connection, session, kind),
      forget: (connection) => server.forget(connection),
    },
  }),
};

const server: FrameServer = core.createFrameServer(
  { path, mode: 0o600, spinMicroseconds: 0, maxFrame: 1 << 16, maxConnections: 8 },
  {
    connect(id, peer, version) {
      const { answer, dialect } = negotiate(version);
      connections.set(id, new Connection(id, peer, dialect, surroundings));
      return answer;
    },
    frame(id, callCode, request, length, reply) {
      const connection = connections.get(id);
      if (connection === undefined) return -1;
      const result = dispatch(connection, connection.dialect, request, length, reply);
      if (typeof result === 'number') return result;
      void result.then((late) => server.send(id, callCode, late));
      return 0;
    },
    close(id) {
      connections.get(id)?.close();
      connections.delete(id);
    },
  },
);
parentPort?.postMessage({ listening: server.id });
while (server.run() !== 'stopped') await turnOfTheEventLoop();
parentPort?.postMessage({ statistics: server.statistics() });
