// The inbox, and the events that are sent on from it. What stands here is derived from the rest and
// authenticated by nothing: it decides nothing.

import { type Kysely, type SelectQueryBuilder, sql } from 'kysely';
import { canonicalJson } from '../../../base/bytes.ts';
import {
  type Notification,
  type NotificationFilter,
  type RotationProfile,
  severitiesFrom,
} from '../../../domain/notification.ts';
import type { Repositories } from '../../../ports/store.ts';
import { readDocument } from '../schema/documents.ts';
import type { Schema } from '../schema/schema.ts';
import { membersOf } from '../schema/tables/members.ts';
import { notificationsTables } from '../schema/tables/notifications-table.ts';
import { inScope } from './tenants-repository.ts';

const members = membersOf<Notification>()(
  notificationsTables.notifications,
  'subject_kind',
  'subject_id',
  'subject_name',
  'details',
);

const toRow = (one: Notification): Schema['notifications'] => ({
  ...members.toRow(one),
  subject_kind: one.subject.kind,
  subject_id: one.subject.id,
  subject_name: one.subject.name,
  details: canonicalJson(one.details),
});
const fromRow = (row: Schema['notifications']): Notification => ({
  ...members.fromRow(row),
  subject: { kind: row.subject_kind, id: row.subject_id, name: row.subject_name },
  details: readDocument<Notification['details']>(row.details, {}, {}),
});

const filtered = <Q extends SelectQueryBuilder<Schema, 'notifications', object>>(
  query: Q,
  { kind, minSeverity, acknowledged }: NotificationFilter,
): Q => {
  let found: SelectQueryBuilder<Schema, 'notifications', object> = query;
  if (kind !== undefined) found = found.where('kind', '=', kind);
  if (minSeverity !== undefined) found = found.where('severity', 'in', severitiesFrom(minSeverity));
  if (acknowledged !== undefined) found = found.where('acknowledged_at', acknowledged ? 'is not' : 'is', null);
  return found as Q;
};

/** Read at once of what is open: some milliseconds. */
const openPage = 500;

/** `1767225600000.01981d2c-...`: when it does harm, and which of those. */
const parseCursor = (after: string): { readonly at: number; readonly id: string } | undefined => {
  const [, at, id] = /^(\d{1,16})\.(.{1,64})$/.exec(after) ?? [];
  return at === undefined || id === undefined ? undefined : { at: Number(at), id };
};

type NotificationRepository = Repositories['notifications'];

const openAndResolved = (
  db: Kysely<Schema>,
): Omit<NotificationRepository, keyof ReturnType<typeof events> | keyof ReturnType<typeof keyAges>> => ({
  get: async (tenant, id) => {
    const row = await inScope(
      db.selectFrom('notifications').selectAll().where('id', '=', id),
      tenant,
    ).executeTakeFirst();
    return row && fromRow(row);
  },
  listOpen: async (tenant, filter, { after, limit }) => {
    let query = inScope(
      db
        .selectFrom('notifications')
        .selectAll()
        .where('resolved_at', 'is', null)
        .orderBy('harm_at')
        .orderBy('id')
        .limit(limit),
      tenant,
    );
    query = filtered(query, filter);
    const cursor = after === undefined ? undefined : parseCursor(after);
    if (cursor !== undefined) query = query.where(sql<boolean>`(harm_at, id) > (${cursor.at}, ${cursor.id})`);
    return (await query.execute()).map(fromRow);
  },
  listResolved: async (tenant, filter, { after, limit }) => {
    let query = inScope(
      db
        .selectFrom('notifications')
        .selectAll()
        .where('resolved_at', 'is not', null)
        .orderBy('id', 'desc')
        .limit(limit),
      tenant,
    );
    query = filtered(query, filter);
    if (after !== undefined) query = query.where('id', '<', after);
    return (await query.execute()).map(fromRow);
  },
  listOpenOf: async (kinds, subjects) => {
    const open = db.selectFrom('notifications').selectAll().where('resolved_at', 'is', null);
    if (subjects !== null) {
      const found = await open.where('kind', 'in', kinds).where('subject_id', 'in', subjects).execute();
      return found.map(fromRow);
    }
    // There may be as many as there are keys: page by page, so that others have their turn in
    // between.
    const all: Notification[] = [];
    for (const kind of kinds) {
      const ofKind = open.where('kind', '=', kind).orderBy('harm_at').orderBy('id').limit(openPage);
      for (let page = await ofKind.execute(); page.length > 0; ) {
        all.push(...page.map(fromRow));
        const last = page.at(-1);
        if (last === undefined || page.length < openPage) break;
        page = await ofKind.where(sql<boolean>`(harm_at, id) > (${last.harm_at}, ${last.id})`).execute();
      }
    }
    return all;
  },
  insert: async (notification) => {
    await db.insertInto('notifications').values(toRow(notification)).execute();
  },
  update: async (notification) => {
    const { id, ...change } = toRow(notification);
    await db.updateTable('notifications').set(change).where('id', '=', id).execute();
  },
  countOpen: async () => {
    const rows = await db
      .selectFrom('notifications')
      .where('resolved_at', 'is', null)
      .where('acknowledged_at', 'is', null)
      .groupBy(['tenant_id', 'severity'])
      .select((row) => ['tenant_id', 'severity', row.fn.countAll<number | string>().as('count')])
      .execute();
    return rows.map(({ tenant_id: tenantId, severity, count }) => ({ tenantId, severity, count: Number(count) }));
  },
});

/** What is sent on from the inbox, in order. */
const events = (db: Kysely<Schema>): Pick<NotificationRepository, 'appendEvent' | 'listEvents' | 'countEvents'> => ({
  appendEvent: async ({ event, at, notification }) => {
    await db
      .insertInto('notification_events')
      .values({ event, at, notification_id: notification.id, document: canonicalJson(toRow(notification)) })
      .execute();
  },
  listEvents: async (after, limit) =>
    (
      await db
        .selectFrom('notification_events')
        .selectAll()
        .where('sequence', '>', after)
        .orderBy('sequence')
        .limit(limit)
        .execute()
    ).map((row) => ({
      sequence: row.sequence,
      event: row.event as 'raised' | 'worse' | 'resolved',
      at: row.at,
      notification: fromRow(JSON.parse(row.document) as Schema['notifications']),
    })),
  countEvents: async (after) => {
    const { count } = await db
      .selectFrom('notification_events')
      .select((row) => row.fn.countAll<number>().as('count'))
      .where('sequence', '>', after)
      .executeTakeFirstOrThrow();
    return Number(count);
  },
});

const keyAges = (db: Kysely<Schema>): Pick<NotificationRepository, 'oldVersions'> => ({
  oldVersions: async (before, after, limit) => {
    let oldest = db
      .selectFrom('key_versions')
      .selectAll()
      .where('created_at', '<', before)
      .orderBy('created_at')
      .orderBy('key_id')
      .orderBy('version')
      .limit(limit);
    if (after !== null)
      oldest = oldest.where(
        sql<boolean>`(created_at, key_id, version) > (${after.createdAt}, ${after.keyId}, ${after.version})`,
      );
    const rows = await db
      .selectFrom(oldest.as('old'))
      .leftJoin('keys', (join) =>
        join
          .onRef('keys.id', '=', 'old.key_id')
          .onRef('keys.current_version', '=', 'old.version')
          .on('keys.state', '=', 'active')
          .on('keys.kind', '=', 'general'),
      )
      .leftJoin('vaults', (join) => join.onRef('vaults.id', '=', 'keys.vault_id').on('vaults.state', '<>', 'deleted'))
      .select(['old.created_at', 'old.key_id', 'old.version'])
      .select(['vaults.id', 'vaults.tenant_id', 'vaults.name', 'vaults.profile'])
      .orderBy('old.created_at')
      .orderBy('old.key_id')
      .orderBy('old.version')
      .execute();
    return rows.map(({ created_at, key_id, version, id, tenant_id, name, profile }) => ({
      ...{ createdAt: created_at, keyId: key_id, version },
      vault:
        id === null || tenant_id === null || name === null || profile === null
          ? null
          : { id, tenantId: tenant_id, name, profile: profile as RotationProfile },
    }));
  },
});

export const createNotificationRepository = (db: Kysely<Schema>): NotificationRepository => ({
  ...openAndResolved(db),
  ...events(db),
  ...keyAges(db),
});
