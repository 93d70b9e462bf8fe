// The console's first page in Chromium with nothing cached: from the request of the address to the
// drawn sign-in form, before the built server, next to a bare page of the same weight that
// node:https serves from memory. And what the page's script weighs, compressed, before any of the
// chunks that later pages load.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { chromiumFlags, chromiumPath } from '../support/console-browser.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { median, ratio } from './statistics.ts';
import { type Verdict, verdictText } from './verdict.ts';

const goalMs = 1_000;
const scriptGoalKb = 200;
const rounds = 9;

export interface FirstPageFigure {
  /** Median milliseconds from navigation to the drawn form. */
  readonly oursMs: number;
  readonly bareMs: number;
  readonly times: number;
  /** Bytes as they are sent, compressed. */
  readonly scriptBytes: number;
  readonly allBytes: number;
  readonly goals: readonly Verdict[];
}

interface Seen {
  readonly drawnMs: number;
  readonly scriptBytes: number;
  readonly allBytes: number;
}

/** In the page: the time when the element exists and has been drawn. */
const watch = (selector: string): string => `
  window.drawn = new Promise((resolve) => {
    const look = () => {
      if (document.querySelector(${JSON.stringify(selector)}) === null) return false;
      requestAnimationFrame(() => { const channel = new MessageChannel(); channel.port1.onmessage = () => resolve(performance.now()); channel.port2.postMessage(0); });
      return true;
    };
    const observer = new MutationObserver(() => { if (look()) observer.disconnect(); });
    observer.observe(document, { childList: true, subtree: true });
  });`;

const openCold = async (browser: Browser, url: string, selector: string): Promise<Seen> => {
  // A context of its own has no cache and no connection of another.
  const context = await browser.newContext({ ignoreHTTPSErrors: true, viewport: { width: 1280, height: 860 } });
  try {
    await context.addInitScript(watch(selector));
    const page = await context.newPage();
    await page.goto(url);
    return await page.evaluate<Seen>(`window.drawn.then((drawnMs) => {
      const loaded = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
      const weigh = (entries) => entries.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0);
      return { drawnMs, scriptBytes: weigh(loaded.filter(({ name }) => name.endsWith('.js'))), allBytes: weigh(loaded) };
    })`);
  } finally {
    await context.close();
  }
};

/** One page and one script that together weigh so much, and that put one field into the page. */
const startBare = async (server: ServerProcess, bytes: number): Promise<{ url: string; close(): void }> => {
  const page =
    '<!doctype html><html lang="en"><title>bare</title><body><script src="/script.js"></script></body></html>';
  const work = "document.body.append(Object.assign(document.createElement('input'), { type: 'password' }));";
  // Random text, because it does not compress.
  const filling = randomBytes(bytes)
    .toString('base64')
    .slice(0, Math.max(0, bytes - page.length - work.length - 4));
  const script = Buffer.from(`/*${filling}*/${work}`);
  const [key, cert] = ['tls.key', 'tls.crt'].map((name) => readFileSync(join(server.dataDirectory, name)));
  const listener = createServer({ key, cert }, ({ url }, answer) => {
    const isScript = url === '/script.js';
    answer.setHeader('content-type', isScript ? 'text/javascript' : 'text/html; charset=utf-8');
    answer.end(isScript ? script : page);
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  return {
    url: `https://127.0.0.1:${(listener.address() as AddressInfo).port}/`,
    close: () => {
      listener.close();
      listener.closeAllConnections();
    },
  };
};

/** Undefined: there is no Chromium here. */
export const measureFirstPage = async (server: ServerProcess): Promise<FirstPageFigure | undefined> => {
  if (chromiumPath === null) return undefined;
  const browser = await chromium.launch({ executablePath: chromiumPath, args: [...chromiumFlags] });
  const form = 'input[type=password]';
  try {
    // Not counted: the browser's own first page, and the measurement of the weight for the bare
    // page.
    const first = await openCold(browser, server.url, form);
    const bare = await startBare(server, first.allBytes);
    try {
      await openCold(browser, bare.url, form);
      const ours: number[] = [];
      const theirs: number[] = [];
      for (let round = 0; round < rounds; round += 1) {
        ours.push((await openCold(browser, server.url, form)).drawnMs);
        theirs.push((await openCold(browser, bare.url, form)).drawnMs);
      }
      const [oursMs, bareMs] = [median(ours), median(theirs)];
      const scriptKb = first.scriptBytes / 1000;
      return {
        oursMs,
        bareMs,
        times: oursMs / bareMs,
        scriptBytes: first.scriptBytes,
        allBytes: first.allBytes,
        goals: [
          { wanted: `below ${goalMs} ms`, measured: `${oursMs.toFixed(0)} ms`, met: oursMs < goalMs },
          {
            wanted: `script below ${scriptGoalKb} kB compressed`,
            measured: `${scriptKb.toFixed(0)} kB`,
            met: scriptKb < scriptGoalKb,
          },
        ],
      };
    } finally {
      bare.close();
    }
  } finally {
    await browser.close();
  }
};

export const firstPageText = ({ oursMs, bareMs, times, allBytes, goals }: FirstPageFigure): string =>
  [
    `drawn after ${oursMs.toFixed(0)} ms; a bare page of the same ${(allBytes / 1000).toFixed(0)} kB after ${bareMs.toFixed(0)} ms: ${ratio(times)}`,
    ...goals.map(verdictText),
  ].join('\n');

if (import.meta.main) {
  const program = [join(import.meta.dirname, '../../dist/server/cli/main.js'), 'server'];
  const server = await startServerProcess({ program });
  try {
    const figure = await measureFirstPage(server);
    console.log(figure === undefined ? 'no chromium on the PATH' : firstPageText(figure));
  } finally {
    await server.remove();
  }
}
