// A restore at the console by keyboard alone, in a real browser before a real server: the file of a
// recovery key with its passphrase, a dry run that changes nothing, a cancelled confirmation, the
// restore; under dual control; and the restore of a copy in a file. Neither the recovery key nor
// its passphrase leaves the browser.
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Approval } from '../../server/contract/api/approvals-routes.ts';
import type { Snapshot } from '../../server/contract/api/snapshots-routes.ts';
import { runCommand } from '../support/command.ts';
import { createGroup, openConsoleApi, registerApplication } from '../support/console-api.ts';
import { type ConsoleBrowser, chromiumPath, openConsoleBrowser } from '../support/console-browser.ts';
import { type Keyboard, useKeyboard } from '../support/keyboard.ts';
import { type Site, startSite } from '../support/site.ts';

if (chromiumPath === null) console.log('skipped: no chromium on the PATH');

const passphrase = 'correct horse battery staple';
const kept = 'ORACLE.TDE.HSM.MK.06A1';
const destroyed = 'ORACLE.TDE.HSM.MK.06B2';

describe.runIf(chromiumPath !== null)('a restore at the console', () => {
  let site: Site;
  let eyes: ConsoleBrowser;
  let page: Page;
  let hands: Keyboard;
  let snapshot: Snapshot;
  let keyId: string;
  let vaultId: string;
  let applicationId: string;
  const sent: string[] = [];
  const recoveryFile = (): string => join(site.folder, 'recovery.key');
  const dialog = () => page.getByRole('dialog');
  const keyState = async (): Promise<string> =>
    (await site.api.call<{ readonly state: string }>('GET', `/api/keys/${keyId}`)).state;
  const restored = () => site.api.audit('kind=snapshot.restored');

  beforeAll(async () => {
    // A disabled key becomes active, which otherwise needs approval.
    site = await startSite({ toml: '[snapshots]\nrestore_second_person = false\n' });
    writeFileSync(join(site.folder, 'passphrase'), `${passphrase}\n`, { mode: 0o600 });
    const { code, stdout, stderr } = await runCommand([
      ...['-o', 'json', 'recovery-key', 'create', '--out', recoveryFile()],
      ...['--passphrase-file', join(site.folder, 'passphrase')],
    ]);
    expect([code, stderr]).toEqual([0, '']);
    const { publicKey } = JSON.parse(stdout) as { readonly publicKey: string };
    const { api } = site;
    await api.call('POST', '/api/recovery-keys', { name: 'safe of the bank', publicKey });
    ({ id: vaultId } = await api.call<{ id: string }>('POST', '/api/vaults', { name: 'Payments' }));
    ({ id: keyId } = await api.call<{ id: string }>('POST', '/api/keys', { name: 'orders', vaultId }));
    const erp = await registerApplication(api, 'erp', await createGroup(api, 'Finance'));
    applicationId = erp.application.id;
    const database = site.database(site.config('erp', erp));
    await database.call('open', { pin: '' });
    for (const label of [kept, destroyed]) expect((await database.call('generate', { label })).rv).toBe('CKR_OK');
    await database.stop();
    snapshot = await api.call('POST', '/api/snapshots', {});
    // What has happened since.
    await api.call('POST', `/api/keys/${keyId}/disable`);
    const { id } = await api.masterKey(applicationId, destroyed);
    await api.call('POST', `/api/tde/applications/${applicationId}/master-keys/${id}/destroy`, { confirm: destroyed });

    eyes = await openConsoleBrowser(site.server.url, chromiumPath ?? '');
    [, page] = await eyes.open();
    page.on('request', (request) =>
      sent.push(`${request.url()} ${request.postDataBuffer()?.toString('latin1') ?? ''}`),
    );
    // Waits for the browser's file dialog from here on, even if a key opens it immediately.
    page.on('filechooser', () => undefined);
    hands = useKeyboard(page);
    await eyes.signIn(page, site.token);
  });
  afterAll(async () => {
    await eyes?.close();
    await site?.end();
  });

  const chooseKeyFile = async (): Promise<void> => {
    await hands.to(/^Recovery key file/);
    const [chooser] = await Promise.all([page.waitForEvent('filechooser'), hands.press('Enter')]);
    await chooser.setFiles(recoveryFile());
    await page.getByLabel('Passphrase').waitFor();
  };
  const rehearse = async (): Promise<void> => {
    await hands.to(/^Passphrase/);
    await page.keyboard.press('Control+A');
    await hands.type(passphrase);
    await hands.to('Start dry run');
    await hands.press('Enter');
    await page.getByRole('heading', { name: 'Dry run' }).waitFor();
  };

  test('a wrong passphrase opens nothing, and says so', async () => {
    await page.goto('/snapshots');
    await page.getByRole('button', { name: /^Actions on the snapshot/ }).waitFor();
    await hands.press('Tab');
    await hands.to('Skip to content');
    await hands.press('Enter');
    await hands.to(/^Actions on the snapshot/);
    await hands.press('Enter');
    await page.getByRole('menu').waitFor();
    // The menu takes the focus when it is drawn.
    await expect.poll(() => hands.focused()).toBe('Verify now…');
    await hands.press('ArrowDown');
    await expect.poll(() => hands.focused()).toBe('Restore…');
    await hands.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Restore a snapshot' }).waitFor();
    await page.getByLabel('Recovery key file').waitFor();
    expect(await eyes.findBarriers(page)).toEqual([]);
    await chooseKeyFile();
    await hands.to(/^Passphrase/);
    await hands.type('not this one');
    await hands.to('Start dry run');
    await hands.press('Enter');
    await page.getByText('the passphrase is wrong, or the file was changed').waitFor();
    await eyes.shoot('restore-wrong-passphrase', page);
    expect(await restored()).toEqual([]);
  });

  test('a dry run shows what would change and what stays destroyed, and changes nothing', async () => {
    await page.reload();
    await page.getByLabel('Recovery key file').waitFor();
    await chooseKeyFile();
    await rehearse();
    // Who uses a screen reader is where the result begins.
    await expect.poll(() => hands.focused()).toBe('Dry run');
    const keys = page.getByRole('row').filter({ has: page.getByRole('cell', { name: 'Keys', exact: true }) });
    expect(await keys.getByRole('cell').allTextContents()).toEqual(
      expect.arrayContaining([expect.stringContaining('Keys')]),
    );
    await page.getByText(destroyed).waitFor();
    expect(await page.getByText(kept).count()).toBe(0);
    await page.getByText('No approval required').waitFor();
    expect(await eyes.findBarriers(page)).toEqual([]);
    await eyes.shoot('restore-dry-run', page);
    expect(await keyState()).toBe('disabled');
    expect(await restored()).toEqual([]);
  });

  test('Escape cancels the confirmation and gives the focus back; typing its name restores', async () => {
    await hands.to('Restore…');
    await hands.press('Enter');
    await dialog().waitFor();
    expect(await eyes.findBarriers(page)).toEqual([]);
    await hands.press('Escape');
    await dialog().waitFor({ state: 'detached' });
    await expect.poll(() => hands.focused()).toBe('Restore…');
    expect(await keyState()).toBe('disabled');

    await hands.press('Enter');
    await dialog().waitFor();
    await hands.to(/^Type the first eight characters/);
    await hands.type('00000000');
    expect(await dialog().getByRole('button', { name: 'Restore', exact: true }).isDisabled()).toBe(true);
    await page.keyboard.press('Control+A');
    await hands.type(snapshot.id.slice(0, 8));
    await hands.to('Restore');
    await eyes.shoot('restore-confirm', page);
    await hands.press('Enter');
    await page.getByRole('heading', { name: 'Restored' }).waitFor();
    await expect.poll(() => hands.focused()).toBe('Restored');
    await eyes.shoot('restore-done', page);
    expect(await keyState()).toBe('active');
    expect((await site.api.masterKey(applicationId, destroyed)).state).toBe('destroyed');
    expect((await site.api.masterKey(applicationId, kept)).state).toBe('active');
    expect(await restored()).toHaveLength(1);
  });

  test('under dual control it waits for another, and is carried out with the recovery key when confirmed again', async () => {
    const { api } = site;
    const approver = await api.call<{ readonly token: string }>('POST', '/api/tokens', {
      name: 'anna',
      grants: [{ role: 'key-approver', scope: null }],
    });
    await api.call('PUT', `/api/vaults/${vaultId}/dual-control`, { required: 1, actions: ['restore'] });
    await api.call('POST', `/api/keys/${keyId}/disable`);
    await page.goto(`/snapshots/${snapshot.id}/restore`);
    await page.getByLabel('Recovery key file').waitFor();
    await chooseKeyFile();
    await rehearse();
    await page.getByText('Approval required').waitFor();
    await page.getByText('Payments: 1 in addition to you').waitFor();
    const confirm = async (): Promise<void> => {
      await hands.to('Restore…');
      await hands.press('Enter');
      await hands.to(/^Type the first eight characters/);
      await hands.type(snapshot.id.slice(0, 8));
      await hands.to('Restore');
      await hands.press('Enter');
    };
    await confirm();
    await dialog().getByText('Approval requested').waitFor();
    await eyes.shoot('restore-waits', page);
    await hands.press('Escape');
    await dialog().waitFor({ state: 'detached' });
    await page.getByText('Requested: 1 more must approve').waitFor();
    expect(await keyState()).toBe('disabled');
    const [asked] = (await api.call<{ readonly items: readonly Approval[] }>('GET', '/api/approvals?state=pending'))
      .items;
    await openConsoleApi(site.server, approver.token).call('POST', `/api/approvals/${asked?.id}/approve`, {});
    // The restore is confirmed again on the same page, without a new dry run.
    await confirm();
    await page.getByRole('heading', { name: 'Restored' }).waitFor();
    expect(await keyState()).toBe('active');
    expect(await restored()).toHaveLength(2);
  });

  test('a copy in a file comes back and leads to its restore; a file that is none is refused', async () => {
    const folder = join(site.server.dataDirectory, 'snapshots');
    const [name = ''] = readdirSync(folder).filter((each) => each.includes(snapshot.id));
    // The service has lost its own.
    const copy = join(site.folder, 'copy.dkesnap');
    renameSync(join(folder, name), copy);
    await page.goto('/snapshots');
    await hands.to('Restore from a file…');
    const choose = async (path: string): Promise<void> => {
      await hands.to(/^Snapshot file/);
      const [chooser] = await Promise.all([page.waitForEvent('filechooser'), hands.press('Enter')]);
      await chooser.setFiles(path);
    };
    await hands.press('Enter');
    await dialog().waitFor();
    await choose(recoveryFile());
    await dialog().getByText('It was not sent, and never leaves this browser').waitFor();
    expect(await dialog().getByRole('button', { name: 'Import snapshot' }).isDisabled()).toBe(true);
    await eyes.shoot('restore-no-snapshot', page);
    await hands.press('Escape');
    await dialog().waitFor({ state: 'detached' });
    await expect.poll(() => hands.focused()).toBe('Restore from a file…');
    await hands.press('Enter');
    await dialog().waitFor();
    await choose(copy);
    await hands.to('Import snapshot');
    await hands.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Restore a snapshot' }).waitFor();
    expect(new URL(page.url()).pathname).toBe(`/snapshots/${snapshot.id}/restore`);
    expect(readFileSync(join(folder, name)).equals(readFileSync(copy))).toBe(true);
  });

  test('neither the recovery key nor its passphrase has left the browser', async () => {
    const secret = readFileSync(recoveryFile()).subarray(80);
    expect(sent.filter((each) => each.includes('/openings')).length).toBeGreaterThanOrEqual(5);
    for (const form of [passphrase, secret.toString('latin1'), secret.toString('base64'), secret.toString('hex')])
      expect(sent.filter((each) => each.includes(form))).toEqual([]);
    const stored = await page.evaluate<string>(
      'JSON.stringify([location.href, { ...localStorage }, { ...sessionStorage }])',
    );
    expect(stored).not.toContain(passphrase);
    // The browser notes each refusal, as it must.
    expect(eyes.faults.filter((fault) => !/status of 40[09]/.test(fault))).toEqual([]);
    expect(hands.faults).toEqual([]);
  });
});
