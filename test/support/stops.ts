// How long servers take to end after SIGTERM. Every stop of a server process of a test is recorded
// (server-process.ts), and the run prints the longest ones, each with the place that asked for it.
// No test asserts the times: a server ends itself in time (server/app/end-in-time.ts), and a test
// sees by the exit code whether it had to.
import type { ChildProcess } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

interface Stop {
  readonly ms: number;
  /** The first lines of tests on the stack. */
  readonly place: string;
  readonly exitCode: number | null;
  /** The server did not end in good order in time, as its log says. */
  readonly isCut: boolean;
}

const fileOf = (folder: string): string => join(folder, 'stops.ndjson');
const cutOff = 'the stop did not end within';
const shownStops = 5;

const placeOf = (stack: string): string =>
  [...stack.matchAll(/(test\/[\w./-]+\.ts:\d+)/g)]
    .map(([place]) => place)
    .find((place) => !/support\/(stops|server-process|site|fleet)\.ts/.test(place)) ?? 'unknown place';

/**
 * Called when SIGTERM was sent; what it answers, when the process has ended. Throws when that was
 * not by its own doing.
 */
export const recordStop = (child: ChildProcess, log: () => string): (() => void) => {
  const began = performance.now();
  const place = placeOf(new Error('place').stack ?? '');
  return () => {
    if (child.signalCode !== null) throw new Error(`the server was ended by ${child.signalCode}, not by its own stop`);
    const ms = Math.round(performance.now() - began);
    const stop: Stop = { ms, place, exitCode: child.exitCode, isCut: log().includes(cutOff) };
    const folder = tmpdir();
    // Only where a run has its own folder, which it looks into at its end.
    if (/^dke-run-/.test(basename(folder))) appendFileSync(fileOf(folder), `${JSON.stringify(stop)}\n`);
  };
};

/** At the end of a run. */
export const printStops = (folder: string): void => {
  if (!existsSync(fileOf(folder))) return;
  const stops = readFileSync(fileOf(folder), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Stop);
  const longest = stops.toSorted((a, b) => b.ms - a.ms).slice(0, shownStops);
  console.log(
    `${stops.length} servers ended after SIGTERM, ${stops.filter(({ isCut }) => isCut).length} of them cut off`,
  );
  for (const { ms, place, exitCode, isCut } of longest)
    console.log(`  ${(ms / 1000).toFixed(1)} s, exit code ${exitCode}${isCut ? ', cut off' : ''}: ${place}`);
};
