// Key store endpoints, put together.

import type { Ports } from '../../ports/ports.ts';
import { addEndpointCredential } from './add-endpoint-credential.ts';
import { changeEndpoint } from './change-endpoint.ts';
import { createEndpoint } from './create-endpoint.ts';
import { changeEndpointSettings } from './endpoint-settings.ts';
import type { EndpointOperations } from './interface.ts';
import { readEndpoints } from './read-endpoints.ts';
import { removeEndpointCredential } from './remove-endpoint-credential.ts';
import { simulateRules } from './simulate-rules.ts';

export const createEndpointOperations = (ports: Ports): EndpointOperations => ({
  uriEndpoint: () => ports.identity.publicUrl(),
  ...readEndpoints(ports),
  create: createEndpoint(ports),
  enable: changeEndpoint(ports, 'enabled'),
  disable: changeEndpoint(ports, 'disabled'),
  delete: changeEndpoint(ports, 'deleted'),
  changeSettings: changeEndpointSettings(ports),
  simulateRules: simulateRules(ports),
  addCredential: addEndpointCredential(ports),
  removeCredential: removeEndpointCredential(ports),
});
