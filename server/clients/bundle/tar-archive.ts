// A tar archive (POSIX.1-2017, pax, section "ustar Interchange Format"): the blocks around the
// content of each file. Works in Node and in browsers, and never copies contents: the caller puts
// blocks and contents one after the other.

export interface ArchiveFile {
  /** At most 100 characters of ASCII. */
  readonly name: string;
  /** Permission bits. */
  readonly mode: number;
  readonly content: Uint8Array<ArrayBuffer>;
}

const block = 512;
const ascii = new TextEncoder();

const headerOf = ({ name, mode, content }: ArchiveFile, modifiedAt: number): Uint8Array<ArrayBuffer> => {
  const header = new Uint8Array(block);
  const put = (at: number, text: string): void => header.set(ascii.encode(text), at);
  const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, '0')}\0`;
  if (name.length > 100 || !/^[\x20-\x7e]+$/.test(name))
    throw new RangeError('the name of a file in the archive must have 1 to 100 characters of ASCII');
  put(0, name);
  put(100, octal(mode, 7));
  put(108, octal(0, 7));
  put(116, octal(0, 7));
  put(124, octal(content.length, 11));
  put(136, octal(modifiedAt, 11));
  put(156, '0');
  put(257, 'ustar\x0000');
  put(265, 'root');
  put(297, 'root');
  // The checksum counts its own field as spaces.
  put(148, ' '.repeat(8));
  const checksum = header.reduce((sum, byte) => sum + byte, 0);
  put(148, `${octal(checksum, 6)} `);
  return header;
};

/** The pieces of an archive, in order. `modifiedAt`: of every file, in seconds since 1970. */
export const archivePieces = (
  files: readonly ArchiveFile[],
  modifiedAt: number,
): readonly Uint8Array<ArrayBuffer>[] => [
  ...files.flatMap((file) => [
    headerOf(file, modifiedAt),
    file.content,
    // The zeros that fill the last block.
    new Uint8Array((block - (file.content.length % block)) % block),
  ]),
  new Uint8Array(2 * block),
];
