// Notifications, and what is sent on from them.

import { besideThings, day, integer, long, plainTable, sequence, text } from './table.ts';

export const notificationsTables = {
  notifications: plainTable({
    ...besideThings,
    columns: {
      id: text({ key: true }),
      tenant_id: text({ to: 'a tenant that may be gone' }),
      kind: text(),
      subject_kind: text(),
      subject_id: text({ to: 'a thing of any kind' }),
      subject_name: text(),
      severity: text(),
      stage: integer(),
      harm_at: long(),
      details: text(),
      raised_at: long(),
      resolved_at: long({ null: true }),
      acknowledged_at: long({ null: true }),
      acknowledged_by: text({ null: true }),
    },
    indexes: [
      // One open notification of a kind about one subject.
      { name: 'notifications_open', columns: ['kind', 'subject_id'], unique: true, where: '"resolved_at" is null' },
      { name: 'notifications_by_harm', columns: ['harm_at', 'id'], where: '"resolved_at" is null' },
      {
        name: 'notifications_by_harm_of_tenant',
        columns: ['tenant_id', 'harm_at', 'id'],
        where: '"resolved_at" is null',
      },
      // Partial: SQLite would otherwise use it for all open ones, and sort them.
      { name: 'notifications_by_end', columns: ['resolved_at'], where: '"resolved_at" is not null' },
      { name: 'notifications_by_harm_of_kind', columns: ['kind', 'harm_at', 'id'], where: '"resolved_at" is null' },
      { name: 'notifications_resolved', columns: ['id'], where: '"resolved_at" is not null' },
      { name: 'notifications_resolved_of_tenant', columns: ['tenant_id', 'id'], where: '"resolved_at" is not null' },
      { name: 'notifications_resolved_of_kind', columns: ['kind', 'id'], where: '"resolved_at" is not null' },
    ],
    unauthenticated: 'for people',
    snapshots: { without: 'of their day' },
    purge: { kept: 'resolved by the clock, and removed with their age' },
    pruned: { past: { resolved_at: 90 * day } },
  }),
  notification_events: plainTable({
    ...besideThings,
    columns: {
      sequence: sequence(),
      event: text(),
      at: long(),
      notification_id: text({ to: 'a notification that may be gone' }),
      document: text(),
    },
    indexes: [{ name: 'notification_events_by_age', columns: ['at'] }],
    unauthenticated: 'for people',
    snapshots: { without: 'of their day' },
    purge: { kept: 'removed with their age' },
    pruned: { past: { at: 90 * day } },
  }),
};
