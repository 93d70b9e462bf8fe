// Network: this node's own listener answers.

import { ok } from '../../../base/diagnostic-checks.ts';
import { type EndpointCheck, foretold } from '../context.ts';

export const nodeListens: EndpointCheck = {
  id: 'node-listens',
  layer: 'network',
  title: "this node's listener answers",
  fault: "this node's listener does not answer",
  needs: [],
  run: async ({ prober }) => {
    const { status } = await prober.get('node', '/health');
    if (status === 200) return ok('GET /health: 200');
    return foretold(
      'no-connection',
      `GET /health at this node answers ${status}`,
      'dke doctor --config dke.toml on its host',
    );
  },
};
