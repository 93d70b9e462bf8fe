// The weight of the console's pages as they are built, and the pictures of its tour.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { renderGuide } from '../../server/clients/web/guide.ts';
import { guidePages } from '../../server/clients/web/src/session/guide.ts';
import { notificationKindNames, notificationRow } from '../../server/domain/notification.ts';
import { tourPictures } from '../support/tour-pictures.ts';

const root = resolve(import.meta.dirname, '../..');
const pages = join(root, 'dist/web');
const index = join(pages, 'index.html');
if (!existsSync(index)) console.log('skipped: the pages are not built (npm run build:web)');

describe.runIf(existsSync(index))('the pages as built', () => {
  const html = existsSync(index) ? readFileSync(index, 'utf8') : '';

  test('the first page needs less than 200 kB of compressed script', () => {
    const scripts = [...new Set(html.match(/assets\/[\w.-]+\.js/g))];
    expect(scripts.length).toBeGreaterThan(0);
    const bytes = scripts.reduce(
      (sum, path) => sum + gzipSync(readFileSync(join(pages, path)), { level: 9 }).length,
      0,
    );
    expect(bytes).toBeLessThan(200_000);
  });

  test('nothing is inlined, and nothing names another host', () => {
    expect(html).not.toMatch(/<script(?![^>]*\bsrc=)[^>]*>/);
    expect(html).not.toMatch(/https?:\/\//);
  });
});

describe('pages that the service names', () => {
  const source = (path: string): string => readFileSync(join(root, path), 'utf8');
  const routes = [...source('server/clients/web/src/shell/router.tsx').matchAll(/^ {2}path: '(.*)',$/gm)].map(
    ([, path = '']) => path.replaceAll(/\$\w+/g, '{id}'),
  );
  const missing = (pages: readonly string[]): readonly string[] =>
    pages.filter((page) => !routes.includes(page.replace(/\?.*/, '')));

  test('a notification leads to a page of the console', () => {
    expect(missing(notificationKindNames.map((kind) => notificationRow(kind).page))).toEqual([]);
  });

  test('a result of the search leads to a page of the console', () => {
    const named = [...source('server/fronts/api/handlers/search-handlers.ts').matchAll(/\[[`'](\/[^`']*)[`'],/g)];
    const pages = named.map(([, page = '']) => page.replaceAll(/\$\{[^}]*\}/g, '{id}'));
    expect(pages.length).toBeGreaterThan(10);
    expect(missing(pages)).toEqual([]);
  });
});

describe('the guide', () => {
  const pages = renderGuide(root);

  test('has each page that the console leads to, and each anchor that its own links name', () => {
    expect(guidePages.filter((name) => !pages.has(`guide/${name}.html`))).toEqual([]);
    const broken = [...pages].flatMap(([from, html]) =>
      [...html.matchAll(/href="(?:\/(guide\/[^"#]*))?(?:#([^"]*))?"/g)].flatMap(([, file = from, anchor]) => {
        const target = pages.get(file);
        const isThere = target !== undefined && (anchor === undefined || target.includes(` id="${anchor}"`));
        return isThere ? [] : [`${from}: ${file}#${anchor}`];
      }),
    );
    expect(broken).toEqual([]);
  });

  test('has no markup but its own', () => {
    for (const html of pages.values()) expect(html).not.toMatch(/<script(?! src="\/theme.js")|style=|javascript:/);
  });
});

describe('the tour', () => {
  const folder = join(root, 'docs/tour');

  test('has each picture that it shows, and no other', () => {
    expect(readdirSync(folder).sort()).toEqual([...new Set(tourPictures())].map((name) => `${name}.png`).sort());
  });

  test('has pictures of less than 2 MB together', () => {
    expect(readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)).toBeLessThan(
      2_000_000,
    );
  });
});
