// Forwarding of the audit log: to a file, to rsyslog over TLS, to an HTTPS collector. A sink gets
// complete records in order; records for an unreachable sink wait; no sink delays the service.

import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { connect, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openFileSink } from '../../server/adapters/sinks/file.ts';
import { openSyslogSink } from '../../server/adapters/sinks/syslog.ts';
import { parseVerifierKey } from '../../server/base/checkpoint.ts';
import { replaceFile } from '../../server/base/durable-files.ts';
import { leafHash } from '../../server/base/merkle-tree.ts';
import { toRfc3339 } from '../../server/base/time.ts';
import { verifyAuditLog } from '../../server/cli/verify/audit-export.ts';
import type { LogItem } from '../../server/ports/log-sink.ts';
import { type Authority, makeAuthority } from '../support/authority.ts';
import { freePort, startDaemon } from '../support/daemon.ts';
import { until } from '../support/host.ts';
import { administrator, type OpenedService, openTestService } from '../support/open-service.ts';
import { onSqlite } from '../support/test-store.ts';
import { installed } from '../support/tools.ts';

let folder: string;
let authority: Authority;
let other: Authority;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'dke-sinks-'));
  authority = makeAuthority(folder, 'collectors');
  other = makeAuthority(folder, 'another authority');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const base = '[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n';
const open = (sinks: string, data?: string, stopGrace?: () => number): Promise<OpenedService> =>
  openTestService({
    toml: `${base}${sinks}`,
    ...(data === undefined ? {} : { folder: data }),
    ...(stopGrace === undefined ? {} : { stopGrace }),
  });
/**
 * Its stop waits for the sink as long as it takes: what the sink has afterwards is not a question
 * of speed.
 */
const openPatiently = (sinks: string, data?: string): Promise<OpenedService> => open(sinks, data, () => 600_000);
const createVaults = async ({ operations }: OpenedService, ...names: readonly string[]): Promise<void> => {
  for (const name of names) await operations.vaults.create(administrator, { name });
};
/** Waits until the sink has everything; answers how many records that is. */
const delivered = ({ operations }: OpenedService): Promise<number> =>
  until('delivery to every sink', async () => {
    const sinks = await operations.audit.sinks(administrator);
    return sinks.every(({ lag, failure }) => lag === 0 && failure === null) ? sinks[0]?.forwarded : undefined;
  });
const failing = ({ operations }: OpenedService): Promise<string> =>
  until('a failing sink', async () => (await operations.audit.sinks(administrator))[0]?.failure?.message);
const recordsOf = (texts: readonly string[]): number[] =>
  texts.flatMap((text) => (JSON.parse(text) as { sequence?: number }).sequence ?? []);
const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1);

const listen = async (server: Server, port = 0): Promise<number> => {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
};
const collectorFiles = (from: Authority) => {
  const { certificate, key } = from.issue({ commonName: 'collector', names: ['IP:127.0.0.1'], usage: 'serverAuth' });
  return { cert: readFileSync(certificate), key: readFileSync(key) };
};

describe('a file', () => {
  const linesOf = (path: string): string[] =>
    existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n').filter(Boolean) : [];
  const sinkTo = (path: string): string => `[[audit.sinks]]\nname = "f"\ntype = "file"\npath = "${path}"\n`;

  test('contains the same as an export: it verifies, also after restarts and a truncated line', async () => {
    const path = join(folder, 'audit.ndjson');
    const first = await openPatiently(sinkTo(path));
    await createVaults(first, 'one', 'two');
    const { verifierKey } = await first.operations.audit.log();
    await first.stop();
    // The end of the service is in it, with a checkpoint behind it.
    expect(linesOf(path).at(-1)).toMatch(/^\{"checkpoint"/);
    expect(linesOf(path).at(-2)).toContain('"service.stopped"');
    appendFileSync(path, '{"actorId":"cut of');
    const second = await openPatiently(sinkTo(path), first.folder);
    await createVaults(second, 'three');
    await second.stop();
    const verifier = parseVerifierKey(verifierKey);
    if (verifier === null) throw new Error('not a verifier key');
    const lines = linesOf(path);
    const verdict = await verifyAuditLog(
      (async function* () {
        yield* lines;
      })(),
      verifier,
    );
    expect(verdict.findings).toEqual([]);
    expect(verdict.signed).toBe(recordsOf(lines).length);
    rmSync(first.folder, { recursive: true });
  });

  const item = (sequence: number): LogItem =>
    ({ kind: 'record', sequence, text: JSON.stringify({ sequence, filler: 'x'.repeat(80) }) }) as unknown as LogItem;

  test('that is long enough is put aside under the number of its last record; the oldest go; nothing is twice', async () => {
    const own = join(folder, 'rotated');
    mkdirSync(own);
    const path = join(own, 'audit.ndjson');
    const sink = openFileSink({ name: 'f', path, rotateBytes: 300, keep: 2 });
    for (let at = 1; at <= 19; at += 2) {
      await sink.send([item(at), item(at + 1)], 'dke/audit/one');
      // After a crash before the cursor was stored, the same records are sent again.
      await sink.send([item(at), item(at + 1)], 'dke/audit/one');
    }
    const files = readdirSync(own).sort();
    expect(files.filter((name) => name !== 'audit.ndjson')).toHaveLength(2);
    const kept = recordsOf(files.filter((name) => name !== 'audit.ndjson').flatMap((name) => linesOf(join(own, name))));
    const all = [...kept, ...recordsOf(linesOf(path))];
    expect(all).toEqual(upTo(20).slice(20 - all.length));
    expect(all.length).toBeGreaterThan(6);
    await sink.close();
  });

  test('of another log is moved aside with all its files, and a new one is started', async () => {
    const own = join(folder, 'two-logs');
    mkdirSync(own);
    const path = join(own, 'audit.ndjson');
    const sink = openFileSink({ name: 'f', path, rotateBytes: 300, keep: 0 });
    for (let at = 1; at <= 8; at += 1) await sink.send([item(at)], 'dke/audit/one');
    const before = readdirSync(own).sort();
    expect(before.length).toBeGreaterThan(2);
    // The records of the second log are fewer, and other ones under the same numbers.
    for (let at = 1; at <= 3; at += 1) await sink.send([item(at)], 'dke/audit/two');
    const after = readdirSync(own).sort();
    expect(after.filter((name) => name.startsWith('one.'))).toEqual(before.map((name) => `one.${name}`));
    const now = after.filter((name) => !name.startsWith('one.'));
    expect(recordsOf(now.flatMap((name) => linesOf(join(own, name))))).toEqual([1, 2, 3]);
    for (const name of now) expect(linesOf(join(own, name))[0]).toBe('{"log":"dke/audit/two"}');
    // Two services that write to one path get an error; nothing is overwritten.
    await sink.send([item(9)], 'dke/audit/one');
    await expect(sink.send([item(4)], 'dke/audit/two')).rejects.toThrow(/a file of its own/);
    expect(recordsOf(linesOf(join(own, 'one.audit.ndjson')))).not.toContain(9);
  });

  test('that is a link, or no file, is refused: what the link names stays as it is', async () => {
    const own = join(folder, 'linked');
    mkdirSync(own);
    const other = join(own, 'database');
    writeFileSync(other, 'one line\nand a half');
    symlinkSync(other, join(own, 'audit.ndjson'));
    const sinkAt = (name: string) => openFileSink({ name, path: join(own, name), rotateBytes: 300, keep: 0 });
    await expect(sinkAt('audit.ndjson').send([item(1)], 'dke/audit/one')).rejects.toThrow('symbolic link');
    expect(readFileSync(other, 'utf8')).toBe('one line\nand a half');
    await expect(sinkAt('.').send([item(1)], 'dke/audit/one')).rejects.toThrow('EISDIR');
    // Drafts beside a file that is replaced, too.
    symlinkSync(other, join(own, 'mark.new'));
    replaceFile(join(own, 'mark'), 'new');
    expect([readFileSync(other, 'utf8'), readFileSync(join(own, 'mark'), 'utf8')]).toEqual([
      'one line\nand a half',
      'new',
    ]);
  });

  test('compares the last record that both have: a log that has another one is a fork, and nothing is written', async () => {
    const own = join(folder, 'compared');
    mkdirSync(own);
    const path = join(own, 'audit.ndjson');
    const sink = openFileSink({ name: 'f', path, rotateBytes: 300, keep: 0 });
    const other = (sequence: number): LogItem => ({ ...item(sequence), text: JSON.stringify({ sequence, other: 1 }) });
    const hashOf = ({ text }: LogItem): string => leafHash(Buffer.from(text, 'utf8')).toString('hex');
    for (let at = 1; at <= 8; at += 1) expect(await sink.send([item(at)], 'dke/audit/one')).toBeUndefined();
    const before = readdirSync(own).map((name) => [name, linesOf(join(own, name))]);
    const fork = (sequence: number) => ({ sequence, hash: hashOf(item(8)) });
    // The log went back to the third record, and to the last one, and a copy of it has gone on.
    expect(await sink.send([other(4), other(5)], 'dke/audit/one')).toEqual(fork(5));
    expect(await sink.send([item(7), other(8), other(9)], 'dke/audit/one')).toEqual(fork(8));
    expect(await sink.send([other(9)], 'dke/audit/one', { sequence: 8, hash: hashOf(other(8)) })).toEqual(fork(8));
    expect(readdirSync(own).map((name) => [name, linesOf(join(own, name))])).toEqual(before);
    expect(await sink.send([item(7), item(8)], 'dke/audit/one')).toBeUndefined();
    const place = await sink.setAside?.('dke/audit/one', fork(8));
    expect(place).toBe(join(own, `one.fork-${hashOf(item(8)).slice(0, 16)}.audit.ndjson`));
    expect(await sink.send([item(1), other(2)], 'dke/audit/one')).toBeUndefined();
    expect(recordsOf(linesOf(path))).toEqual([1, 2]);
    expect(readdirSync(own).filter((name) => name.startsWith('one.fork-'))).toHaveLength(before.length);
  });

  test.skipIf(!onSqlite('a data directory put back by its files'))(
    'of a data directory that was put back loses no record of either history, and the fork is named',
    async () => {
      const path = join(folder, 'reverted.ndjson');
      const first = await openPatiently(sinkTo(path));
      await createVaults(first, 'one');
      const { verifierKey } = await first.operations.audit.log();
      await first.stop();
      const older = join(folder, 'reverted');
      cpSync(first.config.dataDirectory, older, { recursive: true, preserveTimestamps: true });
      const second = await openPatiently(sinkTo(path), first.folder);
      await createVaults(second, 'two', 'three', 'four');
      await second.stop();
      const former = readFileSync(path, 'utf8');
      rmSync(first.config.dataDirectory, { recursive: true });
      cpSync(older, first.config.dataDirectory, { recursive: true, preserveTimestamps: true });
      chmodSync(first.config.dataDirectory, 0o700);

      const third = await openPatiently(sinkTo(path), first.folder);
      await createVaults(third, 'another two');
      await delivered(third);
      const [found] = (await third.operations.audit.list(administrator, { kind: 'audit.sink-forked', limit: 9 })).items;
      expect(found).toMatchObject({ details: { name: 'f' } });
      expect(third.complaints.map(({ message }) => message)).toContainEqual(
        expect.stringContaining('a sink has other records of the same numbers'),
      );
      await third.stop();
      const aside = readdirSync(folder).find((name) => /\.fork-[0-9a-f]{16}\.reverted\.ndjson$/.test(name));
      expect(readFileSync(join(folder, aside ?? ''), 'utf8')).toBe(former);
      const verifier = parseVerifierKey(verifierKey);
      if (verifier === null) throw new Error('not a verifier key');
      for (const file of [path, join(folder, aside ?? '')]) {
        const lines = linesOf(file);
        const verdict = await verifyAuditLog(
          (async function* () {
            yield* lines;
          })(),
          verifier,
        );
        expect([verdict.findings, verdict.signed]).toEqual([[], recordsOf(lines).length]);
      }
      rmSync(first.folder, { recursive: true });
    },
  );

  test.skipIf(!onSqlite('an older database put back by its files'))(
    'of an older database that was accepted loses no record: the former log stays, and says nothing for the new one',
    async () => {
      const path = join(folder, 'accepted.ndjson');
      const first = await openPatiently(sinkTo(path));
      await createVaults(first, 'one');
      const oldKey = (await first.operations.audit.log()).verifierKey;
      await delivered(first);
      await first.stop();
      const older = join(folder, 'older');
      cpSync(first.config.dataDirectory, older, { recursive: true });
      const second = await openPatiently(sinkTo(path), first.folder);
      await createVaults(second, 'two', 'three', 'four', 'five', 'six', 'seven');
      await delivered(second);
      await second.stop();
      const former = readFileSync(path, 'utf8');
      for (const end of ['', '-wal', '-shm']) {
        rmSync(join(first.config.dataDirectory, `dke.db${end}`), { force: true });
        if (existsSync(join(older, `dke.db${end}`)))
          cpSync(join(older, `dke.db${end}`), join(first.config.dataDirectory, `dke.db${end}`));
      }
      const third = await openTestService({
        toml: `${base}${sinkTo(path)}`,
        folder: first.folder,
        acceptDatabase: true,
      });
      await createVaults(third, 'eight');
      const newKey = (await third.operations.audit.log()).verifierKey;
      const [accepted] = (await third.operations.audit.list(administrator, { kind: 'audit-log.accepted' })).items;
      await delivered(third);
      await third.stop();

      const lines = linesOf(path);
      const records = recordsOf(lines);
      expect(records).toEqual(upTo(records.length));
      expect(records.length).toBeLessThan(recordsOf(former.trimEnd().split('\n')).length);
      expect(lines.some((line) => line.includes('"audit-log.accepted"'))).toBe(true);
      const verify = async (text: string, key: string) => {
        const verifier = parseVerifierKey(key);
        if (verifier === null) throw new Error('not a verifier key');
        const all = text.trimEnd().split('\n');
        return verifyAuditLog(
          (async function* () {
            yield* all;
          })(),
          verifier,
        );
      };
      const now = await verify(readFileSync(path, 'utf8'), newKey);
      expect([now.findings, now.signed]).toEqual([[], records.length]);
      const aside = readdirSync(folder).filter((name) => name.endsWith('.accepted.ndjson'));
      expect(aside).toHaveLength(1);
      expect(readFileSync(join(folder, aside[0] ?? ''), 'utf8')).toBe(former);
      expect((await verify(former, oldKey)).findings).toEqual([]);
      // The stored key shows that the log is a new one.
      expect((await verify(readFileSync(path, 'utf8'), oldKey)).findings).toEqual([
        expect.stringMatching(
          new RegExp(
            `^another log, dke/audit/\\S+, accepted at ${toRfc3339(accepted?.at ?? 0)} by service, with the same key:`,
          ),
        ),
      ]);
      rmSync(first.folder, { recursive: true });

      // Built again: another key.
      const rebuilt = await openPatiently(sinkTo(path));
      await createVaults(rebuilt, 'one');
      await delivered(rebuilt);
      await rebuilt.stop();
      expect(recordsOf(linesOf(path))).toEqual(upTo(recordsOf(linesOf(path)).length));
      expect((await verify(readFileSync(path, 'utf8'), newKey)).findings).toEqual([
        expect.stringMatching(/^another log, dke\/audit\/\S+, with another key:/),
      ]);
      rmSync(rebuilt.folder, { recursive: true });
    },
  );

  test('in a folder that is not there stops the start, with a line that names it', async () => {
    await expect(open(sinkTo(join(folder, 'nowhere', 'audit.ndjson')))).rejects.toThrow(
      /nowhere \(audit\.sinks, f: path\) is missing/,
    );
  });
});

describe('syslog', () => {
  const sinkTo = (port: number, ca = authority.certificate): string =>
    `[[audit.sinks]]\nname = "s"\ntype = "syslog"\nhost = "127.0.0.1"\nport = ${port}\nca = "${ca}"\n`;

  /** A collector that stores messages, separated by their lengths. */
  const collect = (from: Authority) => {
    const messages: string[] = [];
    const sockets = new Set<Socket>();
    const server = createTlsServer(collectorFiles(from), (socket) => {
      sockets.add(socket);
      let rest = Buffer.alloc(0);
      socket.on('data', (part) => {
        rest = Buffer.concat([rest, part]);
        for (;;) {
          const blank = rest.indexOf(32);
          const length = Number(rest.subarray(0, Math.max(blank, 0)).toString());
          if (blank < 0 || rest.length < blank + 1 + length) break;
          messages.push(rest.subarray(blank + 1, blank + 1 + length).toString('utf8'));
          rest = rest.subarray(blank + 1 + length);
        }
      });
      socket.on('error', () => undefined);
      socket.on('close', () => sockets.delete(socket));
    });
    return { server, messages, sockets };
  };
  const pattern =
    /^<(\d+)>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (\S+) dke (\d+) (\S+) \[dke@32473 ((?:[^\]\\]|\\.)*)\] (.*)$/s;
  const bodyOf = (message: string): string => pattern.exec(message)?.[7] ?? 'null';

  test('messages are RFC 5424, in octet counting, with severity, and the record as JSON', async () => {
    const { server, messages } = collect(authority);
    const service = await open(sinkTo(await listen(server)));
    await createVaults(service, 'a ] "quoted" \\ name ünïcode');
    await service.operations.authenticateAdmin('dket_wrong', 'request-2', '192.0.2.1').catch(() => undefined);
    const count = await delivered(service);
    await service.stop();
    server.close();
    const records = messages.filter((message) => !message.includes(' audit.checkpoint '));
    expect(records.every((message) => pattern.test(message))).toBe(true);
    expect(recordsOf(records.map(bodyOf)).length).toBeGreaterThanOrEqual(count);
    const vault = records.find((message) => message.includes('vault.created') && message.includes('quoted'));
    const [, priority, at, , , id, data, body] = pattern.exec(vault ?? '') ?? [];
    expect(priority).toBe(String(13 * 8 + 6));
    expect(id).toBe('vault.created');
    expect(data).toMatch(
      /sequence="\d+" log="dke\/audit\/[0-9a-f-]{36}" hash="[0-9a-f]{64}" actor="test" subject="vault [0-9a-f-]{36}" requestId="request-1"/,
    );
    expect(JSON.parse(body ?? '')).toMatchObject({ at, details: { name: 'a ] "quoted" \\ name ünïcode' } });
    expect(messages.some((message) => message.includes(' audit.checkpoint '))).toBe(true);
    rmSync(service.folder, { recursive: true });
  });

  test('an unavailable collector delays nothing, and gets everything when it is back', async () => {
    const port = await freePort();
    const service = await open(sinkTo(port));
    await createVaults(service, 'one', 'two', 'three');
    expect(await failing(service)).toContain('ECONNREFUSED');
    const { server, messages } = collect(authority);
    await listen(server, port);
    const count = await delivered(service);
    await until('every record', async () => (recordsOf(messages.map(bodyOf)).length >= count ? true : undefined));
    expect(recordsOf(messages.map(bodyOf))).toEqual(upTo(count));
    await service.remove();
    server.close();
  });

  test('a connection that breaks loses nothing: what may not have been read comes again', async () => {
    const { server, messages, sockets } = collect(authority);
    const service = await open(sinkTo(await listen(server)));
    await delivered(service);
    for (let round = 0; round < 5; round++) {
      for (const socket of sockets) socket.destroy();
      await createVaults(service, `round ${round}`);
      await delivered(service);
    }
    const count = await delivered(service);
    await until('every record', async () =>
      new Set(recordsOf(messages.map(bodyOf))).size >= count ? true : undefined,
    );
    expect([...new Set(recordsOf(messages.map(bodyOf)))].sort((a, b) => a - b)).toEqual(upTo(count));
    await service.remove();
    server.close();
  });

  test('what a collector that hung has not read comes again when it is killed, however many batches that were', async () => {
    const hung: Socket[] = [];
    const raw: Socket[] = [];
    const server = createTlsServer(collectorFiles(authority), (socket) => {
      socket.on('error', () => undefined);
      hung.push(socket.pause());
    });
    server.on('connection', (socket: Socket) => raw.push(socket));
    const port = await listen(server);
    const service = await open(sinkTo(port));
    for (let round = 0; round < 8; round++) {
      await createVaults(service, `round ${round}`);
      await delivered(service);
    }
    expect(hung).toHaveLength(1);
    // The process of the collector is killed: its kernel resets connections with unread data.
    for (const socket of raw) socket.resetAndDestroy();
    server.close();
    await once(server, 'close');
    const { server: next, messages } = collect(authority);
    await listen(next, port);
    await createVaults(service, 'after');
    const count = await delivered(service);
    await until('every record', async () =>
      new Set(recordsOf(messages.map(bodyOf))).size >= count ? true : undefined,
    );
    expect([...new Set(recordsOf(messages.map(bodyOf)))].sort((a, b) => a - b)).toEqual(upTo(count));
    await service.remove();
    next.close();
  });

  test('what comes again may take as long as a slow collector needs for it, longer than it may be silent', async () => {
    const raw: Socket[] = [];
    const taken: number[] = [];
    const server = createTlsServer(collectorFiles(authority), (socket) => {
      const at = taken.push(0) - 1;
      socket.on('error', () => undefined);
      socket.on('data', (part) => {
        taken[at] = (taken[at] ?? 0) + part.length;
        if (at === 0) return;
        socket.pause();
        setTimeout(() => socket.resume(), 5);
      });
    });
    server.on('connection', (socket: Socket) => raw.push(socket));
    const sink = openSyslogSink(
      {
        ...{ name: 's', host: '127.0.0.1', port: await listen(server), read: async (path) => readFileSync(path) },
        ...{ ca: authority.certificate, certificate: undefined, key: undefined },
      },
      { firstMs: 3_000, bytesPerSecond: 4_096 },
    );
    const request = { endpointId: null, requestId: 'r', operation: 'Encrypt', at: 0, errorName: null };
    const send = async (size: number): Promise<void> => {
      const text = 'x'.repeat(size);
      await sink.send([{ kind: 'request', sequence: 1, request, text } as unknown as LogItem], 'log');
    };
    for (let count = 0; count < 14; count += 1) await send(1 << 20);
    raw[0]?.resetAndDestroy();
    // What is sent before the sink notices is lost with the connection.
    await until('all of it on another connection', async () => {
      await send(1).catch(() => undefined);
      return taken.slice(1).some((size) => size > 14 << 20) ? true : undefined;
    });
    await sink.close();
    server.close();
  });

  test('a collector with a certificate of another authority gets nothing', async () => {
    const { server, messages } = collect(other);
    const service = await open(sinkTo(await listen(server)));
    expect(await failing(service)).toMatch(/certificate|issuer/i);
    expect(messages).toEqual([]);
    await service.remove();
    server.close();
  });

  test.skipIf(!installed('rsyslog-openssl', 'rsyslogd', '/usr/lib/x86_64-linux-gnu/rsyslog/lmnsd_ossl.so'))(
    'rsyslog reads them',
    async () => {
      const port = await freePort();
      const files = authority.issue({ commonName: 'rsyslog', names: ['IP:127.0.0.1'], usage: 'serverAuth' });
      const into = join(folder, 'rsyslog.out');
      const config = join(folder, 'rsyslog.conf');
      writeFileSync(
        config,
        `global(workDirectory="${folder}" defaultNetstreamDriver="ossl" defaultNetstreamDriverCAFile="${authority.certificate}"
  defaultNetstreamDriverCertFile="${files.certificate}" defaultNetstreamDriverKeyFile="${files.key}" maxMessageSize="64k")
module(load="imtcp" streamDriver.name="ossl" streamDriver.mode="1" streamDriver.authMode="anon")
template(name="parts" type="string" string="%syslogfacility-text%.%syslogseverity-text% %app-name% %msgid% %structured-data% %msg%\\n")
input(type="imtcp" address="127.0.0.1" port="${port}")
*.* action(type="omfile" file="${into}" template="parts")
`,
      );
      const daemon = await startDaemon('rsyslogd', ['-n', '-d', '-f', config, '-i', join(folder, 'rsyslog.pid')], {
        ready: /imtcp|ossl/,
      });
      await until('the port of rsyslog', async () => {
        const probe = connect(port, '127.0.0.1');
        return await once(probe, 'connect').then(
          () => {
            probe.destroy();
            return true;
          },
          () => undefined,
        );
      });
      const service = await open(sinkTo(port));
      await createVaults(service, 'for rsyslog');
      await delivered(service);
      await until('the line of rsyslog', async () =>
        existsSync(into) && readFileSync(into, 'utf8').includes('for rsyslog') ? true : undefined,
      );
      const line =
        readFileSync(into, 'utf8')
          .split('\n')
          .find((each) => each.includes('for rsyslog')) ?? '';
      expect(line).toMatch(
        /^audit\.info dke vault\.created \[dke@32473 sequence="\d+" log="dke\/audit\/[0-9a-f-]{36}" hash="[0-9a-f]{64}" actor="test"/,
      );
      expect(JSON.parse(line.slice(line.indexOf('{')))).toMatchObject({ kind: 'vault.created' });
      await service.remove();
      await daemon.stop('SIGKILL');
    },
  );
});

describe('https', () => {
  const sinkTo = (port: number, more = ''): string =>
    `[[audit.sinks]]\nname = "h"\ntype = "https"\nurl = "https://127.0.0.1:${port}/in"\nca = "${authority.certificate}"\n${more}`;

  test('batches are OCSF events with the token; a collector that says 503 gets the same ones again', async () => {
    const batches: { readonly authorization: string | undefined; readonly events: Record<string, unknown>[] }[] = [];
    let busy = 2;
    const server = createServer(collectorFiles(authority), async (incoming, outgoing) => {
      let text = '';
      for await (const part of incoming) text += String(part);
      if (busy > 0) {
        busy -= 1;
        outgoing.writeHead(503).end();
        return;
      }
      batches.push({
        authorization: incoming.headers.authorization,
        events: JSON.parse(text) as Record<string, unknown>[],
      });
      outgoing.writeHead(200).end('{}');
    });
    const tokenFile = join(folder, 'lake.token');
    writeFileSync(tokenFile, 'lake-token\n', { mode: 0o600 });
    const service = await open(sinkTo(await listen(server), `token_file = "${tokenFile}"\n`));
    await createVaults(service, 'one');
    await service.operations.audit.checkpoint();
    const count = await delivered(service);
    await service.stop();
    server.close();
    const events = batches.flatMap((each) => each.events);
    expect(batches.every(({ authorization }) => authorization === 'Bearer lake-token')).toBe(true);
    const numbers = events.flatMap((event) =>
      event.class_uid === 0 ? [] : [(event.metadata as { sequence: number }).sequence],
    );
    expect(numbers.slice(0, count)).toEqual(upTo(count));
    expect(events.find((event) => event.message === 'vault.created' && event.activity_id === 1)).toMatchObject({
      category_uid: 3,
      class_uid: 3004,
      type_uid: 300_401,
      severity_id: 1,
      status_id: 1,
      actor: { user: { name: 'test' } },
      entity: { type: 'vault' },
    });
    expect(events[0]?.metadata).toMatchObject({
      log_provider: expect.stringMatching(/^dke\/audit\/[0-9a-f-]{36}$/) as unknown,
    });
    expect(new Set(events.map(({ metadata }) => (metadata as { uid: string }).uid)).size).toBe(events.length);
    expect(events.find((event) => event.message === 'service.started')).toMatchObject({
      class_uid: 6002,
      activity_id: 3,
    });
    expect(events.some((event) => event.class_uid === 0)).toBe(true);
    expect(service.complaints.map(({ message }) => message)).toContain(
      'a sink is unreachable; delivery will be retried',
    );
    rmSync(service.folder, { recursive: true });
  });

  test('a batch that is too large is split; a record that is refused is counted, named and set aside', async () => {
    const names = new Set<string>();
    const server = createServer(collectorFiles(authority), async (incoming, outgoing) => {
      let text = '';
      for await (const part of incoming) text += String(part);
      const events = JSON.parse(text) as Record<string, unknown>[];
      if (events.length > 3 || text.includes('poisoned')) {
        outgoing.writeHead(413).end();
        return;
      }
      for (const found of text.matchAll(/good \d/g)) names.add(found[0]);
      outgoing.writeHead(200).end('{}');
    });
    const service = await open(sinkTo(await listen(server)));
    await createVaults(service, 'good 1', 'poisoned', 'good 2');
    await service.operations.audit.checkpoint();
    await delivered(service);
    const [sink] = await service.operations.audit.sinks(administrator);
    expect(sink).toMatchObject({ lost: 1, lag: 0, failure: null });
    expect([...names].sort()).toEqual(['good 1', 'good 2']);
    expect(service.complaints).toContainEqual(
      expect.objectContaining({ message: 'a sink refuses a record; it is set aside, and the next ones are delivered' }),
    );
    await service.remove();
    server.close();
  });

  test('a collector that refuses everything gets everything when it takes it', async () => {
    let isWrong = true;
    const numbers = new Set<number>();
    const server = createServer(collectorFiles(authority), async (incoming, outgoing) => {
      let text = '';
      for await (const part of incoming) text += String(part);
      if (!isWrong)
        for (const { metadata, class_uid: kind } of JSON.parse(text) as Record<string, unknown>[])
          if (kind !== 0) numbers.add((metadata as { readonly sequence: number }).sequence);
      outgoing.writeHead(isWrong ? 400 : 200).end('{}');
    });
    const service = await open(sinkTo(await listen(server)));
    await createVaults(service, 'one', 'two');
    expect(await failing(service)).toContain('status 400');
    isWrong = false;
    const count = await delivered(service);
    expect([...numbers].sort((a, b) => a - b).slice(0, count)).toEqual(upTo(count));
    expect((await service.operations.audit.sinks(administrator))[0]?.lost).toBe(0);
    await service.remove();
    server.close();
  });

  test('a collector that never answers delays neither the service nor its stop', async () => {
    const sockets: Socket[] = [];
    const server = createTcpServer((socket) => void sockets.push(socket));
    const service = await open(sinkTo(await listen(server)));
    await createVaults(service, 'one', 'two');
    await until('the attempt', async () => (sockets.length > 0 ? true : undefined));
    const [sink] = await service.operations.audit.sinks(administrator);
    expect(sink).toMatchObject({ forwarded: 0 });
    expect(sink?.lag).toBeGreaterThan(2);
    await service.remove();
    for (const socket of sockets) socket.destroy();
    server.close();
  });
});
