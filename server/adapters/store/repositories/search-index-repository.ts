// The terms by which things are found (domain/search-terms.ts): one row a term, in the order of its
// bytes whatever the database's own order of texts is, within the tenant and the kind. They are
// derived from the rows of the things and authenticate nothing: what is found is read from its own
// row before it is shown, and a term that an attacker has planted leads nowhere.

import { type Kysely, sql } from 'kysely';
import { type Found, rangeOf, type SearchField, termsOf, termsOfId, wordsOf } from '../../../domain/search-terms.ts';
import { everyTenant, type TenantScope } from '../../../domain/tenant.ts';
import type { SearchRepository, TermKind, TermSearch } from '../../../ports/search-index.ts';
import { type Declaration, declared, type Schema, type SearchedTable } from '../schema/schema.ts';
import { parseTags } from '../schema/tables/values.ts';
import { parseRule } from '../schema/tables/vaults-table.ts';

/** The version of the way in which terms are made; a new number makes them again. */
const version = '3';
const versionSetting = 'search-terms';

/** The scope in which users and tokens of every tenant and of the platform are found. */
const everywhere = '*';
/**
 * The scope in which vaults are found by the approvers that their dual control names: no search of
 * a caller reaches it.
 */
const namedApprovers = '@approvers';

type Loose = Readonly<Record<string, unknown>>;

/** How the rows of a table are found, as it declares. */
type Searched = Extract<Declaration['search'], { readonly kind: unknown }>;
const searched = new Map<string, Searched>(
  [...declared].flatMap(([table, { search }]) => ('kind' in search ? [[table, search] as const] : [])),
);
const tableOf = new Map([...searched].map(([table, { kind }]) => [kind, table as SearchedTable]));
const kinds = new Map([...searched.values()].map((each) => [each.kind, each]));
const kindOf = (kind: TermKind): Searched => {
  const found = kinds.get(kind);
  if (found === undefined) throw new Error(`no table declares that its rows are found as ${kind}`);
  return found;
};

/** Tables whose rows are found as the row that they refer to. */
const foundAs = new Map(
  [...declared].flatMap(([table, { search, columns }]) => {
    const of = 'as' in search ? columns[search.as]?.of : undefined;
    const kind = of === undefined ? undefined : searched.get(of)?.kind;
    return 'as' in search && of !== undefined && kind !== undefined ? [[table, { ...search, of, kind }] as const] : [];
  }),
);
type FoundAs = NonNullable<ReturnType<(typeof foundAs)['get']>>;
const otherFields = [...foundAs.values()].map(({ field }) => field);

type TermRow = Schema['search_terms'];

/** The term of a row that is found as another one. */
const termsAs = ({ as, by, field, kind }: FoundAs, row: Loose, scope: string): readonly TermRow[] =>
  termsOf(String(row[by]))
    .slice(0, 1)
    .map((term) => ({ scope, kind, term, subject_id: String(row[as]), field }));

/** A vault is found by each approver whom its rule names, until it is deleted. */
const approverTerms = ({ id, state, dual_control: rule }: Loose): readonly TermRow[] => {
  const approvers = state === 'deleted' ? null : parseRule(rule as string | null)?.approvers;
  return [...new Set(approvers)].map((term) => ({
    ...{ scope: namedApprovers, kind: 'vault', term, subject_id: String(id), field: 'id' },
  }));
};

const termRows = ({ kind, terms, everywhere: isEverywhere }: Searched, row: Loose): readonly TermRow[] => {
  const id = String(row.id);
  const fields = new Map<string, SearchField>();
  for (const [column, field] of Object.entries(terms))
    if (row[column] != null && field !== undefined)
      // Each tag is found from its own beginning on.
      for (const text of field === 'tag' ? parseTags(String(row[column])) : [String(row[column])])
        for (const term of termsOf(text)) if (!fields.has(term)) fields.set(term, field);
  for (const term of termsOfId(id)) if (!fields.has(term)) fields.set(term, 'id');
  const scopes = [...(row.tenant_id == null ? [] : [String(row.tenant_id)]), ...(isEverywhere ? [everywhere] : [])];
  const found = scopes.flatMap((scope) =>
    [...fields].map(([term, field]) => ({ scope, kind, term, subject_id: id, field })),
  );
  return kind === 'vault' ? [...found, ...approverTerms(row)] : found;
};
const termsOfRow = (table: SearchedTable, row: Loose): readonly TermRow[] => {
  const found = searched.get(table);
  return found === undefined ? [] : termRows(found, row);
};

/** Rows of one statement: databases take so many parameters at most. */
const atOnce = 200;
const inParts = async <T>(all: readonly T[], each: (part: readonly T[]) => Promise<unknown>): Promise<void> => {
  for (let at = 0; at < all.length; at += atOnce) await each(all.slice(at, at + atOnce));
};

/** Keeps the terms: called with each row that is written. */
export const createTerms = (db: Kysely<Schema>) => {
  const insert = (rows: readonly TermRow[]): Promise<void> =>
    inParts(rows, (part) =>
      db
        .insertInto('search_terms')
        .values([...part])
        .onConflict((conflict) => conflict.doNothing())
        .execute(),
    );
  return {
    insert,
    /** Adds the terms of a new row. */
    add: (table: SearchedTable, row: Loose): Promise<void> => insert(termsOfRow(table, row)),
    /** Renews the terms of a row that was there before. */
    renew: async (table: SearchedTable, row: Loose): Promise<void> => {
      const wanted = termsOfRow(table, row);
      const there = await db
        .selectFrom('search_terms')
        .selectAll()
        .where('subject_id', '=', String(row.id))
        .where('field', 'not in', otherFields)
        .execute();
      const name = ({ scope, term }: TermRow): string => `${scope} ${term}`;
      const wantedNames = new Set(wanted.map(name));
      const known = new Set(there.map(name));
      await insert(wanted.filter((each) => !known.has(name(each))));
      for (const { scope, term, kind } of there.filter((each) => !wantedNames.has(name(each))))
        await db
          .deleteFrom('search_terms')
          .where('scope', '=', scope)
          .where('kind', '=', kind)
          .where('term', '=', term)
          .where('subject_id', '=', String(row.id))
          .execute();
    },
    remove: async (id: string): Promise<void> => {
      await db.deleteFrom('search_terms').where('subject_id', '=', id).execute();
    },
    /** Adds the terms of a row that is found as another one of this tenant. */
    addTo: async (table: string, row: Loose, tenantId: string): Promise<void> => {
      const other = foundAs.get(table);
      if (other !== undefined) await insert(termsAs(other, row, tenantId));
    },
    removeFrom: async (table: string, row: Loose): Promise<void> => {
      const other = foundAs.get(table);
      for (const { subject_id, term, field } of other === undefined ? [] : termsAs(other, row, everywhere))
        await db
          .deleteFrom('search_terms')
          .where('subject_id', '=', subject_id)
          .where('term', '=', term)
          .where('field', '=', field)
          .execute();
    },
    /**
     * Renews the terms of rows of any table that were written past the repositories; ignores tables
     * without terms.
     */
    renewRows: async (table: string, given: readonly Loose[]): Promise<void> => {
      const other = foundAs.get(table);
      if (other !== undefined) {
        await inParts(given, async (part) => {
          const owners = await db
            .selectFrom(other.of as 'endpoints')
            .select(['id', 'tenant_id'])
            .where('id', 'in', [...new Set(part.map((row) => String(row[other.as])))])
            .execute();
          const tenantOf = new Map(owners.map(({ id, tenant_id }) => [id, tenant_id]));
          await insert(part.flatMap((row) => termsAs(other, row, tenantOf.get(String(row[other.as])) ?? everywhere)));
        });
        return;
      }
      const own = searched.get(table);
      if (own === undefined) return;
      await inParts(given, async (part) => {
        await db
          .deleteFrom('search_terms')
          .where(
            'subject_id',
            'in',
            part.map((row) => String(row.id)),
          )
          .where('field', 'not in', otherFields)
          .execute();
        await insert(part.flatMap((row) => termRows(own, row)));
      });
    },
  };
};
export type Terms = ReturnType<typeof createTerms>;

/**
 * Makes all terms again where another version made them, or none did. Runs in a transaction of its
 * own, before anything else writes.
 */
export const makeTerms = async (db: Kysely<Schema>): Promise<void> => {
  const found = await db.selectFrom('settings').select('value').where('name', '=', versionSetting).executeTakeFirst();
  if (found?.value === version) return;
  await db.transaction().execute(async (tx) => {
    const terms = createTerms(tx);
    await tx.deleteFrom('search_terms').execute();
    for (const table of [...searched.keys(), ...foundAs.keys()])
      for (let after = ''; ; ) {
        const rows: readonly Loose[] = await tx
          .selectFrom(table as 'keys')
          .selectAll()
          .where('id', '>', after)
          .orderBy('id')
          .limit(1000)
          .execute();
        if (rows.length === 0) break;
        await terms.renewRows(table, rows);
        after = String(rows.at(-1)?.id);
      }
    await tx
      .insertInto('settings')
      .values({ name: versionSetting, value: version })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ value: version }))
      .execute();
  });
};

/**
 * Terms that one step reads; steps of one search; and, for words that stand apart, terms of the
 * rarest one that are read.
 */
const leastOfStep = 32;
const mostSteps = 8;
const mostNear = 2000;

export const searchStatements = (db: Kysely<Schema>) => {
  const within = (scope: string, kind: string, { from, below }: ReturnType<typeof rangeOf>) =>
    db
      .selectFrom('search_terms')
      .where('scope', '=', scope)
      .where('kind', '=', kind)
      .where('term', '>=', from)
      .where('term', '<', below);
  return {
    /** After a term of a subject, in the order of both. */
    beginning: (
      scope: string,
      kind: string,
      folded: string,
      after: Pick<TermRow, 'term' | 'subject_id'> | undefined,
      limit: number,
    ) => {
      const all = within(scope, kind, after === undefined ? rangeOf(folded) : { ...rangeOf(folded), from: after.term })
        .select(['term', 'subject_id', 'field'])
        .orderBy('term')
        .orderBy('subject_id')
        .limit(limit);
      return after === undefined
        ? all
        : all.where(sql<boolean>`(term, subject_id) > (${after.term}, ${after.subject_id})`);
    },
    /** How many begin so, up to a limit. */
    count: (scope: string, kind: string, folded: string, limit: number) =>
      db
        .selectFrom(within(scope, kind, rangeOf(folded)).select('term').orderBy('term').limit(limit).as('near'))
        .select((e) => e.fn.countAll<number | string>().as('count')),
    /** Among the first of those that begin with one word, those that have the other words, too. */
    together: (scope: string, kind: string, word: string, others: readonly string[], limit: number) =>
      db
        .selectFrom(
          within(scope, kind, rangeOf(word))
            .select(['term', 'subject_id', 'field'])
            .orderBy('term')
            .orderBy('subject_id')
            .limit(mostNear)
            .as('near'),
        )
        .select(['near.term', 'near.subject_id', 'near.field'])
        .where((e) =>
          e.and(
            others.map((other) => {
              const { from, below } = rangeOf(other);
              const own = e
                .selectFrom('search_terms as own')
                .select('own.term')
                .where('own.scope', '=', scope)
                .where('own.kind', '=', kind)
                .whereRef('own.subject_id', '=', 'near.subject_id')
                .where('own.term', '>=', from)
                .where('own.term', '<', below);
              return e.exists(own);
            }),
          ),
        )
        .orderBy('near.term')
        .orderBy('near.subject_id')
        .limit(limit),
    /** Vaults whose dual control may name the approver, after one of them: their rows decide. */
    naming: (approver: string, after: string, limit: number) =>
      db
        .selectFrom('search_terms')
        .select('subject_id')
        .where('scope', '=', namedApprovers)
        .where('kind', '=', 'vault')
        .where('term', '=', approver)
        .where('subject_id', '>', after)
        .orderBy('subject_id')
        .limit(limit),
    things: (kind: TermKind, ids: readonly string[]) =>
      db
        .selectFrom(tableOf.get(kind) as 'keys')
        .selectAll()
        .where('id', 'in', [...ids]),
  };
};

export const createSearch = (db: Kysely<Schema>): SearchRepository => {
  const statements = searchStatements(db);

  /** Keys with the states of their vaults, which are of the same tenant. */
  const withVaults = async (
    keys: readonly Pick<Schema['keys'], 'vault_id' | 'tenant_id'>[],
  ): Promise<readonly Loose[]> => {
    if (keys.length === 0) return [];
    const vaults = await db
      .selectFrom('vaults')
      .select(['id', 'tenant_id', 'state'])
      .where('id', 'in', [...new Set(keys.map(({ vault_id }) => vault_id))])
      .execute();
    const states = new Map(vaults.map(({ id, tenant_id, state }) => [`${tenant_id} ${id}`, state]));
    return keys.map((key) => ({ ...key, vault_state: states.get(`${key.tenant_id} ${key.vault_id}`) }));
  };

  /** Loads what was found by its terms, and answers with what may be shown of it. */
  const load = async (
    tenant: TenantScope,
    { kind, withDeleted }: TermSearch,
    hits: readonly Pick<TermRow, 'subject_id' | 'field'>[],
  ): Promise<readonly (Found & { readonly kind: TermKind })[]> => {
    if (hits.length === 0) return [];
    const { deleted, state } = kindOf(kind);
    const found = await statements
      .things(
        kind,
        hits.map(({ subject_id }) => subject_id),
      )
      .execute();
    const rows: readonly Loose[] = kind === 'key' ? await withVaults(found) : found;
    const byId = new Map(rows.map((row) => [String(row.id), row]));
    return hits.flatMap(({ subject_id, field }) => {
      const row = byId.get(subject_id);
      if (row === undefined || (tenant !== everyTenant && row.tenant_id !== tenant)) return [];
      if (deleted !== undefined && row.state === deleted && withDeleted !== true) return [];
      return [
        {
          kind,
          id: subject_id,
          name: String(row.name),
          field: field as SearchField,
          tenantId: row.tenant_id === null ? null : String(row.tenant_id),
          state: state?.(row) ?? null,
        },
      ];
    });
  };

  const apart = async (scope: string, { kind, folded, limit }: TermSearch) => {
    const words = wordsOf(folded);
    if (words.length < 2) return { hits: [], more: false };
    const counts = new Map<string, number>();
    for (const word of words) {
      const row = await statements.count(scope, kind, word, mostNear).executeTakeFirst();
      counts.set(word, Number(row?.count ?? 0));
    }
    const [rarest = '', ...others] = [...words].sort((a, b) => (counts.get(a) ?? 0) - (counts.get(b) ?? 0));
    const most = counts.get(rarest) ?? 0;
    if (most === 0) return { hits: [], more: false };
    const hits = await statements.together(scope, kind, rarest, others, 2 * limit + leastOfStep).execute();
    return { hits, more: most === mostNear };
  };

  return {
    find: async (tenant, search) => {
      const { kind, folded, limit } = search;
      if (tenant === everyTenant && kindOf(kind).everywhere !== true)
        throw new RangeError(`a ${kind} is looked for in one tenant`);
      const scope = tenant === everyTenant ? everywhere : tenant;
      const items: (Found & { readonly kind: TermKind })[] = [];
      const seen = new Set<string>();
      const take = async (hits: readonly Pick<TermRow, 'subject_id' | 'field'>[]): Promise<void> => {
        const fresh = hits.filter(({ subject_id }) => !seen.has(subject_id) && seen.add(subject_id));
        items.push(...(await load(tenant, search, fresh)));
      };
      let after: Pick<TermRow, 'term' | 'subject_id'> | undefined;
      const step = 2 * limit + leastOfStep;
      for (let steps = 0; items.length <= limit; steps += 1) {
        if (steps === mostSteps) return { items, more: true };
        const hits = await statements.beginning(scope, kind, folded, after, step).execute();
        await take(hits);
        after = hits.at(-1);
        if (hits.length < step) break;
      }
      if (items.length > limit) return { items: items.slice(0, limit), more: true };
      const { hits, more } = await apart(scope, search);
      await take(hits);
      return { items: items.slice(0, limit), more: more || items.length > limit };
    },
  };
};
