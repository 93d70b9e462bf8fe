// `npm run faults`: the built server, ended with SIGKILL at random moments of its work, many times; and once more while the root key
// and the tenants' keys are rotated under load. Prints what was acknowledged and what `dke verify` found; ends with 1 when anything
// acknowledged was lost, anything destroyed came back, or anything is half done.
//
// Then single system calls of single operations are struck (strace): SIGKILL at every write, sync and rename, a full disk
// (ENOSPC) at writes, an I/O error (EIO) at syncs.
//
//   --kills <n>       300 when absent
//   --rotations <n>   50 when absent
//   --strikes <how>   every (each call), some (when absent: ever fewer of a long operation), none
//   --seed <n>        of the random moments and operations; told at the beginning

import { parseArgs } from 'node:util';
import { faultOperations } from '../support/fault-workload.ts';
import { killServer } from '../support/killed-server.ts';
import { lastingCalls, strikeServer } from '../support/struck-server.ts';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '300' },
    rotations: { type: 'string', default: '50' },
    strikes: { type: 'string', default: 'some' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const tell = (line: string): void => {
  process.stdout.write(`${line}\n`);
};
const seed = Number(values.seed);
tell(`seed ${seed}`);
let failed = false;
for (const [name, kills, rotations] of [
  ['keys', Number(values.kills), false],
  ['rotations under load', Number(values.rotations), true],
] as const) {
  if (kills === 0) continue;
  tell(`\n${name}: ${kills} kills`);
  const report = await killServer({ kills, seed, rotations, tell });
  tell(JSON.stringify(report, null, 2));
  failed ||= report.findings.length > 0;
}
if (values.strikes !== 'none')
  for (const [name, calls, error] of [
    ['SIGKILL at every lasting call', lastingCalls, undefined],
    ['a full disk at every write', ['pwrite64'], 'ENOSPC'],
    ['an I/O error at every sync', ['fsync', 'fdatasync'], 'EIO'],
  ] as const) {
    tell(`\n${name}`);
    const report = await strikeServer({
      every: values.strikes === 'every',
      calls,
      seed,
      tell,
      // On a full disk a soft-deleted key decrypts by its sealed copy, and is imported again later: there is no acknowledgement to hold.
      ...(error === 'ENOSPC' ? { operations: faultOperations.filter((name) => name !== 'import again') } : {}),
      ...(error === undefined ? {} : { error }),
    });
    tell(JSON.stringify(report, null, 2));
    failed ||= report.findings.length > 0;
  }
process.exit(failed ? 1 : 0);
