// What a start that fails says: the errors of the parts, in the words of an operator.

import { existsSync, lstatSync } from 'node:fs';
import { join } from 'node:path';
import { CoreError } from '../../addon/core.ts';
import { StoreError } from '../adapters/store/engine/store-error.ts';
import { command, shellWord } from '../base/command-line.ts';
import { ServiceError } from '../base/service-error.ts';
import { StartError } from '../base/start-error.ts';
import { RootKeyError } from '../ports/key-ring.ts';
import type { Config } from './config/config.ts';
import { asServiceUser } from './host/unit.ts';

/** Where the database of a configuration is, in words that an operator can follow. */
export const databaseOf = ({ postgresql, dataDirectory }: Config): string =>
  postgresql === undefined
    ? join(dataDirectory, 'dke.db')
    : `the database ${postgresql.database} on ${postgresql.host}`;

/**
 * A restore replaces nothing: what is there goes aside first. Its folder belongs to the user of the
 * service, who types both commands: root would follow what this user has put there.
 */
const putBack = (path: string): string => {
  const restore = asServiceUser('dke root restore FILE');
  if (!existsSync(path)) return `put it back from its backup: ${restore}; nothing was changed`;
  const aside = `${path}.damaged`;
  if (lstatSync(aside, { throwIfNoEntry: false }) !== undefined)
    return `put it back from its backup: first move ${aside}, which is there already, to another folder, then start again; nothing was changed`;
  return (
    `put it back from its backup: ${asServiceUser(command`mv -nT ${path} ${aside}`)} && ${restore}; ` +
    `when the service has started, destroy ${aside}, which may open older databases; nothing was changed`
  );
};
/**
 * The root key file itself can be opened. Who writes the database can make it look so: a root key
 * that is moved away on its word is lost.
 */
const whichOfBoth = (path: string): string =>
  `move neither before you know which was replaced: ${command`ls -l ${path}`} shows when the root key was written. If that is a change of the ` +
  'root key that you know, restore the database, else the root key (docs/root-key.md, "Database and root key do not fit"); nothing was changed';

/** How errors of the core end that a restore repairs. */
const repaired = /: (?:restore it from its copy|put it back; without it the store cannot be opened)$/;

/** What to do about a file of the root key that the core refuses, where its words do not say it. */
const rootFix = (error: CoreError, path: string): string | undefined => {
  if (!error.message.startsWith(`${path} `)) return undefined;
  if (/ has mode /.test(error.message)) return asServiceUser(`chmod 400 ${shellWord(path)}`);
  if (/ belongs? to /.test(error.message)) return `chown -h ${process.geteuid?.() ?? 0} ${shellWord(path)}`;
  return error.message.includes(': ') ? undefined : putBack(path);
};

export const toStartError = (error: unknown, config: Config): unknown => {
  if (error instanceof StoreError) return new StartError('store', error.evidence, { fix: error.fix, cause: error });
  if (error instanceof RootKeyError)
    return new StartError(
      'root-key',
      `${databaseOf(config)} and the root key ${config.root.path} do not belong together, or one of them is damaged: ${error.message}`,
      {
        fix: whichOfBoth(config.root.path),
        cause: error,
      },
    );
  if (error instanceof ServiceError && error.code === 'key-tampered')
    return new StartError('store', `${databaseOf(config)}: ${error.message}: restore the database from a backup`, {
      cause: error,
    });
  // A database that is slow or away while the service starts. A start that is repeated completes
  // what this one has begun.
  if (error instanceof ServiceError && (error.code === 'unavailable' || error.code === 'dependency-timeout'))
    return new StartError('store', error.message, {
      fix: error.hint ?? 'check the database and its host, then start the service again',
      cause: error,
    });
  if (error instanceof CoreError) {
    if (error.code === 'memory-lock') return new StartError('memory', error.message, { cause: error });
    if (repaired.test(error.message))
      return new StartError('root-key', error.message.replace(repaired, ''), {
        fix: putBack(config.root.path),
        cause: error,
      });
    const told = { fix: rootFix(error, config.root.path), cause: error };
    if (error.code === 'permission') return new StartError('permission', error.message, told);
    if (error.code === 'format' || error.code === 'authentication-failed' || error.code === 'io')
      return new StartError('root-key', error.message, told);
  }
  return error;
};
