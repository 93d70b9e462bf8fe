// Fault injection in a single system call of an operation: the server is killed before a persistent
// call or in the middle of a write, or gets a full disk or a failed sync. A few calls here; npm run
// faults covers each. And that none is missed: the interceptor counts the same calls as strace.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openWorkload } from '../support/fault-workload.ts';
import { builtServer } from '../support/killed-server.ts';
import { startServerProcess } from '../support/server-process.ts';
import { everyKind, openStrikes, whyNoStrikes } from '../support/strikes.ts';
import { strikeServer } from '../support/struck-server.ts';
import { sizeOf } from '../support/tiers.ts';
import { whyNoTrace } from '../support/tools.ts';

const reason = whyNoStrikes();
if (reason !== undefined) console.log(`skipped: ${reason}`);

const most = sizeOf('strikes at a server');

test.skipIf(reason !== undefined).each([
  ['killed while a key is destroyed and its erasure run runs', 'killed', ['destroy']],
  ['killed in the middle of a write of a restore', 'torn', ['restore a snapshot']],
  ['told that the disk is full, refuses and serves', 'full disk', ['create', 'purge a tenant']],
  ['told that a sync failed, stops, and starts again', 'failed sync', ['make a snapshot']],
] as const)('%s, nothing acknowledged is lost and nothing is half done', async (_, blow, operations) => {
  const report = await strikeServer({ every: false, most, seed: 7, blow, operations });
  expect(report.findings).toEqual([]);
  for (const operation of operations) expect(report.operations[operation]?.strikes).toBe(most);
});

const untraced = reason ?? whyNoTrace();
if (untraced !== undefined) console.log(`skipped: ${untraced}`);

test.skipIf(untraced !== undefined)('every lasting call that strace sees is one that can be struck', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-traced-'));
  const strikes = openStrikes(folder);
  const server = await startServerProcess({
    folder,
    program: [builtServer],
    environment: strikes.environment,
    toml: '[erasure]\ngather_ms = 10\n[snapshots]\nrestore_second_person = false\n',
  });
  try {
    const workload = await openWorkload({ server }, server.adminToken, { seed: 11 });
    for (const operation of ['destroy', 'make a snapshot', 'restore a snapshot'] as const) {
      const work = await workload.prepare(operation);
      await workload.settle();
      const trace = join(folder, 'trace');
      const calls =
        'trace=/^(p?write(v2?|64|v)?|fsync|fdatasync|sync_file_range|msync|renameat2?|rename|linkat|link|unlinkat|unlink|f?truncate|fallocate|copy_file_range|sendfile|mkdir|mkdirat|io_uring_enter)$';
      const tracer = spawn('strace', ['-f', '-y', '-p', String(server.child.pid), '-e', calls, '-o', trace], {
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      // Read to its end, because it lists each new thread.
      await new Promise((resolve) => tracer.stderr.on('data', resolve));
      // The calls that create files have other uses as well, so created files are counted
      // separately.
      strikes.arm({ mode: 'count', kinds: everyKind.filter((kind) => kind !== 'create'), number: 0 });
      await work();
      await workload.settle();
      const { counted } = strikes.disarm();
      const gone = once(tracer, 'exit');
      tracer.kill('SIGINT');
      await gone;
      const seen = readFileSync(trace, 'utf8')
        .split('\n')
        .filter((line) => /^\d+ +\w+\(/.test(line))
        // Sockets, pipes and eventfds are not files; a created folder counts as a file.
        .filter((line) => !/ mkdir(at)?\(|<(socket|pipe|anon_inode|TCP|UNIX|\/dev\/(?!shm\/))/.test(line));
      expect(counted, seen.join('\n')).toBe(seen.length);
      expect(seen.length).toBeGreaterThan(20);
    }
  } finally {
    await server.stop('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
});
