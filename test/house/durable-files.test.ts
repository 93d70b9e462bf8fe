// Files are renamed, and written at places within them, by server/base/durable-files.ts only: a rename whose folder is not
// synced may be undone by a power failure, and a write may take a part of its bytes.
import { expect, test } from 'vitest';
import { files, read, withoutComments } from '../support/sources.ts';

/** Why each may do so itself. */
const others: Readonly<Record<string, string>> = {
  'provider/install/files.ts': 'runs on a database host, and syncs the folder itself',
  'server/base/durable-files.ts': 'is the place',
  'server/log-file.ts': 'a rotation that is undone leaves the log under its first name',
};

test('only the helper renames files', () => {
  const found = files(['server', 'provider'], '.ts').filter((path) => {
    const text = withoutComments(read(path));
    return /\brename(Sync)?\b[^;]*from 'node:fs/.test(text);
  });
  expect(found).toEqual(Object.keys(others));
});

test('each write at a place looks how many bytes were taken', () => {
  const found = files(['server'], '.ts').filter(
    (path) =>
      !path.startsWith('server/web/') &&
      /await [\w.]*(handle|file)\??\.write\([^)]+,[^)]+\)/.test(withoutComments(read(path))),
  );
  expect(found).toEqual(['server/base/durable-files.ts']);
});
