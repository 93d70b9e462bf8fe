// The list of keys. Each of its filters goes by an index in the order of the list; of several, one
// does, and what it finds is compared with the others. Ids say when keys were made, so that the
// time of that is a bound of every order by id.

import { type ExpressionBuilder, type Kysely, type RawBuilder, type Selectable, sql } from 'kysely';
import { firstIdAt } from '../../../base/ids.ts';
import type { TenantScope } from '../../../domain/tenant.ts';
import type { KeyListFilter } from '../../../ports/store.ts';
import type { Window } from '../../../ports/window.ts';
import type { Schema } from '../schema/schema.ts';
import { countUpTo } from './count-up-to.ts';
import { alsoInScope, inScope } from './tenants-repository.ts';

type Equal = 'vault_id' | 'kind' | 'state' | 'application_id';

const opposites = { '=': '<>', '>=': '<', '<': '>=' } as const;
/**
 * A condition next to the one whose index has the order: SQLite, which does not count, would else
 * leave that for this one's. PostgreSQL knows what it means.
 */
const beside = (column: string, operator: keyof typeof opposites, value: string): RawBuilder<boolean> =>
  sql<boolean>`not (${sql.ref(column)} ${sql.raw(opposites[operator])} ${value})`;

const equals = (filter: KeyListFilter): readonly (readonly [Equal, string])[] =>
  (
    [
      ['vault_id', filter.vaultId],
      ['kind', filter.kind],
      ['state', filter.state],
      ['application_id', filter.applicationId],
    ] as const
  ).flatMap(([column, value]) => (value === undefined ? [] : [[column, value] as const]));

const bounds = ({ createdAfter, createdBefore }: KeyListFilter) => [
  ...(createdAfter === undefined ? [] : [['>=', firstIdAt(createdAfter)] as const]),
  ...(createdBefore === undefined ? [] : [['<', firstIdAt(createdBefore)] as const]),
];

/** The longest unused first. */
const byUse = (db: Kysely<Schema>, tenant: TenantScope, filter: KeyListFilter, { after, limit }: Window) => {
  let query = inScope(db.selectFrom('keys').selectAll(), tenant)
    .where('last_used_at', '>=', filter.usedAfter ?? 0)
    .orderBy('last_used_at')
    .orderBy('id')
    .limit(limit);
  if (filter.usedBefore !== undefined) query = query.where('last_used_at', '<', filter.usedBefore);
  for (const [column, value] of equals(filter)) query = query.where(beside(column, '=', value));
  for (const [operator, id] of bounds(filter)) query = query.where(beside('id', operator, id));
  if (filter.tag !== undefined) query = query.where(hasTag(filter.tag));
  if (after !== undefined) {
    const [at = '', id = ''] = after.split('.');
    query = query.where(sql<boolean>`(last_used_at, id) > (${Number(at)}, ${id})`);
  }
  return query;
};

const hasTag = (tag: string) => (e: ExpressionBuilder<Schema, 'keys'>) =>
  e.exists(
    e
      .selectFrom('key_tags')
      .select('key_tags.key_id')
      .whereRef('key_tags.tenant_id', '=', 'keys.tenant_id')
      .where('key_tags.tag', '=', tag)
      .whereRef('key_tags.key_id', '=', 'keys.id'),
  );

const byTag = (
  db: Kysely<Schema>,
  tenant: TenantScope,
  tag: string,
  filter: KeyListFilter,
  { after, limit }: Window,
) => {
  let query = db
    .selectFrom('key_tags')
    .innerJoin('keys', 'keys.id', 'key_tags.key_id')
    .selectAll('keys')
    .where('key_tags.tag', '=', tag)
    .orderBy('key_tags.key_id', 'desc')
    .limit(limit);
  if (typeof tenant === 'string') query = query.where('key_tags.tenant_id', '=', tenant);
  for (const [column, value] of equals(filter)) query = query.where(beside(`keys.${column}`, '=', value));
  for (const [operator, id] of bounds(filter)) query = query.where('key_tags.key_id', operator, id);
  if (filter.neverUsed === true) query = query.where('keys.last_used_at', 'is', null);
  if (after !== undefined) query = query.where('key_tags.key_id', '<', after);
  return query;
};

const byAge = (db: Kysely<Schema>, tenant: TenantScope, filter: KeyListFilter, { after, limit }: Window) => {
  const isNarrow = (filter.vaultId !== undefined || filter.applicationId !== undefined) && filter.state === undefined;
  const scoped = isNarrow ? alsoInScope : inScope;
  let query = scoped(db.selectFrom('keys').selectAll(), tenant).orderBy('id', 'desc').limit(limit);
  for (const [column, value] of equals(filter)) query = query.where(column, '=', value);
  for (const [operator, id] of bounds(filter)) query = query.where('id', operator, id);
  if (filter.neverUsed === true) query = query.where('last_used_at', 'is', null);
  if (after !== undefined) query = query.where('id', '<', after);
  return query;
};

const filtered = (
  db: Kysely<Schema>,
  tenant: TenantScope,
  filter: KeyListFilter,
  window: Window,
): KeyQuery | undefined => {
  if (filter.usedAfter !== undefined || filter.usedBefore !== undefined)
    return filter.neverUsed === true ? undefined : byUse(db, tenant, filter, window);
  return filter.tag === undefined ? byAge(db, tenant, filter, window) : byTag(db, tenant, filter.tag, filter, window);
};
type KeyQuery = ReturnType<typeof byUse> | ReturnType<typeof byTag>;

export const listKeys = async (
  db: Kysely<Schema>,
  tenant: TenantScope,
  filter: KeyListFilter,
  window: Window,
): Promise<readonly Selectable<Schema['keys']>[]> => (await filtered(db, tenant, filter, window)?.execute()) ?? [];

/** How many the list has, up to `most`. */
export const countKeys = async (
  db: Kysely<Schema>,
  tenant: TenantScope,
  filter: KeyListFilter,
  most: number,
): Promise<number> => {
  const found = filtered(db, tenant, filter, { limit: most });
  return found === undefined ? 0 : countUpTo(db, found.clearSelect().clearOrderBy().select('keys.id'));
};
