// The frame server through the addon: handlers in a worker thread, peers on real unix sockets. What
// needs a deterministic order of events is tested below JavaScript, in
// test/native/core/frames-test.cc.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CoreError, core, type FrameServerOptions } from '../../../addon/core.ts';
import { ACTION, action, FrameClient, FrameWorker, frame, header } from '../../support/frame-client.ts';

const silent = { connect: () => 1, frame: () => -1, close: () => {} };

describe('the frame server', () => {
  let server: FrameWorker;
  beforeEach(async () => {
    server = await FrameWorker.start();
  });
  afterEach(async () => {
    await server.stop();
  });

  test('reports who connected and answers the version byte with that of the handler', async () => {
    const client = new FrameClient(server.path);
    expect(await client.greet(7)).toBe(1);
    const { peer, version } = await server.event('connect');
    expect(version).toBe(7);
    // The groups are read from the kernel: Node's list also has the group of the process.
    const [, list = ''] = /^Groups:(.*)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
    const groups = list.trim().split(/\s+/).filter(Boolean).map(Number);
    expect(peer).toEqual({
      pid: process.pid,
      uid: process.getuid?.(),
      gid: process.getgid?.(),
      groups,
    });
    client.end();
  });

  test('makes the socket for its owner alone', () => {
    expect(statSync(server.path).mode & 0o777).toBe(0o600);
  });

  test('closes a connection whose version is refused and does not report it as closed', async () => {
    const refused = new FrameClient(server.path);
    refused.write(Buffer.from([0xff]));
    await refused.closed;
    const client = await server.client();
    const { connection } = await server.event('connect', 2);
    client.end();
    expect((await server.event('close')).connection).toBe(connection);
  });

  test('takes frames that arrive byte by byte', async () => {
    const client = new FrameClient(server.path);
    client.socket.setNoDelay(true);
    for (const byte of Buffer.concat([Buffer.from([0]), frame(3, action(ACTION.echo, 'split'), Buffer.from('opt'))])) {
      await new Promise((resolve) => client.socket.write(Buffer.from([byte]), resolve));
    }
    expect((await client.read(1))[0]).toBe(1);
    expect(await client.readFrame()).toEqual({ callCode: 3, options: 0, body: action(ACTION.echo, 'split!') });
    client.end();
  });

  test('answers pipelined frames in their order', async () => {
    const client = await server.client();
    const count = 2000;
    client.write(Buffer.concat(Array.from({ length: count }, (_, i) => frame(i + 1, action(ACTION.echo, String(i))))));
    for (let i = 0; i < count; i++) {
      const { callCode, body } = await client.readFrame();
      expect([callCode, body.toString('latin1', 1)]).toEqual([i + 1, `${i}!`]);
    }
    client.end();
  });

  test('carries the largest frame and the largest reply', async () => {
    const client = await server.client();
    const body = Buffer.alloc(65_535, 0x61);
    body[0] = ACTION.echo;
    const reply = await client.call(1, body);
    expect(reply.length).toBe(65_536);
    expect(reply.subarray(0, 65_535).equals(body)).toBe(true);
    expect((await client.call(2, action(ACTION.largest))).equals(Buffer.alloc(65_536, 0x62))).toBe(true);
    client.end();
  });

  test.each([
    ['a body over the limit', header(1, 0, 65_537)],
    ['options over the limit', header(1, 65_537, 0)],
    ['a sum over the limit', header(1, 1, 65_536)],
    ['lengths whose sum wraps', header(1, 0xffffffff, 2)],
    ['call code 0', frame(0, action(ACTION.echo))],
    ['text of another protocol', Buffer.from('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')],
  ])('closes the connection on %s, and no other', async (_, bytes) => {
    const other = await server.client();
    const client = await server.client();
    client.write(bytes);
    await client.closed;
    expect(await other.call(1, action(ACTION.echo, 'x'))).toEqual(action(ACTION.echo, 'x!'));
    expect((await server.statistics()).rejected).toBe(1);
    other.end();
  });

  test('serves 200 connections at once', async () => {
    const clients = await Promise.all(Array.from({ length: 200 }, () => server.client()));
    const replies = await Promise.all(clients.map((client, i) => client.call(i + 1, action(ACTION.echo, String(i)))));
    expect(replies.map((reply) => reply.toString('latin1', 1))).toEqual(clients.map((_, i) => `${i}!`));
    for (const client of clients) client.end();
    await server.event('close', 200);
  });

  test('sends a late reply after the turn, and serves others meanwhile', async () => {
    const waiting = await server.client();
    const other = await server.client();
    const replies = await Promise.all([
      waiting.call(21, action(ACTION.later, 'one')),
      other.call(22, action(ACTION.echo, 'two')),
    ]);
    expect(replies.map((reply) => reply.toString('latin1'))).toEqual(['late:one', '\0two!']);
    waiting.end();
    other.end();
  });

  test('drops a late reply to a peer that has gone', async () => {
    const client = await server.client();
    client.write(frame(1, action(ACTION.later)));
    client.end();
    await server.event('close');
    const next = await server.client();
    expect((await next.call(1, action(ACTION.later, 'x'))).toString()).toBe('late:x');
    next.end();
  });

  test('reports a peer that disconnects in the middle of a frame', async () => {
    const client = await server.client();
    await new Promise((resolve) => client.socket.write(frame(1, action(ACTION.echo, 'half')).subarray(0, 15), resolve));
    client.end();
    await server.event('close');
    expect(await server.statistics()).toMatchObject({ connections: 0, frames: 0 });
  });

  test('closes a connection when its handler asks for it', async () => {
    const client = await server.client();
    client.write(frame(1, action(ACTION.close)));
    await client.closed;
    await server.event('close');
  });

  test.each([
    ['throws', ACTION.throw, 'frame failed'],
    ['returns no number', ACTION.nothing, 'must return a length'],
    ['returns more than fits', ACTION.tooLong, 'must return a length'],
    ['calls turn again', ACTION.turnAgain, 'run was called from a handler'],
  ])('closes the connection of a handler that %s, throws from turn, and continues', async (_, what, message) => {
    const other = await server.client();
    const client = await server.client();
    client.write(frame(1, action(what)));
    await client.closed;
    expect((await server.event('threw')).message).toContain(message);
    await server.event('close');
    expect((await other.call(1, action(ACTION.echo))).length).toBe(2);
    other.end();
  });

  test('throws what the connect handler throws', async () => {
    const client = new FrameClient(server.path);
    client.write(Buffer.from([0xfe]));
    await client.closed;
    expect((await server.event('threw')).message).toBe('connect failed');
  });

  test('is woken from another thread, also by a plain message', async () => {
    await server.wake();
    await server.statistics();
    await server.wake();
  });

  test('ignores numbers that no server has', () => {
    core.wakeFrameServer(0xfffffff0);
    core.stopFrameServer(0xfffffff0);
  });

  test('closes every connection and removes its socket when it is stopped', async () => {
    const clients = await Promise.all([server.client(), server.client()]);
    core.stopFrameServer(server.id);
    await Promise.all(clients.map((client) => client.closed));
    await server.event('close', 2);
    await server.event('stopped');
    expect(existsSync(server.path)).toBe(false);
  });

  test('does not delay the end of its worker', async () => {
    const client = await server.client();
    await server.worker.terminate();
    await client.closed;
  });
});

test('a peer that never reads is not computed for, and is disconnected in the end', async () => {
  const server = await FrameWorker.start({ stallMilliseconds: 100 });
  const greedy = connect(server.path);
  greedy.on('error', () => {});
  greedy.pause();
  greedy.write(
    Buffer.concat([Buffer.from([0]), ...Array.from({ length: 300 }, (_, i) => frame(i + 1, action(ACTION.largest)))]),
  );
  await server.event('close');
  expect((await server.statistics()).frames).toBeLessThan(100);
  greedy.destroy();
  await server.stop();
});

test('connections over the limit are refused', async () => {
  const server = await FrameWorker.start({ maxConnections: 2 });
  const first = await server.client();
  const second = await server.client();
  const third = new FrameClient(server.path);
  await third.closed;
  first.end();
  await server.event('close');
  const fourth = await server.client();
  second.end();
  fourth.end();
  await server.stop();
});

test('a process that exits while a worker blocks in run does not hang', async () => {
  const program = fileURLToPath(new URL('../../support/frame-exit.ts', import.meta.url));
  const child = spawn(process.execPath, [program], { stdio: 'inherit' });
  expect(await once(child, 'exit')).toEqual([7, null]);
});

describe('createFrameServer', () => {
  const options: FrameServerOptions = {
    path: join(tmpdir(), `dke-frames-${process.pid}`),
    spinMicroseconds: 0,
    maxFrame: 1024,
    maxConnections: 4,
  };
  const codeOf = (make: () => void): string => {
    try {
      make();
    } catch (error) {
      if (error instanceof CoreError) return error.code;
      throw error;
    }
    return 'none';
  };

  test('refuses arguments of another shape', () => {
    const { path: _, ...nowhere } = options;
    expect(codeOf(() => core.createFrameServer(nowhere, silent))).toBe('bad-argument');
    expect(codeOf(() => core.createFrameServer({ ...options, maxFrame: 0 }, silent))).toBe('bad-argument');
    expect(codeOf(() => core.createFrameServer({ ...options, maxFrame: 2 ** 31 }, silent))).toBe('bad-argument');
    expect(codeOf(() => core.createFrameServer({ ...options, maxFrame: 1.5 }, silent))).toBe('bad-argument');
    expect(codeOf(() => core.createFrameServer({ ...options, mode: 0o1777 }, silent))).toBe('bad-argument');
    expect(codeOf(() => core.createFrameServer({ ...options, maxConnections: 0 }, silent))).toBe('bad-argument');
    const { frame: __, ...incomplete } = silent;
    expect(codeOf(() => core.createFrameServer(options, incomplete as typeof silent))).toBe('bad-argument');
  });

  test('says which path cannot be used', () => {
    expect(codeOf(() => core.createFrameServer({ ...options, path: '/nowhere/socket' }, silent))).toBe('io');
    expect(() => core.createFrameServer({ ...options, path: '/nowhere/socket' }, silent)).toThrow('/nowhere/socket');
  });

  test('does not take a path from a server that lives', async () => {
    const server = await FrameWorker.start();
    expect(() => core.createFrameServer({ ...options, path: server.path }, silent)).toThrow('another process serves');
    await server.stop();
  });

  test('always answers stopped after it was stopped', () => {
    const server = core.createFrameServer(options, silent);
    server.stop();
    expect([server.run(), server.run()]).toEqual(['stopped', 'stopped']);
    expect(existsSync(options.path ?? '')).toBe(false);
  });
});
