// Memory for keys as the kernel shows it: locked and excluded from dumps, not growing, and an error
// that names the fix where the limit is too low. The heaps themselves are tested in
// test/native/core/secure-buffer-test.cc.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { core } from '../../support/core-keys.ts';

const run = promisify(execFile);
const child = join(import.meta.dirname, '../../support/core-memory-child.ts');

test('the key arena is locked, left out of core dumps and empty in a forked child', () => {
  const { capacity, locked } = core.memoryStatus();
  if (!locked) {
    console.log(`skipped: this process may not lock ${capacity / 1024} KiB (raise RLIMIT_MEMLOCK)`);
    return;
  }
  const mappings = readFileSync('/proc/self/smaps', 'utf8').split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m);
  const guarded = mappings.filter((mapping) => {
    const flags = (/^VmFlags: (.*)$/m.exec(mapping)?.[1] ?? '').trim().split(' ');
    return ['lo', 'dd', 'wf'].every((flag) => flags.includes(flag));
  });
  const kib = guarded.map((mapping) => Number(/^Size:\s+(\d+) kB$/m.exec(mapping)?.[1]));
  expect(kib).toContain(capacity / 1024);
});

test('a limit that is too low is an error that names the limit and the cure', async () => {
  const { stdout } = await run('sh', ['-c', `ulimit -l 64 && exec "$0" "$1" limit`, process.execPath, child]);
  const answer = JSON.parse(stdout) as Record<string, unknown>;
  if (answer.initialized === true) {
    console.log('skipped: this process may lock more than its limit says');
    return;
  }
  expect(answer).toEqual({
    name: 'CoreError',
    code: 'memory-lock',
    message:
      'cannot lock 4096 KiB of memory for keys: RLIMIT_MEMLOCK is 64 KiB. Raise it (ulimit -l, or LimitMEMLOCK= in the systemd unit)',
    // Until then there are no keys at all; a caller that requests it explicitly gets memory that is
    // not locked.
    keys: 'memory-lock',
    unlocked: false,
  });
});

test('a million keys made and released lock as little memory as the first ones', async () => {
  const { stdout } = await run(process.execPath, [child, 'churn']);
  const { before, after, grown } = JSON.parse(stdout) as {
    readonly before: object;
    readonly after: object;
    readonly grown: number;
  };
  expect(after).toEqual(before);
  // KiB. JavaScript's own heap moves; a leak of the smallest block a key has would be 60 MiB.
  expect(grown).toBeLessThan(30_000);
});

test('memory that was freed goes back to the system', async () => {
  const { stdout } = await run(process.execPath, [child, 'freed']);
  const { height, kept, returned, after } = JSON.parse(stdout) as Record<string, number>;
  expect(returned).toBe(true);
  // KiB. 180 MiB were freed, in pieces that the C library keeps.
  expect(Number(kept)).toBeGreaterThan(Number(height) - 60_000);
  expect(Number(after)).toBeLessThan(Number(height) - 140_000);
});

test('initialize answers the status again and again, and refuses sizes that are none', () => {
  expect(core.initialize({ arenaBytes: 1 << 20 })).toEqual(core.memoryStatus());
  expect(() => core.initialize({ arenaBytes: Number.NaN })).toThrow(expect.objectContaining({ code: 'bad-argument' }));
  expect(() => core.initialize({ arenaBytes: -1 })).toThrow(expect.objectContaining({ code: 'bad-argument' }));
});

test('an arena that is full says so, and serves again when keys are released', () => {
  const keys = [];
  let failure: unknown;
  while (failure === undefined) {
    try {
      keys.push(core.generateGeneric(4096));
    } catch (error) {
      failure = error;
    }
  }
  expect(failure).toMatchObject({ code: 'memory-lock', message: expect.stringContaining('the key arena is full') });
  expect(keys.length).toBeGreaterThan(400);
  for (const key of keys) core.release(key);
  core.release(core.generateGeneric(4096));
});
