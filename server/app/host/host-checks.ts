// `dke doctor --config`: what a start checks, what it opens, and what the service does without when
// it starts: its unit, other hosts, disks, backups, the listener. Nothing is changed. Other hosts
// are asked as the service asks them, and each has five seconds.

import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync, statfsSync } from 'node:fs';
import { isIP } from 'node:net';
import { dirname } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { core } from '../../../addon/core.ts';
import { createOpenId } from '../../adapters/identity/open-id.ts';
import { inspectPackageDirectory } from '../../adapters/packages/package-folder.ts';
import { backupReceipts } from '../../adapters/roots/durable-files.ts';
import { readSinkTls } from '../../adapters/sinks/tls.ts';
import { extendUnit } from '../../base/command-line.ts';
import {
  type Check,
  type CheckResult,
  type Finding,
  failed,
  notAsked,
  ok,
  runChecks,
  warning,
} from '../../base/diagnostic-checks.ts';
import { localDisk } from '../../base/disk-files.ts';
import { endOfSupport } from '../../base/libcrypto.ts';
import { lookupWithin, resolveWithin } from '../../base/name-lookup.ts';
import { callOutside } from '../../base/outside.ts';
import type { ServiceError } from '../../base/service-error.ts';
import { StartError } from '../../base/start-error.ts';
import { type Config, loadConfig } from '../config/config.ts';
import { readOpenId } from '../open/identity.ts';
import { type OpenedHost, openingChecks } from '../open/opening-checks.ts';
import { configOf, requireFolder, startChecks } from '../start-checks.ts';
import { pairFilesOf } from '../tls/reload-certificates.ts';
import { readBackupReceipts } from './create-backup.ts';
import { askOwnHealth } from './own-health.ts';
import { seenByRoot } from './root-way.ts';
import { isWritableIn, openFolders, readUnit, type Unit } from './unit.ts';

interface Host extends OpenedHost {
  unit?: Unit | undefined;
}

const day = 86_400_000;
const leastFree = 256 * 1024 * 1024;
const answerMs = 5_000;

/** Folders that the service writes to, with the field that names each. */
const writtenFolders = ({
  dataDirectory,
  root,
  log,
  accessLog,
  auditSinks,
  snapshots,
}: Config): readonly (readonly [folder: string, setting: string])[] => [
  [dataDirectory, 'data.directory'],
  [dirname(root.path), 'root.path'],
  ...(log.destination === 'stderr' || log.destination === 'stdout'
    ? []
    : [[dirname(log.destination), 'log.destination'] as const]),
  ...(accessLog === undefined ? [] : [[dirname(accessLog.path), 'access_log.file'] as const]),
  ...auditSinks.flatMap((sink) =>
    sink.type === 'file' ? [[dirname(sink.path), `audit.sinks, ${sink.name}: path`] as const] : [],
  ),
  [snapshots.directory, 'snapshots.directory'],
];

/**
 * What root sees of the folders that the service writes to. `dke doctor` asks before it becomes the
 * user of the service. A dke.toml that cannot be used is a finding of the checks.
 */
export const surveyFolders = (configPath: string, workingDirectory: string): void => {
  if (readUnit(configPath) === undefined) return;
  try {
    for (const [folder] of writtenFolders(loadConfig(configPath, workingDirectory))) seenByRoot(folder);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
  }
};

const checkUnit = (host: Host): Finding => {
  const config = configOf(host);
  const { unit } = host;
  if (unit === undefined) return notAsked('no unit of systemd runs this configuration');
  const closed = writtenFolders(config).filter(([folder]) => !isWritableIn(unit, folder));
  if (closed.length > 0)
    return failed(
      closed
        .map(([folder, setting]) => `${folder} (${setting}) cannot be written inside the unit ${unit.name}`)
        .join('; '),
      openFolders(unit, [...new Set(closed.map(([folder]) => folder))]),
    );
  const lowest = Number(readFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8'));
  const { port } = config.server;
  if (port > 0 && port < lowest && !unit.bindsLowPorts)
    return failed(
      `user ${unit.user} may not listen on port ${port}`,
      extendUnit(unit.name, 'port', ['AmbientCapabilities=CAP_NET_BIND_SERVICE']),
    );
  return ok(`the unit ${unit.name} may write every folder, as user ${unit.user || 'root'}`);
};

/** The start refuses others; here the disks of these are asked, too. */
const checkFolders = (host: Host): Finding => {
  const config = configOf(host);
  for (const [folder, setting] of writtenFolders(config))
    if (existsSync(folder) || (setting.startsWith('audit.sinks') && folder !== config.dataDirectory))
      requireFolder(folder, setting);
  if (!existsSync(config.dataDirectory)) return ok('nothing is stored yet');
  const { bavail, bsize } = statfsSync(config.dataDirectory);
  const evidence = `${config.dataDirectory}: ${Math.floor((bavail * bsize) / 1_048_576)} MiB free`;
  return bavail * bsize < leastFree
    ? warning(evidence, 'free some space: without it, DKE cannot store changes')
    : ok(evidence);
};

const checkPackages = async (host: Host): Promise<Finding> => {
  const { packagesDirectory } = configOf(host).server;
  if (packagesDirectory === undefined) return notAsked('server.packages_directory is not set');
  const { matching, faults } = await inspectPackageDirectory(packagesDirectory);
  return faults.length === 0
    ? ok(`${packagesDirectory}: ${matching} match their checksums`)
    : failed(faults.join('; '), `copy the packages and their SHA256SUMS to ${packagesDirectory} again`);
};

const checkDates = (host: Host): Finding => {
  const config = configOf(host);
  const { pairs } = pairFilesOf(config);
  const renew = 'renew it, then reload the service: systemctl reload dke-server, or SIGHUP';
  let finding = ok('none yet: the first start creates one');
  for (const [at, { certificate: path }] of pairs.entries()) {
    if (!existsSync(path)) continue;
    const certificate = new X509Certificate(readFileSync(path));
    const now = Date.now();
    const days = Math.floor((Date.parse(certificate.validTo) - now) / day);
    const dated = `${path} is valid until ${new Date(certificate.validTo).toISOString()} (${days} days)`;
    if (Date.parse(certificate.validFrom) > now)
      return failed(
        `${path} is not valid before ${new Date(certificate.validFrom).toISOString()}`,
        'check the clock: date -u',
      );
    if (days < 10) return failed(dated, renew);
    const names = at === 0 ? config.server.publicNames : [];
    const missing = names.filter(
      (name) => (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)) === undefined,
    );
    if (missing.length > 0)
      return warning(
        `${path} is not for ${missing.join(', ')}`,
        'add the names to the certificate, or change server.public_names',
      );
    if (days < 30) finding = warning(dated, renew);
    else if (finding.state === 'ok') finding = ok(dated);
  }
  return finding;
};

const checkNames = async (host: Host): Promise<Finding> => {
  const names = configOf(host).server.publicNames.filter((name) => isIP(name) === 0 && name !== 'localhost');
  if (names.length === 0) return notAsked('server.public_names has only addresses and localhost');
  const faults: string[] = [];
  for (const name of names)
    await resolveWithin(answerMs, name).catch((error: NodeJS.ErrnoException) =>
      faults.push(`${name} cannot be resolved (${error.code ?? error.message})`),
    );
  return faults.length === 0
    ? ok(names.join(', '))
    : warning(faults.join('; '), 'add the names to DNS, or change server.public_names');
};

/** Connects as a sink does, and says nothing. Rejects with the error of the connection. */
const greet = async (
  place: { readonly host: string; readonly port: number },
  tls: Awaited<ReturnType<typeof readSinkTls>>,
): Promise<void> => {
  const servername = isIP(place.host) === 0 ? { servername: place.host } : {};
  const lookup = lookupWithin(answerMs);
  const socket = connectTls({ ...place, ...servername, ...tls, minVersion: 'TLSv1.2', lookup });
  const greeted = new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.once('secureConnect', resolve);
  });
  try {
    await callOutside({ place: place.host, totalMs: answerMs }, () => greeted);
  } finally {
    socket.destroy();
  }
};

const placeOf = (url: string): { readonly host: string; readonly port: number } => {
  const { hostname, port } = new URL(url);
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? 443 : Number(port) };
};
const reasonOf = (error: unknown): string => {
  const { code, message } = error as NodeJS.ErrnoException;
  return message || (code ?? 'unknown');
};

/** Sinks and targets that are reached over TLS from the first byte. */
const checkReceivers = async (host: Host): Promise<Finding> => {
  const { auditSinks, notificationTargets } = configOf(host);
  const { read } = localDisk;
  const own = { read, certificate: undefined, key: undefined };
  const receivers = [
    ...auditSinks.flatMap((sink) =>
      sink.type === 'file'
        ? []
        : [
            {
              name: `audit sink ${sink.name}`,
              place: sink.type === 'https' ? placeOf(sink.url) : sink,
              tls: { ...sink, read },
            },
          ],
    ),
    ...notificationTargets.flatMap((target) => {
      const tls = { ...own, ca: target.ca };
      if (target.type === 'webhook') return [{ name: `target ${target.name}`, place: placeOf(target.url), tls }];
      return target.tls === 'implicit' ? [{ name: `target ${target.name}`, place: target, tls }] : [];
    }),
  ];
  if (receivers.length === 0) return notAsked('none is configured that is reached over TLS');
  const faults: string[] = [];
  for (const { name, place, tls } of receivers)
    try {
      await greet({ host: place.host, port: place.port }, await readSinkTls(tls));
    } catch (error) {
      faults.push(`${name}, ${place.host}:${place.port}: ${reasonOf(error)}`);
    }
  return faults.length === 0
    ? ok(`${receivers.length} answer`)
    : warning(
        faults.join('; '),
        'start the receiver, or correct its address or ca in dke.toml; nothing is lost meanwhile',
      );
};

const causeOf = (error: unknown): string => {
  const { message, cause } = error as Error;
  return cause instanceof Error ? `${message}: ${causeOf(cause)}` : message;
};

const checkOpenId = async (host: Host): Promise<Finding> => {
  const { oidc } = configOf(host);
  if (oidc === undefined) return notAsked('[oidc] is not set');
  const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
  try {
    await createOpenId(readOpenId(oidc, { files: localDisk }), quiet).begin('https://localhost/');
    return ok(oidc.issuer);
  } catch (error) {
    return warning(
      `${oidc.issuer}: ${causeOf(error)}`,
      (error as ServiceError).hint ?? 'check [oidc] in dke.toml and the way to the provider',
    );
  }
};

const checkBackups = (host: Host): Finding => {
  const { dataDirectory, root, reminders } = configOf(host);
  if (!existsSync(root.path)) return ok('there is nothing to back up yet');
  const newest = (all: ReturnType<typeof readBackupReceipts>): number =>
    Math.max(0, ...all.filter(({ state }) => state === 'made').map(({ at }) => at));
  const kinds = [
    { what: 'of the service', at: newest(readBackupReceipts(dataDirectory)), command: 'dke backup create' },
    { what: 'of the root key', at: newest(backupReceipts(root.path)), command: 'dke root backup' },
  ];
  const ageOf = (at: number): string =>
    at === 0 ? 'none was made here' : `${Math.floor((Date.now() - at) / day)} days old`;
  const evidence = kinds.map(({ what, at }) => `${what}: ${ageOf(at)}`).join('; ');
  const [service, key] = kinds;
  const isOld = reminders.backupDays > 0 && Date.now() - (service?.at ?? 0) > reminders.backupDays * day;
  const due = [...(isOld ? [service?.command] : []), ...(key?.at === 0 ? [key.command] : [])];
  return due.length === 0 ? ok(evidence) : warning(`backups: ${evidence}`, `make one: ${due.join(', and ')}`);
};

const checkLibcrypto = (): Finding => {
  const version = core.libcryptoVersion();
  const end = endOfSupport(version);
  const evidence = `OpenSSL ${version} in the core, Node ${process.versions.node} with OpenSSL ${process.versions.openssl}`;
  if (end === undefined) return ok(`${evidence}; it is not known here how long that is corrected`);
  if (Date.parse(end) >= Date.now()) return ok(`${evidence}; corrected until ${end}`);
  return warning(`${evidence}; corrections ended on ${end}`, 'install the newest release of DKE (docs/upgrade.md)');
};

const checkListener = async (host: Host): Promise<Finding> => {
  const config = configOf(host);
  const { port } = config.server;
  if (port === 0) return notAsked('port 0: each start uses a free port');
  const [{ certificate: path } = { certificate: '' }] = pairFilesOf(config).pairs;
  try {
    const { statusCode, status, certificate: shown } = await askOwnHealth(config, answerMs);
    if (status === '') return failed(`another program answers on port ${port}`, 'stop it, or change server.port');
    const own = existsSync(path) ? new X509Certificate(readFileSync(path)) : undefined;
    if (statusCode !== 200)
      return failed(`port ${port} answers ${statusCode} at /health: ${status}`, "read the server's log");
    if (own === undefined || shown === undefined || shown.raw.equals(own.raw))
      return ok(`port ${port} answers: ${status}`);
    const served = `port ${port} uses another certificate than ${path} (${shown.fingerprint256})`;
    const before = shown.issuer.replaceAll('\n', ', ');
    return own.issuer === shown.issuer && own.subject !== own.issuer
      ? warning(served, 'send SIGHUP to the service, and read its log if it refuses the new certificate')
      : warning(
          `${served}, of another issuer: clients that trust only ${before} refuse it`,
          `before SIGHUP or a restart, give clients the new issuer (ca_file in pkcs11.toml, --ca-file of dke)`,
        );
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ECONNREFUSED') return warning(`nothing listens on port ${port}`, 'start the service');
    return failed(
      `port ${port} does not answer as DKE does (${code ?? message})`,
      `stop the program that listens there (ss -ltnp sport = :${port}), or change server.port`,
    );
  }
};

const check = (
  id: string,
  layer: string,
  title: string,
  run: (host: Host) => Finding | Promise<Finding>,
  needs: readonly string[] = [],
): Check<Host> => ({ id, layer, title, needs: ['configuration', ...needs], run });

const around: readonly Check<Host>[] = [
  check('unit', 'unit', 'the unit of the service has what it needs', checkUnit),
  check('libcrypto', 'unit', 'the cryptographic library is still corrected', checkLibcrypto),
  check('folders', 'files', 'every folder can be written, and has space', checkFolders, ['data']),
  check('packages', 'files', 'packages match their checksums', checkPackages),
  check('dates', 'tls', 'certificates are valid, and for the public names', checkDates, ['certificate']),
  check('names', 'dns', 'the public names can be resolved', checkNames),
  check('receivers', 'network', 'sinks and notification targets answer', checkReceivers, ['named-files']),
  check('open-id', 'network', 'the OpenID provider answers', checkOpenId, ['named-files']),
  check('backup', 'backup', 'backups are recent', checkBackups, ['data']),
  check('listener', 'service', 'the service answers', checkListener),
];

export const hostChecks: readonly Check<Host>[] = [...startChecks, ...openingChecks, ...around];

export interface HostOptions {
  /** dke.toml; ./dke.toml or the defaults when absent. */
  readonly configPath: string | undefined;
  readonly workingDirectory: string;
}

export const diagnoseHost = ({ configPath, workingDirectory }: HostOptions): Promise<readonly CheckResult[]> => {
  const unit = configPath === undefined ? undefined : readUnit(configPath);
  return runChecks(hostChecks, {
    load: () => loadConfig(configPath, workingDirectory),
    unit,
    unitMemory: () => unit?.lockedMemory,
  });
};
