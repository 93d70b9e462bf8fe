// `npm run faults`: the built server, ended with SIGKILL at random moments of its work, many times;
// and again while the root key and the tenants' keys are rotated under load. Prints what was
// acknowledged and what `dke verify` found; ends with 1 when anything acknowledged was lost,
// anything destroyed came back, or anything is half done.
//
// Then faults in single calls of single operations: SIGKILL before every persistent call and in the
// middle of every write, a full disk (ENOSPC) from every write on, an I/O error (EIO) at every
// sync. Prints how many there were of each operation.
//
//   --kills <n>            300 when absent
//   --rotations <n>        50 when absent
//   --strikes <how>        every (each call), some (when absent: ever fewer of a long operation),
//                          none
//   --blows <list>         killed,torn,full disk,failed sync; all when absent
//   --operations <list>    as the report names them; all when absent
//   --seed <n>             of the random moments and operations; printed at the start

import { parseArgs } from 'node:util';
import { faultOperations } from '../support/fault-workload.ts';
import { killServer } from '../support/killed-server.ts';
import { faultBlows, strikeServer } from '../support/struck-server.ts';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '300' },
    rotations: { type: 'string', default: '50' },
    strikes: { type: 'string', default: 'some' },
    blows: { type: 'string', default: faultBlows.join(',') },
    operations: { type: 'string', default: faultOperations.join(',') },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const chosen = <T extends string>(list: string, known: readonly T[], what: string): readonly T[] => {
  const names = list.split(',');
  const odd = names.find((name) => !(known as readonly string[]).includes(name));
  if (odd !== undefined) throw new Error(`--${what} ${odd}: one of ${known.join(', ')}`);
  return known.filter((name) => names.includes(name));
};
const blows = chosen(values.blows, faultBlows, 'blows');
const operations = chosen(values.operations, faultOperations, 'operations');
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
  for (const blow of blows) {
    tell(`\n${blow}`);
    const report = await strikeServer({ blow, every: values.strikes === 'every', operations, seed, tell });
    tell(JSON.stringify(report, null, 2));
    failed ||= report.findings.length > 0;
  }
process.exit(failed ? 1 : 0);
