// Notifications: what needs attention before it does harm, sorted by the time that is left.

import { z } from '@hono/zod-openapi';
import { auditSeverities } from '../../domain/audit-event.ts';
import { notificationKindNames } from '../../domain/notification.ts';
import { identifier, listOf, moment, pageOf, pageQuery, queryFlag, type RouteGroup } from './row.ts';

const kind = z.enum(notificationKindNames);

const severity = z.enum(auditSeverities);

export const notificationSchema = z
  .strictObject({
    id: identifier,
    kind,
    tenantId: identifier.openapi({ description: 'The default tenant if it is about the platform.' }),
    severity,
    stage: z
      .int()
      .openapi({ description: 'Rises as the deadline comes nearer. Each stage needs a new acknowledgement.' }),
    text: z.string(),
    fix: z.string().openapi({ description: 'How to fix it.' }),
    action: z.string().openapi({ description: 'Short form of the fix.' }),
    page: z.string().openapi({ description: 'Path of the console page where you start.' }),
    subject: z.strictObject({ kind: z.string(), id: z.string(), name: z.string() }),
    harmAt: moment.openapi({ description: 'When it starts to cause harm. In the past: since when it does.' }),
    details: z.record(z.string(), z.unknown()).readonly(),
    raisedAt: moment,
    resolvedAt: moment.nullable(),
    acknowledgedAt: moment.nullable(),
    acknowledgedBy: z.string().nullable(),
  })
  .openapi('Notification');
export type Notification = z.output<typeof notificationSchema>;

const targetSchema = z
  .strictObject({
    name: z.string(),
    type: z.enum(['webhook', 'email']),
    target: z.string(),
    waiting: z.int(),
    deliveredAt: moment.nullable(),
    failure: z.strictObject({ since: moment, message: z.string() }).nullable(),
  })
  .openapi('NotificationTarget');
export type NotificationTarget = z.output<typeof targetSchema>;

export const notificationRoutes = {
  list: {
    method: 'get',
    path: '/api/notifications',
    needs: 'notifications:read',
    tenancy: 'both',
    summary: 'List notifications, most urgent first',
    description:
      'Open ones are sorted by the time of harm, resolved ones newest first. Resolved ones are kept for 90 days.',
    query: pageQuery.extend({
      state: z.enum(['open', 'resolved']).optional(),
      kind: kind.optional(),
      minSeverity: severity.optional().openapi({ description: 'The lowest severity to list.' }),
      acknowledged: queryFlag({ description: 'Whether it is acknowledged.' }),
    }),
    answer: pageOf(notificationSchema),
  },
  acknowledge: {
    method: 'post',
    path: '/api/notifications/{id}/acknowledge',
    needs: 'notifications:acknowledge',
    tenancy: 'both',
    summary: 'Acknowledge a notification',
    description: 'It stays open until its cause is removed, and is shown again if it becomes more serious.',
    answer: notificationSchema,
  },
  release: {
    method: 'delete',
    path: '/api/notifications/{id}/acknowledge',
    needs: 'notifications:acknowledge',
    tenancy: 'both',
    summary: 'Release a notification',
    description: 'Withdraws the acknowledgement, so that it is shown again.',
    answer: notificationSchema,
  },
  targets: {
    method: 'get',
    path: '/api/notifications/targets',
    needs: 'notifications:read',
    tenancy: 'platform',
    summary: 'List notification targets',
    description: 'Read-only: targets are set in dke.toml.',
    answer: listOf(targetSchema),
  },
  test: {
    method: 'post',
    path: '/api/notifications/test',
    needs: 'notifications:acknowledge',
    tenancy: 'platform',
    summary: 'Send a test notification to every target',
    answer: listOf(z.strictObject({ name: z.string(), failure: z.string().nullable() })),
  },
} as const satisfies RouteGroup;
