// Network: a connection stays open for the next request. Without that every call pays for a
// handshake out of its 250 ms.

import { notAsked, ok, warning } from '../../../base/diagnostic-checks.ts';
import type { EndpointCheck } from '../context.ts';

export const keepAlive: EndpointCheck = {
  id: 'keep-alive',
  layer: 'network',
  title: 'connections are kept open',
  fault: 'connections are not kept open',
  needs: ['public-health'],
  run: async ({ prober }) => {
    const second = await prober.get('public', '/health');
    if (second.reused) return ok('the second request used the connection of the first');
    if (second.status !== 200) return notAsked(`GET /health answers ${second.status}`);
    return warning(
      'every request needs a new connection',
      'configure proxies in front of the service to keep connections open (idle time-out above 350 s)',
    );
  },
};
