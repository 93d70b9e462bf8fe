// The PKCS#11 rows of this checkout beside those of another one, which is built, too: what a change costs. The two take turns in one run, so that
// what disturbs the machine disturbs both.

import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import type { Row } from './measurements.ts';
import { ourName, startOurs } from './ours.ts';
import { measure } from './pkcs11.ts';
import { pin } from './processes.ts';
import { microseconds, ratio, table, thousands } from './statistics.ts';

const other = 'other checkout';
/** A row may be slower by this much. */
const least = 0.97;

export const measureAgainst = async (
  checkout: string,
  rows: readonly Row[],
  rounds: number,
  say: (text: string) => void,
): Promise<string> => {
  const ours = await startOurs();
  try {
    const before = await startOurs(other, resolve(checkout));
    try {
      const both = [ours, before];
      await measure({ title: 'warm-up', scenario: 'cbc', processes: 1, iterations: { default: 2_000 } }, both, 1);
      const lines: string[][] = [['what', ourName, other, 'ratio', `at least ${least}`]];
      for (const row of rows) {
        say(`measuring ${row.title}`);
        for (const each of both) pin(each.agentPid(), row.cpus ?? `0-${availableParallelism() - 1}`);
        const iterations = { ...row.iterations, [other]: row.iterations[ourName] ?? row.iterations.default };
        const figures = await measure({ ...row, iterations }, both, rounds);
        const [mine, theirs] = [figures.get(ourName), figures.get(other)];
        if (mine === undefined || theirs === undefined) throw new Error(`no figure for ${row.title}`);
        const times = row.throughput === true ? mine.perSecond / theirs.perSecond : theirs.medianNs / mine.medianNs;
        const show =
          row.throughput === true
            ? [mine, theirs].map(({ perSecond }) => thousands(perSecond))
            : [mine, theirs].map(({ medianNs }) => microseconds(medianNs));
        const line = [row.title, ...show, ratio(times), times >= least ? 'met' : 'NOT met'];
        say(`  ${line.slice(1).join('  ')}`);
        lines.push(line);
      }
      return table(lines);
    } finally {
      await before.close();
    }
  } finally {
    await ours.close();
  }
};
