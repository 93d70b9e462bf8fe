// The PKCS#11 figures: the same driver loads each library in turn, in interleaved rounds, so that
// what disturbs the machine disturbs all of them. Medians of rounds are compared.

import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Peer } from './peers.ts';
import { median } from './statistics.ts';

const run = promisify(execFile);
const driver = join(resolve(import.meta.dirname, '../..'), 'build/pkcs11-driver');

/**
 * What the driver repeats. With `-strict` it takes two keys in turn, so that no Init is that of the
 * message before.
 */
type Repeated = 'ecb' | 'cbc' | 'cbc-parts' | 'gcm' | 'hmac' | 'pss' | 'ecdsa';
type Find = 'find' | 'find-10000' | `find-session-${1000 | 10000}` | `find-id-${1000 | 10000}`;
export type Scenario =
  | Repeated
  | `${Repeated}-strict`
  | Find
  | 'random'
  | 'attribute'
  | 'generate'
  | 'token-cbc'
  | 'new-process'
  | `heartbeat-${300 | 1000}`
  | 'values-1200';

export interface Measurement {
  readonly title: string;
  readonly scenario: Scenario;
  /** One when absent, as of the threads of each. */
  readonly processes?: number;
  readonly threads?: number;
  /** CPUs for the driver, as taskset takes them; all when absent. */
  readonly cpus?: string;
  /** Calls of each thread, by the name of the candidate; `default` for the others. */
  readonly iterations: { readonly default: number } & Readonly<Record<string, number>>;
  /** When they differ from those of the other measurements. */
  readonly rounds?: number;
}

export interface Sample {
  readonly medianNs: number;
  readonly p99Ns: number;
  readonly perSecond: number;
  /** From before the library is loaded to the end of the first call. */
  readonly connectMedianUs: number;
  readonly connectP99Us: number;
}
export type Figures = ReadonlyMap<string, Sample>;

const drive = async (
  peer: Peer,
  { scenario, processes = 1, threads = 1, cpus, iterations }: Measurement,
): Promise<Sample> => {
  const count = iterations[peer.name] ?? iterations.default;
  const pinned = cpus === undefined ? [] : ['taskset', '-c', cpus];
  const [program = driver, ...rest] = [...pinned, driver];
  const counts = [count, processes, threads].map(String);
  const { stdout } = await run(program, [...rest, peer.library, scenario, ...counts, peer.pin], {
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
  const middle = (of: readonly Sample[], field: keyof Sample): number => median(of.map((sample) => sample[field]));
  return new Map(
    [...samples].map(([name, of]) => [
      name,
      {
        medianNs: middle(of, 'medianNs'),
        p99Ns: middle(of, 'p99Ns'),
        perSecond: middle(of, 'perSecond'),
        connectMedianUs: middle(of, 'connectMedianUs'),
        connectP99Us: middle(of, 'connectP99Us'),
      },
    ]),
  );
};

/** The median round trip of two processes that do nothing else, on these CPUs, in nanoseconds. */
export interface Floor {
  readonly socketNs: number;
  readonly memoryNs: number;
}

export const measureFloor = async (cpus: string): Promise<Floor> =>
  JSON.parse((await run('taskset', ['-c', cpus, driver, 'floor', '20000'])).stdout) as Floor;
