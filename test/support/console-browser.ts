// Debian's chromium before the console of a server process, watched: what a page must never do is written down as a fault. Also the
// look of a page (axe-core, sideways scrolling, zoom) and its screenshots, which land in test/output/console.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

export const outputFolder = resolve(import.meta.dirname, '../output/console');

/** Null: there is none. */
export const chromiumPath: string | null = (() => {
  try {
    return execFileSync('sh', ['-c', 'command -v chromium || command -v google-chrome'], { encoding: 'utf8' }).trim();
  } catch {
    return null;
  }
})();

const flags = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly help: string;
    readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
  }[];
}

export interface ConsoleBrowser {
  readonly browser: Browser;
  /** What should not have happened in any page: errors, refusals of the content security policy, other hosts, faults of the server. */
  readonly faults: string[];
  /** Whether the server answered that it had failed. */
  failed(): boolean;
  /** A context and its first page: light and 1280 pixels wide unless told otherwise. */
  open(options?: BrowserContextOptions): Promise<[BrowserContext, Page]>;
  shoot(name: string, page: Page): Promise<void>;
  /** What axe-core finds in the page as it is shown, one text a finding; by all its rules, or these. */
  findBarriers(page: Page, rules?: readonly string[]): Promise<readonly string[]>;
  close(): Promise<void>;
}

export const openConsoleBrowser = async (url: string, executablePath: string): Promise<ConsoleBrowser> => {
  mkdirSync(outputFolder, { recursive: true });
  const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  const browser = await chromium.launch({ executablePath, args: flags });
  const faults: string[] = [];
  let failed = false;
  const { origin } = new URL(url);

  const watch = (page: Page): void => {
    page.on('console', (message) => {
      // The question whether somebody is signed in is answered with 401 until somebody is: the browser notes that.
      const asked = message.location().url.endsWith('/api/session') && message.text().includes('401');
      if (['error', 'warning'].includes(message.type()) && !asked) faults.push(`console: ${message.text()}`);
    });
    page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
    page.on('requestfailed', (request) => {
      // A page that is left gives up what it was still asking for.
      if (request.failure()?.errorText !== 'net::ERR_ABORTED') faults.push(`failed: ${request.url()}`);
    });
    page.on('request', (request) => {
      const { protocol, origin: asked } = new URL(request.url());
      if (protocol !== 'blob:' && protocol !== 'data:' && asked !== origin)
        faults.push(`another host: ${request.url()}`);
    });
    page.on('response', (response) => {
      if (response.status() < 500) return;
      failed = true;
      faults.push(`${response.status()}: ${response.url()}`);
    });
  };

  return {
    browser,
    faults,
    failed: () => failed,
    open: async (options = {}) => {
      const context = await browser.newContext({
        baseURL: url,
        // The certificate is the server's own.
        ignoreHTTPSErrors: true,
        reducedMotion: 'reduce',
        colorScheme: 'light',
        viewport: { width: 1280, height: 860 },
        ...options,
      });
      context.setDefaultTimeout(15_000);
      await context.addInitScript(`
        document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
          console.error('content security policy: ' + violatedDirective + ' ' + blockedURI);
        });
      `);
      const page = await context.newPage();
      watch(page);
      return [context, page];
    },
    shoot: async (name, page) => {
      await page.screenshot({ path: join(outputFolder, `${name}.png`), fullPage: true });
    },
    findBarriers: async (page, rules) => {
      if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(axe);
      // A menu that is open hangs at the end of the page, outside of its landmarks.
      const { violations } = await page.evaluate<AxeResult>(
        `axe.run(document, { resultTypes: ['violations'], runOnly: ${JSON.stringify(rules ?? ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'])},
          rules: { region: { enabled: document.querySelector('[role=menu]') === null } } })`,
      );
      return violations.flatMap(({ id, help, nodes }) =>
        nodes.slice(0, 3).map(({ html, failureSummary }) => `${id}: ${help}: ${html.slice(0, 200)} ${failureSummary}`),
      );
    },
    close: () => browser.close(),
  };
};
