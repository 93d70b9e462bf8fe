// Questions for audit records by time and kind among a million of them, beside the calls of a
// cloud: how long the event loop of the service stands, and what calls take. No index has the time,
// so these questions read the most.
//
//   node test/bench/audit-by-time.ts [records] [SQLite or PostgreSQL]

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { openPostgresStore, openStore } from '../../server/adapters/store/store.ts';
import { systemClock } from '../../server/base/time.ts';
import type { Store } from '../../server/ports/store.ts';
import { type ConsoleApi, openConsoleApi } from '../support/console-api.ts';
import { startServerProcess } from '../support/server-process.ts';
import { startSteadyLoad } from '../support/steady-load.ts';
import { createXksEndpoint } from '../support/xks-call.ts';
import { openPlace, type Place, type StoreName } from './places.ts';
import { atShare, median, table } from './statistics.ts';
import { type Verdict, verdictText } from './verdict.ts';

/** Calls of the cloud beside the questions. */
const pace = { perSecond: 1_800, connections: 32 } as const;
const standGoalMs = 20;
const repeats = 5;
/** Between two records, by the clock; one in so many is of the rare kind. */
const [betweenMs, rareEvery] = [1_000, 1_000] as const;
const firstAt = Date.UTC(2025, 0, 1);
const perTransaction = 5_000;

interface QuestionFigure {
  readonly name: string;
  readonly found: number;
  readonly answeredMs: number;
  readonly stoodMs: number;
  readonly callP99Ms: number;
}
export interface AuditByTimeFigure {
  readonly store: StoreName;
  readonly records: number;
  readonly questions: readonly QuestionFigure[];
  readonly callsFailed: number;
  readonly goal: Verdict;
}

/** Appends them as the service does, while it is stopped. */
const fill = async (place: Place, path: string, records: number): Promise<void> => {
  let at = firstAt;
  const surroundings = {
    clock: { ...systemClock, now: () => at },
    authenticateRow: () => '',
    onFatal: (error: Error) => {
      throw error;
    },
  };
  const store: Store =
    place.database === undefined
      ? await openStore({ ...surroundings, path })
      : await openPostgresStore({
          ...surroundings,
          postgres: { ...place.database, password: undefined, ca: undefined, readers: 2 },
        });
  try {
    for (let made = 0; made < records; made += perTransaction)
      await store.write(async (tx) => {
        for (let one = made; one < Math.min(records, made + perTransaction); one += 1) {
          at = firstAt + one * betweenMs;
          await tx.audit.append({
            kind: one % rareEvery === 0 ? 'key.disabled' : 'key.enabled',
            actor: { kind: 'user', id: 'bench', name: 'bench', requestId: `bench-${one}`, peer: null },
            tenantId: 'bench',
            subject: { kind: 'key', id: `key-${one % rareEvery}` },
            details: {},
          });
        }
      });
  } finally {
    await store.close();
  }
};

const questionsOf = (records: number): Readonly<Record<string, string>> => {
  const time = (share: number): string =>
    encodeURIComponent(new Date(firstAt + share * records * betweenMs).toISOString());
  return {
    'from the first tenth on, the newest': `from=${time(0.1)}`,
    'until the first hundredth': `to=${time(0.01)}`,
    'from the last hundredth on, the oldest first': `from=${time(0.99)}&order=oldest`,
    'a thousandth in the middle': `from=${time(0.5)}&to=${time(0.501)}`,
    'a rare kind in a tenth in the middle': `kind=key.disabled&from=${time(0.45)}&to=${time(0.55)}`,
    'a kind that nothing has': `kind=key.deleted&to=${time(1)}`,
    'a time that nothing has': `from=${time(1.1)}&to=${time(1.2)}`,
    'a severity in the first hundredth': `severity=high&to=${time(0.01)}`,
  };
};

export const measureAuditByTime = async (store: StoreName, records: number): Promise<AuditByTimeFigure> => {
  const place = await openPlace(store);
  const folder = mkdtempSync(join(tmpdir(), 'dke-bench-audit-'));
  const file = join(folder, 'loop');
  const start = () =>
    startServerProcess({
      folder,
      toml: `[erasure]\ngather_ms = 20\n[log]\nlevel = "warn"\n${place.toml}`,
      environment: { DKE_BENCH_LOOP: file },
      program: [
        ...['--import', join(import.meta.dirname, 'watch-loop.ts')],
        ...[join(import.meta.dirname, '../../dist/server/cli/main.js'), 'server'],
      ],
    });
  let server = await start();
  const { adminToken } = server;
  try {
    await server.stop();
    await fill(place, join(server.dataDirectory, 'dke.db'), records);
    place.postgres?.run('bench', 'analyze');
    server = await start();
    const api: ConsoleApi = openConsoleApi(server, adminToken);
    const endpoint = await createXksEndpoint({ api, server }, 'bench');
    /** Since it was asked the last time. */
    const stood = async (): Promise<number> => {
      rmSync(file, { force: true });
      server.child.kill('SIGPWR');
      while (!existsSync(file)) await setTimeout(5);
      return Number(readFileSync(file, 'utf8'));
    };
    const questions: QuestionFigure[] = [];
    let callsFailed = 0;
    const ask = async (name: string, work: () => Promise<number>): Promise<void> => {
      const load = await startSteadyLoad(server, endpoint, pace);
      await setTimeout(1_000);
      await stood();
      const took: number[] = [];
      let found = 0;
      for (let at = 0; at < repeats; at += 1) {
        const began = performance.now();
        found = await work();
        took.push(performance.now() - began);
      }
      const stoodMs = await stood();
      const { failed, refused, p99Ms } = await load.stop();
      callsFailed += failed + refused;
      questions.push({ name, found, answeredMs: median(took), stoodMs, callP99Ms: p99Ms ?? Number.NaN });
    };
    await ask('no question, two seconds', () => setTimeout(2_000, 0));
    for (const [name, query] of Object.entries(questionsOf(records)))
      await ask(
        name,
        async () => (await api.call<{ items: unknown[] }>('GET', `/api/audit?limit=100&${query}`)).items.length,
      );
    const longest = atShare(
      questions.slice(1).map(({ stoodMs }) => stoodMs),
      1,
    );
    return {
      ...{ store, records, questions, callsFailed },
      goal: {
        wanted: `the event loop stands for less than ${standGoalMs} ms`,
        measured: `${longest.toFixed(1)} ms`,
        met: longest < standGoalMs,
      },
    };
  } finally {
    await server.stop();
    await place.remove();
    rmSync(folder, { recursive: true, force: true });
  }
};

const ms = (value: number): string => `${value.toFixed(1)} ms`;
export const auditByTimeText = ({ store, records, questions, callsFailed, goal }: AuditByTimeFigure): string =>
  [
    table([
      [`audit records by time, ${records} on ${store}`, 'found', 'answered after', 'loop stood', 'calls, p99'],
      ...questions.map(({ name, found, answeredMs, stoodMs, callP99Ms }) => [
        ...[name, String(found), ms(answeredMs), ms(stoodMs), ms(callP99Ms)],
      ]),
    ]),
    `  ${verdictText(goal)}; failed calls: ${callsFailed}`,
  ].join('\n');

if (import.meta.main) {
  const [records = '1000000', ...names] = process.argv.slice(2);
  for (const store of (names.length === 0 ? ['SQLite'] : names) as StoreName[])
    process.stdout.write(`${auditByTimeText(await measureAuditByTime(store, Number(records)))}\n`);
  process.exit(0);
}
