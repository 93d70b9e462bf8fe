// Each kind of refusal of the one limiter, at a real server: the client learns what it needs
// (Retry-After, GOAWAY, the end of the connection), and the operator gets a count in the metrics
// and a line in the log with the address. The rows are the kinds: a new one needs a row.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { Agent, request } from 'node:https';
import { connect, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type LimitName, limitNames } from '../../server/base/limit-refusals.ts';
import type { RegisteredApplication } from '../../server/contract/api/tde-applications-routes.ts';
import { envelopeType, instanceText, packEnvelope, tdeRoutes } from '../../server/contract/tde.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { until } from '../support/host.ts';
import { instance, masterKey } from '../support/open-service.ts';
import { type Site, startSite } from '../support/site.ts';
import { createXksEndpoint } from '../support/xks-call.ts';
import { callXks, requestMetadata } from '../support/xks-client.ts';

/** A quarter is an address's, a network's or a caller's, three quarters are all strangers'. */
const places = 64;
const balancer = '127.0.0.3';
let site: Site;
let unread: { readonly socket: TLSSocket; readonly ended: Promise<unknown> };
const ends: (() => unknown)[] = [];

beforeAll(async () => {
  site = await startSite({
    toml: `trusted_proxies = ["${balancer}"]\n[limits]\nconnections = ${places}\n`,
  });
  // An answer may be unread for a minute: this row begins first and is awaited last.
  const socket = (await openTls('127.0.0.8')).pause();
  // The caller has authenticated and waits, so no other row makes the server close its connection.
  const head = (path: string) => `GET ${path} HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer ${site.token}\r\n\r\n`;
  socket.write(`${head('/api/vaults')}${head('/api/openapi.json').repeat(50)}`);
  unread = { socket, ended: once(socket, 'close') };
});
afterEach(() => {
  for (const end of ends.splice(0)) end();
});
afterAll(() => site.end());

/** A header of the PROXY protocol, version 2, that names an IPv6 address. */
const proxyHeader = (address: readonly [network: number, subnet: number]): Buffer => {
  const peer = Buffer.from('20010db8000000000000000000000001', 'hex');
  peer.writeUInt16BE(address[0], 4);
  peer.writeUInt16BE(address[1], 6);
  const own = Buffer.from('00000000000000000000ffff7f000001', 'hex');
  return Buffer.concat([
    Buffer.from('0d0a0d0a000d0a515549540a21210024', 'hex'),
    ...[peer, own, Buffer.from([0x80, 0x00, 0x01, 0xbb])],
  ]);
};
const openSocket = async (localAddress: string): Promise<Socket> => {
  const socket = connect({ port: site.server.port, host: '127.0.0.1', localAddress });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
};
const openTls = async (localAddress: string, proxied?: Buffer): Promise<TLSSocket> => {
  const socket = await openSocket(localAddress);
  if (proxied !== undefined) socket.write(proxied);
  const secured = connectTls({ socket, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] });
  secured.on('error', () => undefined);
  socket.once('close', () => secured.destroy());
  await once(secured, 'secureConnect');
  return secured;
};
/** One that has made a request may be idle for minutes. */
const openIdle = async (localAddress: string, proxied?: Buffer): Promise<TLSSocket> => {
  const socket = await openTls(localAddress, proxied);
  socket.write('GET /health HTTP/1.1\r\nHost: here\r\n\r\n');
  await Promise.race([once(socket, 'data'), once(socket, 'close')]);
  return socket;
};
const kept = (socket: Socket): Socket => {
  ends.push(() => socket.destroy());
  return socket;
};

interface Answered {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}
/** One request over a connection of its own; the answer's body is read unless it is an export's. */
const ask = async (
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: Uint8Array | string = '',
  reads = true,
): Promise<Answered> => {
  const sent = request(new URL(path, site.server.url), {
    ...{ method, headers, agent: new Agent(), ca: readFileSync(site.server.caFile) },
  });
  ends.push(() => sent.destroy());
  const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
  sent.on('error', () => undefined);
  sent.end(body);
  const [answer] = await answered;
  const text = reads ? String(Buffer.concat(await answer.toArray())) : '';
  return { status: answer.statusCode ?? 0, headers: answer.headers, text };
};
const openHttp2 = (localAddress: string): ClientHttp2Session => {
  const session = connectHttp2(site.server.url, { ca: readFileSync(site.server.caFile), localAddress } as object);
  session.on('error', () => undefined);
  ends.push(() => session.destroy());
  return session;
};
const bearer = () => ({ authorization: `Bearer ${site.token}` });
const json = { 'content-type': 'application/json' };

/**
 * Asks so many times at once, again and again, until one answer is a refusal; others are not
 * awaited.
 */
const untilRefused = async (atOnce: number, one: () => Promise<Answered>): Promise<Answered> => {
  const refusalOf = async (asked: Promise<Answered>): Promise<Answered> => {
    const answer = await asked;
    if (answer.status !== 429) throw new Error(`the answer is ${answer.status}`);
    return answer;
  };
  for (;;) {
    const asked = Array.from({ length: atOnce }, () => refusalOf(one()));
    const refused = await Promise.any(asked).catch(() => undefined);
    if (refused !== undefined) return refused;
  }
};
/** The client does as Retry-After says. */
const says = ({ headers }: Answered): void => expect(Number(headers['retry-after'])).toBeGreaterThan(0);

/** Connections of strangers, until one of them gives way: it ends, and the others stay. */
const untilOneGivesWay = async (open: (at: number) => Promise<Socket>): Promise<void> => {
  let ended = 0;
  for (let at = 0; at <= places && ended === 0; at += 1) {
    const socket = kept(await open(at)).resume();
    const count = (): void => {
      ended += 1;
    };
    if (socket.destroyed) count();
    else socket.once('close', count);
  }
  await until('one to give way', async () => (ended > 0 ? true : undefined));
};

const countOf = async (limit: LimitName): Promise<number> => {
  // From the host itself, without a token.
  const { text } = await ask('GET', '/metrics', {});
  return Number(new RegExp(`^dke_limit_refusals_total\\{limit="${limit}"\\} (\\d+)`, 'm').exec(text)?.[1]);
};
const rows: Readonly<Record<LimitName, () => Promise<void>>> = {
  'sign-ins': async () => {
    const one = () => ask('POST', '/api/session', json, '{"user":"admin","password":"wrong"}');
    says(await untilRefused(4, one));
  },
  exports: async () => says(await untilRefused(6, () => ask('GET', '/api/audit/export', bearer(), '', false))),
  diagnoses: async () => {
    const { endpoint } = await createXksEndpoint({ api: site.api, server: site.server }, 'diagnosed');
    const path = `/api/endpoints/${endpoint.id}/diagnostics`;
    says(await untilRefused(4, () => ask('POST', path, { ...bearer(), ...json }, '{}')));
  },
  'tde-requests': async () => {
    const { accessGuid, application }: RegisteredApplication = await registerApplication(
      site.api,
      'many keys',
      await createGroup(site.api, 'many keys'),
    );
    const headers = {
      authorization: `Bearer ${accessGuid}`,
      'content-type': envelopeType,
      'x-dke-instance': instanceText(instance),
      'x-request-id': 'pairs',
    };
    const half = { ...masterKey('pair'), algorithm: 'rsa', bits: 2048 } as const;
    const privateKey = { ...half, class: 'private-key', usages: ['sign'] } as const;
    const path = `/tde/v1/${accessGuid}/${application.appId}${tdeRoutes.generateKeyPair.path}`;
    // One runs and sixteen wait.
    let session = openHttp2('127.0.2.1');
    const one = async (): Promise<Answered> => {
      if (session.closed || session.destroyed) session = openHttp2('127.0.2.1');
      const stream = session.request({ ':method': 'POST', ':path': path, ...headers });
      const answered = once(stream, 'response') as Promise<[IncomingMessage['headers']]>;
      const closed = once(stream, 'close').then(() => Promise.reject(new Error('the stream ended')));
      stream.end(packEnvelope({ privateKey, publicKey: null }));
      const [answer] = await Promise.race([answered, closed]);
      stream.resume();
      closed.catch(() => undefined);
      return { status: Number(answer[':status' as keyof typeof answer]), headers: answer, text: '' };
    };
    says(await untilRefused(24, one));
  },
  'xks-requests': async () => {
    const place = await createXksEndpoint({ api: site.api, server: site.server }, 'limited');
    const { id, keyId, settings } = place.endpoint;
    const rate = { perSecond: 1, burst: 1 };
    await site.api.call('PUT', `/api/endpoints/${id}/settings`, { ...settings, rate });
    const target = `/keys/${keyId}/encrypt`;
    const body = { requestMetadata: requestMetadata(), plaintext: 'AAAA', encryptionAlgorithm: 'AES_GCM' };
    const { configuration } = place;
    const one = async (): Promise<Answered> => ({
      text: '',
      ...((await callXks({ server: site.server, configuration }, { target, body })) as Pick<
        Answered,
        'status' | 'headers'
      >),
    });
    says(await untilRefused(8, one));
  },
  connections: () => untilOneGivesWay((at) => openIdle(balancer, proxyHeader([at + 1, 0]))),
  'connections-of-address': () => untilOneGivesWay(() => openIdle('127.0.0.9')),
  'connections-of-network': () => untilOneGivesWay((at) => openIdle(balancer, proxyHeader([0xffff, at]))),
  'connections-of-caller': async () => {
    let goaways = 0;
    for (let at = 0; goaways === 0; at += 1) {
      const session = openHttp2(`127.0.1.${at + 1}`);
      session.on('goaway', (code) => {
        // Nothing of it failed: the client opens another one.
        expect(code).toBe(0);
        goaways += 1;
      });
      const stream = session.request({ ':path': '/api/vaults', ...bearer() });
      const [answer] = await once(stream, 'response');
      expect((answer as Record<string, unknown>)[':status']).toBe(200);
      await stream.resume().toArray();
    }
  },
  'late-request': async () => {
    const socket = kept(await openTls('127.0.0.10'));
    socket.write('GET /health HTTP/1.1\r\n');
    const [answer] = await once(socket, 'data');
    expect(String(answer)).toMatch(/^HTTP\/1\.1 408 /);
  },
  'unread-answer': async () => {
    await until('the count', async () => ((await countOf('unread-answer')) > 0 ? true : undefined));
    // Who reads nothing sees no end.
    unread.socket.resume();
    await unread.ended;
  },
};

const linesOf = (limit: LimitName): readonly Readonly<Record<string, unknown>>[] =>
  site.server
    .log()
    .split('\n')
    .filter((line) => line.includes('a limit has refused callers'))
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
    .filter((line) => line.limit === limit);

const last: LimitName = 'unread-answer';
test.each([...limitNames.filter((limit) => limit !== last), last])(
  'a refusal is answered as clients expect it, counted, and in the log with the address: %s',
  async (limit) => {
    await rows[limit]();
    for (const end of ends.splice(0)) end();
    await until('the count', async () => ((await countOf(limit)) > 0 ? true : undefined));
    const [line] = await until('the line', async () => {
      const lines = linesOf(limit);
      return lines.length > 0 ? lines : undefined;
    });
    expect(line).toMatchObject({ limit, refused: 1, from: [expect.stringMatching(/^[0-9a-f.:/]+ \(1\)$/)] });
  },
);
