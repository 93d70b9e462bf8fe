// Tests in which other users of the host run what this checkout has built.
import { statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

const checkout = resolve(import.meta.dirname, '../..');
const foldersAbove = (path: string): readonly string[] =>
  path === dirname(path) ? [path] : [path, ...foldersAbove(dirname(path))];

const find = (): string | undefined => {
  if (process.getuid?.() !== 0) return 'other users need the right to become them';
  const closed = foldersAbove(checkout).find((folder) => (statSync(folder).mode & 0o001) === 0);
  return (
    closed && `other users may not enter ${closed}, where this checkout is: these tests need one that they may enter`
  );
};

/** Why no other user can run what is built here; undefined where they can. */
export const whyNoOtherUsers = find();
