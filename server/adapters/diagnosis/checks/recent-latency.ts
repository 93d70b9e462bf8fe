// Activity: how long the requests of the last hour took in this service.

import { notAsked, ok, warning } from '../../../base/diagnostic-checks.ts';
import { type EndpointCheck, foretold } from '../context.ts';

const slowMs = 100;
const lateMs = 250;
const slowShare = 0.01;

export const recentLatency: EndpointCheck = {
  id: 'recent-latency',
  layer: 'activity',
  title: 'requests of the last hour were answered in time',
  fault: 'requests of the last hour were answered too late',
  needs: [],
  run: ({ recent }) => {
    const durations = recent.map(({ durationMs }) => durationMs).sort((a, b) => a - b);
    if (durations.length === 0) return notAsked('no signed requests in the last hour');
    const at = (share: number): number =>
      durations[Math.min(durations.length - 1, Math.floor(durations.length * share))] ?? 0;
    const evidence = `${durations.length} requests: p50 ${at(0.5).toFixed(1)} ms, p95 ${at(0.95).toFixed(1)} ms, p99 ${at(0.99).toFixed(1)} ms`;
    const late = durations.filter((ms) => ms > lateMs).length;
    const slow = durations.filter((ms) => ms > slowMs).length;
    if (late > 0)
      return foretold('slow', `${evidence}; ${late} took more than ${lateMs} ms`, 'check the load of this host');
    return slow > durations.length * slowShare
      ? warning(`${evidence}; ${slow} took more than ${slowMs} ms`, 'check the load of this host')
      : ok(evidence);
  },
};
