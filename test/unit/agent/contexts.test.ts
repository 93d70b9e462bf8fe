// Open configurations of several users: each is its owner's, also when the file is replaced.
import { randomUUID } from 'node:crypto';
import { chownSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import type { Peer } from '../../../addon/core.ts';
import type { Logs, OpenLog } from '../../../provider/agent/settings/log.ts';
import { ownUser } from '../../../provider/agent/settings/user-files.ts';
import { Contexts } from '../../../provider/agent/threads/contexts.ts';
import { sharedFolder } from '../../support/folders.ts';

const isRoot = ownUser().uid === 0;
if (!isRoot) console.log('left out: only root opens the files of other users');
const root: Peer = { pid: 1, uid: 0, gid: 0, groups: [] };
const stranger = 12_345;

test.runIf(isRoot)("a file of root's that another user replaces is not taken up: it would be this user's", async () => {
  const folder = sharedFolder();
  const path = join(folder, 'pkcs11.toml');
  const write = (to: string, owner: number): void => {
    const guid = randomUUID();
    const text = `server_url = "https://127.0.0.1:1/tde/v1/${guid}/db01"\naccess_token = "${guid}"\n`;
    writeFileSync(to, text, { mode: 0o600 });
    chownSync(to, owner, owner);
  };
  let told = (_line: string): void => undefined;
  const log: OpenLog = { write: (_level, _fields, message) => told(message), release: () => undefined };
  const logs: Logs = { own: async () => log, of: async () => log, close: async () => undefined };
  const held = new Map<number, number>();
  const contexts = new Contexts(logs, (uid, bytes) => held.set(uid, (held.get(uid) ?? 0) + bytes));
  try {
    write(path, 0);
    const context = await contexts.open(path, root, false);
    const before = context.config;
    const next = join(folder, 'next.toml');
    write(next, stranger);
    renameSync(next, path);
    const line = new Promise<string>((resolve) => {
      told = (message) => {
        if (/configuration/.test(message)) resolve(message);
      };
    });
    const now = performance.now();
    vi.spyOn(performance, 'now').mockImplementation(() => now + 3_600_000);
    const caller = { requestId: randomUUID(), instance: '-' };
    const call = context.call({ route: 'info', handle: null, head: {}, raw: null }, caller).catch(() => undefined);
    expect(await line).toMatch(/keep the configuration that they have.*owned by uid 12345/);
    vi.restoreAllMocks();
    expect(context.config).toBe(before);
    expect([...held.keys()]).toEqual([0]);
    await call;
    // The next one to open it gets the other one, and the first one stays root's.
    const other = await contexts.open(path, root, false);
    expect(other.id).not.toBe(context.id);
    expect(other.config.user.uid).toBe(stranger);
    expect(context.config).toBe(before);
  } finally {
    await contexts.close();
  }
  expect([...held]).toEqual([
    [0, 0],
    [stranger, 0],
  ]);
});
