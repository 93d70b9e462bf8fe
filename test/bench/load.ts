// HTTPS load by wrk (Debian's package): the same requests again and again, as fast as they are
// answered, over keep-alive connections from a process of its own.

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface LoadRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}
export interface Load {
  /** `https://HOST:PORT`. */
  readonly url: string;
  /** Sent in turn. */
  readonly requests: readonly LoadRequest[];
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

/**
 * A Lua table of header fields. wrk recognizes Host only in this spelling, and otherwise adds its
 * own.
 */
const luaTable = (texts: Readonly<Record<string, string>>): string =>
  `{${Object.entries(texts)
    .map(([name, value]) => `[${JSON.stringify(name === 'host' ? 'Host' : name)}]=${JSON.stringify(value)}`)
    .join(',')}}`;

const script = ({ requests }: Load): string => `
local texts = {}
init = function(args)
${requests
  .map(
    ({ path, headers, body }) =>
      `  texts[#texts + 1] = wrk.format("POST", ${JSON.stringify(path)}, ${luaTable(headers)}, ${JSON.stringify(body)})`,
  )
  .join('\n')}
end
local at = 0
request = function()
  at = at % #texts + 1
  return texts[at]
end
done = function(summary, latency)
  local e = summary.errors
  io.write(string.format('\\nRESULT {"requests":%d,"micros":%d,"p50":%f,"p99":%f,"p999":%f,"failed":%d}\\n', summary.requests,
    summary.duration, latency:percentile(50), latency:percentile(99), latency:percentile(99.9),
    e.status + e.connect + e.read + e.write + e.timeout))
end
`;

const run = promisify(execFile);

export const runLoad = async (load: Load): Promise<LoadResult> => {
  const directory = mkdtempSync(join(tmpdir(), 'wrk-'));
  try {
    const file = join(directory, 'request.lua');
    writeFileSync(file, script(load));
    const { stdout: output } = await run(
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
