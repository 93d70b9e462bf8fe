// The inbox at the console: what needs somebody today stands on the overview, at the bell and in the inbox, from one source; somebody takes it,
// and it is gone from there until it is given back.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { IssuedToken } from '../../server/fronts/contract/api/tokens.ts';
import { type ConsoleBrowser, chromiumPath, openConsoleBrowser } from '../support/console-browser.ts';
import { type Keyboard, useKeyboard } from '../support/keyboard.ts';
import { type Site, startSite } from '../support/site.ts';

if (chromiumPath === null) console.log('skipped: no chromium on the PATH');

describe.runIf(chromiumPath !== null)('the inbox', { timeout: 400_000 }, () => {
  let site: Site;
  let eyes: ConsoleBrowser;
  let page: Page;
  let hands: Keyboard;

  const press = async (name: RegExp | string): Promise<void> => {
    await hands.to(name);
    await hands.press('Enter');
  };

  beforeAll(async () => {
    site = await startSite();
    const make = (path: string, body: object) => site.api.call<{ readonly id: string }>('POST', path, body);
    const vault = await make('/api/vaults', { name: 'Payments' });
    const key = await make('/api/keys', { name: 'orders', vaultId: vault.id });
    const rule = { required: 2, actions: ['destroy'] };
    const more = async (name: string) =>
      (
        await site.api.call<IssuedToken>('POST', '/api/tokens', {
          name,
          grants: [{ role: 'key-approver', scope: null }],
        })
      ).record;
    const [first, second] = [await more('approver one'), await more('approver two')];
    await site.api.call('PUT', `/api/vaults/${vault.id}/dual-control`, rule);
    expect((await site.api.send('DELETE', `/api/keys/${key.id}`)).status).toBe(202);
    for (const { id } of [first, second]) await site.api.call('DELETE', `/api/tokens/${id}`);
    // It looks soon after its start, then every minute.
    await site.stopServer();
    await site.startServer();
    await expect
      .poll(async () => (await site.api.call<{ items: unknown[] }>('GET', '/api/notifications')).items.length, {
        timeout: 60_000,
      })
      .toBeGreaterThanOrEqual(2);
    eyes = await openConsoleBrowser(site.server.url, chromiumPath ?? '');
    [, page] = await eyes.open();
    page.setDefaultTimeout(60_000);
    hands = useKeyboard(page);
    await page.goto('/');
    await page.getByRole('button', { name: 'Use a token' }).click();
    await page.getByLabel('Administrator token').fill(site.token);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  }, 120_000);
  afterAll(async () => {
    await eyes?.close();
    await site?.end();
  });

  const bell = (text: RegExp) => page.getByRole('link', { name: text }).waitFor();
  const pending = 'The request for approval about orders waits';

  test('tells the same on the overview and at the bell', async () => {
    await page.getByText(pending).waitFor();
    await page.getByText('There are too few approvers for the dual control of the vault Payments').waitFor();
    await bell(/^Notifications: 2 need you today$/);
    await eyes.shoot('inbox-overview', page);
  });

  test('is looked through, taken and given back, by keyboard', async () => {
    await press(/^Notifications: 2 need you today$/);
    await page.getByRole('heading', { level: 1, name: 'Notifications' }).waitFor();
    await page.getByText(pending).waitFor();
    expect(await eyes.findBarriers(page)).toEqual([]);
    await eyes.shoot('inbox', page);
    await press(/^Take: the request for approval/);
    await bell(/^Notifications: 1 need you today$/);
    await page.getByRole('button', { name: /^Give back: the request for approval/ }).waitFor();
    await page.getByLabel('Who takes care').selectOption('true');
    await page.getByText('too few approvers').waitFor({ state: 'detached' });
    expect(new URL(page.url()).search).toBe('?taken=%22true%22');
    await page.getByRole('button', { name: 'Details' }).first().click();
    await page.getByText('API call').first().waitFor();
    expect(await eyes.findBarriers(page)).toEqual([]);
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await eyes.findBarriers(page, ['color-contrast'])).toEqual([]);
    await eyes.shoot('inbox-dark', page);
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize({ width: 320, height: 700 });
    expect(await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')).toBe(0);
    await eyes.shoot('inbox-narrow', page);
    await page.setViewportSize({ width: 1280, height: 860 });
    await press(/^Give back: the request for approval/);
    await page.getByText('Nothing matches these filters').waitFor();
    await bell(/^Notifications: 2 need you today$/);
    const kinds = (await site.api.audit('limit=2')).map(({ kind }) => kind);
    expect(kinds).toEqual(['notification.released', 'notification.acknowledged']);
  });

  test('leads to where something is done about it', async () => {
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await page.getByRole('link', { name: 'See the approvals' }).click();
    await page.getByRole('heading', { level: 1, name: 'Approvals' }).waitFor();
    await page.getByText('orders').first().waitFor();
    expect(eyes.faults).toEqual([]);
  });
});
