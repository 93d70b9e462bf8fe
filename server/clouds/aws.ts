// Asks AWS KMS how it sees an external key store (DescribeCustomKeyStores): read access only. Credentials come from where every AWS
// tool takes them: the environment, a profile, the instance's role. The SDK is loaded when it is first needed.

import type { KMSClient } from '@aws-sdk/client-kms';
import type { CloudReader, ConnectionReport } from '../ports/key-store-connection.ts';
import type { Log } from '../ports/log.ts';

const states = ['CONNECTED', 'CONNECTING', 'DISCONNECTED', 'DISCONNECTING', 'FAILED'] as const;
const timeoutMs = 5_000;

export interface AwsOptions {
  /** Where AWS KMS is; the public address of the region when absent. */
  readonly kmsEndpoint: string | undefined;
}

/** `log` is told once in a row that AWS cannot be asked. */
export const openAwsReader = ({ kmsEndpoint }: AwsOptions, log: Log): CloudReader => {
  const clients = new Map<string, Promise<KMSClient>>();
  let silent = false;
  const clientFor = (region: string): Promise<KMSClient> => {
    const known = clients.get(region);
    if (known !== undefined) return known;
    const made = import('@aws-sdk/client-kms').then(
      ({ KMSClient: Client }) =>
        new Client({ region, maxAttempts: 2, ...(kmsEndpoint === undefined ? {} : { endpoint: kmsEndpoint }) }),
    );
    clients.set(region, made);
    return made;
  };
  return {
    describe: async ({ customKeyStoreId, region }) => {
      try {
        const client = await clientFor(region);
        const { DescribeCustomKeyStoresCommand: Describe } = await import('@aws-sdk/client-kms');
        const { CustomKeyStores: [found] = [] } = await client.send(
          new Describe({ CustomKeyStoreId: customKeyStoreId }),
          {
            abortSignal: AbortSignal.timeout(timeoutMs),
          },
        );
        silent = false;
        const state = states.find((name) => name === found?.ConnectionState);
        if (found === undefined || state === undefined) return undefined;
        const report: ConnectionReport = {
          state,
          errorCode: state === 'FAILED' ? (found.ConnectionErrorCode ?? null) : null,
          detail: null,
        };
        const {
          UriEndpoint: uriEndpoint,
          UriPath: uriPath,
          AccessKeyId: accessKeyId,
        } = found.XksProxyConfiguration ?? {};
        return { ...report, configuration: { uriEndpoint, uriPath, accessKeyId } };
      } catch (error) {
        const { name } = error as Error;
        if (name === 'CustomKeyStoreNotFoundException')
          return {
            state: 'DISCONNECTED',
            errorCode: null,
            detail: `AWS KMS has no custom key store ${customKeyStoreId} in ${region}`,
            configuration: {},
          };
        if (!silent) log.warn('AWS KMS cannot be asked about external key stores', { region, reason: name });
        silent = true;
        return undefined;
      }
    },
  };
};
