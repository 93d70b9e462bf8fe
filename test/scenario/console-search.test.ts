// Search: Ctrl-K in the console and `dke search` query the service, so that they find resources in
// any number of them, by the start of a word and by ids; the keyboard opens a result. Long names
// without spaces wrap, in the results and in the list of keys.

import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCommand } from '../support/command.ts';
import { type ConsoleBrowser, chromiumPath, openConsoleBrowser } from '../support/console-browser.ts';
import { type Site, startSite } from '../support/site.ts';

if (chromiumPath === null) console.log('skipped: no chromium on the PATH');

const label = `ORACLE.SECURITY.DB.ENCRYPTION.${'Ab1Cd2Ef3'.repeat(8)}`;

describe('search', () => {
  let site: Site;
  let keyId: string;
  let eyes: ConsoleBrowser;
  let page: Page;
  const missing: string[] = [];
  beforeAll(async () => {
    site = await startSite();
    const { call } = site.api;
    const vault = await call<{ id: string }>('POST', '/api/vaults', { name: 'Payroll vault' });
    keyId = (await call<{ id: string }>('POST', '/api/keys', { name: 'prod-payroll.2026', vaultId: vault.id })).id;
    for (const name of [label, 'OrdersProd', ...Array.from({ length: 8 }, (_, at) => `bulk ${at}`)])
      await call('POST', '/api/keys', { name, vaultId: vault.id });
    await call('POST', '/api/tde/groups', { name: 'Payroll databases' });
    if (chromiumPath === null) return;
    eyes = await openConsoleBrowser(site.server.url, chromiumPath);
    [, page] = await eyes.open();
    page.on('response', (response) => {
      if (response.status() === 404) missing.push(response.url());
    });
    await eyes.signIn(page, site.token, '/keys');
    await page.getByRole('link', { name: label }).waitFor();
  });
  afterAll(async () => {
    await eyes?.close();
    await site?.end();
  });

  const dke = (...args: readonly string[]) => {
    const token = join(site.folder, 'token');
    writeFileSync(token, site.token);
    chmodSync(token, 0o600);
    return runCommand(['--server', site.server.url, '--ca-file', site.server.caFile, '--token-file', token, ...args]);
  };

  test('at the command shows what was found, and how to see more', async () => {
    const found = await dke('search', 'PAYROLL');
    expect(found.code).toBe(0);
    const lines = found.stdout.trim().split('\n');
    expect(lines[0]).toMatch(/^KIND +NAME +ID +STATE +FOUND IN$/);
    expect(lines.slice(1).map((line) => line.split(/ {2,}/).slice(0, 2))).toEqual([
      ['key', 'prod-payroll.2026'],
      ['vault', 'TDE group Payroll databases'],
      ['vault', 'Payroll vault'],
      ['group', 'Payroll databases'],
    ]);
    const few = await dke('search', 'bulk', '--kind', 'key', '--limit', '3');
    expect(few.stdout.trim().split('\n').at(-1)).toBe(
      'there are more: key; enter more of the name, or use --kind and --limit 100',
    );
    expect((await dke('search', 'prod', '2026')).stdout).toContain('prod-payroll.2026');
    expect((await dke('search', 'roll')).stdout).toBe('none\n');
    const refused = await dke('search', '../');
    expect([refused.code === 0, refused.stderr]).toEqual([false, expect.stringContaining('has no letter or digit')]);
  });

  describe.runIf(chromiumPath !== null)('at the console', () => {
    test('a long name takes two lines of the list, not a column of letters', async () => {
      const box = await page.getByRole('link', { name: label }).boundingBox();
      expect(box?.width).toBeGreaterThan(250);
      expect(box?.height).toBeLessThan(90);
      await eyes.shoot('keys-long-name', page);
    });

    test('finds by the beginning of a word, and opens by the keyboard', async () => {
      await page.keyboard.press('Control+k');
      const field = page.getByRole('combobox', { name: 'Search for pages, names and ids' });
      await field.fill('payr');
      const options = page.getByRole('listbox', { name: 'Search results' }).getByRole('option');
      await expect.poll(() => options.count()).toBe(4);
      expect(await options.first().textContent()).toContain('prod-payroll.2026');
      await eyes.shoot('search-payroll', page);
      expect(await eyes.findBarriers(page)).toEqual([]);
      await field.press('ArrowDown');
      await field.press('ArrowUp');
      await field.press('Enter');
      await page.waitForURL(`**/keys/${keyId}`);
    });

    test('finds pages at once, long names whole, and says when there are more', async () => {
      await page.keyboard.press('Control+k');
      const field = page.getByRole('combobox', { name: 'Search for pages, names and ids' });
      await field.fill('encryption');
      await page.getByRole('option', { name: label }).waitFor();
      await eyes.shoot('search-long-name', page);
      await field.fill('bulk');
      await page.getByText('More keys match. Type more of the name.').waitFor();
      await field.fill('snapshots');
      await page.getByRole('option', { name: 'Snapshots' }).waitFor();
      await field.fill('roll');
      await page.getByText('No match.').waitFor();
      await page.keyboard.press('Escape');
    });

    test('leads from an id to the thing and to what the audit log tells of it', async () => {
      await page.keyboard.press('Control+k');
      const field = page.getByRole('combobox', { name: 'Search for pages, names and ids' });
      await field.fill(keyId);
      await page.getByRole('option', { name: 'Audit log: subject' }).click();
      await page.waitForURL(`**/audit?subjectId=${keyId}`);
      expect(missing).toEqual([]);
      expect(eyes.faults).toEqual([]);
    });
  });
});
