// Pages of single things at the console, in a real browser: a user with sessions and tokens, one's
// own sessions, the scheduled jobs, notification targets with a test, the state and the keys of the
// service, the map of dependencies and the timeline of a key.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { InvitedUser, User } from '../../server/contract/api/users-routes.ts';
import { type ConsoleBrowser, chromiumPath, openConsoleBrowser } from '../support/console-browser.ts';
import { type ConsoleData, fillConsole } from '../support/console-data.ts';
import { freePort } from '../support/daemon.ts';
import { useKeyboard } from '../support/keyboard.ts';
import { type Site, startSite } from '../support/site.ts';

if (chromiumPath === null) console.log('skipped: no chromium on the PATH');

describe.runIf(chromiumPath !== null)('the pages of single things', () => {
  let site: Site;
  let data: ConsoleData;
  let eyes: ConsoleBrowser;
  let page: Page;
  const heading = (name: string | RegExp) => page.getByRole('heading', { level: 1, name });
  const panel = (title: string) =>
    page.locator('section').filter({ has: page.getByRole('heading', { level: 2, name: title, exact: true }) });

  beforeAll(async () => {
    const secret = join(mkdtempSync(join(tmpdir(), 'dke-details-')), 'hook.secret');
    writeFileSync(secret, 'a secret of the hook that is long enough\n', { mode: 0o600 });
    const port = await freePort();
    site = await startSite({
      toml: `[erasure]\ngather_ms = 20\n[snapshots]\nschedule = "0 3 * * *"\n[[notifications.targets]]\nname = "on-call"
type = "webhook"\nurl = "https://localhost:${port}/in"\nsecret_file = ${JSON.stringify(secret)}\nallow_private = true\n`,
    });
    data = await fillConsole(site);
    eyes = await openConsoleBrowser(site.server.url, chromiumPath ?? '');
    [, page] = await eyes.open();
    await eyes.signIn(page, site.token);
  });
  afterAll(async () => {
    await eyes?.close();
    await site?.end();
  });

  test('a user has a page, on which the name, mail and roles are changed', async () => {
    const { user } = await site.api.call<InvitedUser>('POST', '/api/users', {
      ...{ name: 'mara', displayName: 'Mara' },
      grants: [{ role: 'auditor', scope: null }],
    });
    await page.goto('/users');
    await page.getByRole('link', { name: 'Mara' }).click();
    await heading('Mara').waitFor();
    await panel('Roles').getByText('Auditor').waitFor();
    await panel('Permissions').getByText('audit:read').waitFor();
    await page.getByRole('button', { name: 'Actions on this user' }).click();
    await page.getByRole('menuitem', { name: 'Edit' }).click();
    const form = page.getByRole('dialog', { name: /^Edit/ });
    await form.getByLabel('Full name').fill('Mara Lind');
    await form.getByLabel('E-mail').fill('mara@example.com');
    await form.getByLabel('Key manager').check();
    await form.getByRole('button', { name: 'Save user' }).click();
    await heading('Mara Lind').waitFor();
    await page.getByText('mara@example.com').waitFor();
    await panel('Roles').getByText('Key manager').waitFor();
    const changed = await site.api.call<User>('GET', `/api/users/${user.id}`);
    expect(changed.grants.map(({ role }) => role).sort()).toEqual(['auditor', 'key-manager']);
    await page.setViewportSize({ width: 390, height: 800 });
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
    await page.setViewportSize({ width: 1280, height: 860 });
  });

  test('every scheduled job is listed, with its last run', async () => {
    await page.goto('/');
    await page.getByRole('link', { name: 'Service state' }).click();
    await heading('Service state').waitFor();
    await page.getByText('Deadlines follow the clock').waitFor();
    await page.getByText('Not in quarantine').waitFor();
    await page.getByRole('navigation', { name: 'Service' }).getByRole('link', { name: 'Scheduled jobs' }).click();
    for (const name of [
      'The clock',
      'Scheduled snapshots',
      'Old snapshots',
      'Old records',
      'External key stores',
      'Notifications',
    ])
      await page.getByRole('row', { name: new RegExp(`^${name}`) }).waitFor();
    const clock = async () =>
      (await site.api.call<{ items: { name: string; succeededAt: string | null }[] }>('GET', '/api/jobs')).items.find(
        ({ name }) => name === 'the clock',
      );
    await expect.poll(async () => (await clock())?.succeededAt).toMatch(/Z$/);
    await page.reload();
    await page
      .getByRole('row', { name: /^The clock/ })
      .getByText('Succeeded')
      .waitFor();
  });

  test('the keys of the service are rotated where the API allows it, and the host has its command', async () => {
    await page.goto('/service/keys');
    await page.getByText('dke root backup --out root-backup').waitFor();
    await page.getByRole('button', { name: 'Rotate token key' }).click();
    const dialog = page.getByRole('dialog', { name: /^Rotate the key of API tokens/ });
    await dialog.getByRole('button', { name: 'Rotate token key' }).click();
    await dialog.waitFor({ state: 'detached' });
    const kinds = await site.api.call<{ items: unknown[] }>('GET', '/api/audit?kind=token.key-rotated');
    expect(kinds.items).toHaveLength(1);
  });

  test('a test of the notification targets says which of them did not accept it', async () => {
    await page.goto('/notifications');
    await page.getByRole('navigation', { name: 'Notifications' }).getByRole('link', { name: 'Targets' }).click();
    await page.getByRole('row', { name: /on-call/ }).waitFor();
    await page.getByRole('button', { name: 'Send a test' }).click();
    // Nothing listens there, and the page does not look as if the message had arrived.
    await page.getByText('1 of 1 targets did not accept the test').waitFor();
    await page.getByText(/^on-call: /).waitFor();
    const tried = await site.api.call<{ items: { name: string; failure: string | null }[] }>(
      'POST',
      '/api/notifications/test',
    );
    expect(tried.items).toEqual([{ name: 'on-call', failure: expect.any(String) }]);
  });

  test('the request log is verified against its hashes', async () => {
    await page.goto('/requests');
    await page.getByRole('navigation', { name: 'Request log' }).getByRole('link', { name: 'Verification' }).click();
    await page.getByRole('button', { name: 'Verify request log' }).click();
    await page.getByText('The request log matches its hashes').waitFor();
  });

  test('the map of a key leads by keyboard to what depends on it, and says the same as a list', async () => {
    await page.goto(`/keys/${data.keyId}`);
    const map = page.getByRole('group', { name: 'Dependencies of the key orders-2026' });
    await map.waitFor();
    const hands = useKeyboard(page);
    await page.getByText('As a list').click();
    await panel('Dependencies').getByText('→ orders-2026').filter({ visible: true }).waitFor();
    expect(await eyes.findBarriers(page)).toEqual([]);
    const names = await map.getByRole('link').allTextContents();
    expect(names.some((name) => name.includes('Payments'))).toBe(true);
    expect(names.some((name) => name.includes('aws-eu-central-1'))).toBe(true);
    await map.getByRole('link', { name: /aws-eu-central-1/ }).focus();
    await hands.press('Enter');
    await heading('aws-eu-central-1').waitFor();
  });

  test('the timeline of a key tells its rotation, and its destruction', async () => {
    await page.goto(`/keys/${data.keyId}`);
    const timeline = panel('Timeline');
    await timeline.getByText('Key created').waitFor();
    await timeline.getByText('Key rotated: version 2').waitFor();
    await timeline.getByText('First used').waitFor();
    const path = `/api/tde/applications/${data.applicationId}/master-keys/${data.masterKeyId}`;
    const { name } = await site.api.call<{ readonly name: string }>('GET', path);
    await site.api.call('POST', `${path}/destroy`, { confirm: name });
    await page.goto(`/keys/${data.masterKeyId}`);
    await timeline.getByText('Key destroyed').waitFor();
  });

  test('a vault has a page with its rotation profile and its map', async () => {
    await page.goto('/vaults');
    await page.getByRole('link', { name: 'Payments', exact: true }).click();
    await heading('Payments').waitFor();
    await page.getByRole('group', { name: 'Dependencies of the vault Payments' }).waitFor();
    await page.getByRole('button', { name: 'Actions on this vault' }).click();
    await page.getByRole('menuitem', { name: 'Rotation profile' }).click();
    const form = page.getByRole('dialog', { name: /^Rotation profile/ });
    await form.getByRole('combobox', { name: 'Rotation profile' }).selectOption('high-security');
    await form.getByRole('button', { name: 'Save profile' }).click();
    await page.getByText('High security: every 3 to 6 months').waitFor();
  });

  test('has left nothing to complain of', () => {
    expect(eyes.faults).toEqual([]);
  });
});
