// The agent among many: two hundred processes at once; killed at any moment, and stopped for a
// while, under threads that work on; and a service that stops and returns in the meantime. Every
// call ends within its time limit, with CKR_OK or with the code that provider/PROTOCOL.md, "When
// the agent goes away", defines; no answer is ever wrong; and then everything continues.
//
// DKE_TEST_PROCESSES: how many processes (200). DKE_TEST_KILLS: how many times the agent is killed
// (6).
import { randomBytes, randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { RegisteredApplication } from '../../server/contract/api/tde-applications-routes.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { processesWith, until } from '../support/host.ts';
import { type Host, startHostProcess, type ThreadsReport, writeAnswers } from '../support/host-process.ts';
import { type Site, startSite } from '../support/site.ts';

const processes = Number(process.env.DKE_TEST_PROCESSES ?? 200);
const kills = Number(process.env.DKE_TEST_KILLS ?? 6);
const threads = 8;
/**
 * Three attempts of a call, each with its time limits for connecting, starting an agent and the
 * answer; plus time for a busy machine.
 */
const hangsAfterMs = 180_000;

let site: Site;
let application: RegisteredApplication;
let answers: string;
let token: number;
let running: Host[] = [];

beforeAll(async () => {
  site = await startSite();
  application = await registerApplication(site.api, 'erp', await createGroup(site.api, 'finance'));
  const database = site.database(site.config('pkcs11', application));
  expect((await database.call('open', { pin: '' })).rv).toBe('CKR_OK');
  const value = randomBytes(32);
  token = (await database.call('import', { label: 'MASTER', value: value.toString('hex') })).handle ?? 0;
  answers = writeAnswers(site.folder, value);
  await database.stop();
});
afterEach(() => {
  for (const { child } of running) child.kill('SIGKILL');
  running = [];
});
afterAll(() => site.end());

const options = (name: string, callTimeout: number) => ({
  // Connecting may be slow on a loaded machine; the duration of a call is the test's subject.
  config: site.config(name, application, `call_timeout_ms = ${callTimeout}\n`),
  socket: site.socket,
  logDirectory: site.logDirectory,
});
const startThreads = (name: string, callTimeout: number): void => {
  // The file is written once, before it is read.
  const both = options(name, callTimeout);
  const one = () => startHostProcess('threads', both, answers, threads, 0, token);
  running = [one(), one()];
};
/** Until each thread of each process has finished so many more rounds without an error. */
const goOn = async (more: number): Promise<void> => {
  const wanted = running.map((host) => host.whole() + more);
  await until('the next rounds', async () => {
    for (const host of running)
      if (host.child.exitCode !== null) throw new Error(`a process has ended: ${host.complaints()}`);
    return running.every((host, at) => host.whole() >= (wanted[at] ?? 0)) ? true : undefined;
  });
};
/** The agents that run, or are about to; not what starts them. */
const agents = (): readonly number[] =>
  processesWith(site.socket).flatMap(([pid, line]) => (/dke-agent/.test(line) ? [] : [pid]));
/** The one that serves: of two that were started at once the other one finds that out, and ends. */
const agent = (): Promise<number> =>
  until('one agent', async () => {
    const [one, ...others] = agents();
    return others.length === 0 ? one : undefined;
  });
const memory = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

/**
 * What calls may answer next to CKR_OK when their agent is lost, by host-threads' names for them.
 */
const afterLoss = (call: string): readonly string[] => {
  // Calls that create or destroy are not sent twice.
  if (/^C_(CreateObject|GenerateKey)$/.test(call)) return ['CKR_DEVICE_ERROR'];
  // Session objects go with their agent.
  if (call === 'C_DestroyObject') return ['CKR_DEVICE_ERROR', 'CKR_OBJECT_HANDLE_INVALID'];
  if (call === 'C_GetAttributeValue') return ['CKR_OBJECT_HANDLE_INVALID'];
  if (/^(Init (session|shared)|C_SignInit|C_VerifyInit)$/.test(call)) return ['CKR_KEY_HANDLE_INVALID'];
  // So does an operation on such a key, and one in the middle.
  if (/^C_(Crypt|CryptUpdate|Sign|Verify|DigestUpdate|FindObjects)/.test(call))
    return ['CKR_OPERATION_NOT_INITIALIZED'];
  return [];
};
const unforeseen = (reports: readonly ThreadsReport[], foreseen: (call: string) => readonly string[]): string[] =>
  reports.flatMap(({ calls }) =>
    Object.entries(calls).flatMap(([call, counts]) =>
      Object.keys(counts)
        .filter((rv) => rv !== 'CKR_OK' && !foreseen(call).includes(rv))
        .map((rv) => `${call}: ${rv}`),
    ),
  );
const finish = async (foreseen: (call: string) => readonly string[]): Promise<void> => {
  const reports = await Promise.all(running.map((host) => host.finish()));
  expect(reports.map(({ firstWrong }) => firstWrong)).toEqual(reports.map(() => ''));
  expect(unforeseen(reports, foreseen)).toEqual([]);
  expect(Math.max(...reports.map((report) => report.longest))).toBeLessThan(hangsAfterMs);
  // A session whose C_CloseSession found no agent is still open.
  for (const { sessionsLeft, calls } of reports)
    expect(sessionsLeft).toBeLessThanOrEqual(calls.C_CloseSession?.CKR_DEVICE_REMOVED ?? 0);
};

test(`${processes} processes at once find the master key, use it and are gone`, async () => {
  const host = startHostProcess('crowd', options('crowd', 30_000), answers, processes, 2);
  const connected = await until('all of them', async () => {
    if (host.child.exitCode !== null) throw new Error(`it has ended: ${host.complaints()}`);
    return host.said.find((each) => each.connected !== undefined)?.connected;
  });
  expect(connected).toBe(processes);
  expect(memory(await agent())).toBeLessThan(300);
  host.child.stdin?.end();
  expect(`${await host.ended()} ${host.complaints()}`).toBe('0 ');
});

describe(`the agent of two processes with ${threads} threads each`, () => {
  test(`killed ${kills} times at random moments: calls succeed on the next one`, async () => {
    startThreads('killed', 20_000);
    await goOn(2);
    for (let i = 0; i < kills; i++) {
      const before = await agent();
      process.kill(before, 'SIGKILL');
      await until('the next agent', async () => (agents().some((pid) => pid !== before) ? true : undefined));
      await goOn(1);
      await pause(randomInt(100));
    }
    await finish(afterLoss);
  });

  test('killed while it starts: the next start succeeds', async () => {
    startThreads('started', 20_000);
    await goOn(1);
    const before = await agent();
    process.kill(before, 'SIGKILL');
    const next = await until('the next agent', async () => agents().find((pid) => pid !== before));
    await pause(randomInt(150));
    process.kill(next, 'SIGKILL');
    await goOn(1);
    // A start that fails permanently is CKR_DEVICE_REMOVED: the library does not start one agent
    // after the other in one call.
    await finish((call) => [...afterLoss(call), 'CKR_DEVICE_REMOVED', 'CKR_DEVICE_ERROR']);
  });

  test('stopped for less than the deadline: no one notices', async () => {
    startThreads('paused', 20_000);
    await goOn(2);
    const same = await agent();
    for (let i = 0; i < 8; i++) {
      process.kill(same, 'SIGSTOP');
      await pause(randomInt(50, 500));
      process.kill(same, 'SIGCONT');
      await pause(randomInt(50));
    }
    await goOn(2);
    expect(await agent()).toBe(same);
    await finish(() => []);
  });

  test('stopped for longer: CKR_DEVICE_ERROR in time, and operations begin afresh', async () => {
    const deadline = 1000;
    startThreads('stopped', deadline);
    await goOn(2);
    const same = await agent();
    for (let i = 0; i < 2; i++) {
      process.kill(same, 'SIGSTOP');
      await pause(2.5 * deadline);
      process.kill(same, 'SIGCONT');
      await goOn(2);
    }
    expect(await agent()).toBe(same);
    // An Init that is sent with its operation, or with a part, may not have arrived: the next call
    // shows it.
    const foreseen = (call: string): readonly string[] => [
      'CKR_DEVICE_ERROR',
      ...(/^C_(Crypt|Sign|Verify|Digest|Find)/.test(call) ? ['CKR_OPERATION_NOT_INITIALIZED'] : []),
      // Destroyed, though late.
      ...(call === 'C_DestroyObject' ? ['CKR_OBJECT_HANDLE_INVALID'] : []),
    ];
    await finish(foreseen);
  });

  test('whose service is restarted and killed: session keys work on', async () => {
    startThreads('service', 20_000);
    await goOn(2);
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      await site.stopServer(signal);
      await pause(randomInt(300));
      await site.startServer();
      await goOn(2);
    }
    const ofToken = (call: string): readonly string[] =>
      /token|C_FindObjects|C_GetTokenInfo/.test(call) ? ['CKR_DEVICE_ERROR', 'CKR_OPERATION_NOT_INITIALIZED'] : [];
    await finish(ofToken);
  });
});
