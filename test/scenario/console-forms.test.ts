// What a person types into the console is not lost, and what a page shows is not taken for the present: in a real browser, by
// keyboard. A form that was changed asks before it is left; a session that ends leaves it below the sign-in; a service that is
// gone is named on every page.
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { OpenSession } from '../../server/fronts/contract/api/sessions.ts';
import type { Vault } from '../../server/fronts/contract/api/vaults.ts';
import { type ConsoleBrowser, chromiumPath, openConsoleBrowser } from '../support/console-browser.ts';
import { type Keyboard, useKeyboard } from '../support/keyboard.ts';
import { type Site, startSite } from '../support/site.ts';

if (chromiumPath === null) console.log('skipped: no chromium on the PATH');

describe.runIf(chromiumPath !== null)('a form of the console', () => {
  let site: Site;
  let eyes: ConsoleBrowser;
  let context: BrowserContext;
  let page: Page;
  let hands: Keyboard;
  const dialog = (title: RegExp | string) => page.getByRole('dialog', { name: title, exact: true });
  const question = () => dialog('Discard what you entered?');
  const focused = () => hands.focused();
  const names = async (): Promise<readonly string[]> =>
    (await site.api.call<{ items: Vault[] }>('GET', '/api/vaults')).items.map(({ name }) => name);
  const openVaultForm = async (): Promise<void> => {
    await hands.pressOn('Create vault');
    await dialog('Create a vault').waitFor();
  };

  beforeAll(async () => {
    site = await startSite();
    eyes = await openConsoleBrowser(site.server.url, chromiumPath ?? '');
    [context, page] = await eyes.open();
    hands = useKeyboard(page);
    await eyes.signIn(page, site.token, '/vaults');
  });
  afterAll(async () => {
    await eyes?.close();
    await site?.end();
  });

  test('begins in its first field: a space is typed, and closes nothing', async () => {
    await openVaultForm();
    expect(await focused()).toBe('Name');
    await hands.type(' a b');
    await dialog('Create a vault').waitFor();
    await hands.press('Control+A', 'Delete', 'Control+k');
    // A dialog is open already: no search opens above it.
    expect(await page.getByRole('dialog').count()).toBe(1);
    await hands.press('Escape');
    await question().waitFor();
    await hands.pressOn('Discard');
    await dialog('Create a vault').waitFor({ state: 'detached' });
    await hands.press('Control+k');
    await dialog('Search').waitFor();
    await hands.type('end points');
    expect(await page.getByRole('combobox').inputValue()).toBe('end points');
    // What is typed to find something may go without a question.
    await hands.press('Escape');
    await dialog('Search').waitFor({ state: 'detached' });
  });

  test('that was not changed is left without a question', async () => {
    await openVaultForm();
    await hands.press('Escape');
    await dialog('Create a vault').waitFor({ state: 'detached' });
    expect(await focused()).toBe('Create vault');
  });

  test.each<[string, () => Promise<unknown>]>([
    ['Escape', () => hands.press('Escape')],
    ['Cancel', () => hands.pressOn('Cancel')],
    ['Close', () => hands.pressOn('Close')],
    ['the Back button', () => page.goBack()],
  ])('that was changed is left with %s after a question', async (_, leave) => {
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Keys', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor();
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Vaults' }).click();
    await page.getByRole('heading', { level: 1, name: 'Vaults' }).waitFor();
    await openVaultForm();
    await hands.typeInto('Name', 'typed');
    await leave();
    await question().waitFor();
    expect(await focused()).toBe('Keep editing');
    await hands.press('Enter');
    await question().waitFor({ state: 'detached' });
    expect(await dialog('Create a vault').getByLabel('Name').inputValue()).toBe('typed');
    await leave();
    await hands.pressOn('Discard');
    await dialog('Create a vault').waitFor({ state: 'detached' });
    expect(await names()).not.toContain('typed');
  });

  test('that destroys something begins at the way out', async () => {
    const vault = await site.api.call<Vault>('POST', '/api/vaults', { name: 'to go' });
    await page.goto('/vaults');
    await page.getByRole('button', { name: 'Actions on vault to go' }).click();
    await page.getByRole('menuitem', { name: /Delete/ }).click();
    await page.getByRole('dialog').waitFor();
    await expect.poll(focused).toBe('Cancel');
    await hands.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await site.api.call('DELETE', `/api/vaults/${vault.id}`);
  });

  test('whose session ends keeps what was typed below the sign-in, and saves it afterwards', async () => {
    await page.goto('/vaults');
    await openVaultForm();
    await hands.typeInto('Name', 'after the sign-in');
    const { items } = await site.api.call<{ items: OpenSession[] }>('GET', '/api/sessions');
    for (const { id } of items) await site.api.call('DELETE', `/api/sessions/${id}`);
    await hands.press('Enter');
    await page.getByRole('heading', { name: 'Sign in to the console' }).waitFor();
    // Nothing of the page is seen, or reached.
    await hands.press('Escape', 'Escape');
    await page.getByRole('heading', { name: 'Sign in to the console' }).waitFor();
    await eyes.lookClosely('forms-session-ended', page);
    await hands.pressOn('Use a token');
    await hands.typeInto('Administrator token', site.token);
    await hands.press('Enter');
    await page.getByRole('heading', { name: 'Sign in to the console' }).waitFor({ state: 'detached' });
    expect(await dialog('Create a vault').getByLabel('Name').inputValue()).toBe('after the sign-in');
    await dialog('Create a vault').getByRole('button', { name: 'Create vault' }).click();
    await page.getByText('after the sign-in').first().waitFor();
    expect(await names()).toContain('after the sign-in');
    expect(await page.title()).toContain('Vaults');
  });

  test('a service that is gone is named on every page, and what is shown is grey until it is back', async () => {
    await page.goto('/');
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    const { url } = site.server;
    await site.stopServer();
    const notice = page.getByRole('alert').filter({ hasText: 'The service does not answer' });
    await notice.waitFor();
    await eyes.lookClosely('forms-service-gone', page);
    const look = 'getComputedStyle(document.querySelector("#main").parentElement).filter';
    expect(await page.evaluate<string>(look)).toBe('grayscale(1)');
    // Each page opens from what was loaded, and says the same.
    for (const link of await page.getByRole('navigation', { name: 'Main' }).getByRole('link').all()) {
      await link.click();
      await notice.waitFor();
      expect(new URL(page.url()).origin).toBe(url);
    }
    await site.startServer();
    await notice.waitFor({ state: 'detached' });
    expect(hands.faults).toEqual([]);
    eyes.faults.splice(0);
    expect(context.pages()).toHaveLength(1);
  });
});
