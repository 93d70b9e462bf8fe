// The queries of people (ports/people.ts), for every dialect.

import { type Kysely, type Selectable, sql } from 'kysely';
import { canonicalJson } from '../../../base/bytes.ts';
import { foldUserName } from '../../../domain/user.ts';
import type { Integrity } from '../../../domain/vault.ts';
import type {
  PeopleRepositories,
  StoredAttempt,
  StoredFactor,
  StoredSession,
  StoredUser,
} from '../../../ports/people.ts';
import { refuseTampered } from '../rows/row-codes.ts';
import type { PolicyRows } from '../rows/row-set.ts';
import type { Schema } from '../schema/schema.ts';
import { parseGrants } from '../schema/tables/api-tokens-table.ts';
import { membersOf } from '../schema/tables/members.ts';
import { peopleTables } from '../schema/tables/people-table.ts';
import type { Terms } from './search-index-repository.ts';
import { inScope } from './tenants-repository.ts';

type Row<T extends keyof Schema> = Selectable<Schema[T]>;

const userMembers = membersOf<StoredUser>()(peopleTables.users, 'folded_name', 'grants', 'must_change_password');

const userRow = (user: StoredUser) => ({
  ...userMembers.toRow(user),
  // A deleted user's name is free again.
  folded_name: user.state === 'deleted' ? null : foldUserName(user.name),
  grants: canonicalJson(user.grants),
  must_change_password: user.mustChangePassword ? 1 : 0,
});
const toUser = (row: Row<'users'>, integrity: Integrity): StoredUser => ({
  ...userMembers.fromRow(row),
  grants: parseGrants(row.grants, integrity),
  hasPassword: row.password !== null,
  mustChangePassword: row.must_change_password !== 0,
  integrity,
});

const factorMembers = membersOf<StoredFactor>()(peopleTables.user_factors);

const factorRow = factorMembers.toRow;
const toFactor = (row: Row<'user_factors'>, integrity: Integrity): StoredFactor => ({
  ...factorMembers.fromRow(row),
  integrity,
});

const sessionMembers = membersOf<StoredSession>()(peopleTables.sessions, 'holder_kind', 'holder_id', 'proved');

const sessionRow = (session: StoredSession) => ({
  ...sessionMembers.toRow(session),
  holder_kind: session.holder.kind,
  holder_id: session.holder.id,
  proved: session.proved,
});
const attemptMembers = membersOf<StoredAttempt>()(peopleTables.sign_in_attempts);
const toAttempt = (row: Row<'sign_in_attempts'> | undefined): StoredAttempt | undefined =>
  row && attemptMembers.fromRow(row);
const toSession = (row: Row<'sessions'>, integrity: Integrity): StoredSession => ({
  ...sessionMembers.fromRow(row),
  holder: { kind: row.holder_kind as 'user' | 'token', id: row.holder_id },
  proved: row.proved === 2 ? 2 : 1,
  integrity,
});

const idsOf = (rows: readonly { readonly id: string }[]): readonly string[] => rows.map(({ id }) => id);

const users = (
  db: Kysely<Schema>,
  policyRows: PolicyRows,
  terms: Pick<Terms, 'add' | 'renew'>,
): PeopleRepositories['users'] => {
  const check = policyRows.integrity;
  const readUser = (row: Row<'users'> | undefined) => row && toUser(row, check('users', row));
  const userBy = async (column: 'folded_name' | 'subject' | 'invitation_hash', value: string) =>
    readUser(await db.selectFrom('users').selectAll().where(column, '=', value).executeTakeFirst());
  return {
    get: async (tenant, id) => {
      const query = inScope(db.selectFrom('users').selectAll(), tenant);
      return readUser(await query.where('id', '=', id).executeTakeFirst());
    },
    findByName: (name) => userBy('folded_name', name),
    findBySubject: (subject) => userBy('subject', subject),
    findByInvitation: (hash) => userBy('invitation_hash', hash),
    list: async (tenant, { after, limit }) => {
      let query = inScope(db.selectFrom('users').selectAll(), tenant)
        .where('state', '<>', 'deleted')
        .orderBy('id')
        .limit(limit);
      if (after !== undefined) query = query.where('id', '>', after);
      return (await query.execute()).map((row) => toUser(row, check('users', row)));
    },
    listUncleared: async ({ after, limit }) => {
      let query = db
        .selectFrom('users')
        .selectAll()
        .where('state', '=', 'deleted')
        .where((e) => e.or([e('email', 'is not', null), e('name', '<>', sql<string>`'deleted-' || id`)]))
        .orderBy('id')
        .limit(limit);
      if (after !== undefined) query = query.where('id', '>', after);
      return (await query.execute()).map((row) => toUser(row, check('users', row)));
    },
    countAdministrators: async () => {
      const row = await db
        .selectFrom('users')
        .select((e) => e.fn.countAll<number | string>().as('count'))
        .where('tenant_id', 'is', null)
        .where('grants', 'like', '%"role":"administrator","scope":null,"tenantId":null%')
        .where('state', '=', 'active')
        .where((e) => e.or([e('password', 'is not', null), e('subject', 'is not', null)]))
        .executeTakeFirstOrThrow();
      return Number(row.count);
    },
    insert: async (user) => {
      await policyRows.insert('users', userRow(user));
      await terms.add('users', userRow(user));
    },
    update: async (user) => {
      refuseTampered(user);
      const { last_sign_in_at: _, ...row } = userRow(user);
      await policyRows.update('users', row);
      await terms.renew('users', row);
    },
    touch: async (id, at) => {
      await db.updateTable('users').set({ last_sign_in_at: at }).where('id', '=', id).execute();
    },
  };
};

const factors = (db: Kysely<Schema>, policyRows: PolicyRows): PeopleRepositories['factors'] => {
  const readFactor = (row: Row<'user_factors'>) => toFactor(row, policyRows.integrity('user_factors', row));
  return {
    get: async (id) => {
      const row = await db.selectFrom('user_factors').selectAll().where('id', '=', id).executeTakeFirst();
      return row && readFactor(row);
    },
    list: async (userId) =>
      (await db.selectFrom('user_factors').selectAll().where('user_id', '=', userId).orderBy('id').execute()).map(
        readFactor,
      ),
    listOf: async (userIds) =>
      userIds.length === 0
        ? []
        : (
            await db
              .selectFrom('user_factors')
              .selectAll()
              .where('user_id', 'in', [...userIds])
              .orderBy('id')
              .execute()
          ).map(readFactor),
    insert: async (factor) => {
      await policyRows.insert('user_factors', factorRow(factor));
    },
    update: async (factor) => {
      refuseTampered(factor);
      await policyRows.update('user_factors', factorRow(factor));
    },
    remove: async (id) => {
      await policyRows.remove('user_factors', [id]);
    },
  };
};

const sessions = (db: Kysely<Schema>, policyRows: PolicyRows): PeopleRepositories['sessions'] => {
  const readSession = (row: Row<'sessions'>) => toSession(row, policyRows.integrity('sessions', row));
  return {
    get: async (tenant, id) => {
      const query = inScope(db.selectFrom('sessions').selectAll(), tenant);
      const row = await query.where('id', '=', id).executeTakeFirst();
      return row && readSession(row);
    },
    findByHash: async (hash) => {
      const row = await db.selectFrom('sessions').selectAll().where('hash', '=', hash).executeTakeFirst();
      return row && readSession(row);
    },
    list: async (tenant, { userId, now, idleSince }, { after, limit }) => {
      let query = inScope(db.selectFrom('sessions').selectAll(), tenant)
        .where('expires_at', '>', now)
        .where('used_at', '>', idleSince)
        .orderBy('id', 'desc')
        .limit(limit);
      if (userId !== undefined) query = query.where('holder_kind', '=', 'user').where('holder_id', '=', userId);
      if (after !== undefined) query = query.where('id', '<', after);
      return (await query.execute()).map(readSession);
    },
    insert: async (session) => {
      await policyRows.insert('sessions', sessionRow(session));
    },
    touch: async (id, at) => {
      await db.updateTable('sessions').set({ used_at: at }).where('id', '=', id).execute();
    },
    remove: async (id) => {
      await policyRows.remove('sessions', [id]);
    },
    removeOf: async (holder, except) => {
      let query = db
        .selectFrom('sessions')
        .select('id')
        .where('holder_kind', '=', holder.kind)
        .where('holder_id', '=', holder.id);
      if (except !== null) query = query.where('id', '<>', except);
      return policyRows.remove('sessions', idsOf(await query.execute()));
    },
    removeAll: async () => policyRows.remove('sessions', idsOf(await db.selectFrom('sessions').select('id').execute())),
  };
};

const attempts = (db: Kysely<Schema>): PeopleRepositories['attempts'] => ({
  insert: async (attempt) => {
    await db.insertInto('sign_in_attempts').values(attemptMembers.toRow(attempt)).execute();
  },
  get: async (hash) =>
    toAttempt(await db.selectFrom('sign_in_attempts').selectAll().where('hash', '=', hash).executeTakeFirst()),
  take: async (hash) =>
    toAttempt(await db.deleteFrom('sign_in_attempts').where('hash', '=', hash).returningAll().executeTakeFirst()),
  count: async (kind, now) => {
    const { count } = await db
      .selectFrom('sign_in_attempts')
      .where('kind', '=', kind)
      .where('expires_at', '>', now)
      .select((row) => row.fn.countAll<number | string>().as('count'))
      .executeTakeFirstOrThrow();
    return Number(count);
  },
});

const failures = (db: Kysely<Schema>): PeopleRepositories['failures'] => ({
  get: async (key) => {
    const row = await db.selectFrom('sign_in_failures').selectAll().where('id', '=', key).executeTakeFirst();
    return row && { failures: row.failures, failedAt: row.failed_at, lockedUntil: row.locked_until };
  },
  put: async (key, { failures, failedAt, lockedUntil }) => {
    const change = { failures, failed_at: failedAt, locked_until: lockedUntil };
    await db
      .insertInto('sign_in_failures')
      .values({ id: key, ...change })
      .onConflict((conflict) => conflict.column('id').doUpdateSet(change))
      .execute();
  },
  remove: async (key) => {
    await db.deleteFrom('sign_in_failures').where('id', '=', key).execute();
  },
  countLocked: async (now) => {
    const { locked } = await db
      .selectFrom('sign_in_failures')
      .where('locked_until', '>', now)
      .select((row) => row.fn.countAll<number | string>().as('locked'))
      .executeTakeFirstOrThrow();
    return Number(locked);
  },
});

export const createPeople = (
  db: Kysely<Schema>,
  policyRows: PolicyRows,
  terms: Pick<Terms, 'add' | 'renew'>,
): PeopleRepositories => ({
  users: users(db, policyRows, terms),
  factors: factors(db, policyRows),
  sessions: sessions(db, policyRows),
  attempts: attempts(db),
  failures: failures(db),
});
