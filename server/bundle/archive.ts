// A tar archive (POSIX.1-2017, pax, section "ustar Interchange Format"): the blocks around the content of each file. Works in Node and
// in browsers, and never copies contents: the caller puts blocks and contents one after the other.

export interface ArchiveEntry {
  /** At most 100 characters of ASCII. */
  readonly name: string;
  /** Permission bits. */
  readonly mode: number;
  /** Bytes of the content. */
  readonly size: number;
}

const block = 512;
const ascii = new TextEncoder();

/** The header of a file. `modifiedAt`: seconds since 1970. */
export const entryHeader = ({ name, mode, size }: ArchiveEntry, modifiedAt: number): Uint8Array<ArrayBuffer> => {
  const header = new Uint8Array(block);
  const put = (at: number, text: string): void => header.set(ascii.encode(text), at);
  const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, '0')}\0`;
  if (name.length > 100 || !/^[\x20-\x7e]+$/.test(name))
    throw new RangeError('the name of an archive entry is too long');
  put(0, name);
  put(100, octal(mode, 7));
  put(108, octal(0, 7));
  put(116, octal(0, 7));
  put(124, octal(size, 11));
  put(136, octal(modifiedAt, 11));
  put(156, '0');
  put(257, 'ustar\x0000');
  put(265, 'root');
  put(297, 'root');
  // The checksum counts its own field as spaces.
  put(148, ' '.repeat(8));
  put(
    148,
    `${octal(
      header.reduce((sum, byte) => sum + byte, 0),
      6,
    )} `,
  );
  return header;
};

/** The zeros that fill the last block of a content. */
export const entryPadding = (size: number): Uint8Array<ArrayBuffer> => new Uint8Array((block - (size % block)) % block);

/** The end of an archive. */
export const archiveEnd = (): Uint8Array<ArrayBuffer> => new Uint8Array(2 * block);
