// GET /health: the deep check for load balancers and probes. 200 when the root key and a round trip
// on the test key hold: `healthy`, or `degraded` when the store takes no changes. 503 `unhealthy`
// otherwise. Callers are not authenticated, so the body says no more than that. GET /health/live
// answers 200 whenever the process answers at all: a restart helps against nothing else.

import { Hono } from 'hono';
import type { Operations } from '../operations/index.ts';

export const createHealthApp = ({ operations }: { readonly operations: Pick<Operations, 'health'> }): Hono => {
  const app = new Hono();
  app.get('/', async (c) => {
    const { healthy, usable } = await operations.health();
    const status = healthy ? 'healthy' : usable ? 'degraded' : 'unhealthy';
    return c.json({ status }, usable ? 200 : 503, { 'Cache-Control': 'no-store' });
  });
  app.get('/live', (c) => c.json({ status: 'live' }, 200, { 'Cache-Control': 'no-store' }));
  return app;
};
