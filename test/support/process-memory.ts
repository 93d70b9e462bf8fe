// The memory of another process: the content of its mappings in /proc, and of its core dump.
import { spawnSync } from 'node:child_process';
import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readlinkSync, readSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive, until } from './host.ts';

/** What is searched for: the forms of each thing, by its name. A form has at least two bytes. */
export type Needles = ReadonlyMap<string, readonly Buffer[]>;

const chunkBytes = 1 << 24;
const pageBytes = 4096;

/**
 * Finds needles in pieces of memory that are given one after the other, in one pass however many
 * needles there are.
 */
class Search {
  readonly #byStart = new Map<number, { readonly name: string; readonly form: Buffer }[]>();
  readonly #starts = new Uint8Array(1 << 16);
  readonly #longest: number;
  readonly #buffer: Buffer;
  #kept = 0;
  readonly found = new Set<string>();

  constructor(needles: Needles) {
    for (const [name, forms] of needles) {
      for (const form of forms) {
        const start = form.readUInt16LE(0);
        this.#starts[start] = 1;
        this.#byStart.set(start, [...(this.#byStart.get(start) ?? []), { name, form }]);
      }
    }
    this.#longest = Math.max(...[...needles.values()].flat().map(({ length }) => length));
    this.#buffer = Buffer.alloc(chunkBytes + this.#longest);
  }

  /** Reads from a file and searches; what follows directly is in one piece with it. */
  read(file: number, start: number, size: number): void {
    for (let at = 0; at < size; ) {
      const got = this.#fill(file, start + at, Math.min(chunkBytes, size - at));
      if (got === 0) break;
      const filled = this.#buffer.subarray(0, this.#kept + got);
      this.#look(filled);
      this.#kept = Math.min(this.#longest, filled.length);
      this.#buffer.copyWithin(0, filled.length - this.#kept, filled.length);
      at += got;
    }
  }

  #fill(file: number, position: number, wanted: number): number {
    try {
      return readSync(file, this.#buffer, this.#kept, wanted, position);
    } catch (error) {
      // Pages of devices, and pages that were unmapped in the meantime.
      if (['EIO', 'EFAULT'].includes((error as NodeJS.ErrnoException).code ?? '')) return 0;
      throw error;
    }
  }

  #look(bytes: Buffer): void {
    const starts = this.#starts;
    for (let at = 0, last = bytes.length - 1; at < last; at++) {
      const start = (bytes[at] as number) | ((bytes[at + 1] as number) << 8);
      if (starts[start] === 0) continue;
      for (const { name, form } of this.#byStart.get(start) ?? []) {
        if (bytes.compare(form, 0, form.length, at, Math.min(at + form.length, bytes.length)) === 0)
          this.found.add(name);
      }
    }
  }

  /** The next bytes do not continue the previous ones. */
  apart(): void {
    this.#kept = 0;
  }

  end(): readonly string[] {
    this.#buffer.fill(0);
    return [...this.found].sort();
  }
}

interface Mapping {
  readonly start: number;
  readonly size: number;
  /** Whether a core dump leaves it out (MADV_DONTDUMP). */
  readonly dontDump: boolean;
}

/** The mappings that can be read. */
const mappingsOf = (pid: number): readonly Mapping[] => {
  const mappings: Mapping[] = [];
  let current: Omit<Mapping, 'dontDump'> | null = null;
  for (const line of readFileSync(`/proc/${pid}/smaps`, 'utf8').split('\n')) {
    const [, from = '', to = '', mode = '', name = ''] =
      /^([0-9a-f]+)-([0-9a-f]+) (\S+) [0-9a-f]+ \S+ \d+ *(.*)$/.exec(line) ?? [];
    if (from !== '') {
      const [start, end] = [Number.parseInt(from, 16), Number.parseInt(to, 16)];
      // The kernel's own pages are not memory of the process.
      current = mode.startsWith('r') && !/^\[v(?!dso)/.test(name) ? { start, size: end - start } : null;
    } else if (current !== null && line.startsWith('VmFlags:')) {
      mappings.push({ ...current, dontDump: / dd( |$)/.test(line) });
    }
  }
  return mappings;
};

/** The parts of a mapping that have been touched, in pages. */
function* touched(pagemap: number, { start, size }: Mapping): Generator<readonly [start: number, size: number]> {
  const entries = Buffer.alloc((size / pageBytes) * 8);
  const got = readSync(pagemap, entries, 0, entries.length, (start / pageBytes) * 8);
  let from = -1;
  for (let page = 0; page * 8 < got; page++) {
    // Present, or swapped (Documentation/admin-guide/mm/pagemap.rst).
    const there = (entries.readUInt8(page * 8 + 7) & 0xc0) !== 0;
    if (there && from < 0) from = page;
    if (!there && from >= 0) {
      yield [start + from * pageBytes, (page - from) * pageBytes];
      from = -1;
    }
  }
  if (from >= 0) yield [start + from * pageBytes, size - from * pageBytes];
}

/**
 * Which of the needles, by name, are in the memory of a process: in what a core dump leaves out, or
 * in the rest.
 */
export const searchMemory = (
  pid: number,
  part: 'left out of core dumps' | 'rest',
  needles: Needles,
): readonly string[] => {
  const files = [openSync(`/proc/${pid}/mem`, 'r'), openSync(`/proc/${pid}/pagemap`, 'r')] as const;
  try {
    const search = new Search(needles);
    for (const mapping of mappingsOf(pid)) {
      if (mapping.dontDump !== (part === 'left out of core dumps')) continue;
      search.apart();
      for (const [start, size] of touched(files[1], mapping)) search.read(files[0], start, size);
    }
    return search.end();
  } finally {
    for (const file of files) closeSync(file);
  }
};

/**
 * Why the kernel writes no core dump into a process's working directory here; null when it does.
 */
export const noCoreDumps = (): string | null => {
  const pattern = readFileSync('/proc/sys/kernel/core_pattern', 'utf8').trim();
  return /^[^|/]+$/.test(pattern) ? null : `core dumps go to ${pattern} here (/proc/sys/kernel/core_pattern)`;
};

/**
 * Ends a process with a core dump, as a crash would, and answers which of the needles are in it.
 */
export const searchCoreDump = async (pid: number, needles: Needles): Promise<readonly string[]> => {
  const folder = readlinkSync(`/proc/${pid}/cwd`);
  const before = new Set(readdirSync(folder));
  const { status, stderr } = spawnSync('prlimit', ['--core=unlimited', '--pid', String(pid)], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`prlimit: ${stderr}`);
  process.kill(pid, 'SIGABRT');
  const name = await until('the core dump', async () => {
    // The core dump is complete when the process has exited.
    return isAlive(pid) ? undefined : readdirSync(folder).find((each) => !before.has(each));
  });
  const path = join(folder, name);
  const file = openSync(path, 'r');
  try {
    const search = new Search(needles);
    search.read(file, 0, fstatSync(file).size);
    return search.end();
  } finally {
    closeSync(file);
    rmSync(path);
  }
};
