// Nodes: the servers that share one store.

import { z } from '@hono/zod-openapi';
import type { Duty, FleetNode } from '../../../domain/node.ts';
import { identifier, listOf, moment, type RouteGroup } from './row.ts';

export const nodeSchema = z
  .strictObject({
    id: identifier,
    name: z.string(),
    version: z.string(),
    state: z.enum(['active', 'draining', 'stopped', 'removed', 'silent'] satisfies FleetNode['state'][]).openapi({
      description: 'silent: offline, without a heartbeat for three seconds; removed: it does not start again',
    }),
    startedAt: moment,
    heartbeatAt: moment,
    behind: z.int().openapi({ description: 'Changes that it does not show yet.' }),
    rootEpoch: z.int(),
    holdsOldRoot: z
      .boolean()
      .openapi({ description: 'It still holds the root key before: an erasure run is under way.' }),
    usesKeysUntil: moment
      .nullable()
      .openapi({ description: 'Of a silent node that may still run: when it ends to use keys, at the latest.' }),
    duties: z
      .array(z.enum(['erasure', 'audit', 'forwarding', 'key-stores', 'pruning', 'schedules'] satisfies Duty[]))
      .readonly()
      .openapi({ description: 'What it does for all nodes.' }),
    self: z.boolean().openapi({ description: 'The node that answers.' }),
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
    description: 'Its health turns bad, so that requests go elsewhere, and it gives up its duties. It still answers.',
    answer: nodeSchema,
  },
  resume: {
    method: 'post',
    path: '/api/nodes/{id}/resume',
    needs: 'nodes:manage',
    tenancy: 'platform',
    summary: 'End the draining of a node',
    answer: nodeSchema,
  },
  remove: {
    method: 'delete',
    path: '/api/nodes/{id}',
    needs: 'nodes:manage',
    tenancy: 'platform',
    summary: 'Remove a node',
    description:
      'Nothing waits for it any more: no change and no erasure run. If it runs it stops, and it does not start again. Its root key ' +
      'file is not erased by this: destroy it with the host, or keys that were destroyed since can be read from old backups with it.',
    answer: nodeSchema,
  },
} as const satisfies RouteGroup;
