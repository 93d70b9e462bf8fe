// Destructions of master keys beside uses of keys, on nodes of one PostgreSQL: whether
// acknowledgements wait behind uses, and whether any is refused.
//
//   node test/bench/destroys.ts [destructions] [uses a second] [nodes ...]

import { createGroup, registerApplication } from '../support/console-api.ts';
import { startFleet, untilActive } from '../support/fleet.ts';
import { type SteadyLoad, startSteadyLoad } from '../support/steady-load.ts';
import { createXksEndpoint } from '../support/xks-call.ts';
import { atShare, table } from './statistics.ts';

interface DestroysFigure {
  readonly nodes: number;
  readonly usesPerSecond: number;
  readonly destructions: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Answers other than success, by status. */
  readonly refused: readonly number[];
  readonly usesAnswered: number;
  readonly usesFailed: number;
  readonly useP99Ms: number;
}

const names = ['one', 'two', 'three', 'four', 'five'] as const;
/** Destructions under way at a time. */
const atOnce = 8;

const measure = async (nodes: number, destructions: number, usesPerSecond: number): Promise<DestroysFigure> => {
  const fleet = await startFleet(names.slice(0, nodes), {
    ...{ direct: true, store: 'readers = 2\n' },
    toml: '[erasure]\ngather_ms = 1000\n',
  });
  const loads: SteadyLoad[] = [];
  try {
    const { members } = fleet;
    const [first] = members;
    if (first === undefined) throw new Error('a fleet has a node');
    await untilActive(fleet, first, names.slice(0, nodes));
    const endpoint = await createXksEndpoint(first, 'bench');
    const { application, config } = await registerApplication(
      first.api,
      'bench',
      await createGroup(first.api, 'bench'),
    );
    const database = fleet.database('bench', { config }, '', first.server.port);
    await database.call('open', { pin: 'x' });
    for (let at = 0; at < destructions; at += 1) await database.call('generate', { label: `BENCH.${at}` });
    await database.stop();
    const path = `/api/tde/applications/${application.id}/master-keys`;
    const keys: { id: string; name: string }[] = [];
    for (let next: string | null = `${path}?limit=1000`; next !== null; ) {
      const found: { items: { id: string; name: string }[]; next: string | null } = await first.api.call('GET', next);
      keys.push(...found.items.filter(({ name }) => name.startsWith('BENCH.')));
      next = found.next === null ? null : `${path}?limit=1000&after=${found.next}`;
    }
    for (const { server } of members)
      loads.push(await startSteadyLoad(server, endpoint, { perSecond: usesPerSecond / nodes, connections: 16 }));
    const times: number[] = [];
    const refused: number[] = [];
    let at = 0;
    const one = async (): Promise<void> => {
      for (let key = keys[at++]; key !== undefined; key = keys[at++]) {
        const by = members[at % nodes] ?? first;
        const began = performance.now();
        const { status } = await by.api.send('POST', `${path}/${key.id}/destroy`, { confirm: key.name });
        times.push(performance.now() - began);
        if (status >= 300) refused.push(status);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, one));
    const reports = await Promise.all(loads.splice(0).map((load) => load.stop()));
    return {
      ...{ nodes, usesPerSecond, destructions: times.length, refused },
      ...{ p50Ms: atShare(times, 0.5), p99Ms: atShare(times, 0.99) },
      usesAnswered: reports.reduce((sum, { answered }) => sum + answered, 0),
      usesFailed: reports.reduce((sum, { failed, refused: late }) => sum + failed + late, 0),
      useP99Ms: Math.max(...reports.map(({ p99Ms }) => p99Ms ?? 0)),
    };
  } finally {
    await Promise.allSettled(loads.map((load) => load.stop()));
    await fleet.end();
  }
};

export const measureDestroys = async (
  destructions = 500,
  usesPerSecond = 1_000,
  sizes: readonly number[] = [3, 5],
): Promise<readonly DestroysFigure[]> => {
  const figures: DestroysFigure[] = [];
  for (const nodes of sizes) figures.push(await measure(nodes, destructions, usesPerSecond));
  return figures;
};

const ms = (value: number): string => `${value.toFixed(0)} ms`;
export const destroysText = (figures: readonly DestroysFigure[]): string =>
  table([
    ['destructions beside uses', 'nodes', 'p50', 'p99', 'refused', 'uses', 'failed', 'p99'],
    ...figures.map(({ nodes, destructions, usesPerSecond, p50Ms, p99Ms, refused, ...uses }) => [
      `${destructions}, ${usesPerSecond} uses a second`,
      ...[String(nodes), ms(p50Ms), ms(p99Ms), String(refused.length)],
      ...[String(uses.usesAnswered), String(uses.usesFailed), ms(uses.useP99Ms)],
    ]),
  ]);

if (import.meta.main) {
  const [destructions = 500, uses = 1_000, ...sizes] = process.argv.slice(2).map(Number);
  process.stdout.write(
    `${destroysText(await measureDestroys(destructions, uses, sizes.length === 0 ? undefined : sizes))}\n`,
  );
  process.exit(0);
}
