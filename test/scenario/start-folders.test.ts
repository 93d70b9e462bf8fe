// Starts on folders that are missing or read-only: one line names the folder and the fix, and
// nothing is created next to it.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type ServerEnded, startServerProcess } from '../support/server-process.ts';
import { mountSmallDisk } from '../support/small-disk.ts';

const refusalOf = (folder: string, toml: string): Promise<ServerEnded> =>
  startServerProcess({ folder, toml }).then(
    async (server) => {
      await server.stop();
      throw new Error('it started');
    },
    (error: ServerEnded) => error,
  );

test.each([
  ['a root key file', ''],
  ['a wrapped root key file', '[[root.providers]]\nname = "medium"\ntype = "file"\npath = "medium.key"\n'],
])('the missing folder of %s is named, with the command that makes it', async (_, providers) => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-folders-'));
  try {
    const refusal = await refusalOf(folder, `[root]\npath = "vault/root.key"\n${providers}`);
    expect(refusal.exitCode).toBe(3);
    expect(refusal.message).toContain(`install -d -m 700 ${join(folder, 'vault')}`);
    expect(refusal.message).not.toMatch(/\n\s+at /);
    expect(existsSync(join(folder, 'dke-data/dke.db'))).toBe(false);
    mkdirSync(join(folder, 'vault'), { mode: 0o700 });
    const server = await startServerProcess({ folder, toml: `[root]\npath = "vault/root.key"\n${providers}` });
    expect(await server.stop()).toBe(0);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('a disk that is read-only is said to be', async () => {
  const disk = mountSmallDisk('32m');
  if (typeof disk === 'string') return console.log(`skipped: ${disk}`);
  const outside = mkdtempSync(join(tmpdir(), 'dke-folders-'));
  const toml = `[data]\ndirectory = "${join(disk.folder, 'data')}"\n`;
  try {
    const server = await startServerProcess({ folder: outside, toml });
    await server.stop();
    expect(spawnSync('mount', ['-o', 'remount,ro', disk.folder]).status).toBe(0);
    const refusal = await refusalOf(outside, toml);
    expect(refusal.exitCode).toBe(5);
    expect(refusal.message).toContain('mounted read-only');
    expect(refusal.message).not.toContain('unable to open');
  } finally {
    disk.end();
    rmSync(outside, { recursive: true, force: true });
  }
});
