// The folder of packages that the service distributes: downloads that end early, and what an
// inspection finds.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { inspectPackageDirectory, openPackageDirectory } from '../../../server/adapters/packages/package-folder.ts';
import { sharedFolder } from '../../support/folders.ts';

const good = 'dke-provider_1.0.0_amd64.deb';
const damaged = 'dke-mariadb_1.0.0_amd64.deb';
const folder = sharedFolder();

beforeAll(() => {
  const sum = createHash('sha256').update('as it was built').digest('hex');
  writeFileSync(join(folder, good), 'as it was built');
  writeFileSync(join(folder, damaged), 'changed on its way');
  writeFileSync(join(folder, 'SHA256SUMS'), `${sum}  ${good}\n${sum}  ${damaged}\n`);
});

const openFiles = (): readonly string[] =>
  readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`);
      return path.startsWith(folder) ? [path] : [];
    } catch {
      return [];
    }
  });

test.each([0, 1])('a download that ends after %d parts leaves no file open', async (parts) => {
  const content = (await openPackageDirectory(folder).open(good))[Symbol.asyncIterator]();
  expect(openFiles()).toEqual([join(folder, good)]);
  for (let part = 0; part < parts; part++) await content.next();
  await content.return?.();
  expect(openFiles()).toEqual([]);
});

test('an inspection names each package that does not match, and counts the others', async () => {
  expect(await inspectPackageDirectory(folder)).toEqual({
    matching: 1,
    faults: [expect.stringContaining(`${damaged} does not match its checksum`)],
  });
  expect(openFiles()).toEqual([]);
});

test('an inspection says that the folder cannot be read', async () => {
  expect(await inspectPackageDirectory(join(folder, 'missing'))).toEqual({
    matching: 0,
    faults: [expect.stringMatching(/SHA256SUMS cannot be read \(ENOENT\)/)],
  });
});

test('packages are files of the folder: no path, no link and no folder is one, whatever SHA256SUMS says', async () => {
  const inside = join(folder, 'inside');
  mkdirSync(join(inside, 'dke-provider_3.0.0_amd64.deb'), { recursive: true });
  const sum = createHash('sha256').update('as it was built').digest('hex');
  symlinkSync(join(folder, good), join(inside, 'dke-provider_2.0.0_amd64.deb'));
  writeFileSync(join(inside, good), 'as it was built');
  const strange = [`../${good}`, `./${good}`, `inside/../${good}`, '..', '.', join(folder, good), `${good}\u0000`];
  const names = [good, 'dke-provider_2.0.0_amd64.deb', 'dke-provider_3.0.0_amd64.deb', ...strange];
  writeFileSync(join(inside, 'SHA256SUMS'), names.map((name) => `${sum}  ${name}\n`).join(''));
  const packages = openPackageDirectory(inside);
  expect((await packages.list()).map(({ name }) => name)).toEqual([good]);
  for (const name of names.slice(1)) await expect(packages.open(name)).rejects.toMatchObject({ code: 'not-found' });
});
