// This checkout next to another one, which is built, too: what a change costs in the PKCS#11 rows,
// in requests of the cloud key service, and in sign-ins. The two are measured alternately in one
// run, so that what disturbs the machine disturbs both.

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { rows } from './measurements.ts';
import { type Ours, ourName, startOurs } from './ours.ts';
import { measure } from './pkcs11.ts';
import { cpuSeconds, pin } from './processes.ts';
import { median, microseconds, ratio, table, thousands } from './statistics.ts';
import { measureCpu } from './xks.ts';

const other = 'other checkout';
/** A row may be slower by this much. */
const least = 0.97;

interface Cost {
  readonly title: string;
  /**
   * CPU time of the server for one request, in microseconds: other processes change it less than
   * they change a latency.
   */
  measure(ours: Ours): Promise<number>;
}

const benchUser = { user: 'bench', password: 'a long sentence for the measurement' };

let networks = 0;
/** From a network of its own: the service limits sign-ins by network. */
const signIn = async ({ server }: Ours, body: object): Promise<void> => {
  networks += 1;
  const sent = request(new URL('/api/session', server.url), {
    method: 'POST',
    agent: false,
    rejectUnauthorized: false,
    localAddress: `127.${1 + (networks >> 8)}.${networks & 255}.1`,
    headers: { 'content-type': 'application/json' },
  });
  sent.end(JSON.stringify(body));
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  answer.resume();
  if (answer.statusCode !== 200) throw new Error(`the sign-in was answered with ${answer.statusCode}`);
  await once(answer, 'end');
};

const costOfSignIns = async (ours: Ours, body: object, signIns: number): Promise<number> => {
  const pid = ours.server.child.pid ?? 0;
  const before = cpuSeconds(pid);
  for (let each = 0; each < signIns; each += 1) await signIn(ours, body);
  return ((cpuSeconds(pid) - before) / signIns) * 1e6;
};

const costs: readonly Cost[] = [
  {
    title: 'XKS Encrypt, CPU time of the server',
    measure: (ours) => measureCpu(ours, 8, 4),
  },
  {
    title: 'sign-in with a password, CPU time of the server',
    measure: (ours) => costOfSignIns(ours, benchUser, 10),
  },
  {
    title: 'sign-in with a token, CPU time of the server',
    measure: (ours) => costOfSignIns(ours, { token: ours.server.adminToken }, 200),
  },
];

const addBenchUser = async ({ api }: Ours): Promise<void> => {
  const grants = [{ role: 'auditor', scope: null, tenantId: null }];
  const { invitation } = await api.call<{ invitation: { token: string } }>('POST', '/api/users', {
    name: benchUser.user,
    grants,
  });
  await api.call('POST', '/api/session/invitation', { invitation: invitation.token, password: benchUser.password });
};

const compareCost = async (cost: Cost, [mine, theirs]: readonly [Ours, Ours], rounds: number): Promise<string[]> => {
  const figures: (readonly [number, number])[] = [];
  // Code is compiled and caches are filled.
  for (const each of [mine, theirs]) await cost.measure(each);
  for (let round = 0; round < rounds; round += 1) {
    // Each is the first one as often as the other.
    const swapped = round % 2 === 1;
    const first = await cost.measure(swapped ? theirs : mine);
    const second = await cost.measure(swapped ? mine : theirs);
    figures.push(swapped ? [second, first] : [first, second]);
  }
  const times = median(figures.map(([own, before]) => before / own));
  const show = (side: 0 | 1): string => microseconds(median(figures.map((each) => each[side])) * 1_000);
  return [cost.title, show(0), show(1), ratio(times), times >= least ? 'met' : 'NOT met'];
};

export const measureAgainst = async (
  checkout: string,
  only: string,
  rounds: number,
  say: (text: string) => void,
): Promise<string> => {
  const ours = await startOurs();
  try {
    const before = await startOurs(other, resolve(checkout));
    try {
      const both = [ours, before] as const;
      for (const each of both) await addBenchUser(each);
      await measure({ title: 'warm-up', scenario: 'cbc', iterations: { default: 2_000 } }, both, 1);
      const lines: string[][] = [['what', ourName, other, 'ratio', `at least ${least}`]];
      const matches = ({ title }: { readonly title: string }): boolean => title.includes(only);
      for (const cost of costs.filter(matches)) {
        say(`measuring ${cost.title}`);
        const line = await compareCost(cost, both, rounds);
        say(`  ${line.slice(1).join('  ')}`);
        lines.push(line);
      }
      for (const row of rows.filter(matches)) {
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
