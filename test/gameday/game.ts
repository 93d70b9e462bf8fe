// A game day: load, then faults in an order that a seed decides, each with what the documentation
// promises of it (table.ts). At the end every key that was acknowledged is there or was reported as
// missing, and what was encrypted decrypts.
import { isDeepStrictEqual } from 'node:util';
import { verifyCopy } from '../support/killed-server.ts';
import { chance } from '../support/property.ts';
import { play } from './play.ts';
import { allFaults, type Fault, faults, ofMariadb, type Promised } from './table.ts';
import { openWorld, type World } from './world.ts';

export interface GameDayOptions {
  readonly seed: number;
  readonly mariadb: boolean;
  /** Default: all faults that this host can inject. */
  readonly faults?: readonly Fault[];
  /** Whether another round of all faults begins. */
  readonly goesOn?: (rounds: number) => boolean;
  readonly tell?: (line: string) => void;
}

export interface GameDayReport {
  readonly seed: number;
  readonly order: readonly Fault[];
  /** The faults that this host cannot inject, and why. */
  readonly skipped: readonly string[];
  readonly acknowledged: Readonly<Record<string, number>>;
  /** Keys that were acknowledged, lost with an older database, and reported by the quarantine. */
  readonly reportedMissing: number;
  readonly mariadbRows: number;
  /** Empty: nothing was lost silently, and every promised alert fired. */
  readonly findings: readonly string[];
}

/** The timeout for a promise: far longer than it takes, so that a slow machine passes. */
const patienceMs = 300_000;
const lookEveryMs = 300;
const operationsBetween = 12;

const shuffled = (list: readonly Fault[], random: () => number): readonly Fault[] => {
  const left = [...list];
  for (let at = left.length - 1; at > 0; at -= 1) {
    const other = Math.floor(random() * (at + 1));
    [left[at], left[other]] = [left[other] as Fault, left[at] as Fault];
  }
  return left;
};

/** Looks until everything promised was seen, in any order; answers what was not. */
const awaitPromised = async ({ watch }: World, promised: Promised): Promise<readonly string[]> => {
  const missing = new Set([
    ...promised.alerts.map((name) => `alert ${name}`),
    ...promised.notifications.map((kind) => `notification ${kind}`),
    `health ${promised.health}`,
  ]);
  const until = performance.now() + patienceMs;
  while (missing.size > 0 && performance.now() < until) {
    for (const name of await watch.look()) missing.delete(`alert ${name}`);
    missing.delete(`health ${(await watch.health()) ?? null}`);
    for (const kind of (await watch.inbox()) ?? []) missing.delete(`notification ${kind}`);
    if (missing.size > 0) await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
  }
  return [...missing];
};

/** After a repair the service is healthy, and no alert about the current state fires. */
const awaitCalm = async ({ watch }: World, promised: Promised): Promise<readonly string[]> => {
  const until = performance.now() + patienceMs;
  for (;;) {
    watch.begin();
    await watch.look();
    const fires = await watch.look();
    const [still, health] = [promised.alerts.filter((name) => fires.has(name)), await watch.health()];
    if (still.length === 0 && health === '200 healthy') return [];
    if (performance.now() > until) return [`after the repair: health ${health}, and ${still.join(', ') || 'no alert'}`];
    await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
  }
};

const work = async ({ workload }: World): Promise<void> => {
  const acknowledged = (): number => Object.values(workload.acknowledged()).reduce((sum, count) => sum + count, 0);
  const enough = acknowledged() + operationsBetween;
  await workload.run(() => acknowledged() >= enough);
};

export const playGameDay = async (options: GameDayOptions): Promise<GameDayReport> => {
  const { seed, goesOn = (rounds) => rounds < 1, tell = () => undefined } = options;
  const random = chance(seed);
  const world = await openWorld({ seed, mariadb: options.mariadb });
  const findings: string[] = [];
  const order: Fault[] = [];
  const skipped: string[] = [];
  const lost = new Set<string>();
  let reportedMissing = 0;
  const can = (options.faults ?? allFaults).filter((fault) => {
    if (ofMariadb.includes(fault) && world.mariadb === undefined) skipped.push(`${fault}: MariaDB does not take part`);
    else if (fault === 'full disk' && world.disk === undefined) skipped.push(`${fault}: this host mounts no tmpfs`);
    else return true;
    return false;
  });
  const disturb = async (fault: Fault): Promise<void> => {
    const promised: Promised = faults[fault];
    const found = (what: string): number => findings.push(`${order.length} ${fault}: ${what}`);
    await work(world);
    world.watch.begin();
    await world.watch.look();
    const began = performance.now();
    await play[fault]({
      world,
      promised: async () => {
        for (const missing of await awaitPromised(world, promised)) found(`no ${missing}`);
      },
      expect: (what, is, should) => {
        if (!isDeepStrictEqual(is, should)) found(`${what}: ${JSON.stringify(is)}, not ${JSON.stringify(should)}`);
      },
      reported: (missing) => {
        reportedMissing += world.workload.forget(missing);
        for (const id of missing) lost.add(id);
      },
    });
    for (const what of await awaitCalm(world, promised)) found(what);
    for (const what of await world.workload.check(true)) found(what);
    tell(`${order.length} ${fault}: ${Math.round((performance.now() - began) / 1000)} s, ${findings.length} findings`);
  };
  try {
    for (let rounds = 0; goesOn(rounds) && findings.length === 0; rounds += 1)
      for (const fault of shuffled(can, random)) {
        if (findings.length > 0) break;
        order.push(fault);
        await disturb(fault).catch((error: unknown) => findings.push(`${order.length} ${fault}: ${String(error)}`));
      }
    const rows = (await world.mariadb?.load.stop()) ?? [];
    if (findings.length === 0) findings.push(...(await checkEnd(world, rows)));
    const acknowledged = world.workload.acknowledged();
    return { seed, order, skipped, acknowledged, reportedMissing, mariadbRows: rows.length, findings };
  } finally {
    await world.end({ keep: process.env.DKE_KEEP === '1' && findings.length > 0 });
  }
};

/** Checks everything again after a restart. */
const checkEnd = async (world: World, rows: readonly number[]): Promise<readonly string[]> => {
  const { site, workload, mariadb } = world;
  const findings: string[] = [];
  await workload.settle();
  await site.stopServer();
  findings.push(...(await verifyCopy(world.folder)).findings);
  await site.startServer();
  if (mariadb !== undefined) {
    await mariadb.database.stop();
    mariadb.database = await mariadb.instance.start();
    const found = new Set((await mariadb.database.sql('SELECT id FROM orders.load_rows')).map(Number));
    const missing = rows.filter((number) => !found.has(number));
    if (missing.length > 0) findings.push(`${missing.length} rows that MariaDB had confirmed are missing`);
    const check = await mariadb.database.sql('CHECK TABLE orders.load_rows');
    if (!check.at(-1)?.endsWith('OK')) findings.push(`MariaDB: ${check.join('; ')}`);
  }
  findings.push(...(await workload.check(true)));
  return findings;
};
