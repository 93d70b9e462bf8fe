// What lists are filtered by goes by an index in the order of the list, so that a page costs what is on it however long the list is.

import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

export const pageIndexes = (): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  up: async (db: Kysely<any>) => {
    for (const [name, table, columns] of [
      ['keys_by_state', 'keys', ['tenant_id', 'state', 'id']],
      ['keys_by_kind', 'keys', ['tenant_id', 'kind', 'id']],
      ['approvals_of_tenant', 'approvals', ['tenant_id', 'id']],
      ['snapshots_by_state_of_tenant', 'snapshots', ['tenant_id', 'state', 'id']],
      ['snapshots_by_state', 'snapshots', ['state', 'id']],
      ['audit_by_kind_of_tenant', 'audit_events', ['tenant_id', 'kind', 'sequence']],
    ] as const)
      await db.schema
        .createIndex(name)
        .on(table)
        .columns([...columns])
        .execute();
    for (const [name, columns, operator] of [
      ['notifications_by_harm_of_kind', ['kind', 'harm_at', 'id'], 'is'],
      ['notifications_resolved', ['id'], 'is not'],
      ['notifications_resolved_of_tenant', ['tenant_id', 'id'], 'is not'],
      ['notifications_resolved_of_kind', ['kind', 'id'], 'is not'],
    ] as const)
      await db.schema
        .createIndex(name)
        .on('notifications')
        .columns([...columns])
        .where(sql.ref('resolved_at'), operator, null)
        .execute();
  },
});
