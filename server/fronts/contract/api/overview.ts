// What the first page of the console shows: what needs somebody today, and how the key store endpoints do.

import { z } from '@hono/zod-openapi';
import type { AttentionItem, AttentionKind } from '../../../domain/attention.ts';
import { identifier, listOf, moment, type RouteGroup } from './row.ts';

const kindTable = {
  health: 0,
  'endpoint-failing': 0,
  'endpoint-slow': 0,
  'key-store-disconnected': 0,
  'certificate-expiring': 0,
  'erasure-held': 0,
  'memory-unlocked': 0,
  'audit-sink-failing': 0,
  'requests-dropped': 0,
  'master-key-due': 0,
  'credential-due': 0,
  'credential-unused': 0,
  'token-expiring': 0,
  'row-tampered': 0,
} as const satisfies Record<AttentionKind, 0>;

export const attentionSchema = z
  .strictObject({
    kind: z.enum(Object.keys(kindTable) as [AttentionKind, ...AttentionKind[]]),
    severity: z.enum(['critical', 'warning', 'notice'] satisfies AttentionItem['severity'][]),
    title: z.string(),
    detail: z.string(),
    dueAt: moment.nullable().openapi({ description: 'When it does harm; null: it does now.' }),
    subject: z.strictObject({ kind: z.string(), id: z.string(), name: z.string() }).nullable(),
    action: z.string().openapi({ description: 'What to do.' }),
    page: z.string().openapi({ description: 'Where in the console it is done.' }),
  })
  .openapi('Attention');
export type Attention = z.output<typeof attentionSchema>;

export const latencyPointSchema = z
  .strictObject({
    at: moment.openapi({ description: 'The beginning of the step.' }),
    requests: z.int(),
    errors: z.int(),
    overSlow: z.int().openapi({ description: 'Longer than 100 ms: the cloud key service reports them as slow.' }),
    overLost: z.int().openapi({ description: 'Longer than 250 ms: the cloud key service has given up.' }),
    p50Ms: z.number().nullable(),
    p99Ms: z.number().nullable(),
  })
  .openapi('LatencyPoint');
export type LatencyPoint = z.output<typeof latencyPointSchema>;

export const overviewRoutes = {
  attention: {
    method: 'get',
    path: '/api/attention',
    needs: 'tenants:read',
    tenancy: 'both',
    summary: 'List what needs somebody today',
    description: 'The soonest harm first, each with the one thing to do about it.',
    answer: listOf(attentionSchema),
  },
  latency: {
    method: 'get',
    path: '/api/latency',
    needs: 'endpoints:read',
    tenancy: 'both',
    summary: 'How long requests of key store endpoints took',
    description:
      'A point for each minute of an hour, or each ten minutes of a day; oldest first. Of all endpoints, or of one.',
    query: z.strictObject({
      span: z.enum(['hour', 'day']).optional().openapi({ default: 'hour' }),
      endpointId: identifier.optional(),
    }),
    answer: listOf(latencyPointSchema),
  },
} as const satisfies RouteGroup;
