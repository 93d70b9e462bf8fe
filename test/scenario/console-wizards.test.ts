// Guided procedures in the console, in a real browser: a credential is rotated while a meter shows
// the one in use, a vault comes under dual control once others are there who could agree, a runbook
// is followed and each tick is in the audit log.
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AuditRecord } from '../../server/contract/api/audit-routes.ts';
import type { Endpoint, ProxyConfiguration } from '../../server/contract/api/endpoints-routes.ts';
import type { Vault } from '../../server/contract/api/vaults-routes.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { type ConsoleBrowser, chromiumPath, openConsoleBrowser } from '../support/console-browser.ts';
import { type Site, startSite } from '../support/site.ts';
import { callXks, requestMetadata } from '../support/xks-client.ts';

if (chromiumPath === null) console.log('skipped: no chromium on the PATH');

describe.runIf(chromiumPath !== null)('the console leads through', () => {
  let site: Site;
  let eyes: ConsoleBrowser;
  let page: Page;
  let vault: Vault;
  const dialog = (title: RegExp | string) => page.getByRole('dialog', { name: title });

  beforeAll(async () => {
    site = await startSite();
    vault = await site.api.call('POST', '/api/vaults', { name: 'Payments' });
    eyes = await openConsoleBrowser(site.server.url, chromiumPath ?? '');
    [, page] = await eyes.open();
    await eyes.signIn(page, site.token);
  });
  afterAll(async () => {
    await eyes?.close();
    await site?.end();
  });

  test('the exchange of a credential: both hold, the meter tells which one signs, the old one goes', async () => {
    const key = await site.api.call<{ readonly id: string }>('POST', '/api/keys', {
      name: 'orders',
      vaultId: vault.id,
    });
    const endpoint = await site.api.call<Endpoint>('POST', '/api/endpoints', {
      name: 'aws-eu-central-1',
      vaultId: vault.id,
      keyId: key.id,
    });
    const path = `/api/endpoints/${endpoint.id}`;
    const old = await site.api.call<ProxyConfiguration>('POST', `${path}/credentials`);
    const sign = async (configuration: ProxyConfiguration): Promise<number> =>
      (
        await callXks(
          { server: site.server, configuration },
          { target: `/keys/${key.id}/metadata`, body: { requestMetadata: requestMetadata() } },
        )
      ).status;
    const idOf = ({ XksProxyAuthenticationCredential }: ProxyConfiguration): string =>
      XksProxyAuthenticationCredential.AccessKeyId;
    const meter = (configuration: ProxyConfiguration) =>
      page.getByRole('meter', { name: `Requests signed with ${idOf(configuration)}` });
    /**
     * Waits until the meter shows `count` of the newest requests, which the page renews on its own.
     */
    const shows = (configuration: ProxyConfiguration, count: number): Promise<void> =>
      expect.poll(() => meter(configuration).getAttribute('value')).toBe(String(count));

    expect(await sign(old)).toBe(200);
    await page.goto(`/endpoints/${endpoint.id}/credentials`);
    await shows(old, 1);
    await page.getByRole('button', { name: 'Add credential' }).click();
    await dialog('Add a credential?').getByRole('button', { name: 'Add credential' }).click();
    const shown = dialog('Credential of “aws-eu-central-1”');
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      shown.getByRole('button', { name: 'Download JSON' }).click(),
    ]);
    const fresh = JSON.parse(readFileSync(await file.path(), 'utf8')) as ProxyConfiguration;
    expect(await shown.getByRole('button', { name: 'Done' }).isDisabled()).toBe(true);
    await shown.getByLabel(/I have stored/).check();
    await shown.getByRole('button', { name: 'Done' }).click();
    await shown.waitFor({ state: 'detached' });
    expect(await page.content()).not.toContain(fresh.XksProxyAuthenticationCredential.RawSecretAccessKey);

    await shows(fresh, 0);
    expect([await sign(old), await sign(fresh), await sign(fresh)]).toEqual([200, 200, 200]);
    await shows(fresh, 2);
    await shows(old, 2);
    // A hundred requests later the old one is no longer among the newest.
    for (let each = 0; each < 98; each++) expect(await sign(fresh)).toBe(200);
    await shows(old, 0);
    await shows(fresh, 100);
    await eyes.lookClosely('credential-rotation', page);

    await page.getByRole('button', { name: `Actions on credential ${idOf(old)}` }).click();
    await page.getByRole('menuitem', { name: 'Remove…' }).click();
    const removing = dialog('Remove this credential?');
    await removing.getByLabel(/^Type the access key id/).fill(idOf(old));
    await removing.getByRole('button', { name: 'Remove credential' }).click();
    await removing.waitFor({ state: 'detached' });
    expect([await sign(old), await sign(fresh)]).toEqual([401, 200]);
    expect((await site.api.call<Endpoint>('GET', path)).credentials.map(({ accessKeyId }) => accessKeyId)).toEqual([
      idOf(fresh),
    ]);
  });

  test('dual control, which is refused as long as no one could agree', async () => {
    const rule = async () => (await site.api.call<Vault>('GET', `/api/vaults/${vault.id}`)).dualControl;
    const open = async () => {
      await page.goto('/vaults');
      await page.getByRole('button', { name: 'None: dual control of Payments' }).click();
      return dialog('Dual control of “Payments”');
    };
    const ask = async (others: number) => {
      const asked = await open();
      await asked.getByLabel('Required approvals').selectOption(String(others));
      return asked;
    };
    let asked = await ask(1);
    await asked.getByText(/it requires 1 approvals, and there are 0/i).waitFor();
    await asked.getByText(/first give the role key-approver to more users/i).waitFor();
    expect(await asked.getByRole('button', { name: 'Set rule' }).isDisabled()).toBe(true);
    expect(await eyes.findBarriers(page)).toEqual([]);
    await eyes.shoot('dual-control-refused', page);
    expect(await rule()).toBeNull();

    await site.api.call('POST', '/api/tokens', { name: 'anna', grants: [{ role: 'key-approver', scope: null }] });
    asked = await ask(2);
    await asked.getByText(/it requires 2 approvals, and there are 1/i).waitFor();
    await asked.getByLabel('Required approvals').selectOption('1');
    await asked.getByText(/^Eligible approvers: .*anna/).waitFor();
    await asked.getByRole('button', { name: 'Set rule' }).click();
    await asked.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: '1 must approve: dual control of Payments' }).waitFor();
    expect(await rule()).toMatchObject({ required: 1, actions: ['destroy', 'export', 'restore'] });
  });

  test('a runbook with the values of its application, each tick of which is audited', async () => {
    const { application } = await registerApplication(site.api, 'erp', await createGroup(site.api, 'databases'));
    await page.goto(`/tde/applications/${application.id}/runbooks?runbook=rotate&release=19c`);
    await page.getByRole('button', { name: 'Start runbook' }).click();
    await dialog(/^Start “/)
      .getByRole('button', { name: 'Start run' })
      .click();
    const done = page.getByRole('button', { name: /^Done: / });
    await done.first().waitFor();
    const steps = await done.count();
    expect(steps).toBeGreaterThan(2);
    expect(await page.getByRole('button', { name: 'Finish' }).isDisabled()).toBe(true);
    await page.getByLabel('Note').first().fill('change 4711');
    for (let left = steps; left > 0; left--) {
      await done.first().click();
      await expect.poll(() => done.count()).toBe(left - 1);
    }
    await page.getByText(': change 4711').waitFor();
    await eyes.lookClosely('runbook-followed', page);
    await page.getByRole('button', { name: 'Finish' }).click();
    await page
      .getByRole('dialog')
      .getByRole('button', { name: /^Finish/ })
      .click();
    await page.getByText('Finished', { exact: true }).first().waitFor();
    const { items } = await site.api.call<{ readonly items: readonly AuditRecord[] }>('GET', '/api/audit?limit=100');
    const kinds = items.filter(({ subjectId }) => subjectId === application.id).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'runbook.step-completed')).toHaveLength(steps);
    // The refusal of the rule is noted by the browser.
    expect(eyes.faults.filter((fault) => !/status of 409/.test(fault))).toEqual([]);
  });
});
