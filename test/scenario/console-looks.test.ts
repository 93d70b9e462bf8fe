// How every page of the console looks and behaves before what a browser can show of it: both themes, narrow, zoomed, loading,
// empty, out of reach, denied, by keyboard alone. axe-core looks at each. Pictures land in test/output/console.
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ConsoleBrowser, chromiumPath, openConsoleBrowser } from '../support/console-browser.ts';
import { type ConsoleData, fillConsole } from '../support/console-data.ts';
import { type Site, startSite } from '../support/site.ts';

if (chromiumPath === null) console.log('skipped: no chromium on the PATH');

interface PageRow {
  /** Of its pictures. */
  readonly name: string;
  readonly path: string | ((data: ConsoleData) => string);
  readonly heading: RegExp | string;
  /** What it says while there is nothing; pages of one thing have none. */
  readonly empty?: RegExp | string;
  /** It shows the same to everybody who is signed in. */
  readonly open?: true;
  /** It shows what is known already: nothing is loaded. */
  readonly still?: true;
}

const all: readonly PageRow[] = [
  { name: 'overview', path: '/', heading: 'Overview' },
  { name: 'notifications', path: '/notifications', heading: 'Notifications' },
  { name: 'nodes', path: '/nodes', heading: 'Nodes' },
  { name: 'vaults', path: '/vaults', heading: 'Vaults', empty: 'No vault yet' },
  { name: 'keys', path: '/keys', heading: 'Keys', empty: 'No key yet' },
  { name: 'key', path: ({ keyId }) => `/keys/${keyId}`, heading: 'orders-2026' },
  { name: 'master-key', path: ({ masterKeyId }) => `/keys/${masterKeyId}`, heading: /ORACLE\.TDE/ },
  { name: 'groups', path: '/tde/groups', heading: 'TDE groups', empty: 'No group yet' },
  { name: 'applications', path: '/tde/applications', heading: 'TDE applications', empty: 'No application yet' },
  { name: 'application', path: ({ applicationId }) => `/tde/applications/${applicationId}`, heading: 'erp' },
  {
    name: 'application-runbooks',
    path: ({ applicationId }) => `/tde/applications/${applicationId}/runbooks?runbook=migrate&release=19c`,
    heading: 'Runbooks of erp',
  },
  {
    name: 'runbook-run',
    path: ({ applicationId, runId }) => `/tde/applications/${applicationId}/runbook-runs/${runId}`,
    heading: 'Rotate the master key',
  },
  { name: 'runbooks', path: '/runbooks', heading: 'Runbooks', empty: 'No application to follow one for', open: true },
  { name: 'endpoints', path: '/endpoints', heading: 'Key store endpoints', empty: 'No endpoint yet' },
  { name: 'endpoint', path: ({ endpointId }) => `/endpoints/${endpointId}`, heading: 'aws-eu-central-1' },
  {
    name: 'endpoint-diagnostics',
    path: ({ endpointId }) => `/endpoints/${endpointId}/diagnostics`,
    heading: 'Diagnostics of aws-eu-central-1',
  },
  {
    name: 'endpoint-setup',
    path: ({ endpointId }) => `/endpoints/${endpointId}/setup`,
    heading: 'Connect aws-eu-central-1',
  },
  {
    name: 'endpoint-credentials',
    path: ({ endpointId }) => `/endpoints/${endpointId}/credentials`,
    heading: 'Credentials of aws-eu-central-1',
  },
  {
    name: 'application-setup',
    path: ({ applicationId }) => `/tde/applications/${applicationId}/setup`,
    heading: 'Connect erp',
  },
  { name: 'diagnostics', path: '/diagnostics', heading: 'Diagnostics', empty: 'No endpoint to look at' },
  {
    name: 'external-key-stores',
    path: '/external-key-stores',
    heading: 'External key stores',
    empty: 'No external key store yet',
  },
  { name: 'requests', path: '/requests', heading: 'Request log', empty: 'No request yet' },
  { name: 'audit', path: '/audit', heading: 'Audit log' },
  { name: 'audit-verification', path: '/audit/verification', heading: 'Verification' },
  { name: 'audit-sinks', path: '/audit/sinks', heading: 'Sinks', empty: 'The log is kept here alone' },
  { name: 'roles', path: '/roles', heading: 'Roles', open: true },
  { name: 'tokens', path: '/tokens', heading: 'API tokens' },
  { name: 'users', path: '/users', heading: 'Users', empty: 'Nobody yet' },
  { name: 'sessions', path: '/sessions', heading: 'Sessions' },
  { name: 'profile', path: '/profile', heading: 'Profile', open: true, still: true },
  { name: 'tenants', path: '/tenants', heading: 'Tenants' },
  { name: 'approvals', path: '/approvals', heading: 'Approvals', empty: 'Nothing waits for anybody' },
  { name: 'snapshots', path: '/snapshots', heading: 'Snapshots', empty: 'No snapshot yet' },
  { name: 'settings', path: '/settings', heading: 'Settings' },
];

// Many pages in one test each: what one second is on an idle machine may be ten on a busy one.
/** `DKE_PAGES=vaults,key` looks at these alone: for whoever is at work on them. */
const wanted = process.env.DKE_PAGES?.split(',');
const pages = all.filter(({ name }) => wanted?.includes(name) ?? true);

describe.runIf(chromiumPath !== null)('a page of the console', { timeout: 900_000 }, () => {
  let site: Site;
  let data: ConsoleData;
  let eyes: ConsoleBrowser;
  let context: BrowserContext;
  let page: Page;

  const signIn = async (into: Page, token: string): Promise<void> => {
    await into.goto('/');
    await into.getByRole('button', { name: 'Use a token' }).click();
    await into.getByLabel('Administrator token').fill(token);
    await into.getByRole('button', { name: 'Sign in' }).click();
    await into.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  };
  const pathOf = ({ path }: PageRow): string => (typeof path === 'string' ? path : path(data));
  /** Opens a page and waits until nothing on it is loading. */
  const open = async (row: PageRow, on = page): Promise<void> => {
    await on.goto(pathOf(row));
    await on.getByRole('heading', { level: 1, name: row.heading }).waitFor();
    await settle(on);
  };
  const settle = async (on: Page): Promise<void> => {
    await on.waitForLoadState('networkidle');
    await on.getByRole('status', { name: 'Loading' }).first().waitFor({ state: 'detached' });
  };
  const expectNoBarrier = async (what: string, on = page, rules?: readonly string[]): Promise<void> => {
    expect.soft(await eyes.findBarriers(on, rules), what).toEqual([]);
  };
  const sideways = (on = page): Promise<number> =>
    on.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth');

  beforeAll(async () => {
    site = await startSite();
    eyes = await openConsoleBrowser(site.server.url, chromiumPath ?? '');
    [context, page] = await eyes.open();
  });
  afterAll(async () => {
    if (eyes?.failed())
      console.log(
        site.server
          .log()
          .split('\n')
          .filter((line) => line.includes('failed'))
          .join('\n'),
      );
    await eyes?.close();
    await site?.end();
  });

  test('lets people in without barriers, in both themes', async () => {
    await page.goto('/');
    await page.getByLabel('Password').waitFor();
    await expectNoBarrier('sign-in');
    await eyes.shoot('looks-sign-in', page);
    await page.emulateMedia({ colorScheme: 'dark' });
    await expectNoBarrier('sign-in, dark');
    await page.emulateMedia({ colorScheme: 'light' });
    await signIn(page, site.token);
  });

  test('teaches the next step while it is empty', async () => {
    for (const row of pages) {
      if (row.empty === undefined) continue;
      await open(row);
      await page.getByText(row.empty).waitFor();
      await expectNoBarrier(`${row.name}, empty`);
      await eyes.shoot(`empty-${row.name}`, page);
    }
  });

  test('is whole with content: both themes, 320 pixels, zoomed to 200 %', async () => {
    data = await fillConsole(site);
    for (const row of pages) {
      await open(row);
      await expectNoBarrier(row.name);
      await eyes.shoot(`light-${row.name}`, page);
      await page.emulateMedia({ colorScheme: 'dark' });
      // The theme changes colours and nothing else.
      await expectNoBarrier(`${row.name}, dark`, page, ['color-contrast']);
      await eyes.shoot(`dark-${row.name}`, page);
      await page.emulateMedia({ colorScheme: 'light' });
      await page.setViewportSize({ width: 320, height: 700 });
      expect.soft(await sideways(), `${row.name} scrolls sideways at 320 pixels`).toBe(0);
      await eyes.shoot(`narrow-${row.name}`, page);
      // 1280 pixels at 200 %.
      await page.setViewportSize({ width: 640, height: 430 });
      expect.soft(await sideways(), `${row.name} scrolls sideways at 200 %`).toBe(0);
      await page.setViewportSize({ width: 1280, height: 860 });
    }
    expect(eyes.faults).toEqual([]);
  });

  test('says that it loads, and that the service is out of reach', async () => {
    let way: 'through' | 'held' | 'refused' = 'through';
    let held: (() => Promise<void>)[] = [];
    await page.route(/\/api\/(?!session$)/, async (route) => {
      if (way === 'through') await route.continue();
      else if (way === 'refused') await route.abort('connectionrefused');
      else held.push(() => route.abort('connectionrefused'));
    });
    try {
      for (const row of pages) {
        if (row.still === true) continue;
        way = 'held';
        await page.goto(pathOf(row));
        await page.getByRole('heading', { level: 1 }).waitFor();
        await page.getByRole('status', { name: 'Loading' }).first().waitFor();
        way = 'refused';
        const waiting = held;
        held = [];
        // A request that its page has given up cannot be refused any more.
        for (const refuse of waiting) await refuse().catch(() => undefined);
        await page.getByText('The server cannot be reached').first().waitFor();
        await expectNoBarrier(`${row.name}, out of reach`);
        await eyes.shoot(`unreachable-${row.name}`, page);
        way = 'through';
        await page.getByRole('button', { name: 'Try again' }).first().click();
      }
    } finally {
      await page.unroute(/\/api\/(?!session$)/);
    }
    // The browser notes each refused connection, as it must.
    eyes.faults.splice(
      0,
      eyes.faults.length,
      ...eyes.faults.filter((fault) => !/CONNECTION_REFUSED|^failed:/.test(fault)),
    );
    expect(eyes.faults).toEqual([]);
  });

  test('names what is missing when the caller may not see it', async () => {
    const [other, opened] = await eyes.open();
    await signIn(opened, data.ownerToken);
    for (const row of pages) {
      if (row.open === true || row.name === 'overview' || typeof row.path !== 'string') continue;
      await opened.goto(row.path);
      await opened.getByRole('heading', { level: 1 }).waitFor();
      await opened.getByText('You may not do this').first().waitFor();
      await expectNoBarrier(`${row.name}, denied`, opened);
      await eyes.shoot(`denied-${row.name}`, opened);
    }
    await other.close();
    eyes.faults.splice(0, eyes.faults.length, ...eyes.faults.filter((fault) => !fault.includes('403')));
    expect(eyes.faults).toEqual([]);
  });

  test('is used by keyboard alone, down to the destruction of a master key', async () => {
    await page.goto(`/tde/applications/${data.applicationId}`);
    await page.getByText('ORACLE.TDE.HSM.MK.06B7').first().waitFor();
    await settle(page);
    const focusOn = async (label: RegExp | string, key = 'Tab'): Promise<void> => {
      for (let presses = 0; presses < 120; presses += 1) {
        const name = await page.evaluate<string>(
          `(() => { const e = document.activeElement; return e.getAttribute('aria-label') ?? (e.labels?.[0] ?? e).textContent ?? ''; })()`,
        );
        if (typeof label === 'string' ? name === label : label.test(name)) return;
        await page.keyboard.press(key);
      }
      throw new Error(`the keyboard does not reach ${label}`);
    };
    await page.keyboard.press('Tab');
    await focusOn('Skip to content');
    await page.keyboard.press('Enter');
    await focusOn(/Actions on master key ORACLE\.TDE\.HSM\.MK\.06B7/);
    await page.keyboard.press('Enter');
    await page.getByRole('menu').waitFor();
    await expectNoBarrier('an open menu');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: /^Destroy/ });
    await dialog.waitFor();
    await dialog.getByText('depend on it').waitFor();
    await expectNoBarrier('the destroy dialog');
    await focusOn(/Type the name/);
    await page.keyboard.type('ORACLE.TDE.HSM.MK.06B7A1D20C55E94F0ABF3C77D1E0A94522');
    await focusOn(/^API call/);
    await page.keyboard.press('Enter');
    await dialog.locator('[data-command]').waitFor();
    await eyes.shoot('destroy-by-keyboard', page);
    await focusOn('Destroy for good');
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    await page.getByText('Destroyed').first().waitFor();
    expect((await site.api.audit('kind=key.destroyed')).length).toBe(1);
  });

  test('has left nothing to complain of', async () => {
    expect(eyes.faults).toEqual([]);
    await context.close();
  });
});
