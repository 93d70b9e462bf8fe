// Who uses an installed file right now: processes that have the library mapped (a database that was
// not shut down), and agents that run the installed program. Read from /proc; only root can read
// what belongs to other users.
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import type { ProcessOf } from '../../server/contract/provider.ts';
import { codeOf } from './error.ts';
import { isRoot } from './owned-files.ts';

export interface Users {
  readonly processes: readonly ProcessOf[];
  readonly agents: readonly ProcessOf[];
  /** Processes of other users that could not be checked. */
  readonly hidden: number;
}

const deleted = ' (deleted)';

/** Command line's first word (a database names its processes there), else the kernel's name. */
const nameOf = (pid: number): string => {
  const [line = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  const name = line.split('/').at(-1) ?? '';
  return (name === '' ? readFileSync(`/proc/${pid}/comm`, 'utf8').trim() : name).slice(0, 60);
};

const mapped = (pid: number, library: string, inode: string | undefined): 'no' | 'current' | 'old' => {
  for (const line of readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n')) {
    const at = line.indexOf('/');
    if (at < 0) continue;
    const path = line.slice(at);
    if (path === `${library}${deleted}`) return 'old';
    // A path in another mount name space is another file, and the same file may be known there by
    // another name: the inode number decides.
    const [, , , , number] = line.split(/\s+/, 5);
    if (path === library || (number === inode && path.endsWith('/libdke_pkcs11.so')))
      return number === inode ? 'current' : 'old';
  }
  return 'no';
};

/** Users of the library at this path and of the agent's program below `agentFolder`. */
export const usersOf = (library: string, agentFolder: string): Users => {
  const inode = statSync(library, { throwIfNoEntry: false, bigint: true })?.ino.toString();
  const processes: ProcessOf[] = [];
  const agents: ProcessOf[] = [];
  let hidden = 0;
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry) || Number(entry) === process.pid) continue;
    const pid = Number(entry);
    try {
      const program = readlinkSync(`/proc/${pid}/exe`);
      if (program.startsWith(`${agentFolder}/`)) {
        agents.push({ pid, name: nameOf(pid), old: program.endsWith(deleted) });
        continue;
      }
      const how = mapped(pid, library, inode);
      if (how !== 'no') processes.push({ pid, name: nameOf(pid), old: how === 'old' });
    } catch (error) {
      // The process has ended in the meantime, is the kernel's own, or may not be read.
      if (!isRoot() && ['EACCES', 'EPERM'].includes(codeOf(error) ?? '')) hidden++;
    }
  }
  return { processes, agents, hidden };
};
