// The listener of the real server: several certificates by name, reloading them, HTTP/2, the PROXY
// protocol, client noise, and a stop that is announced.
import { fork } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { Agent, request } from 'node:https';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import type { EndpointRequest } from '../../server/contract/api/requests-routes.ts';
import { type Authority, type IssuedCertificate, makeAuthority } from '../support/authority.ts';
import { until } from '../support/host.ts';
import { flags, frame, frameTypes, headerBlock, preface } from '../support/raw-http2.ts';
import { type Site, startSite } from '../support/site.ts';
import { sizeOf } from '../support/tiers.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';
import { callXks, callXksOverHttp2, requestMetadata } from '../support/xks-client.ts';

const folder = mkdtempSync(join(tmpdir(), 'dke-listener-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let site: Site | undefined;
const start = async (toml: string): Promise<Site> => {
  site = await startSite({ toml });
  return site;
};
afterEach(async () => {
  await site?.end();
  site = undefined;
});
const health = (): object => ({ requestMetadata: requestMetadata({ kmsOperation: 'KmsHealthCheck' }) });

describe('certificates by name', () => {
  /** The certificate's subject for a caller that requests this name. */
  const subjectFor = (server: { port: number }, servername: string | undefined): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connectTls(
        {
          port: server.port,
          host: '127.0.0.1',
          rejectUnauthorized: false,
          ...(servername === undefined ? {} : { servername }),
        },
        () => {
          resolve(socket.getPeerX509Certificate()?.subject ?? '');
          socket.destroy();
        },
      );
      socket.on('error', reject);
    });
  const place = ({ certificate, key }: IssuedCertificate, name: string): void => {
    copyFileSync(certificate, join(folder, `${name}.crt`));
    copyFileSync(key, join(folder, `${name}.key`));
  };

  test('each name is shown its own, an unknown name the first; both are read again on SIGHUP, and no connection is lost', async () => {
    const authority: Authority = makeAuthority(folder, 'names');
    const server = (commonName: string, names: readonly string[]): IssuedCertificate =>
      authority.issue({ commonName, names, usage: 'serverAuth' });
    place(server('first', ['DNS:localhost', 'IP:127.0.0.1']), 'first');
    place(server('second', ['DNS:keys.example', 'DNS:*.xks.example']), 'second');
    const pair = (name: string): string =>
      `certificate = "${join(folder, `${name}.crt`)}", key = "${join(folder, `${name}.key`)}"`;
    const here = await start(`[tls]\n${pair('first').replace(', ', '\n')}\nadditional = [{ ${pair('second')} }]\n`);
    expect(await subjectFor(here.server, undefined)).toBe('CN=first');
    expect(await subjectFor(here.server, 'localhost')).toBe('CN=first');
    expect(await subjectFor(here.server, 'unknown.example')).toBe('CN=first');
    expect(await subjectFor(here.server, 'keys.example')).toBe('CN=second');
    expect(await subjectFor(here.server, 'KEYS.example')).toBe('CN=second');
    expect(await subjectFor(here.server, 'eu.xks.example')).toBe('CN=second');
    expect(await subjectFor(here.server, 'a.b.xks.example')).toBe('CN=first');

    const open = connectTls({ port: here.server.port, host: '127.0.0.1', rejectUnauthorized: false });
    await once(open, 'secureConnect');
    place(server('third', ['DNS:localhost', 'IP:127.0.0.1']), 'first');
    place(server('fourth', ['DNS:other.example', 'DNS:keys.example']), 'second');
    here.server.child.kill('SIGHUP');
    await expect.poll(() => subjectFor(here.server, 'other.example')).toBe('CN=fourth');
    expect(await subjectFor(here.server, 'eu.xks.example')).toBe('CN=third');
    open.write('GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n');
    const [answer] = (await once(open, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 /);
    open.destroy();
  });
});

describe('HTTP/2', () => {
  test('carries the proxy: signed calls, refusals in JSON', async () => {
    const here = await start('');
    const endpoint = await createXksEndpoint(here, 'two');
    const place = { server: here.server, configuration: endpoint.configuration };
    expect(await callXksOverHttp2(place, { target: '/health', body: health() })).toMatchObject({
      status: 200,
      body: { xksProxyFleetSize: 1 },
    });
    const sealed = await callXksOverHttp2(place, {
      target: `/keys/${endpoint.endpoint.keyId}/encrypt`,
      body: { requestMetadata: requestMetadata(), plaintext: 'AAAA', encryptionAlgorithm: 'AES_GCM' },
    });
    expect(sealed.status).toBe(200);
    expect(
      await callXks(place, {
        target: `/keys/${endpoint.endpoint.keyId}/decrypt`,
        body: { requestMetadata: requestMetadata(), encryptionAlgorithm: 'AES_GCM', ...sealed.body },
      }),
    ).toMatchObject({ status: 200, body: { plaintext: 'AAAA' } });
    expect(
      await callXksOverHttp2(place, { target: '/keys/none/metadata', body: { requestMetadata: requestMetadata() } }),
    ).toMatchObject({ status: 404, body: { errorName: 'KeyNotFoundException' } });
    expect(await callXksOverHttp2(place, { target: '/health', body: {} })).toMatchObject({ status: 200 });
    expect(
      await callXksOverHttp2(place, {
        target: `/keys/${endpoint.endpoint.keyId}/encrypt`,
        body: { requestMetadata: requestMetadata(), plaintext: 'A'.repeat(70_000), encryptionAlgorithm: 'AES_GCM' },
      }),
    ).toMatchObject({ status: 413 });
  });

  test('carries the console, and many requests at once', async () => {
    const here = await start('');
    const session = connectHttp2(here.server.url, { ca: readFileSync(here.server.caFile) });
    const get = (path: string): Promise<{ status: number; text: string }> =>
      new Promise((resolve, reject) => {
        const stream = session.request({ ':path': path, authorization: `Bearer ${here.token}` });
        let status = 0;
        let text = '';
        stream.on('response', (headers) => {
          status = Number(headers[':status']);
        });
        stream.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        stream.on('error', reject).on('end', () => resolve({ status, text }));
      });
    try {
      const answers = await Promise.all(Array.from({ length: 50 }, () => get('/api/status')));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
      expect(await get('/health')).toEqual({ status: 200, text: '{"status":"healthy"}' });
    } finally {
      session.close();
    }
  });
});

describe('the PROXY protocol, version 2', () => {
  const signature = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');
  const header = (command: number, family: number, rest: Buffer): Buffer => {
    const head = Buffer.alloc(4);
    head.writeUInt8(0x20 | command, 0);
    head.writeUInt8(family, 1);
    head.writeUInt16BE(rest.length, 2);
    return Buffer.concat([signature, head, rest]);
  };
  const ports = Buffer.from([0x80, 0x00, 0x01, 0xbb]);
  const ipv4 = Buffer.concat([Buffer.from([203, 0, 113, 7, 192, 0, 2, 1]), ports]);
  const ipv6 = Buffer.concat([Buffer.from('20010db8000000000000000000000042', 'hex'), Buffer.alloc(16, 1), ports]);

  const open = async (server: { port: number }, pieces: readonly Buffer[]): Promise<Socket> => {
    const socket = connect(server.port, '127.0.0.1');
    socket.setNoDelay(true);
    await once(socket, 'connect');
    for (const piece of pieces)
      await new Promise<void>((resolve) => {
        socket.write(piece, () => resolve());
      });
    return socket;
  };
  const callThrough = async (here: Site, endpoint: XksEndpoint, pieces: readonly Buffer[]) =>
    callXks(
      { server: here.server, configuration: endpoint.configuration },
      { target: '/health', body: health(), socket: await open(here.server, pieces), agent: new Agent() },
    );
  const lastPeer = async (here: Site, { endpoint }: XksEndpoint): Promise<string | null | undefined> =>
    (await here.api.call<{ items: EndpointRequest[] }>('GET', `/api/endpoints/${endpoint.id}/requests`)).items[0]?.peer;
  const gone = async (socket: Socket): Promise<Buffer> => {
    const parts: Buffer[] = [];
    socket.on('data', (part: Buffer) => parts.push(part)).on('error', () => undefined);
    if (!socket.destroyed) await once(socket, 'close');
    return Buffer.concat(parts);
  };

  test('names the real peer; a connection without a header, or with a wrong one, is cut off', async () => {
    // The test's own address is 127.0.0.1, so callers without a header use another address.
    const here = await startSite({ toml: 'trusted_proxies = ["127.0.0.2", "10.0.0.0/8", "::1"]\n' });
    site = here;
    const endpoint = await createXksEndpoint(here, 'proxied');
    const fromProxy = async (pieces: readonly Buffer[]): Promise<Socket> => {
      const socket = connect({ port: here.server.port, host: '127.0.0.1', localAddress: '127.0.0.2' });
      await once(socket, 'connect');
      for (const piece of pieces)
        await new Promise<void>((resolve) => {
          socket.write(piece, () => resolve());
        });
      return socket;
    };
    const place = { server: here.server, configuration: endpoint.configuration };
    const through = async (pieces: readonly Buffer[]) =>
      callXks(place, { target: '/health', body: health(), socket: await fromProxy(pieces) });

    expect(await through([header(1, 0x11, ipv4)])).toMatchObject({ status: 200 });
    await expect.poll(() => lastPeer(here, endpoint)).toBe('203.0.113.7');
    const whole = header(1, 0x21, Buffer.concat([ipv6, Buffer.from([0x04, 0x00, 0x02, 0x61, 0x62])]));
    // One byte at a time, the header's extensions included.
    expect(await through([...whole].map((byte) => Buffer.from([byte])))).toMatchObject({ status: 200 });
    await expect.poll(() => lastPeer(here, endpoint)).toBe('2001:db8::42');
    expect(await through([header(0, 0x00, Buffer.alloc(0))])).toMatchObject({ status: 200 });
    await expect.poll(() => lastPeer(here, endpoint)).toBe('127.0.0.2');
    // A mapped address is the IPv4 address: it has the same limits and rules.
    const mapped = Buffer.concat([Buffer.from('00000000000000000000ffffcb007108', 'hex'), ipv6.subarray(16)]);
    expect(await through([header(1, 0x21, mapped)])).toMatchObject({ status: 200 });
    await expect.poll(() => lastPeer(here, endpoint)).toBe('203.0.113.8');

    // From an address that is not trusted: no header is read, so what claims to be one is not TLS.
    expect(await callXks(place, { target: '/health', body: health() })).toMatchObject({ status: 200 });
    await expect(callThrough(here, endpoint, [header(1, 0x11, ipv4)])).rejects.toThrow();

    for (const wrong of [
      Buffer.from('PROXY TCP4 203.0.113.7 192.0.2.1 1 2\r\n'),
      header(1, 0x11, ipv4.subarray(0, 8)),
      header(2, 0x11, ipv4),
      Buffer.concat([signature, Buffer.from([0x11, 0x11, 0x00, 0x00])]),
      header(1, 0x11, Buffer.alloc(3000)),
    ])
      expect(await gone(await fromProxy([wrong]))).toEqual(Buffer.alloc(0));
    await expect(through([])).rejects.toThrow();
    expect(await here.api.send('GET', '/health')).toMatchObject({ status: 200 });
  });
});

describe('a stop', () => {
  test('turns health bad first, then lets running requests end', async () => {
    const here = await start('drain_notice_seconds = 30\n');
    const endpoint = await createXksEndpoint(here, 'draining');
    const place = { server: here.server, configuration: endpoint.configuration };
    const exit = here.server.stop();
    const status = async (): Promise<number> => (await here.api.send('GET', '/health')).status;
    await expect.poll(status).toBe(503);
    expect(await callXks(place, { target: '/health', body: health() })).toMatchObject({
      status: 503,
      body: { errorName: 'DependencyTimeoutException' },
    });
    // Work continues: new connections are accepted, keys are used.
    expect(
      await callXks(place, {
        target: `/keys/${endpoint.endpoint.keyId}/encrypt`,
        body: { requestMetadata: requestMetadata(), plaintext: 'AAAA', encryptionAlgorithm: 'AES_GCM' },
      }),
    ).toMatchObject({ status: 200 });
    here.server.child.kill('SIGTERM');
    expect(await exit).toBe(0);
  });
});

test('the service releases connections whose uploads end abruptly, whatever the frame was, and none of them delays a stop', async () => {
  const here = await start('');
  const open = (): number =>
    readdirSync(`/proc/${here.server.child.pid}/fd`).filter((name) => {
      try {
        return readlinkSync(`/proc/${here.server.child.pid}/fd/${name}`).startsWith('socket:');
      } catch {
        return false;
      }
    }).length;
  await here.api.send('GET', '/health');
  const before = open();
  const head = frame(
    frameTypes.headers,
    flags.endHeaders,
    1,
    headerBlock([
      [':method', 'POST'],
      [':scheme', 'https'],
      [':authority', 'edge'],
      [':path', '/api/vaults'],
    ]),
  );
  const bytes = (length: number, pad: number) => Buffer.concat([Buffer.from([pad]), Buffer.alloc(length, 0x20)]);
  const padded = (length: number, pad: number, flag = 0) =>
    frame(frameTypes.data, flags.padded | flag, 1, bytes(length, pad));
  const kinds: readonly Buffer[] = [
    head.subarray(0, 12),
    head,
    Buffer.concat([head, frame(frameTypes.data, 0, 1, Buffer.alloc(16_384, 0x20))]),
    Buffer.concat([head, padded(16_383, 255), padded(16_383, 255)]),
    Buffer.concat([head, padded(16_383, 200).subarray(0, 8_000)]),
    Buffer.concat([head, padded(255, 255)]),
    Buffer.concat([head, padded(120, 20, flags.endStream)]),
    Buffer.concat([head, padded(10, 255)]),
  ];
  const abort = async (kind: Buffer, resets: boolean): Promise<void> => {
    const raw = connect(here.server.port, '127.0.0.1');
    raw.on('error', () => undefined);
    await once(raw, 'connect');
    const socket = connectTls({ socket: raw, rejectUnauthorized: false, ALPNProtocols: ['h2'] });
    socket.on('error', () => undefined);
    await once(socket, 'secureConnect');
    await new Promise<void>((resolve) => {
      socket.write(Buffer.concat([Buffer.from(preface), frame(frameTypes.settings, 0, 0), kind]), () => resolve());
    });
    if (resets) raw.resetAndDestroy();
    else raw.destroy();
  };
  for (const kind of kinds)
    for (let made = 0; made < sizeOf('aborted uploads'); made += 8)
      await Promise.all(Array.from({ length: 8 }, (_, at) => abort(kind, at % 2 === 0)));
  // What is left is found when its request is overdue.
  await until('the connections to be released', async () => (open() <= before + 4 ? true : undefined));
  for (const kind of kinds) await abort(kind, true);
  expect(await here.server.stop()).toBe(0);
});

test('signals of Node itself open no inspector and end nothing', async () => {
  const here = await start('');
  for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) here.server.child.kill(signal);
  expect((await here.api.send('GET', '/health')).status).toBe(200);
  expect(here.server.output()).not.toMatch('Debugger');
  expect(await here.server.stop()).toBe(0);
  const socket = join(folder, 'agent.sock');
  const agent = fork(join(import.meta.dirname, '../../provider/agent/threads/main.ts'), ['--socket', socket], {
    silent: true,
  });
  let printed = '';
  agent.stderr?.on('data', (text) => {
    printed += String(text);
  });
  const ended = once(agent, 'exit');
  await once(agent, 'message');
  for (const signal of ['SIGUSR1', 'SIGUSR2', 'SIGTERM'] as const) agent.kill(signal);
  expect([await ended, printed]).toEqual([[0, null], '']);
  // From the first instruction on: what is installed starts with Node's own switch.
  for (const file of ['provider/module/dke-agent.in', 'provider/packaging/stage.ts', 'server/packaging/image-command'])
    expect(readFileSync(join(import.meta.dirname, '../..', file), 'utf8')).toContain('--disable-sigusr1');
});

/** The certificate that a new connection is shown. */
const servedBy = (here: Site): Promise<X509Certificate | undefined> =>
  new Promise((resolve, reject) => {
    const sent = request(`${here.server.url}/health`, { rejectUnauthorized: false, agent: false }, (answer) => {
      answer.resume();
      resolve((answer.socket as import('node:tls').TLSSocket).getPeerX509Certificate());
    });
    sent.on('error', reject).end();
  });

test('SIGHUP replaces a certificate by a better one only, unless it is forced; the log names both', async () => {
  const authority = makeAuthority(folder, 'renewals');
  const issuing = authority.below('renewals issuing');
  const names = ['IP:127.0.0.1', 'DNS:localhost'];
  const issue = (change: Partial<Parameters<typeof issuing.issue>[0]> = {}) =>
    issuing.issue({ commonName: 'keys', names, usage: 'serverAuth', ...change });
  const [certificate, key] = [join(folder, 'renewed.crt'), join(folder, 'renewed.key')];
  const install = (made: { readonly certificate: string; readonly key: string }, chain?: string): void => {
    writeFileSync(certificate, chain ?? readFileSync(made.certificate, 'utf8'));
    copyFileSync(made.key, key);
    chmodSync(key, 0o600);
  };
  const first = issue();
  install(first);
  const here = await start(`[tls]\ncertificate = "${certificate}"\nkey = "${key}"\n`);
  const fingerprint = new X509Certificate(readFileSync(first.certificate)).fingerprint256;
  expect(here.server.log()).toContain(fingerprint);
  const renew = async (said: string): Promise<void> => {
    here.server.child.kill('SIGHUP');
    await expect.poll(() => here.server.log()).toContain(said);
  };
  const blocksOf = (path: string): readonly string[] =>
    readFileSync(path, 'utf8').match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----\n/g) ?? [];

  const expired = issue({ notBefore: '20250101000000Z', notAfter: '20250201000000Z' });
  install(expired);
  await renew('it expired on 2025-02-01');
  const early = issue({ notBefore: '20980101000000Z', notAfter: '20990101000000Z' });
  install(early);
  await renew('it is not valid before 2098-01-01');
  const foreign = issue({ names: ['DNS:other.example'] });
  install(foreign);
  await renew('it is not for 127.0.0.1, localhost');
  const second = issue();
  const [own = '', issuer = ''] = blocksOf(second.certificate);
  install(second, own);
  await renew('CN=renewals issuing is missing');
  install(second, issuer + own);
  await renew('the chain is in the wrong order: put the server');
  install(second, own + authority.pem + issuer);
  await renew('certificate 2 is not the issuer of certificate 1');
  install(second);
  chmodSync(key, 0o644);
  await renew('it must have mode 600 or 400');
  expect((await servedBy(here))?.fingerprint256).toBe(fingerprint);

  chmodSync(key, 0o600);
  await renew(new X509Certificate(own).fingerprint256);
  await expect.poll(async () => (await servedBy(here))?.raw.equals(new X509Certificate(own).raw)).toBe(true);

  // Accepted, because the operator may have informed the clients; with a notification, because the
  // operator may have forgotten them.
  const elsewhere = makeAuthority(folder, 'renewals of another');
  const moved = elsewhere.issue({ commonName: 'keys', names, usage: 'serverAuth' });
  const [movedOwn = ''] = blocksOf(moved.certificate);
  install(moved, movedOwn + elsewhere.pem);
  await renew('the certificate has another issuer than the one before');
  await expect.poll(async () => (await servedBy(here))?.raw.equals(new X509Certificate(movedOwn).raw)).toBe(true);
  const warned = here.server
    .log()
    .split('\n')
    .find((line) => line.includes('the certificate has another issuer than the one before'));
  expect(JSON.parse(warned ?? '{}')).toMatchObject({
    level: 40,
    fingerprint: new X509Certificate(movedOwn).fingerprint256,
    reason: expect.stringContaining('the one before by CN=renewals: clients that trust only the issuer before'),
  });

  install(expired);
  writeFileSync(join(here.server.dataDirectory, 'force-certificate'), '');
  await renew('force-certificate was found');
  await expect.poll(async () => (await servedBy(here))?.validTo).toContain('2025');
  expect(existsSync(join(here.server.dataDirectory, 'force-certificate'))).toBe(false);
  expect(here.server.log()).toContain('serving a certificate that clients may refuse');
});

test('a certificate that does not fit its key changes nothing at SIGHUP', async () => {
  const authority = makeAuthority(folder, 'unfit');
  const good = authority.issue({ commonName: 'good', names: ['IP:127.0.0.1'], usage: 'serverAuth' });
  const other = authority.issue({ commonName: 'other', usage: 'serverAuth' });
  const certificate = join(folder, 'unfit.crt');
  copyFileSync(good.certificate, certificate);
  const here = await start(`[tls]\ncertificate = "${certificate}"\nkey = "${good.key}"\n`);
  copyFileSync(other.certificate, certificate);
  here.server.child.kill('SIGHUP');
  await expect.poll(() => here.server.log()).toContain('the old one stays');
  expect((await servedBy(here))?.subject).toBe('CN=good');
  expect(new X509Certificate(readFileSync(good.certificate)).subject).toBe('CN=good');
});
