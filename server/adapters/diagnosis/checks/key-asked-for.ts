// Key and vault: the cloud asks for the key by its exact id. What it asked for last decides: an
// earlier request may be of a KMS key that was created with a wrong id and is gone.

import { notAsked, ok } from '../../../base/diagnostic-checks.ts';
import { type EndpointCheck, foretold } from '../context.ts';

export const keyAskedFor: EndpointCheck = {
  id: 'key-asked-for',
  layer: 'key',
  title: 'the cloud asks for the key by its exact id',
  fault: 'the cloud asks for another key id',
  needs: ['key-enabled'],
  run: ({ endpoint: { keyId }, recent }) => {
    const asked = recent.find(({ externalKeyId }) => externalKeyId !== null)?.externalKeyId;
    if (asked == null) return notAsked('no request for a key in the last hour');
    if (asked === keyId) return ok(asked);
    return foretold(
      'wrong-key-id',
      asked.toLowerCase() === keyId.toLowerCase()
        ? `the cloud asks for ${asked}, which differs from ${keyId} in upper and lower case only`
        : `the cloud asks for ${asked}; the key of this endpoint is ${keyId}`,
      `create the KMS key with XksKeyId ${keyId}`,
    );
  },
};
