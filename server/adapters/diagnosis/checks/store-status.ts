// Connection: the external key store on the cloud's side is connected. Checked last: earlier faults
// also show here.

import { failed, notAsked, ok, warning } from '../../../base/diagnostic-checks.ts';
import type { EndpointCheck } from '../context.ts';

export const storeStatus: EndpointCheck = {
  id: 'store-status',
  layer: 'connection',
  title: 'the external key store is connected',
  fault: 'the external key store is not connected',
  needs: [],
  run: ({ keyStores }) => {
    if (keyStores.length === 0) return notAsked('none is registered (dke key-store register)');
    const lines = keyStores.map(({ customKeyStoreId, connection: { state, errorCode, detail, source } }) =>
      [customKeyStoreId, state, errorCode, detail, source === null ? 'not checked yet' : `says the ${source}`]
        .filter((part) => part !== null)
        .join(' '),
    );
    const evidence = lines.join('; ');
    if (keyStores.some(({ connection }) => connection.state === 'FAILED'))
      return failed(evidence, 'fix the failed checks above, then connect the key store in the cloud');
    return keyStores.every(({ connection }) => connection.state === 'CONNECTED')
      ? ok(evidence)
      : warning(evidence, 'connect the key store in the cloud');
  },
};
