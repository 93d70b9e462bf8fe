// Whether a command that root is asked to paste acts where its text says. A folder on the way that
// belongs to another user, or that others can write, can be replaced by a link between the print
// and the paste: then root makes, opens or gives away another folder. Links of root are followed,
// step by step, as the installer does.

import { lstatSync, readlinkSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';

/** More links than this are a circle, for the kernel too. */
const mostLinks = 40;

interface RootWay {
  readonly exists: boolean;
  /** Why others than root can replace the folder, or one above it; undefined: only root can. */
  readonly fault?: string;
}

/** What is in the way of root to a path, as this process sees it. */
export const wayOfRoot = (path: string): RootWay => {
  const namesOf = (text: string): string[] => text.split('/').filter((each) => each !== '' && each !== '.');
  const left = namesOf(resolve(path));
  let real = '/';
  let links = 0;
  try {
    for (;;) {
      const above = lstatSync(real);
      const name = left.shift();
      if (name === undefined) return { exists: true };
      if (!above.isDirectory()) return { exists: true, fault: `${real} is not a folder` };
      if (above.uid !== 0) return { exists: true, fault: `${real} belongs to user ${above.uid}` };
      if ((above.mode & 0o022) !== 0) return { exists: true, fault: `users other than root can write ${real}` };
      const next = name === '..' ? dirname(real) : join(real, name);
      const state = lstatSync(next, { throwIfNoEntry: false });
      // Root makes what is missing, below a folder that only root can write.
      if (state === undefined)
        return left.includes('..') ? { exists: false, fault: `${next} is missing` } : { exists: false };
      if (!state.isSymbolicLink()) {
        real = next;
        continue;
      }
      links += 1;
      if (links > mostLinks) return { exists: true, fault: `${next} leads in a circle` };
      const to = readlinkSync(next);
      if (isAbsolute(to)) real = '/';
      left.unshift(...namesOf(to));
    }
  } catch (error) {
    return { exists: false, fault: `${real} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'})` };
  }
};

const seen = new Map<string, RootWay>();
/**
 * Asked once for each path: `dke doctor` asks as root, and then becomes the user of the service,
 * who does not see every folder.
 */
export const seenByRoot = (path: string): RootWay => {
  const known = seen.get(path) ?? wayOfRoot(path);
  seen.set(path, known);
  return known;
};
