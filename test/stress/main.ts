// `npm run stress`: processes with many threads use the library at random while their agent is
// stopped, continued and killed; each result is compared with OpenSSL's. Prints what was done and
// found; exits with 1 when a byte or a return value was wrong, a call hung, or a session key was
// lost while the agent lived.
//
//   --minutes <n>        60 by default; fractions are allowed
//   --processes <n>      3 by default
//   --threads <n>        of each process, 1 to 64; 6 by default
//   --largest <bytes>    longest message; 1,048,576 by default
//   --sanitizer <name>   none (default), address (with undefined behaviour), thread: library, addon
//                        and test program are built with it
//   --switches <some>    some (default): every second process uses an application with all
//                        compatibility switches on; none
//   --seed <n>           of the random choices; printed at the start

import { parseArgs } from 'node:util';
import { mechanismRows } from '../../provider/agent/operations/mechanisms.ts';
import { mechanismName } from '../../provider/schema/mechanisms.ts';
import { runStress, type Sanitizer, sanitizers } from '../support/stress.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    processes: { type: 'string', default: '3' },
    threads: { type: 'string', default: '6' },
    largest: { type: 'string', default: '1048576' },
    sanitizer: { type: 'string', default: 'none' },
    switches: { type: 'string', default: 'some' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const number = (name: 'minutes' | 'processes' | 'threads' | 'largest' | 'seed'): number => {
  const value = Number(values[name]);
  if (!(value >= 0)) throw new Error(`--${name} ${values[name]} is not a number`);
  return value;
};
const isSanitizer = (name: string): name is Sanitizer => Object.hasOwn(sanitizers, name);
if (!isSanitizer(values.sanitizer))
  throw new Error(`--sanitizer ${values.sanitizer}: use ${Object.keys(sanitizers).join(', ')}`);

const tell = (line: string): void => {
  process.stdout.write(`${line}\n`);
};
const end = Date.now() + number('minutes') * 60_000;
tell(`seed ${values.seed}`);
const report = await runStress({
  processes: number('processes'),
  threads: number('threads'),
  largest: number('largest'),
  seed: number('seed'),
  sanitizer: values.sanitizer,
  switches: values.switches === 'some',
  goesOn: () => Date.now() < end,
  tell,
});
tell(JSON.stringify(report, null, 2));
const missing = mechanismRows.map(({ type }) => mechanismName(type)).filter((name) => !(name in report.mechanisms));
if (missing.length > 0) tell(`not used in this run: ${missing.join(', ')}`);
process.exit(report.findings.length > 0 ? 1 : 0);
