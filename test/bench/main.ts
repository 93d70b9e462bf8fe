// `npm run bench`: the service beside its peers, in one run. Prints a table for people or, with --json, the figures. A goal
// that is missed is printed as missed; nothing here is asserted.
//
//   --rounds <n>    interleaved rounds of each PKCS#11 figure, 5 when absent
//   --seconds <n>   of each XKS round, 5 when absent
//   --only <text>   measurements whose title holds the text
//   --json

import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { ourName, startOurs } from './ours.ts';
import { type Peer, startP11KitServer, startSoftHsm } from './peers.ts';
import { type Figures, type Measurement, measure } from './pkcs11.ts';
import { pin, residentMiB } from './processes.ts';
import { microseconds, ratio, table, thousands } from './statistics.ts';
import { measureXks, type XksFigure } from './xks.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '5' },
    only: { type: 'string', default: '' },
    json: { type: 'boolean', default: false },
  },
});
const rounds = Number(values.rounds);
const seconds = Number(values.seconds);

const softHsm = 'SoftHSM2 in-process';
const p11Kit = 'p11-kit server + SoftHSM2';
const oneCpu = '0';

interface Row extends Measurement {
  readonly peers: readonly string[];
  /** How many times faster than which peer. */
  readonly goal?: readonly [peer: string, times: number];
  /** Calls per second of all processes instead of the time of one call. */
  readonly throughput?: true;
}

// Debian's p11-kit carries no AES-CBC: ECB is compared with it.
const rows: readonly Row[] = [
  {
    title: 'EncryptInit + Encrypt, ECB 48 bytes, one CPU',
    scenario: 'ecb',
    processes: 1,
    cpus: oneCpu,
    iterations: { default: 20_000 },
    peers: [softHsm, p11Kit],
    goal: [p11Kit, 2.5],
  },
  {
    title: 'EncryptInit + Encrypt, ECB 48 bytes',
    scenario: 'ecb',
    processes: 1,
    iterations: { default: 10_000 },
    peers: [softHsm, p11Kit],
    goal: [p11Kit, 5],
  },
  {
    title: 'EncryptInit + Encrypt, CBC 48 bytes, one CPU',
    scenario: 'cbc',
    processes: 1,
    cpus: oneCpu,
    iterations: { default: 20_000 },
    peers: [softHsm],
  },
  {
    title: 'EncryptInit + Encrypt, CBC 48 bytes',
    scenario: 'cbc',
    processes: 1,
    iterations: { default: 20_000 },
    peers: [softHsm],
  },
  {
    title: 'EncryptInit + Encrypt, CBC 48 bytes, 8 processes',
    scenario: 'cbc',
    processes: 8,
    iterations: { default: 5_000 },
    peers: [softHsm],
    throughput: true,
  },
  {
    title: 'EncryptInit + Encrypt, ECB 48 bytes, 8 processes',
    scenario: 'ecb',
    processes: 8,
    iterations: { default: 5_000 },
    peers: [softHsm, p11Kit],
    throughput: true,
  },
  {
    title: 'GenerateRandom(32)',
    scenario: 'random',
    processes: 1,
    iterations: { default: 20_000 },
    peers: [softHsm, p11Kit],
  },
  {
    title: 'GenerateRandom(32), one CPU',
    scenario: 'random',
    processes: 1,
    cpus: oneCpu,
    iterations: { default: 20_000 },
    peers: [softHsm, p11Kit],
  },
  {
    title: 'FindObjects by label among 1,000',
    scenario: 'find',
    processes: 1,
    iterations: { default: 100, [ourName]: 5_000 },
    peers: [softHsm, p11Kit],
  },
  {
    title: 'token key in the service: EncryptInit + Encrypt, CBC 48 bytes',
    scenario: 'token-cbc',
    processes: 1,
    iterations: { default: 2_000 },
    peers: [softHsm],
  },
  {
    title: 'token key in the service, 8 processes',
    scenario: 'token-cbc',
    processes: 8,
    iterations: { default: 1_000 },
    peers: [softHsm],
    throughput: true,
  },
];

const xksGoal = 0.4;
const report: Record<string, unknown> = {};
const lines: string[][] = [['what', ourName, softHsm, 'ratio', p11Kit, 'ratio', 'goal']];

const say = (text: string): void => {
  process.stderr.write(`${text}\n`);
};
const sampled = (figures: Figures, name: string, throughput: boolean): number | undefined => {
  const sample = figures.get(name);
  return throughput ? sample?.perSecond : sample?.medianNs;
};

const cellsOf = (row: Row, figures: Figures): string[] => {
  const throughput = row.throughput === true;
  const mine = sampled(figures, ourName, throughput) ?? Number.NaN;
  const show = throughput ? thousands : microseconds;
  const times = (peer: string): number | undefined => {
    const theirs = sampled(figures, peer, throughput);
    return theirs === undefined ? undefined : throughput ? mine / theirs : theirs / mine;
  };
  const beside = [softHsm, p11Kit].flatMap((peer) => {
    const theirs = sampled(figures, peer, throughput);
    return theirs === undefined ? ['-', '-'] : [show(theirs), ratio(times(peer) ?? 0)];
  });
  const [peer, wanted] = row.goal ?? [];
  const goal =
    peer === undefined || wanted === undefined
      ? ''
      : `${(times(peer) ?? 0) >= wanted ? 'reached' : 'MISSED'}: ${ratio(wanted)}`;
  report[row.title] = {
    ...Object.fromEntries(figures),
    ...(peer === undefined ? {} : { goal: { peer, wanted, reached: times(peer) } }),
  };
  return [row.title, show(mine), ...beside, goal];
};

const loadBefore = loadavg()[0] ?? 0;
const ours = await startOurs();
const peers: Peer[] = [];
try {
  peers.push(startSoftHsm(), await startP11KitServer());
  const serverPid = ours.server.child.pid ?? 0;
  const memory: Record<string, number> = { 'server, idle': residentMiB(serverPid) };

  // The library starts the agent with its first call; all of its threads are there after that.
  await measure({ title: 'warm-up', scenario: 'cbc', processes: 1, iterations: { default: 2_000 } }, [ours], 1);
  memory['agent, idle'] = residentMiB(ours.agentPid());
  const allCpus = `0-${availableParallelism() - 1}`;

  for (const row of rows.filter(({ title }) => title.includes(values.only))) {
    say(`measuring ${row.title}`);
    const candidates = [ours, ...peers.filter(({ name }) => row.peers.includes(name))];
    const others = [ours.agentPid(), ...candidates.flatMap(({ pid }) => (pid === undefined ? [] : [pid]))];
    for (const pid of others) pin(pid, row.cpus ?? allCpus);
    lines.push(cellsOf(row, await measure(row, candidates, rounds)));
  }
  for (const pid of [ours.agentPid(), ...peers.flatMap(({ pid }) => (pid === undefined ? [] : [pid]))])
    pin(pid, allCpus);

  const xksTitle = 'XKS Encrypt over TLS keep-alive';
  let xksLines = '';
  if (xksTitle.includes(values.only)) {
    say(`measuring ${xksTitle}`);
    const figures = await measureXks(ours, Math.min(rounds, 3), seconds);
    const share = figures.ours.perCpuSecond / figures.echo.perCpuSecond;
    report[xksTitle] = { ...figures, goal: { peer: 'node:https echo', wanted: xksGoal, reached: share } };
    const shown = ({ perSecond, perCpuSecond, p50Ms, p99Ms }: XksFigure): string[] => [
      thousands(perSecond),
      thousands(perCpuSecond),
      `${p50Ms.toFixed(2)} ms`,
      `${p99Ms.toFixed(2)} ms`,
    ];
    const timesOf = (echo: XksFigure): number => figures.ours.perCpuSecond / echo.perCpuSecond;
    const goal = `${share >= xksGoal ? 'reached' : 'MISSED'}: ${ratio(xksGoal)}`;
    xksLines = table([
      [xksTitle, 'on one CPU', 'a CPU second', 'p50', 'p99', 'ratio', 'goal'],
      [ourName, ...shown(figures.ours)],
      ['bare node:https echo', ...shown(figures.echo), ratio(share), goal],
      ['the same, answering in batches', ...shown(figures.batchedEcho), ratio(timesOf(figures.batchedEcho))],
    ]);
    if (figures.unrecorded > 0) xksLines += `\n${figures.unrecorded} requests found no room in the request log`;
  }
  memory['server, after load'] = residentMiB(serverPid);
  memory['agent, after load'] = residentMiB(ours.agentPid());
  report.residentMiB = memory;
  // More than the measurement itself keeps busy is somebody else's work, and disturbs.
  const load = { before: loadBefore, after: loadavg()[0] ?? 0 };
  report.machine = { cpus: availableParallelism(), load };

  if (values.json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  else {
    const memoryRows = Object.entries(memory).map(([name, size]) => [name, `${size.toFixed(0)} MiB`]);
    process.stdout.write(`\n${table(lines)}\n\n${xksLines}\n\nresident memory\n${table(memoryRows)}\n\n`);
    process.stdout.write(
      `${availableParallelism()} CPUs, load ${load.before.toFixed(1)} before and ${load.after.toFixed(1)} after the run\n`,
    );
  }
} finally {
  for (const peer of peers) peer.stop();
  await ours.close();
}
