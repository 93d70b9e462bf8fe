// Files that the service trusts: who may write them and, for secrets, read them.

import { lstatSync, type Stats, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { shellWord } from '../../base/command-line.ts';
import { forbiddenModeOf, requiredMode } from '../../base/secret-mode.ts';
import { StartError } from '../../base/start-error.ts';

const octal = (mode: number): string => (mode & 0o7777).toString(8).padStart(3, '0');

/**
 * Checks who may write (and, for secrets, read) a file that the service trusts. Its owner must be
 * root or the user of this process; other users must not be able to write it, to read a secret
 * (base/secret-mode.ts), or to replace the file in its folder. Links are followed: the file itself
 * counts. Throws StartError 'permission' with one line that names the path and the required mode.
 */
export const checkFile = (path: string, kind: 'public' | 'secret'): void => {
  const statOf = (target: string): Stats => {
    try {
      return statSync(target);
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
      throw new StartError('permission', `${target} cannot be read (${code})`, { cause: error });
    }
  };
  const own = process.geteuid?.() ?? 0;
  const file = statOf(path);
  const required = kind === 'secret' ? requiredMode : '644 or stricter';
  if (!file.isFile()) throw new StartError('permission', `${path} is not a regular file`);
  const refuse = (evidence: string, command: string, target = path): StartError =>
    new StartError('permission', evidence, { fix: `${command} ${shellWord(target)}` });
  if (file.uid !== own && file.uid !== 0)
    throw refuse(`${path} belongs to user ${file.uid}: it must belong to user ${own} or root`, `chown ${own}`);
  if (lstatSync(path).isSymbolicLink() && lstatSync(path).uid !== own && lstatSync(path).uid !== 0)
    throw refuse(`${path} is a link of another user: it must belong to user ${own} or root`, `chown -h ${own}`);
  const forbidden = kind === 'secret' ? forbiddenModeOf(file.uid, own) : 0o022;
  if ((file.mode & forbidden) !== 0)
    throw refuse(
      `${path} has mode ${octal(file.mode)}: it must have mode ${required}`,
      `chmod ${kind === 'secret' ? '600' : 'go-w'}`,
    );
  const folder = dirname(resolve(path));
  const folderState = statOf(folder);
  const sticky = (folderState.mode & 0o1000) !== 0;
  if (folderState.uid !== own && folderState.uid !== 0)
    throw refuse(
      `${folder} belongs to user ${folderState.uid}, who could replace files in it: it must belong to user ${own} or root`,
      `chown ${own}`,
      folder,
    );
  if ((folderState.mode & 0o022) !== 0 && !sticky)
    throw refuse(
      `${folder} has mode ${octal(folderState.mode)}: others could replace files in it; it must have mode 755 or stricter`,
      'chmod go-w',
      folder,
    );
};
