// Attacks (test/support/attacks.ts) one after the other beside 1,800 signed calls a second, on each
// store: what calls take during each of them, and whether the memory of the server comes back.
// Nothing is asserted; test/scenario/chaos asserts that no call fails.
//
//   node test/bench/chaos.ts [SQLite or PostgreSQL] [words of attacks]

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { attacks, databaseAttacks, startAttackedSite } from '../support/attacks.ts';
import { startSteadyLoad } from '../support/steady-load.ts';
import { type StoreName, stores } from './places.ts';
import { residentMiB } from './processes.ts';
import { atShare, table } from './statistics.ts';
import { type Verdict, verdictText } from './verdict.ts';

const pace = { perSecond: 1_800, connections: 32 } as const;
const [p99GoalMs, growthGoal] = [20, 1.1] as const;
/**
 * Seconds of quiet load before the first attack and after the last one; of load at the height of
 * each; and without any, before memory is compared: freed memory is returned once a minute.
 */
const [quietSeconds, heldSeconds, restSeconds] = [10, 5, 65] as const;
/** Before what nothing refers to is collected. */
const endSeconds = 5;

interface AttackFigure {
  readonly name: string;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly failed: number;
  readonly peakMiB: number;
}
export interface ChaosFigures {
  readonly store: StoreName;
  readonly attacks: readonly AttackFigure[];
  readonly memory: { readonly beforeMiB: number; readonly afterMiB: number };
  readonly goals: readonly Verdict[];
}

export const measureChaos = async (store: StoreName, only: readonly string[] = []): Promise<ChaosFigures> => {
  const at = (path: string): string => join(import.meta.dirname, path);
  // The collector is loaded as JavaScript: what strips types takes 20 MiB in each thread.
  const folder = mkdtempSync(join(tmpdir(), 'dke-chaos-'));
  const collect = join(folder, 'collect-on-signal.mjs');
  writeFileSync(collect, stripTypeScriptTypes(readFileSync(at('collect-on-signal.ts'), 'utf8')));
  const on = await startAttackedSite({
    postgresql: store === 'PostgreSQL',
    program: [at('../../dist/server/cli/main.js'), 'server'],
    environment: { NODE_OPTIONS: `--import ${collect}` },
  });
  const { server } = on.site;
  const resident = (): number => residentMiB(server.child.pid ?? 0);
  const during = async (name: string, work: () => Promise<unknown>): Promise<AttackFigure> => {
    const samples: number[] = [];
    const timer = setInterval(() => samples.push(resident()), 100);
    const load = await startSteadyLoad(server, on.endpoint, pace);
    await work();
    // What it holds stays for a while.
    await setTimeout(heldSeconds * 1_000);
    for (const end of on.ends.splice(0)) end();
    const { answered, seconds, failed, refused, p50Ms, p99Ms } = await load.stop();
    clearInterval(timer);
    return {
      ...{ name, perSecond: answered / seconds, p50Ms: p50Ms ?? Number.NaN, p99Ms: p99Ms ?? Number.NaN },
      ...{ failed: failed + refused, peakMiB: Math.max(...samples) },
    };
  };
  const quiet = (name: string) => during(name, () => setTimeout(quietSeconds * 1_000));
  /**
   * What is kept: V8 returns the room of young objects, and of what nothing refers to, some time
   * later.
   */
  const rest = async (): Promise<number> => {
    await setTimeout(endSeconds * 1_000);
    server.child.kill('SIGPWR');
    await setTimeout(restSeconds * 1_000);
    return resident();
  };
  try {
    await quiet('warm-up');
    const figures: AttackFigure[] = [await quiet('before, no attack')];
    const beforeMiB = await rest();
    const made = store === 'PostgreSQL' ? { ...attacks, ...databaseAttacks } : attacks;
    for (const [name, attack] of Object.entries(made))
      if (only.length === 0 || only.some((words) => name.includes(words)))
        figures.push(await during(name, () => attack(on)));
    figures.push(await quiet('after, no attack'));
    const afterMiB = await rest();
    const worst = Math.max(...figures.map(({ p99Ms }) => p99Ms));
    const times = afterMiB / beforeMiB;
    return {
      store,
      attacks: figures,
      memory: { beforeMiB, afterMiB },
      goals: [
        { wanted: `p99 below ${p99GoalMs} ms in each`, measured: `${worst.toFixed(1)} ms`, met: worst < p99GoalMs },
        {
          wanted: `memory at rest within ${growthGoal} x`,
          measured: `${times.toFixed(2)} x`,
          met: times <= growthGoal,
        },
        {
          ...{ wanted: 'no failed call', met: figures.every(({ failed }) => failed === 0) },
          measured: String(figures.reduce((sum, { failed }) => sum + failed, 0)),
        },
      ],
    };
  } finally {
    await on.close();
    rmSync(folder, { recursive: true, force: true });
  }
};

export const chaosText = ({ store, attacks: figures, memory, goals }: ChaosFigures): string => {
  const lines = figures.map(({ name, perSecond, p50Ms, p99Ms, failed, peakMiB }) => [
    ...[name, perSecond.toFixed(0), `${p50Ms.toFixed(1)} ms`, `${p99Ms.toFixed(1)} ms`, String(failed)],
    `${peakMiB.toFixed(0)} MiB`,
  ]);
  return [
    table([
      [`attacks beside 1,800 calls a second, on ${store}`, 'a second', 'p50', 'p99', 'failed', 'memory, peak'],
      ...lines,
    ]),
    `median of the p99: ${atShare(
      figures.map(({ p99Ms }) => p99Ms),
      0.5,
    ).toFixed(1)} ms; ` +
      `memory at rest, before ${memory.beforeMiB.toFixed(0)} MiB, after ${memory.afterMiB.toFixed(0)} MiB`,
    ...goals.map((goal) => `  ${verdictText(goal)}`),
  ].join('\n');
};

if (import.meta.main) {
  const words = process.argv.slice(2);
  const asked = stores.filter((store) => words.includes(store));
  const only = words.filter((word) => !asked.some((store) => store === word));
  for (const store of asked.length === 0 ? stores : asked)
    process.stdout.write(`${chaosText(await measureChaos(store, only))}\n`);
  process.exit(0);
}
