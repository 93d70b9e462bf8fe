// Sixteen database processes on one agent, while the server is restarted and killed and the agent
// is killed twice. Every call ends, with CKR_OK or with a code that the protocol foresees for a
// lost agent or an absent service; no result is ever wrong; and when the processes have ended, the
// agent has none of their objects.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { until } from '../support/host.ts';
import type { LoadOrder, LoadProgress, LoadReport } from '../support/load-process.ts';
import { type Site, startSite } from '../support/site.ts';

const processes = 16;
/**
 * The return values of a call besides CKR_OK, by the end of its name. provider/PROTOCOL.md, "When
 * the agent goes away".
 */
const foreseen: Readonly<Record<string, readonly string[]>> = {
  // The agent was lost and could not be started in time, or the service was unreachable or did not
  // answer in time.
  always: ['CKR_OK', 'CKR_DEVICE_ERROR', 'CKR_DEVICE_REMOVED'],
  // Session objects go with their agent.
  session: ['CKR_KEY_HANDLE_INVALID'],
  // The Init could not be repeated on the new agent: the service was unreachable, or the session
  // key is lost.
  begun: ['CKR_OPERATION_NOT_INITIALIZED'],
};

interface Load {
  readonly child: ChildProcess;
  whole(): number;
  finish(): Promise<LoadReport>;
}

let site: Site;
let config: string;
let order: LoadOrder;
const loads: Load[] = [];

const startLoad = (): Load => {
  const child = spawn(process.execPath, [join(import.meta.dirname, '../support/load-process.ts')], {
    env: {
      ...process.env,
      DKE_PKCS11_CONF: config,
      DKE_PKCS11_SOCKET: site.socket,
      DKE_AGENT_LOG_DIR: site.logDirectory,
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const gone = once(child, 'close');
  let whole = 0;
  let report: LoadReport | undefined;
  createInterface({ input: child.stdout }).on('line', (line) => {
    const said = JSON.parse(line) as Partial<LoadProgress> & { readonly report?: LoadReport };
    whole = said.whole ?? whole;
    report = said.report ?? report;
  });
  child.stdin.on('error', () => undefined);
  child.stdin.write(`${JSON.stringify(order)}\n`);
  const load: Load = {
    child,
    whole: () => whole,
    finish: async () => {
      child.stdin.end();
      await gone;
      if (report === undefined)
        throw new Error(`a process ended with ${child.signalCode ?? child.exitCode}, without a word`);
      return report;
    },
  };
  loads.push(load);
  return load;
};

/** Until each process has finished more rounds without an error. */
const allGoOn = async (running: readonly Load[], more: number): Promise<void> => {
  const from = running.map((load) => load.whole());
  for (;;) {
    const ended = running.find(({ child }) => child.exitCode !== null || child.signalCode !== null);
    if (ended !== undefined) throw new Error('a process has ended in the middle of its work');
    if (running.every((load, at) => load.whole() >= (from[at] ?? 0) + more)) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};
/** The one that serves: of two that were started at once the other one finds that out, and ends. */
const oneAgent = (): Promise<number> =>
  until('one agent', async () => {
    const [one, ...others] = site.agents();
    return others.length === 0 ? one : undefined;
  });
const descriptors = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;

beforeAll(async () => {
  site = await startSite();
  const application = await registerApplication(site.api, 'erp', await createGroup(site.api, 'finance'));
  config = site.config('pkcs11', application);
  const database = site.database(config);
  expect((await database.call('open', { pin: '' })).rv).toBe('CKR_OK');
  order = { value: randomBytes(32).toString('hex'), label: 'SHARED' };
  expect((await database.call('import', { label: order.label, value: order.value })).rv).toBe('CKR_OK');
  await database.stop();
});
afterAll(async () => {
  for (const { child } of loads) child.kill('SIGKILL');
  await site.end();
});

const check = (reports: readonly LoadReport[]): void => {
  expect(reports.flatMap(({ wrong }) => wrong)).toEqual([]);
  const unforeseen = reports.flatMap(({ calls }) =>
    Object.entries(calls).flatMap(([name, answers]) => {
      const allowed = [
        ...(foreseen.always ?? []),
        ...(/Init session$/.test(name) ? (foreseen.session ?? []) : []),
        ...(/^C_(Encrypt|Decrypt|FindObjects|FindObjectsFinal|Digest)\b/.test(name) ? (foreseen.begun ?? []) : []),
      ];
      return Object.keys(answers)
        .filter((rv) => !allowed.includes(rv))
        .map((rv) => `${name}: ${rv}`);
    }),
  );
  expect([...new Set(unforeseen)]).toEqual([]);
  // Three attempts, each with its time limits for connecting, starting an agent and the answer,
  // plus time for a busy machine: a longer call hangs.
  expect(Math.max(...reports.map(({ longest }) => longest))).toBeLessThan(180_000);
  // A session whose C_CloseSession found no agent is still open.
  for (const { sessionsLeft, calls } of reports)
    expect(sessionsLeft).toBeLessThanOrEqual(calls.C_CloseSession?.CKR_DEVICE_REMOVED ?? 0);
};

test('sixteen processes outlive a restarted server and two killed agents, without one wrong answer', async () => {
  const running = Array.from({ length: processes }, startLoad);
  await allGoOn(running, 10);

  expect(await site.stopServer()).toBe(0);
  await site.startServer();
  await allGoOn(running, 10);

  const first = await oneAgent();
  process.kill(first, 'SIGKILL');
  await allGoOn(running, 10);
  const second = await oneAgent();
  expect(second).not.toBe(first);

  await site.stopServer('SIGKILL');
  process.kill(second, 'SIGKILL');
  await site.startServer();
  await allGoOn(running, 10);
  expect(await oneAgent()).not.toBe(second);

  const reports = await Promise.all(running.map(({ finish }) => finish()));
  check(reports);
  for (const { whole } of reports) expect(whole).toBeGreaterThanOrEqual(40);
});

test('leaves nothing behind in the agent, however often processes come, go and are killed', async () => {
  const watcher = site.database(config);
  expect((await watcher.call('open', { pin: '' })).rv).toBe('CKR_OK');
  expect((await watcher.call('find', { label: order.label })).rv).toBe('CKR_OK');
  const agent = await oneAgent();
  const settled = (most: number) =>
    until('the agent to let go', async () => (descriptors(agent) <= most ? true : undefined));
  // Kept connections to the service end on their own; the rest is the baseline.
  let base = descriptors(agent);
  await until('the base', async () => {
    const now = descriptors(agent);
    const same = now === base;
    base = Math.min(base, now);
    return same ? true : undefined;
  });
  for (const killed of [false, true]) {
    const running = Array.from({ length: processes }, startLoad);
    await allGoOn(running, 5);
    expect(descriptors(agent)).toBeGreaterThan(base);
    if (killed) {
      for (const { child } of running) {
        const gone = once(child, 'exit');
        child.kill('SIGKILL');
        await gone;
      }
    } else {
      check(await Promise.all(running.map(({ finish }) => finish())));
    }
    await settled(base);
  }
  expect(await oneAgent()).toBe(agent);
  expect((await watcher.call('find', { label: order.label })).handles).toHaveLength(1);
});
