// Is the host of the service in order? Configuration, data directory, root key, certificate, locked memory, the listener:
// what a start would meet, looked at without starting or changing anything.

import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { request } from 'node:https';
import { isIP } from 'node:net';
import { join } from 'node:path';
import {
  type Check,
  type CheckResult,
  type Finding,
  failed,
  notAsked,
  ok,
  runChecks,
  warning,
} from '../base/checks.ts';
import { type Config, checkFile, loadConfig } from '../config.ts';

export interface ServerHostOptions {
  /** dke.toml; ./dke.toml or the defaults when absent. */
  readonly configPath: string | undefined;
  readonly workingDirectory: string;
}

interface Context {
  readonly options: ServerHostOptions;
  config?: Config;
}

const day = 86_400_000;
const leastFree = 256 * 1024 * 1024;

const configOf = ({ config }: Context): Config => {
  if (config === undefined) throw new Error('the configuration was not read');
  return config;
};
const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);
const certificatePath = ({ tls, dataDirectory }: Config): string =>
  tls.main?.certificate ?? join(dataDirectory, 'tls.crt');

const checkData = (context: Context): Finding => {
  const { dataDirectory } = configOf(context);
  if (!existsSync(dataDirectory)) return ok(`${dataDirectory} is not there: the first start makes it`);
  const { mode, uid } = statSync(dataDirectory);
  if ((mode & 0o077) !== 0)
    return failed(`${dataDirectory} has mode ${modeOf(dataDirectory)}`, `chmod 700 ${dataDirectory}`);
  const { bavail, bsize } = statfsSync(dataDirectory);
  const free = bavail * bsize;
  const evidence = `${dataDirectory}, uid ${uid}, ${Math.floor(free / 1_048_576)} MiB free`;
  return free < leastFree ? warning(evidence, 'make room: without it nothing can be changed') : ok(evidence);
};

const checkRoot = (context: Context): Finding => {
  const config = configOf(context);
  const { path } = config.root;
  const used = existsSync(join(config.dataDirectory, 'dke.db'));
  if (!existsSync(path))
    return used
      ? failed(
          `${path} is missing, and there is a database: none of its keys opens`,
          'put the copy of the root key file back',
        )
      : ok(`${path} is not there: the first start makes it`);
  checkFile(path, 'secret');
  return ok(`${path}, mode ${modeOf(path)}`);
};

const checkCertificate = (context: Context): Finding => {
  const config = configOf(context);
  const path = certificatePath(config);
  if (!existsSync(path))
    return config.tls.main === undefined ? ok('none yet: the first start makes one') : failed(`${path} is missing`);
  const certificate = new X509Certificate(readFileSync(path));
  const days = Math.floor((Date.parse(certificate.validTo) - Date.now()) / day);
  const [name = 'localhost'] = config.server.publicNames;
  const named = certificate.checkHost(name) ?? certificate.checkIP(name);
  if (days < 10) return failed(`${path} is valid for ${days} days`, 'renew it, then send SIGHUP');
  if (named === undefined)
    return warning(`${path} is not for ${name}`, 'put the name into the certificate, or change server.public_names');
  return days < 30
    ? warning(`${path} is valid for ${days} days`, 'renew it, then send SIGHUP')
    : ok(`${path}, ${days} days`);
};

const checkMemory = (context: Context): Finding => {
  const wanted = configOf(context).memory.lockedBytes;
  const [, soft = ''] = /^Max locked memory\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  const limit = soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft);
  if (wanted !== undefined && limit < wanted)
    return failed(`RLIMIT_MEMLOCK is ${soft} bytes here, ${wanted} are wanted`, 'raise it (LimitMEMLOCK= of the unit)');
  return ok(`RLIMIT_MEMLOCK is ${soft} here`);
};

const checkListener = (context: Context): Finding | Promise<Finding> => {
  const config = configOf(context);
  const { host, port } = config.server;
  if (port === 0) return notAsked('port 0: a free one at each start');
  const path = certificatePath(config);
  const ca = existsSync(path) ? readFileSync(path) : undefined;
  const [servername = 'localhost'] = config.server.publicNames;
  return new Promise((resolve) => {
    const sent = request({
      host: host === '0.0.0.0' ? '127.0.0.1' : host,
      port,
      path: '/health',
      agent: false,
      timeout: 5000,
      ...(isIP(servername) === 0 ? { servername } : {}),
      ...(ca === undefined ? {} : { ca }),
    });
    sent.once('response', (answer) => {
      answer.resume();
      resolve(
        answer.statusCode === 200
          ? ok(`port ${port} answers: healthy`)
          : failed(`port ${port} answers ${answer.statusCode} at /health`, 'look into the log of the service'),
      );
    });
    sent.once('timeout', () => sent.destroy(Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' })));
    sent.once('error', (error: NodeJS.ErrnoException) =>
      resolve(
        error.code === 'ECONNREFUSED'
          ? warning(`nothing listens on port ${port}`, 'start the service')
          : failed(`port ${port} does not answer as it should (${error.code ?? error.message})`),
      ),
    );
    sent.end();
  });
};

const checks: readonly Check<Context>[] = [
  {
    id: 'configuration',
    layer: 'configuration',
    title: 'dke.toml can be used',
    needs: [],
    run: (context) => {
      const { configPath, workingDirectory } = context.options;
      context.config = loadConfig(configPath, workingDirectory);
      return ok(context.config.source ?? 'no file: the defaults');
    },
  },
  { id: 'data', layer: 'files', title: 'the data directory is closed', needs: ['configuration'], run: checkData },
  { id: 'root-key', layer: 'files', title: 'the root key is there', needs: ['configuration'], run: checkRoot },
  {
    id: 'certificate',
    layer: 'tls',
    title: 'the certificate is good',
    needs: ['configuration'],
    run: checkCertificate,
  },
  { id: 'memory', layer: 'memory', title: 'keys can be locked in memory', needs: ['configuration'], run: checkMemory },
  { id: 'listener', layer: 'service', title: 'the service answers', needs: ['configuration'], run: checkListener },
];

export const diagnoseServerHost = (options: ServerHostOptions): Promise<readonly CheckResult[]> =>
  runChecks(checks, { options });
