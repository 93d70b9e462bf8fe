// `npm run bench`: the service next to its peers, in one run. Prints a table for people or, with
// --json, the figures. A goal that is missed is printed as missed; nothing here is asserted.
//
//   --rounds <n>    interleaved rounds of each PKCS#11 figure, 5 when absent
//   --seconds <n>   of each XKS round, 5 when absent
//   --only <text>   measurements whose title holds the text
//   --against <path>  another built checkout: measures the PKCS#11 rows, XKS and sign-ins of both
//                     alternately, and nothing else
//   --json

import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { measureAgainst } from './against.ts';
import { auditByTimeText, measureAuditByTime } from './audit-by-time.ts';
import { chaosText, measureChaos } from './chaos.ts';
import { controlText, listsText, measureControl, measureLists } from './console.ts';
import { delaysText, measureDelays } from './delays.ts';
import { type DerbyFigure, measureDerby } from './derby.ts';
import { destroysText, measureDestroys } from './destroys.ts';
import { erasureRecords, erasureWaitsText, measureErasureWaits } from './erasure.ts';
import { failoverText, measureFailover } from './failover.ts';
import { firstPageText, measureFirstPage } from './first-page.ts';
import { type IdleFigures, type MariadbFigure, measureMariadb, theirName, transactionsToRecover } from './mariadb.ts';
import { type Goal, type Row, rows } from './measurements.ts';
import { measureNodes, nodesText } from './nodes.ts';
import { ourName, startOurs } from './ours.ts';
import { type Peer, p11Kit, softHsm, startP11KitServer, startSoftHsm } from './peers.ts';
import { type Figures, type Floor, measure, measureFloor, type Sample } from './pkcs11.ts';
import { stores } from './places.ts';
import { measurePosition, positionText } from './position.ts';
import { peakResidentMiB, pin, residentMiB } from './processes.ts';
import { erasureText, measureErasure, measureSnapshots, snapshotText } from './snapshots.ts';
import { microseconds, ratio, table, thousands } from './statistics.ts';
import { measureTiming, timingText } from './timing.ts';
import { type Verdict, verdictText } from './verdict.ts';
import { xksRows } from './xks-rows.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '5' },
    only: { type: 'string', default: '' },
    against: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const rounds = Number(values.rounds);
const seconds = Number(values.seconds);

const agentMemoryGoalMiB = 300;
const mariadbGoal = 0.98;
const mariadbRounds = 12;
const report: Record<string, unknown> = {};
const lines: string[][] = [['what', ourName, 'p99', softHsm, 'ratio', p11Kit, 'ratio', 'goals']];
/** Our own samples, by the row's title. */
const own = new Map<string, Sample>();

const say = (text: string): void => {
  process.stderr.write(`${text}\n`);
};

const timesOf = (mine: Sample, theirs: Sample, throughput: boolean): number =>
  throughput ? mine.perSecond / theirs.perSecond : theirs.medianNs / mine.medianNs;

/** Null if the reference of the goal was not measured. */
const judge = (goal: Goal, mine: Sample, figures: Figures, throughput: boolean): Verdict | null => {
  if (goal.kind === 'below') {
    const measured = mine[goal.field] / 1e6;
    const wanted = `p99 below ${goal.milliseconds} ms`;
    return { wanted, measured: `${measured.toFixed(1)} ms`, met: measured < goal.milliseconds };
  }
  const [beside, name] =
    goal.kind === 'peer' ? [figures.get(goal.peer), goal.peer] : [own.get(goal.title), 'the row above'];
  if (beside === undefined) return null;
  const reached = timesOf(mine, beside, throughput);
  return { wanted: `${goal.times} x ${name}`, measured: ratio(reached), met: reached >= goal.times };
};

const cellsOf = (row: Row, figures: Figures): string[] => {
  const throughput = row.throughput === true;
  const mine = figures.get(ourName);
  if (mine === undefined) throw new Error(`no figure of ours for ${row.title}`);
  own.set(row.title, mine);
  const show = (sample: Sample): string => (throughput ? thousands(sample.perSecond) : microseconds(sample.medianNs));
  const beside = [softHsm, p11Kit].flatMap((peer) => {
    const theirs = figures.get(peer);
    return theirs === undefined ? ['-', '-'] : [show(theirs), ratio(timesOf(mine, theirs, throughput))];
  });
  const verdicts = (row.goals ?? []).flatMap((goal) => judge(goal, mine, figures, throughput) ?? []);
  report[row.title] = { ...Object.fromEntries(figures), goals: verdicts };
  return [row.title, show(mine), microseconds(mine.p99Ns), ...beside, verdicts.map(verdictText).join('; ')];
};

const loadBefore = loadavg()[0] ?? 0;
// A signal must not leave child processes behind: they are ended at exit.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));
if (values.against !== undefined) {
  process.stdout.write(`${await measureAgainst(values.against, values.only, rounds, say)}\n`);
  process.exit(0);
}
const ours = await startOurs();
const peers: Peer[] = [];
try {
  peers.push(startSoftHsm(), await startP11KitServer());
  const serverPid = ours.server.child.pid ?? 0;
  const memory: Record<string, number> = { 'server, idle': residentMiB(serverPid) };

  // The library starts the agent with its first call; all of its threads are there after that.
  await measure({ title: 'warm-up', scenario: 'cbc', iterations: { default: 2_000 } }, [ours], 1);
  memory['agent, idle'] = residentMiB(ours.agentPid());
  const allCpus = `0-${availableParallelism() - 1}`;

  for (const row of rows.filter(({ title }) => title.includes(values.only))) {
    say(`measuring ${row.title}`);
    const candidates = [ours, ...peers.filter(({ name }) => row.peers?.includes(name) !== false)];
    const others = [ours.agentPid(), ...candidates.flatMap(({ pid }) => (pid === undefined ? [] : [pid]))];
    for (const pid of others) pin(pid, row.cpus ?? allCpus);
    const cells = cellsOf(row, await measure(row, candidates, row.rounds ?? rounds));
    say(`  ${cells.slice(1).join('  ')}`);
    lines.push(cells);
  }
  for (const pid of [ours.agentPid(), ...peers.flatMap(({ pid }) => (pid === undefined ? [] : [pid]))])
    pin(pid, allCpus);

  const floors: [string, Floor][] = [
    ['one CPU', await measureFloor('0')],
    ['all CPUs', await measureFloor(allCpus)],
  ];
  report.floor = Object.fromEntries(floors);
  const floorLines = table([
    ['a round trip of two processes that do nothing else', 'socket', 'shared memory'],
    ...floors.map(([where, { socketNs, memoryNs }]) => [where, microseconds(socketNs), microseconds(memoryNs)]),
  ]);

  const xksTexts: string[] = [];
  for (const { title, measure: measureRow } of xksRows(ours, Math.min(rounds, 7), seconds)) {
    if (!title.includes(values.only)) continue;
    say(`measuring ${title}`);
    const measured = await measureRow();
    report[title] = measured.report;
    xksTexts.push(measured.text);
  }
  const timingTitle = 'comparisons of secrets';
  if (timingTitle.includes(values.only)) {
    say(`measuring ${timingTitle}`);
    const figures = measureTiming();
    report[timingTitle] = figures;
    xksTexts.push(timingText(figures));
  }
  const delaysTitle = 'how long others wait beside the slowest calls';
  if (delaysTitle.includes(values.only)) {
    say(`measuring ${delaysTitle}`);
    const figures = await measureDelays();
    report[delaysTitle] = figures;
    xksTexts.push(`${delaysTitle}\n${delaysText(figures)}`);
  }
  const firstPageTitle = "the console's first page in Chromium, nothing cached";
  if (firstPageTitle.includes(values.only)) {
    say(`measuring ${firstPageTitle}`);
    const figure = await measureFirstPage(ours.server);
    if (figure === undefined) say('  left out: no chromium on the PATH');
    else {
      report[firstPageTitle] = figure;
      xksTexts.push(`${firstPageTitle}\n${firstPageText(figure)}`);
    }
  }
  for (const store of stores) {
    const erasureTitle = `erasure run with 10,000 keys on ${store}`;
    if (erasureTitle.includes(values.only)) {
      say(`measuring ${erasureTitle}`);
      const figure = await measureErasure(store, 10_000);
      report[erasureTitle] = figure;
      xksTexts.push(erasureText(figure));
    }
    for (const records of erasureRecords) {
      const waitsTitle = `writes during erasure runs over ${records} records on ${store}`;
      if (!waitsTitle.includes(values.only)) continue;
      say(`measuring ${waitsTitle}`);
      const figure = await measureErasureWaits(store, records);
      report[waitsTitle] = figure;
      xksTexts.push(erasureWaitsText(figure));
    }
    const snapshotTitle = `snapshot, verify and restore of 100,000 keys on ${store}`;
    if (snapshotTitle.includes(values.only)) {
      say(`measuring ${snapshotTitle}`);
      const figure = await measureSnapshots(store, 100_000);
      report[snapshotTitle] = figure;
      xksTexts.push(snapshotText(figure));
    }
    const controlTitle = `changes, audit records and memory at 100,000 keys on ${store}`;
    if (controlTitle.includes(values.only)) {
      say(`measuring ${controlTitle}`);
      const figure = await measureControl(store, 100_000);
      report[controlTitle] = figure;
      xksTexts.push(controlText(figure));
    }
    const listsTitle = `lists and search among 100,000 rows on ${store}`;
    if (listsTitle.includes(values.only)) {
      say(`measuring ${listsTitle}`);
      const figure = await measureLists(store, 100_000);
      report[listsTitle] = figure;
      xksTexts.push(listsText(figure));
    }
  }
  const nodesTitle = 'changes and uses of keys with one, two and three nodes';
  if (nodesTitle.includes(values.only)) {
    say(`measuring ${nodesTitle}`);
    const figures = await measureNodes();
    report[nodesTitle] = figures;
    xksTexts.push(`${nodesTitle}\n${nodesText(figures)}`);
  }
  const positionTitle = 'changes with and without the position on the disk of each node';
  if (positionTitle.includes(values.only)) {
    say(`measuring ${positionTitle}`);
    const figures = await measurePosition();
    report[positionTitle] = figures;
    xksTexts.push(`${positionTitle}\n${positionText(figures)}`);
  }
  const destroysTitle = '500 destructions beside 1,000 uses a second on three and five nodes';
  if (destroysTitle.includes(values.only)) {
    say(`measuring ${destroysTitle}`);
    const figures = await measureDestroys();
    report[destroysTitle] = figures;
    xksTexts.push(destroysText(figures));
  }
  const failoverTitle = 'failover to a synchronous standby beside uses and changes on two nodes';
  if (failoverTitle.includes(values.only)) {
    say(`measuring ${failoverTitle}`);
    const figures = await measureFailover();
    report[failoverTitle] = figures;
    xksTexts.push(failoverText(figures));
  }
  for (const store of stores) {
    const chaosTitle = `chaos: attacks one after the other beside 1,800 calls a second on ${store}`;
    if (chaosTitle.includes(values.only)) {
      say(`measuring ${chaosTitle}`);
      const figures = await measureChaos(store);
      report[chaosTitle] = figures;
      xksTexts.push(chaosText(figures));
    }
    const auditTitle = `audit records by time among 1,000,000 on ${store}`;
    if (auditTitle.includes(values.only)) {
      say(`measuring ${auditTitle}`);
      const figure = await measureAuditByTime(store, 1_000_000);
      report[auditTitle] = figure;
      xksTexts.push(auditByTimeText(figure));
    }
  }
  const derbyTitle = 'Apache Derby, inserts, every page and log record encrypted';
  let derbyLines = '';
  if (derbyTitle.includes(values.only)) {
    say(`measuring ${derbyTitle}`);
    const softHsmPeer = peers.filter(({ name }) => name === softHsm);
    const figures = await measureDerby([ours, ...softHsmPeer], Math.min(rounds, 3));
    if (figures !== undefined) {
      const goals: Verdict[] = [];
      const cellsFor = (provider: string, by: ReadonlyMap<string, DerbyFigure>): string[] => {
        const [mine, theirs] = [by.get(ourName), by.get(softHsm)];
        if (mine === undefined || theirs === undefined) return [provider];
        const reached = mine.perSecond / theirs.perSecond;
        const verdict: Verdict = { wanted: `1 x ${softHsm}`, measured: ratio(reached), met: reached >= 1 };
        goals.push(verdict);
        return [
          provider,
          thousands(mine.perSecond),
          microseconds(mine.p99Ns),
          thousands(theirs.perSecond),
          microseconds(theirs.p99Ns),
          ratio(reached),
          verdictText(verdict),
        ];
      };
      const { perSecond, p99Ns } = figures.java;
      derbyLines = `\n\n${table([
        [derbyTitle, ourName, 'p99', softHsm, 'p99', 'ratio', 'goal'],
        cellsFor('by SunPKCS11', figures.sunPkcs11),
        cellsFor('by dke-jce.jar', figures.dkeJce),
      ])}\nwith AES in Java and no token: ${thousands(perSecond)}, p99 ${microseconds(p99Ns)}`;
      report[derbyTitle] = {
        java: figures.java,
        sunPkcs11: Object.fromEntries(figures.sunPkcs11),
        dkeJce: Object.fromEntries(figures.dkeJce),
        goals,
      };
    }
  }
  const mariadbTitle = 'MariaDB, key management';
  let mariadbLines = '';
  if (mariadbTitle.includes(values.only)) {
    say(`measuring ${mariadbTitle}`);
    // Warms up the service: in use, its code paths have been compiled.
    await measure({ title: 'warm-up', scenario: 'new-process', iterations: { default: 1_000 } }, [ours], 1);
    const figures = await measureMariadb(ours, mariadbRounds);
    const judged = ({ times }: MariadbFigure): Verdict => ({
      wanted: `within 2 % of ${theirName}`,
      measured: ratio(times),
      met: times >= mariadbGoal,
    });
    // A scheduler's tick is 0.01 s: equal means no more than the noise of a few of them.
    const judgedIdle = ({ keyRequests, cpuSeconds }: IdleFigures): Verdict => ({
      wanted: `as many key requests, and within 0.3 CPU seconds a minute of ${theirName}`,
      measured: `${keyRequests.ours.toFixed(0)} a second, ${(cpuSeconds.ours - cpuSeconds.theirs).toFixed(2)} s more`,
      met: keyRequests.ours === keyRequests.theirs && cpuSeconds.ours - cpuSeconds.theirs <= 0.3,
    });
    const shownIdle = (what: string, { keyRequests, cpuSeconds }: IdleFigures, goal: Verdict): string[][] => [
      [
        `${what}: key requests a second`,
        keyRequests.ours.toFixed(0),
        keyRequests.theirs.toFixed(0),
        '',
        verdictText(goal),
      ],
      [`${what}: CPU seconds a minute`, cpuSeconds.ours.toFixed(2), cpuSeconds.theirs.toFixed(2), '', ''],
    ];
    const { start, largeStart, crashStart, reads, inserts, unwrapMs, idle, rotated } = figures;
    const goals = {
      start: judged(start),
      largeStart: judged(largeStart),
      crashStart: judged(crashStart),
      reads: judged(reads),
      inserts: judged(inserts),
      idle: judgedIdle(idle),
      rotated: judgedIdle(rotated),
    };
    report[mariadbTitle] = { ...figures, goals };
    const shown = (
      what: string,
      { ours: mine, theirs, times }: MariadbFigure,
      unit: string,
      goal: Verdict,
    ): string[] => [what, `${mine.toFixed(0)}${unit}`, `${theirs.toFixed(0)}${unit}`, ratio(times), verdictText(goal)];
    mariadbLines = `\n\n${table([
      [mariadbTitle, ourName, theirName, 'ratio', 'goal'],
      shown('start to first connection, a buffer pool of 4 GiB', largeStart, ' ms', goals.largeStart),
      shown('start to first connection, a buffer pool of 8 MiB', start, ' ms', goals.start),
      shown(
        `start after a crash, ${transactionsToRecover} transactions to recover`,
        crashStart,
        ' ms',
        goals.crashStart,
      ),
      shown('point reads, most of them decrypt a page', reads, '/s', goals.reads),
      shown('inserts into a table with a secondary index', inserts, '/s', goals.inserts),
      ...shownIdle('idle, four encryption threads', idle, goals.idle),
      ...shownIdle('idle after a rotation', rotated, goals.rotated),
    ])}\nlibrary, agent and service take ${unwrapMs.toFixed(0)} ms of a start`;
  }
  memory['server, after load'] = residentMiB(serverPid);
  memory['agent, after load'] = residentMiB(ours.agentPid());
  const agentMiB = peakResidentMiB(ours.agentPid());
  memory['server, peak'] = peakResidentMiB(serverPid);
  memory['agent, peak'] = agentMiB;
  const agentMemory: Verdict = {
    wanted: `peak below ${agentMemoryGoalMiB} MiB`,
    measured: `${agentMiB.toFixed(0)} MiB`,
    met: agentMiB < agentMemoryGoalMiB,
  };
  report.residentMiB = { ...memory, goals: [agentMemory] };
  // More than the measurement itself keeps busy is another user's work, and disturbs.
  const load = { before: loadBefore, after: loadavg()[0] ?? 0 };
  report.machine = { cpus: availableParallelism(), load };

  if (values.json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  else {
    const memoryRows = Object.entries(memory).map(([name, size]) => [name, `${size.toFixed(0)} MiB`]);
    process.stdout.write(
      `\n${table(lines)}\n\n${floorLines}\n\n${xksTexts.join('\n\n')}${derbyLines}${mariadbLines}\n\nresident memory\n${table(memoryRows)}\nagent: ${verdictText(agentMemory)}\n\n`,
    );
    process.stdout.write(
      `${availableParallelism()} CPUs, load ${load.before.toFixed(1)} before and ${load.after.toFixed(1)} after the run\n`,
    );
  }
} finally {
  for (const peer of peers) peer.stop();
  await ours.close();
}
