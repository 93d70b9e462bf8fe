// How the key store endpoints do, for the first page of the console.

import { z } from '@hono/zod-openapi';
import { identifier, listOf, moment, type RouteGroup } from './row.ts';

export const latencyPointSchema = z
  .strictObject({
    at: moment.openapi({ description: 'Start of the interval.' }),
    requests: z.int(),
    errors: z.int(),
    over100Ms: z.int().openapi({ description: 'Longer than 100 ms: the cloud key service reports them as slow.' }),
    over250Ms: z.int().openapi({ description: 'Longer than 250 ms: the cloud key service has given up.' }),
    p50Ms: z.number().nullable(),
    p99Ms: z.number().nullable(),
  })
  .openapi('LatencyPoint');
export type LatencyPoint = z.output<typeof latencyPointSchema>;

export const overviewRoutes = {
  latency: {
    method: 'get',
    path: '/api/latency',
    needs: 'endpoints:read',
    tenancy: 'both',
    summary: 'Get the latency of key store endpoints',
    description:
      'One point for each minute of an hour, or for each ten minutes of a day; oldest first. For all endpoints or one.',
    query: z.strictObject({
      span: z.enum(['hour', 'day']).optional().openapi({ default: 'hour' }),
      endpointId: identifier.optional(),
    }),
    answer: listOf(latencyPointSchema),
  },
} as const satisfies RouteGroup;
