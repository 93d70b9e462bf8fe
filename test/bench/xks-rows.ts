// The XKS rows of the benchmark: measurement (xks.ts), goal and format.

import { type Ours, ourName } from './ours.ts';
import { ratio, table, thousands } from './statistics.ts';
import { type Verdict, verdictText } from './verdict.ts';
import {
  measureDispatch,
  measureEcho,
  measureIdle,
  measureLimited,
  measureLocked,
  measurePaced,
  measureXks,
  type PacedFigure,
  useConsole,
  type XksFigure,
} from './xks.ts';

export interface XksRow {
  readonly title: string;
  measure(): Promise<{ readonly report: object; readonly text: string }>;
}

const echoGoal = 0.7;
/** The cloud's default quota for a key store. */
const quota = 1_800;
const idleConnections = 2_000;
const limitedTitle = `XKS at three times the rate of its endpoint, ${quota} requests a second`;

const ms = (value: number | null): string => (value === null ? 'none' : `${value.toFixed(2)} ms`);
const below = (name: string, value: number | null, most: number): Verdict => ({
  wanted: `${name} <= ${most} ms`,
  measured: ms(value),
  met: value === null || value <= most,
});
const lines = (verdicts: readonly Verdict[]): string =>
  verdicts.map((verdict) => `  ${verdictText(verdict)}`).join('\n');

export const xksRows = (ours: Ours, rounds: number, seconds: number): readonly XksRow[] => {
  /**
   * Requests a second of the row with sixteen connections, ours and the echo's, which the overload
   * is a multiple of.
   */
  let peak: number | undefined;
  let echoPeak: number | undefined;

  const besideEcho = (connections: number): XksRow => {
    const title = `XKS Encrypt over TLS keep-alive, ${connections} connections`;
    return {
      title,
      measure: async () => {
        const figures = await measureXks(ours, connections, rounds, seconds);
        const { share, batchedShare } = figures;
        peak = figures.ours.perSecond;
        echoPeak = figures.echo.perSecond;
        const goal: Verdict = { wanted: `${echoGoal} x the echo`, measured: ratio(share), met: share >= echoGoal };
        const shown = ({ perSecond, perCpuSecond, p50Ms, p99Ms, p999Ms }: XksFigure): string[] => [
          thousands(perSecond),
          thousands(perCpuSecond),
          `${(1e6 / perCpuSecond).toFixed(1)} µs`,
          ...[p50Ms, p99Ms, p999Ms].map(ms),
        ];
        let text = table([
          [title, 'on one CPU', 'a CPU second', 'CPU a request', 'p50', 'p99', 'p99.9', 'ratio', 'goal'],
          [ourName, ...shown(figures.ours)],
          ['bare node:https echo', ...shown(figures.echo), ratio(share), verdictText(goal)],
          ['the same, answering in batches', ...shown(figures.batchedEcho), ratio(batchedShare)],
        ]);
        if (figures.unrecorded > 0) text += `\n${figures.unrecorded} requests found no room in the request log`;
        return { report: { ...figures, goals: [goal] }, text };
      },
    };
  };

  const pacedTable = (title: string, { p50Ms, p99Ms, p999Ms, cpuMicroseconds, ...counts }: PacedFigure): string =>
    table([
      [title, '200', '429', 'failed', 'unanswered', 'not sent', 'p50', 'p99', 'p99.9', 'CPU a request'],
      [
        `${counts.sent} sent`,
        ...[counts.answered, counts.refused, counts.failed, counts.unanswered, counts.notSent].map(String),
        ...[p50Ms, p99Ms, p999Ms].map(ms),
        `${cpuMicroseconds.toFixed(0)} µs`,
      ],
    ]);
  const paced = (
    title: string,
    connections: number,
    goalsOf: (figure: PacedFigure) => readonly Verdict[],
    meanwhile?: (over: AbortSignal) => Promise<void>,
  ): XksRow => ({
    title,
    measure: async () => {
      const figure = await measurePaced(ours, { perSecond: quota, connections, seconds: 3 * seconds }, meanwhile);
      const lost = figure.sent + figure.notSent - figure.answered;
      const goals = [
        ...goalsOf(figure),
        { wanted: 'all answered with 200', measured: lost === 0 ? 'all' : `${lost} not`, met: lost === 0 },
      ];
      return { report: { ...figure, goals }, text: `${pacedTable(title, figure)}\n${lines(goals)}` };
    },
  });
  const quick = (figure: PacedFigure): Verdict[] => [below('p50', figure.p50Ms, 1), below('p99', figure.p99Ms, 5)];

  return [
    besideEcho(64),
    besideEcho(16),
    paced(`XKS at ${quota} requests a second, 16 connections`, 16, quick),
    paced(`XKS at ${quota} requests a second, 64 connections`, 64, quick),
    paced(
      `XKS at ${quota} requests a second while the console is in use`,
      16,
      (figure) => [below('p99', figure.p99Ms, 20)],
      // Ten people, each with a look every two seconds.
      useConsole(ours, 200),
    ),
    {
      title: `XKS beside ${idleConnections} idle TLS connections`,
      measure: async () => {
        const cost = await measureIdle(ours, idleConnections);
        const goal: Verdict = { wanted: 'at most 150 MiB', measured: `${cost.toFixed(0)} MiB`, met: cost <= 150 };
        return {
          report: { mib: cost, goals: [goal] },
          text: `${idleConnections} idle TLS connections: ${verdictText(goal)}`,
        };
      },
    },
    {
      title: 'XKS while the store is locked',
      measure: async () => {
        const figure = await measureLocked(ours, Math.min(seconds, 5));
        const inTime = figure.answered === figure.sent && (figure.p999Ms ?? 0) <= 180;
        const goal: Verdict = {
          wanted: 'all answered within 180 ms',
          measured: `${figure.answered} of ${figure.sent}, p99.9 ${ms(figure.p999Ms)}`,
          met: inTime,
        };
        const text = `${pacedTable('XKS while the store is locked', figure)}\n${lines([goal])}`;
        return { report: { ...figure, goals: [goal] }, text };
      },
    },
    {
      title: limitedTitle,
      measure: async () => {
        const pace = { perSecond: 3 * quota, connections: 64, seconds: 3 * seconds };
        const figure = await measureLimited(ours, quota, pace);
        const goodput = figure.answered / figure.seconds;
        const share = goodput / quota;
        const goals: Verdict[] = [
          { wanted: '0.9 x the rate', measured: `${thousands(goodput)}, ${ratio(share)}`, met: share >= 0.9 },
          below('p99 of a 429', figure.refusedP99Ms, 20),
        ];
        return { report: { ...figure, goals }, text: `${pacedTable(limitedTitle, figure)}\n${lines(goals)}` };
      },
    },
    ...[256, 1_500].map((connections): XksRow => {
      const title = `XKS at three times what there is room for, ${connections} connections`;
      return {
        title,
        measure: async () => {
          if (peak === undefined || echoPeak === undefined) {
            const figures = await measureXks(ours, 16, 1, seconds);
            [peak, echoPeak] = [figures.ours.perSecond, figures.echo.perSecond];
          }
          const offered = { connections, seconds, waits: false };
          const figure = await measurePaced(ours, { ...offered, perSecond: Math.round(3 * peak) });
          const echo = await measureEcho(ours, { ...offered, perSecond: Math.round(3 * echoPeak) });
          const goodput = figure.answered / figure.seconds;
          const share = goodput / peak;
          const echoGoodput = echo.answered / echo.seconds;
          const beside = `the bare echo at three times its own peak: ${thousands(echoGoodput)}, ${ratio(echoGoodput / echoPeak)}, p50 ${ms(echo.p50Ms)}`;
          const goals: Verdict[] = [
            { wanted: '0.9 x the peak', measured: `${thousands(goodput)}, ${ratio(share)}`, met: share >= 0.9 },
            below('p99 of a 429', figure.refusedP99Ms, 20),
          ];
          const text = `${pacedTable(title, figure)}\n${lines(goals)}\n  ${beside}`;
          return { report: { ...figure, peak, echo, echoPeak, goals }, text };
        },
      };
    }),
    {
      title: 'XKS before Hono and behind it',
      measure: async () => {
        const { before, behind } = await measureDispatch(rounds, seconds);
        const times = before.perCpuSecond / behind.perCpuSecond;
        const goal: Verdict = { wanted: 'at most 1.25 x', measured: ratio(times), met: times <= 1.25 };
        const text = table([
          ['XKS before Hono and behind it', 'a CPU second', 'ratio', 'goal'],
          ['before', thousands(before.perCpuSecond), ratio(times), verdictText(goal)],
          ['behind, as the server does it', thousands(behind.perCpuSecond)],
        ]);
        return { report: { before, behind, times, goals: [goal] }, text };
      },
    },
  ];
};
