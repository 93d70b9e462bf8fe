// A power failure at each write of an operation of a running service: the destruction of a key with
// its erasure run, the purge of a tenant, a rotation of the root key, the creation and the restore
// of a snapshot, the change and the destruction of a data object. On PostgreSQL, which keeps what
// it has committed, the end of the process at each write and each commit. The next start brings
// each to one of two ends: as if it had not begun, or complete. What the operation does not concern
// is as before, and the check of everything finds nothing.
import { readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { rootFilesBeside } from '../../../server/adapters/roots/durable-files.ts';
import { verifyOffline } from '../../../server/app/host/offline.ts';
import { crashPoints, dumpOf } from '../../support/crash-points.ts';
import { folderOfTest } from '../../support/folders.ts';
import {
  administrator,
  dataObject,
  instance,
  masterKey,
  type OpenedService,
  openTestService,
  registerCaller,
  untilAudited,
} from '../../support/open-service.ts';
import { actorIn, handOf, type SnapshotHand } from '../../support/snapshots.ts';
import { onPostgresql, putStored, queryStored } from '../../support/test-store.ts';
import { inLongTier, sizeOf } from '../../support/tiers.ts';

const cbc = { algorithm: 'aes-cbc-pad', iv: Buffer.alloc(16, 3) } as const;
let place: string;
let opened: OpenedService;
let accessGuid = '';
let sealed: Buffer = Buffer.alloc(0);
let handles = { kept: 0, doomed: 0, note: 0 };
let [applicationId, doomedId, tenantId, snapshotId] = ['', '', '', ''];
let hand: SnapshotHand;

const caller = () =>
  opened.operations.tde.authenticate({ accessGuid, appId: 'erp', instance, requestId: 'r', peer: null });
const idle = () => expect.poll(async () => (await opened.operations.status(administrator)).erasure.state).toBe('idle');

beforeEach(async () => {
  place = join(folderOfTest(), 'service');
  opened = await openTestService({ folder: place });
  const { tde, tenants, vaults, keys } = opened.operations;
  const registered = await registerCaller(opened, 'erp');
  [accessGuid, applicationId] = [registered.accessGuid, registered.caller.application.id];
  const [kept, doomed] = [
    await tde.generateKey(registered.caller, masterKey('kept')),
    await tde.generateKey(registered.caller, masterKey('doomed')),
  ];
  const note = await tde.createObject(registered.caller, dataObject('note'), Buffer.from('before'));
  handles = { kept: kept.handle, doomed: doomed.handle, note: note.handle };
  doomedId = doomed.id;
  sealed = await tde.encrypt(registered.caller, kept.handle, cbc, Buffer.from('a page'));
  tenantId = (await tenants.create(administrator, { name: 'leaving' })).id;
  const vault = await vaults.create(actorIn(tenantId), { name: 'cloud' });
  await keys.create(actorIn(tenantId), { name: 'cloud', vaultId: vault.id });
});
afterEach(() => opened?.stop());

interface Case {
  readonly prepare?: () => Promise<unknown>;
  readonly work: () => Promise<unknown>;
  /** After the next start, when nothing is left to do. */
  readonly end: () => Promise<string>;
  readonly ends: readonly string[];
}
const rotations = async (): Promise<number> =>
  (await opened.operations.audit.list(administrator, { kind: 'root.rotated' })).items.length;
const cases: Readonly<Record<string, Case>> = {
  'the destruction of a key, and its erasure run': {
    work: async () => {
      await opened.operations.masterKeys.destroy(administrator, applicationId, doomedId);
      await untilAudited(opened, 'key.unrecoverable', doomedId);
      await idle();
    },
    end: async () => {
      const { state } = await opened.operations.keys.get(administrator, doomedId);
      if (state !== 'destroyed')
        return `${state}: ${(await opened.operations.tde.getObject(await caller(), handles.doomed)).id === doomedId}`;
      await untilAudited(opened, 'key.unrecoverable', doomedId);
      return 'unrecoverable';
    },
    ends: ['active: true', 'unrecoverable'],
  },
  'the purge of a tenant': {
    prepare: () => opened.operations.tenants.delete(administrator, tenantId),
    work: async () => {
      await opened.operations.tenants.purge(administrator, tenantId);
      await untilAudited(opened, 'tenant.unrecoverable', tenantId);
      await idle();
    },
    end: async () => {
      const { state } = await opened.operations.tenants.get(administrator, tenantId);
      if (state !== 'purged') return state;
      await untilAudited(opened, 'tenant.unrecoverable', tenantId);
      const left = await queryStored(
        opened.folder,
        'select 1 from key_records where tenant_id = ? and record is not null',
        tenantId,
      );
      return `purged, with ${left.length} records`;
    },
    ends: ['deleted', 'purged, with 0 records'],
  },
  'a rotation of the root key': {
    work: async () => {
      await opened.operations.root.rotate(administrator);
      await untilAudited(opened, 'root.rotated');
      await idle();
    },
    end: async () => {
      await idle();
      const { epoch } = await opened.operations.root.get(administrator);
      // A run that was cut off may draw another one.
      return `${epoch === 1 ? 'the former' : 'a new'} root key, ${await rotations()} rotations`;
    },
    ends: ['a new root key, 1 rotations', 'the former root key, 0 rotations'],
  },
  'the creation of a snapshot': {
    prepare: async () => {
      hand = await handOf(opened);
    },
    work: () => hand.make(administrator.tenantId),
    end: async () => {
      const { items } = await opened.operations.snapshots.list(administrator, {});
      const files = readdirSync(opened.config.snapshots.directory).filter((name) => name.endsWith('.dkesnap'));
      const left = items.filter(({ state }) => state === 'available').map(({ id }) => `${id}.dkesnap`);
      expect(files).toEqual(left);
      return `${left.length} files`;
    },
    ends: ['0 files', '1 files'],
  },
  'the restore of a snapshot into a new tenant': {
    prepare: async () => {
      hand = await handOf(opened);
      snapshotId = await hand.make(administrator.tenantId);
    },
    work: () => hand.restore(snapshotId, { newTenant: 'beside' }),
    end: async () => {
      const tenant = (await opened.operations.tenants.list(administrator)).find(({ name }) => name === 'beside');
      if (tenant === undefined) return 'no tenant';
      const { items } = await opened.operations.keys.list(actorIn(tenant.id), { limit: 10 });
      return `a tenant with ${items.length} keys`;
    },
    ends: ['a tenant with 2 keys', 'no tenant'],
  },
  'the change of a data object': {
    work: async () => opened.operations.tde.updateObject(await caller(), handles.note, {}, Buffer.from('after')),
    end: async () => (await opened.operations.tde.readValue(await caller(), handles.note)).toString(),
    ends: ['after', 'before'],
  },
  'the destruction of a data object': {
    work: async () => opened.operations.tde.destroyObject(await caller(), handles.note),
    end: async () =>
      opened.operations.tde.readValue(await caller(), handles.note).then(
        (value) => value.toString(),
        (error: { readonly code: string }) => error.code,
      ),
    ends: ['before', 'key-destroyed'],
  },
};

describe.runIf(!onPostgresql || inLongTier('operations/cut-off-operations: PostgreSQL'))('a crash at any write', () => {
  test.each(Object.entries(cases))('of %s: one of two ends', async (_, { prepare, work, end, ends }) => {
    await prepare?.();
    const { states } = await crashPoints(place, work);
    await opened.stop();
    rmSync(place, { recursive: true });
    const found = new Set<string>();
    const each = sizeOf('cut-off writes');
    for (const state of states.filter((_state, at) => at % each === 0 || at === states.length - 1)) {
      renameSync(state, place);
      if (onPostgresql) {
        await putStored(place, readFileSync(dumpOf(state), 'utf8'));
        // The copy stands for the directory itself, which a node does not take for one.
        await queryStored(place, "update nodes set directory = ''");
      }
      opened = await openTestService({ folder: place });
      expect((await opened.operations.quarantine.get(administrator)).quarantined).toBe(false);
      found.add(await end());
      expect((await opened.operations.tde.decrypt(await caller(), handles.kept, cbc, sealed)).toString()).toBe(
        'a page',
      );
      await opened.stop();
      expect((await verifyOffline(opened.config, () => Promise.resolve(undefined))).findings).toEqual([]);
      // Nothing else opens what the root key opens.
      expect(rootFilesBeside(opened.config.root.path)).toEqual([]);
      expect(readdirSync(opened.config.dataDirectory).filter((name) => /\.(new|part)$/.test(name))).toEqual([]);
      rmSync(place, { recursive: true });
    }
    expect([...found].toSorted()).toEqual(ends);
  });
});
