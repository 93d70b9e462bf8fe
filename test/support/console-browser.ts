// Debian's chromium before the console of a server process, watched: what a page must never do is
// written down as a fault. Also the look of a page (axe-core, sideways scrolling, zoom) and its
// screenshots, which land in test/output/console.
import { execFileSync } from 'node:child_process';
import { createHash, X509Certificate } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Locator,
  type Page,
  type Request,
} from 'playwright-core';
import { expect } from 'vitest';
import { sizeOf } from './tiers.ts';
import { tourPictures } from './tour-pictures.ts';

export const outputFolder = resolve(import.meta.dirname, '../output/console');

/**
 * `DKE_PICTURES=all` takes a picture of every state; otherwise only those of docs/tour.md are
 * taken.
 */
const allPictures = process.env.DKE_PICTURES === 'all';

/** Null: there is none. */
export const chromiumPath: string | null = (() => {
  try {
    return execFileSync('sh', ['-c', 'command -v chromium || command -v google-chrome'], { encoding: 'utf8' }).trim();
  } catch {
    return null;
  }
})();

/** The first secret that is shown masked: revealed, and read. */
export const revealedSecret = async (within: Page | Locator): Promise<string> => {
  await within
    .getByRole('button', { name: /^Reveal / })
    .first()
    .click();
  return ((await within.locator('[data-secret]').first().textContent()) ?? '').trim();
};

/** Chooses in a field that finds resources by their names. */
export const choose = async (within: Page | Locator, label: string, text: string): Promise<void> => {
  await within.getByRole('combobox', { name: label, exact: true }).fill(text);
  await within.getByRole('option', { name: text, exact: true }).click();
};

const ofTour = new Set(tourPictures());

export const chromiumFlags = [
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
  /**
   * What should not have happened in any page: errors, refusals of the content security policy,
   * other hosts, faults of the server.
   */
  readonly faults: string[];
  /** Whether the server answered that it had failed. */
  failed(): boolean;
  /** A context and its first page: light and 1280 pixels wide by default. */
  open(options?: BrowserContextOptions): Promise<[BrowserContext, Page]>;
  /** One more page of a context, signed in as its others are. */
  another(context: BrowserContext): Promise<Page>;
  /** Waits until nothing on the page is loading: no open request, and no loading indicator. */
  settle(page: Page): Promise<void>;
  /** Signs in with an administrator token, and waits for the requested page. */
  signIn(page: Page, token: string, path?: string): Promise<void>;
  shoot(name: string, page: Page): Promise<void>;
  /**
   * axe-core; at 320 and 640 pixels nothing scrolls sideways; a picture, and of each of these with
   * `allPictures`. The contrast of the dark theme on each Nth page that is checked so (tiers.ts):
   * themes change colours and nothing else, and all pages have the same ones.
   */
  lookClosely(name: string, page: Page): Promise<void>;
  /** The violations that axe-core finds in the page, as texts; by all its rules, or these. */
  findBarriers(page: Page, rules?: readonly string[]): Promise<readonly string[]>;
  close(): Promise<void>;
}

export interface ConsoleBrowserOptions {
  /** Certificates, PEM, that the browser trusts: a page with an untrusted one has no passkeys. */
  readonly trusted?: readonly string[];
  /** Other hosts that a page may lead to; what their own pages do is not checked. */
  readonly alsoAt?: readonly string[];
}

const keyHash = (certificate: string): string =>
  createHash('sha256')
    .update(new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64');

/** Long enough for a busy machine; only an event that never occurs reaches it. */
const patienceMs = 300_000;

const browsers = new Map<string, Promise<Browser>>();
/**
 * One browser for all files of a worker, which ends with it: a fresh context has nothing of an
 * earlier one.
 */
const browserFor = (executablePath: string, flags: readonly string[]): Promise<Browser> => {
  const key = flags.join(' ');
  const known = browsers.get(key);
  if (known !== undefined) return known;
  const launched = chromium.launch({ executablePath, args: [...chromiumFlags, ...flags], timeout: patienceMs });
  browsers.set(key, launched);
  launched.then(
    (browser) => browser.once('disconnected', () => browsers.delete(key)),
    () => browsers.delete(key),
  );
  return launched;
};

export const openConsoleBrowser = async (
  url: string,
  executablePath: string,
  { trusted = [], alsoAt = [] }: ConsoleBrowserOptions = {},
): Promise<ConsoleBrowser> => {
  mkdirSync(outputFolder, { recursive: true });
  const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  const trust = trusted.length === 0 ? [] : [`--ignore-certificate-errors-spki-list=${trusted.map(keyHash).join(',')}`];
  const browser = await browserFor(executablePath, trust);
  const contexts: BrowserContext[] = [];
  const faults: string[] = [];
  let failed = false;
  const { origin } = new URL(url);

  /** Requests under way, by page. */
  const pending = new WeakMap<Page, Set<Request>>();
  const isElsewhere = (address: string): boolean =>
    alsoAt.includes(URL.canParse(address) ? new URL(address).origin : '');
  /** Requests of pages of other hosts. */
  const elsewhere = new Set<string>();
  const watch = (page: Page): void => {
    const own = new Set<Request>();
    pending.set(page, own);
    page.on('request', (request) => own.add(request));
    page.on('requestfinished', (request) => own.delete(request));
    page.on('requestfailed', (request) => own.delete(request));
    // The browser never reports the end of requests of a page that was left.
    page.on('framenavigated', (frame) => {
      if (frame === page.mainFrame()) for (const request of own) if (request.isNavigationRequest()) own.delete(request);
    });
    page.on('console', (message) => {
      // Failed requests of another host's page.
      const { url: at } = message.location();
      if (isElsewhere(at) || (elsewhere.has(at) && !at.startsWith(origin))) return;
      // The question whether someone is signed in is answered with 401 until someone is: the
      // browser notes that.
      const asked = message.location().url.endsWith('/api/session') && message.text().includes('401');
      if (['error', 'warning'].includes(message.type()) && !asked) faults.push(`console: ${message.text()}`);
    });
    page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
    page.on('requestfailed', (request) => {
      if (elsewhere.has(request.url())) return;
      // A page that is left aborts its open requests.
      if (request.failure()?.errorText !== 'net::ERR_ABORTED') faults.push(`failed: ${request.url()}`);
    });
    page.on('request', (request) => {
      if (isElsewhere(request.frame().url()) && !request.isNavigationRequest()) {
        elsewhere.add(request.url());
        return;
      }
      const { protocol, origin: asked } = new URL(request.url());
      if (protocol !== 'blob:' && protocol !== 'data:' && asked !== origin && !alsoAt.includes(asked))
        faults.push(`another host: ${request.url()}`);
    });
    page.on('response', (response) => {
      if (response.status() < 500 || isElsewhere(response.url())) return;
      failed = true;
      faults.push(`${response.status()}: ${response.url()}`);
    });
  };

  let checked = 0;
  let shot: Promise<unknown> = Promise.resolve();
  /**
   * One at a time: full pages that are drawn at the same time can come out tiled. Behind a dialog
   * only the window is visible.
   */
  const shoot: ConsoleBrowser['shoot'] = async (name, page) => {
    if (!allPictures && !ofTour.has(name)) return;
    const before = shot;
    const take = async (): Promise<void> => {
      await before.catch(() => undefined);
      const fullPage = (await page.locator('dialog[open]').count()) === 0;
      await page.screenshot({ path: join(outputFolder, `${name}.png`), fullPage });
    };
    const own = take();
    shot = own;
    await own;
  };
  const findBarriers: ConsoleBrowser['findBarriers'] = async (page, rules) => {
    if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(axe);
    // A menu that is open hangs at the end of the page, outside of its landmarks.
    const { violations } = await page.evaluate<AxeResult>(
      `axe.run(document, { resultTypes: ['violations'], runOnly: ${JSON.stringify(rules ?? ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'])},
          rules: { region: { enabled: document.querySelector('[role=menu]') === null } } })`,
    );
    return violations.flatMap(({ id, help, nodes }) =>
      nodes.slice(0, 3).map(({ html, failureSummary }) => `${id}: ${help}: ${html.slice(0, 200)} ${failureSummary}`),
    );
  };

  return {
    faults,
    signIn: async (page, token, path = '/') => {
      await page.goto(path);
      await page.getByRole('button', { name: 'Use a token' }).click();
      await page.getByLabel('Administrator token').fill(token);
      await page.getByRole('button', { name: 'Sign in', exact: true }).click();
      await page.getByRole('navigation', { name: 'Main' }).first().waitFor();
    },
    shoot,
    lookClosely: async (name, page) => {
      expect.soft(await findBarriers(page), name).toEqual([]);
      await page.emulateMedia({ colorScheme: 'dark' });
      if (checked % sizeOf('console states') === 0)
        expect.soft(await findBarriers(page, ['color-contrast']), `${name}, dark`).toEqual([]);
      checked += 1;
      await shoot(`${name}-dark`, page);
      await page.emulateMedia({ colorScheme: 'light' });
      await shoot(name, page);
      const { width, height } = page.viewportSize() ?? { width: 1280, height: 860 };
      for (const [look, narrow] of [
        ['narrow', 320],
        ['zoomed', 640],
      ] as const) {
        await page.setViewportSize({ width: narrow, height: 700 });
        const sideways = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
        expect.soft(await page.evaluate(sideways), `${name}, ${look}`).toBe(0);
        await shoot(`${name}-${look}`, page);
      }
      await page.setViewportSize({ width, height });
    },
    failed: () => failed,
    open: async (options = {}) => {
      const context = await browser.newContext({
        baseURL: url,
        // The certificate is the server's own.
        ignoreHTTPSErrors: trusted.length === 0,
        reducedMotion: 'reduce',
        colorScheme: 'light',
        viewport: { width: 1280, height: 860 },
        ...options,
      });
      contexts.push(context);
      context.setDefaultTimeout(patienceMs);
      await context.addInitScript(`
        document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
          console.error('content security policy: ' + violatedDirective + ' ' + blockedURI);
        });
      `);
      const page = await context.newPage();
      watch(page);
      return [context, page];
    },
    another: async (context) => {
      const page = await context.newPage();
      watch(page);
      return page;
    },
    settle: async (page) => {
      const loading = page.getByRole('status', { name: 'Loading' });
      for (let calm = 0; calm < 2; ) {
        await loading.first().waitFor({ state: 'detached' });
        // Within two frames, the page draws an answer and sends the requests that follow from it.
        await page.evaluate(
          'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))',
        );
        calm = (pending.get(page)?.size ?? 0) === 0 && (await loading.count()) === 0 ? calm + 1 : 0;
      }
    },
    findBarriers,
    close: async () => {
      for (const context of contexts) await context.close();
    },
  };
};
