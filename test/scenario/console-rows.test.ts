// A list of a hundred thousand rows at the console: it scrolls on and on, and only the rows near the window are in the page.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ConsoleBrowser, chromiumPath, openConsoleBrowser } from '../support/console-browser.ts';
import { type Site, startSite } from '../support/site.ts';
import { queryStored } from '../support/test-store.ts';

if (chromiumPath === null) console.log('skipped: no chromium on the PATH');

const rows = 100_000;

describe.runIf(chromiumPath !== null)('a long list', { timeout: 240_000 }, () => {
  let site: Site;
  let eyes: ConsoleBrowser;
  beforeAll(async () => {
    site = await startSite();
    await site.stopServer();
    await queryStored(
      site.folder,
      `insert into request_log (at, operation, status, request_id, duration_ms, read_ms, auth_ms, crypto_ms)
       with recursive n (i) as (select 0 union all select i + 1 from n where i < ${rows - 1})
       select ${Date.now()} - (${rows} - i) * 100, 'health', 200, 'request-' || i, 1, 0.2, 0.3, 0.5 from n`,
    );
    await site.startServer();
    eyes = await openConsoleBrowser(site.server.url, chromiumPath ?? '');
  });
  afterAll(async () => {
    await eyes?.close();
    await site?.end();
  });

  test('goes on by itself when its end comes near, with few rows in the page', async () => {
    const [, page] = await eyes.open();
    await page.goto('/requests');
    await page.getByRole('button', { name: 'Use a token' }).click();
    await page.getByLabel('Administrator token').fill(site.token);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    const status = page.getByRole('status').filter({ hasText: 'shown' });
    await status.waitFor();
    const shown = async (): Promise<number> =>
      Number(((await status.textContent()) ?? '').replaceAll(/[^0-9]/g, '') || '0');
    await page.getByRole('button', { name: 'Show more' }).click();
    for (let before = 0; before < 5_000; before = await shown()) {
      await page.evaluate('window.scrollTo(0, document.documentElement.scrollHeight)');
      await expect.poll(shown, { timeout: 20_000 }).toBeGreaterThan(before);
    }
    expect(await page.getByRole('row').count()).toBeLessThan(150);
    const index = await page.locator('[aria-rowindex]').last().getAttribute('aria-rowindex');
    expect(Number(index)).toBeGreaterThan(4_000);
    await page.getByRole('button', { name: 'Details' }).last().click();
    await page.getByText('Authenticating', { exact: true }).waitFor();
    await page.evaluate('window.scrollTo(0, 0)');
    await expect.poll(() => page.locator('[aria-rowindex]').first().getAttribute('aria-rowindex')).toBe('2');
    expect(eyes.faults).toEqual([]);
  });
});
