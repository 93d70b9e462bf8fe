// Key and vault: the key is one that the proxy protocol can use.

import { ok } from '../../../base/diagnostic-checks.ts';
import { type EndpointCheck, foretold } from '../context.ts';

export const keyKind: EndpointCheck = {
  id: 'key-kind',
  layer: 'key',
  title: 'the key is AES-256 for encrypt and decrypt',
  fault: 'the key is not AES-256 for encrypt and decrypt',
  needs: ['key-found'],
  run: ({ key }) => {
    if (key === undefined) throw new Error('there is no key');
    const { algorithm, bits, usages } = key;
    const evidence = `${algorithm.toUpperCase()}-${bits}, ${usages.join(' and ')}`;
    return algorithm === 'aes' && bits === 256 && usages.includes('encrypt') && usages.includes('decrypt')
      ? ok(evidence)
      : foretold('key-kind', evidence, 'create an endpoint with an AES-256 key');
  },
};
