// One local user takes all that the agent gives: root's database opens and encrypts next to it.
// Runs as root, because it needs a second user.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { returnValueName } from '../../provider/schema/return-values.ts';
import { type AgentProcess, startAgent } from '../support/agent-process.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { startDatabase } from '../support/database.ts';
import { folderInSystem } from '../support/folders.ts';
import { until } from '../support/host.ts';
import { type Site, startSite } from '../support/site.ts';

const isRoot = process.getuid?.() === 0;
if (!isRoot) console.log('skipped: only root can be a second user, too');
const nobody = 65_534;
const pin = 'any';

/**
 * A program that becomes another user, opens `count` connections, each with the beginning of a
 * frame, and prints how many were refused.
 */
const crowd = `
const { connect } = require('node:net');
const [path, count, bytes] = [process.argv[1], Number(process.argv[2]), Number(process.argv[3])];
process.setgroups([]); process.setgid(${nobody}); process.setuid(${nobody});
let settled = 0, refused = 0;
const tell = () => { if (++settled === count) console.log(refused); };
const open = (n) => {
  if (n === count) return;
  const socket = connect(path);
  let answered = false;
  socket.on('error', () => {});
  socket.on('connect', () => socket.write(Buffer.from([0xd1])));
  socket.on('data', () => {
    if (answered) return;
    answered = true;
    const frame = Buffer.alloc(bytes, 1);
    if (bytes > 12) { frame.writeUInt32BE(1, 0); frame.writeUInt32BE(0, 4); frame.writeUInt32BE(256 * 1024, 8); }
    if (bytes > 0) socket.write(frame);
    tell();
  });
  socket.on('close', () => { if (!answered) { answered = true; refused++; tell(); } });
  setImmediate(open, n + 1);
};
open(0);
setInterval(() => {}, 1000);
`;

describe.runIf(isRoot)('one user', () => {
  const { path: folder, make, remove } = folderInSystem('quota');
  const crowds: ChildProcess[] = [];
  let site: Site;
  let agent: AgentProcess;
  let config: string;

  beforeAll(async () => {
    site = await startSite();
    config = site.config('erp', await registerApplication(site.api, 'erp', await createGroup(site.api, 'finance')));
    make();
    agent = await startAgent(folder, { environment: { DKE_AGENT_USER_LIMITS: 'sessions=50,objects=40' } });
  });
  afterAll(async () => {
    for (const child of crowds) child.kill('SIGKILL');
    await agent?.stop();
    remove();
    await site?.end();
  });

  /** How many of the connections were refused, once all are settled. */
  const gather = async (count: number, bytes: number): Promise<number> => {
    const words = ['-e', crowd, agent.socket, String(count), String(bytes)];
    const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
    crowds.push(child);
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    return Number(line);
  };
  const working = async (): Promise<void> => {
    const database = startDatabase({ config, socket: agent.socket });
    expect((await database.call('open', { pin })).rv).toBe('CKR_OK');
    const { rv, handle = 0 } = await database.call('generate', { label: '', token: false });
    expect(rv).toBe('CKR_OK');
    expect((await database.call('encrypt', { handle, data: '42'.repeat(32), iv: '00'.repeat(16) })).rv).toBe('CKR_OK');
    await database.stop();
  };
  const resident = (): number =>
    Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${agent.child.pid}/status`, 'utf8'))?.[1]) * 1024;

  test('with as many sessions and keys as it may have leaves room for others', async () => {
    const theirs = join(folder, 'pkcs11.toml');
    const caFile = join(folder, 'ca.pem');
    copyFileSync(site.server.caFile, caFile);
    chmodSync(caFile, 0o644);
    // What it names is read with the rights of its user.
    writeFileSync(theirs, readFileSync(config, 'utf8').replace(site.server.caFile, caFile), { mode: 0o600 });
    chownSync(theirs, nobody, nobody);
    const database = startDatabase({ config: theirs, socket: agent.socket, user: nobody });
    expect((await database.call('open', { pin })).rv).toBe('CKR_OK');
    const fill = async (next: () => Promise<{ readonly rv: string }>): Promise<number> => {
      for (let done = 0; ; done += 1) {
        const { rv } = await next();
        if (rv === 'CKR_OK') continue;
        expect(rv).toBe('CKR_DEVICE_MEMORY');
        return done;
      }
    };
    expect(await fill(() => database.call('openSession', {}))).toBe(49);
    expect(await fill(() => database.call('generate', { label: '', token: false }))).toBe(40);
    await working();
    await database.stop();
  });

  test('with 5,000 connections that never call C_Initialize leaves room for others', async () => {
    const refused = await gather(5_000, 0);
    expect(refused).toBeGreaterThanOrEqual(5_000 - (4_096 + 64));
    await working();
    await expect.poll(() => agent.log()).toContain('"cause":"user-limit"');
    crowds.pop()?.kill('SIGKILL');
  });

  test('with 1,000 unfinished frames stays within its limit of memory', async () => {
    const before = resident();
    await gather(1_000, 255 * 1024);
    await working();
    expect(resident() - before).toBeLessThan(200 << 20);
  });

  test('with calls that its own service never answers stays within its limit of memory', async () => {
    const place = join(folder, 'pending');
    const small = await startAgent(place, { environment: { DKE_AGENT_USER_LIMITS: 'memory=4' } });
    const calls = 1000;
    const words = [
      join(import.meta.dirname, '../support/pending-child.ts'),
      small.socket,
      String(nobody),
      String(calls),
    ];
    const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
    crowds.push(child);
    const refused: string[] = [];
    for await (const line of createInterface({ input: child.stdout })) {
      refused.push(returnValueName(Number(line)));
      // The others wait for their answers: at most as many as 4 MiB are.
      if (refused.length >= calls - 4096 / 8) break;
    }
    expect(new Set(refused)).toEqual(new Set(['CKR_DEVICE_MEMORY']));
    const database = startDatabase({ config, socket: small.socket });
    expect((await database.call('open', { pin })).rv).toBe('CKR_OK');
    expect((await database.call('generate', { label: 'ORACLE.TDE.PENDING' })).rv).toBe('CKR_OK');
    await database.stop();
    crowds.pop()?.kill('SIGKILL');
    await small.stop();
  });

  test('whose connections do not call C_Initialize loses them after a while', async () => {
    await gather(10, 0);
    await until('the agent has dropped them', async () => (await gatheredConnections()) === 0 || undefined);
  });

  /**
   * Connections to the agent's socket that are open: lines of /proc/net/unix with its path, without
   * the listener.
   */
  const gatheredConnections = async (): Promise<number> =>
    readFileSync('/proc/net/unix', 'utf8')
      .split('\n')
      .filter((line) => line.endsWith(agent.socket)).length - 1;
});
