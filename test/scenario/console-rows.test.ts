// Long lists at the console (how many rows: test/support/tiers.ts): they scroll to the very end,
// only the rows near the window are in the page, and the memory of the page stays within bounds.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ConsoleBrowser, chromiumPath, openConsoleBrowser } from '../support/console-browser.ts';
import { administrator, openTestService } from '../support/open-service.ts';
import { type Site, startSite } from '../support/site.ts';
import { queryStored } from '../support/test-store.ts';
import { sizeOf } from '../support/tiers.ts';

if (chromiumPath === null) console.log('skipped: no chromium on the PATH');

const many = sizeOf('console rows');
/** For a page that has read the whole list. */
const mostBytesARow = 4_000;
const mostRowsInPage = 150;
/** The browser glides over a long list, and a busy machine draws late. */
const patient = { interval: 20 };

/**
 * General-purpose keys, created by the service itself; each is one record of the audit log.
 * Concurrent creations share a commit.
 */
const makeKeys = async (folder: string): Promise<void> => {
  const opened = await openTestService({ folder, toml: '[memory]\nallow_unlocked = true\n' });
  try {
    const { id: vaultId } = await opened.operations.vaults.create(administrator, { name: 'many' });
    const lanes = 200;
    for (let at = 0; at < many; at += lanes)
      await Promise.all(
        Array.from({ length: lanes }, (_, lane) =>
          opened.operations.keys.create(administrator, { name: `key ${at + lane}`, vaultId }),
        ),
      );
  } finally {
    await opened.stop();
  }
};

describe.runIf(chromiumPath !== null)('a long list', { timeout: 1_800_000 }, () => {
  let folder: string;
  let site: Site;
  let eyes: ConsoleBrowser;
  let page: Page;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'dke-rows-'));
    site = await startSite({ folder });
    await site.stopServer();
    await queryStored(
      site.folder,
      `insert into request_log (at, operation, status, request_id, duration_ms, read_ms, auth_ms, crypto_ms)
       with recursive n (i) as (select 0 union all select i + 1 from n where i < ${many - 1})
       select ${Date.now()} - (${many} - i) * 100, 'health', 200, 'request-' || i, 1, 0.2, 0.3, 0.5 from n`,
    );
    await site.startServer();
    eyes = await openConsoleBrowser(site.server.url, chromiumPath ?? '');
    [, page] = await eyes.open();
    await eyes.signIn(page, site.token);
  }, 900_000);
  afterAll(async () => {
    await eyes?.close();
    await site?.end();
    rmSync(folder, { recursive: true, force: true });
  });

  const status = () => page.getByRole('status').filter({ hasText: 'shown' });
  /**
   * The number of rows shown, and whether there are more. Read from one text, because the list
   * loads more in the meantime.
   */
  const progress = async (): Promise<{ readonly count: number; readonly more: boolean }> => {
    const text = (await status().textContent()) ?? '';
    const [, shown = '0'] = /^(?:1–)?([\d,]+)/.exec(text) ?? [];
    return { count: Number(shown.replaceAll(',', '')), more: text.includes('more available') };
  };
  const shown = async (): Promise<number> => (await progress()).count;
  /** Bytes of the page's own objects after a garbage collection. */
  const heap = async (): Promise<number> => {
    const session = await page.context().newCDPSession(page);
    await session.send('HeapProfiler.enable');
    await session.send('HeapProfiler.collectGarbage');
    const { usedSize } = await session.send('Runtime.getHeapUsage');
    await session.detach();
    return usedSize;
  };
  /** A key that is held: rows that were drawn in the meantime have moved the end. */
  const after = (key: 'End' | 'Home', look: () => Promise<number>) => async (): Promise<number> => {
    await page.keyboard.press(key);
    return look();
  };
  /**
   * Scrolls to the end of the list, like a user who keeps the End key pressed. Returns the number
   * of rows.
   */
  const toTheEnd = async (): Promise<number> => {
    await status().waitFor();
    const more = page.getByRole('button', { name: 'Show more' });
    for (let before = await progress(); before.more; before = await progress()) {
      // "Show more" loads the second page; then the list loads more automatically.
      if (before.count < 100) await more.click();
      await expect.poll(after('End', shown), patient).toBeGreaterThan(before.count);
      expect(await page.getByRole('row').count()).toBeLessThan(mostRowsInPage);
    }
    return shown();
  };
  const firstIndex = async (): Promise<number> =>
    Number(await page.locator('[aria-rowindex]').first().getAttribute('aria-rowindex'));
  const lastIndex = async (): Promise<number> =>
    Number(await page.locator('[aria-rowindex]').last().getAttribute('aria-rowindex'));

  /** The last row's number once the window stands at the end and nothing moves, else 0. */
  const endReached = async (): Promise<number> =>
    (await page.evaluate<boolean>(
      'Math.ceil(window.scrollY + window.innerHeight) >= document.documentElement.scrollHeight',
    ))
      ? lastIndex()
      : 0;

  /** Scrolls all of a list, and back. */
  const scroll = async (path: string, least: number): Promise<void> => {
    await page.goto(path);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await eyes.settle(page);
    const before = await heap();
    const count = await toTheEnd();
    expect(count).toBeGreaterThanOrEqual(least);
    await expect.poll(after('End', lastIndex), patient).toBe(count + 1);
    expect(Number(await page.getByRole('table').getAttribute('aria-rowcount'))).toBe(count + 1);
    const grown = (await heap()) - before;
    console.log(
      `${path}: ${count} rows, ${(grown / 1_048_576).toFixed(0)} MiB more, ${Math.round(grown / count)} bytes a row`,
    );
    expect(grown / count).toBeLessThan(mostBytesARow);
    await expect.poll(after('Home', firstIndex), patient).toBe(2);
  };

  test('of requests is read to its end by keyboard, with few rows in the page', async () => {
    await scroll('/requests', many);
    await expect.poll(after('End', endReached), patient).toBe(many + 1);
    const last = page.locator(`[aria-rowindex="${many + 1}"]`).getByRole('button', { name: 'Details' });
    await last.focus();
    const focused = `document.activeElement?.closest('[aria-rowindex]')?.getAttribute('aria-rowindex')`;
    await expect.poll(() => page.evaluate(focused), patient).toBe(String(many + 1));
    await page.keyboard.press('Enter');
    await page.getByText('Authenticating', { exact: true }).waitFor();
  });

  test('of keys, and of records of the audit log, too', async () => {
    await site.stopServer();
    await makeKeys(folder);
    await site.startServer();
    await scroll('/keys', many);
    await scroll('/audit', many);
  });

  test('has left nothing to complain of', () => {
    // The server was stopped in the meantime.
    expect(eyes.faults.filter((fault) => !/CONNECTION_REFUSED|^failed:/.test(fault))).toEqual([]);
  });
});
