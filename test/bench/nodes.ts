// What several nodes on one PostgreSQL cost: how long a change takes, one after the other, when
// one, two and three nodes must show it before it is answered, and how long a use of a key takes
// next to it.

import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { startFleet, untilActive } from '../support/fleet.ts';
import { createXksEndpoint } from '../support/xks-call.ts';
import { callXks, requestMetadata } from '../support/xks-client.ts';
import { table } from './statistics.ts';
import { type Verdict, verdictText } from './verdict.ts';

const goalMs = 12;

interface NodesFigure {
  readonly nodes: number;
  readonly changeMs: { readonly p50: number; readonly p99: number };
  readonly useMs: { readonly p50: number; readonly p99: number };
  readonly goal: Verdict;
}

const timesOf = async (count: number, work: () => Promise<void>): Promise<{ readonly p50: number; p99: number }> => {
  const times: number[] = [];
  for (let at = 0; at < count; at += 1) {
    const began = performance.now();
    await work();
    times.push(performance.now() - began);
  }
  times.sort((a, b) => a - b);
  const at = (share: number): number => times[Math.floor(share * times.length)] ?? 0;
  return { p50: at(0.5), p99: at(0.99) };
};

const measureFleet = async (nodes: number, count: number): Promise<NodesFigure> => {
  const names = ['one', 'two', 'three'].slice(0, nodes);
  const fleet = await startFleet(names, { direct: true });
  const agent = new Agent({ keepAlive: true, ca: readFileSync(fleet.caFile) });
  try {
    const { server, api } = fleet.member('one');
    await untilActive(fleet, fleet.member('one'), names);
    const { endpoint, configuration } = await createXksEndpoint({ server, api }, 'bench');
    const post = (path: string): Promise<void> =>
      new Promise((resolve, reject) => {
        request(
          new URL(path, server.url),
          { method: 'POST', agent, headers: { authorization: `Bearer ${fleet.token}` } },
          (answer) =>
            answer
              .resume()
              .on('end', () => (answer.statusCode === 200 ? resolve() : reject(new Error(`${answer.statusCode}`)))),
        )
          .on('error', reject)
          .end();
      });
    let enabled = true;
    const change = (): Promise<void> => {
      enabled = !enabled;
      return post(`/api/endpoints/${endpoint.id}/${enabled ? 'enable' : 'disable'}`);
    };
    const use = async (): Promise<void> => {
      const body = {
        requestMetadata: requestMetadata(),
        plaintext: Buffer.alloc(32).toString('base64'),
        encryptionAlgorithm: 'AES_GCM',
      };
      const { status } = await callXks(
        { server, configuration },
        { target: `/keys/${endpoint.keyId}/encrypt`, body, agent },
      );
      if (status !== 200) throw new Error(`a use was answered with ${status}`);
    };
    await timesOf(20, change);
    await timesOf(50, use);
    const changeMs = await timesOf(count, change);
    if (!enabled) await change();
    const useMs = await timesOf(count * 4, use);
    const measured = `${changeMs.p50.toFixed(1)} ms`;
    return {
      ...{ nodes, changeMs, useMs },
      goal: { wanted: `p50 at most ${goalMs} ms`, measured, met: changeMs.p50 <= goalMs },
    };
  } finally {
    agent.destroy();
    await fleet.end();
  }
};

export const measureNodes = async (count = 300): Promise<readonly NodesFigure[]> => {
  const figures: NodesFigure[] = [];
  for (const nodes of [1, 2, 3]) figures.push(await measureFleet(nodes, count));
  return figures;
};

export const nodesText = (figures: readonly NodesFigure[]): string =>
  table([
    ['nodes on PostgreSQL', 'a change, p50', 'p99', 'a use of a key, p50', 'p99', 'goal'],
    ...figures.map(({ nodes, changeMs, useMs, goal }) => [
      String(nodes),
      ...[changeMs.p50, changeMs.p99, useMs.p50, useMs.p99].map((ms) => `${ms.toFixed(1)} ms`),
      verdictText(goal),
    ]),
  ]);

if (import.meta.main) process.stdout.write(`${nodesText(await measureNodes(Number(process.argv[2] ?? 300)))}\n`);
