// The appearance and behaviour of every page of the console in all states: both themes, narrow,
// zoomed, loading, empty, out of reach, denied, by keyboard alone. axe-core checks each. Pictures
// land in test/output/console.
import { join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ConsoleBrowser, chromiumPath, openConsoleBrowser } from '../support/console-browser.ts';
import { type ConsoleData, fillConsole } from '../support/console-data.ts';
import { useKeyboard } from '../support/keyboard.ts';
import { type Site, startSite } from '../support/site.ts';
import { sizeOf } from '../support/tiers.ts';

if (chromiumPath === null) console.log('skipped: no chromium on the PATH');

type Filled = ConsoleData & { readonly userId: string };

interface PageRow {
  /** Names the page in failures, in its pictures and in DKE_PAGES. */
  readonly name: string;
  readonly path: string | ((data: Filled) => string);
  readonly heading: RegExp | string;
  /** The text of its empty state; pages of one resource have none. */
  readonly empty?: RegExp | string;
  /** The page shows the same to every user who is signed in: access is never denied. */
  readonly open?: true;
  /** The page shows only data that are already loaded: it needs no request that could fail. */
  readonly still?: true;
}

const all: readonly PageRow[] = [
  { name: 'overview', path: '/', heading: 'Overview' },
  { name: 'notifications', path: '/notifications', heading: 'Notifications' },
  { name: 'notification-targets', path: '/notifications/targets', heading: 'Notification targets' },
  { name: 'nodes', path: '/nodes', heading: 'Nodes' },
  { name: 'service', path: '/service', heading: 'Service state' },
  { name: 'jobs', path: '/service/jobs', heading: 'Scheduled jobs' },
  { name: 'service-keys', path: '/service/keys', heading: 'Keys of the service' },
  { name: 'setup', path: '/setup', heading: 'Set up this service' },
  { name: 'vaults', path: '/vaults', heading: 'Vaults', empty: 'No vaults yet' },
  { name: 'vault', path: ({ vaultId }) => `/vaults/${vaultId}`, heading: 'Payments' },
  { name: 'keys', path: '/keys', heading: 'Keys', empty: 'No keys yet' },
  { name: 'inventory', path: '/keys/export', heading: 'Inventory of keys' },
  { name: 'key', path: ({ keyId }) => `/keys/${keyId}`, heading: 'orders-2026' },
  { name: 'master-key', path: ({ masterKeyId }) => `/keys/${masterKeyId}`, heading: /ORACLE\.TDE/ },
  { name: 'groups', path: '/tde/groups', heading: 'TDE groups', empty: 'No groups yet' },
  { name: 'applications', path: '/tde/applications', heading: 'TDE applications', empty: 'No applications yet' },
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
  { name: 'runbooks', path: '/runbooks', heading: 'Runbooks', empty: 'No applications yet', open: true },
  { name: 'endpoints', path: '/endpoints', heading: 'Key store endpoints', empty: 'No endpoints yet' },
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
    name: 'endpoint-rules',
    path: ({ endpointId }) => `/endpoints/${endpointId}/rules`,
    heading: 'Rules of aws-eu-central-1',
  },
  {
    name: 'application-setup',
    path: ({ applicationId }) => `/tde/applications/${applicationId}/setup`,
    heading: 'Connect erp',
  },
  { name: 'diagnostics', path: '/diagnostics', heading: 'Diagnostics', empty: 'No endpoints to check' },
  {
    name: 'external-key-stores',
    path: '/external-key-stores',
    heading: 'External key stores',
    empty: 'No external key stores yet',
  },
  { name: 'requests', path: '/requests', heading: 'Request log', empty: 'No requests yet' },
  {
    name: 'request-verification',
    path: '/requests/verification',
    heading: 'Verification of the request log',
    open: true,
    still: true,
  },
  { name: 'audit', path: '/audit', heading: 'Audit log' },
  { name: 'audit-verification', path: '/audit/verification', heading: 'Verification' },
  { name: 'audit-sinks', path: '/audit/sinks', heading: 'Sinks', empty: 'Audit log is local only' },
  { name: 'roles', path: '/roles', heading: 'Roles', open: true },
  { name: 'tokens', path: '/tokens', heading: 'API tokens' },
  { name: 'reference', path: '/reference', heading: 'API reference', open: true },
  { name: 'users', path: '/users', heading: 'Users', empty: 'No users yet' },
  { name: 'user', path: ({ userId }) => `/users/${userId}`, heading: 'Ina Vogel' },
  { name: 'sessions', path: '/sessions', heading: 'Sessions' },
  { name: 'profile', path: '/profile', heading: 'Profile', open: true, still: true },
  { name: 'device', path: '/device', heading: 'Sign in a command', open: true, still: true },
  { name: 'tenants', path: '/tenants', heading: 'Tenants' },
  { name: 'approvals', path: '/approvals', heading: 'Approvals', empty: 'No pending approvals' },
  { name: 'snapshots', path: '/snapshots', heading: 'Snapshots', empty: 'No snapshots yet' },
  {
    name: 'snapshot-restore',
    path: ({ snapshotId }) => `/snapshots/${snapshotId}/restore`,
    heading: 'Restore a snapshot',
  },
  { name: 'settings', path: '/settings', heading: 'Settings' },
];

/**
 * The number of pages that are checked at once: while one waits for the server, others are drawn.
 */
const atOnce = 3;

// Many pages in one test each: what one second is on an idle machine may be ten on a busy one.
/** `DKE_PAGES=vaults,key` checks only these, while you work on them. */
const wanted = process.env.DKE_PAGES?.split(',');
const pages = all.filter(({ name }) => wanted?.includes(name) ?? true);

describe.runIf(chromiumPath !== null)('a page of the console', { timeout: 900_000 }, () => {
  let site: Site;
  let data: Filled;
  let eyes: ConsoleBrowser;
  let context: BrowserContext;
  let page: Page;
  /** The first is `page`. */
  const signedIn: Page[] = [];
  const shoot = (name: string, from: Page): Promise<void> => eyes.shoot(name, from);
  /** Expected messages of the browser after a fault that the test has caused. */
  const forget = (expected: RegExp): void => {
    eyes.faults.splice(0, eyes.faults.length, ...eyes.faults.filter((fault) => !expected.test(fault)));
  };
  /** Each row by whichever of the pages is free. */
  const eachRow = async (
    on: readonly Page[],
    rows: readonly PageRow[],
    look: (row: PageRow, on: Page) => Promise<void>,
  ): Promise<void> => {
    const waiting = [...rows];
    const take = async (from: Page): Promise<void> => {
      for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) {
        await look(row, from).catch((error: unknown) => {
          throw new Error(`${row?.name}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
        });
      }
    };
    await Promise.all(on.map(take));
  };

  const pathOf = ({ path }: PageRow): string => (typeof path === 'string' ? path : path(data));
  /**
   * Opens a page as a link of the console does, without loading the console again, and waits until
   * nothing on it is loading.
   */
  const open = async (row: PageRow, on: Page): Promise<void> => {
    await on.evaluate(`history.pushState({}, '', ${JSON.stringify(pathOf(row))})`);
    // The whole heading: the page before may have a longer one.
    await on.getByRole('heading', { level: 1, name: row.heading, exact: true }).waitFor();
    await eyes.settle(on);
  };
  /** The console as it is loaded at first. */
  const load = async (on: readonly Page[]): Promise<void> => {
    for (const each of on) {
      await each.goto('/');
      await eyes.settle(each);
    }
  };
  const expectNoBarrier = async (what: string, on = page, rules?: readonly string[]): Promise<void> => {
    expect.soft(await eyes.findBarriers(on, rules), what).toEqual([]);
  };
  /**
   * Empty, loading, out of reach and denied are drawn by one component each on every page: each Nth
   * page is checked in them (all of them in the long tier, or when single pages are asked for). The
   * dark theme is the same page in other colours: axe-core sees it on the same pages.
   */
  const showsStates = (row: PageRow): boolean =>
    wanted !== undefined || pages.indexOf(row) % sizeOf('console states') === 0;
  const sideways = (on: Page): Promise<number> =>
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
    await eyes.signIn(page, site.token);
    signedIn.push(page);
    while (signedIn.length < atOnce) signedIn.push(await eyes.another(context));
  });

  test('teaches the next step while it is empty', async () => {
    const empty = pages.filter((row) => row.empty !== undefined);
    await load(signedIn);
    await eachRow(signedIn, empty, async (row, on) => {
      await open(row, on);
      await on.getByText(row.empty ?? '').waitFor();
      if (showsStates(row)) await expectNoBarrier(`${row.name}, empty`, on);
      await shoot(`empty-${row.name}`, on);
    });
  });

  test('is whole with content: both themes, 320 pixels, zoomed to 200 %', async () => {
    const { user } = await site.api.call<{ readonly user: { readonly id: string } }>('POST', '/api/users', {
      ...{ name: 'ina', displayName: 'Ina Vogel', email: 'ina@example.com' },
      grants: [{ role: 'auditor', scope: null }],
    });
    data = { ...(await fillConsole(site)), userId: user.id };
    await site.stopServer();
    await site.startServer(`[erasure]\ngather_ms = 20\n[snapshots]\nschedule = "0 3 * * *"\nkeep_count = 14\n[[audit.sinks]]
name = "archive"\ntype = "file"\npath = ${JSON.stringify(join(site.folder, 'audit.ndjson'))}\n`);
    // Open pages have noticed that the server was unreachable.
    await load(signedIn);
    forget(/CONNECTION_REFUSED|^failed:/);
    await eachRow(signedIn, pages, async (row, on) => {
      await open(row, on);
      if (row.empty !== undefined)
        expect.soft(await on.getByText(row.empty).count(), `${row.name} is seen with content`).toBe(0);
      await expectNoBarrier(row.name, on);
      await shoot(`light-${row.name}`, on);
      await on.emulateMedia({ colorScheme: 'dark' });
      // The theme changes colours and nothing else.
      if (showsStates(row)) await expectNoBarrier(`${row.name}, dark`, on, ['color-contrast']);
      await shoot(`dark-${row.name}`, on);
      await on.emulateMedia({ colorScheme: 'light' });
      await on.setViewportSize({ width: 320, height: 700 });
      expect.soft(await sideways(on), `${row.name} scrolls sideways at 320 pixels`).toBe(0);
      await shoot(`narrow-${row.name}`, on);
      // 1280 pixels at 200 %.
      await on.setViewportSize({ width: 640, height: 430 });
      expect.soft(await sideways(on), `${row.name} scrolls sideways at 200 %`).toBe(0);
      await on.setViewportSize({ width: 1280, height: 860 });
    });
    expect(eyes.faults).toEqual([]);
  });

  test('says that it loads, and that the service is out of reach', async () => {
    const questions = /\/api\/(?!session$)/;
    const lookAt = async (row: PageRow, on: Page): Promise<void> => {
      let held: (() => Promise<void>)[] | null = [];
      await on.route(questions, async (route) => {
        const refuse = (): Promise<void> => route.abort('connectionrefused');
        if (held === null) await refuse();
        else held.push(refuse);
      });
      try {
        await on.goto(pathOf(row));
        await on.getByRole('heading', { level: 1 }).waitFor();
        await on.getByRole('status', { name: 'Loading' }).first().waitFor();
        const waiting: readonly (() => Promise<void>)[] = held;
        held = null;
        // A request that its page has given up can no longer be refused.
        for (const refuse of waiting) await refuse().catch(() => undefined);
        await on.getByText('The server cannot be reached').first().waitFor();
        await expectNoBarrier(`${row.name}, out of reach`, on);
        await shoot(`unreachable-${row.name}`, on);
        // Checked while the server is unreachable: a page that polls has no such button soon after.
        await on.getByRole('button', { name: 'Try again' }).first().waitFor();
      } finally {
        // The page polls: its last refusals are reported before this test ends, not in the next
        // one.
        await on.goto('about:blank');
        await on.unrouteAll({ behavior: 'wait' });
      }
    };
    await eachRow(
      signedIn,
      pages.filter((row) => row.still !== true && showsStates(row)),
      lookAt,
    );
    // The browser notes each refused connection, as it must.
    forget(/CONNECTION_REFUSED|^failed:/);
    expect(eyes.faults).toEqual([]);
  });

  test('names what is missing when the caller may not see it', async () => {
    const [other, opened] = await eyes.open();
    await eyes.signIn(opened, data.ownerToken);
    const others = [opened];
    while (others.length < atOnce) others.push(await eyes.another(other));
    const closed = pages.filter((row) => row.open !== true && row.name !== 'overview' && showsStates(row));
    await eachRow(others, closed, async (row, on) => {
      await on.goto(pathOf(row));
      await on.getByRole('heading', { level: 1 }).waitFor();
      await on.getByText('Permission denied').first().waitFor();
      await expectNoBarrier(`${row.name}, denied`, on);
      await shoot(`denied-${row.name}`, on);
    });
    await other.close();
    forget(/403/);
    expect(eyes.faults).toEqual([]);
  });

  test('is used by keyboard alone, down to the destruction of a master key', async () => {
    const hands = useKeyboard(page);
    const opener = /Actions on master key ORACLE\.TDE\.HSM\.MK\.06B7/;
    const dialog = page.getByRole('dialog', { name: /^Destroy/ });
    const openDialog = async (): Promise<void> => {
      await hands.press('Enter');
      await page.getByRole('menu').waitFor();
      // The menu takes the focus when it is drawn.
      await expect.poll(() => hands.focused()).toBe('Blast radius…');
      await hands.press('ArrowDown');
      await expect.poll(() => hands.focused()).toBe('Destroy…');
      await hands.press('Enter');
      await dialog.waitFor();
      await dialog.getByText('depend on it').waitFor();
    };
    await page.goto(`/tde/applications/${data.applicationId}`);
    await page.getByText('ORACLE.TDE.HSM.MK.06B7').first().waitFor();
    await eyes.settle(page);
    await hands.press('Tab');
    await hands.to('Skip to content');
    await hands.press('Enter');
    await hands.to(opener);
    await hands.press('Enter');
    await page.getByRole('menu').waitFor();
    await expectNoBarrier('an open menu');
    await hands.press('Escape');
    await page.getByRole('menu').waitFor({ state: 'detached' });
    await expect.poll(() => hands.focused()).toMatch(opener);
    await openDialog();
    await expectNoBarrier('the destroy dialog');
    // Half-way it is thought better of: nothing has happened, and the focus is where it was.
    await hands.to(/Type the name/);
    await hands.type('ORACLE.TDE');
    await hands.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await expect.poll(() => hands.focused()).toMatch(opener);
    const path = `/api/tde/applications/${data.applicationId}/master-keys`;
    const stateOf = async (): Promise<string | undefined> =>
      (await site.api.call<{ items: { name: string; state: string }[] }>('GET', path)).items.find(({ name }) =>
        name.startsWith('ORACLE.TDE.HSM.MK.06B7'),
      )?.state;
    expect(await stateOf()).toBe('active');

    await openDialog();
    await hands.to(/Type the name/);
    await hands.type('ORACLE.TDE.HSM.MK.06B7A1D20C55E94F0ABF3C77D1E0A94522');
    await hands.to(/^API call/);
    await hands.press('Enter');
    await dialog.locator('[data-command]').waitFor();
    await eyes.shoot('destroy-by-keyboard', page);
    await hands.to('Destroy master key');
    await hands.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    await expect.poll(stateOf).toBe('destroyed');
    await expect.poll(() => hands.focused()).toMatch(opener);
    expect(hands.faults).toEqual([]);
  });

  test('has left nothing to complain of', async () => {
    expect(eyes.faults).toEqual([]);
    await context.close();
  });
});
