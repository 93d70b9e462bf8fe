// Puts the pictures of docs/tour.md into docs/tour, from those that the browser tests have made: `npm run docs:tour`, after
// `npx vitest run test/scenario/console-looks.test.ts test/scenario/console-people.test.ts`.
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '../..');

/** The names of the pictures that the page shows, in its order. */
export const tourPictures = (): readonly string[] => [
  ...readFileSync(join(root, 'docs/tour.md'), 'utf8')
    .matchAll(/\(tour\/([a-z0-9-]+)\.png\)/g)
    .map(([, name = '']) => name),
];

if (process.argv[1] === import.meta.filename) {
  mkdirSync(join(root, 'docs/tour'), { recursive: true });
  let size = 0;
  for (const name of tourPictures()) {
    const from = join(root, 'test/output/console', `${name}.png`);
    if (!existsSync(from)) {
      console.log(`${name}: the tests have not made it; the old one stays`);
      continue;
    }
    copyFileSync(from, join(root, 'docs/tour', `${name}.png`));
    size += statSync(from).size;
  }
  console.log(`${Math.round(size / 1024)} KiB of pictures`);
}
