// What Linux says of this process and its host: proc(5).

import { readdirSync, readFileSync } from 'node:fs';
import type { HostUptime } from '../../ports/deadlines.ts';
import type { ProcessFacts } from '../../ports/meter.ts';

export const readProcessFacts = (): ProcessFacts => {
  const [, most = '0'] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  // The directory that is read is open itself.
  return { openFiles: readdirSync('/proc/self/fd').length - 1, mostFiles: Number(most) };
};

/** The file is missing in some containers: the time since the last look is not known then. */
export const readHostUptime = (): HostUptime => {
  try {
    const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return { bootId, ms: Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]) * 1000 };
  } catch {
    return { bootId: '', ms: 0 };
  }
};
