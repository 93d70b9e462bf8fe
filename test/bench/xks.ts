// The XKS figures, all with the server on one CPU and the load generator on the other: Encrypt over
// TLS keep-alive next to a bare node:https handler that echoes a body of the same size, at a fixed
// rate, at more than there is room for, next to idle connections and a locked store. Requests per
// CPU second show the capacity of a core even when the generator is slower.
//
// The generator's CPU is kept from sleeping by an idle-priority loop: waking a sleeping virtual CPU
// costs the sender of an answer some 20 µs, and only the slower candidate, whose generator has time
// to sleep, would pay for it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:https';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { signXksRequest } from '../support/sign.ts';
import { type LoadResult, runLoad } from './load.ts';
import type { Ours } from './ours.ts';
import { cpuSeconds, pin, residentMiB } from './processes.ts';
import { median } from './statistics.ts';
import type { LoadJob, LoadReport } from './xks-load.ts';

const serverCpu = '1';
const loadCpu = '0';

export interface XksFigure {
  readonly perSecond: number;
  /** Requests per second of CPU time that the server used, all threads. */
  readonly perCpuSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
}
export interface XksFigures {
  readonly connections: number;
  readonly ours: XksFigure;
  readonly echo: XksFigure;
  /**
   * The echo when it sends the answers of one turn of its event loop together, as the service does.
   */
  readonly batchedEcho: XksFigure;
  /**
   * Ours in echoes, by CPU time: the median of rounds, in which they were measured one right after
   * the other.
   */
  readonly share: number;
  readonly batchedShare: number;
  /** Requests that were answered and are not in the request log, because its queue was full. */
  readonly unrecorded: number;
}

const body = JSON.stringify({
  requestMetadata: {
    awsPrincipalArn: 'arn:aws:iam::111122223333:user/alice',
    kmsOperation: 'Encrypt',
    kmsRequestId: '4112f4d6-db54-4af4-ae30-c55a22a8dfae',
    kmsKeyArn: 'arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab',
  },
  additionalAuthenticatedData: Buffer.from('project=nile,department=marketing').toString('base64'),
  plaintext: Buffer.alloc(32, 0x5a).toString('base64'),
  encryptionAlgorithm: 'AES_GCM',
  ciphertextDataIntegrityValueAlgorithm: 'SHA_256',
});

const sign = ({ xks }: Ours): Promise<Record<string, string>> =>
  signXksRequest({
    host: xks.host,
    path: xks.path,
    body,
    accessKeyId: xks.accessKeyId,
    secretAccessKey: xks.secretAccessKey,
  });

/** One request, to see that it is answered with 200, and how long the answer is. */
const answerSize = async (ours: Ours): Promise<number> => {
  const headers = await sign(ours);
  const sent = request(ours.xks.url, { method: 'POST', headers, rejectUnauthorized: false });
  sent.end(body);
  const [answer] = (await once(sent, 'response')) as [import('node:http').IncomingMessage];
  let size = 0;
  for await (const part of answer) size += (part as Buffer).length;
  if (answer.statusCode !== 200) throw new Error(`Encrypt was answered with ${answer.statusCode}`);
  return size;
};

const load = async (
  pid: number,
  url: string,
  headers: Record<string, string>,
  connections: number,
  seconds: number,
): Promise<XksFigure> => {
  const before = cpuSeconds(pid);
  const { origin, pathname } = new URL(url);
  const requests = [{ path: pathname, headers, body }];
  const result: LoadResult = await runLoad({ url: origin, requests, connections, seconds, cpus: loadCpu });
  const used = cpuSeconds(pid) - before;
  if (result.failed > 0) throw new Error(`${result.failed} requests failed`);
  const { perSecond, p50Ms, p99Ms, p999Ms } = result;
  return { perSecond, perCpuSecond: result.requests / used, p50Ms, p99Ms, p999Ms };
};

/**
 * Encrypt over so many connections, each with a new request after each answer: CPU time of the
 * server for one request, in microseconds.
 */
export const measureCpu = async (ours: Ours, connections: number, seconds: number): Promise<number> => {
  const { server, xks } = ours;
  const { perCpuSecond } = await load(server.child.pid ?? 0, xks.url, await sign(ours), connections, seconds);
  return 1e6 / perCpuSecond;
};

const medianOf = (figures: readonly XksFigure[]): XksFigure => ({
  perSecond: median(figures.map((figure) => figure.perSecond)),
  perCpuSecond: median(figures.map((figure) => figure.perCpuSecond)),
  p50Ms: median(figures.map((figure) => figure.p50Ms)),
  p99Ms: median(figures.map((figure) => figure.p99Ms)),
  p999Ms: median(figures.map((figure) => figure.p999Ms)),
});

interface Echo {
  readonly pid: number;
  readonly url: string;
  stop(): void;
}

const startEcho = async ({ server }: Ours, size: number, options: readonly string[]): Promise<Echo> => {
  const program = join(import.meta.dirname, 'xks-echo.ts');
  const keyFile = join(dirname(server.caFile), 'tls.key');
  const child = spawn(process.execPath, [program, server.caFile, keyFile, String(size), ...options], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [port] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  if (child.pid === undefined) throw new Error('the echo did not start');
  return { pid: child.pid, url: `https://127.0.0.1:${port}/`, stop: () => child.kill() };
};

export interface DispatchFigures {
  /** The XKS front alone, and behind Hono's router. */
  readonly before: XksFigure;
  readonly behind: XksFigure;
}

/**
 * What it costs that Hono routes the proxy's requests too (docs/decisions/0013), in one process.
 */
export const measureDispatch = async (rounds: number, seconds: number): Promise<DispatchFigures> => {
  const program = join(import.meta.dirname, 'xks-two-ways.ts');
  const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const awake = spawn('chrt', ['--idle', '0', 'taskset', '-c', loadCpu, 'sh', '-c', 'while :; do :; done']);
  try {
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    const { ports, path, accessKeyId, secretAccessKey } = JSON.parse(line) as {
      readonly ports: readonly number[];
      readonly path: string;
      readonly accessKeyId: string;
      readonly secretAccessKey: string;
    };
    const pid = child.pid ?? 0;
    pin(pid, serverCpu);
    const figures: XksFigure[][] = ports.map(() => []);
    // The first round warms all up and does not count.
    for (let round = 0; round <= rounds; round++)
      for (const [at, port] of ports.entries()) {
        const host = `127.0.0.1:${port}`;
        const headers = await signXksRequest({ host, path, body, accessKeyId, secretAccessKey });
        const figure = await load(pid, `https://${host}${path}`, headers, 16, seconds);
        if (round > 0) figures[at]?.push(figure);
      }
    const [before = [], behind = []] = figures;
    return { before: medianOf(before), behind: medianOf(behind) };
  } finally {
    awake.kill();
    child.kill();
  }
};

export const measureXks = async (
  ours: Ours,
  connections: number,
  rounds: number,
  seconds: number,
): Promise<XksFigures> => {
  const { server } = ours;
  const pid = server.child.pid;
  if (pid === undefined) throw new Error('the server is not running');
  const size = await answerSize(ours);
  const echoes = [await startEcho(ours, size, []), await startEcho(ours, size, ['batched'])] as const;
  const awake = spawn('chrt', ['--idle', '0', 'taskset', '-c', loadCpu, 'sh', '-c', 'while :; do :; done']);
  try {
    const servers = [{ pid, url: ours.xks.url }, ...echoes];
    for (const each of servers) pin(each.pid, serverCpu);
    const figures: XksFigure[][] = servers.map(() => []);
    // The first round warms all up and does not count.
    for (let round = 0; round <= rounds; round++)
      for (const [at, each] of servers.entries()) {
        const figure = await load(each.pid, each.url, await sign(ours), connections, seconds);
        if (round > 0) figures[at]?.push(figure);
      }
    const [mine = [], echo = [], batchedEcho = []] = figures;
    const shareOf = (others: readonly XksFigure[]): number =>
      median(mine.map(({ perCpuSecond }, round) => perCpuSecond / (others[round]?.perCpuSecond ?? Number.NaN)));
    return {
      connections,
      ours: medianOf(mine),
      echo: medianOf(echo),
      batchedEcho: medianOf(batchedEcho),
      share: shareOf(echo),
      batchedShare: shareOf(batchedEcho),
      unrecorded: await ours.unrecorded(),
    };
  } finally {
    for (const echo of echoes) echo.stop();
    awake.kill();
  }
};

interface EndpointOfList {
  readonly id: string;
  readonly settings: object;
}

interface Target {
  readonly pid: number;
  /** URL of an Encrypt. */
  readonly url: string;
  /** Fresh headers. */
  sign(): Promise<Record<string, string>>;
}
const targetOf = (ours: Ours): Target => ({
  pid: ours.server.child.pid ?? 0,
  url: ours.xks.url,
  sign: () => sign(ours),
});

const startGenerator = async (target: Target, job: Omit<LoadJob, 'port' | 'path' | 'headers' | 'body'>) => {
  const { port, pathname } = new URL(target.url);
  const whole: LoadJob = { ...job, port: Number(port), path: pathname, headers: await target.sign(), body };
  const program = join(import.meta.dirname, 'xks-load.ts');
  // Its own collections would be counted as the service's.
  const roomy = ['--min-semi-space-size=128', '--max-semi-space-size=128'];
  const child = spawn('taskset', ['-c', loadCpu, process.execPath, ...roomy, program, JSON.stringify(whole)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return { line, child };
};

export interface PacedFigure extends LoadReport {
  readonly cpuMicroseconds: number;
}
const warmUpSeconds = 2;

type Pace = Pick<LoadJob, 'perSecond' | 'connections'> & { readonly seconds: number; readonly waits?: boolean };

const paceAt = async (
  target: Target,
  { perSecond, connections, seconds, waits = true }: Pace,
  meanwhile: (over: AbortSignal) => Promise<void>,
): Promise<PacedFigure> => {
  pin(target.pid, serverCpu);
  const over = new AbortController();
  const before = cpuSeconds(target.pid);
  const aside = meanwhile(over.signal);
  try {
    const { line } = await startGenerator(target, { perSecond, connections, seconds, waits, warmUpSeconds });
    const report = JSON.parse(line) as LoadReport;
    const requests = (report.sent - report.unanswered) * (1 + warmUpSeconds / seconds);
    return { ...report, cpuMicroseconds: ((cpuSeconds(target.pid) - before) / requests) * 1e6 };
  } finally {
    over.abort();
    await aside;
  }
};

/** Encrypt at a fixed rate. `meanwhile` runs as long as the load does. */
export const measurePaced = (
  ours: Ours,
  pace: Pace,
  meanwhile: (over: AbortSignal) => Promise<void> = async () => undefined,
): Promise<PacedFigure> => paceAt(targetOf(ours), pace, meanwhile);

/**
 * Like `measurePaced`, while the endpoint takes only `rate` requests a second, a tenth of a
 * second's at once.
 */
export const measureLimited = async (ours: Ours, rate: number, pace: Pace): Promise<PacedFigure> => {
  const { items } = await ours.api.call<{ items: readonly EndpointOfList[] }>('GET', '/api/endpoints');
  const [endpoint] = items;
  if (endpoint === undefined) throw new Error('there is no endpoint');
  const set = (settings: object): Promise<unknown> =>
    ours.api.call('PUT', `/api/endpoints/${endpoint.id}/settings`, { ...endpoint.settings, ...settings });
  await set({ rate: { perSecond: rate, burst: Math.ceil(rate / 10) } });
  try {
    return await measurePaced(ours, pace);
  } finally {
    await set({});
  }
};

/** The bare echo under the same load, by the same generator. */
export const measureEcho = async (ours: Ours, pace: Pace): Promise<PacedFigure> => {
  const echo = await startEcho(ours, await answerSize(ours), []);
  try {
    return await paceAt({ pid: echo.pid, url: echo.url, sign: () => sign(ours) }, pace, async () => undefined);
  } finally {
    echo.stop();
  }
};

/**
 * What a team of people checks in the console, again and again, with `pauseMs` between two looks.
 */
export const useConsole =
  (ours: Ours, pauseMs: number) =>
  async (over: AbortSignal): Promise<void> => {
    const { items } = await ours.api.call<{ items: readonly EndpointOfList[] }>('GET', '/api/endpoints');
    const pages = [
      '/api/status',
      '/api/vaults',
      '/api/keys',
      '/api/endpoints',
      '/api/audit?limit=50',
      ...items.flatMap(({ id }) => [
        `/api/requests?limit=50&endpointId=${id}`,
        `/api/requests?limit=50&endpointId=${id}&operation=decrypt`,
      ]),
    ];
    for (let at = 0; !over.aborted; at += 1) {
      await ours.api.call('GET', pages[at % pages.length] ?? '/api/status');
      await setTimeout(pauseMs, undefined, { signal: over }).catch(() => undefined);
    }
  };

/** Memory in MiB of so many kept connections after one request each. */
export const measureIdle = async (ours: Ours, connections: number): Promise<number> => {
  const pid = ours.server.child.pid ?? 0;
  const before = residentMiB(pid);
  const { child } = await startGenerator(targetOf(ours), {
    connections,
    perSecond: 0,
    seconds: 0,
    waits: true,
    warmUpSeconds: 0,
  });
  const after = residentMiB(pid);
  const gone = once(child, 'exit');
  child.kill();
  await gone;
  return after - before;
};

/**
 * Another process holds the database's write lock: no commit goes through, and Encrypt continues.
 */
export const measureLocked = async (ours: Ours, seconds: number): Promise<PacedFigure> => {
  const database = new DatabaseSync(join(ours.server.dataDirectory, 'dke.db'));
  database.exec('pragma busy_timeout = 10000');
  try {
    return await measurePaced(ours, { perSecond: 200, connections: 16, seconds }, async () => {
      database.exec('begin immediate');
    });
  } finally {
    database.exec('rollback');
    database.close();
  }
};
