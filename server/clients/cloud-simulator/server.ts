// The simulated cloud as a listener: the AWS KMS JSON 1.1 protocol over HTTPS, and of Amazon
// CloudWatch (JSON 1.0) what it tells of proxies; one table of operations each. Requests are
// checked against one access key before anything of their body is read; a secret member leaves the
// body before JSON.parse sees it.

import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { decodeBase64, takeMember, writeWithSecret } from '../../base/secret-member.ts';
import type { CloudCrypto } from './crypto.ts';
import { exceptionStatus, KmsException } from './exceptions.ts';
import type { Input } from './input.ts';
import { createKeyStores, type KeyStores } from './key-stores.ts';
import { type Answer, createKeys, type Keys } from './kms-keys.ts';
import { createLatencyMetric, type LatencyMetric } from './metrics.ts';
import { openProxy, type Requester } from './proxy.ts';
import { type AccessKey, verifyCaller } from './verify-kms-caller.ts';

export interface CloudOptions {
  readonly host: string;
  readonly port: number;
  readonly region: string;
  readonly accountId: string;
  readonly accessKey: AccessKey;
  readonly tls: { readonly certificate: Buffer; readonly key: Buffer };
  /**
   * PEM of the authorities that proxies' certificates come from; those of the system when absent.
   */
  readonly proxyCa: Buffer | undefined;
  /** Milliseconds that a call to a proxy may take. */
  readonly budgetMs: number;
  /** One line for each fault that is not the caller's. */
  readonly complain: (line: string) => void;
}

export interface RunningCloud {
  readonly url: string;
  stop(): Promise<void>;
}

interface Call {
  readonly stores: KeyStores;
  readonly keys: Keys;
  readonly latency: LatencyMetric;
  readonly by: Requester;
  readonly input: Input;
  /** The secret member's characters. */
  readonly secret: Buffer | null;
}
interface Operation {
  /** The secret member and its depth. */
  readonly takes?: readonly [name: string, depth: number];
  readonly run: (call: Call) => Answer | Promise<Answer>;
}

const maxBodyBytes = 64 * 1024;
const rawSecret = ['RawSecretAccessKey', 2] as const;
const members = async (answer: object | Promise<object>): Promise<Answer> => ({ members: await answer });

const operations: Readonly<Record<string, Operation>> = {
  CreateCustomKeyStore: {
    takes: rawSecret,
    run: ({ stores, by, input, secret }) => members(stores.create(by, input, secret)),
  },
  ConnectCustomKeyStore: { run: ({ stores, by, input }) => members(stores.connect(by, input)) },
  DisconnectCustomKeyStore: { run: ({ stores, input }) => members(stores.disconnect(input)) },
  DescribeCustomKeyStores: { run: ({ stores, input }) => members(stores.describe(input)) },
  UpdateCustomKeyStore: {
    takes: rawSecret,
    run: ({ stores, by, input, secret }) => members(stores.update(by, input, secret)),
  },
  DeleteCustomKeyStore: { run: ({ stores, input }) => members(stores.remove(input)) },
  CreateKey: { run: ({ keys, by, input }) => keys.create(by, input) },
  DescribeKey: { run: ({ keys, input }) => keys.describe(input) },
  Encrypt: {
    takes: ['Plaintext', 1],
    run: async ({ keys, by, input, secret }) => {
      const plaintext = secret === null ? null : decodeBase64(secret);
      try {
        return await keys.encrypt(by, input, plaintext);
      } finally {
        plaintext?.fill(0);
      }
    },
  },
  Decrypt: { run: ({ keys, by, input }) => keys.decrypt(by, input) },
  GenerateDataKey: { run: ({ keys, by, input }) => keys.generateDataKey(by, input, true) },
  GenerateDataKeyWithoutPlaintext: { run: ({ keys, by, input }) => keys.generateDataKey(by, input, false) },
  ReEncrypt: { run: ({ keys, by, input }) => keys.reEncrypt(by, input) },
};

/** Operations of Amazon CloudWatch. */
const metricOperations: Readonly<Record<string, Operation>> = {
  GetMetricStatistics: { run: ({ latency, input }) => members(latency.statistics(input)) },
};

interface Service {
  /** `target`: how X-Amz-Target begins. `scope`: the service's name in the scope of a signature. */
  readonly target: string;
  readonly scope: string;
  readonly contentType: string;
  readonly operations: Readonly<Record<string, Operation>>;
}
const kmsService: Service = {
  target: 'TrentService.',
  scope: 'kms',
  contentType: 'application/x-amz-json-1.1',
  operations,
};
const services: readonly Service[] = [
  kmsService,
  {
    target: 'GraniteServiceVersion20100801.',
    scope: 'monitoring',
    contentType: 'application/x-amz-json-1.0',
    operations: metricOperations,
  },
];
const serviceOf = (incoming: IncomingMessage): Service => {
  const target = String(incoming.headers['x-amz-target'] ?? '');
  return services.find((service) => target.startsWith(service.target)) ?? kmsService;
};

const readBody = async (incoming: IncomingMessage): Promise<Buffer> => {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of incoming as AsyncIterable<Buffer>) {
    length += part.length;
    if (length > maxBodyBytes) throw new KmsException('SerializationException', 'the body is too large');
    parts.push(part);
  }
  const body = Buffer.concat(parts);
  for (const part of parts) part.fill(0);
  return body;
};

const parseInput = (body: Buffer): Input => {
  let input: unknown;
  try {
    input = JSON.parse(body.toString('utf8'));
  } catch {
    input = undefined;
  }
  if (typeof input !== 'object' || input === null || Array.isArray(input))
    throw new KmsException('SerializationException', 'the body must be a JSON object');
  return input as Input;
};

export const startCloud = async (crypto: CloudCrypto, options: CloudOptions): Promise<RunningCloud> => {
  const { region, accountId, accessKey } = options;
  const clock = Date.now;
  const latency = createLatencyMetric(clock);
  const stores = createKeyStores({
    crypto,
    clock,
    open: (address, key, storeId) =>
      openProxy(crypto, {
        address,
        key,
        ca: options.proxyCa,
        region,
        clock,
        budgetMs: options.budgetMs,
        measured: (ms) => latency.record(storeId, ms),
      }),
    hasKeys: (storeId) => keys.inStore(storeId),
  });
  const keys = createKeys({
    crypto,
    clock,
    storeOf: stores.get,
    arnPrefix: `arn:aws:kms:${region}:${accountId}:key/`,
    accountId,
  });
  const awsPrincipalArn = `arn:aws:iam::${accountId}:user/dke-cloud`;

  const answer = async (incoming: IncomingMessage, kmsRequestId: string): Promise<Buffer> => {
    const body = await readBody(incoming);
    let taken: Buffer | null = null;
    let plaintext: Buffer | undefined;
    try {
      if (incoming.method !== 'POST' || incoming.url !== '/')
        throw new KmsException('UnknownOperationException', 'only POST / is supported');
      const service = serviceOf(incoming);
      verifyCaller(crypto, accessKey, { target: '/', headers: incoming.headers, body }, service.scope, clock());
      const target = String(incoming.headers['x-amz-target'] ?? '');
      const kmsOperation = target.startsWith(service.target) ? target.slice(service.target.length) : '';
      const operation = Object.hasOwn(service.operations, kmsOperation) ? service.operations[kmsOperation] : undefined;
      if (operation === undefined)
        throw new KmsException(
          'UnknownOperationException',
          'this simulation does not have the operation in X-Amz-Target',
        );
      if (operation.takes !== undefined) taken = takeMember(body, ...operation.takes);
      const by = { kmsRequestId, kmsOperation, awsPrincipalArn };
      const result = await operation.run({ stores, keys, latency, by, input: parseInput(body), secret: taken });
      ({ plaintext } = result);
      return plaintext === undefined
        ? Buffer.from(JSON.stringify(result.members))
        : writeWithSecret(result.members, 'Plaintext', plaintext);
    } finally {
      for (const secret of [body, taken, plaintext]) if (secret) crypto.wipe(secret);
    }
  };

  const handle = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const requestId = randomUUID();
    let status = 200;
    let reply: Buffer;
    try {
      reply = await answer(incoming, requestId);
    } catch (error) {
      const known =
        error instanceof KmsException ? error : new KmsException('KMSInternalException', 'an internal fault');
      if (known !== error) options.complain(`${requestId}: ${error instanceof Error ? error.stack : 'unknown fault'}`);
      status = exceptionStatus[known.exception];
      reply = Buffer.from(JSON.stringify({ __type: known.exception, message: known.message }));
    }
    outgoing.writeHead(status, {
      'content-type': serviceOf(incoming).contentType,
      'content-length': reply.length,
      'x-amzn-requestid': requestId,
    });
    outgoing.end(reply);
    // Sent or given up: it is no longer read.
    outgoing.once('close', () => crypto.wipe(reply));
  };

  const server = createServer(
    { cert: options.tls.certificate, key: options.tls.key, minVersion: 'TLSv1.2' },
    (incoming, outgoing) => void handle(incoming, outgoing),
  );
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  const host = options.host.includes(':') ? `[${options.host}]` : options.host;
  return {
    url: `https://${host}:${port}`,
    stop: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
      stores.close();
    },
  };
};
