// Handlers of key store endpoints, and the proxy configuration file of their credentials.

import type { SimulatedRequest } from '../../../contract/api/endpoints-routes.ts';
import type { RequestOrigin } from '../../../domain/authorization-rule.ts';
import type { ShownEndpoint } from '../../../operations/endpoints/endpoints-operations.ts';
import type { Operations } from '../../../operations/index.ts';
import { representEndpoint, representPage, uriPathOf } from '../represent.ts';
import type { Handlers } from './handler.ts';
import { SecretJson } from './handler.ts';

const quote = (text: string): string => JSON.stringify(text);

/**
 * The proxy configuration file of AWS KMS, put together from bytes. Takes the secret: it is wiped
 * here.
 */
const formatProxyConfiguration = (prefix: string, accessKeyId: string, secretAccessKey: Buffer): SecretJson => {
  const head = `{"XksProxyUriPath":${quote(uriPathOf(prefix))},"XksProxyAuthenticationCredential":{"AccessKeyId":${quote(accessKeyId)},"RawSecretAccessKey":"`;
  // Not from the shared pool, which is never wiped.
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(head) + secretAccessKey.length + 3);
  let at = bytes.write(head);
  at += secretAccessKey.copy(bytes, at);
  bytes.write('"}}', at);
  secretAccessKey.fill(0);
  return new SecretJson(bytes);
};

/** Members that are absent are untold. */
const originOf = ({
  kmsOperation,
  awsPrincipalArn,
  kmsKeyArn,
  awsSourceVpc,
  awsSourceVpce,
  kmsViaService,
}: SimulatedRequest): RequestOrigin => ({
  kmsOperation,
  awsPrincipalArn,
  kmsKeyArn,
  awsSourceVpc,
  awsSourceVpce,
  kmsViaService,
});

export const endpointsHandlers = ({ endpoints }: Operations): Handlers['endpoints'] => {
  const represent = (endpoint: ShownEndpoint) => representEndpoint(endpoint, endpoints.uriEndpoint());
  return {
    create: async ({ actor, body }) => {
      const endpoint = await endpoints.create(actor, body);
      return { id: endpoint.id, answer: represent(endpoint) };
    },
    list: async ({ actor, query }) => representPage(await endpoints.list(actor, query), represent),
    get: async ({ actor, path }) => represent(await endpoints.get(actor, path.id)),
    enable: async ({ actor, path }) => represent(await endpoints.enable(actor, path.id)),
    disable: async ({ actor, path }) => represent(await endpoints.disable(actor, path.id)),
    delete: async ({ actor, path }) => represent(await endpoints.delete(actor, path.id)),
    rename: async ({ actor, path, body }) => represent(await endpoints.rename(actor, path.id, body)),
    changeSettings: async ({ actor, path, body }) => represent(await endpoints.changeSettings(actor, path.id, body)),
    simulateRules: async ({ actor, path, body }) => ({
      items: await endpoints.simulateRules(actor, path.id, {
        rules: body.rules,
        requests: body.requests.map(originOf),
      }),
    }),
    addCredential: async ({ actor, path }) => {
      const { prefix } = await endpoints.get(actor, path.id);
      const { credential, secretAccessKey } = await endpoints.addCredential(actor, path.id);
      return {
        id: credential.id,
        answer: formatProxyConfiguration(prefix, credential.accessKeyId, secretAccessKey),
      };
    },
    removeCredential: async ({ actor, path }) =>
      represent(await endpoints.removeCredential(actor, path.id, path.credentialId)),
  };
};
