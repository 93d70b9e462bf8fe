// The scripts of docs/developers.md, run as they are printed, in their order, on one token: each
// prints what the page says.
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startOwnToken, type Token } from '../support/token.ts';
import { run } from '../support/tools.ts';

const root = resolve(import.meta.dirname, '../..');
const page = readFileSync(join(root, 'docs/developers.md'), 'utf8');
const scripts = [...page.matchAll(/```js\n(\/\/ ([a-z-]+\.mjs)[\s\S]*?)```\n\n```text\n([\s\S]*?)```/g)].map(
  ([, script = '', name = '', prints = '']) => ({ name, script, prints }),
);

test('every script of the page says what it prints', () => {
  expect(scripts).toHaveLength(page.split('```js\n').length - 1);
});

describe('docs/developers.md', () => {
  let token: Token;
  let folder: string;
  beforeAll(async () => {
    token = await startOwnToken('reports');
    folder = join(token.folder, 'scripts');
    mkdirSync(folder);
    // The link stands in for an installation of graphene-pk11 in this folder.
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  });
  afterAll(() => token.end());

  test.each(scripts)('$name', async ({ name, script, prints }) => {
    writeFileSync(join(folder, name), script);
    const environment = { ...token.environment, PKCS11_LIBRARY: token.module };
    const { code, out, complaints } = await run(process.execPath, [name], { environment, folder });
    expect(complaints).toBe('');
    expect(out).toBe(prints);
    expect(code).toBe(0);
  });
});
