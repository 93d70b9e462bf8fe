// Sink `file`: the lines of an export, so that `dke audit verify` reads it, behind a first line
// that names the log. Every batch is on the disk before it counts. A file that has become too long
// gets the number of its last record behind its name, and a new one is started. Nothing is written
// twice: the end of the file is read first. Records of another log (after an older database was
// accepted, or from a rebuilt service) never go into the same file: the files of the former log get
// its id before their names.
//
// A number of a record proves nothing: after older files were put back, or beside a copy of the
// data directory, the same log has other records of the same numbers. So the last record that both
// have is compared. Where it differs, both histories are kept: the files of the one that is there
// get a name with its last record's hash, and the log is written again from its first record.

import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { canonicalJson } from '../../base/bytes.ts';
import { parseCheckpoint } from '../../base/checkpoint.ts';
import { localDisk } from '../../base/disk-files.ts';
import { putInPlace, syncFolder } from '../../base/durable-files.ts';
import { leafHash } from '../../base/merkle-tree.ts';
import type { ForeignDisk } from '../../ports/foreign-disk.ts';
import type { KnownRecord, LogFork, LogItem, LogSink } from '../../ports/log-sink.ts';

export interface FileSinkOptions {
  readonly name: string;
  readonly path: string;
  readonly rotateBytes: number;
  /** Files next to the current one; the oldest go first. 0: all stay. */
  readonly keep: number;
}

/** Longer than any line. */
const tailBytes = 1 << 20;
const suffix = (sequence: number): string => String(sequence).padStart(12, '0');

interface Content {
  /** The log that its records are from; undefined: it has none yet. */
  readonly log: string | undefined;
  readonly record: number;
  readonly checkpoint: number;
  /** The line of the last record. */
  readonly last: string | undefined;
}

const parseLine = (line: string): Readonly<Record<string, unknown>> => {
  try {
    return JSON.parse(line) as Readonly<Record<string, unknown>>;
  } catch {
    // The first line of a part that was read is not a whole one.
    return {};
  }
};

/** Name of the log for a file that does not say which log it is of. */
const unnamed = 'unnamed';

/**
 * Opens the file of the log, and no other file of the service's user: anyone who controls the disk
 * could put a link in its place, and the file that it names would be cut off and written to.
 */
const openOwn = (path: string): number => {
  const { O_RDWR, O_APPEND, O_CREAT, O_NOFOLLOW } = constants;
  try {
    return openSync(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ELOOP') throw error;
    throw new Error(`${path} is a symbolic link: remove it, or name the file itself`, { cause: error });
  }
};

/**
 * The log that a file is of, and the end of its whole lines; a line that was cut off is removed.
 */
const readContent = (fd: number): Content => {
  const { size } = fstatSync(fd);
  const head = Buffer.alloc(Math.min(size, 1024));
  readSync(fd, head, 0, head.length, 0);
  const { log: named } = parseLine(head.toString('utf8').split('\n', 1)[0] ?? '');
  const start = Math.max(0, size - tailBytes);
  const tail = Buffer.alloc(size - start);
  readSync(fd, tail, 0, tail.length, start);
  const whole = tail.lastIndexOf(10) + 1;
  if (whole < tail.length) ftruncateSync(fd, start + whole);
  let log = typeof named === 'string' ? named : undefined;
  let record = 0;
  let checkpoint = 0;
  let last: string | undefined;
  for (const line of tail.subarray(0, whole).toString('utf8').split('\n')) {
    const value = parseLine(line);
    if (typeof value.sequence === 'number') [record, last] = [value.sequence, line];
    const note = typeof value.checkpoint === 'string' ? parseCheckpoint(value.checkpoint) : null;
    if (note === null) continue;
    checkpoint = note.size;
    // Files of before the first line named the log.
    if (named === undefined) log = note.origin;
  }
  return { log: log ?? (whole === 0 ? undefined : unnamed), record, checkpoint, last };
};
const nothing: Content = { log: undefined, record: 0, checkpoint: 0, last: undefined };

const hashOf = (line: string): string => leafHash(Buffer.from(line, 'utf8')).toString('hex');

/** The rotated files of this file's folder, the oldest first. */
const rotatedFiles = (path: string, names = readdirSync(dirname(path))): readonly string[] =>
  names
    .filter((file) => file.startsWith(`${basename(path)}.`) && /^\d{12,}$/.test(file.slice(basename(path).length + 1)))
    .sort();

const pieceBytes = 1 << 18;
/** The lines of a file; one that is longer than any of a record ends it. */
async function* linesOf(disk: ForeignDisk, path: string): AsyncGenerator<string> {
  const file = await disk.open(path, 'r');
  try {
    let rest = Buffer.alloc(0);
    for (let at = 0; ; ) {
      const piece = await file.read(at, pieceBytes);
      if (piece.length === 0) break;
      at += piece.length;
      rest = Buffer.concat([rest, piece]);
      const whole = rest.lastIndexOf(0x0a) + 1;
      if (whole > 0)
        yield* rest
          .subarray(0, whole - 1)
          .toString('utf8')
          .split('\n');
      rest = rest.subarray(whole);
      if (rest.length > tailBytes) return;
    }
    if (rest.length > 0) yield rest.toString('utf8');
  } finally {
    await file.close();
  }
}

/** What the files of a sink have of a log behind a record. A line that was cut off ends it. */
export async function* readFileSink(
  path: string,
  log: string,
  after: number,
  disk: ForeignDisk = localDisk,
): AsyncGenerator<string> {
  const folder = dirname(path);
  if (!(await disk.exists(folder))) return;
  const names = [...(await disk.list(folder))];
  const files = [...rotatedFiles(path, names).filter((file) => Number(file.slice(-12)) > after), basename(path)];
  for (const file of files) {
    if (!names.includes(file)) continue;
    let isOfLog: boolean | undefined;
    for await (const line of linesOf(disk, join(folder, file))) {
      const value = parseLine(line);
      isOfLog ??= value.log === log;
      if (!isOfLog) break;
      const number = typeof value.sequence === 'number' ? value.sequence : Number.NaN;
      const note = typeof value.checkpoint === 'string' ? parseCheckpoint(value.checkpoint) : null;
      if (number > after || (note !== null && note.size > after)) yield line;
    }
  }
}

export type FileSink = LogSink & Required<Pick<LogSink, 'setAside'>>;

export const openFileSink = ({ name, path, rotateBytes, keep }: FileSinkOptions): FileSink => {
  const rotated = (): readonly string[] => rotatedFiles(path);

  const rotate = (last: number): void => {
    putInPlace(path, `${path}.${suffix(last)}`);
    const old = rotated();
    if (keep > 0)
      for (const file of old.slice(0, Math.max(0, old.length - keep))) unlinkSync(join(dirname(path), file));
    syncFolder(dirname(path));
  };

  /**
   * Files of another log. The current one goes last: one that is cut off is finished by the next
   * batch.
   */
  const moveAside = (log: string, history = ''): string => {
    const id = `${log.replace(/^.*\//, '').replaceAll(/[^\w-]/g, '_')}${history}`;
    const folder = dirname(path);
    const asideOf = (file: string): string => join(folder, `${id}.${file}`);
    for (const file of [...rotated(), basename(path)]) {
      if (existsSync(asideOf(file)))
        throw new Error(
          `${path} has records of another log, ${log}, and ${asideOf(file)} is there already: give every service a file of its own`,
        );
      if (existsSync(join(folder, file))) putInPlace(join(folder, file), asideOf(file));
    }
    return asideOf(basename(path));
  };

  /**
   * The line of a record, or of the last one where `sequence` is none; the newest file first.
   * Undefined: an operator has taken it away.
   */
  const lineOf = (content: Content, sequence: number): string | undefined => {
    if (content.record === sequence) return content.last;
    const files = [...rotated().filter((file) => Number(file.slice(-12)) >= sequence), basename(path)].reverse();
    for (const file of files) {
      if (!existsSync(join(dirname(path), file))) continue;
      const lines = readFileSync(join(dirname(path), file), 'utf8').split('\n');
      const found = lines.find((line) => parseLine(line).sequence === sequence);
      if (found !== undefined) return found;
    }
    return undefined;
  };

  /** Compares the last record that both have. `known`: the last one that is here. */
  const forkOf = (
    content: Content,
    known: number,
    items: readonly LogItem[],
    before: KnownRecord | undefined,
  ): LogFork | undefined => {
    const again = items.findLast(({ kind, sequence }) => kind !== 'checkpoint' && sequence <= known);
    const expected = again === undefined ? before : { sequence: again.sequence, hash: hashOf(again.text) };
    if (expected === undefined || expected.sequence > known) return undefined;
    const line = lineOf(content, expected.sequence);
    if (line === undefined || hashOf(line) === expected.hash) return undefined;
    const last = lineOf(content, known);
    return { sequence: expected.sequence, hash: hashOf(last ?? line) };
  };

  /** The file of this log, and what it has. */
  const open = (log: string): { readonly fd: number; readonly content: Content } => {
    // Opened again each time: a file that was moved away gets nothing more.
    const fd = openOwn(path);
    try {
      const content = readContent(fd);
      if (content.log === undefined || content.log === log) return { fd, content };
      moveAside(content.log);
    } catch (error) {
      closeSync(fd);
      throw error;
    }
    closeSync(fd);
    return { fd: openOwn(path), content: nothing };
  };

  const append = (items: readonly LogItem[], log: string, before: KnownRecord | undefined): LogFork | undefined => {
    const { fd, content } = open(log);
    let size: number;
    try {
      const length = fstatSync(fd).size;
      // A file that was just begun has no record: the name of the file before says the newest one.
      const known = Math.max(content.record, Number(rotated().at(-1)?.slice(-12) ?? 0));
      const fork = forkOf(content, known, items, before);
      if (fork !== undefined) return fork;
      const fresh = items.filter((item) =>
        item.kind === 'checkpoint'
          ? item.sequence > content.checkpoint && item.sequence >= known
          : item.sequence > known,
      );
      const texts = fresh.map(({ text }) => `${text}\n`);
      if (length === 0) texts.unshift(`${canonicalJson({ log })}\n`);
      const bytes = Buffer.from(texts.join(''), 'utf8');
      try {
        for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
        fsyncSync(fd);
      } catch (error) {
        ftruncateSync(fd, length);
        throw error;
      }
      if (length === 0) syncFolder(dirname(path));
      size = length + bytes.length;
    } finally {
      closeSync(fd);
    }
    const last = items.at(-1);
    if (size >= rotateBytes && last !== undefined) rotate(last.sequence);
    return undefined;
  };

  return {
    name,
    type: 'file',
    target: path,
    wholeLogs: true,
    send: async (items, log, before) => append(items, log, before),
    setAside: async (log, { hash }) => moveAside(log, `.fork-${hash.slice(0, 16)}`),
    close: () => Promise.resolve(),
  };
};
