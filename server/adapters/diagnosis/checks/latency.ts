// Activity: answers through the public name come in time. The cloud key service gives up after 250
// ms, connection included.

import { notAsked, ok, warning } from '../../../base/diagnostic-checks.ts';
import { type EndpointCheck, foretold } from '../context.ts';

const slowMs = 100;
const lateMs = 250;

export const latency: EndpointCheck = {
  id: 'latency',
  layer: 'activity',
  title: 'answers are fast enough',
  fault: 'answers are too slow',
  needs: ['round-trip-public'],
  run: ({ latencies = [] }) => {
    if (latencies.length === 0) return notAsked('there are no measurements');
    const middle = [...latencies].sort((a, b) => a - b)[Math.floor(latencies.length / 2)] ?? 0;
    const evidence = `${middle.toFixed(0)} ms median of ${latencies.length} calls`;
    const fix =
      'move the service closer to the region of the cloud, and check the proxies and load balancers in front of it';
    if (middle > lateMs) return foretold('slow', `${evidence}; the cloud gives up at ${lateMs} ms`, fix);
    return middle > slowMs ? warning(`${evidence}; above ${slowMs} ms is slow`, fix) : ok(evidence);
  },
};
