// Activity: when the cloud last called, and last asked for health.

import { ok, warning } from '../../../base/diagnostic-checks.ts';
import type { EndpointCheck } from '../context.ts';

export const lastCalls: EndpointCheck = {
  id: 'last-calls',
  layer: 'activity',
  title: 'the cloud sends requests',
  fault: 'the cloud sends no requests',
  needs: [],
  run: ({ recent, lastHealthAt }) => {
    const [latest] = recent;
    const health =
      lastHealthAt === null
        ? 'no health request yet'
        : `last health request at ${new Date(lastHealthAt).toISOString()}`;
    return latest === undefined
      ? warning(`no signed requests in the last hour; ${health}`, 'connect the key store in the cloud')
      : ok(`last call ${new Date(latest.at).toISOString()} (${latest.operation}, ${latest.status}); ${health}`);
  },
};
