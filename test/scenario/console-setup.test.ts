// The first hour of a service, in a real browser: from the token of the first start to the first
// verified snapshot. The lines of the configuration file are copied from the page, and the command
// opens the recovery key's file. The setup is interrupted and continued.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Setup } from '../../server/contract/api/setup-routes.ts';
import { runCommand } from '../support/command.ts';
import { type ConsoleBrowser, chromiumPath, openConsoleBrowser, revealedSecret } from '../support/console-browser.ts';
import { type Keyboard, useKeyboard } from '../support/keyboard.ts';
import { type Site, startSite } from '../support/site.ts';
import { codeOf } from '../support/totp.ts';

if (chromiumPath === null) console.log('skipped: no chromium on the PATH');

describe.runIf(chromiumPath !== null)('the first setup', () => {
  const password = 'correct horse battery staple of mine';
  const passphrase = 'a passphrase of the file';
  const options = { toml: '[erasure]\ngather_ms = 20\n' };
  let site: Site;
  let eyes: ConsoleBrowser;
  let page: Page;
  let hands: Keyboard;
  let keyFile: string;

  const press = (name: RegExp | string) => hands.pressOn(name);
  const typeInto = (name: RegExp | string, text: string) => hands.typeInto(name, text);

  const stateOf = async (): Promise<Record<string, string>> =>
    Object.fromEntries((await site.api.call<Setup>('GET', '/api/setup')).steps.map(({ step, state }) => [step, state]));
  const step = (title: string) =>
    page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: title }) });
  const lookClosely = (what: string): Promise<void> => eyes.lookClosely(`setup-${what}`, page);

  beforeAll(async () => {
    site = await startSite(options);
    keyFile = join(site.folder, 'recovery.key');
    eyes = await openConsoleBrowser(site.server.url, chromiumPath ?? '');
    [, page] = await eyes.open({ acceptDownloads: true });
    hands = useKeyboard(page);
  });
  afterAll(async () => {
    await eyes?.close();
    await site?.end();
  });

  test('begins with the token of the first start, on the overview', async () => {
    await page.goto('/');
    await press('Use a token');
    await typeInto('Administrator token', site.token);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Set up this service' }).waitFor();
    await eyes.shoot('setup-overview', page);
    await press('Start setup');
    await page.getByRole('heading', { level: 1, name: 'Set up this service' }).waitFor();
    await step('Encrypt the root key').getByText('Unencrypted in its file').waitFor();
    await eyes.settle(page);
    await lookClosely('begin');
    expect(Object.values(await stateOf())).toEqual(Array(9).fill('open'));
  });

  test('an accepted risk is not done: it stays a warning with its person, is audited, and can be withdrawn', async () => {
    const accept = 'Accept the risk: keep the root key unencrypted';
    await press(accept);
    const rootKey = step('Encrypt the root key');
    await rootKey.getByText('(risk accepted, not done)').waitFor();
    await rootKey.locator('summary').first().click();
    await rootKey.getByText(/^Risk accepted by first administrator on \d/).waitFor();
    expect((await stateOf())['root-protection']).toBe('confirmed');
    await rootKey.getByRole('button', { name: 'Withdraw acceptance' }).click();
    await page.getByRole('button', { name: accept }).click();
    await rootKey.getByText('(risk accepted, not done)').waitFor();
    expect((await site.api.audit('kind=setup.confirmed')).map(({ details }) => details.confirmed)).toEqual([
      true,
      false,
      true,
    ]);
  });

  test('an administrator is invited; the same browser continues as that person', async () => {
    await step('Create an administrator').locator('summary').first().click();
    await press('Invite administrator…');
    await page.getByRole('dialog', { name: 'Invite the first administrator' }).waitFor();
    await typeInto('User name', 'ada');
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: /Invitation/ });
    const address = new URL(await revealedSecret(dialog));
    await dialog.getByRole('checkbox').check();
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.getByText('Invited: ada').waitFor();
    await page.goto(`/invitation${address.hash}`);
    await typeInto('New password', password);
    await typeInto('Confirm password', password);
    await page.keyboard.press('Enter');
    await press('Show QR code');
    await page.getByRole('img', { name: /QR code/ }).waitFor();
    const secret = await revealedSecret(page);
    await typeInto('Code from the app', codeOf(secret));
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    await page.getByRole('link', { name: /^Next: back up the root key/ }).click();
    await step('Create an administrator')
      .locator('summary', { hasText: 'Ada is an administrator with a second factor' })
      .waitFor();
    expect((await stateOf()).administrator).toBe('done');
  });

  test('the lines for the audit sink go into dke.toml as they are shown, and the page sees that records arrive', async () => {
    const sinks = step('Forward the audit log');
    await sinks.locator('summary').first().click();
    await sinks.getByLabel('Sink type').selectOption('file');
    await sinks.getByLabel('Path').fill(join(site.folder, 'audit.ndjson'));
    const lines = (await sinks.locator('pre').first().textContent()) ?? '';
    expect(lines).toContain('[[audit.sinks]]');
    await site.stopServer();
    options.toml += `${lines}\n`;
    await site.startServer();
    await page.reload();
    await sinks.locator('summary', { hasText: 'The audit log is forwarded to file' }).waitFor();
    await sinks.locator('summary').first().click();
    await sinks.getByText('has all records').waitFor();
    expect(readFileSync(join(site.folder, 'audit.ndjson'), 'utf8')).toContain('setup.confirmed');
  });

  test('a recovery key is made in the browser: its file goes to the person, its public half to the service', async () => {
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.postData() ?? ''));
    await step('Create a recovery key').locator('summary').first().click();
    await page.getByRole('button', { name: 'Create a recovery key' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('safe of the bank');
    await dialog.getByLabel('File passphrase').fill(passphrase);
    await dialog.getByLabel('Confirm passphrase').fill(passphrase);
    await dialog.getByRole('button', { name: 'Create key' }).click();
    const taking = page.getByRole('dialog', { name: 'Save the recovery key' });
    await taking.waitFor();
    expect(await taking.getByRole('button', { name: 'Register public half' }).isDisabled()).toBe(true);
    expect(await eyes.findBarriers(page)).toEqual([]);
    await eyes.shoot('setup-recovery-key', page);
    const coming = page.waitForEvent('download');
    await taking.getByRole('button', { name: 'Save recovery.key' }).click();
    writeFileSync(keyFile, readFileSync(await (await coming).path()), { mode: 0o600 });
    await taking.getByRole('checkbox').check();
    await taking.getByRole('button', { name: 'Register public half' }).click();
    // The first token is a second person as long as it is valid.
    await taking
      .getByText('Another person with the role key-approver or administrator must approve it: 1 can')
      .waitFor();
    const { items: waiting } = await site.api.call<{ items: { id: string }[] }>('GET', '/api/approvals');
    expect(waiting).toHaveLength(1);
    await site.api.call('POST', `/api/approvals/${waiting[0]?.id}/approve`, {});
    await taking.getByRole('button', { name: 'Cancel' }).click();
    await page
      .getByRole('dialog', { name: 'Discard what you entered?' })
      .getByRole('button', { name: 'Discard' })
      .click();
    await step('Create a recovery key')
      .locator('summary', { hasText: 'Snapshots are sealed to safe of the bank' })
      .waitFor();
    expect(asked.filter((body) => body.includes(passphrase))).toEqual([]);
    const shown = await runCommand(['-o', 'json', 'recovery-key', 'show', keyFile]);
    const { items } = await site.api.call<{ items: { publicKey: string }[] }>('GET', '/api/recovery-keys');
    expect((JSON.parse(shown.stdout) as { publicKey: string }).publicKey).toBe(items[0]?.publicKey);
  });

  test('the first snapshot is made; the setup is finished when it was opened with the file', async () => {
    await step('Create and open the first snapshot').locator('summary').first().click();
    await page.getByRole('button', { name: 'Create snapshot' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Create snapshot', exact: true }).click();
    await page.getByText('but not opened yet').last().waitFor();
    expect(await stateOf()).toMatchObject({ snapshot: 'open' });
    const { items } = await site.api.call<{ items: { id: string }[] }>('GET', '/api/snapshots');
    const passphraseFile = join(site.folder, 'passphrase');
    writeFileSync(passphraseFile, passphrase, { mode: 0o600 });
    const tokenFile = join(site.folder, 'token');
    writeFileSync(tokenFile, site.token, { mode: 0o600 });
    const verified = await runCommand([
      ...['--server', site.server.url, '--ca-file', site.server.caFile, '--token-file', tokenFile],
      ...['snapshot', 'verify', items[0]?.id ?? '', '--recovery-key', keyFile, '--passphrase-file', passphraseFile],
    ]);
    expect(verified).toMatchObject({ code: 0 });
    await page.reload();
    // What is not done stays, and so does the accepted risk.
    await step('Back up the root key').waitFor();
    await step('Encrypt the root key').getByText('(risk accepted, not done)').waitFor();
    expect(await step('Create and open the first snapshot').count()).toBe(0);
    await lookClosely('done');
    await page.goto('/');
    await page.getByRole('heading', { name: 'Needs attention today' }).waitFor();
    await eyes.settle(page);
    expect(await page.getByText('Set up this service').count()).toBe(0);
    expect(eyes.faults.filter((fault) => !/ERR_CONNECTION|502|failed:/.test(fault))).toEqual([]);
  });
});
