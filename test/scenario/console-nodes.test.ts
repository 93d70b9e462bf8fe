// The nodes of a service at the console, in a real browser: two real servers on one PostgreSQL, one
// of which dies and restarts.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ConsoleBrowser, chromiumPath, openConsoleBrowser } from '../support/console-browser.ts';
import { startFleet, type TestFleet, untilActive } from '../support/fleet.ts';

if (chromiumPath === null) console.log('skipped: no chromium on the PATH');

describe.runIf(chromiumPath !== null)('nodes at the console', () => {
  let fleet: TestFleet;
  let eyes: ConsoleBrowser;
  let page: Page;
  const rowOf = (name: string) =>
    page.getByRole('row').filter({ has: page.getByRole('cell', { name: new RegExp(`^${name}`) }) });
  beforeAll(async () => {
    fleet = await startFleet(['north', 'south']);
    const north = fleet.member('north');
    await untilActive(fleet, north, ['north', 'south']);
    eyes = await openConsoleBrowser(north.server.url, chromiumPath ?? '');
    [, page] = await eyes.open();
    await eyes.signIn(page, fleet.token);
  });
  afterAll(async () => {
    await eyes?.close();
    await fleet?.end();
  });

  test('shows which run, and which of them does the work of one for all', async () => {
    await page.goto('/nodes');
    for (const name of ['north', 'south']) await rowOf(name).getByText('Running', { exact: true }).waitFor();
    await page.getByText('Audit checkpoints').waitFor();
    await eyes.lookClosely('nodes-two', page);
    await page.goto('/');
    const nodes = page.getByRole('table', { name: 'Nodes' });
    for (const name of ['north', 'south'])
      await nodes.getByRole('row', { name }).getByText('Running', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'View all nodes' }).click();
    await page.getByRole('heading', { level: 1, name: 'Nodes' }).waitFor();
  });

  test('shows on its own that one is no longer connected, and that it is back', async () => {
    const south = fleet.member('south');
    await south.stop('SIGKILL');
    await rowOf('south').getByText('Offline', { exact: true }).waitFor();
    await page.getByText('south is offline').waitFor();
    await eyes.lookClosely('nodes-silent', page);
    await south.start();
    await rowOf('south').getByText('Running', { exact: true }).waitFor();
    await page.getByText('south is offline').waitFor({ state: 'detached' });
    expect(eyes.faults).toEqual([]);
  });
});
