// Key and vault: the key may be used.

import { command } from '../../../base/command-line.ts';
import { ok } from '../../../base/diagnostic-checks.ts';
import { type EndpointCheck, foretold } from '../context.ts';

export const keyEnabled: EndpointCheck = {
  id: 'key-enabled',
  layer: 'key',
  title: 'the key is enabled',
  fault: 'the key is not enabled',
  needs: ['key-found'],
  run: ({ key }) => {
    if (key === undefined) throw new Error('there is no key');
    return key.state === 'active'
      ? ok(`version ${key.currentVersion}`)
      : foretold('key-disabled', `the key ${key.name} is ${key.state}`, command`dke key enable ${key.name}`);
  },
};
