// What support needs to know of a service's host, without any secret: collected while the service
// runs or is stopped. A part that cannot be had says why.

import { closeSync, constants, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import { cpus, release, totalmem, uptime } from 'node:os';
import { dirname, join } from 'node:path';
import type { CheckResult } from '../../base/diagnostic-checks.ts';
import type { Config } from '../config/config.ts';
import { findSecret, maskSettings, scrubText, scrubValue } from './support-redaction.ts';

export interface BundlePart {
  readonly name: string;
  readonly content: unknown;
}

/** Where a part comes from; a rejection is told in its place. */
export interface BundleSources {
  readonly version: string;
  readonly config: () => Promise<Config>;
  readonly doctor: () => Promise<readonly CheckResult[]>;
  readonly database: (path: string) => unknown;
  /** Reads the log that dke.toml names, with the rights of the service's user. */
  readonly logOfService: <T>(read: () => T) => Promise<T>;
  /** Answers of the service, by their names. */
  readonly service: Readonly<Record<string, () => Promise<unknown>>>;
  readonly metrics: () => Promise<string>;
  /** Absent: the file of dke.toml. */
  readonly logPath: string | undefined;
}

const mostLog = 1 << 20;
const mostLines = 2_000;

/** A FIFO is not waited for. */
const openFile = (path: string): { readonly file: number; readonly size: number } => {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const stat = fstatSync(file);
  if (stat.isFile()) return { file, size: stat.size };
  closeSync(file);
  throw new Error(`${path} is not a file`);
};

/** The last lines of a file, the first of them perhaps cut off and left out. */
const readTail = (path: string): readonly string[] => {
  const { file, size } = openFile(path);
  try {
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
      const { file, size } = openFile(path);
      try {
        return size > mostSecret ? [] : [{ of: path, bytes: readFileSync(file) }];
      } finally {
        closeSync(file);
      }
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

interface Secret {
  readonly of: string;
  readonly bytes: Buffer;
}
type Source = readonly [name: string, read: () => unknown];

/**
 * Reads the parts in turn, and leaves out each one that has a secret in it. `secretsOf` is called
 * after they are read; the bytes are wiped.
 */
const gather = async (
  sources: readonly Source[],
  secretsOf: () => readonly Secret[],
): Promise<readonly BundlePart[]> => {
  const parts: BundlePart[] = [];
  for (const [name, read] of sources) {
    try {
      parts.push({ name, content: await read() });
    } catch (error) {
      parts.push({ name, content: { omitted: scrubText(error instanceof Error ? error.message : String(error)) } });
    }
  }
  const secrets = secretsOf();
  try {
    return parts.map(({ name, content }) => {
      const of = findSecret(`${textsOf(content)}\n${JSON.stringify(content)}`, secrets);
      return of === undefined ? { name, content } : { name, content: { omitted: `it contains the content of ${of}` } };
    });
  } finally {
    for (const { bytes } of secrets) bytes.fill(0);
  }
};

export const collectBundle = (sources: BundleSources): Promise<readonly BundlePart[]> => {
  let config: Config | undefined;
  const known = (): Config => {
    if (config === undefined) throw new Error('the configuration cannot be read');
    return config;
  };
  const readDatabase = (): unknown => {
    const { postgresql, dataDirectory } = known();
    if (postgresql !== undefined) throw new Error('the database is on PostgreSQL');
    return sources.database(join(dataDirectory, 'dke.db'));
  };
  const readLog = async (): Promise<unknown> => {
    const { destination } = known().log;
    if (sources.logPath !== undefined) return readTail(sources.logPath).map(scrubLine);
    if (['stderr', 'stdout'].includes(destination))
      throw new Error(
        'the log goes to the journal: journalctl -u dke-server -n 2000 -o cat > dke.log, and pass --log dke.log',
      );
    return (await sources.logOfService(() => readTail(destination))).map(scrubLine);
  };
  return gather(
    [
      ['versions', () => versionsOf(sources.version)],
      [
        'configuration',
        async () => {
          config = await sources.config();
          return maskSettings(config.settings);
        },
      ],
      ['doctor', async () => scrubValue(await sources.doctor())],
      ['database', readDatabase],
      ...Object.entries(sources.service).map(([name, ask]): Source => [name, async () => scrubValue(await ask())]),
      ['metrics', async () => (await sources.metrics()).split('\n').map(scrubText)],
      ['log', readLog],
    ],
    () => (config === undefined ? [] : readSecrets(config)),
  );
};

/**
 * What support needs from a database host. `read`: the configuration and the logs of the provider
 * there.
 */
export interface ProviderSources {
  readonly version: string;
  readonly read: () => Promise<{
    readonly settings: Readonly<Record<string, unknown>>;
    readonly directory: string;
    readonly firstKey: readonly unknown[] | null;
    readonly heartbeat: readonly unknown[] | null;
    readonly log: readonly unknown[];
    readonly secrets: readonly Secret[];
  }>;
}

export const collectProviderBundle = ({ version, read }: ProviderSources): Promise<readonly BundlePart[]> => {
  let found: Awaited<ReturnType<typeof read>> | undefined;
  const known = () => {
    if (found === undefined) throw new Error('the configuration cannot be read');
    return found;
  };
  const traced = (lines: readonly unknown[] | null, what: string): unknown => {
    if (lines !== null) return lines.map((line) => scrubValue(line));
    throw new Error(
      `${known().directory} has no debug trace ${what}: set log_level to debug in pkcs11.toml, and do it again`,
    );
  };
  return gather(
    [
      ['versions', () => versionsOf(version)],
      [
        'configuration',
        async () => {
          found = await read();
          return scrubValue(found.settings);
        },
      ],
      ['firstKey', () => traced(known().firstKey, 'of the creation of a key')],
      ['heartbeat', () => traced(known().heartbeat, 'of a heartbeat')],
      ['log', () => known().log.map((line) => scrubValue(line))],
    ],
    () => found?.secrets ?? [],
  );
};
