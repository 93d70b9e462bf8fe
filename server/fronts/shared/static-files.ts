// Serves the built pages (index.html and hashed assets) from memory, read once at start: no path of
// a request ever reaches the file system. A browser that asks for a page (Accept names text/html)
// at any path that is not a file gets index.html, because the pages route on their own; a probe or
// a script with a wrong path gets 404.

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { Hono } from 'hono';
import { answerInPieces } from './outbox.ts';
import { pageHeaders } from './security-headers.ts';

const mediaTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.json': 'application/json',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
};
const compressible = /^(text\/|application\/|image\/svg)/;

interface Page {
  readonly body: Uint8Array<ArrayBuffer>;
  /**
   * Null where compression is not worth it. Done at the first request and off the event loop: most
   * starts serve no page.
   */
  readonly gzipped: (() => Promise<Uint8Array<ArrayBuffer>>) | null;
  readonly headers: Readonly<Record<string, string>>;
}

const compress = promisify<Uint8Array, { readonly level: number }, Buffer<ArrayBuffer>>(gzip);

/** Once for each body. */
const compressedOnce = (body: Uint8Array<ArrayBuffer>): (() => Promise<Uint8Array<ArrayBuffer>>) => {
  let compressed: Promise<Uint8Array<ArrayBuffer>> | undefined;
  return () => {
    compressed ??= compress(body, { level: 9 });
    return compressed;
  };
};

const loadPages = (root: string): ReadonlyMap<string, Page> => {
  const pages = new Map<string, Page>();
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    const type = mediaTypes[extname(file)];
    // What has no row above is not ours to serve.
    if (type === undefined) continue;
    const path = `/${relative(root, file).split(sep).join('/')}`;
    const body = readFileSync(file);
    pages.set(path, {
      body,
      gzipped: compressible.test(type) && body.length > 1024 ? compressedOnce(body) : null,
      headers: {
        ...pageHeaders,
        'content-type': type,
        etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`,
        vary: 'accept-encoding',
        // Names under /assets carry a hash of their content.
        'cache-control': path.startsWith('/assets/') ? 'public, max-age=31536000, immutable' : 'no-cache',
      },
    });
  }
  return pages;
};

const absent = 'The pages are not built. Run `npm run build:web`, or use the API and the dke command.\n';

/**
 * The pages below `root` (an absolute path). Mount at `/` after every other front: page requests
 * for unknown paths without a file extension get index.html. When the folder is not there, every
 * page says how to build it (503).
 */
export const serveConsole = (root: string): Hono => {
  const pages = existsSync(join(root, 'index.html')) ? loadPages(root) : null;
  const app = new Hono();
  app.on(['GET', 'HEAD'], '*', async (context) => {
    if (pages === null) {
      return new Response(absent, { status: 503, headers: { ...pageHeaders, 'content-type': 'text/plain' } });
    }
    const path = context.req.path;
    const asksForPage = extname(path) === '' && /\btext\/html\b/.test(context.req.header('accept') ?? '');
    const page = pages.get(path) ?? (path === '/' || asksForPage ? pages.get('/index.html') : undefined);
    if (page === undefined) {
      return new Response('No such file.\n', {
        status: 404,
        headers: { ...pageHeaders, 'content-type': 'text/plain' },
      });
    }
    if (context.req.header('if-none-match') === page.headers.etag) {
      return new Response(null, { status: 304, headers: page.headers });
    }
    if (page.gzipped === null || !/\bgzip\b/.test(context.req.header('accept-encoding') ?? ''))
      return answerInPieces(page.body, { headers: page.headers });
    return answerInPieces(await page.gzipped(), { headers: { ...page.headers, 'content-encoding': 'gzip' } });
  });
  return app;
};
