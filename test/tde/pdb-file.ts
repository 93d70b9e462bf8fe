// The .pdb file into which a pluggable database is unplugged, in a format of our own: its data
// files as they lie on the disk, whose headers name the master key of the source, and no key.
import { readFileSync, writeFileSync } from 'node:fs';
import type { Container, DataFile } from './control-file.ts';

export interface ArchivedFile extends DataFile {
  readonly table: readonly string[];
  readonly bytes: Buffer;
}
/** The parts of a pluggable database. */
export interface Archive {
  readonly keys: Container['keys'];
  readonly files: readonly ArchivedFile[];
}

/** One line of JSON with the contents, then the files unchanged. */
export const writeArchive = (path: string, { keys, files }: Archive): void => {
  const head = { keys, files: files.map(({ bytes, ...file }) => ({ ...file, length: bytes.length })) };
  writeFileSync(path, Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), ...files.map(({ bytes }) => bytes)]));
};

export const readArchive = (path: string): Archive => {
  const all = readFileSync(path);
  const line = all.indexOf('\n');
  const head = JSON.parse(all.subarray(0, line).toString('utf8')) as {
    readonly keys: Container['keys'];
    readonly files: readonly (Omit<ArchivedFile, 'bytes'> & { readonly length: number })[];
  };
  let at = line + 1;
  const files = head.files.map(({ length, ...file }) => {
    at += length;
    return { ...file, bytes: all.subarray(at - length, at) };
  });
  return { keys: head.keys, files };
};
