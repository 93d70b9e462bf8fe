// `npm run gameday`: the built service under load, and faults one after another, in an order that a
// seed decides. Prints the order, what was acknowledged and what was found; ends with 1 when an
// acknowledged key is neither there nor reported, a value does not decrypt, or an alert that the
// documentation promises did not fire.
//
//   --seed <n>          of the order and of the load; printed at the beginning
//   --rounds <n>        each fault so many times; 1 when absent
//   --minutes <n>       begins no new round after so many minutes, instead of --rounds
//   --faults <list>     as the report names them; all when absent
//   --without-mariadb   for a host that does not have it
//
// DKE_KEEP=1 keeps a copy of the service's folder when something was found.

import { parseArgs } from 'node:util';
import { mariadbIsThere } from '../support/mariadb.ts';
import { playGameDay } from './game.ts';
import { allFaults, type Fault, faults } from './table.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    rounds: { type: 'string', default: '1' },
    minutes: { type: 'string' },
    faults: { type: 'string', default: allFaults.join(',') },
    'without-mariadb': { type: 'boolean', default: false },
  },
});
const chosen = values.faults.split(',');
const unknown = chosen.find((name) => !Object.hasOwn(faults, name));
if (unknown !== undefined) throw new Error(`--faults ${unknown}: use names from ${allFaults.join(', ')}`);
const tell = (line: string): void => {
  process.stdout.write(`${line}\n`);
};
const seed = Number(values.seed);
tell(`seed ${seed}`);
const end = values.minutes === undefined ? undefined : performance.now() + Number(values.minutes) * 60_000;
const report = await playGameDay({
  seed,
  mariadb: !values['without-mariadb'] && mariadbIsThere(),
  faults: chosen as Fault[],
  goesOn: (rounds) => (end === undefined ? rounds < Number(values.rounds) : performance.now() < end),
  tell,
});
tell(JSON.stringify(report, null, 2));
process.exit(report.findings.length > 0 ? 1 : 0);
