// Connection: the endpoint itself takes requests.

import { command } from '../../../base/command-line.ts';
import { ok } from '../../../base/diagnostic-checks.ts';
import { type EndpointCheck, foretold } from '../context.ts';

export const endpointEnabled: EndpointCheck = {
  id: 'endpoint-enabled',
  layer: 'connection',
  title: 'the endpoint is enabled',
  fault: 'the endpoint is disabled',
  needs: [],
  run: ({ endpoint }) => {
    if (endpoint.integrity !== 'ok')
      return foretold(
        'path-changed',
        'its stored row was changed outside of DKE, so it is refused',
        'restore the database from a backup',
      );
    if (endpoint.state === 'enabled') return ok(endpoint.name);
    return foretold(
      'endpoint-disabled',
      `${endpoint.name} is ${endpoint.state}`,
      command`dke endpoint enable ${endpoint.name}`,
    );
  },
};
