// What Linux says of this process, for the metrics: proc(5).

import { readdirSync, readFileSync } from 'node:fs';
import type { ProcessFacts } from '../ports/meter.ts';

export const readProcessFacts = (): ProcessFacts => {
  const [, most = '0'] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  // The directory that is read is open itself.
  return { openFiles: readdirSync('/proc/self/fd').length - 1, mostFiles: Number(most) };
};
