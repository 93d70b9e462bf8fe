// Sixty-four threads of one process at everything at once, through the real library, agent and
// service: every answer is the caller's own. The same again under the thread sanitizer, library and
// host both.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { until } from '../support/host.ts';
import { startHostProcess, type ThreadsReport, writeAnswers } from '../support/host-process.ts';
import { type Site, startSite } from '../support/site.ts';

const threads = 64;
const root = resolve(import.meta.dirname, '../..');

let site: Site;
let config: string;
let answers: string;
let token: number;

beforeAll(async () => {
  // Built on demand: no other test needs it.
  execFileSync('cmake', ['--build', 'build', '--target', 'host-tsan'], { cwd: root, stdio: 'pipe' });
  site = await startSite();
  const application = await registerApplication(site.api, 'erp', await createGroup(site.api, 'finance'));
  // Calls may be slow under a sanitizer on a loaded machine.
  config = site.config('pkcs11', application, 'call_timeout_ms = 30000\n');
  const database = site.database(config);
  expect((await database.call('open', { pin: '' })).rv).toBe('CKR_OK');
  const value = randomBytes(32);
  token = (await database.call('import', { label: 'MASTER', value: value.toString('hex') })).handle ?? 0;
  answers = writeAnswers(site.folder, value);
});
afterAll(() => site.end());

const host = (tsan: boolean) => ({ config, socket: site.socket, logDirectory: site.logDirectory, tsan });

const check = (report: ThreadsReport, rounds: number): void => {
  expect(report.firstWrong).toBe('');
  expect(report.wrong).toBe(0);
  expect(new Set(Object.values(report.calls).flatMap((answer) => Object.keys(answer)))).toEqual(new Set(['CKR_OK']));
  expect(report.whole).toBe(rounds);
  expect(report.rounds).toBe(rounds * threads);
  expect(report.sessionsLeft).toBe(0);
};

describe(`${threads} threads`, () => {
  test('get their own answers', async () => {
    check(await startHostProcess('threads', host(false), answers, threads, 25, token).finish(), 25);
  });

  test('get their own answers without a data race', async () => {
    const started = startHostProcess('threads', host(true), answers, threads, 6, token);
    const report = await started.finish();
    expect(started.complaints()).toBe('');
    check(report, 6);
  });

  test('race for nothing either when the agent is stopped, and killed, under them', async () => {
    const started = startHostProcess('threads', host(true), answers, 16, 0, token);
    // The awaited event never occurs after the end of the host.
    const fromHost = <T>(what: string, ask: () => T | undefined): Promise<T> =>
      until(what, async () => {
        const { exitCode, signalCode } = started.child;
        if (exitCode !== null || signalCode !== null)
          throw new Error(`the host ended with ${signalCode ?? exitCode}: ${started.complaints()}`);
        return ask();
      });
    const goOn = (): Promise<true> => {
      const from = started.whole();
      return fromHost('a round of each', () => (started.whole() > from ? true : undefined));
    };
    const agent = (other?: number): Promise<number> =>
      fromHost('the agent', () => site.agents().find((pid) => pid !== other));
    await goOn();
    for (let i = 0; i < 2; i++) {
      const stopped = await agent();
      process.kill(stopped, 'SIGSTOP');
      await new Promise((resolve) => setTimeout(resolve, 200));
      process.kill(stopped, 'SIGCONT');
      await goOn();
      const killed = await agent();
      process.kill(killed, 'SIGKILL');
      await agent(killed);
      await goOn();
    }
    const report = await started.finish();
    expect(started.complaints()).toBe('');
    expect(report.firstWrong).toBe('');
    expect(report.sessionsLeft).toBe(0);
  });
});
