// Connection: the endpoint itself takes requests.

import { failed, ok } from '../../../base/checks.ts';
import { command } from '../../../base/command-line.ts';
import type { EndpointCheck } from '../context.ts';

export const endpointEnabled: EndpointCheck = {
  id: 'endpoint-enabled',
  layer: 'connection',
  title: 'the endpoint is enabled',
  needs: [],
  run: ({ endpoint }) => {
    if (endpoint.integrity !== 'ok')
      return {
        ...failed('its stored row was changed outside of DKE, so it is refused', 'restore the database from a backup'),
        predicts: 'XksProxyInvalidConfigurationException',
      };
    if (endpoint.state === 'enabled') return ok(endpoint.name);
    return {
      ...failed(`${endpoint.name} is ${endpoint.state}`, command`dke endpoint enable ${endpoint.name}`),
      predicts: 'XksKeyInvalidConfigurationException',
    };
  },
};
