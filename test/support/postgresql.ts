// PostgreSQL 15 as Debian installs it, for tests that run servers of their own.
import { execFileSync } from 'node:child_process';

export const postgresqlPrograms = '/usr/lib/postgresql/15/bin';

/** The user that runs a server: PostgreSQL's own when the tests are root's, which it refuses; undefined: the tests' own. */
export const postgresqlUser = (): { readonly uid: number; readonly gid: number } | undefined => {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string): number => Number(execFileSync('id', [flag, 'postgres']).toString());
  return { uid: id('-u'), gid: id('-g') };
};
