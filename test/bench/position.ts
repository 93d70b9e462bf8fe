// What the position of the database costs that each node keeps on its own disk before a change is
// answered: two fleets of two nodes on PostgreSQL, one of which does not write it, measured in
// turn.
//
//   node test/bench/position.ts [rounds] [seconds of each]

import { existsSync, readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { startFleet, untilActive } from '../support/fleet.ts';
import { atShare, table } from './statistics.ts';
import { type Verdict, verdictText } from './verdict.ts';

const names = ['one', 'two'] as const;
/** Changes under way at a time, at both nodes. */
const atOnce = 8;
const goal = 0.95;

interface PositionFigure {
  /** Changes a second, by rounds. */
  readonly kept: readonly number[];
  readonly notKept: readonly number[];
  readonly goal: Verdict;
}

const openFleet = async (isKept: boolean) => {
  const without = { NODE_OPTIONS: `--import=${join(import.meta.dirname, 'without-position.ts')}` };
  const fleet = await startFleet(names, { direct: true, environmentOf: () => (isKept ? {} : without) });
  const agent = new Agent({ keepAlive: true, ca: readFileSync(fleet.caFile) });
  const members = names.map((name) => fleet.member(name));
  await untilActive(fleet, fleet.member('one'), names);
  for (const { server } of members)
    if (existsSync(join(server.dataDirectory, 'position')) !== isKept)
      throw new Error(`a node ${isKept ? 'does not keep' : 'keeps'} its position`);
  let made = 0;
  const change = (at: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${fleet.token}`, 'content-type': 'application/json' };
      const url = new URL('/api/vaults', members[at % members.length]?.server.url);
      const sent = request(url, { method: 'POST', agent, headers }, (answer) =>
        answer
          .resume()
          .on('end', () => (answer.statusCode === 201 ? resolve() : reject(new Error(`${answer.statusCode}`)))),
      );
      made += 1;
      sent.on('error', reject).end(JSON.stringify({ name: `bench ${made}` }));
    });
  return {
    rate: async (seconds: number): Promise<number> => {
      const began = performance.now();
      let done = 0;
      const one = async (at: number): Promise<void> => {
        while (performance.now() - began < seconds * 1_000) {
          await change(at);
          done += 1;
        }
      };
      await Promise.all(Array.from({ length: atOnce }, (_, at) => one(at)));
      return done / ((performance.now() - began) / 1_000);
    },
    end: async (): Promise<void> => {
      agent.destroy();
      await fleet.end();
    },
  };
};

export const measurePosition = async (rounds = 8, seconds = 4): Promise<PositionFigure> => {
  const kept = await openFleet(true);
  try {
    const notKept = await openFleet(false);
    try {
      for (const fleet of [kept, notKept]) await fleet.rate(seconds);
      const rates: [number, number][] = [];
      for (let round = 0; round < rounds; round += 1) {
        const pair: [number, number] = [0, 0];
        // In changing order: what a machine does next to it changes slowly.
        for (const at of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const))
          pair[at] = await (at === 0 ? kept : notKept).rate(seconds);
        rates.push(pair);
      }
      const ratio = atShare(
        rates.map(([one, other]) => one / other),
        0.5,
      );
      const wanted = `the rate of changes at least ${goal} x that without it`;
      return {
        kept: rates.map(([one]) => one),
        notKept: rates.map(([, other]) => other),
        goal: { wanted, measured: `${ratio.toFixed(2)} x, median of the rounds`, met: ratio >= goal },
      };
    } finally {
      await notKept.end();
    }
  } finally {
    await kept.end();
  }
};

export const positionText = ({ kept, notKept, goal: verdict }: PositionFigure): string =>
  [
    table([
      ['changes a second, two nodes', ...kept.map((_, at) => `round ${at + 1}`)],
      ['the position is kept on disk', ...kept.map((rate) => rate.toFixed(0))],
      ['the position is not kept', ...notKept.map((rate) => rate.toFixed(0))],
    ]),
    `  ${verdictText(verdict)}`,
  ].join('\n');

if (import.meta.main)
  process.stdout.write(
    `${positionText(await measurePosition(Number(process.argv[2] ?? 8), Number(process.argv[3] ?? 4)))}\n`,
  );
