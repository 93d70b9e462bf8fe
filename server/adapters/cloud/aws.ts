// Asks AWS how it sees an external key store: AWS KMS for its state (DescribeCustomKeyStores),
// Amazon CloudWatch for the latency that it measured (XksProxyLatency). Read access only.
// Credentials come from where every AWS tool takes them: the environment, a profile, the instance's
// role. The SDK is loaded when it is first needed.

import { pipeline, Readable, Transform } from 'node:stream';
import { callOutside } from '../../base/outside.ts';
import type { CloudReader, ConnectionReport, RegisteredKeyStore } from '../../ports/key-store-connection.ts';
import type { Log } from '../../ports/log.ts';

const states = ['CONNECTED', 'CONNECTING', 'DISCONNECTED', 'DISCONNECTING', 'FAILED'] as const;
const timeoutMs = 5_000;
const periodSeconds = 300;
const periods = 3;
/** In bytes; both answers are a few kilobytes. */
const longestAnswer = 1024 * 1024;

/** Ends an answer that is too long for the SDK to have in memory. */
const limitAnswer = (body: unknown): unknown => {
  if (!(body instanceof Readable)) return body;
  let size = 0;
  const limited = new Transform({
    transform: (part: Uint8Array, _encoding, done) => {
      size += part.byteLength;
      if (size > longestAnswer) done(new Error(`the answer is longer than ${longestAnswer} bytes`));
      else done(null, part);
    },
  });
  pipeline(body, limited, () => undefined);
  return limited;
};

export interface AwsOptions {
  /** Where AWS KMS and Amazon CloudWatch are; the public addresses of the region when absent. */
  readonly kmsEndpoint: string | undefined;
  readonly cloudwatchEndpoint: string | undefined;
}

interface Limitable {
  readonly middlewareStack: {
    // biome-ignore lint/suspicious/noExplicitAny: each client has types of its own for the same stack
    add(middleware: any, options: any): void;
  };
}
const limitAnswers = <Client extends Limitable>(client: Client): Client => {
  type Next = (given: unknown) => Promise<{ response: { body?: unknown } }>;
  client.middlewareStack.add(
    (next: Next) => async (given: unknown) => {
      const output = await next(given);
      output.response.body = limitAnswer(output.response.body);
      return output;
    },
    // Under what reads the answer.
    { step: 'deserialize', priority: 'low' },
  );
  return client;
};

/** One client a region. */
const byRegion = <Client>(make: (region: string) => Promise<Client>): ((region: string) => Promise<Client>) => {
  const clients = new Map<string, Promise<Client>>();
  return (region) => {
    const known = clients.get(region);
    if (known !== undefined) return known;
    const made = make(region);
    clients.set(region, made);
    return made;
  };
};

const settings = (region: string, endpoint: string | undefined) => ({
  region,
  maxAttempts: 2,
  ...(endpoint === undefined ? {} : { endpoint }),
});

/** `log` is told once in a row that AWS cannot be asked. */
export const openAwsReader = ({ kmsEndpoint, cloudwatchEndpoint }: AwsOptions, log: Log): CloudReader => {
  const silent = new Set<string>();
  const kmsOf = byRegion(async (region) => {
    const { KMSClient } = await import('@aws-sdk/client-kms');
    return limitAnswers(new KMSClient(settings(region, kmsEndpoint)));
  });
  const cloudWatchOf = byRegion(async (region) => {
    const { CloudWatchClient } = await import('@aws-sdk/client-cloudwatch');
    return limitAnswers(new CloudWatchClient(settings(region, cloudwatchEndpoint)));
  });
  /** What `ask` answers; undefined, and a word in the log, when it throws. */
  const attempt = async <T>(what: string, region: string, ask: (signal: AbortSignal) => Promise<T>) => {
    try {
      const answer = await callOutside({ place: what, totalMs: timeoutMs }, ask);
      silent.delete(what);
      return answer;
    } catch (error) {
      if (!silent.has(what)) log.warn(`${what} cannot be queried`, { region, reason: (error as Error).name });
      silent.add(what);
      return undefined;
    }
  };

  /** The key store as the cloud has it; undefined for none that has the path of the endpoint. */
  const find = async ({ customKeyStoreId, region, uriPath }: RegisteredKeyStore, abortSignal: AbortSignal) => {
    const { DescribeCustomKeyStoresCommand: Describe } = await import('@aws-sdk/client-kms');
    const kms = await kmsOf(region);
    const { CustomKeyStores: [found] = [] } = await kms
      .send(new Describe({ CustomKeyStoreId: customKeyStoreId }), { abortSignal })
      .catch((error: Error) => {
        if (error.name === 'CustomKeyStoreNotFoundException') return { CustomKeyStores: [] };
        throw error;
      });
    return found?.XksProxyConfiguration?.UriPath === uriPath ? found : undefined;
  };

  return {
    describe: (store) =>
      attempt('AWS KMS', store.region, async (abortSignal) => {
        const found = await find(store, abortSignal);
        if (found === undefined) {
          const { customKeyStoreId, region } = store;
          const detail = `AWS KMS has no custom key store ${customKeyStoreId} in ${region} with the path of this endpoint`;
          return { state: 'DISCONNECTED', errorCode: null, detail, configuration: {} };
        }
        const state = states.find((name) => name === found.ConnectionState);
        if (state === undefined) return undefined;
        const errorCode = state === 'FAILED' ? (found.ConnectionErrorCode ?? null) : null;
        const report: ConnectionReport = { state, errorCode, detail: null };
        const { UriEndpoint, UriPath, AccessKeyId } = found.XksProxyConfiguration ?? {};
        return { ...report, configuration: { uriEndpoint: UriEndpoint, uriPath: UriPath, accessKeyId: AccessKeyId } };
      }),
    latency: (store) =>
      attempt('Amazon CloudWatch', store.region, async (abortSignal) => {
        const { customKeyStoreId, region } = store;
        if ((await find(store, abortSignal)) === undefined) return undefined;
        const { GetMetricStatisticsCommand: Statistics } = await import('@aws-sdk/client-cloudwatch');
        const cloudWatch = await cloudWatchOf(region);
        const now = Date.now();
        const { Datapoints: points = [] } = await cloudWatch.send(
          new Statistics({
            Namespace: 'AWS/KMS',
            MetricName: 'XksProxyLatency',
            Dimensions: [{ Name: 'CustomKeyStoreId', Value: customKeyStoreId }],
            StartTime: new Date(now - periods * periodSeconds * 1000),
            EndTime: new Date(now),
            Period: periodSeconds,
            Statistics: ['Average', 'Maximum'],
          }),
          { abortSignal },
        );
        if (points.length === 0) return undefined;
        const average = points.reduce((sum, { Average = 0 }) => sum + Average, 0) / points.length;
        return { average, maximum: Math.max(...points.map(({ Maximum = 0 }) => Maximum)) };
      }),
  };
};
