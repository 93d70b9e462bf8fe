// A list at the console: what it counts, its order and its view in the address, a file of it, and
// one action on several rows.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ConsoleBrowser, chromiumPath, openConsoleBrowser } from '../support/console-browser.ts';
import { type Site, startSite } from '../support/site.ts';

if (chromiumPath === null) console.log('skipped: no chromium on the PATH');

const many = 60;

describe.runIf(chromiumPath !== null)('a list at the console', () => {
  let folder: string;
  let site: Site;
  let eyes: ConsoleBrowser;
  let page: Page;
  let made = 0;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'dke-lists-'));
    site = await startSite({ folder });
    const { id: vaultId } = await site.api.call<{ id: string }>('POST', '/api/vaults', { name: 'listed' });
    for (let at = 1; at <= many; at += 1)
      await site.api.call('POST', '/api/keys', { name: `key ${at}`, vaultId, tags: ['listed'] });
    eyes = await openConsoleBrowser(site.server.url, chromiumPath ?? '');
    [, page] = await eyes.open();
    await eyes.signIn(page, site.token);
    await page.goto('/keys?tag=listed');
  });
  afterAll(async () => {
    await eyes?.close();
    await site?.end();
    rmSync(folder, { recursive: true, force: true });
  });

  const table = () => page.getByRole('table', { name: 'Keys' });
  const says = (text: string) => page.getByRole('status').filter({ hasText: text }).waitFor();
  const firstKey = (name: string) =>
    table().getByRole('rowgroup').nth(1).getByRole('link', { name, exact: true }).waitFor();

  test('says how many there are, and is sorted when all of them were read', async () => {
    await says(`1–50 of ${many} shown`);
    await firstKey(`key ${many}`);
    await page.getByRole('button', { name: 'Name', exact: true }).click();
    await says(`${many} shown`);
    await firstKey('key 1');
    expect(await page.getByRole('columnheader', { name: 'Name' }).getAttribute('aria-sort')).toBe('ascending');
    await page.getByRole('button', { name: 'Name', exact: true }).click();
    await firstKey(`key ${many}`);
    expect(new URL(page.url()).hash).toBe('#sort=-name');
    expect(new URL(page.url()).search).toBe('?tag=listed');
  });

  test('has its view in the address: order, name, columns and density', async () => {
    await page.getByLabel('Name contains').fill('KEY 2');
    await says('11 shown of 60');
    await page.getByRole('button', { name: 'View' }).click();
    await page.getByRole('menuitemcheckbox', { name: 'Vault' }).click();
    await page.getByRole('menuitemcheckbox', { name: 'Compact rows' }).click();
    await page.keyboard.press('Escape');
    await page.getByRole('columnheader', { name: 'Vault' }).waitFor({ state: 'detached' });
    await page.reload();
    await says('11 shown of 60');
    await firstKey('key 29');
    expect(await page.getByRole('columnheader', { name: 'Vault' }).count()).toBe(0);
    expect(new URL(page.url()).hash).toContain('density=compact');
  });

  test('is exported by the service with all that match the filters, and that is recorded', async () => {
    await page.getByRole('button', { name: 'Export' }).click();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('menuitem', { name: 'CSV' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('dke-keys.csv');
    const lines = readFileSync(await download.path(), 'utf8')
      .trimEnd()
      .split('\r\n');
    expect(lines).toHaveLength(many + 1);
    expect(lines[0]).toContain('name');
    type Record = { readonly details: { readonly format: string; readonly filter: object } };
    const { items } = await site.api.call<{ items: Record[] }>('GET', '/api/audit?kind=key-inventory.exported');
    expect(items.map(({ details }) => details)).toEqual([{ format: 'csv', filter: { tag: 'listed' } }]);
  });

  test('disables several with one confirmation, and says what became of each', async () => {
    await page.getByRole('checkbox', { name: 'Choose key 29' }).check();
    await page.getByRole('checkbox', { name: 'Choose key 28' }).check();
    await says('2 chosen');
    await page.getByRole('button', { name: 'Disable…' }).click();
    const asked = page.getByRole('dialog', { name: 'Disable 2 keys?' });
    await asked.getByText('key 29, key 28').waitFor();
    await asked.getByRole('button', { name: 'Disable 2 keys' }).click();
    await asked.getByText('2 done, 0 refused').waitFor();
    await asked.getByRole('button', { name: 'Done' }).click();
    await asked.waitFor({ state: 'detached' });
    const row = table().getByRole('row').filter({ hasText: 'key 29' });
    await row.getByText('Disabled').waitFor();
    await eyes.lookClosely('list', page);
  });

  test('adds tags to several, and keeps the ones they have', async () => {
    await page.getByRole('checkbox', { name: 'Choose key 27' }).check();
    await page.getByRole('button', { name: 'Add tags…' }).click();
    const asked = page.getByRole('dialog', { name: 'Add tags to 1 key?' });
    await asked.getByLabel('Tags').fill('more');
    await asked.getByRole('button', { name: 'Add tags' }).click();
    await asked.getByText('1 done, 0 refused').waitFor();
    await asked.getByRole('button', { name: 'Done' }).click();
    const { items } = await site.api.call<{ items: { name: string; tags: string[] }[] }>('GET', '/api/keys?tag=more');
    expect(items).toMatchObject([{ name: 'key 27', tags: ['listed', 'more'] }]);
  });

  test.each<{
    readonly what: string;
    readonly at: string;
    readonly verb: string;
    readonly make: () => Promise<string>;
  }>([
    {
      what: 'endpoint',
      at: '/endpoints',
      verb: 'Disable',
      make: async () => {
        const { items } = await site.api.call<{ items: { id: string; vaultId: string }[] }>('GET', '/api/keys');
        const [key] = items;
        const name = `endpoint ${++made}`;
        await site.api.call('POST', '/api/endpoints', { name, vaultId: key?.vaultId, keyId: key?.id });
        return name;
      },
    },
    {
      what: 'user',
      at: '/users',
      verb: 'Disable',
      make: async () => {
        const name = `user-${++made}`;
        await site.api.call('POST', '/api/users', { name, grants: [{ role: 'auditor', scope: null }] });
        return name;
      },
    },
    {
      what: 'token',
      at: '/tokens',
      verb: 'Revoke',
      make: async () => {
        const name = `token ${++made}`;
        await site.api.call('POST', '/api/tokens', { name, grants: [{ role: 'auditor', scope: null }] });
        return name;
      },
    },
  ])('$verb works on several of the list: $what', async ({ what, at, verb, make }) => {
    const names = [await make(), await make()];
    await page.goto(at);
    for (const name of names) await page.getByRole('checkbox', { name: new RegExp(`^Choose ${name}`) }).check();
    await page.getByRole('button', { name: `${verb}…`, exact: true }).click();
    const asked = page.getByRole('dialog', { name: `${verb} 2 ${what}s?` });
    await asked.getByRole('button', { name: `${verb} 2 ${what}s` }).click();
    await asked.getByText('2 done, 0 refused').waitFor();
    await asked.getByRole('button', { name: 'Done' }).click();
    await asked.waitFor({ state: 'detached' });
    const state = verb === 'Revoke' ? 'Revoked' : 'Disabled';
    for (const name of names)
      await page.getByRole('row').filter({ hasText: name }).getByText(state, { exact: true }).waitFor();
    expect(await eyes.findBarriers(page)).toEqual([]);
  });

  test('has a page for the whole inventory, whose exports are recorded there', async () => {
    await page.goto('/keys');
    await page.getByRole('link', { name: 'Export inventory' }).click();
    await page.getByRole('heading', { level: 1, name: 'Inventory of keys' }).waitFor();
    await page.getByLabel('Tag').fill('listed');
    await page.getByText(`Keys that match: ${many}.`).waitFor();
    await page.getByLabel('Format', { exact: true }).selectOption('ndjson');
    await page.waitForURL(/format=ndjson/);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download inventory' }).click(),
    ]);
    const lines = readFileSync(await download.path(), 'utf8')
      .trimEnd()
      .split('\n');
    expect(new Set(lines.map((line) => (JSON.parse(line) as { name: string }).name)).size).toBe(many);
    await page.reload();
    await page.getByRole('table', { name: 'Recent exports' }).getByRole('row').nth(2).waitFor();
    expect(await eyes.findBarriers(page)).toEqual([]);
    await eyes.lookClosely('inventory', page);
    await page.goto('/keys?tag=listed');
  });

  test('a wrong field is named before anything is sent', async () => {
    await page.goto('/keys');
    await page.getByRole('button', { name: 'Create key' }).first().click();
    const form = page.getByRole('dialog', { name: 'Create a key' });
    const sent: string[] = [];
    page.on('request', (request) => {
      if (request.method() === 'POST') sent.push(request.url());
    });
    await form.getByLabel('Name', { exact: true }).fill('billing');
    await form.getByRole('combobox', { name: 'Vault' }).fill('listed');
    await form.getByRole('option', { name: 'listed' }).click();
    await form.getByLabel('Tags').fill('Not-A-Tag');
    await form.getByRole('button', { name: 'Create key' }).click();
    await form.getByText('Nothing was sent: correct the fields that are marked.').waitFor();
    await form.getByText('Not-A-Tag: must be 1 to 64').waitFor();
    expect(sent).toEqual([]);
  });

  test('has left nothing to complain of', () => {
    expect(eyes.faults).toEqual([]);
  });
});
