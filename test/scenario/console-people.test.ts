// People at the console, in a real browser: an invitation is handed over, the person chooses a
// password, adds a one-time code that is scanned from the page, signs out, and signs in again with
// both. What the person may not do is not offered.
import { createHmac } from 'node:crypto';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { InvitedUser } from '../../server/contract/api/users-routes.ts';
import { type ConsoleBrowser, chromiumPath, openConsoleBrowser, revealedSecret } from '../support/console-browser.ts';
import { type Site, startSite } from '../support/site.ts';

if (chromiumPath === null) console.log('skipped: no chromium on the PATH');

/** RFC 6238 over RFC 4226, written here a second time. */
const totp = (secret: string, at: number): string => {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  const bits = [...secret.replaceAll(/[=\s]/g, '')]
    .map((c) => alphabet.indexOf(c).toString(2).padStart(5, '0'))
    .join('');
  const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(at / 30_000)));
  const hash = createHmac('sha1', key).update(counter).digest();
  const offset = (hash.at(-1) ?? 0) & 15;
  return String((hash.readUInt32BE(offset) & 0x7fffffff) % 1_000_000).padStart(6, '0');
};

describe.runIf(chromiumPath !== null)('a person at the console', () => {
  let site: Site;
  let eyes: ConsoleBrowser;
  let page: Page;
  let secret = '';
  const password = 'correct horse battery staple of mine';

  beforeAll(async () => {
    site = await startSite();
    eyes = await openConsoleBrowser(site.server.url, chromiumPath ?? '');
    [, page] = await eyes.open();
  });
  afterAll(async () => {
    await eyes?.close();
    await site?.end();
  });

  test('chooses a password with an invitation, whose secret no server sees in an address', async () => {
    const { invitation } = await site.api.call<InvitedUser>('POST', '/api/users', {
      name: 'grace',
      displayName: 'Grace Hopper',
      grants: [{ role: 'auditor', scope: null }],
    });
    const token = new URL(invitation?.url ?? '').hash;
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    await page.goto(`/invitation${token}`);
    await page.getByLabel('New password').fill(password);
    await page.getByLabel('Confirm password').fill(password);
    expect(await eyes.findBarriers(page)).toEqual([]);
    await eyes.shoot('invitation', page);
    await page.getByRole('button', { name: 'Set password and sign in' }).click();
    await Promise.race([
      page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor(),
      page.getByRole('heading', { level: 1, name: 'Set up two-step verification' }).waitFor(),
    ]);
    expect(asked.filter((url) => url.includes(token.slice(1)))).toEqual([]);
    expect(page.url()).not.toContain(token.slice(1));
  });

  test('adds a one-time code from a QR code that the page draws itself', async () => {
    if (await page.getByRole('heading', { level: 1, name: 'Overview' }).isVisible()) {
      await page.goto('/profile');
      await page.getByRole('button', { name: 'Add one-time code' }).click();
    }
    await page.getByRole('button', { name: 'Show QR code' }).click();
    await page.getByRole('img', { name: /QR code/ }).waitFor();
    secret = await revealedSecret(page);
    expect(await eyes.findBarriers(page)).toEqual([]);
    await eyes.shoot('totp', page);
    await page.getByLabel('Code from the app').fill(totp(secret.trim(), Date.now()));
    await page.getByRole('button', { name: 'Confirm' }).click();
    await page.getByRole('img', { name: /QR code/ }).waitFor({ state: 'detached' });
  });

  test('signs in with both, and is shown what is theirs alone', async () => {
    await page.goto('/profile');
    await page.getByText('Grace Hopper').first().waitFor();
    await page.getByRole('button', { name: 'Sign out' }).first().click();
    await page.getByLabel('Name').fill('grace');
    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Second factor required' }).waitFor();
    await eyes.shoot('second-factor', page);
    // Each code is good once: the next one, which is taken for clocks that differ.
    await page.getByLabel('One-time code').fill(totp(secret.trim(), Date.now() + 30_000));
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('heading', { level: 1, name: 'Profile' }).waitFor();
    await page.getByRole('cell', { name: 'Authenticator', exact: true }).waitFor();
    expect(await eyes.findBarriers(page)).toEqual([]);
    await eyes.shoot('profile', page);
    const sessions = page.getByRole('table', { name: 'Sessions' });
    await sessions.getByText('This one').waitFor();
    expect(await sessions.getByText('This one').count()).toBe(1);
    await page.getByRole('button', { name: 'Sign out other sessions' }).click();
    const dialog = page.getByRole('dialog', { name: /^Sign out all/ });
    await dialog.getByRole('button', { name: 'Sign out other sessions' }).click();
    await dialog.waitFor({ state: 'detached' });
    await sessions.getByText('This one').waitFor();
    await page.goto('/vaults');
    await page.getByText('No vaults yet').waitFor();
    expect(await page.getByRole('button', { name: 'Create vault' }).count()).toBe(0);
    const refusals = eyes.faults.filter((fault) => !/40[13]/.test(fault));
    expect(refusals).toEqual([]);
  });
});
