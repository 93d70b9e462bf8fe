// A process works with known 32-byte secrets (an AES key, a secret, a KEK, a private key, an XKS
// plaintext); then everything of it that could get out is searched for them: the memory that a core
// dump would hold (read from /proc, because the dump itself has V8's ten gigabytes of reserved
// addresses), the heap snapshot and what it printed. Decoys in ordinary memory must be found, or
// the search proves nothing.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, readFileSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'dke-canary-'));
const snapshot = join(folder, 'canary.heapsnapshot');
const seed = randomBytes(32);
const secretOf = (number: number): Buffer => Buffer.from(seed.map((byte) => byte ^ (0xa0 + number)));

/** Names of the secrets, of which no spelling may be found. */
const names = ['AES key', 'generic secret', 'KEK', 'Ed25519 seed', 'XKS plaintext'];
const spellings = (secret: Buffer): Buffer[] => {
  const texts = [secret.toString('hex'), secret.toString('base64').slice(0, 40)];
  return [secret, ...texts.flatMap((text) => [Buffer.from(text, 'latin1'), Buffer.from(text, 'utf16le')])];
};
const secrets = names.map((name, index) => ({ name, spellings: spellings(secretOf(index + 1)) }));
const found = (bytes: Buffer): string[] =>
  secrets.filter((secret) => secret.spellings.some((spelling) => bytes.includes(spelling))).map(({ name }) => name);
const decoy = secretOf(6);
const decoyText = secretOf(7).toString('hex');

let process_: ReturnType<typeof spawn>;
let printed = '';
beforeAll(async () => {
  const script = join(import.meta.dirname, '../../support/core-memory-child.ts');
  process_ = spawn(process.execPath, [script, 'canary', snapshot], { stdio: ['pipe', 'pipe', 'pipe'] });
  process_.stderr?.on('data', (data) => {
    printed += data;
  });
  process_.stdin?.write(`${seed.toString('hex')}\n`);
  await new Promise<void>((resolve, reject) => {
    process_.on('exit', (code) => reject(new Error(`the process ended early (${code}): ${printed}`)));
    process_.stdout?.on('data', (data) => {
      printed += data;
      if (printed.includes('"pid"')) resolve();
    });
  });
  process_.removeAllListeners('exit');
});
afterAll(async () => {
  const ended = new Promise((resolve) => process_.on('exit', resolve));
  process_.stdin?.end();
  await ended;
  rmSync(folder, { recursive: true });
});

const pageSize = 4096;

interface Region {
  readonly from: number;
  readonly to: number;
  /** Whether a core dump takes it: VmFlags (proc(5)) without `dd`. */
  readonly dumped: boolean;
}
const regionsOf = (pid: number): Region[] =>
  readFileSync(`/proc/${pid}/smaps`, 'utf8')
    .split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)
    .flatMap((mapping) => {
      const [, from = '', to = '', rights = '', name = ''] =
        /^(\w+)-(\w+) (\S+) \S+ \S+ \d+ *(.*)$/m.exec(mapping) ?? [];
      if (!rights.startsWith('r') || name.startsWith('[v')) return [];
      const flags = (/^VmFlags: (.*)$/m.exec(mapping)?.[1] ?? '').trim().split(' ');
      return [{ from: Number.parseInt(from, 16), to: Number.parseInt(to, 16), dumped: !flags.includes('dd') }];
    });

/**
 * What is really there of a region, as runs of neighbouring pages: V8 reserves much more than it
 * uses.
 */
const runsOf = (pages: number, { from, to, dumped }: Region): Region[] => {
  const entries = Buffer.alloc(((to - from) / pageSize) * 8);
  readSync(pages, entries, 0, entries.length, (from / pageSize) * 8);
  const runs: { from: number; to: number; dumped: boolean }[] = [];
  for (let page = 0; page < entries.length / 8; page++) {
    // Bits 63 and 62 of an entry of /proc/<pid>/pagemap: in memory, or swapped out.
    if (((entries[page * 8 + 7] ?? 0) & 0xc0) === 0) continue;
    const at = from + page * pageSize;
    const last = runs.at(-1);
    if (last?.to === at) last.to += pageSize;
    else runs.push({ from: at, to: at + pageSize, dumped });
  }
  return runs;
};

const bytesOf = (memory: number, { from, to }: Region): Buffer => {
  const bytes = Buffer.alloc(to - from);
  try {
    for (let at = 0; at < bytes.length; ) {
      const got = readSync(memory, bytes, at, bytes.length - at, from + at);
      if (got === 0) break;
      at += got;
    }
  } catch {
    // A page that was unmapped, or that not even its own process may read.
  }
  return bytes;
};

describe('known secrets', () => {
  test('are in the process, but in no memory that a core dump would contain', () => {
    const pid = process_.pid ?? 0;
    let memory: number;
    let pages: number;
    try {
      memory = openSync(`/proc/${pid}/mem`, 'r');
      pages = openSync(`/proc/${pid}/pagemap`, 'r');
    } catch (error) {
      console.log(
        `skipped: this user may not read another process's memory (${(error as NodeJS.ErrnoException).code})`,
      );
      return;
    }
    const dumped = new Set<string>();
    const guarded = new Set<string>();
    let decoys = 0;
    for (const region of regionsOf(pid)) {
      for (const run of runsOf(pages, region)) {
        const bytes = bytesOf(memory, run);
        for (const name of found(bytes)) (region.dumped ? dumped : guarded).add(name);
        if (region.dumped && bytes.includes(decoy)) decoys += 1;
      }
    }
    closeSync(memory);
    closeSync(pages);
    expect([...dumped]).toEqual([]);
    expect(decoys).toBeGreaterThan(0);
    expect([...guarded].sort()).toEqual([...names].sort());
  });

  test('are not in the heap snapshot', () => {
    const bytes = readFileSync(snapshot);
    expect(found(bytes)).toEqual([]);
    expect(bytes.includes(decoyText)).toBe(true);
  });

  test('were not printed', () => {
    expect(found(Buffer.from(printed))).toEqual([]);
    expect(printed).toContain('"keys":5');
  });
});
