// What a person types into the console is not lost, and what a page shows is not taken for the
// present: in a real browser, by keyboard. A form that was changed asks before it is left; a
// session that ends leaves it below the sign-in; a service that is gone is named on every page.
import type { BrowserContext, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Endpoint } from '../../server/contract/api/endpoints-routes.ts';
import type { Key } from '../../server/contract/api/keys-routes.ts';
import type { OpenSession } from '../../server/contract/api/session-routes.ts';
import type { Application } from '../../server/contract/api/tde-applications-routes.ts';
import type { Vault } from '../../server/contract/api/vaults-routes.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { type ConsoleBrowser, choose, chromiumPath, openConsoleBrowser } from '../support/console-browser.ts';
import { until } from '../support/host.ts';
import { type Keyboard, useKeyboard } from '../support/keyboard.ts';
import { type Site, startSite } from '../support/site.ts';
import { createXksEndpoint } from '../support/xks-call.ts';

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
    await hands.pressOn('Create vault…');
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
    expect(await focused()).toBe('Create vault…');
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
    await endSessions();
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

  const endSessions = async (): Promise<void> => {
    const { items } = await site.api.call<{ items: OpenSession[] }>('GET', '/api/sessions');
    for (const { id } of items) await site.api.call('DELETE', `/api/sessions/${id}`);
  };
  const signInWith = async (token: string): Promise<void> => {
    await hands.pressOn('Use a token');
    await hands.typeInto('Administrator token', token);
    await hands.press('Enter');
    await page.getByRole('heading', { name: 'Sign in to the console' }).waitFor({ state: 'detached' });
  };

  test('whose session ends is not seen by the next person, by keys, on paper or after another sign-in', async () => {
    await site.api.call('POST', '/api/vaults', { name: 'of the first person' });
    const { token } = await site.api.call<{ token: string }>('POST', '/api/tokens', {
      name: 'next person',
      grants: [{ role: 'platform-operator', scope: null }],
    });
    await page.goto('/vaults');
    await page.getByText('of the first person').first().waitFor();
    await openVaultForm();
    await hands.typeInto('Name', 'not sent');
    await endSessions();
    await hands.press('Enter');
    await page.getByRole('heading', { name: 'Sign in to the console' }).waitFor();
    const cover = page.getByRole('dialog', { name: 'Sign in' });
    // A click gives the browser's close requests back; with the focus on nothing, no field hears
    // Escape.
    await page.mouse.click(5, 5);
    await hands.press('Escape', 'Escape', 'Escape');
    await expect.poll(() => cover.evaluate((element) => element.matches(':modal'))).toBe(true);
    await page.emulateMedia({ media: 'print' });
    expect(await page.getByText('of the first person').first().isVisible()).toBe(false);
    await page.emulateMedia({ media: 'screen' });
    await signInWith(token);
    await page.locator('#main').getByRole('alert').first().waitFor();
    expect(await page.getByText('of the first person').count()).toBe(0);
    expect(await page.getByRole('dialog').count()).toBe(0);
    await endSessions();
    await page.goto('/vaults');
    await page.getByRole('heading', { name: 'Sign in to the console' }).waitFor();
    await signInWith(site.token);
  });

  // Two people edit one thing: the second one to save sees both, and nothing is undone unknowingly.
  const deny = [{ name: 'all others', effect: 'deny', when: {} }];
  const edits: readonly {
    readonly what: string;
    readonly make: () => Promise<{ readonly path: string; readonly page: string }>;
    readonly open: () => Promise<void>;
    readonly dialog: RegExp;
    readonly type: (on: Locator) => Promise<unknown>;
    readonly save: string;
    /** What the other person saves, and where it is seen. */
    readonly other: (path: string) => Promise<unknown>;
    readonly otherText: string;
    readonly saved: (resource: never) => unknown;
    readonly others: unknown;
    /** Undoes what the other person has saved; absent: that needs approvals. */
    readonly back?: (path: string) => Promise<unknown>;
    /** What is stored when the first person's values are kept. */
    readonly own?: unknown;
  }[] = [
    {
      what: 'the access settings of an endpoint',
      make: async () => {
        const { endpoint } = await createXksEndpoint(site, 'edited-settings');
        return { path: `/api/endpoints/${endpoint.id}`, page: `/endpoints/${endpoint.id}` };
      },
      open: () => page.getByRole('button', { name: 'Change settings…' }).click(),
      dialog: /^Access settings/,
      type: (on) => on.getByLabel('Requests per second').fill('7'),
      save: 'Save settings',
      other: async (path) => {
        const { settings } = await site.api.call<Endpoint>('GET', path);
        await site.api.call('PUT', `${path}/settings`, { ...settings, rules: deny });
      },
      otherText: 'all others',
      saved: ({ settings }: Endpoint) => [settings.rate?.perSecond, settings.rules],
      others: [undefined, deny],
      back: async (path) => {
        const { settings } = await site.api.call<Endpoint>('GET', path);
        await site.api.call('PUT', `${path}/settings`, { ...settings, rules: [] });
      },
      own: [7, []],
    },
    {
      what: 'a key',
      make: async () => {
        const vault = await site.api.call<Vault>('POST', '/api/vaults', { name: 'of edited keys' });
        const key = await site.api.call<Key>('POST', '/api/keys', { name: 'edited', vaultId: vault.id });
        return { path: `/api/keys/${key.id}`, page: `/keys/${key.id}` };
      },
      open: async () => {
        await page.getByRole('button', { name: /^Actions/ }).click();
        await page.getByRole('menuitem', { name: 'Edit…' }).click();
      },
      dialog: /^Edit/,
      type: (on) => on.getByLabel('Name').fill('mine'),
      save: 'Save key',
      other: (path) => site.api.call('PUT', path, { name: 'edited', tags: ['pci'] }),
      otherText: 'pci',
      saved: ({ name, tags }: Key) => [name, tags],
      others: ['edited', ['pci']],
      back: (path) => site.api.call('PUT', path, { name: 'edited', tags: [] }),
      own: ['mine', []],
    },
    {
      what: 'the name of an endpoint',
      make: async () => {
        const { endpoint } = await createXksEndpoint(site, 'named');
        return { path: `/api/endpoints/${endpoint.id}`, page: `/endpoints/${endpoint.id}` };
      },
      open: async () => {
        await page.getByRole('button', { name: 'Actions on this endpoint' }).click();
        await page.getByRole('menuitem', { name: 'Rename…' }).click();
      },
      dialog: /^Rename/,
      type: (on) => on.getByLabel('Name', { exact: true }).fill('mine'),
      save: 'Rename endpoint',
      other: (path) => site.api.call('PUT', `${path}/name`, { name: 'of another person' }),
      otherText: 'of another person',
      saved: ({ name }: Endpoint) => name,
      others: 'of another person',
      back: (path) => site.api.call('PUT', `${path}/name`, { name: 'named' }),
      own: 'mine',
    },
    {
      what: 'the callers of an application',
      make: async () => {
        const group = await createGroup(site.api, 'edited');
        const { application } = await registerApplication(site.api, 'edited', group);
        const path = `/api/tde/applications/${application.id}`;
        return { path, page: `/tde/applications/${application.id}` };
      },
      open: () => page.getByRole('button', { name: 'Change callers' }).click(),
      dialog: /^Allowed callers/,
      type: (on) => on.getByLabel('Networks').fill('192.0.2.0/24'),
      save: 'Save callers',
      other: (path) => site.api.call('PUT', `${path}/callers`, { networks: ['198.51.100.7/32'], certificates: [] }),
      otherText: '198.51.100.7',
      saved: ({ callers }: Application) => callers.networks,
      others: ['198.51.100.7/32'],
      back: (path) => site.api.call('PUT', `${path}/callers`, { networks: [], certificates: [] }),
      own: ['192.0.2.0/24'],
    },
    {
      what: 'the compatibility switches of an application',
      make: async () => {
        const { items } = await site.api.call<{ items: Application[] }>('GET', '/api/tde/applications');
        const { id = '' } = items.find(({ name }) => name === 'edited') ?? {};
        return { path: `/api/tde/applications/${id}`, page: `/tde/applications/${id}` };
      },
      open: () => page.getByRole('button', { name: 'Change switches' }).click(),
      dialog: /^Compatibility/,
      type: (on) => on.getByRole('checkbox').first().check(),
      save: 'Save switches',
      other: (path) => site.api.call('PUT', `${path}/compatibility`, { switches: ['repeated-ivs'] }),
      otherText: 'repeated-ivs',
      saved: ({ compatibility }: Application) => compatibility.includes('repeated-ivs'),
      others: true,
      back: (path) => site.api.call('PUT', `${path}/compatibility`, { switches: [] }),
      own: false,
    },
    {
      what: 'the dual control of a vault',
      make: async () => {
        await site.api.call('POST', '/api/tokens', { name: 'anna', grants: [{ role: 'key-approver', scope: null }] });
        await site.api.call('POST', '/api/tokens', { name: 'berta', grants: [{ role: 'key-approver', scope: null }] });
        const vault = await site.api.call<Vault>('POST', '/api/vaults', { name: 'governed' });
        return { path: `/api/vaults/${vault.id}`, page: '/vaults' };
      },
      open: () => page.getByRole('button', { name: /dual control of governed$/ }).click(),
      dialog: /^Dual control/,
      type: (on) => on.getByLabel('Required approvals').selectOption('1'),
      save: 'Set rule',
      other: (path) =>
        site.api.call('PUT', `${path}/dual-control`, {
          ...{ required: 2, approvers: null, actions: ['export'], databases: 'allowed' },
        }),
      otherText: 'allowed',
      saved: ({ dualControl }: Vault) => dualControl?.required,
      others: 2,
    },
  ];
  test.each(edits)('two people edit $what: the second one sees both', async (edit) => {
    const { path, page: at } = await edit.make();
    const now = async () => edit.saved((await site.api.call('GET', path)) as never);
    const form = page.getByRole('dialog', { name: edit.dialog });
    const save = form.getByRole('button', { name: edit.save });
    const refused = form.getByText('Another person has changed this in the meantime');
    /** Until the person has typed, another one has saved, and the form was sent. */
    const meet = async (): Promise<void> => {
      await page.goto(at);
      await edit.open();
      await edit.type(form);
      await edit.other(path);
      await save.click();
      await refused.waitFor();
      await form.getByRole('cell').filter({ hasText: edit.otherText }).first().waitFor();
      expect(await now()).toEqual(edit.others);
    };
    await meet();
    expect(await eyes.findBarriers(page)).toEqual([]);
    await form.getByRole('button', { name: 'Take what was saved' }).click();
    await refused.waitFor({ state: 'detached' });
    await hands.press('Escape');
    await form.waitFor({ state: 'detached' });
    expect(await now()).toEqual(edit.others);
    if (edit.back === undefined) return;
    await edit.back(path);
    await meet();
    await form.getByRole('button', { name: 'Keep mine, and save again' }).click();
    await form.getByText('Save again to replace what was saved.').waitFor();
    await save.click();
    await form.waitFor({ state: 'detached' });
    expect(await now()).toEqual(edit.own);
  });

  test('a draft of rules is applied to the settings that it began with, or both are shown', async () => {
    const { endpoint } = await createXksEndpoint(site, 'edited-rules');
    const path = `/api/endpoints/${endpoint.id}`;
    const settings = async () => (await site.api.call<Endpoint>('GET', path)).settings;
    await page.goto(`/endpoints/${endpoint.id}/rules`);
    await page.getByRole('button', { name: 'Edit a draft…' }).click();
    await page.getByLabel('Draft').fill(JSON.stringify([{ name: 'all', effect: 'allow', when: {} }]));
    const before = await settings();
    await site.api.call('PUT', `${path}/settings`, { ...before, rate: { perSecond: 3, burst: 3 }, rules: deny });
    await page.getByRole('button', { name: 'Apply rules…' }).click();
    const form = page.getByRole('dialog', { name: /^Apply these rules/ });
    await form.getByRole('button', { name: 'Apply rules' }).click();
    await form.getByRole('cell').filter({ hasText: 'all others' }).first().waitFor();
    await form.getByRole('button', { name: 'Take what was saved' }).click();
    await form.waitFor({ state: 'detached' });
    await page.getByRole('heading', { name: 'Active rules' }).waitFor();
    await page.getByText('all others').first().waitFor();
    expect(await settings()).toMatchObject({ rate: { perSecond: 3 }, rules: deny });
  });

  test('a link to a period means the same one in another zone, and a bad one is an error', async () => {
    const [elsewhere, tokyo] = await eyes.open({ timezoneId: 'Asia/Tokyo', locale: 'de-DE' });
    await eyes.signIn(tokyo, site.token, '/audit');
    const link = new URLSearchParams({ from: '2026-01-01T10:00:00Z', to: '2126-01-01T10:00:00+01:00' });
    const asked = tokyo.waitForRequest((request) => new URL(request.url()).searchParams.has('to'));
    await tokyo.goto(`/audit?${link}`);
    const { searchParams } = new URL((await asked).url());
    expect([searchParams.get('from'), searchParams.get('to')]).toEqual([link.get('from'), link.get('to')]);
    expect(await tokyo.getByLabel('From (Asia/Tokyo)').inputValue()).toBe('2026-01-01T19:00');
    await tokyo.getByRole('radio', { name: 'Times in UTC' }).click();
    expect(await tokyo.getByLabel('From (UTC)').inputValue()).toBe('2026-01-01T10:00');
    // The console speaks one language, whatever the browser's is.
    await expect
      .poll(() => tokyo.locator('#main time').first().textContent())
      .toMatch(/^\d+ [A-Z][a-z]+ 2\d{3}, .* UTC$/);
    await tokyo.getByLabel('From (UTC)').fill('2026-02-03T04:05');
    await expect.poll(() => new URL(tokyo.url()).searchParams.get('from')).toBe('2026-02-03T04:05:00Z');
    await tokyo.goto('/audit?from=yesterday');
    await tokyo.getByText('“yesterday” is not a time with a zone.').waitFor();
    await tokyo.getByText('Try again').first().waitFor();
    expect(await tokyo.getByRole('row').count()).toBe(0);
    await elsewhere.close();
    eyes.faults.splice(0);
  });

  test('an open page that no one uses says so with what it asks', async () => {
    const [other, idle] = await eyes.open();
    await idle.clock.install();
    await eyes.signIn(idle, site.token, '/nodes');
    const asks = (isOwn: boolean) =>
      idle.waitForRequest(
        (sent) => sent.url().includes('/api/nodes') && (sent.headers()['x-dke-own-request'] === '1') === isOwn,
      );
    const alone = asks(true);
    await idle.clock.fastForward(120_000);
    await alone;
    const used = asks(false);
    await idle.mouse.move(50, 60);
    await idle.clock.fastForward(10_000);
    await used;
    await other.close();
  });

  test('a printed page has all rows that were loaded, and says what they are', async () => {
    for (let at = 1; at <= 130; at += 1) await site.api.call('POST', '/api/vaults', { name: `printed ${at}` });
    await page.goto('/audit?kind=vault.created');
    const rows = page.getByRole('table').getByRole('row');
    await page.getByRole('button', { name: 'Show more' }).click();
    await page.getByText('more available').waitFor({ state: 'detached' });
    const loaded = Number(/(\d+) shown/.exec((await page.getByText(/\d+ shown/).textContent()) ?? '')?.[1]);
    expect(loaded).toBeGreaterThanOrEqual(130);
    expect(await rows.count()).toBeLessThan(loaded);
    await page.emulateMedia({ media: 'print' });
    await page.evaluate('window.dispatchEvent(new Event("beforeprint"))');
    await page.getByText('kind = vault.created').waitFor();
    await page.getByText(/all times in/).waitFor();
    expect(await rows.count()).toBe(loaded + 1);
    expect(await page.getByRole('navigation').filter({ visible: true }).count()).toBe(0);
    expect(await page.getByRole('button').filter({ visible: true }).count()).toBe(0);
    await page.evaluate('window.dispatchEvent(new Event("afterprint"))');
    await page.emulateMedia({ media: 'screen' });
    const pages = (await page.pdf()).toString('latin1').match(/\/Type\s*\/Page\b/g) ?? [];
    expect(pages.length).toBeGreaterThan(4);
    await page.emulateMedia({ media: null });
  });

  const beyond = 'beyond the first hundred';
  test('finds one of more than a hundred, by keyboard', async () => {
    const make = <T>(path: string, body: object) => site.api.call<T>('POST', path, body);
    const oldest = await make<Vault>('/api/vaults', { name: beyond });
    const key = await make<Key>('/api/keys', { name: `key ${beyond}`, vaultId: oldest.id });
    for (let at = 1; at <= 105; at += 1) {
      await make('/api/vaults', { name: `many ${at}` });
      await make('/api/keys', { name: `later ${at}`, vaultId: oldest.id });
    }
    await page.goto('/endpoints');
    await hands.pressOn('Create endpoint…');
    const form = dialog('Create a key store endpoint');
    await form.waitFor();
    await hands.to('Vault');
    await hands.type('the first hundred');
    const option = (name: string) => form.getByRole('option', { name, exact: true });
    await option(beyond).waitFor();
    // Escape closes the list, and not the dialog; what was typed is not a choice.
    await hands.press('Escape');
    await option(beyond).waitFor({ state: 'detached' });
    const vault = form.getByRole('combobox', { name: 'Vault', exact: true });
    expect(await vault.inputValue()).toBe('');
    await hands.type('the first hundred');
    await option(beyond).waitFor();
    expect(await eyes.findBarriers(page)).toEqual([]);
    await hands.press('Enter');
    expect(await vault.inputValue()).toBe(beyond);
    await hands.to('Key');
    await hands.type('key bey');
    await option(key.name).waitFor();
    await hands.press('ArrowDown', 'ArrowUp', 'Enter');
    expect(await form.getByRole('combobox', { name: 'Key', exact: true }).inputValue()).toBe(key.name);
    await hands.to('Name');
    await hands.type('picked');
    await hands.press('Enter');
    await form.waitFor({ state: 'detached' });
    const { items } = await site.api.call<{ items: Endpoint[] }>('GET', '/api/endpoints');
    expect(items.find(({ name }) => name === 'picked')).toMatchObject({ vaultId: oldest.id, keyId: key.id });
  });

  test('takes the vault of a key that was found by its name', async () => {
    await page.goto('/endpoints');
    await hands.pressOn('Create endpoint…');
    const form = dialog('Create a key store endpoint');
    await choose(form, 'Key', `key ${beyond}`);
    const vault = form.getByRole('combobox', { name: 'Vault', exact: true });
    await until('the vault of the key', async () => ((await vault.inputValue()) === beyond ? true : undefined));
    await page.keyboard.press('Escape');
    await hands.pressOn('Discard');
    await form.waitFor({ state: 'detached' });
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
