// Loaded into a server before its program (`--import`): how long its event loop stands. Each
// SIGPWR writes the longest delay since the one before, in milliseconds, into the file that
// DKE_BENCH_LOOP names.
import { renameSync, writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

const file = process.env.DKE_BENCH_LOOP;
if (file === undefined) throw new Error('set DKE_BENCH_LOOP');
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
process.on('SIGPWR', () => {
  writeFileSync(`${file}.new`, String(delay.max / 1e6));
  renameSync(`${file}.new`, file);
  delay.reset();
});
