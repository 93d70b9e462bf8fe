// Lists stay quick however long they are: each list of the API that comes in pages is asked for, at
// its first page and at a later one, with each of its filters, among many rows in every table, and
// the database is asked how it answers the statements that this took. None may read a table from
// end to end, none may sort, and what is compared for equality must be found by an index. A list
// without a case here fails.
import { AsyncLocalStorage } from 'node:async_hooks';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { ReadingConnection } from '../../server/adapters/store/engine/sqlite/reading-connection.ts';
import { apiRoutes } from '../../server/contract/api/index.ts';
import type { RouteGroup, RouteRow } from '../../server/contract/api/row.ts';
import { fillLongTables, longTableIds } from '../support/long-tables.ts';
import { administrator, type OpenedService, openTestService } from '../support/open-service.ts';
import { askUnlocked, onPostgresql, placeOf } from '../support/test-store.ts';

/**
 * SQLite decides without counting; PostgreSQL by what it has counted, and reads a table of few
 * pages from end to end.
 */
const many = { sqlite: 500, postgres: 10_000 } as const;
const ids = longTableIds();
const { applicationId, endpointId, vaultId, keyId, groupId } = ids;

/** Filters of each list; every list is also requested without one. */
const filters: Readonly<Record<string, readonly string[]>> = {
  'vaults.list': [],
  'keys.list': [
    'kind=master',
    'state=destroyed',
    `vaultId=${vaultId}`,
    'tag=env=prod',
    'createdBefore=2026-01-01T00:00:00Z',
    'createdAfter=2026-01-01T00:00:00Z',
    'usedBefore=1970-01-01T00:00:00.300Z',
    'usedAfter=1970-01-01T00:00:00.300Z',
    'neverUsed=true',
    // Several filters together: the index of one of them is enough.
    'tag=env=prod&state=active&kind=general',
    `usedBefore=1970-01-01T00:00:05Z&state=active&vaultId=${vaultId}&tag=env=prod`,
    'usedAfter=1970-01-01T00:00:00.001Z&createdAfter=1970-01-01T00:00:00Z',
  ],
  'tdeGroups.list': [],
  'applications.list': [`groupId=${groupId}`],
  'masterKeys.list': [],
  'endpoints.list': [],
  'diagnostics.list': [],
  'requests.search': [
    `endpointId=${endpointId}`,
    'result=refused',
    'requestId=request-5',
    'kmsRequestId=kms-5',
    'operation=encrypt',
  ],
  'requests.searchOne': ['result=refused', 'requestId=request-5', 'operation=encrypt'],
  'runbooks.runs': [],
  'externalKeyStores.list': [],
  'approvals.list': ['state=pending', `subjectId=${keyId}`],
  'snapshots.list': ['state=available'],
  'copies.list': ['kind=exported-snapshot', 'left=true'],
  'notifications.list': [
    'state=resolved',
    'state=open',
    'kind=endpoint.credential-due',
    'state=resolved&kind=endpoint.credential-due',
  ],
  'audit.list': [
    'severity=medium',
    'severity=high&order=oldest',
    'severity=info&actorId=actor-5',
    'severity=info&subjectId=subject-5',
    'severity=info&requestId=request-5',
    'kind=key.created',
    'actorId=actor-5',
    'subjectId=subject-5',
    'requestId=request-5',
    'order=oldest',
    'from=2026-01-01T00:00:00Z',
  ],
  'audit.checkpoints': [],
  'tokens.list': ['userId=user-5'],
  'users.list': [],
  'sessions.list': ['userId=user-5'],
};
/** Asked for by other lists' statements. */
const others: Readonly<Record<string, string>> = {
  'profile.sessions': 'sessions.list, of one user',
  'profile.tokens': 'tokens.list, of one user',
  'audit.migrations': 'audit.list, of a kind and of an actor or a subject',
};

/** The table that a list shows: a request reads others, too, such as its token. */
const tables: Readonly<Record<string, string>> = {
  'vaults.list': 'vaults',
  'keys.list': 'keys|key_tags',
  'tdeGroups.list': 'tde_groups',
  'applications.list': 'tde_applications',
  'masterKeys.list': 'keys',
  'endpoints.list': 'endpoints',
  'diagnostics.list': 'diagnoses',
  'requests.search': 'request_log',
  'requests.searchOne': 'request_log',
  'runbooks.runs': 'runbook_runs',
  'externalKeyStores.list': 'external_key_stores',
  'approvals.list': 'approvals',
  'snapshots.list': 'snapshots',
  'copies.list': 'outside_copies',
  'notifications.list': 'notifications',
  'audit.list': 'audit_events',
  'audit.checkpoints': 'audit_checkpoints',
  'tokens.list': 'api_tokens',
  'users.list': 'users',
  'sessions.list': 'sessions',
};
/**
 * Compared for equality, and still not in the index: with what these columns are looked up by there
 * are few rows, or all are as asked.
 */
const beside: Readonly<Record<string, readonly string[]>> = {
  tenant_id: ['subject_id', 'request_id', 'kind', 'state', 'holder_id', 'id'],
  kind: ['application_id'],
  holder_kind: ['holder_id'],
};

const paths: Readonly<Record<string, string>> = {
  'masterKeys.list': applicationId,
  'runbooks.runs': applicationId,
  'diagnostics.list': endpointId,
  'requests.searchOne': endpointId,
};
const lists = Object.entries(apiRoutes).flatMap(([group, rows]) =>
  Object.entries(rows as RouteGroup)
    .filter(([, { method, query }]) => method === 'get' && query !== undefined && 'after' in query.shape)
    .filter(([name]) => !Object.hasOwn(others, `${group}.${name}`))
    .map(([name, row]): { readonly name: string; readonly row: RouteRow } => ({ name: `${group}.${name}`, row })),
);

test('every list that comes in pages has a case, and no case is of another', () => {
  expect(lists.map(({ name }) => name).toSorted()).toEqual(Object.keys(filters).toSorted());
});

interface Statement {
  readonly sql: string;
  readonly values: readonly unknown[];
}
/**
 * Set while a request is answered: what the service reads on its own in the meantime, also of the
 * same table, is none of the list's statements.
 */
const answering = new AsyncLocalStorage<true>();
/** The statements that the answers needed since the last check, each once. */
const seen = new Map<string, Statement>();
const note = (sql: string, values: readonly unknown[]): void => {
  if (answering.getStore() === true && /^select\b/i.test(sql)) seen.set(sql, { sql, values });
};

const name = onPostgresql ? 'postgres' : 'sqlite';

describe(`the lists in ${name}`, () => {
  let opened: OpenedService;
  let server: Server;
  let base: string;
  let token: string;
  let run: (statements: string) => Promise<unknown>;
  let explain: (statement: Statement) => Promise<string>;
  let end: () => Promise<void> = async () => undefined;

  beforeAll(async () => {
    const toml = '[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n';
    if (name === 'postgres') {
      const { query } = pg.Client.prototype;
      vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...given: unknown[]) {
        const [text, values] = given as [string | { text: string; values?: unknown[] }, unknown[] | undefined];
        note(typeof text === 'string' ? text : text.text, (typeof text === 'string' ? values : text.values) ?? []);
        return (query as (...values: unknown[]) => unknown).apply(this, given);
      } as never);
      opened = await openTestService({ toml });
      const client = new pg.Client({ ...placeOf(opened.folder) });
      await client.connect();
      run = (statements) => client.query(statements);
      explain = async ({ sql, values }) =>
        (await client.query<Record<'QUERY PLAN', string>>(`explain ${sql}`, [...values])).rows
          .map((row) => row['QUERY PLAN'])
          .join('\n');
      end = () => client.end();
    } else {
      const { prepare } = DatabaseSync.prototype;
      vi.spyOn(DatabaseSync.prototype, 'prepare').mockImplementation(function (this: DatabaseSync, sql, ...rest) {
        note(sql, []);
        return prepare.call(this, sql, ...rest);
      });
      // The request log is read by a thread.
      const { executeQuery } = ReadingConnection.prototype;
      vi.spyOn(ReadingConnection.prototype, 'executeQuery').mockImplementation(function (
        this: ReadingConnection,
        query,
      ) {
        note(query.sql, []);
        return executeQuery.call(this, query) as never;
      });
      opened = await openTestService({ toml });
      const path = join(opened.folder, 'dke-data', 'dke.db');
      run = async (statements) => {
        const database = new DatabaseSync(path);
        await askUnlocked(() => database.exec('begin immediate'));
        database.exec(`${statements}; commit`);
        database.close();
      };
      const reader = new DatabaseSync(path, { readOnly: true });
      explain = async ({ sql }) =>
        reader
          .prepare(`explain query plan ${sql}`)
          .all()
          .map(({ detail }) => String(detail))
          .join('\n');
      end = async () => reader.close();
    }
    token = (
      await opened.operations.tokens.create(administrator, 'the service', {
        name: 'all',
        grants: [{ role: 'administrator', scope: null, tenantId: null }],
      })
    ).token;
    const tenantId = (await opened.operations.tenants.default()).id;
    // Rows that the service did not write end its changes at the next comparison.
    await run(fillLongTables(name, many[name], tenantId, ids).join(';\n'));
    if (name === 'postgres') await run('analyze');
    server = createServer((incoming, outgoing) => answering.run(true, () => opened.service.handle(incoming, outgoing)));
    // A busy machine takes longer from one test to the next than a connection is kept on its own.
    server.keepAliveTimeout = 120_000;
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(async () => {
    server?.closeAllConnections();
    server?.close();
    await end();
    await opened?.remove();
    vi.restoreAllMocks();
  });

  const get = async (path: string): Promise<{ readonly items: readonly unknown[]; readonly next: string | null }> => {
    const response = await fetch(`${base}${path}`, { headers: { authorization: `Bearer ${token}` } });
    const text = await response.text();
    expect([path, response.status, response.status === 200 ? '' : text]).toEqual([path, 200, '']);
    return JSON.parse(text);
  };

  /** What is wrong with how the database answers. */
  const faultsOf = (sql: string, explained: string): readonly string[] => {
    const isLog = /from "request_log"/.test(sql);
    // Across tenants: what has ended is pruned, and what is left is little.
    if (/from "approvals"/.test(sql) && !/"tenant_id"/.test(sql)) return [];
    if (name === 'postgres')
      return [
        ...(/Seq Scan on (?!endpoints)/.test(explained) ? ['reads a table from end to end'] : []),
        // Within a step of the request log's sequences, which has an end.
        ...(/\bSort\b/.test(explained) && !(isLog && /"sequence" >= .*"sequence" < /.test(sql)) ? ['sorts'] : []),
      ];
    const faults: string[] = [];
    for (const line of explained.split('\n')) {
      if (/TEMP B-TREE/.test(line)) faults.push('sorts');
      // The first records of one kind, which an index has found.
      if (line === 'SCAN one') continue;
      if (/^SCAN \w+$/.test(line) && / where /.test(sql)) faults.push('reads a table from end to end');
      // In the order of the list, and each row is one of it.
      if (/^SCAN/.test(line) && / where .*=/.test(sql)) faults.push('reads an index from end to end');
    }
    // The request log is walked through in steps (request-log.test.ts). So is the audit log from a
    // time on, in the order of its records: clocks can step back, so that times are not a bound for
    // them.
    if (isLog || / "at" >= /.test(sql)) return faults.filter((fault) => fault === 'sorts');
    const columns = [...sql.matchAll(/"(\w+)" = \?/g)].map(([, column = '']) => column);
    const found = [...explained.matchAll(/(\w+)=\?/g)].map(([, column = '']) => column);
    for (const column of columns)
      if (!found.includes(column) && !beside[column]?.some((other) => found.includes(other)))
        faults.push(`${column} is in no index`);
    return faults;
  };

  test.each(lists.map((list) => [list.name, list.row] as const))('%s', async (list, row) => {
    const path = row.path.replace(/\{\w+\}/, paths[list] ?? '');
    const tenant = row.tenancy === 'platform' ? [''] : ['', 'tenant=default'];
    for (const scope of tenant)
      for (const filter of ['', ...(filters[list] ?? [])]) {
        const asked = [`limit=2`, scope, filter].filter((part) => part !== '').join('&');
        // Whatever the last statements were, those of this list alone are checked.
        seen.clear();
        const { items, next } = await get(`${path}?${asked}`);
        // The list of master keys shows only keys whose objects are there.
        // Open notifications that have no cause are resolved by the service itself, at any moment.
        const isWhole = list !== 'masterKeys.list' && list !== 'notifications.list';
        if (filter === '' && isWhole) expect([list, asked, items.length]).toEqual([list, asked, 2]);
        if (next !== null) await get(`${path}?${asked}&after=${encodeURIComponent(next)}`);
        const own = new RegExp(
          `^select (\\*|"sequence".*|"keys"\\.\\*) from (?:\\(select "sequence" from )?"(${tables[list]})" .*(?:limit|"sequence" in )`,
          's',
        );
        const statements = [...seen.values()].filter(({ sql }) => own.test(sql));
        // SQLite's statements are kept: one that another list needed, too, is prepared once and was
        // checked there. A thread's are seen each time.
        if (name === 'postgres' || tables[list] === 'request_log')
          expect([list, asked, statements.length > 0]).toEqual([list, asked, true]);
        for (const statement of statements) {
          const explained = await explain(statement);
          expect(`${faultsOf(statement.sql, explained).join(', ')} ${explained}`, `${asked}: ${statement.sql}`).toBe(
            ` ${explained}`,
          );
        }
      }
  });
});
