// From an empty service to what it is for, with a mouse and a keyboard in a real browser: the
// clicks are counted by the page. And the way about the console: the navigation, the filters and
// the tabs of small screens, exact times, and the guide.
import { readFileSync } from 'node:fs';
import {
  ConnectCustomKeyStoreCommand,
  CreateCustomKeyStoreCommand,
  DescribeCustomKeyStoresCommand,
} from '@aws-sdk/client-kms';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Endpoint, ProxyConfiguration } from '../../server/contract/api/endpoints-routes.ts';
import { kmsClientOf, startCloudProcess } from '../support/cloud-process.ts';
import { type ConsoleBrowser, chromiumPath, openConsoleBrowser } from '../support/console-browser.ts';
import { until } from '../support/host.ts';
import { type Site, startSite } from '../support/site.ts';

if (chromiumPath === null) console.log('skipped: no chromium on the PATH');

describe.runIf(chromiumPath !== null)('the first run', () => {
  let site: Site;
  let eyes: ConsoleBrowser;
  beforeAll(async () => {
    site = await startSite();
    eyes = await openConsoleBrowser(site.server.url, chromiumPath ?? '');
  });
  afterAll(async () => {
    await eyes?.close();
    await site?.end();
  });

  /** A page without a session, on which the clicks of a person are counted. */
  const countedPage = async (): Promise<[page: Page, clicks: () => Promise<number>]> => {
    const [, page] = await eyes.open({ acceptDownloads: true });
    await page.addInitScript(`addEventListener('click', (event) => {
      if (!event.isTrusted || event.detail === 0) return;
      sessionStorage.setItem('clicks', String(Number(sessionStorage.getItem('clicks') ?? '0') + 1));
    }, { capture: true });`);
    await page.goto('/');
    const clicks = () => page.evaluate<number>("Number(sessionStorage.getItem('clicks') ?? '0')");
    return [page, clicks];
  };
  const signIn = async (page: Page): Promise<void> => {
    await page.getByRole('button', { name: 'Use a token' }).click();
    await page.keyboard.type(site.token);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  };
  const downloadBy = async (page: Page, name: string): Promise<string> => {
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name }).click()]);
    return readFileSync(await file.path(), 'utf8');
  };

  test('an endpoint is connected to a cloud with at most 12 clicks', async () => {
    const [page, clicks] = await countedPage();
    await signIn(page);
    await page.getByRole('link', { name: 'Connect a cloud' }).click();
    await page.getByRole('heading', { level: 1, name: 'Connect a cloud' }).waitFor();
    expect(await eyes.findBarriers(page)).toEqual([]);
    await page.getByRole('button', { name: 'Create endpoint and credential' }).click();
    await page.getByRole('dialog', { name: 'Credential of “cloud”' }).waitFor();
    const configuration = JSON.parse(await downloadBy(page, 'Download JSON')) as ProxyConfiguration;
    await page.getByLabel(/^I have stored/).click();
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('heading', { level: 1, name: 'Connect cloud' }).waitFor();

    const cloud = await startCloudProcess(site.folder, site.server.caFile);
    try {
      const kms = kmsClientOf(cloud);
      const { CustomKeyStoreId } = await kms.send(
        new CreateCustomKeyStoreCommand({
          CustomKeyStoreName: 'first',
          CustomKeyStoreType: 'EXTERNAL_KEY_STORE',
          XksProxyConnectivity: 'PUBLIC_ENDPOINT',
          XksProxyUriEndpoint: site.server.url,
          XksProxyUriPath: configuration.XksProxyUriPath,
          XksProxyAuthenticationCredential: configuration.XksProxyAuthenticationCredential,
        }),
      );
      await kms.send(new ConnectCustomKeyStoreCommand({ CustomKeyStoreId }));
      await until('the connection of the cloud', async () => {
        const { CustomKeyStores } = await kms.send(new DescribeCustomKeyStoresCommand({ CustomKeyStoreId }));
        return CustomKeyStores?.[0]?.ConnectionState === 'CONNECTED' ? true : undefined;
      });
      await page.getByRole('heading', { name: 'First call received' }).waitFor();
    } finally {
      await cloud.stop();
    }
    expect(await clicks()).toBeLessThanOrEqual(12);
    const { items } = await site.api.call<{ items: Endpoint[] }>('GET', '/api/endpoints');
    expect(items.map(({ name, keyState }) => [name, keyState])).toEqual([['cloud', 'active']]);
    await page.context().close();
  });

  test('a database is registered, with its file in hand, with at most 8 clicks', async () => {
    const [page, clicks] = await countedPage();
    await signIn(page);
    await page.getByRole('link', { name: 'Register a database' }).click();
    await page.getByRole('heading', { level: 1, name: 'Register a database' }).waitFor();
    await page.getByLabel('Database', { exact: true }).click();
    await page.keyboard.type('erp');
    await page.getByRole('button', { name: 'Register database' }).click();
    const shown = page.getByRole('dialog', { name: 'Credential of “erp”' });
    await shown.waitFor();
    // Masked until it is revealed.
    expect(await shown.locator('[data-secret]').count()).toBe(0);
    await shown.getByText('chmod 600 dke-access-guid-erp.txt').waitFor();
    expect(await eyes.findBarriers(page)).toEqual([]);
    expect(await downloadBy(page, 'Download pkcs11.toml')).toContain('server_url');
    expect(await clicks()).toBeLessThanOrEqual(8);
    const guid = (await downloadBy(page, 'Download dke-access-guid-erp.txt')).trim();
    await shown.getByRole('button', { name: 'Reveal access_guid' }).click();
    expect(await shown.locator('[data-secret]').textContent()).toBe(guid);
    await page.context().close();
  });

  test('the navigation fits 900 pixels, folds, and always shows the current place', async () => {
    const [context, page] = await eyes.open({ viewport: { width: 1280, height: 900 } });
    await eyes.signIn(page, site.token, '/nodes');
    const main = page.getByRole('navigation', { name: 'Main' });
    expect(
      await main.evaluate((element: unknown) => {
        const { scrollHeight, clientHeight } = element as { scrollHeight: number; clientHeight: number };
        return scrollHeight - clientHeight;
      }),
    ).toBeLessThanOrEqual(0);
    await main.getByRole('button', { name: 'Access' }).press('Enter');
    await main.getByRole('link', { name: 'API tokens' }).waitFor({ state: 'hidden' });
    await main.getByRole('button', { name: 'Service' }).press('Enter');
    expect(await main.getByRole('link', { name: 'Nodes' }).isVisible()).toBe(true);
    // The choice is kept; the group of the current place is open.
    await page.goto('/tokens');
    await main.getByRole('link', { name: 'API tokens' }).waitFor();
    await main.getByRole('link', { name: 'Nodes' }).waitFor({ state: 'hidden' });
    expect(await eyes.findBarriers(page)).toEqual([]);
    await context.close();
  });

  test('a role, a token and a node have pages, which lists lead to', async () => {
    const [context, page] = await eyes.open();
    await eyes.signIn(page, site.token, '/tokens');
    await page.getByRole('main').getByRole('link', { name: 'first administrator' }).click();
    await page.getByRole('heading', { level: 1, name: 'first administrator' }).waitFor();
    await page.getByRole('heading', { name: 'Done by this token' }).waitFor();
    await eyes.settle(page);
    expect(await eyes.findBarriers(page)).toEqual([]);
    await page.getByRole('main').getByRole('link', { name: 'Administrator', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Administrator' }).waitFor();
    await page.getByRole('heading', { name: 'Valid tokens with this role (1 of 1 tokens)' }).waitFor();
    expect(await eyes.findBarriers(page)).toEqual([]);
    const { items } = await site.api.call<{ items: { id: string; name: string }[] }>('GET', '/api/nodes');
    await page.goto(`/nodes/${items[0]?.id}`);
    await page.getByRole('heading', { level: 1, name: items[0]?.name ?? '' }).waitFor();
    await eyes.settle(page);
    expect(await eyes.findBarriers(page)).toEqual([]);
    // Every record of the audit log leads to who did it.
    await page.goto('/audit');
    await page.getByRole('row').nth(1).getByRole('link', { name: 'first administrator' }).first().click();
    await page.getByRole('heading', { level: 1, name: 'first administrator' }).waitFor();
    await context.close();
  });

  test('filters are a sheet and tabs wrap at 390 pixels; a subject is picked by its name', async () => {
    const [context, page] = await eyes.open();
    await eyes.signIn(page, site.token, '/audit');
    await page.setViewportSize({ width: 390, height: 800 });
    await eyes.settle(page);
    const tabs = page.getByRole('main').getByRole('navigation').first();
    expect(
      await tabs.evaluate((element: unknown) => {
        const { scrollWidth, clientWidth } = element as { scrollWidth: number; clientWidth: number };
        return scrollWidth - clientWidth;
      }),
    ).toBeLessThanOrEqual(0);
    expect(await page.getByLabel('Severity').count()).toBe(0);
    await page.getByRole('button', { name: 'Filters…' }).click();
    const sheet = page.getByRole('dialog', { name: 'Filters' });
    await sheet.getByRole('combobox', { name: 'Subject' }).click();
    await page.keyboard.type('cloud');
    await sheet.getByRole('option', { name: 'cloud', exact: true }).first().click();
    await page.waitForURL(/subjectId=/);
    expect(await eyes.findBarriers(page)).toEqual([]);
    await sheet.getByRole('button', { name: 'Show the list' }).click();
    await page.getByRole('button', { name: 'Filters (active)…' }).waitFor();
    await context.close();
  });

  test('exact times are one key away, with their zone; the guide of a page is served beside it', async () => {
    const [context, page] = await eyes.open();
    await eyes.signIn(page, site.token, '/tokens');
    const used = page
      .getByRole('row', { name: /first administrator/ })
      .locator('time')
      .first();
    await used.filter({ hasText: /just now|ago/ }).waitFor();
    await page.getByRole('button', { name: 'Exact times' }).press('Enter');
    await used.filter({ hasText: /\d\d:\d\d (UTC|[A-Z]{2,5}|GMT[+-]\d+)/ }).waitFor();
    const [guide] = await Promise.all([
      context.waitForEvent('page'),
      page.getByRole('link', { name: /^Guide/ }).press('Enter'),
    ]);
    await guide.getByRole('heading', { level: 1, name: 'Roles: who may do what' }).waitFor();
    expect(await eyes.findBarriers(guide)).toEqual([]);
    await guide.getByRole('link', { name: 'All guides' }).press('Enter');
    await guide.getByRole('heading', { level: 1, name: 'Guides' }).waitFor();
    expect(eyes.faults).toEqual([]);
    await context.close();
  });
});
