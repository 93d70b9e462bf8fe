// One signed request, sent at a fixed rate over kept TLS connections, one at a time over each,
// independent of the answers. The latency counts from the scheduled time, so that a server that
// stalls still gets the requests of that time. A process of its own, on a CPU of its own, which it
// keeps busy: a timer would be late by more than an answer takes. Until the end of its standard
// input, it shares the CPU: then a request can be late by a millisecond.
//
// `node xks-load.ts <job as JSON>` prints a LoadReport as JSON.

import { connect, type TLSSocket } from 'node:tls';

export interface LoadJob {
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly connections: number;
  /** 0: each connection is opened, makes one request and is kept until the process is stopped. */
  readonly perSecond: number;
  /** null: until the end of the standard input; then every answer is waited for. */
  readonly seconds: number | null;
  /** Whether a request waits for a connection when all are busy. Otherwise it is not sent. */
  readonly waits: boolean;
  /** Requests whose answers are not counted: the service and its code are warm after them. */
  readonly warmUpSeconds: number;
}
export interface LoadReport {
  readonly sent: number;
  readonly answered: number;
  /** Answered with 429. */
  readonly refused: number;
  /** Other answers than 200 and 429, and broken connections. */
  readonly failed: number;
  /** Their statuses, or what became of the connection. */
  readonly failures: readonly string[];
  /** Found no connection free. */
  readonly notSent: number;
  /** Not answered within two seconds after the last was sent. */
  readonly unanswered: number;
  readonly seconds: number;
  /** Latencies of answers with 200; null when there were none. */
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly p999Ms: number | null;
  /** Latency of answers with 429; null when there were none. */
  readonly refusedP99Ms: number | null;
}

const begin = Buffer.from('HTTP/1.1 ');
const graceMs = 2_000;

interface Connection {
  readonly socket: TLSSocket;
  /** When the request under way was due. */
  due: number | undefined;
  /** The end of what came, in which the beginning of an answer may be cut in two. */
  rest: Buffer;
}

const quantile = (sorted: Float64Array, part: number): number | null =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? null;

const run = async (job: LoadJob): Promise<LoadReport> => {
  const head = Object.entries(job.headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const request = Buffer.from(
    `POST ${job.path} HTTP/1.1\r\n${head.join('')}Content-Length: ${Buffer.byteLength(job.body)}\r\n\r\n${job.body}`,
  );
  const taken: number[] = [];
  const refusedAfter: number[] = [];
  let countFrom = Number.POSITIVE_INFINITY;
  let sent = 0;
  const failures: string[] = [];
  let underWay = 0;

  const free: Connection[] = [];
  const onAnswer = (connection: Connection, status: string): void => {
    const { due } = connection;
    if (due === undefined) return;
    connection.due = undefined;
    underWay -= 1;
    free.push(connection);
    if (due < countFrom) return;
    const took = performance.now() - due;
    if (status === '200') taken.push(took);
    else if (status === '429') refusedAfter.push(took);
    else failures.push(status);
  };
  const open = (): Promise<Connection> =>
    new Promise((resolve, reject) => {
      const socket = connect({
        port: job.port,
        host: '127.0.0.1',
        rejectUnauthorized: false,
        ALPNProtocols: ['http/1.1'],
      });
      const connection: Connection = { socket, due: undefined, rest: Buffer.alloc(0) };
      socket.setNoDelay(true);
      socket.once('secureConnect', () => resolve(connection));
      socket.once('error', reject);
      socket.on('close', () => {
        if (connection.due === undefined) return;
        connection.due = undefined;
        failures.push(`closed: ${socket.errored?.message ?? 'no error'}`);
        underWay -= 1;
      });
      socket.on('data', (part: Buffer) => {
        const bytes = connection.rest.length === 0 ? part : Buffer.concat([connection.rest, part]);
        let from = 0;
        for (;;) {
          const at = bytes.indexOf(begin, from);
          if (at < 0 || at + begin.length + 3 > bytes.length) break;
          from = at + begin.length + 3;
          onAnswer(connection, bytes.toString('latin1', at + begin.length, from));
        }
        connection.rest = bytes.subarray(Math.max(from, bytes.length - begin.length - 3));
      });
    });
  const send = (connection: Connection, due: number): void => {
    // Otherwise nothing would show that it gets no answer.
    if (connection.socket.destroyed) {
      failures.push(`closed before: ${connection.socket.errored?.message ?? 'no error'}`);
      return;
    }
    connection.due = due;
    underWay += 1;
    connection.socket.write(request);
  };
  const isOpen = job.seconds === null;
  let isOver = false;
  if (isOpen) process.stdin.resume().once('end', () => (isOver = true));
  const turn = (): Promise<void> => new Promise((resolve) => (isOpen ? setTimeout(resolve, 1) : setImmediate(resolve)));
  const connections: Connection[] = [];
  for (let at = 0; at < job.connections; at += 1) {
    const connection = await open();
    connections.push(connection);
    if (job.perSecond > 0 && !isOpen) continue;
    // At once: a connection without requests is closed after some seconds, sooner than the last of
    // many is open.
    send(connection, 0);
    while (underWay > 0) await turn();
  }

  if (job.perSecond === 0) {
    process.stdout.write('held\n');
    await new Promise<void>((resolve) => process.once('SIGTERM', () => resolve()));
    for (const { socket } of connections) socket.destroy();
    process.exit(0);
  }

  if (isOpen) process.stdout.write('begun\n');
  const startedAt = performance.now();
  countFrom = startedAt + job.warmUpSeconds * 1000;
  const whole =
    job.seconds === null ? Number.POSITIVE_INFINITY : Math.floor(job.perSecond * (job.warmUpSeconds + job.seconds));
  const waiting: number[] = [];
  let notSent = 0;
  free.length = 0;
  free.push(...connections);
  for (let next = 0; next < whole && !isOver; ) {
    const now = performance.now();
    for (; next < whole; next += 1) {
      const due = startedAt + (next * 1000) / job.perSecond;
      if (due > now) break;
      if (job.waits || waiting.length < free.length) waiting.push(due);
      else if (due >= countFrom) notSent += 1;
    }
    let at = 0;
    for (; at < waiting.length; at += 1) {
      // The one that was free longest.
      const connection = free.shift();
      const due = waiting[at];
      if (connection === undefined || due === undefined) break;
      if (due >= countFrom) sent += 1;
      send(connection, due);
    }
    waiting.splice(0, at);
    await turn();
  }
  const seconds = (performance.now() - countFrom) / 1000;
  const until = isOpen ? Number.POSITIVE_INFINITY : performance.now() + graceMs;
  while (underWay > 0 && performance.now() < until) await turn();
  for (const { socket } of connections) socket.destroy();
  const good = Float64Array.from(taken).sort();
  return {
    sent,
    answered: taken.length,
    refused: refusedAfter.length,
    failed: failures.length,
    failures: failures.slice(0, 20),
    notSent: notSent + waiting.length,
    unanswered: sent - taken.length - refusedAfter.length - failures.length,
    seconds: job.seconds ?? seconds,
    p50Ms: quantile(good, 0.5),
    p99Ms: quantile(good, 0.99),
    p999Ms: quantile(good, 0.999),
    refusedP99Ms: quantile(Float64Array.from(refusedAfter).sort(), 0.99),
  };
};

if (import.meta.main) {
  const [job] = process.argv.slice(2);
  if (job === undefined) throw new Error('usage: xks-load.ts <job as JSON>');
  process.stdout.write(`${JSON.stringify(await run(JSON.parse(job) as LoadJob))}\n`);
  process.exit(0);
}
