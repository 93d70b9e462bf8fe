// What support needs from a database host: the debug trace of the first SET KEY, that of ten
// seconds of heartbeat, the end of the log, and the settings of pkcs11.toml without its secrets.
// The secrets come along as bytes, so that the caller can check that none of them is in the rest.
//
// Another user who can write into the log directory chooses names and contents there. So everything
// is read with the rights of the owner of pkcs11.toml, the database's OS user: regular files, never
// links, a bounded part of each, and of these only lines that are JSON objects.
import { closeSync, constants, fstatSync, openSync, readdirSync, readSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import type { LogLine, ProviderTrace } from '../../server/contract/provider.ts';
import { loadConfig } from '../agent/settings/config.ts';
import { codeOf } from './error.ts';
import { asOwnerAsync, effectiveOwner, ownerOfPath } from './owner.ts';

/** A file of the agent is rotated at 10 MiB. */
const mostOfFile = 16 << 20;
/** Most bytes of all files together; the newest files are read first. */
const mostOfAll = 64 << 20;
const mostFiles = 128;
const mostOfSecret = 64 << 10;
/** Before and after the call that creates the first key. */
const aroundKeyMs = 5_000;
const heartbeatMs = 10_000;
/** Lines of each part. */
const mostLines = 5_000;

/** Undefined: not a regular file, or another user's that this one may not read. */
const openRegular = (path: string, follows = false): number | undefined => {
  try {
    const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | (follows ? 0 : constants.O_NOFOLLOW));
    if (fstatSync(fd).isFile()) return fd;
    closeSync(fd);
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
  }
  return undefined;
};

/** A secret file that cannot be read here cannot have come from here either. */
const readSecret = (path: string): readonly Buffer[] => {
  const fd = openRegular(path, true);
  if (fd === undefined) return [];
  try {
    const bytes = Buffer.alloc(Math.min(fstatSync(fd).size, mostOfSecret));
    readSync(fd, bytes);
    return [bytes];
  } finally {
    closeSync(fd);
  }
};

/** Lines of the agent's logs in a directory. */
const readLogs = (directory: string): string[] => {
  const lines: string[] = [];
  const files: { readonly fd: number; readonly size: number; readonly at: number }[] = [];
  try {
    for (const name of readdirSync(directory)
      .filter((each) => /^agent-.*\.log/.test(each))
      .slice(0, mostFiles)) {
      const fd = openRegular(join(directory, name));
      if (fd === undefined) continue;
      const { size, mtimeMs } = fstatSync(fd);
      files.push({ fd, size: Math.min(size, mostOfFile), at: mtimeMs });
    }
    let left = mostOfAll;
    for (const { fd, size } of files.sort((a, b) => b.at - a.at)) {
      if (size > left) break;
      left -= size;
      const bytes = Buffer.alloc(size);
      for (const line of bytes.toString('utf8', 0, readSync(fd, bytes)).split('\n')) lines.push(line);
    }
    return lines;
  } finally {
    for (const { fd } of files) closeSync(fd);
  }
};

/** With its time; undefined: not a line of an agent. */
const parseLine = (text: string): { readonly at: number; readonly line: LogLine } | undefined => {
  try {
    const line: unknown = JSON.parse(text);
    if (typeof line !== 'object' || line === null || Array.isArray(line)) return undefined;
    const at = Date.parse(String((line as LogLine).time));
    return Number.isNaN(at) ? undefined : { at, line: line as LogLine };
  } catch {
    return undefined;
  }
};

/** Lines of a debug trace, which would hide everything else. */
const isTrace = ({ msg }: LogLine): boolean => msg === 'called' || msg === 'asked the service';

/** Throws an error of the configuration, or of the file system. */
export const traceOf = async (configPath: string, directory: string | undefined): Promise<ProviderTrace> => {
  const owner = ownerOfPath(realpathSync(configPath)) ?? effectiveOwner();
  return await asOwnerAsync(owner, async () => {
    const config = await loadConfig(configPath);
    const { redactedUrl, applicationId, caFile, clientCertificate, logDir, logLevel, spinUs, keyCheckMs, waitSeconds } =
      config;
    const from = directory ?? logDir ?? '/var/log/dke-pkcs11';
    const lines = readLogs(from)
      .flatMap((text) => parseLine(text) ?? [])
      .sort((a, b) => a.at - b.at);
    const traced = lines.filter(({ line }) => isTrace(line));
    const created = traced.find(({ line }) => line.msg === 'called' && line.call === 'C_GenerateKey');
    const last = traced.at(-1);
    const within = (begin: number, end: number): readonly LogLine[] =>
      lines.filter(({ at }) => begin <= at && at <= end).map(({ line }) => line);
    return {
      settings: {
        ...{ server_url: redactedUrl, app_id: applicationId, ca_file: caFile, log_dir: logDir, log_level: logLevel },
        ...{ client_certificate: clientCertificate?.certificate ?? null, spin_us: spinUs, key_check_ms: keyCheckMs },
        ...{ wait_seconds: waitSeconds, connect_timeout_ms: config.connectTimeoutMs },
        call_timeout_ms: config.callTimeoutMs,
      },
      directory: from,
      firstKey:
        created === undefined ? null : within(created.at - aroundKeyMs, created.at + aroundKeyMs).slice(0, mostLines),
      heartbeat: last === undefined ? null : within(last.at - heartbeatMs, last.at).slice(-mostLines),
      log: lines
        .filter(({ line }) => !isTrace(line))
        .map(({ line }) => line)
        .slice(-mostLines),
      secrets: [
        { of: `access_token of ${configPath}`, bytes: Buffer.from(config.accessToken) },
        ...(clientCertificate === null ? [] : readSecret(clientCertificate.key)).map((bytes) => ({
          of: clientCertificate?.key ?? '',
          bytes,
        })),
      ],
    };
  });
};
