// What a failover of the database costs: two nodes on a primary with a synchronous standby, steady
// uses of keys and changes at both. The primary ends without notice, the standby is promoted at
// once, and the nodes reach it at the same address, as behind a virtual address.
//
//   node test/bench/failover.ts [rounds] [uses a second] [changes a second], at each node

import { Agent } from 'node:https';
import { setTimeout } from 'node:timers/promises';
import { type FleetMember, startFleet, untilActive } from '../support/fleet.ts';
import { until } from '../support/host.ts';
import type { PostgresServer } from '../support/postgresql.ts';
import { createXksEndpoint } from '../support/xks-call.ts';
import { callXks, requestMetadata } from '../support/xks-client.ts';
import { table } from './statistics.ts';

interface FailoverFigure {
  readonly uses: number;
  /** Other answers than 200, and none. */
  readonly usesFailed: number;
  /** How many seconds had one of them. */
  readonly secondsWithFailedUses: number;
  /**
   * Since the end of the primary: until the standby takes over, and until each node has confirmed a
   * new change.
   */
  readonly promotedAfterMs: number;
  readonly acceptedAfterMs: number;
  readonly changes: number;
  /** Answered with 503: nothing was changed, and not known. */
  readonly refused: number;
  readonly unconfirmed: number;
}

/** Before the primary ends, and after changes are accepted again. */
const steadyMs = 5_000;

const measure = async (usesPerSecond: number, changesPerSecond: number): Promise<FailoverFigure> => {
  const names = ['one', 'two'];
  const fleet = await startFleet(names, { relay: true });
  const agent = new Agent({ keepAlive: true });
  let standby: PostgresServer | undefined;
  let runs = true;
  const loops: Promise<void>[] = [];
  try {
    const [first] = fleet.members;
    if (first === undefined) throw new Error('a fleet has a node');
    await untilActive(fleet, first, names);
    const { endpoint, configuration } = await createXksEndpoint(first, 'bench');
    standby = await fleet.postgres.standby({ name: 'second' });
    const promoted = standby;
    fleet.postgres.run('postgres', "alter system set synchronous_standby_names = 'second'");
    fleet.postgres.run('postgres', 'select pg_reload_conf()');
    await until('the standby to be synchronous', async () =>
      fleet.postgres.run('postgres', 'select sync_state from pg_stat_replication') === 'sync' ? true : undefined,
    );

    let uses = 0;
    const failedAt: number[] = [];
    const use = async ({ server }: FleetMember): Promise<void> => {
      const body = { requestMetadata: requestMetadata(), plaintext: 'AAAA', encryptionAlgorithm: 'AES_GCM' };
      const began = performance.now();
      const options = { target: `/keys/${endpoint.keyId}/encrypt`, body, agent };
      const answer = await callXks({ server, configuration }, options).catch(() => undefined);
      uses += 1;
      if (answer?.status !== 200) failedAt.push(began);
    };
    const changes: {
      readonly began: number;
      readonly at: number;
      readonly by: string;
      readonly text: string;
      readonly status: number;
    }[] = [];
    const change = async ({ api, name: by }: FleetMember): Promise<void> => {
      const began = performance.now();
      const name = `made ${changes.length} at ${by} ${began}`;
      const { status, text } = await api
        .send('POST', '/api/vaults', { name })
        .catch((error: unknown) => ({ status: 0, text: String(error) }));
      changes.push({ began, at: performance.now(), by, status, text });
    };
    /**
     * Starts work at a rate, by the clock; at most so many are under way, so that a slow service is
     * not buried.
     */
    const steadily = async (perSecond: number, mostAtOnce: number, work: () => Promise<void>): Promise<void> => {
      const underWay = new Set<Promise<void>>();
      for (let due = performance.now(); runs; due = Math.max(due + 1_000 / perSecond, performance.now())) {
        await setTimeout(Math.max(0, due - performance.now()));
        if (underWay.size >= mostAtOnce) await Promise.race(underWay);
        const one = work().finally(() => underWay.delete(one));
        underWay.add(one);
      }
      await Promise.all(underWay);
    };
    for (const member of fleet.members)
      loops.push(
        steadily(usesPerSecond, 32, () => use(member)),
        steadily(changesPerSecond, 1, () => change(member)),
      );
    await setTimeout(steadyMs);

    const ended = performance.now();
    await fleet.postgres.stop('SIGQUIT');
    await promoted.promote();
    fleet.relay.moveTo(promoted.socket);
    fleet.relay.cut('');
    const promotedAfterMs = performance.now() - ended;
    const acceptedAt = (by: string): number | undefined => {
      const found = changes.find((each) => each.by === by && each.began > ended && each.status === 201);
      return found?.at;
    };
    await until('changes at each node', async () =>
      names.every((name) => acceptedAt(name) !== undefined) ? true : undefined,
    );
    await setTimeout(steadyMs);
    runs = false;
    await Promise.all(loops.splice(0));
    const others = changes.filter(({ status }) => status !== 201);
    const unconfirmed = others.filter(({ text }) => text.includes('"unconfirmed"')).length;
    return {
      ...{ uses, usesFailed: failedAt.length },
      secondsWithFailedUses: new Set(failedAt.map((at) => Math.floor(at / 1_000))).size,
      promotedAfterMs,
      acceptedAfterMs: Math.max(...names.map((name) => acceptedAt(name) ?? Number.NaN)) - ended,
      ...{ changes: changes.length, refused: others.length - unconfirmed, unconfirmed },
    };
  } finally {
    runs = false;
    await Promise.allSettled(loops);
    agent.destroy();
    await fleet.end();
    await standby?.remove();
  }
};

export const measureFailover = async (
  rounds = 3,
  usesPerSecond = 200,
  changesPerSecond = 10,
): Promise<readonly FailoverFigure[]> => {
  const figures: FailoverFigure[] = [];
  for (let round = 0; round < rounds; round += 1) figures.push(await measure(usesPerSecond, changesPerSecond));
  return figures;
};

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
export const failoverText = (figures: readonly FailoverFigure[]): string =>
  table([
    ['failover', 'uses', 'failed', 'in', 'promoted after', 'changes after', 'changes', 'refused', 'unconfirmed'],
    ...figures.map((each, round) => [
      ...[`round ${round + 1}`, String(each.uses), String(each.usesFailed), `${each.secondsWithFailedUses} s`],
      ...[seconds(each.promotedAfterMs), seconds(each.acceptedAfterMs)],
      ...[String(each.changes), String(each.refused), String(each.unconfirmed)],
    ]),
  ]);

if (import.meta.main) {
  const [rounds, uses, changes] = process.argv.slice(2).map(Number);
  process.stdout.write(`${failoverText(await measureFailover(rounds, uses, changes))}\n`);
  process.exit(0);
}
