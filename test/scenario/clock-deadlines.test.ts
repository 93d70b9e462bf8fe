// A clock that jumps two months ahead (libfaketime) destroys nothing with a deadline in 30 days:
// not immediately, and not after restarts with the wrong clock. If the clock was right, an operator
// confirms the time, and everything due is purged.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ClockState } from '../../server/contract/api/clock-routes.ts';
import type { Notification } from '../../server/contract/api/notifications-routes.ts';
import type { Tenant } from '../../server/contract/api/tenants-routes.ts';
import { runCommand } from '../support/command.ts';
import { openConsoleApi } from '../support/console-api.ts';
import { builtServer } from '../support/killed-server.ts';
import { startServerProcess } from '../support/server-process.ts';
import { shiftedClock } from '../support/shifted-clock.ts';

const day = 86_400_000;
const aheadMs = 60 * day;

test('a clock that jumps ahead purges nothing before its time, over restarts; a confirmed time does', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-deadlines-'));
  const clock = shiftedClock(folder);
  const start = () => startServerProcess({ folder, program: [builtServer], environment: clock.environment });
  let server = await start();
  const token = server.adminToken;
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, `${token}\n`, { mode: 0o600 });
  try {
    const { id } = await openConsoleApi(server, token).call<Tenant>('POST', '/api/tenants', { name: 'acme' });
    await openConsoleApi(server, token).call('DELETE', `/api/tenants/${id}`);
    clock.ahead(aheadMs);

    /**
     * What the first round of minute jobs of a start leaves: the clock is checked first, the
     * notifications behind the tenants.
     */
    const afterJobs = async () => {
      const api = openConsoleApi(server, token);
      const state = async () => (await api.call<Tenant>('GET', `/api/tenants/${id}`)).state;
      const isNotified = async () =>
        (await api.call<{ items: Notification[] }>('GET', '/api/notifications?limit=100')).items.some(
          ({ kind }) => kind === 'clock.jumped',
        );
      const agreed = async () => (await api.call<ClockState>('GET', '/api/clock')).agreedSeconds ?? 0;
      const before = await agreed();
      await expect
        .poll(async () => (await state()) === 'purged' || ((await isNotified()) && (await agreed()) > before))
        .toBe(true);
      return { api, state: await state() };
    };
    for (let restart = 0; restart < 2; restart += 1) {
      await server.stop();
      server = await start();
      const { api, state } = await afterJobs();
      expect([restart, state]).toEqual([restart, 'deleted']);
      const seen = await api.call<ClockState>('GET', '/api/clock');
      expect(seen).toMatchObject({ jumped: true });
      expect(Math.abs((seen.aheadSeconds ?? 0) * 1000 - aheadMs)).toBeLessThan(3_600_000);
      expect(Date.parse(seen.clock) - Date.parse(seen.deadlines)).toBeGreaterThan(aheadMs - 3_600_000);
      expect(await api.call('GET', '/api/status')).toMatchObject({ clock: { jumped: true } });
      expect((await api.audit('kind=clock.jumped')).length).toBe(1);
      // The tenant can still be restored, regardless of the clock.
      expect((await api.send('POST', `/api/tenants/${id}/restore`)).status).toBe(200);
      expect((await api.send('DELETE', `/api/tenants/${id}`)).status).toBe(200);
    }

    const dke = (...args: string[]) =>
      runCommand(args, {
        environment: { DKE_SERVER: server.url, DKE_CA_FILE: server.caFile, DKE_TOKEN_FILE: tokenFile },
        cwd: folder,
      });
    const wrong = await dke('clock', 'confirm', '--time', new Date().toISOString());
    expect([wrong.code, wrong.stderr]).toEqual([expect.any(Number), expect.stringContaining('but the given time is')]);
    expect(wrong.code).not.toBe(0);
    const confirmed = await dke('clock', 'confirm', '--time', new Date(Date.now() + aheadMs).toISOString());
    expect([confirmed.code, confirmed.stderr]).toEqual([0, '']);
    const api = openConsoleApi(server, token);
    expect((await api.audit('kind=clock.confirmed')).length).toBe(1);
    // Its deadline is by the clock that was confirmed: deleted at that time, it has 30 days from
    // then.
    const { purgeAt } = await api.call<Tenant>('GET', `/api/tenants/${id}`);
    expect(Date.parse(purgeAt ?? '') - Date.now()).toBeGreaterThan(aheadMs + 29 * day);

    // A jump back to the old time is also a jump. 31 days later, after a confirmation, the tenant
    // is purged.
    await server.stop();
    clock.ahead(aheadMs + 31 * day);
    server = await start();
    expect((await afterJobs()).state).toBe('deleted');
    const due = await dke('clock', 'confirm', '--time', new Date(Date.now() + aheadMs + 31 * day).toISOString());
    expect([due.code, due.stderr]).toEqual([0, '']);
    await server.stop();
    server = await start();
    await expect
      .poll(async () => (await openConsoleApi(server, token).call<Tenant>('GET', `/api/tenants/${id}`)).state)
      .toBe('purged');
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
