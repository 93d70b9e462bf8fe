// The host's clock jumps while the real server runs (libfaketime): ahead, back behind the
// beginning, and home again. What counts is order and elapsed time, and both are kept otherwise;
// what has an end by the calendar follows it.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openConsoleApi } from '../support/console-api.ts';
import { openWorkload } from '../support/fault-workload.ts';
import { builtServer, verifyCopy } from '../support/killed-server.ts';
import { startServerProcess } from '../support/server-process.ts';

const day = 86_400;

test('a clock that jumps two days ahead and five back changes no key, no order of the audit log and no repeat of a request', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-clock-'));
  const library = execFileSync('sh', ['-c', 'ls /usr/lib/*/faketime/libfaketimeMT.so.1'], { encoding: 'utf8' }).trim();
  const offset = join(folder, 'offset');
  const jump = (seconds: number): void => writeFileSync(offset, `${seconds < 0 ? '' : '+'}${seconds}\n`);
  jump(0);
  const server = await startServerProcess({
    folder,
    toml: '[snapshots]\nrestore_second_person = false\n',
    program: [builtServer],
    environment: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: offset,
      FAKETIME_NO_CACHE: '1',
      DONT_FAKE_MONOTONIC: '1',
    },
  });
  try {
    const api = openConsoleApi(server, server.adminToken);
    const workload = await openWorkload({ server }, server.adminToken, { seed: 3 });
    const soon = new Date(Date.now() + day * 1000).toISOString();
    const { token } = await api.call<{ token: string }>('POST', '/api/tokens', {
      name: 'until tomorrow',
      grants: [{ role: 'auditor', scope: null }],
      expiresAt: soon,
    });
    const read = async () => (await openConsoleApi(server, token).send('GET', '/api/audit?limit=1')).status;
    const { id: vaultId } = await api.call<{ id: string }>('POST', '/api/vaults', { name: 'before' });
    const create = () =>
      api.send('POST', '/api/keys', { name: 'once', vaultId }, { 'idempotency-key': 'the-same-request' });
    const made = await create();
    expect([made.status, await read()]).toEqual([201, 200]);
    await (await workload.prepare('create'))();
    for (const [seconds, expected] of [
      [2 * day, 401],
      [-3 * day, 200],
      [0, 200],
    ] as const) {
      jump(seconds);
      // A node among others may have slept so long: it uses no keys until it has looked what
      // changed in the meantime.
      await expect.poll(() => workload.serve().then(() => 'served', String)).toBe('served');
      expect([seconds, await read()]).toEqual([seconds, expected]);
      // A repeated request gets the same answer, not a second vault and not a conflict.
      const again = await create();
      expect([seconds, again.status, again.text]).toEqual([seconds, 201, made.text]);
      for (const what of ['create', 'rotate', 'import again', 'destroy'] as const)
        await (await workload.prepare(what))();
      await workload.serve();
      expect((await api.send('GET', '/health')).status).toBe(200);
    }
    expect(await workload.check(true)).toEqual([]);
    await server.stop();
    expect((await verifyCopy(folder)).findings).toEqual([]);
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
