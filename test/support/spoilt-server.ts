// Starts a server on a damaged copy of another server's data, and returns how it refused and
// whether it changed anything that was there.
import { chmodSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ServerEnded, startServerProcess } from './server-process.ts';

export interface Refusal {
  /** 0 when it started. */
  readonly code: number | null;
  /** What it wrote on its standard error. */
  readonly message: string;
  /** Files of the data directory that are not as they were before the start. */
  readonly changed: readonly string[];
}

export interface SpoiltStart {
  /** Further tables of dke.toml; `{copy}` represents the folder of the copy. */
  readonly toml?: string;
  readonly through?: readonly string[];
}

const watched = ['dke.db', 'root.key', 'tls.key', 'tls.crt'];

/**
 * `folder` is that of a server that has stopped; `spoil` is given the copy of its data directory,
 * and the copy's folder.
 */
export const startSpoilt = async (
  folder: string,
  spoil: (data: string, copy: string) => void,
  { toml, through = [] }: SpoiltStart = {},
): Promise<Refusal> => {
  const copy = mkdtempSync(join(tmpdir(), 'dke-spoilt-'));
  const data = join(copy, 'dke-data');
  cpSync(join(folder, 'dke-data'), data, { recursive: true });
  for (const name of ['', ...readdirSync(data)])
    chmodSync(join(data, name), statSync(join(folder, 'dke-data', name)).mode & 0o777);
  try {
    spoil(data, copy);
    const content = (): ReadonlyMap<string, string> =>
      new Map(
        watched.map((name) => [
          name,
          statSync(join(data, name), { throwIfNoEntry: false })?.isFile() === true
            ? readFileSync(join(data, name)).toString('hex')
            : 'no file',
        ]),
      );
    const before = content();
    const options = { folder: copy, through, ...(toml === undefined ? {} : { toml: toml.replaceAll('{copy}', copy) }) };
    const { code, message } = await startServerProcess(options).then(
      async (server) => {
        await server.stop();
        return { code: 0, message: '' };
      },
      (error: ServerEnded) => ({ code: error.exitCode, message: error.message }),
    );
    const after = content();
    return { code, message, changed: watched.filter((name) => after.get(name) !== before.get(name)) };
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
};

/** A folder with the data of a server that was used and stopped. */
export const usedFolder = async (): Promise<string> => {
  const server = await startServerProcess();
  await server.stop();
  return server.folder;
};
