// The folder of packages that the service distributes ([server] packages_directory), as
// `npm run package` writes it. Only files that its SHA256SUMS names are offered, and only after
// their bytes matched. Links to packages are not followed.

import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ServiceError } from '../../base/service-error.ts';
import { readPackageName } from '../../domain/bundle-targets.ts';
import type { DistributedPackage, DistributedPackages } from '../../ports/packages.ts';

/** Longer lists are not ours. */
const mostSums = 1 << 16;

const unavailable = (message: string, cause?: unknown): ServiceError =>
  new ServiceError('unavailable', message, {
    hint: 'copy the packages and their SHA256SUMS to [server] packages_directory again',
    cause,
  });

const readSums = async (folder: string): Promise<ReadonlyMap<string, string>> => {
  const path = join(folder, 'SHA256SUMS');
  const fail = (error: unknown): never => {
    throw unavailable(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`, error);
  };
  if ((await stat(path).catch(fail)).size > mostSums) throw unavailable(`${path} is too long`);
  const text = await readFile(path, 'utf8').catch(fail);
  return new Map(
    text.split('\n').flatMap((line) => {
      const [, sum, name] = /^([0-9a-f]{64}) [ *]([A-Za-z0-9._+~-]{1,100})$/.exec(line) ?? [];
      return sum === undefined || name === undefined ? [] : [[name, sum] as const];
    }),
  );
};

/**
 * Closes the file at its end, and when the reader stops, even before it has read anything: a
 * generator would not notice that.
 */
const contentOf = (file: FileHandle): AsyncIterable<Uint8Array> => {
  const parts = file.createReadStream({ start: 0, autoClose: false })[Symbol.asyncIterator]();
  const close = async (): Promise<IteratorReturnResult<undefined>> => {
    await parts.return?.();
    await file.close();
    return { done: true, value: undefined };
  };
  return {
    [Symbol.asyncIterator]: () => ({
      next: async () => {
        try {
          const { value, done } = await parts.next();
          return done === true ? await close() : { done: false, value: value as Uint8Array };
        } catch (error) {
          await close();
          throw error;
        }
      },
      return: close,
    }),
  };
};

/** `folder` undefined: the service distributes nothing. */
export const openPackageDirectory = (folder: string | undefined): DistributedPackages => {
  /** State and checksum of each file when its bytes matched last, by file name. */
  const matched = new Map<string, string>();

  const list = async (): Promise<readonly DistributedPackage[]> => {
    if (folder === undefined) return [];
    const found: DistributedPackage[] = [];
    for (const [name, sha256] of await readSums(folder)) {
      const described = readPackageName(name);
      if (described === null) continue;
      const file = await lstat(join(folder, name)).catch(() => undefined);
      if (file?.isFile() === true) found.push({ name, ...described, size: file.size, sha256 });
    }
    return found.sort((a, b) => (a.name < b.name ? -1 : 1));
  };

  const hash = async (file: FileHandle): Promise<string> => {
    const sum = createHash('sha256');
    for await (const part of file.createReadStream({ start: 0, autoClose: false })) sum.update(part as Buffer);
    return sum.digest('hex');
  };

  return {
    list,
    open: async (name) => {
      const known = (await list()).find((each) => each.name === name);
      if (known === undefined || folder === undefined)
        throw new ServiceError('not-found', 'the service distributes no package with this name', {
          hint: 'dke package list',
        });
      const file = await open(join(folder, name), constants.O_RDONLY | constants.O_NOFOLLOW).catch((error: unknown) => {
        throw unavailable(`the package ${name} cannot be read (${(error as NodeJS.ErrnoException).code})`, error);
      });
      try {
        const { dev, ino, size, mtimeNs, ctimeNs } = await file.stat({ bigint: true });
        const state = [dev, ino, size, mtimeNs, ctimeNs, known.sha256].join(':');
        if (matched.get(name) !== state) {
          if ((await hash(file)) !== known.sha256)
            throw unavailable(`the package ${name} does not match its checksum in SHA256SUMS`);
          matched.set(name, state);
        }
        return contentOf(file);
      } catch (error) {
        await file.close();
        throw error;
      }
    },
  };
};

/**
 * Reads every package: how many match their checksums, and what is wrong with the others or with
 * the folder.
 */
export const inspectPackageDirectory = async (
  folder: string,
): Promise<{ readonly matching: number; readonly faults: readonly string[] }> => {
  const { list, open: openPackage } = openPackageDirectory(folder);
  const faults: string[] = [];
  const note = (error: unknown): readonly never[] => {
    faults.push((error as Error).message);
    return [];
  };
  let matching = 0;
  for (const { name } of await list().catch(note))
    try {
      await (await openPackage(name))[Symbol.asyncIterator]().return?.();
      matching++;
    } catch (error) {
      note(error);
    }
  return { matching, faults };
};
