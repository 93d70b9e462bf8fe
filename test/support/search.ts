// The search for plaintext: every file below a folder, whatever its name, for texts in the
// encodings that databases write.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const encodings = ['utf8', 'utf16le'] as const;

const needlesOf = (text: string): readonly Buffer[] => [
  ...encodings.map((encoding) => Buffer.from(text, encoding)),
  Buffer.from(text, 'utf16le').swap16(),
  Buffer.from(Buffer.from(text).toString('hex')),
];

const filesBelow = (folder: string): readonly string[] =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

/** The files below the folders that hold one of the texts. */
export const filesHolding = (folders: readonly string[], ...texts: readonly string[]): readonly string[] => {
  const needles = texts.flatMap(needlesOf);
  return folders.flatMap(filesBelow).filter((path) => {
    const bytes = readFileSync(path);
    return needles.some((needle) => bytes.includes(needle));
  });
};
