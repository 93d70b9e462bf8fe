// What support needs to know of a service's host, without any secret: collected while the service runs or is stopped. A part that cannot be had says why.

import { closeSync, fstatSync, openSync, readFileSync, readSync, statSync } from 'node:fs';
import { cpus, release, totalmem, uptime } from 'node:os';
import { dirname, join } from 'node:path';
import type { CheckResult } from '../base/checks.ts';
import type { Config } from '../config/config.ts';
import { findSecret, maskSettings, scrubText, scrubValue } from './support-redaction.ts';

export interface BundlePart {
  readonly name: string;
  readonly content: unknown;
}

/** Where a part comes from; a rejection is told in its place. */
export interface BundleSources {
  readonly version: string;
  readonly config: () => Config;
  readonly doctor: () => Promise<readonly CheckResult[]>;
  readonly database: (path: string) => unknown;
  /** Answers of the service, by their names. */
  readonly service: Readonly<Record<string, () => Promise<unknown>>>;
  readonly metrics: () => Promise<string>;
  /** Absent: the file of dke.toml. */
  readonly logPath: string | undefined;
}

const mostLog = 1 << 20;
const mostLines = 2_000;

/** The last lines of a file, the first of them perhaps cut off and left out. */
const readTail = (path: string): readonly string[] => {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    const bytes = Buffer.alloc(Math.min(size, mostLog));
    readSync(file, bytes, 0, bytes.length, size - bytes.length);
    const lines = bytes.toString('utf8').split('\n');
    if (bytes.length < size) lines.shift();
    return lines.filter((line) => line !== '').slice(-mostLines);
  } finally {
    closeSync(file);
  }
};

const scrubLine = (line: string): unknown => {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === 'object' && value !== null) return scrubValue(value);
  } catch {
    // A line of another program.
  }
  return scrubText(line);
};

/** Paths of files with secrets that the configuration names, and those that the service makes. */
const secretPaths = (config: Config): readonly string[] => {
  const found = new Set([
    config.root.path,
    join(config.dataDirectory, 'tls.key'),
    join(config.dataDirectory, 'administrator-token'),
    join(dirname(config.dataDirectory), 'administrator-token'),
  ]);
  const visit = (value: unknown, name: string): void => {
    if (typeof value === 'string' && /^(?:key|file)$|file$/i.test(name)) found.add(value);
    if (typeof value !== 'object' || value === null) return;
    for (const [member, each] of Object.entries(value)) visit(each, Array.isArray(value) ? name : member);
  };
  const { settings: _, ...rest } = config;
  visit(rest, '');
  return [...found];
};

const mostSecret = 1 << 16;
const readSecrets = (config: Config): { readonly of: string; readonly bytes: Buffer }[] =>
  secretPaths(config).flatMap((path) => {
    try {
      return statSync(path).size > mostSecret ? [] : [{ of: path, bytes: readFileSync(path) }];
    } catch {
      // One that cannot be read here cannot come from here either.
      return [];
    }
  });

const versionsOf = (version: string) => ({
  dke: version,
  node: process.version,
  openssl: process.versions.openssl,
  sqlite: process.versions.sqlite,
  system: `${process.platform} ${release()} ${process.arch}`,
  processors: cpus().length,
  memoryMiB: Math.round(totalmem() / 1_048_576),
  uptimeSeconds: Math.round(uptime()),
});

/** Every text of a part, as it is before JSON escapes it. */
const textsOf = (value: unknown): string => {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return String(value);
  return Object.entries(value)
    .map(([name, each]) => `${name}\n${textsOf(each)}`)
    .join('\n');
};

export const collectBundle = async (sources: BundleSources): Promise<readonly BundlePart[]> => {
  const parts: BundlePart[] = [];
  const add = async (name: string, read: () => unknown): Promise<void> => {
    try {
      parts.push({ name, content: await read() });
    } catch (error) {
      parts.push({ name, content: { omitted: scrubText(error instanceof Error ? error.message : String(error)) } });
    }
  };
  let config: Config | undefined;
  await add('versions', () => versionsOf(sources.version));
  await add('configuration', () => {
    config = sources.config();
    return maskSettings(config.settings);
  });
  const known = (): Config => {
    if (config === undefined) throw new Error('the configuration cannot be read');
    return config;
  };
  await add('doctor', async () => scrubValue(await sources.doctor()));
  await add('database', () => {
    const { postgresql, dataDirectory } = known();
    if (postgresql !== undefined) throw new Error('the database is on PostgreSQL');
    return sources.database(join(dataDirectory, 'dke.db'));
  });
  for (const [name, ask] of Object.entries(sources.service)) await add(name, async () => scrubValue(await ask()));
  await add('metrics', async () => (await sources.metrics()).split('\n').map(scrubText));
  await add('log', () => {
    const { destination } = known().log;
    const path = sources.logPath ?? (['stderr', 'stdout'].includes(destination) ? undefined : destination);
    if (path === undefined)
      throw new Error(
        'the log goes to the journal: journalctl -u dke-server -n 2000 -o cat > dke.log, and pass --log dke.log',
      );
    return readTail(path).map(scrubLine);
  });

  const secrets = config === undefined ? [] : readSecrets(config);
  try {
    return parts.map(({ name, content }) => {
      const of = findSecret(`${textsOf(content)}\n${JSON.stringify(content)}`, secrets);
      return of === undefined ? { name, content } : { name, content: { omitted: `it contains the content of ${of}` } };
    });
  } finally {
    for (const { bytes } of secrets) bytes.fill(0);
  }
};
