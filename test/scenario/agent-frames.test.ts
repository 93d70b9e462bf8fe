// Damaged frames against a live agent, from a fixed seed: calls of real programs, recorded on their
// way to the agent, then changed, cut, extended and mixed. Each complete frame gets an answer, the
// agent stays the same process of bounded size, and valid calls continue.
//
// DKE_TEST_FRAMES: how many, in place of that of test/support/tiers.ts.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { signatures } from '../../provider/agent/codec/dispatcher.ts';
import { CKA } from '../../provider/schema/attributes.ts';
import { calls } from '../../provider/schema/calls.ts';
import { CKM } from '../../provider/schema/mechanisms.ts';
import type { Arg, Call } from '../../provider/schema/types.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import type { Database } from '../support/database.ts';
import { FrameClient, frame } from '../support/frame-client.ts';
import { until } from '../support/host.ts';
import { startHostProcess, writeAnswers } from '../support/host-process.ts';
import { library } from '../support/pkcs11-host.ts';
import { type Site, startSite } from '../support/site.ts';
import { sizeOf } from '../support/tiers.ts';

const frames = Number(process.env.DKE_TEST_FRAMES ?? sizeOf('agent frames'));
const parallel = 8;
const batch = 50;
/** Batches that a connection lives. */
const life = 5;
const ownVersion = 0xd1;

let site: Site;
let config: string;
let database: Database;
/** Bodies by connection: the first of each is C_Initialize. */
const recorded: Buffer[][] = [];

/** Cuts one connection's bytes into bodies. The first byte is the version. */
const record = (client: Socket): void => {
  const bodies: Buffer[] = [];
  recorded.push(bodies);
  let rest = Buffer.alloc(0);
  let greeted = false;
  client.on('data', (bytes: Buffer) => {
    rest = Buffer.concat([rest, bytes]);
    if (!greeted) rest = rest.subarray(1);
    greeted = true;
    for (; rest.length >= 12; ) {
      const length = 12 + rest.readUInt32BE(8);
      if (rest.length < length) return;
      bodies.push(Buffer.from(rest.subarray(12, length)));
      rest = rest.subarray(length);
    }
  });
};

const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
const u64 = (value: number): Buffer => Buffer.concat([u32(Math.floor(value / 2 ** 32)), u32(value % 2 ** 32)]);
const array = (bytes: Buffer): Buffer => Buffer.concat([u32(bytes.length), bytes]);

/** An argument as a program may give it. */
const argument = ({ kind, name }: Arg): Buffer => {
  switch (kind) {
    case 'ulong':
      return u64(name === 'session' ? 1 : 2 ** 31);
    case 'flag':
      return Buffer.from([1]);
    case 'bytes':
      return Buffer.concat([Buffer.from([1]), array(Buffer.alloc(24, 7))]);
    case 'mechanism':
      return Buffer.concat([u32(CKM.AES_KEY_WRAP), Buffer.from([0])]);
    case 'template':
      return Buffer.concat([u32(1), u32(CKA.EXTRACTABLE), Buffer.from([1]), u32(1), Buffer.from([1])]);
    case 'query':
      return Buffer.concat([u32(2), u32(CKA.LABEL), u32(64), u32(CKA.VALUE), u32(64)]);
    case 'out':
    case 'fill':
    case 'list':
    case 'batch':
      return u32(64);
    default:
      return Buffer.alloc(0);
  }
};
/** One call of each function that the programs do not call. */
const everyCall = (): readonly Buffer[] =>
  (Object.values(calls) as readonly Call[])
    .filter(({ code }) => code > 2)
    .map((row) =>
      Buffer.concat([u32(row.code), array(Buffer.from(signatures(row).request)), ...row.args.map(argument)]),
    );

beforeAll(async () => {
  site = await startSite();
  const application = await registerApplication(site.api, 'erp', await createGroup(site.api, 'finance'));
  // A hundred thousand refusals are not worth a line each.
  config = site.config('pkcs11', application, 'log_level = "fatal"\n');
  database = site.database(config);
  expect((await database.call('open', { pin: '' })).rv).toBe('CKR_OK');

  const between = join(site.folder, 'between.sock');
  const server = createServer((client) => {
    const agent = connect(site.socket);
    record(client);
    client.pipe(agent).pipe(client);
    client.on('error', () => agent.destroy());
    agent.on('error', () => client.destroy());
  }).listen(between);
  await once(server, 'listening');
  const through = site.database(config, { socket: between });
  expect((await through.call('open', { pin: '' })).rv).toBe('CKR_OK');
  const { handle = 0 } = await through.call('generate', { label: 'RECORDED', token: false });
  await through.call('encrypt', { handle, iv: '00'.repeat(16), data: '42'.repeat(32) });
  await through.call('find', { label: 'RECORDED' });
  await through.call('random', { length: 16 });
  await through.stop();
  const environment = { ...process.env, DKE_PKCS11_CONF: config, DKE_PKCS11_SOCKET: between };
  const run = async (...words: string[]): Promise<void> => {
    // In a process of its own, so that this one can pass the bytes on.
    const { promise, resolve } = Promise.withResolvers<void>();
    const child = spawn('pkcs11-tool', ['--module', library, ...words], { env: environment, stdio: 'ignore' });
    child.once('exit', () => resolve());
    await promise;
  };
  const answers = writeAnswers(site.folder, randomBytes(32));
  const options = { config, socket: between, logDirectory: site.logDirectory };
  await startHostProcess('threads', options, answers, 2, 3).finish();
  await run('--list-mechanisms');
  await run('--login', '--pin', '1', '--test');
  await run('--login', '--pin', '1', '--keygen', '--key-type', 'AES:32', '--label', 'TOOL', '--sensitive');
  await run('--login', '--pin', '1', '--list-objects');
  await run('--login', '--pin', '1', '--keypairgen', '--key-type', 'EC:prime256v1', '--label', 'PAIR');
  server.close();
  // Calls to the service have other tests, and need no hundred thousand repetitions.
  await site.stopServer();
});
afterAll(() => site.end());

/** Mulberry32: small, and the same everywhere. */
const random = (seed: number) => {
  let state = seed;
  return (below: number): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
};
type Pick = (below: number) => number;

const numbers = [
  0, 1, 2, 8, 16, 0x7f, 0xff, 0x100, 0xffff, 0x10000, 0x100001, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff,
];

const damage = (good: Buffer, other: Buffer, pick: Pick): Buffer => {
  const bytes = Buffer.from(good);
  const at = pick(bytes.length);
  switch (pick(10)) {
    case 0:
      bytes[at] = (bytes[at] ?? 0) ^ (1 << pick(8));
      return bytes;
    case 1:
      bytes[at] = pick(256);
      return bytes;
    case 2:
      return bytes.subarray(0, at);
    case 3:
      return Buffer.concat([bytes, Buffer.alloc(pick(64), pick(256))]);
    case 4:
    case 5:
      if (bytes.length >= at + 4) bytes.writeUInt32BE(numbers[pick(numbers.length)] ?? 0, at);
      return bytes;
    case 6:
      return Buffer.concat([bytes.subarray(0, at), other.subarray(pick(other.length))]);
    case 7:
      // The head of one call with the arguments of another.
      return Buffer.concat([bytes.subarray(0, Math.min(16, bytes.length)), other.subarray(16)]);
    case 8:
      return Buffer.concat([bytes.subarray(0, at), Buffer.alloc(1 + pick(2000), pick(256)), bytes.subarray(at)]);
    default:
      return bytes;
  }
};

const heads = new Map(
  (Object.values(calls) as readonly Call[]).map((row) => [
    row.code,
    Buffer.concat([u32(row.code), array(Buffer.from(signatures(row).request))]),
  ]),
);
/** Whether the agent has to hang up: too short to be a message, or not the function's signature. */
const breaksProtocol = (body: Buffer): boolean => {
  if (body.length < 8) return true;
  const code = body.readUInt32BE(0);
  const head = code === 0 ? undefined : heads.get(code);
  return head !== undefined && !body.subarray(0, head.length).equals(head);
};

/**
 * What never answers in time when there are thousands: it keeps the agent or the service busy, and
 * is bent elsewhere.
 */
const slow: ReadonlySet<number> = new Set([1, 2, calls.C_GenerateKeyPair.code]);

test(`${frames} damaged frames: each is answered or ends its connection, and the agent continues`, async () => {
  const conversations = recorded.filter((bodies) => bodies.length > 5);
  expect(conversations.length).toBeGreaterThan(4);
  const all = [...conversations.flat(), ...everyCall(), ...everyCall()].filter(
    (body) => !slow.has(body.readUInt32BE(0)),
  );
  const kinds = new Set(all.map((body) => body.readUInt32BE(0)));
  // Programs with few different calls would give few variants.
  expect(kinds.size).toBeGreaterThan(60);
  const [agent = 0] = site.agents();
  const pick = random(20_261_121);
  let sent = 0;
  let refused = 0;

  const converse = async (): Promise<void> => {
    while (sent < frames) {
      const client = new FrameClient(site.socket);
      expect(await client.greet(ownVersion)).toBe(ownVersion);
      const whole = conversations[pick(conversations.length)] ?? [];
      let last: Buffer = Buffer.alloc(4);
      let code = 1;
      for (const body of whole.slice(0, 6))
        if (!slow.has(body.readUInt32BE(0)) || code === 1) await client.call(code++, body);
      for (let i = 0; i < life && sent < frames; i++) {
        const bodies: Buffer[] = [];
        while (bodies.length < batch) {
          const good = all[pick(all.length)] ?? Buffer.alloc(0);
          const bent = damage(good, all[pick(all.length)] ?? good, pick);
          if (breaksProtocol(bent)) last = bent;
          else bodies.push(bent);
        }
        const open = new Set(bodies.map((_, at) => code + at));
        client.write(Buffer.concat(bodies.map((body, at) => frame(code + at, body))));
        code += batch;
        sent += batch;
        while (open.size > 0) {
          const reply = await client.readFrame();
          expect(open.delete(reply.callCode)).toBe(true);
          if (reply.body.readUInt32BE(0) === 0) refused += 1;
        }
      }
      client.write(frame(code, last));
      await client.closed;
    }
  };
  await Promise.all(Array.from({ length: parallel }, converse));

  expect(site.agents()).toEqual([agent]);
  // The most that it ever had.
  const status = readFileSync(`/proc/${agent}/status`, 'utf8');
  expect(Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024).toBeLessThan(300);
  // Most are refused; but if all were, nothing would have been reached.
  expect(refused).toBeGreaterThan(frames / 4);
  expect(refused).toBeLessThan(frames * 0.95);
  const { handle = 0 } = await database.call('generate', { label: 'AFTER', token: false });
  const use = { handle, iv: '00'.repeat(16), data: '42'.repeat(32) };
  expect((await database.call('encrypt', use)).rv).toBe('CKR_OK');
  await until('the end of the connections', async () => {
    const lines = readFileSync('/proc/net/unix', 'utf8').split('\n');
    return lines.filter((line) => / 03 +\d+ /.test(line) && line.endsWith(site.socket)).length === 1 ? true : undefined;
  });
});
