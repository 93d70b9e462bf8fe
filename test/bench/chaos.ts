// Attacks (test/support/attacks.ts) one after the other beside 1,800 signed calls a second: what calls take during each of them, and whether the
// memory of the server comes back. Nothing is asserted; test/scenario/chaos asserts that no call fails.
//
//   node test/bench/chaos.ts [words of attacks]

import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { attacks, startAttackedSite } from '../support/attacks.ts';
import { startSteadyLoad } from '../support/steady-load.ts';
import { residentMiB } from './processes.ts';
import { atShare, table } from './statistics.ts';
import { type Verdict, verdictText } from './verdict.ts';

const pace = { perSecond: 1_800, connections: 32 } as const;
const [p99GoalMs, growthGoal] = [20, 1.1] as const;
/**
 * Of quiet load before the first attack and after the last one, in which memory is sampled; and of
 * load at the height of each.
 */
const [quietSeconds, heldSeconds] = [10, 5] as const;

interface AttackFigure {
  readonly name: string;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly failed: number;
  readonly peakMiB: number;
}
export interface ChaosFigures {
  readonly attacks: readonly AttackFigure[];
  readonly memory: { readonly beforeMiB: number; readonly afterMiB: number };
  readonly goals: readonly Verdict[];
}

export const measureChaos = async (only: readonly string[] = []): Promise<ChaosFigures> => {
  const on = await startAttackedSite([join(import.meta.dirname, '../../dist/server/cli/main.js'), 'server']);
  const { server } = on.site;
  const during = async (name: string, work: () => Promise<unknown>) => {
    const samples: number[] = [];
    const timer = setInterval(() => samples.push(residentMiB(server.child.pid ?? 0)), 100);
    const load = await startSteadyLoad(server, on.endpoint, pace);
    await work();
    // What it holds stays for a while.
    await setTimeout(heldSeconds * 1_000);
    for (const end of on.ends.splice(0)) end();
    const { answered, seconds, failed, refused, p50Ms, p99Ms } = await load.stop();
    clearInterval(timer);
    const figure: AttackFigure = {
      ...{ name, perSecond: answered / seconds, p50Ms: p50Ms ?? Number.NaN, p99Ms: p99Ms ?? Number.NaN },
      ...{ failed: failed + refused, peakMiB: Math.max(...samples) },
    };
    return { figure, leastMiB: Math.min(...samples.slice(Math.floor(samples.length / 2))) };
  };
  const quiet = (name: string) => during(name, () => setTimeout(quietSeconds * 1_000));
  try {
    await quiet('warm-up');
    const before = await quiet('before, no attack');
    const figures: AttackFigure[] = [before.figure];
    for (const [name, attack] of Object.entries(attacks))
      if (only.length === 0 || only.some((words) => name.includes(words)))
        figures.push((await during(name, () => attack(on))).figure);
    const after = await quiet('after, no attack');
    figures.push(after.figure);
    const worst = Math.max(...figures.map(({ p99Ms }) => p99Ms));
    const times = after.leastMiB / before.figure.peakMiB;
    return {
      attacks: figures,
      memory: { beforeMiB: before.figure.peakMiB, afterMiB: after.leastMiB },
      goals: [
        { wanted: `p99 below ${p99GoalMs} ms in each`, measured: `${worst.toFixed(1)} ms`, met: worst < p99GoalMs },
        { wanted: `memory within ${growthGoal} x`, measured: `${times.toFixed(2)} x`, met: times <= growthGoal },
        {
          ...{ wanted: 'no failed call', met: figures.every(({ failed }) => failed === 0) },
          measured: String(figures.reduce((sum, { failed }) => sum + failed, 0)),
        },
      ],
    };
  } finally {
    await on.close();
  }
};

export const chaosText = ({ attacks: figures, memory, goals }: ChaosFigures): string => {
  const lines = figures.map(({ name, perSecond, p50Ms, p99Ms, failed, peakMiB }) => [
    ...[name, perSecond.toFixed(0), `${p50Ms.toFixed(1)} ms`, `${p99Ms.toFixed(1)} ms`, String(failed)],
    `${peakMiB.toFixed(0)} MiB`,
  ]);
  return [
    table([['attacks beside 1,800 calls a second', 'a second', 'p50', 'p99', 'failed', 'memory, peak'], ...lines]),
    `median of the p99: ${atShare(
      figures.map(({ p99Ms }) => p99Ms),
      0.5,
    ).toFixed(1)} ms; ` + `memory before ${memory.beforeMiB.toFixed(0)} MiB, after ${memory.afterMiB.toFixed(0)} MiB`,
    ...goals.map((goal) => `  ${verdictText(goal)}`),
  ].join('\n');
};

if (import.meta.main) {
  process.stdout.write(`${chaosText(await measureChaos(process.argv.slice(2)))}\n`);
  process.exit(0);
}
