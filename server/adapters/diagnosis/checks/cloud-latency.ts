// Activity: the latency that the cloud itself measured (XksProxyLatency), where it can be asked.

import { notAsked, ok, warning } from '../../../base/diagnostic-checks.ts';
import { xksProxyUriPath } from '../../../domain/endpoint.ts';
import type { CloudReader } from '../../../ports/key-store-connection.ts';
import { type EndpointCheck, foretold } from '../context.ts';

const slowMs = 100;
const lateMs = 250;

export const cloudLatency = (cloud: CloudReader | undefined): EndpointCheck => ({
  id: 'cloud-latency',
  layer: 'activity',
  title: 'answers reach the cloud in time (measured by the cloud)',
  fault: 'answers reach the cloud too late (measured by the cloud)',
  needs: [],
  run: async ({ keyStores, endpoint }) => {
    const [keyStore] = keyStores;
    if (cloud === undefined || keyStore === undefined)
      return notAsked('aws.read is off in dke.toml, or no external key store is registered');
    const latency = await cloud.latency({ ...keyStore, uriPath: xksProxyUriPath(endpoint.prefix) });
    if (latency === undefined) return notAsked('the cloud has no measurements of the last 15 minutes');
    const evidence = `XksProxyLatency: ${latency.average.toFixed(0)} ms on average, ${latency.maximum.toFixed(0)} ms at most`;
    const fix =
      'move the service closer to the region of the cloud, and check the proxies and load balancers in front of it';
    if (latency.average > lateMs) return foretold('slow', evidence, fix);
    return latency.average > slowMs || latency.maximum > lateMs ? warning(evidence, fix) : ok(evidence);
  },
});
