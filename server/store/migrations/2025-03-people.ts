// People: users, their factors, sessions, sign-ins under way, attempts that failed; who owns a token.

import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';
import type { ColumnKinds } from '../migrations.ts';

export const people = ({ long }: ColumnKinds): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  up: async (db: Kysely<any>) => {
    const create = db.schema;
    await create
      .createTable('users')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('tenant_id', 'text', (c) => c.references('tenants.id'))
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('folded_name', 'text', (c) => c.unique())
      .addColumn('display_name', 'text', (c) => c.notNull())
      .addColumn('email', 'text')
      .addColumn('grants', 'text', (c) => c.notNull())
      .addColumn('state', 'text', (c) => c.notNull())
      .addColumn('password', 'text')
      .addColumn('password_changed_at', long)
      .addColumn('must_change_password', 'integer', (c) => c.notNull())
      .addColumn('subject', 'text', (c) => c.unique())
      .addColumn('invitation_hash', 'text', (c) => c.unique())
      .addColumn('invited_until', long)
      .addColumn('created_at', long, (c) => c.notNull())
      .addColumn('last_sign_in_at', long)
      .addColumn('row_mac', 'text', (c) => c.notNull())
      .execute();
    await create
      .createTable('user_factors')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('user_id', 'text', (c) => c.notNull().references('users.id'))
      .addColumn('kind', 'text', (c) => c.notNull())
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('data', 'text', (c) => c.notNull())
      .addColumn('counter', long, (c) => c.notNull())
      .addColumn('confirmed_at', long)
      .addColumn('created_at', long, (c) => c.notNull())
      .addColumn('last_used_at', long)
      .addColumn('row_mac', 'text', (c) => c.notNull())
      .execute();
    await create.createIndex('user_factors_by_user').on('user_factors').columns(['user_id', 'id']).execute();
    await create
      .createTable('sessions')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('tenant_id', 'text', (c) => c.references('tenants.id'))
      .addColumn('hash', 'text', (c) => c.notNull().unique())
      .addColumn('holder_kind', 'text', (c) => c.notNull())
      .addColumn('holder_id', 'text', (c) => c.notNull())
      .addColumn('method', 'text', (c) => c.notNull())
      .addColumn('proved', 'integer', (c) => c.notNull())
      .addColumn('created_at', long, (c) => c.notNull())
      .addColumn('used_at', long, (c) => c.notNull())
      .addColumn('expires_at', long, (c) => c.notNull())
      .addColumn('peer', 'text')
      .addColumn('agent', 'text')
      .addColumn('row_mac', 'text', (c) => c.notNull())
      .execute();
    await create.createIndex('users_by_tenant').on('users').columns(['tenant_id', 'id']).execute();
    await create.createIndex('sessions_by_tenant').on('sessions').columns(['tenant_id', 'id']).execute();
    await create.createIndex('sessions_by_holder').on('sessions').columns(['holder_id', 'id']).execute();
    await create
      .createTable('sign_in_attempts')
      .addColumn('hash', 'text', (c) => c.primaryKey())
      .addColumn('kind', 'text', (c) => c.notNull())
      .addColumn('user_id', 'text')
      .addColumn('data', 'text', (c) => c.notNull())
      .addColumn('expires_at', long, (c) => c.notNull())
      .execute();
    await create
      .createTable('sign_in_failures')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('failures', 'integer', (c) => c.notNull())
      .addColumn('failed_at', long, (c) => c.notNull())
      .addColumn('locked_until', long)
      .execute();
    await create.alterTable('api_tokens').addColumn('owner_id', 'text').execute();
  },
});
