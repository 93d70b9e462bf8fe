// The console's pages as the server serves them, in a real browser: sign in, create a vault, a key,
// a group, an application and an endpoint, destroy a master key, read the audit log. No error in
// the browser's console, nothing that the content security policy blocked, no request to another
// host, no secret in address or storage. Screenshots are in test/output/console, light and dark,
// wide and narrow.

import { execFileSync } from 'node:child_process';
import { createHash, createPublicKey } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openHttpService } from '../../provider/agent/service/service-http.ts';
import { loadConfig } from '../../provider/agent/settings/config.ts';
import type { Endpoint, ProxyConfiguration } from '../../server/contract/api/endpoints-routes.ts';
import { type CreateObject, instanceText } from '../../server/contract/tde.ts';
import { createGroup, registerApplication, writeProviderConfig } from '../support/console-api.ts';
import {
  type ConsoleBrowser,
  choose,
  chromiumPath,
  openConsoleBrowser,
  revealedSecret,
} from '../support/console-browser.ts';
import { instance } from '../support/open-service.ts';
import { type Site, startSite } from '../support/site.ts';
import { callXks, requestMetadata } from '../support/xks-client.ts';

if (chromiumPath === null) console.log('skipped: no chromium on the PATH');

describe.runIf(chromiumPath !== null)('the console', () => {
  let site: Site;
  let eyes: ConsoleBrowser;
  let context: BrowserContext;
  let page: Page;
  const shoot = (name: string, from = page): Promise<void> => eyes.shoot(name, from);
  const dialog = (title: RegExp | string) => page.getByRole('dialog', { name: title });
  const go = async (link: string): Promise<void> => {
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: link, exact: true }).click();
  };

  beforeAll(async () => {
    site = await startSite();
    eyes = await openConsoleBrowser(site.server.url, chromiumPath ?? '');
    [context, page] = await eyes.open();
  });
  afterAll(async () => {
    await eyes?.close();
    await site?.end();
  });

  test('refuses a wrong token, and takes the first one', async () => {
    await page.goto('/');
    await shoot('sign-in');
    await page.getByRole('button', { name: 'Use a token' }).click();
    await page.getByLabel('Administrator token').fill('dket_wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').waitFor();
    await shoot('sign-in-refused');
    // The refusal is in the browser's console too, as every 401.
    expect(eyes.faults.splice(0).filter((fault) => !fault.includes('401'))).toEqual([]);
    await page.getByLabel('Administrator token').fill(site.token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    await shoot('overview-empty');
    const cookies = await context.cookies();
    expect(cookies).toMatchObject([
      { name: expect.stringMatching(/^__Host-/), httpOnly: true, secure: true, sameSite: 'Strict', path: '/' },
    ]);
    expect(cookies[0]?.value).not.toContain(site.token);
  });

  test('makes a vault and a key', async () => {
    await go('Vaults');
    await page.getByRole('button', { name: 'Create vault' }).first().click();
    await page.getByLabel('Name').fill('Payments');
    await shoot('vault-create');
    await dialog('Create a vault').getByRole('button', { name: 'Create vault' }).click();
    await page.getByRole('link', { name: 'Payments' }).waitFor();
    await shoot('vaults');
    await go('Keys');
    await page.getByRole('button', { name: 'Create key' }).first().click();
    await page.getByLabel('Name').fill('orders-2026');
    await choose(dialog('Create a key'), 'Vault', 'Payments');
    await shoot('key-create');
    await dialog('Create a key').getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('heading', { level: 1, name: 'orders-2026' }).waitFor();
    await shoot('key');
    await go('Keys');
    await page.getByRole('link', { name: 'orders-2026' }).waitFor();
    await shoot('keys');
  });

  test('registers a database, shows its credential once, and shows what the database did', async () => {
    await go('Groups');
    await page.getByRole('button', { name: 'Create group' }).first().click();
    await page.getByLabel('Name').fill('Finance');
    await dialog('Create a group').getByRole('button', { name: 'Create group' }).click();
    await page.getByText('Finance').first().waitFor();
    await shoot('groups');
    await go('Applications');
    await page.getByRole('button', { name: 'Register application' }).first().click();
    await page.getByLabel('Name').fill('erp');
    await choose(dialog('Register an application'), 'Group', 'Finance');
    await shoot('application-register');
    await dialog('Register an application').getByRole('button', { name: 'Register application' }).click();
    const shown = dialog(/Credential of/);
    await shown.waitFor();
    await shoot('application-credential');
    const guid = await revealedSecret(shown);
    expect(guid.length).toBeGreaterThan(30);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      shown.getByRole('button', { name: 'Download pkcs11.toml' }).click(),
    ]);
    const toml = readFileSync(await download.path(), 'utf8');
    expect(toml).toContain(`access_token = "${guid}"`);
    // The certificate is the server's own: the file names it, and it is there to be taken along.
    expect(toml).toContain('ca_file = "/etc/dke/ca.pem"');
    const [certificate] = await Promise.all([
      page.waitForEvent('download'),
      shown.getByRole('button', { name: 'Download ca.pem' }).click(),
    ]);
    expect(readFileSync(await certificate.path(), 'utf8')).toBe(readFileSync(site.server.caFile, 'utf8'));
    await shown.getByText(createHash('sha256').update(toml).digest('hex')).waitFor();
    await shown.getByLabel('Operating system').selectOption({ label: 'Debian' });
    await shown.getByLabel('Database', { exact: true }).selectOption({ label: 'MariaDB' });
    const [bundle] = await Promise.all([
      page.waitForEvent('download'),
      shown.getByRole('button', { name: 'Download bundle' }).click(),
    ]);
    expect(bundle.suggestedFilename()).toBe('dke-erp.tar.gz');
    const unpacked = join(site.folder, 'bundle');
    mkdirSync(unpacked);
    execFileSync('tar', ['-xzf', await bundle.path(), '-C', unpacked, '--no-same-owner']);
    expect(execFileSync('sha256sum', ['--check', 'SHA256SUMS'], { cwd: unpacked, encoding: 'utf8' })).toBe(
      'README.txt: OK\ninstall.sh: OK\npkcs11.toml: OK\nca.pem: OK\n',
    );
    expect(readFileSync(join(unpacked, 'pkcs11.toml'), 'utf8')).toContain(`access_token = "${guid}"`);
    expect(readFileSync(join(unpacked, 'ca.pem'), 'utf8')).toBe(readFileSync(site.server.caFile, 'utf8'));
    await shown.getByText('Install dke-provider and dke-mariadb first').waitFor();
    await shoot('application-bundle');
    await shown.getByLabel(/I have stored/).check();
    await shown.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('heading', { level: 1, name: 'erp' }).waitFor();
    await page.getByText('sudo -u oracle dke doctor --conf /etc/dke/pkcs11.toml').waitFor();
    await page.getByText('Waiting for the first session').waitFor();
    await page.getByText('Waiting for the first master key').waitFor();
    expect(await page.content()).not.toContain(guid);
    const kept = await page.evaluate<string>(
      'JSON.stringify([location.href, { ...localStorage }, { ...sessionStorage }])',
    );
    expect(kept).not.toContain(guid);

    // The downloaded file is complete for a database host.
    const config = writeProviderConfig(
      join(site.folder, 'pkcs11.toml'),
      { config: { pkcs11_toml: toml.replace(/^ca_file = .*$/m, '') } as never },
      { caFile: site.server.caFile, logDir: site.logDirectory },
    );
    const database = site.database(config);
    expect((await database.call('open', { pin: '' })).rv).toBe('CKR_OK');
    for (const label of ['ORACLE.TDE.HSM.MK.069F37D091A73D4F13BF2CE921EB2CF080', 'ORACLE.TDE.HSM.MK.06AAAA'])
      expect((await database.call('generate', { label })).rv).toBe('CKR_OK');
    // The setup has waited for the first session and the first master key.
    await page.getByText('First session received').waitFor();
    await page.getByRole('link', { name: 'ORACLE.TDE.HSM.MK.06AAAA' }).waitFor();
    await shoot('application-setup');
    await page.getByRole('link', { name: 'Application', exact: true }).click();
    await page.getByText('ORACLE.TDE.HSM.MK.069F37').first().waitFor();
    await shoot('application');
  });

  test('shows a private key of the database with its public half, and gives that as PEM', async () => {
    const door = openHttpService(await loadConfig(join(site.folder, 'pkcs11.toml')));
    const half: CreateObject = {
      ...{ class: 'private-key', label: Buffer.from('TLS of db1').toString('base64'), algorithm: 'ec', bits: 256 },
      ...{ usages: ['sign'], sensitive: true, extractable: false, modifiable: false, destroyable: true, private: true },
      attributes: '',
    };
    const { answer } = await door.call(
      { route: 'generateKeyPair', handle: null, head: { privateKey: half, publicKey: null }, raw: null },
      { requestId: 'a-pair', instance: instanceText(instance) },
    );
    await door.close();
    await page.reload();
    const row = page.getByRole('row').filter({ hasText: 'TLS of db1' });
    await row.getByText('P-256').waitFor();
    await row.getByRole('link', { name: 'TLS of db1' }).click();
    await page.getByText('BEGIN PUBLIC KEY').waitFor();
    await page.getByText('Never', { exact: true }).waitFor();
    await shoot('private-key');
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download PEM' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('TLS_of_db1.pem');
    const key = createPublicKey(readFileSync(await download.path()));
    expect(key.export({ format: 'der', type: 'spki' }).toString('base64')).toBe(answer.privateKey.publicKey);
    await page.getByRole('link', { name: 'erp', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'erp' }).waitFor();
  });

  test('shows the blast radius and destroys a master key when its name is typed', async () => {
    const name = 'ORACLE.TDE.HSM.MK.06AAAA';
    const row = page.getByRole('row').filter({ hasText: name });
    await row.getByRole('button', { name: /Actions/ }).click();
    await page.getByRole('menuitem', { name: 'Blast radius…' }).click();
    await dialog(/Blast radius/).waitFor();
    await shoot('blast-radius');
    await page.keyboard.press('Escape');
    await row.getByRole('button', { name: /Actions/ }).click();
    await page.getByRole('menuitem', { name: 'Destroy…' }).click();
    const destroy = dialog(/Destroy/);
    await destroy.waitFor();
    await destroy.getByRole('textbox').fill(name);
    await shoot('destroy');
    await destroy.getByRole('button', { name: 'Destroy master key' }).click();
    await row.getByText('Destroyed').first().waitFor();
    await shoot('application-after-destroy');
    expect((await site.api.audit('kind=key.destroyed')).length).toBe(1);
  });

  test('shows what moving an application to another group means, and moves it when its name is typed', async () => {
    const id = page.url().split('/').at(-1) ?? '';
    const { groupId: before } = await site.api.call<{ groupId: string }>('GET', `/api/tde/applications/${id}`);
    const neighbour = await registerApplication(site.api, 'crm', before);
    const groupId = await createGroup(site.api, 'closed books');
    await page.reload();
    await page.getByRole('button', { name: 'Move to another group' }).click();
    const move = dialog(/Move .erp. to another group/);
    await choose(move, 'New group', 'closed books');
    await move.getByText(neighbour.application.name).waitFor();
    await move.getByText('2 keys and 0 other objects of its own move with it').waitFor();
    const button = move.getByRole('button', { name: 'Move application' });
    expect(await button.isDisabled()).toBe(true);
    await move.getByRole('textbox').fill('erp');
    await shoot('application-move');
    await button.click();
    await move.waitFor({ state: 'hidden' });
    await page.getByRole('link', { name: 'closed books', exact: true }).waitFor();
    expect(await site.api.call('GET', `/api/tde/applications/${id}`)).toMatchObject({ groupId });
  });

  test('turns compatibility switches of an application on and off', async () => {
    const id = page.url().split('/').at(-1) ?? '';
    const switches = () =>
      site.api
        .call<{ readonly compatibility: readonly string[] }>('GET', `/api/tde/applications/${id}`)
        .then(({ compatibility }) => compatibility);
    await page.getByText('None. Weak cryptography is refused.').waitFor();
    const set = async (label: string, on: boolean) => {
      await page.getByRole('button', { name: 'Change switches' }).click();
      const change = dialog(/Compatibility of .erp./);
      await change.getByLabel(label).setChecked(on);
      await shoot('application-compatibility');
      await change.getByRole('button', { name: 'Save switches' }).click();
      await change.waitFor({ state: 'hidden' });
    };
    await set('SHA-1 signatures', true);
    await page.getByRole('listitem').filter({ hasText: 'SHA-1 signatures' }).waitFor();
    expect(await switches()).toEqual(['sha1-signatures']);
    await set('SHA-1 signatures', false);
    await page.getByText('None. Weak cryptography is refused.').waitFor();
    expect(await switches()).toEqual([]);
    expect((await site.api.audit('kind=application.compatibility-changed')).length).toBe(2);
  });

  test('limits the networks that an application may be called from', async () => {
    const id = page.url().split('/').at(-1) ?? '';
    await page.getByText('Any address').waitFor();
    await page.getByRole('button', { name: 'Change callers' }).click();
    const change = dialog(/Allowed callers of .erp./);
    await change.getByLabel('Networks').fill('10.1.0.0/16\n127.0.0.0/8');
    await shoot('application-callers');
    await change.getByRole('button', { name: 'Save callers' }).click();
    await change.waitFor({ state: 'hidden' });
    await page.getByText('10.1.0.0/16, 127.0.0.0/8').waitFor();
    expect(await site.api.call('GET', `/api/tde/applications/${id}`)).toMatchObject({
      callers: { networks: ['10.1.0.0/16', '127.0.0.0/8'], certificates: [] },
    });
  });

  test('makes a key store endpoint and its credential', async () => {
    await go('Key store endpoints');
    await page.getByRole('button', { name: 'Create endpoint' }).first().click();
    const create = dialog('Create a key store endpoint');
    await create.getByLabel('Name').fill('aws-eu-central-1');
    await choose(create, 'Vault', 'Payments');
    await choose(create, 'Key', 'orders-2026');
    await shoot('endpoint-create');
    await create.getByRole('button', { name: 'Create endpoint' }).click();
    await page.getByRole('heading', { level: 1, name: 'aws-eu-central-1' }).waitFor();
    await page.getByRole('button', { name: 'Add credential' }).first().click();
    await dialog(/Add a credential/)
      .getByRole('button', { name: 'Add credential' })
      .click();
    const shown = dialog(/Credential of/);
    await shown.waitFor();
    await shoot('endpoint-credential');
    await shown.getByLabel(/I have stored/).check();
    await shown.getByRole('button', { name: 'Done' }).click();
    await page.getByText('Waiting for the first call').waitFor();
    await shoot('endpoint-setup');
    await page.getByRole('link', { name: 'Endpoint', exact: true }).click();
    await page.getByRole('button', { name: 'Change settings…' }).click();
    const settings = dialog('Access settings');
    await settings.getByLabel('Requests per second').fill('1800');
    await settings.getByLabel('Rules').fill('[{');
    await settings.getByText('This is not JSON').waitFor();
    const rule = { name: 'not through lambda', effect: 'deny', when: { viaService: ['lambda.*.amazonaws.com'] } };
    await settings.getByLabel('Rules').fill(JSON.stringify([rule]));
    await shoot('endpoint-settings');
    await settings.getByRole('button', { name: 'Save' }).click();
    await settings.waitFor({ state: 'detached' });
    await page.getByText('1,800 requests per second, 1,800 at once').waitFor();
    await page.getByText('via service lambda.*.amazonaws.com').waitFor();
    await shoot('endpoint');
    await showRequests();
    await go('External key stores');
    await page.getByRole('button', { name: 'Register key store' }).first().click();
    const register = dialog('Register an external key store');
    await register.getByLabel('Name').fill('orders in the cloud');
    await register.getByLabel('Custom key store id').fill('cks-1234567890abcdef0');
    await register.getByLabel('Region').fill('eu-central-1');
    await choose(register, 'Endpoint', 'aws-eu-central-1');
    await register.getByRole('button', { name: 'Register key store' }).click();
    await register.waitFor({ state: 'detached' });
    // The certificate is the server's own: nothing outside trusts it.
    await page.getByRole('button', { name: 'Actions on external key store orders in the cloud' }).click();
    await page.getByRole('menuitem', { name: 'Check now…' }).click();
    await dialog(/^Check/)
      .getByRole('button', { name: 'Check now' })
      .click();
    await page.getByText('XKS_PROXY_INVALID_TLS_CONFIGURATION').waitFor();
    await shoot('external-key-stores');
    await go('Key store endpoints');
    await page.getByRole('link', { name: 'aws-eu-central-1' }).waitFor();
    await shoot('endpoints');
  });

  /**
   * Filters, live tail, export and the CloudTrail event, on the page of an endpoint that only this
   * test calls.
   */
  const showRequests = async (): Promise<void> => {
    const id = new URL(page.url()).pathname.split('/').at(-1);
    const endpoint = await site.api.call<Endpoint>('GET', `/api/endpoints/${id}`);
    await page.getByRole('button', { name: 'Follow' }).click();
    await page.getByText('This page updates automatically').waitFor();
    const configuration = await site.api.call<ProxyConfiguration>('POST', `/api/endpoints/${id}/credentials`);
    const kmsRequestId = '4112f4d6-db54-4af4-ae30-c55a22a8dfae';
    for (const keyId of [endpoint.keyId, 'another-key'])
      await callXks(
        { server: site.server, configuration },
        { target: `/keys/${keyId}/metadata`, body: { requestMetadata: requestMetadata({ kmsRequestId }) } },
      );
    await page.getByText('404 KeyNotFoundException').waitFor();
    await shoot('requests-live');
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByLabel('Result').selectOption('Answered');
    await page.getByRole('status').filter({ hasText: '1 shown' }).waitFor();
    expect(new URL(page.url()).search).toBe('?result=answered');
    await page.getByRole('button', { name: 'Details' }).click();
    await page.getByText('Authenticating', { exact: true }).waitFor();
    await shoot('requests-filtered');
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'CSV', exact: true }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('dke-requests.csv');
    expect(
      readFileSync(await download.path(), 'utf8')
        .trimEnd()
        .split('\r\n'),
    ).toHaveLength(2);
    await page.getByRole('button', { name: 'Paste a CloudTrail event' }).click();
    await page
      .getByRole('textbox', { name: 'CloudTrail event' })
      .fill(JSON.stringify({ eventName: 'Encrypt', requestID: kmsRequestId }));
    await shoot('requests-paste');
    await page.getByRole('button', { name: 'Find', exact: true }).click();
    const found = dialog('Requests of this event');
    await found.getByText('404 KeyNotFoundException').waitFor();
    await shoot('requests-found');
    await found.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByRole('status').filter({ hasText: '2 shown' }).waitFor();
    await go('Request log');
    await page.getByRole('heading', { level: 1, name: 'Request log' }).waitFor();
    await page.getByRole('link', { name: 'aws-eu-central-1' }).first().waitFor();
    await shoot('requests');
    await page.getByLabel('Endpoint', { exact: true }).selectOption('None (no endpoint has this path)');
    await page.getByText('No entries match these filters').waitFor();
  };

  test('shows who did what, and the tokens', async () => {
    await go('Audit log');
    const destroyed = page.getByRole('row').filter({ has: page.getByRole('cell', { name: 'Key destroyed' }) });
    await destroyed.getByRole('button', { name: 'Details' }).click();
    await page.getByText('blastRadius', { exact: true }).waitFor();
    await shoot('audit');
    await go('API tokens');
    await page.getByText('first administrator').first().waitFor();
    await shoot('tokens');
    await go('Overview');
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    await page.getByRole('table', { name: 'Nodes' }).getByText('Running', { exact: true }).waitFor();
    await eyes.settle(page);
    await shoot('overview');
  });

  test('shows a page that there is not, and a name that looks like markup as text', async () => {
    await page.goto('/nowhere/at/all');
    await page.getByText('No page has this address').waitFor();
    await shoot('nowhere');
    await site.api.call('POST', '/api/vaults', { name: '<img src=x onerror=alert(1)><b>bold</b>' });
    await page.goto('/vaults');
    await page.getByText('<img src=x onerror=alert(1)>').waitFor();
    expect(await page.locator('img[src="x"]').count()).toBe(0);
  });

  test('is complete in the dark theme and on a narrow screen', async () => {
    const state = await context.storageState();
    for (const [name, options] of [
      ['dark', { colorScheme: 'dark', viewport: { width: 1280, height: 860 } }],
      ['narrow', { colorScheme: 'light', viewport: { width: 320, height: 700 } }],
    ] as const) {
      const [other, opened] = await eyes.open({ ...options, storageState: state });
      for (const path of [
        '/',
        '/vaults',
        '/keys',
        '/tde/applications',
        '/endpoints',
        '/requests',
        '/external-key-stores',
        '/audit',
        '/tokens',
      ]) {
        await opened.goto(path);
        await opened.getByRole('heading', { level: 1 }).waitFor();
        await eyes.settle(opened);
        await shoot(`${name}${path.replaceAll('/', '-')}`, opened);
        const wider = await opened.evaluate<number>('document.documentElement.scrollWidth - window.innerWidth');
        expect(wider, `${name} ${path} scrolls sideways`).toBeLessThanOrEqual(0);
      }
      await other.close();
    }
  });

  test('makes a tenant, and says at its name what is wrong with it', async () => {
    await page.goto('/tenants');
    await page.getByRole('button', { name: 'Create tenant' }).click();
    const create = dialog('Create a tenant');
    await create.getByLabel('Name').fill(' Retail');
    await create.getByRole('button', { name: 'Create tenant' }).click();
    await create.getByText('no spaces at the beginning or end').first().waitFor();
    expect(await create.getByLabel('Name').getAttribute('aria-invalid')).toBe('true');
    // The refusal is in the browser's console too.
    expect(eyes.faults.splice(0).filter((fault) => !fault.includes('400'))).toEqual([]);
    await create.getByLabel('Name').fill('Retail');
    await create.getByRole('button', { name: 'Create tenant' }).click();
    await page.getByRole('cell', { name: 'Retail', exact: true }).waitFor();
    await page.getByText('Tenant “Retail” created').waitFor({ state: 'attached' });
    expect((await site.api.audit('kind=tenant.created')).map(({ details }) => details.name)).toEqual([
      'default',
      'Retail',
    ]);
    await shoot('tenants');
  });

  test('has left nothing to complain of', () => {
    expect(eyes.faults).toEqual([]);
  });

  test('requires a new sign-in after signing out', async () => {
    await page.goto('/');
    await page.getByRole('button', { name: 'Sign out' }).first().click();
    await page.getByLabel('Password').waitFor();
    await page.goto('/keys');
    await page.getByLabel('Password').waitFor();
    expect(await context.cookies()).toEqual([]);
  });
});
