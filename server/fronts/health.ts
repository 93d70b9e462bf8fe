// GET /health: the deep check for load balancers and probes. 200 only when the store, the root key and a round trip on the
// test key hold; nobody is asked who he is, so the body says no more than that.

import { Hono } from 'hono';
import type { Operations } from '../operations/index.ts';

export const createHealthApp = ({ operations }: { readonly operations: Pick<Operations, 'health'> }): Hono => {
  const app = new Hono();
  app.get('/', async (c) => {
    const { healthy } = await operations.health();
    return c.json({ status: healthy ? 'healthy' : 'unhealthy' }, healthy ? 200 : 503, { 'Cache-Control': 'no-store' });
  });
  return app;
};
