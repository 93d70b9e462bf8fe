// The life of a master key through the operations, over the real store, addon and root file.
import { describe, expect, test } from 'vitest';
import type { TdeCaller } from '../../../server/operations/index.ts';
import { until } from '../../support/host.ts';
import {
  administrator,
  auditKindsOf,
  dataObject,
  masterKey,
  registerCaller,
  toLabel,
  untilAudited,
} from '../../support/open-service.ts';
import { sealedKey } from '../../support/sealed-key.ts';
import { sharedService } from '../../support/shared.ts';
import { onPostgresql, queryStored } from '../../support/test-store.ts';

const iv = Buffer.alloc(16, 7);
const cbc = { algorithm: 'aes-cbc', iv } as const;
const plain = Buffer.alloc(48, 0x5a);

const opened = sharedService();

const code = (value: string) => expect.objectContaining({ code: value });

let count = 0;
const makeKey = async (caller: TdeCaller) => {
  count += 1;
  return opened.operations.tde.generateKey(caller, masterKey(`ORACLE.TDE.HSM.MK.06${String(count).padStart(32, '0')}`));
};

describe('a master key', () => {
  test('encrypts and decrypts exactly raw CBC', async () => {
    const { caller } = await registerCaller(opened, 'cbc');
    const { tde } = opened.operations;
    const key = await makeKey(caller);
    expect(key).toMatchObject({ bits: 256, local: true, owned: true, state: 'active' });
    const sealed = await tde.encrypt(caller, key.handle, cbc, plain);
    expect(sealed).toHaveLength(48);
    expect(await tde.decrypt(caller, key.handle, cbc, sealed)).toEqual(plain);
    await expect(tde.encrypt(caller, key.handle, cbc, plain.subarray(0, 15))).rejects.toEqual(code('data-length'));
  });

  test('has a label that no other live key of its group may have; a destroyed key frees it', async () => {
    const { caller, groupId } = await registerCaller(opened, 'labels');
    const { tde } = opened.operations;
    const sibling = (await registerCaller(opened, 'labels of a sibling', groupId)).caller;
    const key = await tde.generateKey(caller, masterKey('one label'));
    await expect(tde.generateKey(caller, masterKey('one label'))).rejects.toEqual(code('label-exists'));
    const imported = await sealedKey(tde, sibling, Buffer.alloc(32, 1));
    await expect(tde.importKey(sibling, masterKey('one label'), imported)).rejects.toEqual(code('label-exists'));
    await opened.operations.keys.softDelete(administrator, key.id);
    await expect(tde.generateKey(caller, masterKey('one label'))).rejects.toEqual(code('label-exists'));
    await tde.destroyObject(caller, key.handle);
    expect((await tde.generateKey(caller, masterKey('one label'))).handle).toBeGreaterThan(key.handle);
  });

  test('survives soft deletion: the next use re-imports the vault copy once and continues', async () => {
    const { caller } = await registerCaller(opened, 'soft deletion');
    const { tde, keys, masterKeys } = opened.operations;
    const key = await makeKey(caller);
    const sealed = await tde.encrypt(caller, key.handle, cbc, plain);
    const deleted = await keys.softDelete(administrator, key.id);
    expect(deleted).toMatchObject({ vaultCopyCleared: true, key: { state: 'soft-deleted', reimportedAt: null } });
    expect(await keys.versions(administrator, key.id)).toMatchObject([{ vaultCopy: false }]);
    expect(await masterKeys.get(administrator, caller.application.id, key.id)).toMatchObject({ sealedCopy: true });

    expect(await tde.decrypt(caller, key.handle, cbc, sealed)).toEqual(plain);
    expect(await tde.decrypt(caller, key.handle, cbc, sealed)).toEqual(plain);
    expect(await keys.versions(administrator, key.id)).toMatchObject([{ vaultCopy: true }]);
    expect(await auditKindsOf(opened, key.id)).toEqual(['key.created', 'key.deleted', 'key.reimported']);

    await keys.softDelete(administrator, key.id);
    await tde.checkUse(caller, key.handle, 'encrypt');
    expect((await auditKindsOf(opened, key.id)).slice(3)).toEqual(['key.deleted', 'key.reimported']);
  });

  test('is deleted although its vault copy cannot be cleared, which is said', async () => {
    const { caller } = await registerCaller(opened, 'kept copy');
    const { tde, keys } = opened.operations;
    const key = await makeKey(caller);
    const sealed = await tde.encrypt(caller, key.handle, cbc, plain);
    const isKept = "class = 'vault-copy' and new.record is null";
    const [refuse, allow] = onPostgresql
      ? [
          "alter table key_records add constraint kept check (class <> 'vault-copy' or record is not null) not valid",
          'alter table key_records drop constraint kept',
        ]
      : [
          `create trigger kept before update on key_records when new.${isKept} begin select raise(abort, 'kept'); end`,
          'drop trigger kept',
        ];
    await queryStored(opened.folder, refuse);
    const deleted = await keys.softDelete(administrator, key.id);
    expect(deleted).toMatchObject({ vaultCopyCleared: false, key: { state: 'soft-deleted' } });
    const [record] = (await opened.operations.audit.list(administrator, { kind: 'key.deleted' })).items;
    expect(record).toMatchObject({ subjectId: key.id, details: { vaultCopy: 'kept' } });
    await queryStored(opened.folder, allow);
    expect(await tde.decrypt(caller, key.handle, cbc, sealed)).toEqual(plain);
    // Repeated, it clears what was left.
    expect(await keys.softDelete(administrator, key.id)).toMatchObject({ vaultCopyCleared: true });
    expect(await keys.versions(administrator, key.id)).toMatchObject([{ vaultCopy: false }]);
  });

  test('that is disabled refuses use, also after soft deletion', async () => {
    const { caller } = await registerCaller(opened, 'disabled');
    const { tde, keys } = opened.operations;
    const key = await makeKey(caller);
    await keys.disable(administrator, key.id);
    await expect(tde.checkUse(caller, key.handle, 'encrypt')).rejects.toEqual(code('key-disabled'));
    await keys.softDelete(administrator, key.id);
    await expect(tde.encrypt(caller, key.handle, cbc, plain)).rejects.toEqual(code('key-disabled'));
    await keys.enable(administrator, key.id);
    expect(await tde.encrypt(caller, key.handle, cbc, plain)).toHaveLength(48);
  });

  test('is refused while the vault of its group is disabled', async () => {
    const { caller, groupId } = await registerCaller(opened, 'vault');
    const { tde, vaults, tdeGroups } = opened.operations;
    const key = await makeKey(caller);
    await tde.encrypt(caller, key.handle, cbc, plain);
    const { vaultId } = await tdeGroups.get(administrator, groupId);
    await vaults.disable(administrator, vaultId);
    await expect(tde.encrypt(caller, key.handle, cbc, plain)).rejects.toEqual(code('key-disabled'));
    await expect(vaults.delete(administrator, vaultId)).rejects.toEqual(code('conflict'));
    await vaults.enable(administrator, vaultId);
    expect(await tde.encrypt(caller, key.handle, cbc, plain)).toHaveLength(48);
  });

  test('is found with the uses that would be admitted now, and nothing is done or recorded for it', async () => {
    const { caller, groupId } = await registerCaller(opened, 'found');
    const { tde, keys, vaults, tdeGroups } = opened.operations;
    const key = await makeKey(caller);
    const { vaultId } = await tdeGroups.get(administrator, groupId);
    const admitted = async () =>
      (await tde.findObjects(caller, { label: key.label, after: 0, limit: 10 })).objects.map(({ admits }) => admits);
    const checked = async () => {
      const refused: string[] = [];
      for (const use of key.usages) await tde.checkUse(caller, key.handle, use).catch(() => refused.push(use));
      return key.usages.filter((use) => !refused.includes(use));
    };
    expect(await admitted()).toEqual([key.usages]);
    await keys.disable(administrator, key.id);
    expect(await admitted()).toEqual([[]]);
    expect(await checked()).toEqual([]);
    await keys.enable(administrator, key.id);
    await vaults.disable(administrator, vaultId);
    expect(await admitted()).toEqual([[]]);
    await vaults.enable(administrator, vaultId);
    expect(await admitted()).toEqual([await checked()]);
    // The first use of a deleted key restores its copy; a search does not.
    await keys.softDelete(administrator, key.id);
    const before = await auditKindsOf(opened, key.id);
    expect(await admitted()).toEqual([[]]);
    expect(await auditKindsOf(opened, key.id)).toEqual(before);
    await tde.checkUse(caller, key.handle, 'encrypt');
    expect(await admitted()).toEqual([key.usages]);
    // Who lists everything does not continue to use it.
    expect((await tde.findObjects(caller, { after: 0, limit: 10 })).objects.map(({ admits }) => admits)).toEqual([
      undefined,
    ]);
  });

  test('shows its value to no one', async () => {
    const { caller } = await registerCaller(opened, 'value');
    const key = await makeKey(caller);
    await expect(opened.operations.tde.readValue(caller, key.handle)).rejects.toEqual(code('forbidden'));
  });

  test('refuses a use that it was not made for', async () => {
    const { caller } = await registerCaller(opened, 'usage');
    const key = await makeKey(caller);
    await expect(opened.operations.tde.checkUse(caller, key.handle, 'sign')).rejects.toEqual(code('key-usage'));
    await expect(opened.operations.tde.sign(caller, key.handle, { algorithm: 'aes-cmac' }, plain)).rejects.toEqual(
      code('key-usage'),
    );
  });
});

describe('a master key that could not decrypt', () => {
  const closed = (label: string) => ({ ...masterKey(label), usages: ['encrypt', 'wrap', 'unwrap'] as const });
  const name = (count: number): string => `ORACLE.TSE.HSM.MK.07${String(count).padStart(32, 'F')}`;

  test('is refused by the service too, however it would come to be', async () => {
    const { caller } = await registerCaller(opened, 'closed');
    const { tde } = opened.operations;
    const refused = code('validation');
    await expect(tde.generateKey(caller, closed(name(1)))).rejects.toEqual(refused);
    const imported = await sealedKey(tde, caller, Buffer.alloc(32, 1));
    await expect(tde.importKey(caller, closed(name(1)), imported)).rejects.toEqual(refused);
    const wrapper = await tde.generateKey(caller, { ...closed('wrapper'), modifiable: true });
    await expect(tde.updateObject(caller, wrapper.handle, { label: toLabel(name(1)) })).rejects.toEqual(refused);
    const readable = await tde.generateKey(caller, { ...masterKey(name(2)), modifiable: true });
    await expect(tde.updateObject(caller, readable.handle, { usages: ['encrypt'] })).rejects.toEqual(refused);
    // Labels of another form are the program's own affair.
    expect(await tde.generateKey(caller, closed('wrapper of another program'))).toMatchObject({ state: 'active' });
  });

  test('is not a key of another program: that one is not changed', async () => {
    const { caller } = await registerCaller(opened, 'not a database');
    const { tde, masterKeys } = opened.operations;
    const wrapper = await tde.generateKey(caller, closed('wrapper'));
    const allow = (id: string) => masterKeys.allowDecryption(administrator, caller.application.id, id);
    await expect(allow(wrapper.id)).rejects.toEqual(code('conflict'));
    const key = await tde.generateKey(caller, masterKey(name(3)));
    expect(await allow(key.id)).toMatchObject({ usages: key.usages });
    expect(await auditKindsOf(opened, key.id)).toEqual(['key.created']);
    await masterKeys.destroy(administrator, caller.application.id, key.id);
    await expect(allow(key.id)).rejects.toEqual(code('key-destroyed'));
  });
});

describe('destruction', () => {
  test('stops every use at once, wipes both copies, is recorded with its blast radius, and is final', async () => {
    const { caller } = await registerCaller(opened, 'destruction');
    const { tde, keys, masterKeys } = opened.operations;
    const key = await makeKey(caller);
    await tde.encrypt(caller, key.handle, cbc, plain);
    const radius = await masterKeys.blastRadius(administrator, caller.application.id, key.id);
    expect(radius).toMatchObject({
      hosts: ['db1.example'],
      appIds: ['destruction'],
      instances: [{ process: 'ora_gen0_cdb1' }],
    });

    const destroyed = await masterKeys.destroy(administrator, caller.application.id, key.id);
    expect(destroyed.key).toMatchObject({ state: 'destroyed', sealedCopy: false, vaultCopy: false });
    await expect(tde.encrypt(caller, key.handle, cbc, plain)).rejects.toEqual(code('key-destroyed'));
    await expect(tde.checkUse(caller, key.handle, 'encrypt')).rejects.toEqual(code('key-destroyed'));
    expect((await tde.findObjects(caller, { after: 0, limit: 10 })).objects).toEqual([]);
    await expect(masterKeys.destroy(administrator, caller.application.id, key.id)).rejects.toEqual(
      code('key-destroyed'),
    );
    await expect(keys.enable(administrator, key.id)).rejects.toEqual(code('conflict'));
    await expect(keys.softDelete(administrator, key.id)).rejects.toEqual(code('conflict'));

    const event = await untilAudited(opened, 'key.destroyed', key.id);
    expect(event).toMatchObject({
      actorKind: 'administrator',
      details: { blastRadius: { appIds: ['destruction'], hosts: ['db1.example'], instances: 1 } },
    });
  });

  test('is followed by an erasure run, after which live keys still work', async () => {
    const { caller } = await registerCaller(opened, 'erasure');
    const { tde, keys, status } = opened.operations;
    const doomed = await makeKey(caller);
    const live = await makeKey(caller);
    const sealed = await tde.encrypt(caller, live.handle, cbc, plain);
    // A run that other keys began is over first: else this key may join it.
    const rootEpoch = await until('no erasure run', async () => {
      const now = await status(administrator);
      return now.erasure.state === 'idle' ? now.rootEpoch : undefined;
    });
    await tde.destroyObject(caller, doomed.handle);
    await untilAudited(opened, 'key.unrecoverable', doomed.id);
    expect((await keys.get(administrator, doomed.id)).unrecoverableAt).not.toBeNull();
    expect((await status(administrator)).rootEpoch).toBeGreaterThan(rootEpoch);
    expect(await tde.decrypt(caller, live.handle, cbc, sealed)).toEqual(plain);
  });

  test('of a key that must not be destroyed through the library is refused there, and possible for an administrator', async () => {
    const { caller } = await registerCaller(opened, 'not destroyable');
    const { tde, masterKeys } = opened.operations;
    const key = await tde.generateKey(caller, { ...masterKey('kept'), destroyable: false });
    await expect(tde.destroyObject(caller, key.handle)).rejects.toEqual(code('forbidden'));
    await masterKeys.destroy(administrator, caller.application.id, key.id);
  });

  test('while a use is under way leaves no way to the key', async () => {
    const { caller } = await registerCaller(opened, 'race');
    const { tde } = opened.operations;
    const key = await makeKey(caller);
    const uses = Array.from({ length: 50 }, () => tde.encrypt(caller, key.handle, cbc, plain));
    const destruction = tde.destroyObject(caller, key.handle);
    await Promise.allSettled(uses);
    await destruction;
    await expect(tde.encrypt(caller, key.handle, cbc, plain)).rejects.toEqual(code('key-destroyed'));
  });
});

describe('a group', () => {
  test('lets its applications use each other’s keys, not change or destroy them', async () => {
    const { caller: owner, groupId } = await registerCaller(opened, 'owner');
    const { caller: sibling } = await registerCaller(opened, 'sibling', groupId);
    const { tde } = opened.operations;
    const key = await makeKey(owner);
    const [seen] = (await tde.findObjects(sibling, { label: key.label, after: 0, limit: 10 })).objects;
    expect(seen).toMatchObject({ handle: key.handle, owned: false });
    const sealed = await tde.encrypt(sibling, key.handle, cbc, plain);
    expect(await tde.decrypt(owner, key.handle, cbc, sealed)).toEqual(plain);
    await expect(tde.destroyObject(sibling, key.handle)).rejects.toEqual(code('forbidden'));
    await expect(tde.updateObject(sibling, key.handle, { label: toLabel('mine') })).rejects.toEqual(code('forbidden'));
    await untilAudited(opened, 'key.denied', key.id);
  });

  test('hides its keys from other groups, and the attempt is recorded', async () => {
    const { caller: owner } = await registerCaller(opened, 'inside');
    const { caller: stranger } = await registerCaller(opened, 'outside');
    const { tde } = opened.operations;
    const key = await makeKey(owner);
    await expect(tde.getObject(stranger, key.handle)).rejects.toEqual(code('key-not-found'));
    await expect(tde.encrypt(stranger, key.handle, cbc, plain)).rejects.toEqual(code('key-not-found'));
    expect((await tde.findObjects(stranger, { label: key.label, after: 0, limit: 10 })).objects).toEqual([]);
    expect((await untilAudited(opened, 'key.denied', key.id)).details.reason).toBe('another group');
  });
});

describe('token objects that are not secret keys', () => {
  test('give their value back, may share a label, and are gone after destruction', async () => {
    const { caller } = await registerCaller(opened, 'data');
    const { tde } = opened.operations;
    const value = Buffer.from('key metadata of the database');
    const first = await tde.createObject(caller, dataObject('twice'), value);
    const second = await tde.createObject(caller, dataObject('twice'), Buffer.alloc(0));
    expect(await tde.readValue(caller, first.handle)).toEqual(value);
    expect(await tde.readValue(caller, second.handle)).toHaveLength(0);
    await expect(tde.checkUse(caller, first.handle, 'encrypt')).rejects.toEqual(code('key-usage'));
    const changed = await tde.updateObject(caller, first.handle, { attributes: toLabel('more') });
    expect(changed.attributes).toBe(toLabel('more'));
    expect(await tde.readValue(caller, first.handle)).toEqual(value);
    await tde.destroyObject(caller, first.handle);
    await expect(tde.readValue(caller, first.handle)).rejects.toEqual(code('key-destroyed'));
    expect(await tde.readValue(caller, second.handle)).toHaveLength(0);
  });
});
