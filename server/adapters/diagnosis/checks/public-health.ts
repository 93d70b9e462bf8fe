// Health: what a probe from outside sees.

import { ok } from '../../../base/diagnostic-checks.ts';
import { type EndpointCheck, foretold } from '../context.ts';

export const publicHealth: EndpointCheck = {
  id: 'public-health',
  layer: 'health',
  title: 'GET /health answers through the public name',
  fault: 'GET /health does not answer through the public name',
  needs: ['tls-handshake', 'tls-expiry', 'tls-name', 'tls-chain'],
  run: async ({ prober, publicUrl }) => {
    const { status, members, durationMs } = await prober.get('public', '/health');
    if (status === 200 && typeof members?.status === 'string')
      return ok(`${String(members.status)}, ${durationMs.toFixed(0)} ms`);
    return foretold(
      'another-answers',
      status === 200
        ? `${publicUrl.origin} answers 200 without the JSON of the service: another server answers`
        : `${publicUrl.origin}/health answers ${status}`,
      'make the public name lead to this service',
    );
  },
};
