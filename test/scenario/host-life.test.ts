// What a host does with the library next to calling it: initialises it in every shape, forks at
// every moment, drops it without a word. Each rule is one process of its own in C
// (test/native/host/descriptors.c, forks.c, life.c), on the real agent and service.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { startHostProcess, writeAnswers } from '../support/host-process.ts';
import { type Site, startSite } from '../support/site.ts';

let site: Site;
let config: string;
let answers: string;

beforeAll(async () => {
  site = await startSite();
  const application = await registerApplication(site.api, 'erp', await createGroup(site.api, 'finance'));
  // Calls may be slow on a loaded machine.
  config = site.config('pkcs11', application, 'connect_timeout_ms = 10000\ncall_timeout_ms = 30000\n');
  answers = writeAnswers(site.folder, randomBytes(32));
});
afterAll(() => site.end());

const obeys = async (program: 'descriptors' | 'forks' | 'life', rule: string): Promise<void> => {
  const options = { config, socket: site.socket, logDirectory: site.logDirectory };
  const host = startHostProcess(program, options, answers, rule);
  const end = await host.ended();
  expect(`${end} ${host.complaints()}`).toBe('0 ');
};

describe('a process that forks', () => {
  test.each([
    ['before C_Initialize: parent and child each have a library of their own', 'before-initialize'],
    ['and whose child uses the parent’s library: CKR_CRYPTOKI_NOT_INITIALIZED, and no harm done', 'child-uses'],
    ['and whose child initialises again: both continue, with nothing in common', 'child-initializes'],
    ['between Init and operation: the operation is the parent’s', 'with-an-operation-under-way'],
    ['and finalises: its child continues', 'parent-finalizes'],
    ['and dies: a child that does nothing keeps nothing of it at the agent', 'parent-dies'],
    ['and dies: a child that works continues', 'parent-dies-child-goes-on'],
    ['five times over: each descendant has a library of its own', 'descendants'],
    ['twice, as daemons do: the grandchild works', 'double-fork'],
    ['while other threads are in calls: no child inherits a lock or an answer', 'during-calls-of-other-threads'],
    ['while another thread is in C_Initialize or C_Finalize', 'during-initialize-of-another-thread'],
    ['into sixty children that all initialise at once', 'many-children'],
    ['while the agent is being started: no child keeps the next start from happening', 'while-the-agent-is-started'],
    ['and executes: the program inherits no socket and works', 'child-executes'],
    ['by vfork or posix_spawn, and executes', 'vfork-and-spawn'],
  ])('%s', (_what, rule) => obeys('forks', rule));
});

describe('the library', () => {
  test.each([
    ['takes every legal shape of C_Initialize’s argument, and refuses each other one with its code', 'arguments'],
    ['ends with C_Finalize, and nothing of it is there in the next life', 'finalize'],
    ['is initialised by one of sixteen threads that try at once', 'threads-initialize'],
    ['lets calls under way return CKR_CRYPTOKI_NOT_INITIALIZED at C_Finalize', 'finalize-under-threads'],
    ['goes with dlclose, C_Finalize or not, and comes back', 'dlclose'],
    ['leaves no code to run at a fork after dlclose', 'fork-after-dlclose'],
    ['may go in a child without the parent’s noticing', 'dlclose-in-a-child'],
    ['lets a process exit while threads are in its functions', 'exit-under-threads'],
  ])('%s', (_what, rule) => obeys('life', rule));
});

describe('a process that puts its own descriptors under the library’s numbers', () => {
  test.each([
    ['a TCP connection', 'tcp'],
    ['a socket that blocks', 'blocking-socket'],
    ['a pipe that could be read', 'pipe-to-read'],
    ['a pipe that could be written', 'pipe-to-write'],
    ['and calls C_Finalize', 'finalize'],
    ['of which it keeps another copy', 'kept-elsewhere'],
    ['and unloads the library', 'dlclose'],
    ['and forks', 'fork'],
    ['after it has closed all, while threads are in calls', 'closed-under-threads'],
  ])('%s: the library leaves them alone, and connects again', (_what, rule) => obeys('descriptors', rule));
});
