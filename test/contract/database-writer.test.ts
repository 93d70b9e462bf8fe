// Someone who can write to the database puts back what the service itself has written: an older
// version of a row, a row that was removed, a copy of a row under another id, the values of another
// row; and what holders of old databases (OF), writers of the place of backups (BW) and trusted
// signers (TS) bring. Each attack is carried out on a row of each policy table while the store is
// open, on both databases. The row counts as tampered when it is loaded, and the comparison with
// the row set finds all of them.
import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { authenticationCode, policyColumns } from '../../server/adapters/store/rows/row-codes.ts';
import { declared } from '../../server/adapters/store/schema/schema.ts';
import { openPostgresStore, openStore } from '../../server/adapters/store/store.ts';
import { contentDigest } from '../../server/base/content-digest.ts';
import { newId } from '../../server/base/ids.ts';
import type { RowAuthenticator } from '../../server/base/row-jobs.ts';
import { ServiceError } from '../../server/base/service-error.ts';
import { systemClock } from '../../server/base/time.ts';
import type { Approval } from '../../server/domain/approval.ts';
import { newOutsideCopy, type OutsideCopy } from '../../server/domain/copies.ts';
import { decisionNames } from '../../server/domain/decisions.ts';
import { defaultSettings, type Endpoint } from '../../server/domain/endpoint.ts';
import { type ExternalKeyStore, neverLooked } from '../../server/domain/external-key-store.ts';
import { type Key, newKey } from '../../server/domain/key.ts';
import type { RecoveryKey, Snapshot } from '../../server/domain/snapshot.ts';
import { repeatMs, type TdeApplication, type TdeGroup } from '../../server/domain/tde.ts';
import type { Tenant } from '../../server/domain/tenant.ts';
import type { Vault } from '../../server/domain/vault.ts';
import { newTenant } from '../../server/operations/tenants/create-tenant.ts';
import type { StoredRequest } from '../../server/ports/kept-answers.ts';
import type { StoredFactor, StoredSession, StoredUser } from '../../server/ports/people.ts';
import type { SnapshotRow } from '../../server/ports/snapshot-archive.ts';
import type { Repositories, Store, StoredToken } from '../../server/ports/store.ts';
import type { StoredAccessGuid, StoredObject } from '../../server/ports/tde-repositories.ts';
import type { TenantTable } from '../../server/ports/tenant-rows.ts';
import { folderOfTest } from '../support/folders.ts';
import { type PostgresPlace, type PostgresServer, startPostgres } from '../support/postgresql.ts';
import { storedUser, storedVault } from '../support/stored.ts';
import { sizeOf } from '../support/tiers.ts';

/** A row key of a test: `earlier` is the key itself. */
const rowKey =
  (key: string): RowAuthenticator =>
  (text, job) =>
    createHmac('sha256', job === 'earlier' ? key : `${job} of ${key}`)
      .update(text)
      .digest('hex');
const authenticateRow = rowKey('row key of the test');

type Table = keyof typeof policyColumns;
type Row = Readonly<Record<string, SQLInputValue>>;

const tenant = newTenant('default', 1);
const ids = new Map<Table, string>([['decisions', 'rotation-asked']]);
/** All decisions have rows from the first one on. */
const otherDecisions = decisionNames.length - 1;
const idOf = (table: Table): string => {
  const id = ids.get(table) ?? newId(2);
  ids.set(table, id);
  return id;
};
const ok = { integrity: 'ok' } as const;
const carriedOut = { id: idOf('tde_requests'), fingerprint: 'created f', handles: [7], at: 2 - repeatMs } as const;

/**
 * How one row of each table is written, changed or removed, and the service's reaction when it
 * loads it.
 */
interface Sample {
  make(tx: Repositories): Promise<unknown>;
  /** Undefined: rows of this table are not changed, only removed. */
  readonly change?: (tx: Repositories) => Promise<unknown>;
  readonly remove?: (tx: Repositories) => Promise<unknown>;
  load(read: Repositories): Promise<{ readonly integrity: 'ok' | 'tampered' } | undefined>;
}
const sample = <T extends { readonly integrity: 'ok' | 'tampered' }>(
  insert: (tx: Repositories, entity: T) => Promise<unknown>,
  load: (read: Repositories) => Promise<{ readonly integrity: 'ok' | 'tampered' } | undefined>,
  entity: T,
  changes: {
    readonly change?: { readonly write: (tx: Repositories, entity: T) => Promise<unknown>; readonly to: Partial<T> };
    readonly remove?: (tx: Repositories) => Promise<unknown>;
  },
): Sample => {
  const { change, remove } = changes;
  return {
    make: (tx) => insert(tx, entity),
    load,
    ...(change === undefined
      ? {}
      : {
          change: async (tx: Repositories) => {
            // A unit of work changes only rows that it has read.
            await load(tx);
            return change.write(tx, { ...entity, ...change.to });
          },
        }),
    ...(remove === undefined ? {} : { remove }),
  };
};

const samples = (): Readonly<Record<Table, Sample>> => ({
  decisions: {
    make: (tx) => tx.decisions.set('rotation-asked', 'root'),
    // Its reader throws.
    load: async (read) => {
      try {
        return (await read.decisions.get('rotation-asked')) === undefined ? undefined : { integrity: 'ok' };
      } catch (error) {
        if (error instanceof ServiceError && error.code === 'key-tampered') return { integrity: 'tampered' };
        throw error;
      }
    },
    change: (tx) => tx.decisions.set('rotation-asked', 'tenant one 1'),
  },
  tenants: sample<Tenant>(
    (tx, entity) => tx.tenants.insert(entity),
    (read) => read.tenants.stored(tenant.id),
    tenant,
    { change: { write: (tx, entity) => tx.tenants.update(entity), to: { state: 'suspended' } } },
  ),
  vaults: sample<Vault>(
    (tx, entity) => tx.vaults.insert(entity),
    (read) => read.vaults.stored(tenant.id, idOf('vaults')),
    storedVault({
      id: idOf('vaults'),
      tenantId: tenant.id,
      dualControl: { required: 2, approvers: null, actions: ['destroy'], databases: 'refused' },
    }),
    { change: { write: (tx, entity) => tx.vaults.update(entity), to: { dualControl: null } } },
  ),
  keys: sample<Key>(
    (tx, entity) => tx.keys.insert(entity),
    (read) => read.keys.stored(tenant.id, idOf('keys')),
    newKey({ id: idOf('keys'), tenantId: tenant.id, vaultId: idOf('vaults'), name: 'key', createdAt: 3 }),
    { change: { write: (tx, entity) => tx.keys.update(entity), to: { state: 'disabled', disabledAt: 4 } } },
  ),
  tde_groups: sample<TdeGroup>(
    (tx, entity) => tx.groups.insert(entity),
    (read) => read.groups.stored(tenant.id, idOf('tde_groups')),
    { id: idOf('tde_groups'), tenantId: tenant.id, name: 'group', vaultId: idOf('vaults'), createdAt: 2, ...ok },
    {},
  ),
  tde_applications: sample<TdeApplication>(
    (tx, entity) => tx.applications.insert(entity),
    (read) => read.applications.stored(tenant.id, idOf('tde_applications')),
    {
      id: idOf('tde_applications'),
      tenantId: tenant.id,
      groupId: idOf('tde_groups'),
      name: 'application',
      appId: 'app',
      tokenLabel: 'application',
      state: 'enabled',
      compatibility: [],
      callers: { networks: [], certificates: [] },
      createdAt: 2,
      ...ok,
    },
    { change: { write: (tx, entity) => tx.applications.update(entity), to: { state: 'disabled' } } },
  ),
  access_guids: sample<StoredAccessGuid>(
    (tx, entity) => tx.accessGuids.insert(entity),
    (read) => read.accessGuids.findByHash('hash'),
    {
      id: idOf('access_guids'),
      applicationId: idOf('tde_applications'),
      hash: 'hash',
      createdAt: 2,
      removedAt: null,
      lastUsedAt: null,
      ...ok,
    },
    { change: { write: (tx, entity) => tx.accessGuids.update(entity), to: { removedAt: 5 } } },
  ),
  tde_objects: sample<StoredObject>(
    (tx, entity) => tx.objects.insert(entity),
    (read) => read.objects.getById(idOf('tde_objects')),
    {
      handle: 1,
      id: idOf('tde_objects'),
      tenantId: tenant.id,
      groupId: idOf('tde_groups'),
      applicationId: idOf('tde_applications'),
      class: 'data',
      label: '',
      algorithm: null,
      bits: null,
      usages: [],
      sensitive: false,
      extractable: true,
      alwaysSensitive: false,
      neverExtractable: false,
      modifiable: true,
      destroyable: true,
      local: false,
      private: true,
      checkValue: null,
      publicKey: null,
      wrappedSensitive: false,
      rules: null,
      attributes: '{}',
      createdAt: 2,
      destroyedAt: null,
      content: null,
      contentReplacedAt: null,
      state: 'active',
      ...ok,
    },
    { change: { write: (tx, entity) => tx.objects.update(entity), to: { modifiable: false } } },
  ),
  endpoints: sample<Endpoint>(
    (tx, entity) => tx.endpoints.insert(entity),
    (read) => read.endpoints.stored(tenant.id, idOf('endpoints')),
    {
      id: idOf('endpoints'),
      tenantId: tenant.id,
      name: 'endpoint',
      prefix: '/p',
      vaultId: idOf('vaults'),
      keyId: idOf('keys'),
      state: 'enabled',
      settings: defaultSettings,
      createdAt: 2,
      credentials: [],
      ...ok,
    },
    { change: { write: (tx, entity) => tx.endpoints.update(entity), to: { state: 'disabled' } } },
  ),
  endpoint_credentials: {
    make: (tx) =>
      tx.endpoints.insertCredential(tenant.id, {
        id: idOf('endpoint_credentials'),
        endpointId: idOf('endpoints'),
        accessKeyId: 'A'.repeat(20),
        createdAt: 2,
        lastUsedAt: null,
      }),
    remove: (tx) => tx.endpoints.removeCredential(idOf('endpoint_credentials')),
    // One that was moved to another endpoint is not found at its own.
    load: async (read) => {
      const { tampered } = await read.whole.checkRows('endpoint_credentials');
      if (tampered.length > 0) return { integrity: 'tampered' };
      return read.endpoints.stored(tenant.id, idOf('endpoints'));
    },
  },
  external_key_stores: sample<ExternalKeyStore>(
    (tx, entity) => tx.externalKeyStores.insert(entity),
    (read) => read.externalKeyStores.get(tenant.id, idOf('external_key_stores')),
    {
      id: idOf('external_key_stores'),
      tenantId: tenant.id,
      name: 'store',
      customKeyStoreId: 'cks-1',
      region: 'eu-central-1',
      endpointId: idOf('endpoints'),
      createdAt: 2,
      connection: neverLooked,
      ...ok,
    },
    { remove: (tx) => tx.externalKeyStores.remove(idOf('external_key_stores')) },
  ),
  recovery_keys: sample<RecoveryKey>(
    (tx, entity) => tx.recoveryKeys.insert(entity),
    (read) => read.recoveryKeys.get(idOf('recovery_keys')),
    { id: idOf('recovery_keys'), name: 'safe', publicKey: 'key', createdAt: 2, removedAt: null, ...ok },
    { change: { write: (tx, entity) => tx.recoveryKeys.update(entity), to: { removedAt: 4 } } },
  ),
  snapshots: sample<Snapshot>(
    (tx, entity) => tx.snapshots.insert(entity),
    (read) => read.snapshots.get(idOf('snapshots')),
    {
      id: idOf('snapshots'),
      tenantId: tenant.id,
      origin: 'requested',
      state: 'available',
      createdAt: 2,
      auditSize: 0,
      size: 1,
      counts: null,
      recoveryKeyIds: [],
      signer: null,
      verification: null,
      verifiedAt: null,
      deletedAt: null,
      purgedAt: null,
      failure: null,
      ...ok,
    },
    { change: { write: (tx, entity) => tx.snapshots.update(entity), to: { state: 'missing' } } },
  ),
  outside_copies: sample<OutsideCopy>(
    (tx, entity) => tx.outsideCopies.insert(entity),
    (read) => read.outsideCopies.get(idOf('outside_copies')),
    newOutsideCopy({ id: idOf('outside_copies'), kind: 'root-backup', at: 2, stateFrom: 2, stateUntil: 2 }),
    { change: { write: (tx, entity) => tx.outsideCopies.update(entity), to: { destroyedAt: 4 } } },
  ),
  approvals: sample<Approval>(
    (tx, entity) => tx.approvals.insert(entity),
    (read) => read.approvals.get(tenant.id, idOf('approvals')),
    {
      id: idOf('approvals'),
      tenantId: tenant.id,
      kind: 'key.delete',
      subject: { kind: 'key', id: idOf('keys'), name: 'key' },
      parameters: {},
      impact: {},
      rules: [],
      fingerprint: '',
      state: 'pending',
      requestedBy: { id: 'a', name: 'a' },
      requestedAt: 2,
      expiresAt: 1_000,
      endedAt: null,
      decisions: [],
      missing: 0,
      ...ok,
    },
    { change: { write: (tx, entity) => tx.approvals.update(entity), to: { state: 'withdrawn', endedAt: 3 } } },
  ),
  api_tokens: sample<StoredToken>(
    (tx, entity) => tx.tokens.insert(entity),
    (read) => read.tokens.findByHash('token hash'),
    {
      id: idOf('api_tokens'),
      tenantId: null,
      kind: 'api',
      name: 'token',
      grants: [{ role: 'administrator', scope: null, tenantId: null }],
      hash: 'token hash',
      createdAt: 2,
      expiresAt: null,
      revokedAt: null,
      lastUsedAt: null,
      ownerId: null,
      personId: null,
      ...ok,
    },
    { change: { write: (tx, entity) => tx.tokens.update(entity), to: { revokedAt: 5 } } },
  ),
  users: sample<StoredUser>(
    (tx, entity) => tx.users.insert(entity),
    (read) => read.users.findByName('ada'),
    storedUser({ id: idOf('users'), name: 'Ada' }),
    { change: { write: (tx, entity) => tx.users.update(entity), to: { state: 'disabled' } } },
  ),
  user_factors: sample<StoredFactor>(
    (tx, entity) => tx.factors.insert(entity),
    async (read) => (await read.factors.list(idOf('users')))[0],
    {
      id: idOf('user_factors'),
      userId: idOf('users'),
      kind: 'totp',
      name: 'phone',
      data: '{}',
      counter: 7,
      confirmedAt: 3,
      createdAt: 2,
      lastUsedAt: null,
      ...ok,
    },
    {
      change: { write: (tx, entity) => tx.factors.update(entity), to: { counter: 8 } },
      remove: (tx) => tx.factors.remove(idOf('user_factors')),
    },
  ),
  sessions: sample<StoredSession>(
    (tx, entity) => tx.sessions.insert(entity),
    (read) => read.sessions.findByHash('session hash'),
    {
      id: idOf('sessions'),
      tenantId: null,
      hash: 'session hash',
      holder: { kind: 'user', id: idOf('users') },
      method: 'password',
      proved: 1,
      createdAt: 2,
      usedAt: 2,
      expiresAt: 1_000,
      peer: null,
      agent: null,
      ...ok,
    },
    { remove: (tx) => tx.sessions.removeOf({ kind: 'user', id: idOf('users') }, null) },
  ),
  tde_requests: {
    make: (tx) => tx.tdeRequests.put(carriedOut),
    // Its reader throws.
    load: async (read) => {
      try {
        return (await read.tdeRequests.get(carriedOut.id)) === undefined ? undefined : { integrity: 'ok' };
      } catch (error) {
        if (error instanceof ServiceError && error.code === 'key-tampered') return { integrity: 'tampered' };
        throw error;
      }
    },
    change: async (tx) => {
      await tx.tdeRequests.get(carriedOut.id);
      await tx.tdeRequests.put({ ...carriedOut, fingerprint: 'withdrawn', handles: [] });
    },
    remove: (tx) => tx.pruning.run(3, 1_000),
  },
  idempotency_keys: sample<StoredRequest>(
    (tx, entity) => tx.idempotency.insert(entity),
    (read) => read.idempotency.get(idOf('idempotency_keys')),
    {
      id: idOf('idempotency_keys'),
      fingerprint: 'f',
      requestId: 'r',
      run: 'run',
      createdAt: 2,
      answer: null,
      ...ok,
    },
    {
      change: {
        write: (tx, entity) => tx.idempotency.update(entity),
        to: { answer: { location: '/api/x', body: null } },
      },
      remove: (tx) => tx.idempotency.remove(idOf('idempotency_keys')),
    },
  ),
});
const tables = Object.keys(policyColumns) as readonly Table[];
const isTenantTable = (table: Table): table is Table & TenantTable => 'marks' in Object(declared.get(table)?.snapshots);
/** Each row behind those that it refers to. */
const order: readonly Table[] = [
  'decisions',
  ...(['tenants', 'vaults', 'keys', 'tde_groups', 'tde_applications', 'access_guids', 'tde_objects'] as const),
  ...(['endpoints', 'endpoint_credentials', 'external_key_stores', 'recovery_keys', 'snapshots'] as const),
  'outside_copies',
  ...(['approvals', 'api_tokens', 'users', 'user_factors', 'sessions', 'idempotency_keys', 'tde_requests'] as const),
];

let postgres: PostgresServer;
let place: PostgresPlace;
let databases = 0;
let client: pg.Client | undefined;
const connect = async (): Promise<pg.Client> => {
  const { host, port, user, database } = place;
  const made = new pg.Client({ host, port, user, database });
  await made.connect();
  made.setTypeParser(pg.types.builtins.INT8, Number);
  // The owner of the database turns its constraints off.
  await made.query('set session_replication_role = replica');
  return made;
};
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres?.remove());

interface Database {
  readonly name: string;
  /**
   * Each Nth table has its old rows put back; the attacks are the same for all, and so are most
   * parts of the stores.
   */
  readonly each: number;
  /**
   * What the comparison says is more and less, the statements of its owner, and those that undo
   * them.
   */
  readonly schemaChanges: readonly (readonly [
    says: string | readonly [string, string],
    change: readonly string[],
    undo: readonly string[],
  ])[];
  prepare(): void;
  open(folder: string): Promise<Store>;
  /** Past the store; the statement has `?` for values. */
  ask(folder: string, statement: string, ...values: readonly SQLInputValue[]): Promise<readonly Row[]>;
}
const surroundings = {
  clock: systemClock,
  authenticateRow,
  onFatal: (error: Error) => {
    throw error;
  },
};
/**
 * An index of the same name with another expression, order, condition, or without what makes it
 * unique.
 */
const otherIndexes = (collation: string): Database['schemaChanges'] => {
  const [ofTenant, byName] = ['keys_of_tenant', 'tenants_by_name'];
  const keysAre = 'index keys.keys_of_tenant tenant_id, id';
  const namesAre = "index tenants.tenants_by_name unique name where state <> 'purged'";
  const backKeys = [`drop index ${ofTenant}`, `create index ${ofTenant} on keys (tenant_id, id)`];
  const backNames = [`drop index ${byName}`, `create unique index ${byName} on tenants (name) where state != 'purged'`];
  const by = (says: string, columns: string): Database['schemaChanges'][number] => [
    [`index keys.keys_of_tenant ${says}`, keysAre],
    [`drop index ${ofTenant}`, `create index ${ofTenant} on keys ${columns}`],
    backKeys,
  ];
  return [
    by('abs created_at', '(abs(created_at))'),
    by('id, tenant_id', '(id, tenant_id)'),
    by("tenant_id, id where name = 'x'", "(tenant_id, id) where name = 'x'"),
    by(
      `tenant_id${collation.replace(' "', ' quoted ').replaceAll('"', '').toLowerCase()}, id`,
      `(tenant_id${collation}, id)`,
    ),
    [
      ["index tenants.tenants_by_name name where state <> 'purged'", namesAre],
      [`drop index ${byName}`, `create index ${byName} on tenants (name) where state != 'purged'`],
      backNames,
    ],
  ];
};
/** The embedded database changes what a table is by making it again. */
const tagColumns =
  '"tenant_id" text not null, "tag" text not null, "key_id" text not null, constraint "key_tags_pk" primary key ("tenant_id", "tag", "key_id")';
const tagsTable = (columns: string): readonly string[] => [
  'drop table key_tags',
  `create table key_tags (${columns})`,
  'create index key_tags_by_key on key_tags (key_id)',
];
const rebuilt: readonly (readonly [Database['schemaChanges'][number][0], from: string, to: string])[] = [
  ['constraint of key_tags: collate nocase', '"tag" text', '"tag" text collate nocase'],
  ['constraint of key_tags: check/**/ <>', '"tag" text', `"tag" text check/**/("tag"<>'x')`],
  ['constraint of key_tags: on conflict ignore', '"key_id")', '"key_id") on conflict ignore'],
  ['unique key_tags tag', '"tag" text', '"tag" text unique'],
  [['column key_tags.tag text', 'column key_tags.tag text not null'], '"tag" text not null', '"tag" text'],
  [
    ['primary key key_tags key_id', 'primary key key_tags tenant_id, tag, key_id'],
    '("tenant_id", "tag", "key_id")',
    '("key_id")',
  ],
  [
    [
      'constraint of key_tags: on delete cascade',
      'reference key_tags.key_id to keys id on delete cascade on update no action',
    ],
    '"key_id" text not null',
    '"key_id" text not null references "keys" ("id") on delete cascade',
  ],
];
const implementations: readonly Database[] = [
  {
    name: 'sqlite',
    each: 1,
    schemaChanges: [
      [
        'trigger keys.more',
        ["create trigger more after update on keys begin update keys set state = 'active'; end"],
        ['drop trigger more'],
      ],
      ['index keys.more abs created_at', ['create index more on keys (abs(created_at))'], ['drop index more']],
      [
        'index keys.keys_of_tenant tenant_id, id',
        ['drop index keys_of_tenant'],
        ['create index keys_of_tenant on keys (tenant_id, id)'],
      ],
      ...otherIndexes(' collate nocase'),
      [
        'column keys.more integer',
        ['alter table keys add column "more" integer'],
        ['alter table keys drop column more'],
      ],
      ...rebuilt.map(
        ([says, from, to]) => [says, tagsTable(tagColumns.replace(from, to)), tagsTable(tagColumns)] as const,
      ),
    ],
    prepare: () => undefined,
    open: (folder) => openStore({ path: join(folder, 'dke.db'), ...surroundings }),
    ask: async (folder, statement, ...values) => {
      const database = new DatabaseSync(join(folder, 'dke.db'));
      try {
        database.exec('pragma foreign_keys = off');
        // The store may still be ending a transaction, which waiting in SQLite would keep this
        // process from.
        const asked = await vi.waitFor(() => {
          try {
            return { rows: database.prepare(statement).all(...values) as unknown as readonly Row[] };
          } catch (error) {
            if ((error as { readonly errcode?: number }).errcode === 5) throw error;
            return { error };
          }
        }, 300_000);
        if ('error' in asked) throw asked.error;
        return asked.rows;
      } finally {
        database.close();
      }
    },
  },
  {
    name: 'postgres',
    schemaChanges: [
      [
        'function lower',
        ['create function lower(a text, b int) returns text language sql as $f$ select a $f$'],
        ['drop function lower(text, int)'],
      ],
      [
        'trigger keys.more',
        [
          'create trigger more before update on keys for each row execute function suppress_redundant_updates_trigger()',
        ],
        ['drop trigger more on keys'],
      ],
      [
        'trigger keys.of a reference',
        ['alter table keys disable trigger all'],
        ['alter table keys enable trigger all'],
      ],
      ['rule keys.more', ['create rule more as on update to keys do also notify more'], ['drop rule more on keys']],
      [
        'row security of keys',
        ['alter table keys enable row level security'],
        ['alter table keys disable row level security'],
      ],
      ['policy keys.more', ['create policy more on keys using (true)'], ['drop policy more on keys']],
      [
        "default keys.name lower 'a'",
        ["alter table keys alter column name set default lower('A')"],
        ['alter table keys alter column name drop default'],
      ],
      [
        'constraint keys.more',
        ["alter table keys add constraint more check (name <> 'x')"],
        ['alter table keys drop constraint more'],
      ],
      ['child of keys', ['create table more () inherits (keys)'], ['drop table more']],
      ['index keys.more abs created_at', ['create index more on keys (abs(created_at))'], ['drop index more']],
      ...otherIndexes(' collate "POSIX"'),
      [
        ['index keys.keys_of_tenant tenant_id ::own, id', 'index keys.keys_of_tenant tenant_id, id'],
        [
          'create domain own as text',
          'drop index keys_of_tenant',
          'create index keys_of_tenant on keys ((tenant_id::own), id)',
        ],
        ['drop index keys_of_tenant', 'create index keys_of_tenant on keys (tenant_id, id)', 'drop domain own'],
      ],
      [
        'column keys.quoted last_used_at bigint',
        ['alter table keys add column "LAST_USED_AT" bigint'],
        ['alter table keys drop column "LAST_USED_AT"'],
      ],
      [
        [
          'primary key key_records object_id, version, class',
          'primary key key_records tenant_id, object_id, version, class',
        ],
        [
          'alter table key_records drop constraint key_records_pk',
          'alter table key_records add primary key (object_id, version, class)',
        ],
        [
          'alter table key_records drop constraint key_records_pkey',
          'alter table key_records add constraint key_records_pk primary key (tenant_id, object_id, version, class)',
        ],
      ],
      [
        'unique keys name',
        ['alter table keys add constraint more unique (name)'],
        ['alter table keys drop constraint more'],
      ],
      [
        ['column keys.name text c', 'column keys.name text c not null'],
        ['alter table keys alter column name drop not null'],
        ['alter table keys alter column name set not null'],
      ],
      [
        ['column keys.name text c not null', 'column keys.name text not null'],
        ['alter table keys alter column name type text collate "default"'],
        ['alter table keys alter column name type text collate "C"'],
      ],
      [
        ['column key_tags.tag text own c not null', 'column key_tags.tag text c not null'],
        [
          `create collation "C" (provider = icu, locale = 'en', deterministic = false)`,
          'alter table key_tags alter column tag type text collate public."C"',
        ],
        ['alter table key_tags alter column tag type text collate pg_catalog."C"', 'drop collation public."C"'],
      ],
      [
        'table key_bindings loses its rows in a crash',
        ['alter table key_bindings set unlogged'],
        ['alter table key_bindings set logged'],
      ],
      [
        ['reference key_bindings.key_id to keys id on delete cascade', 'reference key_bindings.key_id to keys id'],
        [
          'alter table key_bindings drop constraint key_bindings_key_id_fkey',
          'alter table key_bindings add foreign key (key_id) references keys (id) on delete cascade',
        ],
        [
          'alter table key_bindings drop constraint key_bindings_key_id_fkey',
          'alter table key_bindings add foreign key (key_id) references keys (id)',
        ],
      ],
      [
        ['default keys.row_version 0', 'default keys.row_version 5'],
        ['alter table keys alter column row_version set default 5'],
        ['alter table keys alter column row_version set default 0'],
      ],
      ['column keys.more integer', ['alter table keys add column more integer'], ['alter table keys drop column more']],
    ],
    each: sizeOf('rows on PostgreSQL'),
    prepare: () => {
      databases += 1;
      place = postgres.createDatabase(`writer_${databases}`);
      client = undefined;
    },
    open: () =>
      openPostgresStore({ postgres: { ...place, password: undefined, ca: undefined, readers: 2 }, ...surroundings }),
    ask: async (_folder, statement, ...values) => {
      client ??= await connect();
      let at = 0;
      return (
        await client.query(
          statement.replaceAll('?', () => `$${++at}`),
          [...values],
        )
      ).rows;
    },
  },
];

/** Rows that come from a file or from another time, with the codes that their bringers can make. */
const anotherKey = rowKey('row key of another time');
const brought: readonly (readonly [name: string, bring: (table: Table, row: Row) => Row])[] = [
  [
    'OF: each row with a code of the row key of another database',
    (table, row) => ({ ...row, row_mac: authenticationCode(anotherKey, table, row) }),
  ],
  [
    'OF: each row as one that has no version, with the code of that time of another database',
    (table, row) => {
      const { row_version: _, ...older } = row;
      return { ...row, row_version: 0, row_mac: authenticationCode(anotherKey, table, older) };
    },
  ],
  [
    'BW: each row of a forged backup, with a code that no key has made',
    (_, row) => ({ ...row, row_mac: '0'.repeat(64) }),
  ],
  ['BW: each row of a forged backup, without a code', (_, row) => ({ ...row, row_mac: '' })],
];

describe.each(implementations)('in the $name database', ({ each, prepare, open, ask, schemaChanges }) => {
  let folder: string;
  let store: Store;
  const all = samples();
  const isChosen = (_: Table, at: number): boolean => at % each === 0;

  const rowOf = async (table: Table, id: SQLInputValue = rowId(table)): Promise<Row> => {
    const [row] = await ask(folder, `select * from ${table} where id = ?`, id);
    if (row === undefined) throw new Error(`${table} has no row ${String(id)}`);
    return row;
  };
  const rowId = (table: Table): string => (table === 'tenants' ? tenant.id : idOf(table));
  const put = (table: Table, row: Row) =>
    ask(
      folder,
      `insert into ${table} (${Object.keys(row).join(', ')}) values (${Object.keys(row)
        .map(() => '?')
        .join(', ')})`,
      ...Object.values(row),
    );
  const remove = (table: Table) => ask(folder, `delete from ${table} where id = ?`, rowId(table));
  const replace = async (table: Table, row: Row): Promise<void> => {
    await remove(table);
    await put(table, row);
  };
  const isSound = async (): Promise<boolean> =>
    (await store.snapshot((state) => state.whole.compareRowSet())).differences.length === 0;
  const integrityOf = async (table: Table): Promise<string | undefined> =>
    (await all[table].load(store.read))?.integrity;

  beforeEach(async () => {
    folder = folderOfTest();
    prepare();
    store = await open(folder);
    await store.rowSet.load();
    for (const table of order) await store.write((tx) => all[table].make(tx));
  });
  afterEach(async () => {
    await client?.end();
    await store.close();
  });

  test('the samples are one of each table', async () => {
    expect([...order].toSorted()).toEqual([...tables].toSorted());
    for (const table of order) expect([table, await integrityOf(table)]).toEqual([table, 'ok']);
    expect(await isSound()).toBe(true);
  });

  test.each(tables.filter((table) => all[table].change !== undefined).filter(isChosen))(
    'an older row of %s that is put back is tampered, and found',
    async (table) => {
      const { change } = all[table];
      const older = await rowOf(table);
      await store.write(async (tx) => change?.(tx));
      const newer = await rowOf(table);
      expect([await integrityOf(table), await isSound()]).toEqual(['ok', true]);
      await replace(table, older);
      expect([await integrityOf(table), await isSound()]).toEqual(['tampered', false]);
      const { older: named } = await store.snapshot((state) => state.whole.compareRowSet());
      expect(named).toEqual([`${table} ${rowId(table)}`]);
      // Nothing is written over it, so that it does not become a sound one.
      await expect(store.write(async (tx) => change?.(tx))).rejects.toMatchObject({ code: 'key-tampered' });
      await replace(table, newer);
      expect([await integrityOf(table), await isSound()]).toEqual(['ok', true]);

      // An older row that is put back while no node runs is found at the next start.
      await store.close();
      await replace(table, older);
      store = await open(folder);
      expect((await store.rowSet.load()).differences).not.toEqual([]);
    },
  );

  test.each(tables.filter((table) => all[table].remove !== undefined).filter(isChosen))(
    'a removed row of %s that is put back is found',
    async (table) => {
      const removed = await rowOf(table);
      await store.write(async (tx) => all[table].remove?.(tx));
      expect(await isSound()).toBe(true);
      await put(table, removed);
      expect(await isSound()).toBe(false);
      // In a database with other writers, only the comparison shows it.
      if (store.link === undefined) expect(await integrityOf(table)).toBe('tampered');
    },
  );

  test('a row of any table that is removed is found', async () => {
    for (const table of tables) {
      const removed = await rowOf(table);
      await remove(table);
      expect([table, await isSound()]).toEqual([table, false]);
      await put(table, removed);
      expect([table, await isSound()]).toEqual([table, true]);
    }
  });

  test.each(brought)('%s: tampered, and found', async (_, bring) => {
    for (const table of tables) {
      const row = await rowOf(table);
      await replace(table, bring(table, row));
      expect([table, await integrityOf(table), await isSound()]).toEqual([table, 'tampered', false]);
      await replace(table, row);
      expect([table, await integrityOf(table), await isSound()]).toEqual([table, 'ok', true]);
    }
  });

  test('TS: each row that a file says was changed stays tampered where it is restored, and nothing is written over it', async () => {
    for (const table of tables) {
      if (!isTenantTable(table)) continue;
      const row = await rowOf(table);
      const columns = store.read.tenantRows.of(table).columns;
      const given = Object.fromEntries(columns.map((column) => [column, row[column] ?? null])) as SnapshotRow;
      await store.write((tx) => tx.tenantRows.put(tenant.id, table, [{ row: given, integrity: 'tampered' }]));
      expect([table, await integrityOf(table)]).toEqual([table, 'tampered']);
      const { change } = all[table];
      if (change !== undefined)
        await expect(store.write((tx) => change(tx))).rejects.toMatchObject({ code: 'key-tampered' });
      expect([table, await integrityOf(table)]).toEqual([table, 'tampered']);
    }
  });

  test('a row of an earlier layout that a restore puts gets the digest of its value', async () => {
    const columns = store.read.tenantRows.of('tde_objects').columns;
    const row = await rowOf('tde_objects');
    const value = { content: Buffer.from('a value'), content_digest: null };
    const older = {
      ...row,
      ...value,
      row_mac: authenticationCode(authenticateRow, 'tde_objects', { ...row, ...value }, 2),
    };
    await replace('tde_objects', older);
    expect(await integrityOf('tde_objects')).toBe('ok');
    const given = Object.fromEntries(columns.map((column) => [column, older[column as keyof typeof older] ?? null]));
    await store.write((tx) =>
      tx.tenantRows.put(tenant.id, 'tde_objects', [{ row: given as SnapshotRow, integrity: 'ok' }]),
    );
    expect([await integrityOf('tde_objects'), (await rowOf('tde_objects')).content_digest]).toEqual([
      'ok',
      contentDigest(value.content),
    ]);
    await ask(folder, 'update tde_objects set content = ? where id = ?', Buffer.from('another'), rowId('tde_objects'));
    expect(await integrityOf('tde_objects')).toBe('tampered');
  });

  test('a value that is put into another column or row is tampered', async () => {
    const undetected: string[] = [];
    for (const table of tables) {
      const row = await rowOf(table);
      const columns: readonly string[] = policyColumns[table];
      for (const column of columns.filter((each) => each !== 'id'))
        for (const other of ['row_version', ...columns]
          .filter((each) => row[each] !== row[column])
          .slice(0, sizeOf('swapped columns'))) {
          // What the database itself refuses, for its type or its constraints, does not get in.
          const isPut = await ask(folder, `update ${table} set ${column} = ${other} where id = ?`, rowId(table)).then(
            () => true,
            () => false,
          );
          if (!isPut || (await rowOf(table))[column] === row[column]) continue;
          // No longer found under its name, or tampered with.
          if ((await integrityOf(table)) === 'ok') undetected.push(`${table}: ${column} = ${other}`);
          await replace(table, row);
        }
    }
    expect(undetected).toEqual([]);
    // Every column with every other: on a busy machine more than a minute.
  });

  test('rows that were written before rows had versions are taken as they are, once, and get one when they change', async () => {
    // Writes each row as an older version did: without a row version under the row's code.
    for (const table of tables) {
      const { row_version: _, ...row } = await rowOf(table);
      await replace(table, { ...row, row_version: 0, row_mac: authenticationCode(authenticateRow, table, row) });
    }
    await ask(folder, 'delete from row_set');
    await store.close();
    store = await open(folder);
    expect(await store.rowSet.load()).toMatchObject({ head: undefined, rows: tables.length + otherDecisions });
    await store.rowSet.adopt(0);
    expect(await isSound()).toBe(true);
    for (const table of order) {
      const older = await rowOf(table);
      expect([table, await integrityOf(table)]).toEqual([table, 'ok']);
      const { change } = all[table];
      if (change === undefined) continue;
      await store.write((tx) => change(tx));
      expect([table, await integrityOf(table), await isSound()]).toEqual([table, 'ok', true]);
      const newer = await rowOf(table);
      await replace(table, older);
      expect([table, await integrityOf(table), await isSound()]).toEqual([table, 'tampered', false]);
      await replace(table, newer);
    }
  });

  /**
   * The sum over the rows as an earlier version of DKE wrote it: all of it under the row key
   * itself.
   */
  const toEarlierSum = async (): Promise<void> => {
    const number = (text: string): bigint => BigInt(`0x${authenticateRow(text, 'earlier')}`);
    let sum = 0n;
    for (const table of tables)
      for (const { id, row_mac: code } of await ask(folder, `select id, row_mac from ${table}`))
        sum += number(`row set element ${table} ${id} ${code}`);
    const [head] = await ask(folder, 'select version from row_set');
    const version = Number(head?.version);
    const masked = ((sum % (1n << 256n)) ^ number(`row set mask ${version}`)).toString(16).padStart(64, '0');
    const tag = authenticateRow(`row set ${version} ${masked}`, 'earlier');
    await ask(folder, 'update row_set set sum = ?, tag = ?', masked, tag);
  };
  const headNow = async (): Promise<Row | undefined> => (await ask(folder, 'select * from row_set'))[0];
  const tagUnder = (job: 'earlier' | 'dke row set heads 1', head: Row | undefined): string =>
    authenticateRow(`row set ${Number(head?.version)} ${String(head?.sum)}`, job);

  test('codes and the sum of an earlier version of DKE count, and are under the keys of their jobs once they are written', async () => {
    for (const table of tables) {
      const row = await rowOf(table);
      await replace(table, { ...row, row_mac: authenticationCode(authenticateRow, table, row, 1) });
    }
    await toEarlierSum();
    await store.close();
    store = await open(folder);
    expect(await store.rowSet.load()).toMatchObject({ differences: [], rows: tables.length + otherDecisions });
    for (const table of order) {
      expect([table, await integrityOf(table)]).toEqual([table, 'ok']);
      const { change } = all[table];
      if (change === undefined) continue;
      await store.write((tx) => change(tx));
      const row = await rowOf(table);
      expect([table, await integrityOf(table), await isSound()]).toEqual([table, 'ok', true]);
      expect([table, row.row_mac]).toEqual([table, authenticationCode(authenticateRow, table, row, 4)]);
    }
    const before = await headNow();
    expect(before?.tag).toBe(tagUnder('earlier', before));
    await store.rowSet.convert();
    const after = await headNow();
    expect(Number(after?.version)).toBe(Number(before?.version) + 1);
    expect(after?.tag).toBe(tagUnder('dke row set heads 1', after));
    await store.rowSet.convert();
    expect(await headNow()).toEqual(after);
    await store.write(async (tx) => all.api_tokens.change?.(tx));
    expect([await integrityOf('api_tokens'), await isSound()]).toEqual(['ok', true]);
    await store.close();
    store = await open(folder);
    expect(await store.rowSet.load()).toMatchObject({ differences: [] });
  });

  test('DBW: a sum of an earlier version of DKE that is not that of the rows is never written anew', async () => {
    await toEarlierSum();
    await remove('idempotency_keys');
    await store.close();
    store = await open(folder);
    expect((await store.rowSet.load()).differences).toHaveLength(1);
    const before = await headNow();
    await store.rowSet.convert();
    expect(await headNow()).toEqual(before);
    expect(await isSound()).toBe(false);
  });

  test('a schema with something more or less is found, also at the start', async () => {
    const named = async (): Promise<readonly string[]> =>
      (await store.snapshot((state) => state.whole.compareRowSet())).differences.map((found) => found.what);
    expect(await named()).toEqual([]);
    for (const [says, change, undo] of schemaChanges) {
      const what = [says].flat().toSorted((a, b) => a.localeCompare(b));
      for (const statement of change) await ask(folder, statement);
      expect(await named()).toEqual(what);
      if (says === schemaChanges.at(-1)?.[0]) {
        await store.close();
        store = await open(folder);
        expect((await store.rowSet.load()).schema.map((found) => found.what)).toEqual(what);
      }
      for (const statement of undo) await ask(folder, statement);
      expect([says, await named()]).toEqual([says, []]);
    }
  });

  test('OF and BW: the set itself cannot be put back, changed or removed', async () => {
    const [older] = await ask(folder, 'select * from row_set');
    const was = await rowOf('api_tokens');
    await store.write(async (tx) => all.api_tokens.change?.(tx));
    const [newer] = await ask(folder, 'select * from row_set');
    const putSet = async (row: Row | undefined): Promise<void> => {
      await ask(folder, 'delete from row_set');
      if (row !== undefined)
        await ask(
          folder,
          `insert into row_set (${Object.keys(row).join(', ')}) values (?, ?, ?, ?)`,
          ...Object.values(row),
        );
    };
    // OF, and BW with a backup: a complete older state, rows and set.
    await replace('api_tokens', was);
    await putSet(older);
    expect([await integrityOf('api_tokens'), await isSound()]).toEqual(['tampered', false]);
    await putSet(undefined);
    expect(await isSound()).toBe(false);
    await putSet({ ...newer, version: Number(newer?.version) + 1 });
    expect(await isSound()).toBe(false);
    await putSet({ ...newer, sum: '0'.repeat(64) });
    expect(await isSound()).toBe(false);
  });
});
