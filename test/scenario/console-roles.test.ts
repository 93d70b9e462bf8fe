// What a role sees of the console, in a real browser: every page that the navigation leads to opens
// without a refusal, and no page offers an action that the role cannot do.
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { IssuedToken } from '../../server/contract/api/tokens-routes.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { type ConsoleBrowser, chromiumPath, openConsoleBrowser } from '../support/console-browser.ts';
import { type Site, startSite } from '../support/site.ts';

if (chromiumPath === null) console.log('skipped: no chromium on the PATH');

describe.runIf(chromiumPath !== null)('a role at the console', () => {
  let site: Site;
  let eyes: ConsoleBrowser;
  let applicationId = '';
  let auditorToken = '';
  const tokenOf = async (role: string): Promise<string> => {
    const scope = role === 'application-owner' ? { kind: 'application', id: applicationId } : null;
    const body = { name: `as ${role}`, grants: [{ role, scope }] };
    return (await site.api.call<IssuedToken>('POST', '/api/tokens', body)).token;
  };
  const actions = (page: Page) =>
    page.getByRole('main').getByRole('button', { name: /^(Create|Register|Invite|Add) / });

  beforeAll(async () => {
    site = await startSite();
    const { application } = await registerApplication(site.api, 'own', await createGroup(site.api, 'own'));
    applicationId = application.id;
    const vault = await site.api.call<{ id: string }>('POST', '/api/vaults', { name: 'seen' });
    await site.api.call('POST', '/api/keys', { name: 'seen', vaultId: vault.id });
    eyes = await openConsoleBrowser(site.server.url, chromiumPath ?? '');
  });
  afterAll(async () => {
    await eyes?.close();
    await site?.end();
  });

  /** The actions that each role is offered on the pages of its navigation. */
  const roles: Readonly<Record<string, readonly string[]>> = {
    auditor: [],
    'key-approver': [],
    'recovery-officer': ['Register recovery key…'],
    'key-manager': ['Create key…', 'Create vault…'],
    'connection-manager': ['Create endpoint…', 'Create group…', 'Register application…', 'Register key store…'],
    'application-owner': [],
  };
  test.each(Object.entries(roles))(
    '%s opens every page of its navigation, and is offered %j',
    async (role, offered) => {
      const [context, page]: [BrowserContext, Page] = await eyes.open();
      const refusals: string[] = [];
      page.on('response', (response) => {
        if (response.status() === 403)
          refusals.push(`${response.request().method()} ${new URL(response.url()).pathname}`);
      });
      const token = await tokenOf(role);
      if (role === 'auditor') auditorToken = token;
      await eyes.signIn(page, token);
      await eyes.settle(page);
      const links = page.getByRole('navigation', { name: 'Main' }).getByRole('link');
      const names = await links.allTextContents();
      expect(names).toContain('Overview');
      const seen = new Set<string>();
      for (const name of names) {
        await links.filter({ hasText: new RegExp(`^${name}$`) }).click();
        await page.getByRole('heading', { level: 1 }).waitFor();
        await eyes.settle(page);
        expect([name, refusals]).toEqual([name, []]);
        for (const text of await actions(page).allTextContents()) seen.add(text);
      }
      expect([...seen].sort()).toEqual(offered);
      await context.close();
    },
  );

  test('break-glass is given as a token of some hours, and not to a user', async () => {
    const [context, page] = await eyes.open();
    await eyes.signIn(page, site.token, '/tokens');
    await page.getByRole('button', { name: 'Create token' }).first().click();
    const form = page.getByRole('dialog', { name: 'Create an API token' });
    await form.getByLabel('Name').fill('in an emergency');
    await form.getByLabel('Role').selectOption('break-glass');
    await form.getByLabel('Expires after').selectOption({ label: '8 hours' });
    await form.getByRole('button', { name: 'Create token' }).click();
    const shown = page.getByRole('dialog', { name: /in an emergency/ });
    await shown.getByLabel(/I have stored/).check();
    await shown.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('row', { name: /in an emergency/ }).waitFor();
    await page.goto('/users');
    await page.getByRole('button', { name: 'Invite a user' }).first().click();
    const roles = page.getByRole('dialog', { name: 'Invite a user' }).getByLabel('Role').getByRole('option');
    await roles.filter({ hasText: 'Auditor' }).waitFor({ state: 'attached' });
    expect(await roles.filter({ hasText: /break/i }).count()).toBe(0);
    await context.close();
  });

  test('a state says what is there, not what is hoped for', async () => {
    const { items } = await site.api.call<{ items: { id: string; name: string }[] }>('GET', '/api/vaults');
    const vaultId = items.find(({ name }) => name === 'seen')?.id ?? '';
    const key = await site.api.call<{ id: string }>('POST', '/api/keys', { name: 'of states', vaultId });
    const body = { name: 'states', vaultId, keyId: key.id };
    const endpoint = await site.api.call<{ id: string }>('POST', '/api/endpoints', body);
    const user = { name: 'ina', displayName: 'Ina', grants: [{ role: 'auditor', scope: null }] };
    await site.api.call('POST', '/api/users', user);
    const [context, page] = await eyes.open();
    await eyes.signIn(page, site.token, '/endpoints');
    const row = (name: RegExp) => page.getByRole('row', { name });
    await row(/states/)
      .getByText('No credential')
      .waitFor();
    await site.api.call('POST', `/api/endpoints/${endpoint.id}/credentials`);
    await page.reload();
    await row(/states/)
      .getByText('Never called')
      .waitFor();
    await site.api.call('POST', `/api/keys/${key.id}/disable`);
    await page.reload();
    await row(/states/)
      .getByText('Key cannot be used')
      .waitFor();
    await page.goto(`/endpoints/${endpoint.id}`);
    await page.getByText('Key cannot be used').first().waitFor();
    // This service has no address of its own that a cloud could use.
    await page.getByText('The cloud cannot reach this address').waitFor();
    await page.goto('/users');
    await row(/Ina/).getByText('Invited').first().waitFor();
    expect(await row(/Ina/).getByText('Active').count()).toBe(0);
    await context.close();
  });

  test('an auditor has no actions on a key', async () => {
    const [context, page] = await eyes.open();
    await eyes.signIn(page, auditorToken, '/keys');
    await page.getByRole('link', { name: 'seen' }).first().click();
    await page.getByRole('heading', { level: 1, name: 'seen' }).waitFor();
    await eyes.settle(page);
    expect(await page.getByRole('button', { name: /^Actions/ }).count()).toBe(0);
    await context.close();
  });
});
