// The PKCS#11 figures: the same driver loads each library in turn, in interleaved rounds, so that what disturbs the machine
// disturbs all of them. Medians of rounds are compared.

import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Peer } from './peers.ts';
import { median } from './statistics.ts';

const run = promisify(execFile);
const driver = join(resolve(import.meta.dirname, '../..'), 'build/pkcs11-driver');

export type Scenario = 'ecb' | 'cbc' | 'random' | 'attribute' | 'find' | 'generate' | 'token-cbc';

export interface Measurement {
  readonly title: string;
  readonly scenario: Scenario;
  readonly processes: number;
  /** CPUs for the driver, as taskset takes them; all when absent. */
  readonly cpus?: string;
  /** Calls of each process, by the name of the candidate; `default` for the others. */
  readonly iterations: { readonly default: number } & Readonly<Record<string, number>>;
}

export interface Sample {
  readonly medianNs: number;
  readonly perSecond: number;
}
export type Figures = ReadonlyMap<string, Sample>;

const drive = async (peer: Peer, { scenario, processes, cpus, iterations }: Measurement): Promise<Sample> => {
  const count = iterations[peer.name] ?? iterations.default;
  const pinned = cpus === undefined ? [] : ['taskset', '-c', cpus];
  const [program = driver, ...rest] = [...pinned, driver];
  const { stdout } = await run(program, [...rest, peer.library, scenario, String(count), String(processes), peer.pin], {
    env: { ...process.env, ...peer.environment },
  });
  return JSON.parse(stdout) as Sample;
};

/** The median of the rounds, by the candidate's name. */
export const measure = async (
  measurement: Measurement,
  candidates: readonly Peer[],
  rounds: number,
): Promise<Figures> => {
  const samples = new Map<string, Sample[]>(candidates.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round++)
    for (const candidate of candidates) samples.get(candidate.name)?.push(await drive(candidate, measurement));
  return new Map(
    [...samples].map(([name, of]) => [
      name,
      {
        medianNs: median(of.map(({ medianNs }) => medianNs)),
        perSecond: median(of.map(({ perSecond }) => perSecond)),
      },
    ]),
  );
};
