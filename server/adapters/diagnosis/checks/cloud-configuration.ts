// Connection: what the cloud side is configured with is what this endpoint has. Compared byte for
// byte, as the cloud does.

import { notAsked, ok } from '../../../base/diagnostic-checks.ts';
import { xksProxyUriPath } from '../../../domain/endpoint.ts';
import { type EndpointCheck, foretold } from '../context.ts';

export const cloudConfiguration: EndpointCheck = {
  id: 'cloud-configuration',
  layer: 'connection',
  title: 'the cloud is configured with this endpoint',
  fault: 'the cloud is configured for another endpoint',
  needs: [],
  run: ({ cloud, cloudDetail, endpoint, publicUrl }) => {
    const path = xksProxyUriPath(endpoint.prefix);
    const { uriEndpoint, uriPath, accessKeyId, externalKeyId } = cloud;
    if (cloudDetail !== null && uriPath === undefined)
      return foretold(
        'wrong-address',
        cloudDetail,
        `compare the id and the region of the external key store, and set its XksProxyUriPath to ${path}`,
      );
    if (uriEndpoint !== undefined && new URL(uriEndpoint).origin !== publicUrl.origin)
      return foretold(
        'wrong-address',
        `the cloud calls ${uriEndpoint}; this service is ${publicUrl.origin}`,
        `set the key store's XksProxyUriEndpoint to ${publicUrl.origin}, or server.public_url`,
      );
    if (uriPath !== undefined && uriPath !== path)
      return foretold(
        'wrong-address',
        `the cloud calls ${uriPath}; this endpoint is ${path}`,
        `set the key store's XksProxyUriPath to ${path}`,
      );
    if (accessKeyId !== undefined && !endpoint.credentials.some((credential) => credential.accessKeyId === accessKeyId))
      return foretold(
        'wrong-credential',
        `the cloud signs with ${accessKeyId}, which is not a credential of this endpoint`,
        'add a credential, and enter it in the cloud key store',
      );
    if (externalKeyId !== undefined && externalKeyId !== endpoint.keyId)
      return foretold(
        'wrong-key-id',
        externalKeyId.toLowerCase() === endpoint.keyId.toLowerCase()
          ? `the cloud asks for key ${externalKeyId}, which differs from ${endpoint.keyId} in upper and lower case only`
          : `the cloud asks for key ${externalKeyId}; the key of this endpoint is ${endpoint.keyId}`,
        `create the KMS key with XksKeyId ${endpoint.keyId}`,
      );
    const told = Object.entries(cloud).filter(([, value]) => value !== undefined);
    return told.length === 0
      ? notAsked('no configuration of the cloud key store was given')
      : ok(told.map(([name, value]) => `${name} ${value}`).join(', '));
  },
};
