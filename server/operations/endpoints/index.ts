// Key store endpoints, put together.

import type { Ports } from '../../ports/ports.ts';
import { addEndpointCredential } from './add-endpoint-credential.ts';
import { changeEndpoint, renameEndpoint } from './change-endpoint.ts';
import { createEndpoint } from './create-endpoint.ts';
import { changeEndpointSettings } from './endpoint-settings.ts';
import type { EndpointOperations } from './endpoints-operations.ts';
import { readEndpoints, shown } from './read-endpoints.ts';
import { removeEndpointCredential } from './remove-endpoint-credential.ts';
import { simulateRules } from './simulate-rules.ts';

export const createEndpointOperations = (ports: Ports): EndpointOperations => {
  const show = shown(ports);
  return {
    uriEndpoint: () => ports.identity.publicUrl(),
    ...readEndpoints(ports),
    create: show(createEndpoint(ports)),
    enable: show(changeEndpoint(ports, 'enabled')),
    disable: show(changeEndpoint(ports, 'disabled')),
    delete: show(changeEndpoint(ports, 'deleted')),
    rename: show(renameEndpoint(ports)),
    changeSettings: show(changeEndpointSettings(ports)),
    simulateRules: simulateRules(ports),
    addCredential: addEndpointCredential(ports),
    removeCredential: show(removeEndpointCredential(ports)),
  };
};
