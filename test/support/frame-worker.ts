// The worker thread of frame-client.ts: a frame server. The first byte of each frame selects what
// its handler does.
import { setImmediate as turnOfTheEventLoop } from 'node:timers/promises';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { core, type FrameServer } from '../../addon/core.ts';
import { ACTION, type FrameEvent, type FrameWorkerOptions } from './frame-client.ts';

const tell = (event: FrameEvent): void => parentPort?.postMessage(event);
const late: (() => void)[] = [];
let previous: Buffer | undefined;

const { ticket, ...options } = workerData as FrameWorkerOptions;

const server: FrameServer = core.createFrameServer(options, {
  connect(connection, peer, version) {
    tell({ kind: 'connect', connection, peer, version });
    if (version === 0xfe) throw new Error('connect failed');
    return version === 0xff ? -1 : 1;
  },
  frame(connection, callCode, request, length, reply) {
    if (previous !== undefined && previous !== request) throw new Error('the request buffer is not reused');
    previous = request;
    switch (request[0]) {
      case ACTION.later: {
        const body = Buffer.concat([Buffer.from('late:'), request.subarray(1, length)]);
        late.push(() => server.send(connection, callCode, body));
        return 0;
      }
      case ACTION.close:
        server.closeConnection(connection);
        return 0;
      case ACTION.throw:
        throw new Error('frame failed');
      case ACTION.nothing:
        return undefined as unknown as number;
      case ACTION.tooLong:
        return reply.length + 1;
      case ACTION.largest:
        return reply.fill(0x62).length;
      case ACTION.turnAgain:
        server.run();
        return 0;
      case ACTION.crossed:
        // Two at once, the other way round.
        late.unshift(() => server.send(connection, callCode, Buffer.from(request.subarray(0, 0))));
        return 0;
      default:
        return request.copy(reply, 0, 0, length) + reply.write('!', length);
    }
  },
  close(connection) {
    tell({ kind: 'close', connection });
  },
});

tell({ kind: 'listening', id: server.id });
for (let end = ''; end !== 'stopped'; ) {
  try {
    end = server.run();
  } catch (error) {
    tell({ kind: 'threw', message: error instanceof Error ? error.message : 'no error' });
  }
  if (end === 'woken') tell({ kind: 'woken', ticket: Atomics.load(ticket, 0) });
  await turnOfTheEventLoop();
  // After the event loop's turn, which takes a message's wake-up away: one that comes later than
  // this ends the next turn.
  while (parentPort !== null && receiveMessageOnPort(parentPort)) tell({ kind: 'statistics', ...server.statistics() });
  for (const send of late.splice(0)) send();
}
tell({ kind: 'stopped' });
