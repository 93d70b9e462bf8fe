// How long writes wait while an erasure run seals every record of the store again. The service runs
// in this process. One caller generates token keys one after the other, first with nothing else
// running, then during erasure runs.
import type { TdeCaller } from '../../server/operations/index.ts';
import {
  administrator,
  masterKey,
  type OpenedService,
  openTestService,
  registerCaller,
  untilAudited,
} from '../support/open-service.ts';
import { openPlace, type StoreName, stores } from './places.ts';
import { fill } from './snapshots.ts';
import { atShare } from './statistics.ts';

export const erasureRecords = [1_000, 10_000, 100_000] as const;

interface Waits {
  readonly writes: number;
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly longestMs: number;
}

export interface ErasureWaits {
  readonly store: StoreName;
  readonly records: number;
  readonly runs: number;
  /** From a destruction until the key is unrecoverable. */
  readonly runSeconds: number;
  readonly quiet: Waits;
  readonly during: Waits;
}

const settings = '[erasure]\ngather_ms = 20\n[memory]\nallow_unlocked = true\n';
const mostRuns = 20;
const leastSeconds = 10;

const waitsOf = (times: readonly number[]): Waits => ({
  writes: times.length,
  medianMs: atShare(times, 0.5),
  p99Ms: atShare(times, 0.99),
  longestMs: atShare(times, 1),
});

/** Generates keys one after the other until `isOver`. The time of each, in milliseconds. */
const writeUntil = async (
  { operations }: OpenedService,
  caller: TdeCaller,
  name: string,
  isOver: () => boolean,
): Promise<readonly number[]> => {
  const times: number[] = [];
  while (!isOver()) {
    const start = performance.now();
    await operations.tde.generateKey(caller, masterKey(`${name} ${times.length}`));
    times.push(performance.now() - start);
  }
  return times;
};

export const measureErasureWaits = async (store: StoreName, records: number): Promise<ErasureWaits> => {
  const place = await openPlace(store);
  const opened = await openTestService({ toml: `${settings}${place.toml}` });
  try {
    await fill(opened, (await opened.operations.tenants.default()).id, records);
    const { caller } = await registerCaller(opened, 'bench');
    const quietUntil = performance.now() + 3_000;
    const quiet = await writeUntil(opened, caller, 'quiet', () => performance.now() > quietUntil);

    const started = performance.now();
    let over = false;
    let runs = 0;
    let runSeconds = 0;
    const during = writeUntil(opened, caller, 'during', () => over);
    try {
      while (runs === 0 || (runs < mostRuns && performance.now() - started < leastSeconds * 1_000)) {
        const { id } = await opened.operations.tde.generateKey(caller, masterKey(`doomed ${runs}`));
        const destroyed = performance.now();
        await opened.operations.masterKeys.destroy(administrator, caller.application.id, id);
        await untilAudited(opened, 'key.unrecoverable', id, 600_000);
        runSeconds += (performance.now() - destroyed) / 1_000;
        runs += 1;
      }
    } finally {
      over = true;
    }
    return {
      store,
      records,
      runs,
      runSeconds: runSeconds / runs,
      quiet: waitsOf(quiet),
      during: waitsOf(await during),
    };
  } finally {
    await opened.remove();
    await place.remove();
  }
};

const waitsText = ({ writes, medianMs, p99Ms, longestMs }: Waits): string =>
  `median ${medianMs.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms, longest ${longestMs.toFixed(1)} ms of ${writes}`;

export const erasureWaitsText = ({ store, records, runs, runSeconds, quiet, during }: ErasureWaits): string =>
  [
    `writes during erasure runs over ${records} records on ${store}: ${waitsText(during)}`,
    `with no run: ${waitsText(quiet)}`,
    `${runs} runs, ${runSeconds.toFixed(1)} s each`,
  ].join('\n');

if (import.meta.main) {
  const [counts = erasureRecords.join(), ...names] = process.argv.slice(2);
  for (const store of stores) {
    if (names.length > 0 && !names.includes(store)) continue;
    for (const count of counts.split(','))
      console.log(erasureWaitsText(await measureErasureWaits(store, Number(count))));
  }
}
