// The inbox at the console, in a real browser, with things in it that really are so: most of a year
// has passed, a snapshot has lost its file, a collector of the audit log is unreachable, approvals
// are pending.
import { mkdtempSync, readdirSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { notificationKindNames } from '../../server/clients/web/src/service/notification-kinds.ts';
import type { Notification } from '../../server/contract/api/notifications-routes.ts';
import { type ConsoleBrowser, chromiumPath, openConsoleBrowser } from '../support/console-browser.ts';
import { type ConsoleData, fillConsole } from '../support/console-data.ts';
import { freePort } from '../support/daemon.ts';
import { shiftedClock } from '../support/shifted-clock.ts';
import { type Site, startSite } from '../support/site.ts';

if (chromiumPath === null) console.log('skipped: no chromium on the PATH');

const dayMs = 86_400_000;
const passedMs = 345 * dayMs;
const wanted = [
  'key.rotation-due',
  'master-key.rotation-due',
  'endpoint.credential-due',
  'application.access-guid-due',
  'tls.certificate-old',
  'key-store.disconnected',
  'approval.pending',
  'snapshot.failed',
  'audit.sink-behind',
] as const satisfies readonly Notification['kind'][];

describe.runIf(chromiumPath !== null)('the inbox at the console', () => {
  let folder: string;
  let site: Site;
  let data: ConsoleData;
  let eyes: ConsoleBrowser;
  let page: Page;
  /** The service's clock is so much ahead. */
  let ahead: (ms: number) => void;
  const open = async (): Promise<readonly Notification[]> =>
    (await site.api.call<{ items: Notification[] }>('GET', '/api/notifications?limit=100')).items;
  const row = (text: RegExp | string) => page.getByRole('row').filter({ hasText: text });

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'dke-inbox-'));
    const clock = shiftedClock(folder);
    ahead = clock.ahead;
    const nobody = await freePort();
    const token = join(folder, 'collector.token');
    writeFileSync(token, 'a token of the collector\n', { mode: 0o600 });
    site = await startSite({
      folder,
      toml: `[erasure]\ngather_ms = 20\n[[audit.sinks]]\nname = "collector"\ntype = "https"
url = "https://localhost:${nobody}/in"\ntoken_file = ${JSON.stringify(token)}\n`,
      environment: clock.environment,
    });
    data = await fillConsole(site);
    await site.stopServer();
    ahead(passedMs);
    await site.startServer();
    const { id } = await site.api.call<{ id: string }>('POST', '/api/keys', {
      name: 'asked for',
      vaultId: data.vaultId,
    });
    await site.api.call('PUT', `/api/vaults/${data.vaultId}/dual-control`, { required: 1, actions: ['destroy'] });
    await site.api.send('DELETE', `/api/keys/${id}`);
    const snapshots = join(site.server.dataDirectory, 'snapshots');
    for (const file of readdirSync(snapshots)) if (file.includes(data.snapshotId)) unlinkSync(join(snapshots, file));
    await site.api.send('POST', `/api/snapshots/${data.snapshotId}/verify`, {});
    eyes = await openConsoleBrowser(site.server.url, chromiumPath ?? '');
    [, page] = await eyes.open();
    // The browser's own clock is the service's.
    await page.clock.setFixedTime(Date.now() + passedMs + 600_000);
    await eyes.signIn(page, site.token);
  });
  afterAll(async () => {
    await eyes?.close();
    await site?.end();
    rmSync(folder, { recursive: true, force: true });
  });

  test('every kind is a row with the finding, the fix, and a link to it', async () => {
    // Long enough for a notification about an unreachable collector.
    await expect
      .poll(async () =>
        (await site.api.call<{ items: { failure: object | null }[] }>('GET', '/api/audit/sinks')).items.map(
          ({ failure }) => failure !== null,
        ),
      )
      .toEqual([true]);
    ahead(passedMs + 600_000);
    await expect
      .poll(async () => [...new Set((await open()).map(({ kind }) => kind))], { interval: 500 })
      .toEqual(expect.arrayContaining([...wanted]));
    await page.goto('/notifications');
    for (const { text, action } of await open()) {
      // Times are shown in the user's time zone.
      const [shownText = ''] = `${text.charAt(0).toUpperCase()}${text.slice(1)}`.split(/\d{4}-/);
      await row(shownText).first().getByRole('link', { name: action }).waitFor();
    }
    await eyes.lookClosely('inbox', page);
  });

  test('several are acknowledged with one confirmation', async () => {
    await page.goto('/notifications?acknowledged=false');
    const boxes = page.getByRole('checkbox', { name: /^Choose (?!all)/ });
    await boxes.nth(1).waitFor();
    const before = (await open()).filter(({ acknowledgedAt }) => acknowledgedAt !== null).length;
    await boxes.nth(0).check();
    await boxes.nth(1).check();
    await page.getByRole('button', { name: 'Acknowledge…', exact: true }).click();
    const asked = page.getByRole('dialog', { name: 'Acknowledge 2 notifications?' });
    await asked.getByRole('button', { name: 'Acknowledge 2 notifications' }).click();
    await asked.getByText('2 done, 0 refused').waitFor();
    await asked.getByRole('button', { name: 'Done' }).click();
    await asked.waitFor({ state: 'detached' });
    expect((await open()).filter(({ acknowledgedAt }) => acknowledgedAt !== null)).toHaveLength(before + 2);
    expect(await eyes.findBarriers(page)).toEqual([]);
    await page.goto('/notifications');
  });

  test('is filtered by kind, and the person who takes one is named', async () => {
    await page.getByLabel('Kind').selectOption({ label: notificationKindNames['audit.sink-behind'] });
    await page.getByRole('status').filter({ hasText: '1 shown' }).waitFor();
    await row('collector')
      .getByRole('button', { name: /^Acknowledge:/ })
      .click();
    await row('collector').getByText('first administrator').waitFor();
    await row('collector').getByRole('link', { name: 'View sinks' }).click();
    await page.getByRole('heading', { level: 1, name: 'Sinks' }).waitFor();
    await page
      .getByText(/ECONNREFUSED/)
      .first()
      .waitFor();
    expect(eyes.faults).toEqual([]);
  });
});
