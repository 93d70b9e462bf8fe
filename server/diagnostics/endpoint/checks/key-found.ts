// Key and vault: the key behind the endpoint is there, and the cloud asks for it by its exact id.

import { ok } from '../../../base/checks.ts';
import { type EndpointCheck, foretold } from '../context.ts';

export const keyFound: EndpointCheck = {
  id: 'key-found',
  layer: 'key',
  title: 'the key is found by its exact id',
  needs: ['vault-enabled'],
  run: ({ key, endpoint, recent }) => {
    if (key === undefined || key.state === 'soft-deleted' || key.state === 'destroyed')
      return foretold(
        'XksKeyNotFoundException',
        key === undefined ? `there is no key ${endpoint.keyId}` : `the key ${key.name} is ${key.state}`,
        'data that it encrypted cannot be decrypted; create an endpoint with another key for new data',
      );
    if (key.integrity === 'tampered')
      return foretold('XksKeyNotFoundException', 'its stored row was changed outside of DKE', 'restore a backup');
    const [latest] = recent.filter(({ externalKeyId }) => externalKeyId !== null);
    const asked = latest?.externalKeyId ?? key.id;
    if (asked === key.id) return ok(key.id);
    return foretold(
      'XksKeyNotFoundException',
      asked.toLowerCase() === key.id.toLowerCase()
        ? `the cloud asks for ${asked}, which differs from ${key.id} in upper and lower case only`
        : `the cloud asks for ${asked}; the key of this endpoint is ${key.id}`,
      `create the KMS key with XksKeyId ${key.id}`,
    );
  },
};
