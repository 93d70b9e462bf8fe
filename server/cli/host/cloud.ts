// `dke cloud`: runs the simulated cloud in this process until a signal ends it.

import { type Command, InvalidArgumentError } from 'commander';
import { openCloudFiles } from '../../clients/cloud-simulator/cloud-folder.ts';
import { openCrypto } from '../../clients/cloud-simulator/crypto.ts';
import { startCloud } from '../../clients/cloud-simulator/server.ts';
import { CommandError } from '../terminal/exit-codes.ts';
import { readFile } from '../terminal/secret-files.ts';

interface CloudFlags {
  readonly data: string;
  readonly host: string;
  readonly port: number;
  readonly proxyCa?: string;
  readonly budget: number;
  readonly region: string;
  readonly account: string;
}

const portNumber = (value: string): number => {
  const port = Number(value);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new InvalidArgumentError('0 to 65535.');
  return port;
};

const milliseconds = (value: string): number => {
  const ms = Number(value);
  if (!Number.isInteger(ms) || ms < 1 || ms > 60_000) throw new InvalidArgumentError('1 to 60000.');
  return ms;
};

const shaped =
  (shape: RegExp, example: string) =>
  (value: string): string => {
    if (!shape.test(value)) throw new InvalidArgumentError(`For example ${example}.`);
    return value;
  };

export const addCloud = (program: Command): void => {
  program
    .command('cloud')
    .description(
      'Simulates AWS KMS with external key stores, and calls XKS proxies as the cloud does, so that you can try an endpoint ' +
        'without a cloud account. Stores and keys are in memory and end with the process. The first start creates an ' +
        'access key and a certificate in the data folder.',
    )
    .option('--data <folder>', 'its access key and certificate (mode 700)', 'dke-cloud')
    .option('--host <host>', 'where to listen', '127.0.0.1')
    .option('--port <port>', '0: any free port', portNumber, 0)
    .option(
      '--proxy-ca <file>',
      'PEM file of the authority that issues the certificates of proxies; default: those of the system',
    )
    .option('--budget <ms>', 'time limit in ms for a call to a proxy; the cloud uses 250', milliseconds, 250)
    .option(
      '--region <region>',
      'region of keys and signatures',
      shaped(/^[a-z0-9-]{1,64}$/, 'eu-central-1'),
      'us-east-1',
    )
    .option('--account <id>', 'account that owns the keys', shaped(/^\d{12}$/, '111122223333'), '111122223333')
    .action(async ({ data, host, port, proxyCa, budget, region, account }: CloudFlags) => {
      const crypto = openCrypto();
      const files = openCloudFiles(crypto, data, [...new Set([host, '127.0.0.1', 'localhost'])]);
      const ended = new Promise<void>((resolve) => {
        for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve());
      });
      const cloud = await startCloud(crypto, {
        host,
        port,
        region,
        accountId: account,
        accessKey: files.accessKey,
        tls: files.tls,
        proxyCa: proxyCa === undefined ? undefined : readFile(proxyCa),
        budgetMs: budget,
        complain: (line) => {
          process.stderr.write(`dke cloud: ${line}\n`);
        },
      }).catch((error: NodeJS.ErrnoException) => {
        throw new CommandError('listen', `${host}:${port} cannot be listened on (${error.code ?? error.message})`);
      });
      process.stdout.write(`credentials: ${files.credentialsPath}\n`);
      process.stdout.write(`certificate: ${files.certificatePath}\n`);
      process.stdout.write(`listening on ${cloud.url}\n`);
      await ended;
      await cloud.stop();
    });
};
