// Nodes: the servers that share one store.

import { z } from '@hono/zod-openapi';
import type { Duty, FleetNode } from '../../domain/node.ts';
import { identifier, listOf, moment, type RouteGroup } from './row.ts';

export const nodeSchema = z
  .strictObject({
    id: identifier,
    name: z.string(),
    version: z.string(),
    state: z.enum(['active', 'draining', 'stopped', 'removed', 'offline'] satisfies FleetNode['state'][]).openapi({
      description: 'offline: without a heartbeat for three seconds; removed: it does not start again',
    }),
    startedAt: moment,
    heartbeatAt: moment,
    behind: z.int().openapi({ description: 'Changes that it does not see yet.' }),
    rootEpoch: z.int(),
    hasOldRoot: z
      .boolean()
      .openapi({ description: 'true: it still has the old root key, because an erasure run is in progress.' }),
    usesKeysUntil: moment.nullable().openapi({
      description: 'For an offline node that may still be running: when it stops using keys, at the latest.',
    }),
    duties: z
      .array(z.enum(['erasure', 'audit', 'forwarding', 'key-stores', 'pruning', 'schedules'] satisfies Duty[]))
      .readonly()
      .openapi({ description: 'Jobs that it does for all nodes.' }),
    self: z.boolean().openapi({ description: 'true: this node answered the request.' }),
  })
  .openapi('Node');
export type Node = z.output<typeof nodeSchema>;

export const nodeRoutes = {
  list: {
    method: 'get',
    path: '/api/nodes',
    needs: 'nodes:read',
    tenancy: 'platform',
    summary: 'List nodes',
    answer: listOf(nodeSchema),
  },
  get: {
    method: 'get',
    path: '/api/nodes/{id}',
    needs: 'nodes:read',
    tenancy: 'platform',
    summary: 'Get a node',
    answer: nodeSchema,
  },
  drain: {
    method: 'post',
    path: '/api/nodes/{id}/drain',
    needs: 'nodes:manage',
    tenancy: 'platform',
    summary: 'Drain a node',
    description:
      'It reports itself as unhealthy, so that load balancers send requests to other nodes, and it hands over its jobs. It still answers.',
    answer: nodeSchema,
  },
  resume: {
    method: 'post',
    path: '/api/nodes/{id}/resume',
    needs: 'nodes:manage',
    tenancy: 'platform',
    summary: 'Resume a drained node',
    answer: nodeSchema,
  },
  remove: {
    method: 'delete',
    path: '/api/nodes/{id}',
    needs: 'nodes:manage',
    tenancy: 'platform',
    summary: 'Remove a node',
    description:
      'Changes and erasure runs no longer wait for it. If it is running, it stops, and it cannot start again. Its root key ' +
      'file is not erased. Destroy it together with the host: with it, keys that were destroyed since can be read from old backups.',
    answer: nodeSchema,
  },
} as const satisfies RouteGroup;
