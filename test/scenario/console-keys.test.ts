// Keys in the console, in a real browser: the users of a key, and its use as shown before it is
// deleted or destroyed.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Key, KeyUse } from '../../server/contract/api/keys-routes.ts';
import { type ConsoleBrowser, chromiumPath, openConsoleBrowser } from '../support/console-browser.ts';
import { type ConsoleData, fillConsole } from '../support/console-data.ts';
import { type Site, startSite } from '../support/site.ts';

if (chromiumPath === null) console.log('skipped: no chromium on the PATH');

describe.runIf(chromiumPath !== null)('keys at the console', () => {
  let site: Site;
  let data: ConsoleData;
  let eyes: ConsoleBrowser;
  let page: Page;
  beforeAll(async () => {
    site = await startSite();
    data = await fillConsole(site);
    eyes = await openConsoleBrowser(site.server.url, chromiumPath ?? '');
    [, page] = await eyes.open();
    await eyes.signIn(page, site.token);
    // The last use is written while the service continues.
    const written = async () => (await site.api.call<KeyUse>('GET', `/api/keys/${data.keyId}/use`)).lastUsedAt;
    await vi.waitFor(async () => expect(await written()).not.toBeNull(), { timeout: 300_000 });
  });
  afterAll(async () => {
    await eyes?.close();
    await site?.end();
  });

  test('a key says who uses it, and warns before it is deleted while that is so', async () => {
    await page.goto(`/keys/${data.keyId}`);
    const user = page.getByRole('row').filter({ hasText: 'aws-eu-central-1' });
    await user.getByText('Enabled').waitFor();
    await user.getByRole('link', { name: 'aws-eu-central-1' }).waitFor();
    expect(await eyes.findBarriers(page)).toEqual([]);
    await page.getByRole('button', { name: 'Actions on this key' }).click();
    await page.getByRole('menuitem', { name: 'Delete…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('This key was used within the last 7 days').waitFor();
    await dialog.getByText('through the endpoint aws-eu-central-1. Further requests will fail.').waitFor();
    await dialog.getByText('Key store endpoints for this key: aws-eu-central-1.').waitFor();
    expect(await eyes.findBarriers(page)).toEqual([]);
    await dialog.getByLabel(/^Type the key name/).fill('orders-2026');
    await expect.poll(() => dialog.getByRole('button', { name: 'Delete key' }).isEnabled()).toBe(true);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect((await site.api.call<Key>('GET', `/api/keys/${data.keyId}`)).state).toBe('active');
  });

  test('a key is tagged, and found by its tag, its age and its last use', async () => {
    await page.goto(`/keys/${data.keyId}`);
    await page.getByRole('button', { name: 'Actions on this key' }).click();
    await page.getByRole('menuitem', { name: 'Edit…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Tags').fill('env=prod Not-One');
    await dialog.getByText('--tag env=prod Not-One').waitFor({ state: 'attached' });
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByText('Not-One: must be 1 to 64 of a-z, 0-9 and - . _ : = /').waitFor();
    await dialog.getByLabel('Tags').fill('pci env=prod');
    expect(await eyes.findBarriers(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'env=prod' }).click();
    const rows = page.getByRole('row').filter({ has: page.getByRole('cell') });
    const names = async () => (await rows.getByRole('link').allTextContents()).filter((text) => !text.includes('='));
    const shows = (...wanted: readonly string[]) => expect.poll(names).toEqual(wanted);
    await shows('orders-2026', 'pci');
    await page.getByLabel('Last use').selectOption('Never used');
    await shows();
    await page.getByLabel('Last use').selectOption('Used in the last 7 days');
    await shows('orders-2026', 'pci');
    await page.getByLabel('Age').selectOption('Older than a year');
    await shows();
    await page.getByLabel('Age').selectOption('Created in the last 7 days');
    await shows('orders-2026', 'pci');
    expect(await eyes.findBarriers(page)).toEqual([]);
    await eyes.shoot('keys-filtered', page);
    expect((await site.api.call<Key>('GET', `/api/keys/${data.keyId}`)).tags).toEqual(['env=prod', 'pci']);
  });

  test('a key that was never used says so, and so does a master key before it is destroyed', async () => {
    const { items } = await site.api.call<{ readonly items: readonly Key[] }>('GET', '/api/keys?kind=general');
    await page.goto(`/keys/${items.find(({ name }) => name === 'customer-addresses')?.id}`);
    await page.getByText('There is no key store endpoint for this key.').waitFor();
    await page.getByRole('button', { name: 'Actions on this key' }).click();
    await page.getByRole('menuitem', { name: 'Delete…' }).click();
    await page.getByRole('dialog').getByText('This key was never used.').waitFor();
    await page.goto(`/keys/${data.masterKeyId}`);
    await page.getByRole('link', { name: 'erp', exact: true }).waitFor();
    const { name } = await site.api.call<Key>('GET', `/api/keys/${data.masterKeyId}`);
    await page.goto(`/tde/applications/${data.applicationId}`);
    await page.getByRole('button', { name: `Actions on master key ${name}` }).click();
    await page.getByRole('menuitem', { name: 'Destroy…' }).click();
    await page.getByRole('dialog').getByText('This key was never used.').waitFor();
    expect(await eyes.findBarriers(page)).toEqual([]);
  });
});
