// Copies the pictures of docs/tour.md into docs/tour, from those that the browser tests took:
// `npm run docs:tour`, after `npx vitest run test/scenario/console`. Only the upper part of a long
// page is kept.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { crc32, deflateSync, inflateSync } from 'node:zlib';

const root = resolve(import.meta.dirname, '../..');
const mostRows = 940;

/** The names of the pictures that the page shows, in its order. */
export const tourPictures = (): readonly string[] =>
  [...readFileSync(join(root, 'docs/tour.md'), 'utf8').matchAll(/\(tour\/([a-z0-9-]+)\.png\)/g)].map(
    ([, name = '']) => name,
  );

const chunk = (type: string, data: Buffer): Buffer => {
  const head = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const ends = [Buffer.alloc(4), Buffer.alloc(4)] as const;
  ends[0].writeUInt32BE(data.length);
  ends[1].writeUInt32BE(crc32(head));
  return Buffer.concat([ends[0], head, ends[1]]);
};

/**
 * The first rows of a PNG of 8 bits a channel, not interlaced: each row's filter checks the one
 * above it alone.
 */
export const keepUpperRows = (png: Buffer, most: number): Buffer => {
  let header = Buffer.alloc(0);
  const parts: Buffer[] = [];
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const data = png.subarray(at + 8, at + 8 + length);
    const type = png.toString('latin1', at + 4, at + 8);
    if (type === 'IHDR') header = Buffer.from(data);
    if (type === 'IDAT') parts.push(data);
    at += length + 12;
  }
  const channels = header[9] === 6 ? 4 : 3;
  const rows = Math.min(header.readUInt32BE(4), most);
  header.writeUInt32BE(rows, 4);
  const pixels = inflateSync(Buffer.concat(parts)).subarray(0, rows * (header.readUInt32BE(0) * channels + 1));
  return Buffer.concat([
    png.subarray(0, 8),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(pixels, { level: 9, memLevel: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
};

if (process.argv[1] === import.meta.filename) {
  mkdirSync(join(root, 'docs/tour'), { recursive: true });
  let size = 0;
  for (const name of tourPictures()) {
    const from = join(root, 'test/output/console', `${name}.png`);
    if (!existsSync(from)) {
      console.log(`${name}: the tests have not made it; the old one stays`);
      continue;
    }
    const picture = keepUpperRows(readFileSync(from), mostRows);
    writeFileSync(join(root, 'docs/tour', `${name}.png`), picture);
    size += picture.length;
  }
  console.log(`${Math.round(size / 1024)} KiB of pictures`);
}
