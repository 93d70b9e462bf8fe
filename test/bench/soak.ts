// `npm run soak`: the built server under steady load over kept TLS connections, for minutes:
// Encrypt, Decrypt, GetKeyMetadata and GetHealthStatus, all signed, every answer checked; in the
// meantime settings change and the certificate is read again. Prints latencies, errors, memory and
// a verdict, and ends with 1 when a request failed or memory grew.
//
//   --minutes <n>       default: 10; fractions are allowed
//   --rate <n>          requests a second, 1,800 when absent: the cloud's default quota for a key
//                       store
//   --connections <n>   64 when absent
//   --requests <n>      so many as fast as they are answered (by wrk, the server on one CPU),
//                       instead of a rate for minutes

import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Endpoint } from '../../server/contract/api/endpoints-routes.ts';
import { openConsoleApi } from '../support/console-api.ts';
import { startServerProcess } from '../support/server-process.ts';
import { signXksRequest } from '../support/sign.ts';
import { createXksEndpoint } from '../support/xks-call.ts';
import { wholeMetadata } from '../support/xks-caller.ts';
import { type LoadResult, runLoad } from './load.ts';
import { keepPace } from './pace.ts';
import { cpuSeconds, pin, residentMiB } from './processes.ts';
import { median, table } from './statistics.ts';
import { verdictText } from './verdict.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    rate: { type: 'string', default: '1800' },
    connections: { type: 'string', default: '64' },
    requests: { type: 'string', default: '0' },
  },
});
const seconds = Number(values.minutes) * 60;
const rate = Number(values.rate);
const connections = Number(values.connections);
const wanted = Number(values.requests);
if (!(seconds > 0 && rate > 0 && Number.isInteger(connections) && connections > 0))
  throw new Error('--minutes, --rate and --connections take positive numbers');

const reportEverySeconds = Math.min(60, seconds / 4);
const signEveryMs = 30_000;
const changeEveryMs = 10_000;
const reloadEveryMs = 30_000;
const sampleEveryMs = 1_000;
/**
 * How far the least memory of the last quarter may exceed the most of the second: a leak exceeds
 * it, collections do not.
 */
const growthMiB = 32;

const say = (text: string): void => {
  process.stdout.write(`${text}\n`);
};
const quantile = (sorted: Float64Array, part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
const milliseconds = (value: number): string => `${value.toFixed(1)} ms`;

const root = resolve(import.meta.dirname, '../..');
const server = await startServerProcess({
  program: [join(root, 'dist/server/cli/main.js'), 'server'],
  toml: '[log]\nlevel = "warn"\ndestination = "server.log"\n',
});
const pid = server.child.pid ?? 0;
const api = openConsoleApi(server, server.adminToken);
const place = await createXksEndpoint({ server, api }, 'soak');
const { XksProxyUriPath, XksProxyAuthenticationCredential: credential } = place.configuration;
const key = `${XksProxyUriPath}/keys/${place.endpoint.keyId}`;
if (wanted > 0) pin(pid, '1');
const agent = new Agent({
  keepAlive: true,
  maxSockets: connections,
  scheduling: 'fifo',
  ca: readFileSync(server.caFile),
});

type Answer = Readonly<Record<string, unknown>>;
interface Kind {
  readonly name: string;
  readonly path: string;
  readonly body: string;
  readonly fits: (answer: Answer) => boolean;
  headers: Readonly<Record<string, string>>;
}
const call = (kind: Pick<Kind, 'path' | 'body' | 'headers'>): Promise<{ status: number; answer: Answer }> =>
  new Promise((resolve, reject) => {
    const { path, headers, body } = kind;
    const sent = request({ agent, host: '127.0.0.1', port: server.port, method: 'POST', path, headers });
    sent.on('error', reject);
    sent.on('response', (incoming: IncomingMessage) => {
      let text = '';
      incoming.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      incoming.on('error', reject);
      incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, answer: JSON.parse(text) as Answer }));
    });
    sent.end(body);
  });
const sign = async (kind: Pick<Kind, 'path' | 'body'>): Promise<Record<string, string>> => ({
  ...(await signXksRequest({
    host: new URL(server.url).host,
    path: kind.path,
    body: kind.body,
    accessKeyId: credential.AccessKeyId,
    secretAccessKey: credential.RawSecretAccessKey,
  })),
  'content-length': String(Buffer.byteLength(kind.body)),
});

const plaintext = Buffer.alloc(32, 0x5a).toString('base64');
const common = { requestMetadata: wholeMetadata(), encryptionAlgorithm: 'AES_GCM' };
const asked = { ...common, plaintext, ciphertextDataIntegrityValueAlgorithm: 'SHA_256' };
const make = async (name: string, path: string, members: object, fits: (answer: Answer) => boolean): Promise<Kind> => {
  const kind = { name, path, body: JSON.stringify(members), fits };
  return { ...kind, headers: await sign(kind) };
};
const encrypt = await make('Encrypt', `${key}/encrypt`, asked, (answer) => typeof answer.ciphertext === 'string');
const { answer: sealed } = await call(encrypt);
const decrypt = await make(
  'Decrypt',
  `${key}/decrypt`,
  { ...common, ...sealed },
  (answer) => answer.plaintext === plaintext,
);
const metadata = await make('GetKeyMetadata', `${key}/metadata`, common, (answer) => answer.keyStatus === 'ENABLED');
const health = await make(
  'GetHealthStatus',
  `${XksProxyUriPath}/health`,
  common,
  (answer) => answer.xksProxyFleetSize === 1,
);
const kinds = [encrypt, decrypt, metadata, health];
/** The kinds of one hundred requests, in their order. */
const mix: readonly Kind[] = Array.from({ length: 100 }, (_, at) =>
  at === 0 ? health : at < 10 ? metadata : at % 2 === 0 ? encrypt : decrypt,
);

const latencies: number[] = [];
const memory: { readonly at: number; readonly mib: number }[] = [];
const errors = new Map<string, number>();
const failed = (what: string): void => {
  errors.set(what, (errors.get(what) ?? 0) + 1);
};

const startedAt = performance.now();
const cpuBefore = cpuSeconds(pid);
const elapsed = (): number => (performance.now() - startedAt) / 1000;
let next = 0;
const sendOne = async (dueAt: number): Promise<void> => {
  const kind = mix[next++ % mix.length] ?? encrypt;
  try {
    const { status, answer } = await call(kind);
    latencies.push(performance.now() - dueAt);
    if (status !== 200) failed(`${kind.name}: ${status} ${String(answer.errorName)}`);
    else if (!kind.fits(answer)) failed(`${kind.name}: a wrong answer`);
  } catch (error) {
    failed(`${kind.name}: ${(error as NodeJS.ErrnoException).code ?? String(error)}`);
  }
};

let reportedCount = 0;
let settings = (await api.call<Endpoint>('GET', `/api/endpoints/${place.endpoint.id}`)).settings;
const change = async (): Promise<void> => {
  const rules = settings.rules.length === 0 ? [{ name: 'everybody', effect: 'allow' as const, when: {} }] : [];
  settings = { ...settings, rules };
  await api.call('PUT', `/api/endpoints/${place.endpoint.id}/settings`, settings);
};
const timers = [
  setInterval(() => memory.push({ at: elapsed(), mib: residentMiB(pid) }), sampleEveryMs),
  setInterval(() => {
    change().catch((error: unknown) => failed(`a change of settings: ${String(error)}`));
  }, changeEveryMs),
  setInterval(() => server.child.kill('SIGHUP'), reloadEveryMs),
  setInterval(() => {
    for (const kind of kinds)
      sign(kind).then(
        (headers) => {
          kind.headers = headers;
        },
        (error: unknown) => failed(`signing: ${String(error)}`),
      );
  }, signEveryMs),
  setInterval(() => {
    if (wanted > 0) return;
    const since = Float64Array.from(latencies.slice(reportedCount)).sort();
    reportedCount = latencies.length;
    const count = [...errors.values()].reduce((sum, each) => sum + each, 0);
    say(
      `${elapsed().toFixed(0).padStart(5)} s  ${(since.length / reportEverySeconds).toFixed(0).padStart(6)}/s` +
        `  p50 ${milliseconds(quantile(since, 0.5))}  p99 ${milliseconds(quantile(since, 0.99))}` +
        `  errors ${count}  memory ${residentMiB(pid).toFixed(0)} MiB`,
    );
  }, reportEverySeconds * 1000),
];

/** Answers of the full-speed run; those of the paced one are in `latencies`. */
let counted = 0;
const slowest: LoadResult[] = [];
/** Pieces of ten seconds, with fresh signatures and one line of output each. */
const runAtFullSpeed = async (): Promise<void> => {
  const pieceSeconds = 10;
  while (counted < wanted) {
    const requests = mix.map(({ path, headers, body }) => {
      const { 'content-length': _length, ...others } = headers;
      return { path, headers: others, body };
    });
    const result = await runLoad({ url: server.url, requests, connections, seconds: pieceSeconds, cpus: '0' });
    counted += result.requests;
    slowest.push(result);
    if (result.failed > 0)
      errors.set('wrk: refused or broken', (errors.get('wrk: refused or broken') ?? 0) + result.failed);
    say(
      `${elapsed().toFixed(0).padStart(5)} s  ${result.perSecond.toFixed(0).padStart(6)}/s  ${counted} of ${wanted}` +
        `  p50 ${milliseconds(result.p50Ms)}  p99 ${milliseconds(result.p99Ms)}  memory ${residentMiB(pid).toFixed(0)} MiB`,
    );
  }
};
const runAtRate = async (): Promise<number> => {
  const report = await keepPace({ perSecond: rate, seconds, graceSeconds: 10, mostUnderWay: rate * 5 }, sendOne);
  if (report.notSent > 0) errors.set('not sent: more than five seconds of requests were waiting', report.notSent);
  if (report.unanswered > 0) errors.set('not answered', report.unanswered);
  return report.sent;
};

say(
  wanted > 0
    ? `${wanted} requests as fast as they are answered over ${connections} connections`
    : `${rate} requests a second over ${connections} connections for ${(seconds / 60).toFixed(1)} minutes`,
);
let sent = wanted;
if (wanted > 0) await runAtFullSpeed();
else sent = await runAtRate();
for (const timer of timers) clearInterval(timer);
const used = cpuSeconds(pid) - cpuBefore;
const generator = process.cpuUsage();
const took = elapsed();
const answered = wanted > 0 ? counted : latencies.length;
const { requestLog } = await api.call<{ requestLog: { dropped: number } }>('GET', '/api/status');

const of = (from: number, to: number): readonly number[] =>
  memory.filter(({ at }) => at >= took * from && at < took * to).map(({ mib }) => mib);
const [early, late] = [of(0.25, 0.5), of(0.75, 1)];
const growth = Math.min(...late) - Math.max(...early);
const sorted = Float64Array.from(latencies).sort();
const latencyRows: readonly (readonly [string, string])[] =
  wanted > 0
    ? [
        ['p50, median of all pieces', milliseconds(median(slowest.map(({ p50Ms }) => p50Ms)))],
        ['p99, median of all pieces', milliseconds(median(slowest.map(({ p99Ms }) => p99Ms)))],
        ['p99.9, the worst piece', milliseconds(Math.max(...slowest.map(({ p999Ms }) => p999Ms)))],
      ]
    : [
        ['p50', milliseconds(quantile(sorted, 0.5))],
        ['p99', milliseconds(quantile(sorted, 0.99))],
        ['p99.9', milliseconds(quantile(sorted, 0.999))],
        ['longest', milliseconds(quantile(sorted, 1))],
      ];
say(
  table([
    ['answered', `${answered} of ${sent}`],
    ['a second', (answered / took).toFixed(0)],
    ...latencyRows,
    ["the server's CPU a request", `${((used / answered) * 1e6).toFixed(0)} µs`],
    ["the generator's CPU", `${(((generator.user + generator.system) / 1e6 / took) * 100).toFixed(0)} %`],
    ['not in the request log (its queue was full)', String(requestLog.dropped)],
    ['memory, second quarter', `${Math.min(...early).toFixed(0)} to ${Math.max(...early).toFixed(0)} MiB`],
    ['memory, last quarter', `${Math.min(...late).toFixed(0)} to ${Math.max(...late).toFixed(0)} MiB`],
    ['errors', String([...errors.values()].reduce((sum, each) => sum + each, 0))],
  ]),
);
for (const [what, count] of errors) say(`  ${count} x ${what}`);
const grew = growth > growthMiB;
const lost = [...errors.values()].reduce((sum, each) => sum + each, 0);
say(verdictText({ wanted: 'no request lost or refused', measured: `${lost} of ${answered + lost}`, met: lost === 0 }));
say(
  verdictText({
    wanted: `the last quarter's least at most ${growthMiB} MiB above the second quarter's most`,
    measured: `memory ${growth < 0 ? 'is flat' : `grew by ${growth.toFixed(0)} MiB`}`,
    met: !grew,
  }),
);
agent.destroy();
const code = await server.stop();
if (code !== 0) say(`the server ended with ${code}`);
await server.remove();
process.exitCode = errors.size > 0 || grew || code !== 0 ? 1 : 0;
