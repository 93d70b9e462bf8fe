// Which of many new connections begins its handshake in a turn of the event loop.
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { createTurns } from '../../../server/fronts/listener/turns.ts';

const open = () => {
  const begun: string[] = [];
  const names = new Map<Socket, string>();
  const later: (() => void)[] = [];
  const add = createTurns(
    (socket) => void begun.push(names.get(socket) ?? ''),
    (work) => later.push(work),
  );
  return {
    begun,
    connect: (name: string, origin: string): Socket => {
      const socket = new Socket();
      names.set(socket, name);
      add(socket, origin);
      return socket;
    },
    /** What begins in the next turns, until nothing waits. */
    turns: (): string[][] => {
      const found: string[][] = [];
      for (;;) {
        const before = begun.length;
        const work = later.splice(0);
        if (work.length === 0) return found;
        for (const each of work) each();
        found.push(begun.slice(before));
      }
    },
  };
};

test('one begins at once, and of those that come with it one in each turn', () => {
  const { connect, begun, turns } = open();
  for (const name of ['a', 'b', 'c']) connect(name, '192.0.2.1');
  expect(begun).toEqual(['a']);
  expect(turns()).toEqual([['b'], ['c'], []]);
  connect('d', '192.0.2.1');
  expect(begun).toEqual(['a', 'b', 'c', 'd']);
});

test('a flood of one origin delays another one by one handshake', () => {
  const { connect, turns } = open();
  for (let at = 0; at < 100; at += 1) connect(`flood ${at}`, '192.0.2.1');
  connect('caller', '198.51.100.1');
  connect('other', '203.0.113.1');
  expect(turns().slice(0, 4)).toEqual([['flood 1'], ['caller'], ['other'], ['flood 2']]);
});

test('one that is reset while it waits ends nothing but itself', async () => {
  const { connect, turns } = open();
  connect('a', '192.0.2.1');
  const reset = connect('b', '192.0.2.1');
  connect('c', '192.0.2.1');
  const closed = new Promise((resolve) => reset.once('close', resolve));
  // Without a listener, this would be an uncaught exception.
  reset.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }));
  await closed;
  expect(turns()).toEqual([['c'], []]);
  const begun = connect('d', '192.0.2.1');
  expect(begun.listenerCount('error')).toBe(0);
});

test('one that closes while it waits does not begin, and takes no turn', async () => {
  const { connect, turns } = open();
  connect('a', '192.0.2.1');
  const gone = ['b', 'c'].map((name) => connect(name, '198.51.100.1'));
  connect('d', '203.0.113.1');
  for (const socket of gone) {
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.destroy();
    await closed;
  }
  expect(turns()).toEqual([['d'], []]);
});
