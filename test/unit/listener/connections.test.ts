// Places of connections, and answers without a reader, on real sockets of this process.
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { type ClientHttp2Session, connect as connectHttp2, type ServerHttp2Stream } from 'node:http2';
import { createServer, request } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { connect as connectTls } from 'node:tls';
import { queryObjects } from 'node:v8';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { core } from '../../../addon/core.ts';
import { createLimitRefusals, type LimitReport } from '../../../server/base/limit-refusals.ts';
import { markUpload } from '../../../server/base/upload.ts';
import { openClient } from '../../../server/cli/service/api-client.ts';
import { createListener } from '../../../server/fronts/listener/listener.ts';
import { watchRawConnections } from '../../../server/fronts/listener/raw-connections.ts';
import { makeAuthority } from '../../support/authority.ts';
import { proxyHeader } from '../../support/proxy-header.ts';
import { flags, frame, frameTypes, headerBlock, preface } from '../../support/raw-http2.ts';

const folder = mkdtempSync(join(tmpdir(), 'dke-connections-'));
const authority = makeAuthority(folder, 'connections');
const issued = authority.issue({
  commonName: 'connections',
  names: ['IP:127.0.0.1'],
  usage: 'serverAuth',
});
const pair = { certificate: readFileSync(issued.certificate, 'utf8'), key: readFileSync(issued.key, 'utf8') };
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A server whose connections are counted, of at most so many. */
const serve = async (most: number) => {
  let time = 0;
  const refused: string[] = [];
  const server = createServer({ cert: pair.certificate, key: pair.key }, (_, answer) => {
    answer.end(Buffer.alloc(64 << 20));
  });
  const raw = watchRawConnections(server, {
    most,
    silentMs: 3_600_000,
    refused: (limit, address) => refused.push(`${limit} ${address}`),
    isBalancer: (address) => address === '127.0.0.200',
    now: () => time,
  });
  const accepted: Socket[] = [];
  server.on('connection', (socket: Socket) => accepted.push(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(
    () => server.close(),
    () => raw.stop(),
    () => raw.destroy(),
  );
  const { port } = server.address() as AddressInfo;
  /** From this address; answers when the server has decided. */
  const open = async (localAddress: string): Promise<Socket> => {
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    socket.on('error', () => undefined);
    ends.push(() => socket.destroy());
    await once(socket, 'connect');
    await until(() => accepted.some(({ remotePort }) => remotePort === socket.localPort) || socket.destroyed);
    return socket;
  };
  const openTls = async (localAddress: string) => {
    const socket = connectTls({ socket: await open(localAddress), rejectUnauthorized: false });
    socket.on('error', () => undefined);
    const [secured] = (await Promise.all([once(server, 'secureConnection'), once(socket, 'secureConnect')]))[0];
    return { socket, own: raw.of(secured as Socket) };
  };
  return { raw, refused, accepted, open, openTls, later: (ms: number) => (time += ms) };
};
const until = (isSo: () => boolean): Promise<void> => expect.poll(isSo).toBe(true);
const many = async (count: number, open: () => Promise<Socket>): Promise<Socket[]> => {
  const made: Socket[] = [];
  while (made.length < count) made.push(await open());
  return made;
};
const isGone = async (socket: Socket): Promise<void> => {
  socket.resume();
  if (!socket.closed) await once(socket, 'close');
};

describe('places of connections', () => {
  test('an address has an eighth: its longest idle connection gives way to its next one, and those of others stay', async () => {
    const { open, refused } = await serve(160);
    const other = await open('127.0.0.2');
    const own = await many(23, () => open('127.0.0.1'));
    await Promise.all(own.slice(0, 3).map(isGone));
    expect(refused).toEqual(Array(3).fill('connections-of-address 127.0.0.1'));
    expect([other, ...own.slice(3)].every(({ closed }) => !closed)).toBe(true);
  });

  test('strangers of any number of addresses leave a quarter to callers who have authenticated', async () => {
    const { open, openTls, refused } = await serve(64);
    const known = await openTls('127.0.0.1');
    known.own?.prove('one', null);
    const strangers: Socket[] = [];
    for (let at = 2; at < 12; at++) strangers.push(...(await many(8, () => open(`127.0.0.${at}`))));
    // Three quarters of the 64 places are for strangers: 48 of these 80 connections have one.
    expect(refused).toHaveLength(32);
    await until(() => strangers.filter(({ closed }) => !closed).length === 48);
    // A new caller gets in, and so does the next: only strangers give way.
    for (const name of ['two', 'three']) (await openTls('127.0.0.99')).own?.prove(name, null);
    expect(known.socket.closed).toBe(false);
  });

  test('callers leave an eighth to others, and do not give way to strangers', async () => {
    const { open, openTls, refused } = await serve(16);
    const callers = [];
    for (let at = 0; at < 14; at++) {
      const each = await openTls(`127.0.0.${at + 1}`);
      each.own?.prove(`caller ${at}`, null);
      callers.push(each);
    }
    const [first, ...later] = await many(2, () => open('127.0.0.50'));
    const stranger = await open('127.0.0.51');
    await isGone(first as Socket);
    expect(refused).toEqual(['connections 127.0.0.50']);
    expect([stranger, ...later, ...callers.map(({ socket }) => socket)].map(({ closed }) => closed)).toEqual(
      Array(16).fill(false),
    );
  });

  test('four callers do not hold all places: of who has the most, the longest idle one gives way to another caller', async () => {
    const { openTls, raw, refused } = await serve(64);
    const busy = [];
    for (let at = 0; at < 56; at++) {
      const each = await openTls(`127.0.0.${at + 1}`);
      each.own?.prove(`caller ${at % 4}`, `tenant ${at % 4}`);
      busy.push(each);
    }
    raw.sweep();
    const fifth = await openTls('127.0.0.99');
    fifth.own?.prove('caller 5', 'tenant 5');
    await isGone(busy[0]?.socket as Socket);
    expect(refused).toEqual(['connections-of-caller 127.0.0.1']);
    expect(busy.slice(1).filter(({ socket }) => socket.closed)).toEqual([]);
    expect(fifth.socket.closed).toBe(false);
  });

  test('a tenant with many callers does not hold the places of others: its own connections give way, those without a request first', async () => {
    const { openTls, raw } = await serve(64);
    const few = [];
    const many = [];
    for (let at = 0; at < 16; at++) {
      const each = await openTls(`127.0.0.${at + 1}`);
      each.own?.prove('the only one', `tenant ${at % 4}`);
      few.push(each);
    }
    for (let at = 0; at < 40; at++) {
      const each = await openTls(`127.0.0.${at + 20}`);
      each.own?.prove(`token ${at}`, 'the largest');
      many.push(each);
    }
    raw.sweep();
    // The longest idle one has a request under way, and so has every other one but the fourth.
    const ends = many.map(({ own }, at) => (at === 3 ? undefined : own?.use()));
    (await openTls('127.0.0.99')).own?.prove('another one', 'tenant 5');
    await isGone(many[3]?.socket as Socket);
    ends[7]?.();
    (await openTls('127.0.0.99')).own?.prove('yet another one', 'tenant 6');
    await isGone(many[7]?.socket as Socket);
    // Where all have one, the oldest gives way all the same.
    (await openTls('127.0.0.99')).own?.prove('one more', 'tenant 7');
    await isGone(many[0]?.socket as Socket);
    expect([...few, ...many].filter(({ socket }) => socket.closed)).toHaveLength(3);
  });

  test('a tenant whose only connection gives way to its own next one is counted on with all its callers', async () => {
    const { openTls, accepted } = await serve(64);
    const as = async (caller: string, tenant: string, at: number) => {
      const each = await openTls(`127.0.0.${at}`);
      each.own?.prove(caller, tenant);
      return each;
    };
    const first = await as('first', 'shared', 1);
    const others: (typeof first)[] = [];
    for (let at = 1; at < 56; at++) others.push(await as('one', `tenant ${at}`, at + 1));
    // Every tenant has one connection: the oldest gives way.
    const many = [await as('many', 'shared', 60)];
    await isGone(first.socket);
    for (const { socket } of others.splice(0, 4)) {
      socket.destroy();
      await isGone(socket);
    }
    await until(() => accepted.filter(({ closed }) => !closed).length === 52);
    for (const at of [61, 62]) many.push(await as('many', 'shared', at));
    const few = [await as('few', 'shared', 63), await as('few', 'shared', 64)];
    await as('another', 'a new tenant', 65);
    await until(() => [...many, ...few, ...others].some(({ socket }) => socket.closed));
    expect([many, few, others].map((each) => each.map(({ socket }) => socket.closed).indexOf(true))).toEqual([
      0, -1, -1,
    ]);
  });

  test('only a few are ended in their own way at a time, so that they hold few places more', async () => {
    const { openTls } = await serve(16);
    const told: number[] = [];
    const open = [];
    for (let at = 0; at < 15; at++) {
      const each = await openTls(`127.0.0.${at + 1}`);
      // The callback does not end the connection.
      each.own?.endWith(() => told.push(at));
      open.push(each);
    }
    await isGone(open[1]?.socket as Socket);
    expect(told).toEqual([0]);
  });

  test('when strangers have all their places, the network with the most gives way, not who has a few from one address', async () => {
    const { open, raw, accepted } = await serve(64);
    for (let at = 0; at < 48; at++) {
      await open('127.0.0.200');
      raw.isFrom(accepted.at(-1) as Socket, `2001:db8:${at % 3}:${at}::1`);
    }
    const few = await many(6, () => open('127.0.0.2'));
    await open('127.0.0.3');
    expect(few.map(({ closed }) => closed)).toEqual(Array(6).fill(false));
  });

  test('a /64 has an eighth and a /48 a quarter, however many addresses and networks they use', async () => {
    const { open, raw, accepted, refused } = await serve(160);
    const from = async (address: string): Promise<Socket> => {
      const socket = await open('127.0.0.200');
      raw.isFrom(accepted.at(-1) as Socket, address);
      return socket;
    };
    const other = await from('2001:db8:2:1::1');
    const own: Socket[] = [];
    for (let at = 0; at < 21; at++) own.push(await from(`2001:db8:1:1::${at + 1}`));
    await isGone(own[0] as Socket);
    expect(refused.splice(0)).toEqual(['connections-of-address 2001:db8:1:1::1']);
    // Twenty of the first network stay: there is room for as many of others.
    for (let at = 2; at < 24; at++) own.push(await from(`2001:db8:1:${at}::1`));
    await Promise.all(own.slice(1, 3).map(isGone));
    expect(refused).toEqual([2, 3].map((at) => `connections-of-network 2001:db8:1:1::${at}`));
    expect([other, ...own.slice(3)].filter(({ closed }) => closed)).toEqual([]);
  });

  test('behind a balancer, the limits are those of the address that it names', async () => {
    const { open, refused } = await serve(160);
    const own = await many(40, () => open('127.0.0.200'));
    expect([refused, own.some(({ closed }) => closed)]).toEqual([[], false]);
  });
});

test('a connection ends when its peer takes less than 64 KiB of an answer in a minute', async () => {
  const { openTls, raw, later, refused } = await serve(16);
  const { socket } = await openTls('127.0.0.1');
  socket.pause();
  socket.write('GET / HTTP/1.1\r\nHost: here\r\n\r\n');
  // Until the kernel is full.
  await until(() => {
    raw.sweep();
    later(59_000);
    raw.sweep();
    later(2_000);
    raw.sweep();
    return refused.length > 0;
  });
  expect(refused).toEqual(['unread-answer 127.0.0.1']);
  await isGone(socket);
});

test('of requests that are sent without waiting, the next one is begun when the answer before has been sent', async () => {
  const begun: string[] = [];
  const listener = createListener({
    ...{ tls: { pairs: [pair], clientAuthorities: undefined }, maxConnections: 16, trustedProxies: [] },
    holdNew: core.holdNewConnections,
    handle: ({ url = '' }, outgoing) => {
      begun.push(url);
      outgoing.end(Buffer.alloc(url === '/large' ? 32 << 20 : 1));
    },
  });
  ends.push(() => listener.close(0));
  const port = await listener.listen('127.0.0.1', 0);
  const open = async () => {
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] });
    socket.on('error', () => undefined);
    ends.push(() => socket.destroy());
    await once(socket, 'secureConnect');
    return socket.pause();
  };
  const request = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: here\r\n\r\n`;
  const unread = await open();
  unread.write(request('/large') + request('/second') + request('/third'));
  await until(() => begun.length > 0);
  // Another connection shows that the service had time for them.
  const other = await open();
  for (const path of ['/a', '/b', '/c']) {
    other.write(request(path));
    other.resume();
    await until(() => begun.includes(path));
  }
  expect(begun).toEqual(['/large', '/a', '/b', '/c']);
  unread.resume();
  await until(() => begun.includes('/third'));
  const many = await open();
  many.write(request('/large') + request('/too many').replace(' many', '').repeat(200));
  await isGone(many);
});

test('over HTTP/2, an answer that takes longer than a request may take to come is sent, as over HTTP/1', async () => {
  const requestMs = 50;
  const listener = createListener({
    tls: { pairs: [pair], clientAuthorities: undefined },
    maxConnections: 10,
    trustedProxies: [],
    holdNew: core.holdNewConnections,
    requestMs,
    handle: (_, outgoing) => {
      setTimeout(() => outgoing.end('late'), requestMs * 8);
    },
  });
  const port = await listener.listen('127.0.0.1', 0);
  ends.push(() => listener.close(0));
  const session = connectHttp2(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
  ends.push(() => session.destroy());
  const stream = session.request({ ':path': '/' });
  let text = '';
  stream.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  await once(stream, 'end');
  expect(text).toBe('late');
});

test('a peer that leaves in the middle of a request over HTTP/2 leaves no session behind', async () => {
  const kinds = new Set<object>();
  const listener = createListener({
    ...{ tls: { pairs: [pair], clientAuthorities: undefined }, maxConnections: 256, trustedProxies: [] },
    holdNew: core.holdNewConnections,
    handle: (incoming, outgoing) => {
      const { stream } = incoming as unknown as { readonly stream: ServerHttp2Stream };
      kinds.add(stream.session?.constructor ?? {});
      incoming.resume().once('end', () => outgoing.end('here'));
    },
  });
  ends.push(() => listener.close(0));
  const port = await listener.listen('127.0.0.1', 0);
  const headers = headerBlock([
    [':method', 'POST'],
    [':scheme', 'https'],
    [':authority', 'here'],
    [':path', '/'],
  ]);
  const padded = frame(frameTypes.data, flags.padded, 1, Buffer.concat([Buffer.from([200]), Buffer.alloc(10_000)]));
  const abort = async (): Promise<void> => {
    const raw = connect(port, '127.0.0.1').on('error', () => undefined);
    const socket = connectTls({ socket: raw, rejectUnauthorized: false, ALPNProtocols: ['h2'] });
    socket.on('error', () => undefined);
    await once(socket, 'secureConnect');
    socket.write(Buffer.concat([Buffer.from(preface), frame(frameTypes.settings, 0, 0)]));
    socket.write(frame(frameTypes.headers, flags.endHeaders, 1, headers));
    await new Promise<void>((resolve) => socket.write(Buffer.concat([padded, padded]), () => resolve()));
    socket.destroy();
  };
  for (let round = 0; round < 10; round += 1) await Promise.all(Array.from({ length: 4 }, abort));
  await until(() => kinds.size === 1);
  const [kind] = kinds as ReadonlySet<() => void>;
  // Collects first. Node may keep the last one for a moment.
  await until(() => queryObjects(kind ?? (() => undefined), { format: 'count' }) <= 1);
});

describe('a stop loses no request that is under way', () => {
  const start = async () => {
    const listener = createListener({
      tls: { pairs: [pair], clientAuthorities: undefined },
      maxConnections: 10,
      trustedProxies: [],
      holdNew: core.holdNewConnections,
      handle: (_, outgoing) => outgoing.end('here'),
    });
    const port = await listener.listen('127.0.0.1', 0);
    ends.push(() => listener.close(0));
    const open = () => {
      const session = connectHttp2(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
      ends.push(() => session.destroy());
      return session;
    };
    return { listener, port, open };
  };
  const ask = async (session: ClientHttp2Session): Promise<string> => {
    const stream = session.request({ ':path': '/' });
    let text = '';
    stream.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    await once(stream, 'end');
    return text;
  };

  test('over HTTP/2, of a client that has not seen yet that the session ends', async () => {
    const { listener, open } = await start();
    const session = open();
    expect(await ask(session)).toBe('here');
    const closed = listener.close(60_000);
    const answer = ask(session);
    expect(await answer).toBe('here');
    await closed;
  });

  test('over HTTP/2, the first one of a session that has just begun', async () => {
    const { listener, open } = await start();
    const session = open();
    await once(session, 'remoteSettings');
    const closed = listener.close(60_000);
    expect(await ask(session)).toBe('here');
    await closed;
  });

  test('over HTTP/2, the first one behind a handshake that had begun', async () => {
    const { listener, port } = await start();
    const socket = connect({ port, host: '127.0.0.1' });
    await once(socket, 'connect');
    const closed = listener.close(60_000);
    const session = connectHttp2(`https://127.0.0.1:${port}`, {
      createConnection: () =>
        connectTls({ socket, rejectUnauthorized: false, ALPNProtocols: ['h2'], servername: 'localhost' }),
    });
    ends.push(() => session.destroy());
    expect(await ask(session)).toBe('here');
    await closed;
  });

  test('over HTTP/1, of a client that has not seen yet that the connection ends', async () => {
    const { listener, port } = await start();
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] });
    ends.push(() => socket.destroy());
    await once(socket, 'secureConnect');
    let text = '';
    socket.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    const send = (): void => void socket.write('GET / HTTP/1.1\r\nHost: here\r\n\r\n');
    send();
    await until(() => text.endsWith('here'));
    expect(text).not.toMatch(/connection: close/i);
    text = '';
    const closed = listener.close(60_000);
    send();
    await isGone(socket);
    expect(text).toMatch(/connection: close.*here$/is);
    await closed;
  });

  test('a connection that the system has accepted is answered; a later one is refused, and never reset', async () => {
    const { listener, port } = await start();
    const connections: Promise<string>[] = [];
    const begin = (): void => {
      const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] });
      ends.push(() => socket.destroy());
      let text = '';
      socket.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      socket.once('secureConnect', () => socket.write('GET / HTTP/1.1\r\nHost: here\r\n\r\n'));
      const ended = new Promise<string>((resolve) => {
        socket.once('error', ({ message }) => resolve(message.split(' ').slice(0, 2).join(' ')));
        socket.once('close', () => resolve(text.slice(-4)));
      });
      connections.push(ended);
    };
    begin();
    // Node connects a turn later.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    // Right after the turn in which the listener asks the system.
    setImmediate(begin);
    const closed = listener.close(60_000);
    begin();
    setImmediate(begin);
    await closed;
    const outcomes = await Promise.all(connections);
    expect(outcomes.filter((outcome) => outcome !== 'here' && outcome !== 'connect ECONNREFUSED')).toEqual([]);
    expect(outcomes).toContain('here');
    expect(outcomes).toContain('connect ECONNREFUSED');
  });

  test('connections that wait in the queue of a busy process are taken, all of them, and answered', async () => {
    const { listener, port } = await start();
    const sockets = Array.from({ length: 6 }, () => connect({ port, host: '127.0.0.1' }));
    // Node connects a turn later; the system accepts while this process is busy, or refuses.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    const closed = listener.close(60_000);
    const busyUntil = performance.now() + 300;
    while (performance.now() < busyUntil);
    const outcomes = await Promise.all(
      sockets.map(async (socket) => {
        const over = connectTls({ socket, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] });
        ends.push(() => over.destroy());
        let text = '';
        over.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        over.once('secureConnect', () => over.write('GET / HTTP/1.1\r\nHost: here\r\n\r\n'));
        return new Promise<string>((resolve) => {
          for (const each of [socket, over]) each.once('error', ({ message }) => resolve(message));
          over.once('close', () => resolve(text.slice(-4)));
        });
      }),
    );
    await closed;
    const isRight = (outcome: string): boolean => outcome === 'here' || outcome.startsWith('connect ECONNREFUSED');
    expect(outcomes.filter((outcome) => !isRight(outcome))).toEqual([]);
  });

  test('and waits for nothing else: idle sessions and connections end', async () => {
    const { listener, port, open } = await start();
    const used = open();
    await ask(used);
    const unused = open();
    await once(unused, 'remoteSettings');
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] });
    await once(socket, 'secureConnect');
    socket.write('GET / HTTP/1.1\r\nHost: here\r\n\r\n');
    await once(socket, 'data');
    await Promise.all([
      listener.close(60_000),
      ...[used, unused].map((session) => once(session, 'close')),
      isGone(socket),
    ]);
  });
});

test('refusals are counted, and reported at once, then once a minute with the addresses', () => {
  const lines: LimitReport[] = [];
  const minutes: (() => void)[] = [];
  const { refused, totals } = createLimitRefusals(
    (line) => lines.push(line),
    (done) => minutes.push(done),
  );
  for (const address of ['::1', '10.0.0.1', '10.0.0.2', '10.0.0.1', null]) refused('connections', address);
  expect(lines).toEqual([{ limit: 'connections', refused: 1, from: ['::1 (1)'] }]);
  minutes.shift()?.();
  expect(lines[1]).toEqual({
    limit: 'connections',
    refused: 4,
    from: ['10.0.0.1 (2)', '10.0.0.2 (1)', 'unknown (1)'],
  });
  // A minute without any ends the count, and the next one is reported at once.
  minutes.shift()?.();
  refused('connections', '::2');
  expect(lines[2]).toEqual({ limit: 'connections', refused: 1, from: ['::2 (1)'] });
  expect(totals()).toMatchObject({ connections: 6, 'unread-answer': 0 });
});

describe('a request that takes longer to come than a request may', () => {
  const requestMs = 300;
  /** Says how many bytes came. Paths with `file` bring one. */
  const open = async (): Promise<number> => {
    const listener = createListener({
      tls: { pairs: [pair], clientAuthorities: undefined },
      maxConnections: 10,
      trustedProxies: [],
      holdNew: core.holdNewConnections,
      requestMs,
      handle: (incoming, outgoing) => {
        if (incoming.url === '/file') markUpload(incoming);
        let size = 0;
        incoming.on('data', (piece: Buffer) => {
          size += piece.length;
        });
        incoming.on('end', () => outgoing.end(String(size)));
      },
    });
    ends.push(() => listener.close(0));
    return listener.listen('127.0.0.1', 0);
  };
  /** In pieces, for several times as long as a request may take. */
  async function* pieces(bytes: number): AsyncGenerator<Buffer> {
    for (let at = 0; at < 60; at += 1) {
      await new Promise((resolve) => setTimeout(resolve, requestMs / 10));
      yield Buffer.alloc(bytes);
    }
  }
  const overHttp1 = async (path: string, bytes: number): Promise<string> => {
    const sent = request({ host: '127.0.0.1', port: await open(), path, method: 'POST', rejectUnauthorized: false });
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
    pipeline(pieces(bytes), sent).catch(() => undefined);
    const [answer] = await answered;
    return `${answer.statusCode} ${(await answer.toArray()).join('').slice(0, 20)}`;
  };
  const overHttp2 = async (path: string, bytes: number): Promise<string> => {
    const session = connectHttp2(`https://127.0.0.1:${await open()}`, { rejectUnauthorized: false });
    ends.push(() => session.destroy());
    const stream = session.request({ ':path': path, ':method': 'POST' });
    pipeline(pieces(bytes), stream).catch(() => undefined);
    const text = await stream
      .setEncoding('utf8')
      .toArray()
      .catch(() => []);
    return `${stream.rstCode} ${text.join('')}`;
  };

  test('comes completely when it brings a file, as long as bytes come', async () => {
    expect(await Promise.all([overHttp1('/file', 65_536), overHttp2('/file', 65_536)])).toEqual([
      `200 ${60 * 65_536}`,
      `0 ${60 * 65_536}`,
    ]);
  });

  test('is ended otherwise, although it is never silent, and so is a file that drips', async () => {
    expect(await Promise.all([overHttp1('/', 100), overHttp1('/file', 1)])).toEqual([
      expect.stringMatching(/^408 /),
      expect.stringMatching(/^408 /),
    ]);
    expect(await Promise.all([overHttp2('/', 100), overHttp2('/file', 1)])).toEqual(['8 ', '8 ']);
  });

  test('is a refusal with its reason in the command, also while its file is sent', async () => {
    const client = openClient({
      url: `https://127.0.0.1:${await open()}`,
      ca: Buffer.from(authority.pem),
      credential: () => ({}),
      tenant: undefined,
      timeoutMs: undefined,
    });
    const route = { method: 'post', path: '/file', takes: 'application/octet-stream' } as const;
    await expect(client.upload(route, {}, Readable.from(pieces(1)), 60)).rejects.toMatchObject({
      message: 'the request did not arrive in time',
      hint: expect.stringContaining('repeat') as unknown,
    });
  });
});

test('connections of a balancer that are reset while they wait for their turn end nothing but themselves', async () => {
  const listener = createListener({
    ...{ tls: { pairs: [pair], clientAuthorities: undefined }, maxConnections: 256, trustedProxies: ['127.0.0.1'] },
    holdNew: core.holdNewConnections,
    handle: (_incoming, outgoing) => void outgoing.end('here'),
  });
  ends.push(() => listener.close(0));
  const port = await listener.listen('127.0.0.1', 0);
  const header = proxyHeader('192.0.2.7');
  const openAndReset = async (): Promise<void> => {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    await once(socket, 'connect');
    socket.write(Buffer.concat([header, Buffer.from('1603010200', 'hex')]));
    // A turn later the peer is known, and the socket waits or has begun.
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    socket.resetAndDestroy();
  };
  // An error without a listener would be an uncaught exception of this process.
  for (let round = 0; round < 10; round += 1) await Promise.all(Array.from({ length: 60 }, openAndReset));
  const raw = connect(port, '127.0.0.1');
  await once(raw, 'connect');
  raw.write(header);
  const socket = connectTls({ socket: raw, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] });
  ends.push(() => socket.destroy());
  await once(socket, 'secureConnect');
  socket.write('GET / HTTP/1.1\r\nHost: here\r\n\r\n');
  expect(String((await once(socket, 'data'))[0])).toContain('200 OK');
});
