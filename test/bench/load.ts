// HTTPS load by wrk (Debian's package): one request, repeated over keep-alive connections from a process of its own.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Load {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly connections: number;
  readonly seconds: number;
  /** CPUs for the load generator, as taskset takes them. */
  readonly cpus: string;
}
export interface LoadResult {
  readonly requests: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  /** Answers with a status of 400 or above, and socket errors. */
  readonly failed: number;
}

const script = ({ headers, body }: Load): string => `
wrk.method = "POST"
wrk.body = ${JSON.stringify(body)}
${Object.entries(headers)
  .filter(([name]) => name.toLowerCase() !== 'host')
  .map(([name, value]) => `wrk.headers[${JSON.stringify(name)}] = ${JSON.stringify(value)}`)
  .join('\n')}
wrk.headers["Host"] = ${JSON.stringify(headers.host ?? '127.0.0.1')}
done = function(summary, latency)
  local e = summary.errors
  io.write(string.format('\\nRESULT {"requests":%d,"micros":%d,"p50":%f,"p99":%f,"p999":%f,"failed":%d}\\n', summary.requests,
    summary.duration, latency:percentile(50), latency:percentile(99), latency:percentile(99.9),
    e.status + e.connect + e.read + e.write + e.timeout))
end
`;

export const runLoad = (load: Load): LoadResult => {
  const directory = mkdtempSync(join(tmpdir(), 'wrk-'));
  try {
    const file = join(directory, 'request.lua');
    writeFileSync(file, script(load));
    const output = execFileSync(
      'taskset',
      [
        '-c',
        load.cpus,
        'wrk',
        '-t',
        '1',
        '-c',
        String(load.connections),
        '-d',
        `${load.seconds}s`,
        '-s',
        file,
        load.url,
      ],
      { encoding: 'utf8' },
    );
    const line = /^RESULT (.*)$/m.exec(output)?.[1];
    if (line === undefined) throw new Error(`wrk gave no result:\n${output}`);
    const { requests, micros, p50, p99, p999, failed } = JSON.parse(line) as Record<
      'requests' | 'micros' | 'p50' | 'p99' | 'p999' | 'failed',
      number
    >;
    const perSecond = (requests * 1e6) / micros;
    return { requests, perSecond, p50Ms: p50 / 1000, p99Ms: p99 / 1000, p999Ms: p999 / 1000, failed };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
};
