// An endpoint's rules and diagnostics at the console, in a real browser: a request is tried against
// the rules that hold and against a draft, the recorded ones show different decisions, the draft is
// applied; and a run of the diagnostics is shown while it runs.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Endpoint } from '../../server/contract/api/endpoints-routes.ts';
import { type ConsoleBrowser, chromiumPath, openConsoleBrowser } from '../support/console-browser.ts';
import { type ConsoleData, fillConsole } from '../support/console-data.ts';
import { type Site, startSite } from '../support/site.ts';

if (chromiumPath === null) console.log('skipped: no chromium on the PATH');

describe.runIf(chromiumPath !== null)('an endpoint at the console', () => {
  let site: Site;
  let data: ConsoleData;
  let eyes: ConsoleBrowser;
  let page: Page;
  beforeAll(async () => {
    site = await startSite();
    data = await fillConsole(site);
    eyes = await openConsoleBrowser(site.server.url, chromiumPath ?? '');
    [, page] = await eyes.open();
    await eyes.signIn(page, site.token);
  });
  afterAll(async () => {
    await eyes?.close();
    await site?.end();
  });
  const rules = async (): Promise<readonly string[]> =>
    (await site.api.call<Endpoint>('GET', `/api/endpoints/${data.endpointId}`)).settings.rules.map(({ name }) => name);

  test('its rules are tried before they hold', async () => {
    await page.goto(`/endpoints/${data.endpointId}/rules`);
    await page.getByLabel('Principal').fill('arn:aws:iam::111122223333:role/billing-batch');
    await page.getByLabel('Operation').fill('Encrypt');
    await page.getByRole('button', { name: 'Test request' }).click();
    const answer = page.getByRole('status').filter({ hasText: 'AccessDeniedException' });
    await answer.getByText('no batch that encrypts').waitFor();
    await answer.getByText('not through lambda').waitFor();
    const batch = page.getByRole('row').filter({ hasText: 'billing-batch' });
    await batch.getByText('deny', { exact: true }).waitFor();
    expect(await eyes.findBarriers(page)).toEqual([]);

    await page.getByRole('button', { name: 'Edit a draft…' }).click();
    const draft = page.getByLabel('Draft');
    await draft.fill('[{ "name": "no reports" ');
    await page.getByText('This is not JSON').waitFor();
    expect(await page.getByRole('button', { name: 'Apply rules…' }).isDisabled()).toBe(true);
    const only = { name: 'no reports', effect: 'deny', when: { principal: ['*assumed-role/reports/*'] } };
    await draft.fill(JSON.stringify([only]));
    await batch.getByText('allow', { exact: true }).waitFor();
    await batch.getByText('now refused').waitFor();
    // Eight of the batch would be let through, eight of the reports refused.
    await page.getByText('16 recorded requests would be decided differently').waitFor();
    await page.getByRole('button', { name: 'Test request' }).click();
    await page.getByText('The active rules refuse it, by no batch that encrypts.').waitFor();
    expect(await eyes.findBarriers(page)).toEqual([]);
    await eyes.shoot('rules-draft', page);
    expect(await rules()).toHaveLength(4);

    await page.getByRole('button', { name: 'Apply rules…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Apply rules', exact: true }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('heading', { name: 'Active rules' }).waitFor();
    expect(await rules()).toEqual(['no reports']);
  });

  test('a run of its diagnostics is seen while it runs, and kept', async () => {
    await page.goto(`/endpoints/${data.endpointId}/diagnostics`);
    await page.getByText('Start here').waitFor();
    // The run's answer reaches the page line by line, each when it is let go: a run may be over
    // sooner than a page draws.
    await page.evaluate(`
      const ask = window.fetch;
      let free = 0;
      let wake = () => undefined;
      window.letGo = (lines) => { free += lines; wake(); };
      window.fetch = async (...call) => {
        const answer = await ask(...call);
        if (!answer.url.endsWith('/diagnostics/follow')) return answer;
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        let text = '';
        let ended = false;
        const lines = new ReadableStream({
          pull: async (into) => {
            while (!ended && !text.includes('\\n')) {
              const { value = '', done } = await reader.read();
              text += value;
              ended = done;
            }
            if (text === '') return into.close();
            while (free === 0) await new Promise((resolve) => { wake = resolve; });
            free -= 1;
            const end = text.indexOf('\\n') + 1 || text.length;
            into.enqueue(new TextEncoder().encode(text.slice(0, end)));
            text = text.slice(end);
          },
        });
        return new Response(lines, { status: answer.status, headers: answer.headers });
      };
    `);
    const letGo = (lines: string) => page.evaluate(`window.letGo(${lines})`);
    await page.getByRole('button', { name: 'Run now' }).click();
    const status = page.getByRole('status').filter({ has: page.getByRole('progressbar') });
    await status.getByText('Starting…').waitFor();
    // What is planned, and the first result; then four more; then all that there are.
    await letGo('2');
    await status.getByText(/^1 of \d+ checks completed$/).waitFor();
    expect(await page.getByRole('progressbar').getAttribute('value')).toBe('1');
    expect(await page.locator('[aria-current=step]').count()).toBe(1);
    await letGo('4');
    await status.getByText(/^5 of \d+ checks completed$/).waitFor();
    await letGo('Infinity');
    await page.getByRole('heading', { name: 'Results' }).waitFor();
    await page.getByRole('row').nth(2).waitFor();
    const path = `/api/endpoints/${data.endpointId}/diagnostics`;
    expect((await site.api.call<{ readonly items: readonly object[] }>('GET', path)).items).toHaveLength(2);
    expect(await eyes.findBarriers(page)).toEqual([]);
    expect(eyes.faults).toEqual([]);
  });
});
