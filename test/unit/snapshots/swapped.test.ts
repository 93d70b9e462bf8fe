// A signer whom the service trusts swaps what a snapshot says: ids, owners, versions, classes,
// references and nulls, one at a time. Whatever the service makes of the file, nothing outside the
// tenant that it is restored into is another thing afterwards, and the service starts again.
import { isDeepStrictEqual } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { checkOf } from '../../../server/adapters/archives/write-snapshot.ts';
import { newId, serviceTenantId } from '../../../server/base/ids.ts';
import { tokenHashUnit } from '../../../server/operations/snapshots/restore-materials.ts';
import { recordClasses } from '../../../server/ports/key-record.ts';
import type { SnapshotRow } from '../../../server/ports/snapshot-archive.ts';
import { core } from '../../support/core-keys.ts';
import { type ForgedItem, type Forger, makeForger, withFreshIds } from '../../support/forged-snapshots.ts';
import { administrator, dataObject, masterKey, registerCaller, toLabel } from '../../support/open-service.ts';
import { restart, sharedService } from '../../support/shared.ts';
import { makeRecoveryKey } from '../../support/snapshot-files.ts';
import { actorIn, type Dump, dumpTenant, handOf, type SnapshotHand } from '../../support/snapshots.ts';

import { queryStored } from '../../support/test-store.ts';
import { sizeOf } from '../../support/tiers.ts';

const recovery = makeRecoveryKey();
const forger: Forger = makeForger(recovery);
const toml = `[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n[snapshots]\ntrusted_signers = ["${forger.verifier}"]\nrestore_second_person = false\n`;
const opened = sharedService({ toml });
let hand: SnapshotHand;
let genuine: readonly ForgedItem[];
/** Ids of another tenant of this service, by table. */
const others = new Map<string, string>();
let otherTenantId: string;

const fill = async (actor: typeof administrator, name: string): Promise<void> => {
  const { operations } = opened;
  const vault = await operations.vaults.create(actor, { name: `vault of ${name}` });
  const key = await operations.keys.create(actor, { name, vaultId: vault.id });
  const endpoint = await operations.endpoints.create(actor, { name, vaultId: vault.id, keyId: key.id });
  await operations.endpoints.addCredential(actor, endpoint.id);
};

/**
 * The key of token hashes, as in a snapshot of a tenant with an access_guid of an earlier version.
 */
const keyOfHashes = (): ForgedItem => {
  const key = core.generateGeneric(32);
  const attributes = '{"algorithm":"generic","bits":256}';
  return {
    ...{ unitId: tokenHashUnit, version: 1, copies: ['token-hash'], attributes, key },
    ...{ kind: 'material', check: checkOf(core, key), erasedAt: null },
  };
};

beforeAll(async () => {
  hand = await handOf(opened, recovery);
  await fill(administrator, 'first');
  const { caller } = await registerCaller(opened, 'erp');
  await opened.operations.tde.generateKey(caller, masterKey('pages'));
  await opened.operations.tde.createObject(caller, dataObject('note'), Buffer.from('kept'));
  const second = await opened.operations.tenants.create(administrator, { name: 'second' });
  otherTenantId = second.id;
  await fill(actorIn(second.id), 'second');
  genuine = [...(await forger.read(opened, await hand.make(administrator.tenantId))), keyOfHashes()];
  outsiders = (await outside()).records.map((record) => ({ id: String(record.object_id), kind: String(record.class) }));
  for (const item of genuine) if (item.kind === 'row') others.set(item.table, String(item.row.id ?? item.row.key_id));
});

interface Swap {
  readonly name: string;
  apply(items: readonly ForgedItem[]): readonly ForgedItem[];
}
const ownIds = ['1', '2', '3', '4', '5', '6'].map((digit) => `00000000-0000-0000-0000-00000000000${digit}`);

/** Keys that are outside: the service's own, and those of another tenant. */
let outsiders: readonly { readonly id: string; readonly kind: string }[];

/** Every change of one value: of each column of each table, and of each part of each key. */
const swapsOf = (items: readonly ForgedItem[]): readonly Swap[] => {
  const swaps: Swap[] = [];
  const seen = new Set<string>();
  const swapRow = (table: string, column: string, how: string, value: SnapshotRow[string]): void => {
    swaps.push({
      name: `${table}.${column} ${how}`,
      apply: (all) => {
        const at = all.findIndex((item) => item.kind === 'row' && item.table === table);
        return all.map((item, index) =>
          index === at && item.kind === 'row' ? { ...item, row: { ...item.row, [column]: value } } : item,
        );
      },
    });
  };
  const tableOfColumn: Readonly<Record<string, string>> = {
    vault_id: 'vaults',
    group_id: 'tde_groups',
    application_id: 'tde_applications',
    access_guid_id: 'access_guids',
    key_id: 'keys',
    endpoint_id: 'endpoints',
  };
  for (const item of items) {
    if (item.kind === 'material') {
      const kind = item.copies.join(' and ');
      if (seen.has(kind)) continue;
      seen.add(kind);
      const swap = (name: string, change: Partial<Extract<ForgedItem, { kind: 'material' }>>): void => {
        swaps.push({
          name: `a key of ${kind} ${name}`,
          apply: (all) => {
            const at = all.findIndex((each) => each.kind === 'material' && each.copies.join(' and ') === kind);
            return all.map((each, index) => (index === at && each.kind === 'material' ? { ...each, ...change } : each));
          },
        });
      };
      for (const id of [...ownIds, ...others.values()]) swap(`of ${id}`, { unitId: id });
      for (const each of recordClasses) swap(`as ${each}`, { copies: [each] });
      for (const { id, kind: other } of outsiders) swap(`as ${other} of ${id}`, { unitId: id, copies: [other] });
      swap('of no class', { copies: ['nothing'] });
      for (const other of [0, 2, 0x7fffffff]) swap(`as version ${other}`, { version: other });
      swap('with other attributes', { attributes: '{"algorithm":"aes","bits":128,"kind":"general"}' });
      continue;
    }
    const { table, row } = item;
    if (seen.has(table)) continue;
    seen.add(table);
    for (const [column, value] of Object.entries(row)) {
      if (value !== null) swapRow(table, column, 'is null', null);
      const named = column === 'id' ? table : tableOfColumn[column];
      const other = named === undefined ? undefined : others.get(named);
      if (other !== undefined) swapRow(table, column, 'is of another tenant', other);
      if (column === 'id' || column.endsWith('_id')) {
        swapRow(table, column, 'is of the service', ownIds[0] ?? '');
        swapRow(table, column, 'is of no row', newId(1));
      }
      if (column === 'tenant_id') swapRow(table, column, 'is the service', serviceTenantId);
      if (typeof value === 'number') swapRow(table, column, 'is negative', -1);
      if (typeof value === 'string') swapRow(table, column, 'is empty', '');
      if (table === 'tde_objects' && column === 'handle') swapRow(table, column, 'is taken', 1);
    }
    swaps.push({
      name: `a row of ${table} says that it was changed from outside`,
      apply: (all) => {
        const at = all.indexOf(all.find((each) => each.kind === 'row' && each.table === table) ?? item);
        return all.map((each, index) => (index === at && each.kind === 'row' ? { ...each, tampered: true } : each));
      },
    });
  }
  return swaps;
};

interface Outside {
  readonly tenants: readonly Dump[];
  readonly records: Awaited<ReturnType<typeof queryStored>>;
}
/**
 * What is not the target's: rows of every tenant of before, and sealed keys of theirs and of the
 * service.
 */
const outside = async (): Promise<Outside> => ({
  tenants: [await dumpTenant(opened, administrator.tenantId), await dumpTenant(opened, otherTenantId)],
  records: await queryStored(
    opened.folder,
    `select * from key_records where tenant_id in (?, ?, ?) and class not in ('adopted-token-hash', 'snapshot-opening')
      order by object_id, version, class`,
    serviceTenantId,
    administrator.tenantId,
    otherTenantId,
  ),
});
async function* once(file: Buffer): AsyncGenerator<Uint8Array> {
  yield file;
}

let copies = 0;
const tryOne = async (items: readonly ForgedItem[]): Promise<string> => {
  const { id, file } = await forger.write(items);
  const { snapshots } = opened.operations;
  await snapshots.import(administrator, once(file), forger.verifier);
  copies += 1;
  return hand.restore(id, { newTenant: `copy ${copies}` }).then(
    () => 'restored',
    (error: { readonly code?: string; readonly message: string }) => error.code ?? error.message,
  );
};

test('the same content under other ids is restored', async () => {
  expect(await tryOne(withFreshIds(genuine))).toBe('restored');
});

test.each([
  ['tde_groups', 'name', 'group'],
  ['tde_applications', 'name', 'application'],
  ['tde_applications', 'token_label', 'application with the token label'],
] as const)('two rows of %s with one %s are refused by name', async (table, column, kind) => {
  const items = withFreshIds(genuine);
  const at = items.findIndex((item) => item.kind === 'row' && item.table === table);
  const one = items[at];
  if (one?.kind !== 'row') throw new Error('no such row');
  const other = { ...one, row: { ...one.row, id: newId(Date.now()), name: 'other', token_label: 'other' } };
  const row = Object.fromEntries(
    Object.entries({ ...other.row, [column]: one.row[column] ?? '' }).filter(([name]) => name in one.row),
  );
  const { id, file } = await forger.write(items.toSpliced(at + 1, 0, { ...other, row }));
  await opened.operations.snapshots.import(administrator, once(file), forger.verifier);
  await expect(hand.restore(id, { newTenant: `twice ${table} ${column}` })).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining(`one name (${kind} ${one.row[column]})`),
  });
});

/** The genuine items, with another value in a column of the first row of a table. */
const withValue = (table: string, column: string, value: SnapshotRow[string]): readonly ForgedItem[] => {
  const items = withFreshIds(genuine);
  const at = items.findIndex((item) => item.kind === 'row' && item.table === table);
  return items.map((item, index) =>
    index === at && item.kind === 'row' ? { ...item, row: { ...item.row, [column]: value } } : item,
  );
};

test('ids that another tenant uses are refused by name, in each table, with all that refers to them', async () => {
  const before = await outside();
  const refused: string[] = [];
  for (const [table, id] of others) {
    if (table === 'key_versions') continue;
    const items = withFreshIds(genuine);
    const first = items.find((item) => item.kind === 'row' && item.table === table);
    const former = first?.kind === 'row' ? first.row.id : undefined;
    const renamed = items.map((item) =>
      item.kind === 'row'
        ? {
            ...item,
            row: Object.fromEntries(
              Object.entries(item.row).map(([name, value]) => [name, value === former ? id : value]),
            ),
          }
        : { ...item, unitId: item.unitId === former ? id : item.unitId },
    );
    const { id: file, file: bytes } = await forger.write(renamed);
    await opened.operations.snapshots.import(administrator, once(bytes), forger.verifier);
    const outcome = await hand.restore(file, { newTenant: `taken ${table}` }).then(
      () => 'restored',
      ({ message }: { readonly message: string }) => message,
    );
    if (outcome.startsWith(`another tenant already uses ids of the snapshot (${table})`)) refused.push(table);
    else refused.push(`${table}: ${outcome}`);
  }
  // A vault that is there says that the file is of a tenant of this service: everything in it gets
  // other ids.
  const expected = [...others.keys()].filter((table) => table !== 'key_versions');
  expect(refused).toEqual(expected.map((table) => (table === 'vaults' ? 'vaults: restored' : table)));
  expect(await outside()).toEqual(before);
});

test('the last handles in a snapshot leave handles to others', async () => {
  const { caller } = await registerCaller(opened, 'crm');
  for (const handle of [0x7fffffff, Number.MAX_SAFE_INTEGER]) {
    expect(await tryOne(withValue('tde_objects', 'handle', handle))).toBe('restored');
    const made = await opened.operations.tde.createObject(caller, dataObject('note'), Buffer.from('another'));
    expect(made.handle).toBeLessThan(0x3fffffff);
  }
});

test('a snapshot is valid where it can be restored: verification tries it, and leaves nothing', async () => {
  const verify = async (items: readonly ForgedItem[]) => {
    const { id, file } = await forger.write(items);
    const { snapshots } = opened.operations;
    await snapshots.import(administrator, once(file), forger.verifier);
    return (await snapshots.verify(administrator, id, await hand.answer(id))).verification;
  };
  const tenants = async () => (await opened.operations.tenants.list(administrator)).map(({ name }) => name);
  const before = [await tenants(), await outside()];
  expect(await verify(withFreshIds(genuine))).toMatchObject({ depth: 'opened', valid: true, finding: null });
  expect(await verify(genuine)).toMatchObject({ valid: true });
  expect(await verify(withValue('tde_applications', 'group_id', newId(1)))).toMatchObject({
    valid: false,
    finding: expect.stringMatching(/^it cannot be restored: the snapshot refers to something that is not in it/),
  });
  expect([await tenants(), await outside()]).toEqual(before);
});

test('a key that says that it is a copy of one with another value is refused', async () => {
  const { operations } = opened;
  const { items } = await operations.keys.list(actorIn(otherTenantId), { limit: 1 });
  const [key] = items;
  if (key === undefined) throw new Error('no key');
  expect(await tryOne(withValue('keys', 'copy_of', key.id))).toBe('key-tampered');
  expect((await operations.keys.use(actorIn(otherTenantId), key.id)).copies.count).toBe(0);
  // One that has its value is one.
  const [original] = genuine.flatMap((item) => (item.kind === 'row' && item.table === 'keys' ? [item.row] : []));
  expect(await tryOne(withValue('keys', 'copy_of', String(original?.id)))).toBe('restored');
  expect((await operations.keys.use(administrator, String(original?.id))).copies.count).toBe(1);
});

test('a value that does not open does not keep a tenant from being copied: its object is named', async () => {
  const isNote = (item: ForgedItem): boolean =>
    item.kind === 'row' && item.table === 'tde_objects' && item.row.label === toLabel('note');
  // Under the ids of the original: everything gets others.
  const items = genuine.map((item) =>
    isNote(item) && item.kind === 'row' ? { ...item, row: { ...item.row, content: Buffer.alloc(40, 7) } } : item,
  );
  const { id, file } = await forger.write(items);
  const { snapshots, tenants } = opened.operations;
  await snapshots.import(administrator, once(file), forger.verifier);
  // A name that another tenant has decides nothing.
  await tenants.create(administrator, { name: `verification ${id}` });
  expect((await snapshots.verify(administrator, id, await hand.answer(id))).verification).toMatchObject({
    valid: false,
    finding: expect.stringMatching(/^values of objects do not open: \S+$/),
  });
  const outcome = await hand.restore(id, { newTenant: 'with a damaged value' });
  expect(outcome.withoutValue).toEqual([{ id: expect.any(String), label: toLabel('note') }]);
  const [row] = await queryStored(
    opened.folder,
    'select content, content_digest from tde_objects where id = ?',
    outcome.withoutValue[0]?.id ?? '',
  );
  expect(row).toEqual({ content: null, content_digest: null });
  expect(outcome.counts.keys?.created).toBeGreaterThan(0);
});

test('no swapped value reaches anything outside the tenant, and the service starts again', async () => {
  let before = await outside();
  const reached: string[] = [];
  const outcomes = new Map<string, string>();
  const swaps = swapsOf(genuine);
  const step = Math.max(1, Math.ceil(swaps.length / sizeOf('swapped values')));
  // What reached something outside once comes first.
  const known =
    /(as|of) (row-authentication|vault-copy|endpoint-secret) of|application_id is of another|credentials.*of another/;
  const chosen = swaps.filter(({ name }, at) => at % step === 0 || (step > 1 && known.test(name) && at % 3 === 0));
  for (const { name, apply } of chosen) {
    const outcome = await tryOne(apply(withFreshIds(genuine)));
    outcomes.set(name, outcome);
    const after = await outside();
    if (!isDeepStrictEqual(after, before)) reached.push(name);
    before = after;
  }
  expect(reached).toEqual([]);
  const expected = ['restored', 'conflict', 'key-tampered', 'unsupported', 'validation'];
  expect([...outcomes].filter(([, outcome]) => !expected.includes(outcome))).toEqual([]);
  await restart(opened, { toml });
  expect(await outside()).toEqual(before);
});
