// Notifications: what needs attention before it does harm, sorted by the time that is left.

import { z } from '@hono/zod-openapi';
import type { AuditSeverity } from '../../../domain/audit-event.ts';
import type { NotificationKind } from '../../../domain/notification.ts';
import { identifier, listOf, moment, pageOf, pageQuery, queryFlag, type RouteGroup } from './row.ts';

/** Every kind, in the order of the table; the compiler refuses a missing or an unknown one. */
const kinds = {
  'key.rotation-due': 0,
  'master-key.rotation-due': 0,
  'endpoint.credential-due': 0,
  'application.access-guid-due': 0,
  'tls.certificate-expiring': 0,
  'tls.certificate-old': 0,
  'tls.file-unusable': 0,
  'tls.certificate-created': 0,
  'tls.issuer-changed': 0,
  'client-authority.expiring': 0,
  'client-certificate.expiring': 0,
  'token.expiring': 0,
  'token.old': 0,
  'token.key-old': 0,
  'token.former-key': 0,
  'session.key-old': 0,
  'administrator.recovered': 0,
  'key-store.disconnected': 0,
  'endpoint.failing': 0,
  'endpoint.late': 0,
  'endpoint.slow': 0,
  'endpoint.tampered': 0,
  'endpoint.credential-unused': 0,
  'approval.pending': 0,
  'dual-control.unsatisfiable': 0,
  'audit.sink-behind': 0,
  'audit.checkpoint-stale': 0,
  'audit.key-old': 0,
  'snapshot.failed': 0,
  'snapshot.old': 0,
  'snapshot.none': 0,
  'snapshot.unopened': 0,
  'snapshot.folder-missing': 0,
  'backup.old': 0,
  'root.backup-old': 0,
  'erasure.blocked': 0,
  'erasure.failed': 0,
  'health.failing': 0,
  'memory.unlocked': 0,
  'requests.sink-lost': 0,
  'requests.dropped': 0,
  'clock.jumped': 0,
  'log.failing': 0,
  'node.offline': 0,
} as const satisfies Record<NotificationKind, 0>;
const kind = z.enum(Object.keys(kinds) as [NotificationKind, ...NotificationKind[]]);

const severity = z.enum(['info', 'low', 'medium', 'high', 'critical'] satisfies AuditSeverity[]);

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
