// Audit sink `file`: one line a record or checkpoint, in the form of an export, so that `dke audit verify` reads it. Every batch is on
// the disk before it counts. A file that has become too long gets the number of its last record behind its name, and a new one
// is begun. Nothing is written twice: what the file ends with is looked at first.

import {
  closeSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { parseCheckpoint } from '../base/checkpoint.ts';
import type { AuditItem, AuditSink } from '../ports/audit-sink.ts';

export interface FileSinkOptions {
  readonly name: string;
  readonly path: string;
  readonly rotateBytes: number;
  /** Files beside the current one; the oldest go first. 0: all stay. */
  readonly keep: number;
}

/** Longer than any line. */
const tailBytes = 1 << 20;
const suffix = (sequence: number): string => String(sequence).padStart(12, '0');

interface End {
  readonly record: number;
  readonly checkpoint: number;
}

/** What the whole lines of a file end with; a line that was cut off is taken away. */
const readEnd = (fd: number): End => {
  const { size } = fstatSync(fd);
  const start = Math.max(0, size - tailBytes);
  const tail = Buffer.alloc(size - start);
  readSync(fd, tail, 0, tail.length, start);
  const whole = tail.lastIndexOf(10) + 1;
  if (whole < tail.length) ftruncateSync(fd, start + whole);
  let record = 0;
  let checkpoint = 0;
  for (const line of tail.subarray(0, whole).toString('utf8').split('\n')) {
    try {
      const value = JSON.parse(line) as { readonly sequence?: unknown; readonly checkpoint?: unknown };
      if (typeof value.sequence === 'number') record = value.sequence;
      if (typeof value.checkpoint === 'string') checkpoint = parseCheckpoint(value.checkpoint)?.size ?? checkpoint;
    } catch {
      // The first line of the part that was read is no whole one.
    }
  }
  return { record, checkpoint };
};

const syncFolder = (path: string): void => {
  const fd = openSync(dirname(path), 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
};

export const openFileSink = ({ name, path, rotateBytes, keep }: FileSinkOptions): AuditSink => {
  const rotated = (): readonly string[] =>
    readdirSync(dirname(path))
      .filter(
        (file) => file.startsWith(`${basename(path)}.`) && /^\d{12,}$/.test(file.slice(basename(path).length + 1)),
      )
      .sort();

  const rotate = (last: number): void => {
    renameSync(path, `${path}.${suffix(last)}`);
    const old = rotated();
    if (keep > 0)
      for (const file of old.slice(0, Math.max(0, old.length - keep))) unlinkSync(join(dirname(path), file));
    syncFolder(path);
  };

  const append = (items: readonly AuditItem[]): void => {
    // Opened anew each time: whoever moves the file away finds nothing written into it later.
    const fd = openSync(path, 'a+', 0o600);
    let end: End;
    let size: number;
    try {
      end = readEnd(fd);
      const before = fstatSync(fd).size;
      // Of a file that was just begun the name of the one before tells.
      const known = Math.max(end.record, Number(rotated().at(-1)?.slice(-12) ?? 0));
      const fresh = items.filter((item) =>
        item.kind === 'record' ? item.sequence > known : item.sequence > end.checkpoint && item.sequence >= known,
      );
      const bytes = Buffer.from(fresh.map(({ text }) => `${text}\n`).join(''), 'utf8');
      try {
        for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
        fsyncSync(fd);
      } catch (error) {
        ftruncateSync(fd, before);
        throw error;
      }
      if (before === 0) syncFolder(path);
      size = before + bytes.length;
    } finally {
      closeSync(fd);
    }
    const last = items.at(-1);
    if (size >= rotateBytes && last !== undefined) rotate(last.sequence);
  };

  return {
    name,
    type: 'file',
    target: path,
    send: async (items) => append(items),
    close: () => Promise.resolve(),
  };
};
