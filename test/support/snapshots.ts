// Snapshots through the operations of an open service: a recovery key whose private half stays with
// the test, the answer to an opening, and a tenant's rows and keys as they are stored, in one
// canonical text.
import { join } from 'node:path';
import type { KeyRef } from '../../addon/core.ts';
import { openArchive } from '../../server/adapters/archives/archive.ts';
import { formatRecoveryKey, openingContext, sealingContext } from '../../server/base/recovery-key.ts';
import { inTenant, type TenantActor } from '../../server/domain/actor.ts';
import type {
  OpeningAnswer,
  RestoreOutcome,
  RestoreRequest,
} from '../../server/operations/snapshots/snapshots-operations.ts';
import { core } from './core-keys.ts';
import { administrator, type OpenedService } from './open-service.ts';
import { makeRecoveryKey, openSnapshotKey } from './snapshot-files.ts';
import { withStored } from './test-store.ts';

export const actorIn = (tenantId: string): TenantActor => inTenant({ ...administrator }, tenantId);

/** What the person with the recovery key does with an opening. */
export const answerOpening = (
  opening: Awaited<ReturnType<OpenedService['operations']['snapshots']['beginOpening']>>,
  recovery: KeyRef,
): OpeningAnswer => {
  const from = sealingContext(opening.snapshotId, opening.tenantId, opening.recoveryKeyId);
  const key = core.hpkeOpenKey(recovery, from.info, from.aad, Buffer.from(opening.sealedKey, 'base64'), 'generic');
  const to = openingContext(opening.snapshotId, opening.id);
  const sealed = core.hpkeSealKey(Buffer.from(opening.publicKey, 'base64'), to.info, to.aad, key);
  core.release(key);
  return { openingId: opening.id, sealedKey: sealed.toString('base64') };
};

export interface SnapshotHand {
  readonly recovery: ReturnType<typeof makeRecoveryKey>;
  make(tenantId: string): Promise<string>;
  answer(id: string): Promise<OpeningAnswer>;
  restore(id: string, request?: Partial<RestoreRequest>): Promise<RestoreOutcome>;
}

/** With a recovery key that is registered. */
export const handWith = (
  { operations }: Pick<OpenedService, 'operations'>,
  recovery: ReturnType<typeof makeRecoveryKey>,
): SnapshotHand => {
  const answer = async (id: string): Promise<OpeningAnswer> =>
    answerOpening(await operations.snapshots.beginOpening(administrator, id, recovery.id), recovery.key);
  return {
    recovery,
    make: async (tenantId) => (await operations.snapshots.create(administrator, tenantId)).id,
    answer,
    restore: async (id, request = {}) =>
      operations.snapshots.restore(administrator, id, await answer(id), {
        tenantId: null,
        newTenant: null,
        dryRun: false,
        ...request,
      }),
  };
};

/** Registers a recovery key, or one that is given. */
export const handOf = async (
  opened: Pick<OpenedService, 'operations'>,
  given?: ReturnType<typeof makeRecoveryKey>,
): Promise<SnapshotHand> => {
  const recovery = given ?? makeRecoveryKey();
  await opened.operations.recoveryKeys.register(administrator, {
    name: 'safe',
    publicKey: formatRecoveryKey(recovery.publicKey),
  });
  return handWith(opened, recovery);
};

type Cell = string | number | null;
export type StoredRow = { readonly [column: string]: Cell };
/** Rows by table, then by the columns that identify a row. */
export type Dump = ReadonlyMap<string, ReadonlyMap<string, StoredRow>>;

const tables: Readonly<Record<string, readonly [where: string, ...identity: string[]]>> = {
  vaults: ['tenant_id = ?', 'id'],
  tde_groups: ['tenant_id = ?', 'id'],
  tde_applications: ['tenant_id = ?', 'id'],
  access_guids: ['application_id in (select id from tde_applications where tenant_id = ?)', 'id'],
  keys: ['tenant_id = ?', 'id'],
  key_versions: ['key_id in (select id from keys where tenant_id = ?)', 'key_id', 'version'],
  tde_objects: ['tenant_id = ?', 'id'],
  endpoints: ['tenant_id = ?', 'id'],
  endpoint_credentials: ['endpoint_id in (select id from endpoints where tenant_id = ?)', 'id'],
  external_key_stores: ['tenant_id = ?', 'id'],
  key_records: ['tenant_id = ? and record is not null', 'object_id', 'version', 'class'],
};
/** Marks of use, codes, and values that are sealed again each time. */
const passedOver = new Set([
  'row_mac',
  'row_version',
  'last_used_at',
  'first_used_at',
  'connection',
  'record',
  'epoch',
]);

/** Every row of a tenant as the database has it, read past the service. */
export const dumpTenant = ({ folder }: Pick<OpenedService, 'folder'>, tenantId: string): Promise<Dump> =>
  withStored(folder, async ({ query }) => {
    const dump = new Map<string, ReadonlyMap<string, StoredRow>>();
    for (const [table, [where, ...identity]] of Object.entries(tables)) {
      const rows = await query(`select * from ${table} where ${where}`, tenantId);
      const byIdentity = rows.map((row): [string, StoredRow] => {
        const kept = Object.entries(row)
          .filter(([column]) => !passedOver.has(column))
          .map(([column, cell]) => [
            column,
            cell instanceof Uint8Array ? Buffer.from(cell).toString('base64') : (cell as Cell),
          ]);
        return [identity.map((column) => String(row[column])).join(' '), Object.fromEntries(kept) as StoredRow];
      });
      dump.set(table, new Map(byIdentity));
    }
    return dump;
  });

/** The ids of the rows of a tenant, by table. */
export const rowsOfTenant = (
  { folder }: Pick<OpenedService, 'folder'>,
  tenantId: string,
): Promise<Readonly<Record<string, ReadonlySet<string>>>> =>
  withStored(folder, async ({ query }) => {
    const found: Record<string, ReadonlySet<string>> = {};
    for (const [table, [where, id]] of Object.entries(tables))
      found[table] = new Set(
        (await query(`select ${id} as id from ${table} where ${where}`, tenantId)).map((row) => String(row.id)),
      );
    return found;
  });

/**
 * The check value of every key in a snapshot, or 'erased', by unit id and version. Read with the
 * recovery key, past the service.
 */
export const checksOf = async (
  { config }: Pick<OpenedService, 'config'>,
  id: string,
  recovery: ReturnType<typeof makeRecoveryKey>,
): Promise<ReadonlyMap<string, string>> => {
  const archive = openArchive(core, config.snapshots.directory);
  const preface = await archive.preface(id);
  const key = openSnapshotKey(preface, recovery);
  const found = new Map<string, string>();
  const { readItems } = await import('../../server/adapters/archives/inspect-snapshot.ts');
  try {
    for await (const item of readItems(core, join(config.snapshots.directory, `${id}.dkesnap`), key)) {
      if (item.kind !== 'material' || item.copies.includes('token-hash')) continue;
      found.set(`${item.unitId} ${item.version}`, item.key === null ? 'erased' : archive.checkOf(item.key));
      if (item.key !== null) core.release(item.key);
    }
  } finally {
    core.release(key);
  }
  return found;
};
