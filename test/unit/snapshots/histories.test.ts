// Random histories of a tenant (how many: test/support/tiers.ts): resources are created, used up,
// moved, removed and destroyed; somewhere in between a snapshot is created, and at the end it is
// restored, into the same tenant, next to it, or in another service. What the database then holds,
// read past the service, is the state of the snapshot, except that destroyed keys stay destroyed,
// and newer resources stay.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ServiceError } from '../../../server/base/service-error.ts';
import type { TenantActor } from '../../../server/domain/actor.ts';
import type { TdeCaller } from '../../../server/operations/index.ts';
import { idIn } from '../../../server/operations/snapshots/running-restore.ts';
import {
  administrator,
  instance,
  masterKey,
  type OpenedService,
  openTestService,
  toLabel,
} from '../../support/open-service.ts';
import fc from '../../support/property.ts';
import { sharedService } from '../../support/shared.ts';
import {
  actorIn,
  checksOf,
  type Dump,
  dumpTenant,
  handOf,
  type SnapshotHand,
  type StoredRow,
} from '../../support/snapshots.ts';
import { sizeOf } from '../../support/tiers.ts';

const histories = sizeOf('snapshot histories');
/** Histories that continue next to each other: their commits are shared. */
const lanes = 20;

const memory = '[erasure]\ngather_ms = 3600000\n[memory]\nallow_unlocked = true\n';
const here = sharedService({ toml: `${memory}[snapshots]\nrestore_second_person = false\n` });
let there: OpenedService;
let hand: SnapshotHand;
let thereHand: SnapshotHand;
let verifier: string;
beforeAll(async () => {
  verifier = (await here.operations.audit.log()).verifierKey;
  const trusting = `[snapshots]\ntrusted_signers = ["${verifier}"]\nrestore_second_person = false\n`;
  there = await openTestService({ toml: `${memory}${trusting}` });
  hand = await handOf(here);
  thereHand = await handOf(there, hand.recovery);
});
afterAll(async () => {
  await there?.remove();
});

/** What can happen; the number chooses to what. */
const events = [
  'vault',
  'key',
  'rotate',
  'disable-key',
  'enable-key',
  'delete-key',
  'application',
  'second-guid',
  'remove-guid',
  'generate',
  'data',
  'relabel',
  'destroy-key',
  'destroy-object',
  'move',
  'endpoint',
  'credential',
  'remove-credential',
  'delete-endpoint',
  'disable-vault',
  'disable-application',
] as const;
type Step = readonly [(typeof events)[number], number];
interface History {
  readonly before: readonly Step[];
  readonly after: readonly Step[];
  readonly into: 'same' | 'beside' | 'elsewhere';
}
const step = fc.tuple(fc.constantFrom(...events), fc.nat(1_000));
// The beginning is what every tenant has; the rest is chance.
const beginning: readonly Step[] = [
  ['vault', 0],
  ['key', 0],
  ['application', 0],
  ['generate', 0],
];
const history: fc.Arbitrary<History> = fc.record({
  before: fc.array(step, { minLength: 0, maxLength: 8 }),
  after: fc.array(step, { minLength: 0, maxLength: 6 }),
  into: fc.constantFrom('same', 'same', 'beside', 'elsewhere'),
});

interface World {
  readonly actor: TenantActor;
  readonly guids: Map<string, string>;
  serial: number;
}

const pick = <T>(items: readonly T[], at: number): T | undefined => items[at % Math.max(1, items.length)];
const all = { limit: 1000 } as const;

const happen = async (world: World, [event, at]: Step): Promise<void> => {
  const { actor, guids } = world;
  const { operations } = here;
  const name = (): string => {
    world.serial += 1;
    return `${event} ${world.serial}`;
  };
  const vaults = async () => (await operations.vaults.list(actor, all)).items;
  const keys = async () => (await operations.keys.list(actor, { ...all, kind: 'general' })).items;
  const applications = async () => (await operations.applications.list(actor, all)).items;
  const endpoints = async () => (await operations.endpoints.list(actor, all)).items;
  const callerOf = async (): Promise<TdeCaller | undefined> => {
    const application = pick(await applications(), at);
    const accessGuid = application === undefined ? undefined : guids.get(application.id);
    if (application === undefined || accessGuid === undefined) return undefined;
    return operations.tde.authenticate({ accessGuid, appId: application.appId, instance, requestId: 'r', peer: null });
  };
  const objectsOf = async (caller: TdeCaller) =>
    (await operations.tde.findObjects(caller, { after: 0, limit: 1000 })).objects;
  switch (event) {
    case 'vault':
      await operations.vaults.create(actor, { name: name() });
      return;
    case 'disable-vault': {
      const vault = pick(await vaults(), at);
      if (vault !== undefined)
        await operations.vaults[vault.state === 'enabled' ? 'disable' : 'enable'](actor, vault.id);
      return;
    }
    case 'key': {
      const vault = pick(
        (await vaults()).filter(({ kind }) => kind === 'general'),
        at,
      );
      if (vault !== undefined) await operations.keys.create(actor, { name: name(), vaultId: vault.id });
      return;
    }
    case 'rotate':
    case 'disable-key':
    case 'enable-key':
    case 'delete-key': {
      const key = pick(event === 'rotate' ? await keys() : (await operations.keys.list(actor, all)).items, at);
      const doing = {
        rotate: 'rotate',
        'disable-key': 'disable',
        'enable-key': 'enable',
        'delete-key': 'softDelete',
      } as const;
      if (key !== undefined) await operations.keys[doing[event]](actor, key.id);
      return;
    }
    case 'application': {
      const group = await operations.tdeGroups.create(actor, { name: name() });
      const issued = await operations.applications.register(actor, { name: name(), groupId: group.id });
      guids.set(issued.application.id, issued.accessGuid);
      return;
    }
    case 'second-guid': {
      const application = pick(await applications(), at);
      if (application !== undefined) await operations.applications.rotateAccessGuid(actor, application.id);
      return;
    }
    case 'remove-guid': {
      const application = pick(await applications(), at);
      const newest = application && (await operations.applications.accessGuids(actor, application.id))[0];
      // The first one stays: it is what this history's database has.
      if (application && newest) await operations.applications.removeAccessGuid(actor, application.id, newest.id);
      return;
    }
    case 'disable-application': {
      const application = pick(await applications(), at);
      if (application !== undefined)
        await operations.applications[application.state === 'enabled' ? 'disable' : 'enable'](actor, application.id);
      return;
    }
    case 'move': {
      const application = pick(await applications(), at);
      const group = pick((await operations.tdeGroups.list(actor, all)).items, at >> 3);
      if (application && group) await operations.applications.move(actor, application.id, group.id);
      return;
    }
    case 'generate': {
      const caller = await callerOf();
      if (caller) await operations.tde.generateKey(caller, { ...masterKey(name()), modifiable: true });
      return;
    }
    case 'data': {
      const caller = await callerOf();
      const data = { ...masterKey(name()), class: 'data', algorithm: null, bits: null, usages: [] } as const;
      if (caller) await operations.tde.createObject(caller, data, Buffer.from(`value ${at}`));
      return;
    }
    case 'relabel': {
      const caller = await callerOf();
      const object = caller && pick(await objectsOf(caller), at >> 2);
      if (caller && object) await operations.tde.updateObject(caller, object.handle, { label: toLabel(name()) });
      return;
    }
    case 'destroy-key':
    case 'destroy-object': {
      const caller = await callerOf();
      const object =
        caller &&
        pick(
          (await objectsOf(caller)).filter((each) => (each.class === 'secret-key') === (event === 'destroy-key')),
          at >> 2,
        );
      if (caller && object) await operations.tde.destroyObject(caller, object.handle);
      return;
    }
    case 'endpoint': {
      const key = pick(await keys(), at);
      if (key) await operations.endpoints.create(actor, { name: name(), vaultId: key.vaultId, keyId: key.id });
      return;
    }
    case 'credential':
    case 'remove-credential':
    case 'delete-endpoint': {
      const endpoint = pick(await endpoints(), at);
      if (endpoint === undefined) return;
      const credential = pick(endpoint.credentials, at >> 2);
      if (event === 'credential')
        (await operations.endpoints.addCredential(actor, endpoint.id)).secretAccessKey.fill(0);
      else if (event === 'delete-endpoint') await operations.endpoints.delete(actor, endpoint.id);
      else if (credential) await operations.endpoints.removeCredential(actor, endpoint.id, credential.id);
    }
  }
};
/** What the state does not allow is part of a history too. */
const happenIfPossible = (world: World, one: Step): Promise<void> =>
  happen(world, one).catch((error: unknown) => {
    if (!(error instanceof ServiceError)) throw error;
  });

const rowsOf = (dump: Dump, table: string): ReadonlyMap<string, StoredRow> => dump.get(table) ?? new Map();
const destroyedIn = (dump: Dump): ReadonlySet<string> =>
  new Set(
    ['keys', 'tde_objects'].flatMap((table) =>
      [...rowsOf(dump, table).values()].filter((row) => row.destroyed_at !== null).map((row) => String(row.id)),
    ),
  );
const plain = (dump: ReadonlyMap<string, ReadonlyMap<string, StoredRow>>): object =>
  Object.fromEntries(
    [...dump].map(([table, rows]) => [table, Object.fromEntries([...rows].toSorted(([a], [b]) => (a < b ? -1 : 1)))]),
  );

/** What the same tenant must be after the restore. */
const expectedInPlace = (then: Dump, now: Dump): Dump => {
  const destroyed = destroyedIn(now);
  const expected = new Map<string, Map<string, StoredRow>>();
  for (const [table, rowsNow] of now) {
    const rows = new Map(table === 'key_records' ? [] : rowsNow);
    for (const [name, row] of rowsOf(then, table)) {
      const before = rowsNow.get(name);
      const unit = String(table === 'key_records' ? row.object_id : row.id);
      if ((table === 'keys' || table === 'tde_objects' || table === 'key_records') && destroyed.has(unit)) continue;
      if (table === 'key_versions' && before !== undefined) continue;
      const newest = Math.max(Number(row.current_version), Number(before?.current_version ?? 0));
      rows.set(name, table === 'keys' ? { ...row, current_version: newest } : row);
    }
    expected.set(table, rows);
  }
  // Records: those of the snapshot, and those of newer versions and resources.
  const versionsThen = rowsOf(then, 'key_versions');
  const unitsThen = new Set(
    ['keys', 'tde_objects', 'endpoint_credentials'].flatMap((table) => [...rowsOf(then, table).keys()]),
  );
  for (const [name, row] of rowsOf(now, 'key_records')) {
    const since =
      !unitsThen.has(String(row.object_id)) ||
      (rowsOf(then, 'keys').has(String(row.object_id)) && !versionsThen.has(`${row.object_id} ${row.version}`));
    const deletedThen = rowsOf(then, 'keys').get(String(row.object_id))?.state === 'soft-deleted';
    if (since && !deletedThen) expected.get('key_records')?.set(name, row);
  }
  // Objects that an application created in another group move back with it.
  const groups = new Map([...rowsOf(expected, 'tde_applications')].map(([id, row]) => [id, row.group_id]));
  const vaults = new Map([...rowsOf(expected, 'tde_groups')].map(([id, row]) => [id, row.vault_id]));
  for (const [id, row] of rowsOf(expected, 'tde_objects')) {
    const groupId = groups.get(String(row.application_id));
    if (groupId === undefined || groupId === row.group_id) continue;
    expected.get('tde_objects')?.set(id, { ...row, group_id: groupId });
    const key = expected.get('keys')?.get(id);
    if (key !== undefined) expected.get('keys')?.set(id, { ...key, vault_id: vaults.get(String(groupId)) ?? null });
  }
  return expected;
};

const notBeside = new Set(['access_guids', 'endpoint_credentials', 'external_key_stores']);
/** What a new tenant next to it must be: fresh ids everywhere, and no credentials. */
const expectedBeside = (then: Dump, now: Dump, tenantId: string): Dump => {
  const destroyed = destroyedIn(now);
  const fresh = (value: StoredRow[string]): StoredRow[string] =>
    typeof value === 'string' && /^[0-9a-f]{8}-[0-9a-f]{4}-7/.test(value) ? idIn(tenantId, value) : value;
  const expected = new Map<string, Map<string, StoredRow>>();
  for (const [table, rows] of then) {
    const mapped = new Map<string, StoredRow>();
    expected.set(table, mapped);
    if (notBeside.has(table)) continue;
    for (const row of rows.values()) {
      const unit = String(table === 'key_records' ? row.object_id : row.id);
      if (table === 'key_records' && (destroyed.has(unit) || row.class === 'endpoint-secret')) continue;
      const own: StoredRow = {
        ...Object.fromEntries(Object.entries(row).map(([column, value]) => [column, fresh(value)])),
        ...(Object.hasOwn(row, 'tenant_id') ? { tenant_id: tenantId } : {}),
        ...(table === 'keys' ? { copy_of: row.copy_of ?? String(row.id) } : {}),
      };
      const gone = destroyed.has(unit) ? rowsOf(now, table).get(unit) : undefined;
      const at = gone?.destroyed_at ?? null;
      const ended =
        gone === undefined || row.destroyed_at !== null
          ? own
          : table === 'keys'
            ? { ...own, state: 'destroyed', destroyed_at: at, reimported_at: null }
            : { ...own, destroyed_at: at, content: null };
      const identity =
        table === 'key_versions'
          ? [own.key_id, own.version]
          : table === 'key_records'
            ? [own.object_id, own.version, own.class]
            : [own.id];
      mapped.set(identity.join(' '), ended);
    }
  }
  return expected;
};
/** Handles and prefixes are one of a kind in a service: a copy next to the original has others. */
const without = (dump: Dump, table: string, column: string): Dump =>
  new Map(
    [...dump].map(([name, rows]) => [
      name,
      name === table ? new Map([...rows].map(([id, row]) => [id, { ...row, [column]: null }])) : rows,
    ]),
  );
/**
 * The values of a copy's objects are encrypted for the copy: only whether there is one is the same.
 */
const withoutValues = (dump: Dump): Dump =>
  new Map(
    [...dump].map(([table, rows]) => [
      table,
      table !== 'tde_objects'
        ? rows
        : new Map(
            [...rows].map(([id, row]) => [
              id,
              {
                ...row,
                content: row.content === null ? null : 'a value',
                content_digest: row.content === null ? null : 'its digest',
              },
            ]),
          ),
    ]),
  );
const besideShape = (dump: Dump): Dump =>
  withoutValues(without(without(dump, 'tde_objects', 'handle'), 'endpoints', 'prefix'));

async function* piecesOf(path: string): AsyncGenerator<Uint8Array> {
  yield readFileSync(path);
}

let serial = 0;
const live = async ({ before, after, into }: History): Promise<void> => {
  serial += 1;
  const own = serial;
  const tenant = await here.operations.tenants.create(administrator, { name: `history ${own}` });
  const world: World = { actor: actorIn(tenant.id), guids: new Map(), serial: 0 };
  for (const one of [...beginning, ...before]) await happenIfPossible(world, one);
  const id = await hand.make(tenant.id);
  const then = await dumpTenant(here, tenant.id);
  const checks = await checksOf(here, id, hand.recovery);
  for (const one of after) await happenIfPossible(world, one);
  const now = await dumpTenant(here, tenant.id);

  if (into === 'same') {
    await hand.restore(id);
    const restored = await dumpTenant(here, tenant.id);
    expect(plain(restored)).toEqual(plain(expectedInPlace(then, now)));
    // The keys are the same: a snapshot of the restored tenant has each with the same check value,
    // or not at all.
    const again = await checksOf(here, await hand.make(tenant.id), hand.recovery);
    const gone = destroyedIn(restored);
    for (const [name, check] of checks)
      expect([name, again.get(name)]).toEqual([name, gone.has(name.split(' ')[0] ?? '') ? undefined : check]);
    return;
  }
  if (into === 'beside') {
    const { tenantId, stayDestroyed } = await hand.restore(id, { newTenant: `copy ${own}` });
    expect(plain(besideShape(await dumpTenant(here, tenantId)))).toEqual(
      plain(besideShape(expectedBeside(then, now, tenantId))),
    );
    const named = [...destroyedIn(now)].filter(
      (unit) => rowsOf(then, 'keys').has(unit) && !destroyedIn(then).has(unit),
    );
    expect(stayDestroyed.map((each) => each.id).toSorted()).toEqual(
      named.map((unit) => idIn(tenantId, unit)).toSorted(),
    );
    return;
  }
  const path = join(here.config.snapshots.directory, `${id}.dkesnap`);
  await there.operations.snapshots.import(administrator, piecesOf(path), verifier);
  const { tenantId, newIds } = await thereHand.restore(id, { newTenant: `from here ${own}` });
  // No tenant has that id there: the tenant is the same.
  expect([tenantId, newIds]).toEqual([tenant.id, false]);
  expect(plain(without(await dumpTenant(there, tenantId), 'tde_objects', 'handle'))).toEqual(
    plain(without(then, 'tde_objects', 'handle')),
  );
};

test(`${histories} random histories`, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(history, { minLength: lanes, maxLength: lanes }), async (together) => {
      await Promise.all(together.map(live));
    }),
    { numRuns: Math.ceil(histories / lanes), endOnFailure: true },
  );
});
