// GetHealthStatus. Operators may probe it too: see `operatorProbes`.

import type { FleetMember, XksEndpointView } from '../../ports/xks-directory.ts';
import {
  jsonAnswer,
  requireEnabled,
  requireMetadata,
  type XksAnswer,
  type XksCall,
  type XksContext,
} from './key-operations.ts';
import { XksRefusal } from './xks-refusal.ts';

/** What the specification takes. */
const mostDetails = 10;
const healthStatuses = {
  active: 'ACTIVE',
  draining: 'DEGRADED',
  gone: 'UNAVAILABLE',
} as const satisfies Record<FleetMember['state'], string>;

/** What an unsigned operator's probe is told. */
export const probeAnswer = (context: XksContext, endpoint: XksEndpointView): XksAnswer => {
  requireHealthy(context, endpoint);
  return jsonAnswer({ xksProxyFleetSize: context.directory.fleetSize() });
};

const requireHealthy = (context: XksContext, endpoint: XksEndpointView): void => {
  requireEnabled(endpoint);
  if (!context.directory.healthy()) throw new XksRefusal('DependencyTimeoutException', 'the service is not healthy');
};

/** All nodes share the keys: where the endpoint's key cannot encrypt, none of them can. */
const canEncrypt = ({ directory }: XksContext, endpoint: XksEndpointView): boolean => {
  const key = directory.key(endpoint, endpoint.externalKeyId);
  return key?.refusals.encrypt === null;
};

export const getHealthStatus = (context: XksContext, call: XksCall): XksAnswer => {
  const usable = canEncrypt(context, call.endpoint);
  const statusOf = (state: FleetMember['state']): string => (usable ? healthStatuses[state] : 'UNAVAILABLE');
  if (!(call.parsed.empty && call.endpoint.settings.operatorProbes)) requireMetadata(call.parsed);
  requireHealthy(context, call.endpoint);
  const { vendor, name, version, node } = context.product;
  return jsonAnswer({
    xksProxyFleetSize: context.directory.fleetSize(),
    xksProxyVendor: vendor,
    xksProxyModel: `${name} ${version}`,
    ekmVendor: vendor,
    ekmFleetDetails: [
      { id: node, model: `${name} ${version}`, healthStatus: statusOf('active') },
      ...context.directory.otherNodes().map((other) => ({
        id: other.name,
        model: `${name} ${other.version}`,
        healthStatus: statusOf(other.state),
      })),
    ].slice(0, mostDetails),
  });
};
