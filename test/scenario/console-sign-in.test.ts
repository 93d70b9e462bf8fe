// Every way into the console, in a real browser and by keyboard alone: an invitation, a password, a
// one-time code, a passkey (of Chromium's own virtual authenticator), a real OpenID provider; and
// the ways out: signing out, too many wrong passwords, a session that is over.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { OpenSession } from '../../server/contract/api/session-routes.ts';
import type { InvitedUser } from '../../server/contract/api/users-routes.ts';
import { type ConsoleApi, openConsoleApi } from '../support/console-api.ts';
import { type ConsoleBrowser, chromiumPath, openConsoleBrowser, revealedSecret } from '../support/console-browser.ts';
import { freePort } from '../support/daemon.ts';
import { type Keyboard, useKeyboard } from '../support/keyboard.ts';
import { clientSecret, type OpenIdProvider, startOpenIdProvider } from '../support/open-id-provider.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { type ShiftedClock, shiftedClock } from '../support/shifted-clock.ts';
import { codeOf } from '../support/totp.ts';

if (chromiumPath === null) console.log('skipped: no chromium on the PATH');

describe.runIf(chromiumPath !== null)('signing in at the console', () => {
  const password = 'correct horse battery staple of mine';
  let folder: string;
  let provider: OpenIdProvider;
  let server: ServerProcess;
  /** With fresh data, or with the existing data. */
  let startServer: (folder?: string) => Promise<ServerProcess>;
  let api: ConsoleApi;
  let eyes: ConsoleBrowser;
  let context: BrowserContext;
  let page: Page;
  let hands: Keyboard;
  /** Whether the authenticator verifies its user. */
  let verifyPerson: (verified: boolean) => Promise<unknown>;

  const press = (name: RegExp | string) => hands.pressOn(name);
  const typeInto = (name: RegExp | string, text: string) => hands.typeInto(name, text);

  const heading = (name: RegExp | string, on = page) => on.getByRole('heading', { level: 1, name }).waitFor();
  const lookClosely = (what: string): Promise<void> => eyes.lookClosely(`sign-in-${what}`, page);
  const signOut = async (): Promise<void> => {
    await press('Sign out');
    await heading('Sign in to the console');
  };
  const givePassword = async (name: string, secret: string): Promise<void> => {
    await typeInto('User name', name);
    await typeInto('Password', secret);
    await page.keyboard.press('Enter');
  };
  /** A field is emptied when the answer arrives: until then nothing else may be typed there. */
  const emptied = (label: string) => expect.poll(() => page.getByLabel(label).inputValue()).toBe('');
  const invite = async (name: string, role: string): Promise<readonly [id: string, hash: string]> => {
    const { user, invitation } = await api.call<InvitedUser>('POST', '/api/users', {
      name,
      grants: [{ role, scope: null }],
    });
    return [user.id, new URL(invitation?.url ?? '').hash];
  };
  /** Answers the person's id. */
  const redeem = async (name: string, role: string): Promise<string> => {
    const [id, hash] = await invite(name, role);
    await page.goto(`/invitation${hash}`);
    await heading('Welcome');
    await typeInto('New password', password);
    await typeInto('Confirm password', password);
    await page.keyboard.press('Enter');
    return id;
  };
  /**
   * Failed attempts from another address: the rate limit is for each address, and the browser has
   * its own.
   */
  const guess = async (times: number, path: string, body: object): Promise<void> => {
    const { origin } = new URL(page.url());
    const cookie = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
    for (let attempt = 0; attempt < times; attempt += 1) {
      const status = await new Promise<number | undefined>((resolve, reject) => {
        const sent = request(new URL(path, origin), {
          method: 'POST',
          agent: false,
          ca: readFileSync(server.caFile),
          family: 4,
          localAddress: '127.0.0.2',
          headers: { origin, cookie, 'content-type': 'application/json' },
        });
        sent.on('response', (answer) => answer.resume().on('end', () => resolve(answer.statusCode)));
        sent.on('error', reject).end(JSON.stringify(body));
      });
      expect(status).toBe(401);
    }
  };
  const focusOn = (name: string) => expect.poll(() => hands.focused()).toBe(name);
  /** When the next attempt is possible, in the person's own time. */
  const isTold = async (): Promise<void> => {
    const alert = page.getByRole('alert').filter({ hasText: 'the next attempt is possible at' });
    const moment = (await alert.locator('time').getAttribute('datetime')) ?? '';
    const own = { dateStyle: 'medium', timeStyle: 'medium', timeZone: 'Asia/Kolkata' };
    const shown = `new Intl.DateTimeFormat("en-GB", ${JSON.stringify(own)}).format(new Date('${moment}'))`;
    expect(await alert.textContent()).toContain(await page.evaluate<string>(shown));
    expect(await alert.textContent()).not.toContain(moment);
  };
  /** What the browser notes of a refusal that was meant to be. */
  const forgive = (pattern: RegExp): void => {
    eyes.faults.splice(0, eyes.faults.length, ...eyes.faults.filter((fault) => !pattern.test(fault)));
  };
  let clock: ShiftedClock;
  const jump = (hours: number): void => clock.ahead(hours * 3_600_000);

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'dke-sign-in-'));
    clock = shiftedClock(folder);
    const port = await freePort();
    const publicUrl = `https://localhost:${port}`;
    const groups = new Map([['carla', ['dke-auditors']]]);
    provider = await startOpenIdProvider(folder, `${publicUrl}/api/session/openid/callback`, groups);
    const secretFile = join(folder, 'client-secret');
    writeFileSync(secretFile, `${clientSecret}\n`, { mode: 0o600 });
    startServer = (used) =>
      startServerProcess({
        ...(used === undefined ? {} : { folder: used }),
        port,
        publicUrl,
        toml: [
          `[oidc]\nissuer = "${provider.issuer}"\nclient_id = "dke"\nclient_secret_file = "${secretFile}"\nca = "${provider.caFile}"`,
          'label = "Example staff"\nrole_claim = "groups"\n[oidc.roles]\ndke-auditors = "auditor"\n',
        ].join('\n'),
        environment: clock.environment,
      });
    server = await startServer();
    api = openConsoleApi(server, server.adminToken);
    eyes = await openConsoleBrowser(publicUrl, chromiumPath ?? '', {
      trusted: [readFileSync(server.caFile, 'utf8'), provider.certificate],
      alsoAt: [provider.issuer],
    });
    [context, page] = await eyes.open({ timezoneId: 'Asia/Kolkata' });
    hands = useKeyboard(page);
    const session = await context.newCDPSession(page);
    await session.send('WebAuthn.enable');
    const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
    verifyPerson = (isUserVerified) => session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified });
  });
  afterAll(async () => {
    await eyes?.close();
    await server?.remove();
    await provider?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test('an administrator joins with an invitation, which requires a password and a passkey', async () => {
    await redeem('ada', 'administrator');
    await heading('Set up two-step verification');
    await focusOn('Set up two-step verification');
    await lookClosely('enrolment');
    await typeInto('Name of the passkey', 'this laptop');
    await page.keyboard.press('Enter');
    await heading('Overview');
    await page.goto('/profile');
    await page.getByRole('cell', { name: 'this laptop', exact: true }).waitFor();
    await signOut();
    await lookClosely('ways');
    expect(eyes.faults).toEqual([]);
  });

  test('a passkey alone is enough; a cancelled one is explained in plain words, and can be tried again', async () => {
    await verifyPerson(false);
    await press('Use a passkey');
    await page.getByRole('alert').getByText('No passkey was received').waitFor();
    await focusOn('Use a passkey');
    await lookClosely('no-passkey');
    await verifyPerson(true);
    await press('Use a passkey');
    await heading('Profile');
    await signOut();
    await focusOn('User name');
    expect(eyes.faults).toEqual([]);
  });

  test('a wrong password is reported and only the password is cleared; the right one is followed by the passkey', async () => {
    await givePassword('ada', 'not this one, surely');
    await page.getByRole('alert').waitFor();
    await lookClosely('wrong-password');
    expect(await page.getByLabel('User name').inputValue()).toBe('ada');
    await emptied('Password');
    await focusOn('Password');
    await typeInto('Password', password);
    await page.keyboard.press('Enter');
    await heading('Second factor required');
    await focusOn('One-time code');
    await lookClosely('second-factor');
    await press('Use a passkey');
    await heading('Profile');
    await signOut();
    expect(eyes.faults).toEqual([]);
  });

  test('a one-time code is made, given wrong, given wrong too often, and given right', async () => {
    const id = await redeem('grace', 'auditor');
    await heading('Overview');
    await page.goto('/profile');
    await press('Add one-time code');
    await press('Show QR code');
    await page.getByRole('img', { name: /QR code/ }).waitFor();
    const secret = await revealedSecret(page);
    await typeInto('Code from the app', codeOf(secret));
    await page.keyboard.press('Enter');
    await page.getByRole('cell', { name: 'Authenticator', exact: true }).waitFor();
    await signOut();
    await givePassword('grace', password);
    await heading('Second factor required');
    const wrong = ['000000', '111111', '222222', '333333'].find(
      (code) => ![-1, 0, 1, 2].some((step) => codeOf(secret, step) === code),
    );
    await typeInto('One-time code', wrong ?? '444444');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor();
    await emptied('One-time code');
    await focusOn('One-time code');
    await lookClosely('wrong-code');
    // With the password's attempt, which counts until the sign-in is complete, and the code above:
    // five.
    await guess(3, '/api/session/second-factor', { code: wrong ?? '444444' });
    await typeInto('One-time code', wrong ?? '444444');
    await page.keyboard.press('Enter');
    await isTold();
    await emptied('One-time code');
    await lookClosely('locked-code');
    await api.call('POST', `/api/users/${id}/unlock`);
    // Each code works once: this is the next one, which is accepted because clocks may differ.
    await typeInto('One-time code', codeOf(secret, 1));
    await page.keyboard.press('Enter');
    await heading('Profile');
    await signOut();
    forgive(/401|429/);
    expect(eyes.faults).toEqual([]);
  });

  test('too many wrong passwords lock the name for a while, and say until when; a passkey still opens', async () => {
    await guess(5, '/api/session', { user: 'ada', password: 'wrong, and long enough' });
    await givePassword('ada', password);
    await isTold();
    await lookClosely('locked');
    await press('Use a passkey');
    await heading('Profile');
    await signOut();
    forgive(/401|429/);
    expect(eyes.faults).toEqual([]);
  });

  test('who is signed in stays so while the service is started again', async () => {
    await press('Use a passkey');
    await heading('Profile');
    await page.goto('about:blank');
    await server.stop();
    // The new process has not counted the earlier sign-ins from this address, of which at most
    // twenty are accepted at once.
    server = await startServer(server.folder);
    await page.goto('/keys');
    await heading('Keys');
    await signOut();
    expect(eyes.faults).toEqual([]);
  });

  test('a user with a role at the OpenID provider is signed in; one without a role is told so', async () => {
    const atProvider = async (who: string | null): Promise<void> => {
      await page.goto('/audit');
      await press('Continue with Example staff');
      await page.waitForURL((url) => url.origin === provider.issuer);
      if (who === null) {
        await page.getByRole('link', { name: 'Cancel' }).click();
        return;
      }
      await page.locator('input[name=login]').fill(who);
      await page.locator('input[name=password]').fill('any');
      await page.keyboard.press('Enter');
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.waitForURL((url) => url.origin === new URL(page.url()).origin && url.origin !== provider.issuer);
    };
    await atProvider(null);
    await page.getByText('The sign-in at the provider is not valid', { exact: false }).waitFor();
    await focusOn('User name');
    await lookClosely('cancelled-at-provider');
    await atProvider('carla');
    await heading(/Overview|Audit log/);
    await page.getByRole('link', { name: 'carla', exact: true }).waitFor();
    // An administrator ends the session while its person is at work.
    await page.goto('/audit');
    await heading('Audit log');
    // The page may notice that on its own, or with the answer to the next click.
    await hands.to('Vaults');
    const { items } = await api.call<{ items: OpenSession[] }>('GET', '/api/sessions');
    for (const { id, holder } of items) if (holder.name === 'carla') await api.call('DELETE', `/api/sessions/${id}`);
    await hands.press('Enter');
    await page.getByText('Your session has ended').waitFor();
    await focusOn('User name');
    await lookClosely('ended');
    // Carla is still signed in at the provider.
    await context.clearCookies();
    await atProvider('nobody');
    await page.getByText('has no access to this service', { exact: false }).waitFor();
    await lookClosely('refused-by-provider');
    forgive(/401/);
    expect(eyes.faults).toEqual([]);
  });

  test('a session that is over leads to the sign-in page, and from there back to where one was', async () => {
    await page.goto('/keys');
    await press('Use a passkey');
    await heading('Keys');
    jump(13);
    await page.reload();
    await heading('Sign in to the console');
    expect(new URL(page.url()).pathname).toBe('/keys');
    await press('Use a passkey');
    await heading('Keys');
    forgive(/401/);
    expect(eyes.faults).toEqual([]);
  });
});
