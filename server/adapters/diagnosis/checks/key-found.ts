// Key and vault: the key behind the endpoint is there.

import { ok } from '../../../base/diagnostic-checks.ts';
import { type EndpointCheck, foretold } from '../context.ts';

export const keyFound: EndpointCheck = {
  id: 'key-found',
  layer: 'key',
  title: 'the key exists',
  fault: 'the key does not exist',
  needs: ['vault-enabled'],
  run: ({ key, endpoint }) => {
    if (key === undefined || key.state === 'soft-deleted' || key.state === 'destroyed')
      return foretold(
        'key-gone',
        key === undefined ? `there is no key ${endpoint.keyId}` : `the key ${key.name} is ${key.state}`,
        'data that it encrypted cannot be decrypted; create an endpoint with another key for new data',
      );
    if (key.integrity === 'tampered')
      return foretold('key-gone', 'its stored row was changed outside of DKE', 'restore a backup');
    return ok(key.id);
  },
};
