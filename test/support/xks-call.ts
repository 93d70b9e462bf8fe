// A key store endpoint of a server process, and signed calls through it: what the cloud key service
// would do. Signed by curl, which shares no code with ours.
import { randomUUID } from 'node:crypto';
import type { Endpoint, ProxyConfiguration } from '../../server/contract/api/endpoints-routes.ts';
import { type CurlAnswer, type CurlRequest, curlXks } from '../demo/curl.ts';
import type { ConsoleApi } from './console-api.ts';

export interface XksEndpoint {
  readonly endpoint: Endpoint;
  readonly configuration: ProxyConfiguration;
  encrypt(plaintext: Buffer): Promise<CurlAnswer>;
  /** `sealed` is the body of an answer of `encrypt`. */
  decrypt(sealed: CurlAnswer['body']): Promise<CurlAnswer>;
  health(): Promise<CurlAnswer>;
  request(path: string, body: object): CurlRequest;
  /** This endpoint, called at another server. */
  at(server: Place['server']): XksEndpoint;
}

interface Place {
  readonly server: { readonly url: string; readonly caFile: string };
  readonly api: ConsoleApi;
}

const metadata = (kmsOperation: string) => ({
  awsPrincipalArn: 'arn:aws:iam::111122223333:user/alice',
  kmsKeyArn: 'arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab',
  kmsOperation,
  kmsRequestId: randomUUID(),
});

/**
 * A vault, a key, an endpoint and a credential, all new. `place.server` may change: it is checked
 * with each call.
 */
export const createXksEndpoint = async (place: Place, name: string): Promise<XksEndpoint> => {
  const { api } = place;
  const vault = await api.call<{ id: string }>('POST', '/api/vaults', { name });
  const key = await api.call<{ id: string }>('POST', '/api/keys', { name, vaultId: vault.id });
  const endpoint = await api.call<Endpoint>('POST', '/api/endpoints', { name, vaultId: vault.id, keyId: key.id });
  const path = `/api/endpoints/${endpoint.id}/credentials`;
  const configuration = await api.call<ProxyConfiguration>('POST', path);
  const { AccessKeyId, RawSecretAccessKey } = configuration.XksProxyAuthenticationCredential;
  const callsTo = (serverOf: () => Place['server']): XksEndpoint => {
    const request = (target: string, body: object): CurlRequest => ({
      url: `${serverOf().url}${configuration.XksProxyUriPath}${target}`,
      caFile: serverOf().caFile,
      body: JSON.stringify(body),
      accessKeyId: AccessKeyId,
      secretAccessKey: Buffer.from(RawSecretAccessKey),
    });
    return {
      endpoint,
      configuration,
      request,
      at: (server) => callsTo(() => server),
      encrypt: (plaintext) =>
        curlXks(
          request(`/keys/${key.id}/encrypt`, {
            requestMetadata: metadata('Encrypt'),
            plaintext: plaintext.toString('base64'),
            encryptionAlgorithm: 'AES_GCM',
          }),
        ),
      decrypt: (sealed) =>
        curlXks(
          request(`/keys/${key.id}/decrypt`, {
            requestMetadata: metadata('Decrypt'),
            encryptionAlgorithm: 'AES_GCM',
            ...sealed,
          }),
        ),
      health: () =>
        curlXks(
          request('/health', { requestMetadata: { kmsRequestId: randomUUID(), kmsOperation: 'KmsHealthCheck' } }),
        ),
    };
  };
  return callsTo(() => place.server);
};
