// A change that one node makes takes from the memory of another one what it is about, and nothing
// else: opened master keys of an application stay open while other tenants register, change,
// destroy and restore.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { formatRecoveryKey } from '../../server/base/recovery-key.ts';
import type { Snapshot, SnapshotOpening } from '../../server/contract/api/snapshots-routes.ts';
import type { CreateObject } from '../../server/contract/tde.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { startFleet, untilActive } from '../support/fleet.ts';
import { makeRecoveryKey } from '../support/snapshot-files.ts';
import { answerOpening } from '../support/snapshots.ts';
import { callTdeRoute } from '../support/tde-route.ts';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const each of undo.splice(0).reverse()) await each();
});

const masterKey = (label: string): CreateObject => ({
  class: 'secret-key',
  label: Buffer.from(label).toString('base64'),
  algorithm: 'aes',
  bits: 256,
  usages: ['encrypt', 'decrypt'],
  sensitive: true,
  extractable: false,
  modifiable: false,
  destroyable: true,
  private: true,
  attributes: Buffer.of(1).toString('base64'),
});
const cbc = { algorithm: 'aes-cbc', iv: Buffer.alloc(16).toString('base64') } as const;

test('what other tenants change on one node leaves the opened master keys of another node open', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'dke-shared-'));
  undo.push(() => rmSync(directory, { recursive: true, force: true }));
  const toml = `[erasure]\ngather_ms = 3600000\n[snapshots]\ndirectory = ${JSON.stringify(directory)}\n`;
  const fleet = await startFleet(['one', 'two'], { toml });
  undo.push(() => fleet.end());
  const [one, two] = [fleet.member('one'), fleet.member('two')];
  await untilActive(fleet, one, ['one', 'two']);
  const registered = await registerApplication(one.api, 'erp', await createGroup(one.api, 'databases'));
  const door = { accessGuid: registered.accessGuid, appId: registered.application.appId };
  const most = 20;
  const handles: number[] = [];
  for (let at = 0; at < most; at += 1)
    handles.push((await callTdeRoute(one.server, door, 'generateKey', masterKey(`key ${at}`))).head.handle);
  const opened = async (): Promise<number> =>
    (await two.api.call<{ memory: { keys: number } }>('GET', '/api/status')).memory.keys;
  const closed = await opened();
  const use = async (): Promise<number> => {
    for (const handle of handles)
      await callTdeRoute(two.server, door, 'encrypt', cbc, { handle, raw: Buffer.alloc(32) });
    return opened();
  };
  expect((await use()) - closed).toBe(most);

  const recovery = makeRecoveryKey();
  await one.api.call('POST', '/api/recovery-keys', { name: 'safe', publicKey: formatRecoveryKey(recovery.publicKey) });
  const tenant = await one.api.call<{ id: string }>('POST', '/api/tenants', { name: 'other' });
  const inOther = <T extends object = { id: string }>(path: string, body: object = {}): Promise<T> =>
    one.api.call<T>('POST', `${path}?tenant=other`, body);
  const vault = await inOther('/api/vaults', { name: 'first' });
  const key = await inOther('/api/keys', { name: 'wanted', vaultId: vault.id });
  const made = await inOther<Snapshot>('/api/snapshots');
  const changes: Readonly<Record<string, () => Promise<unknown>>> = {
    'a vault is created': () => inOther('/api/vaults', { name: 'second' }),
    'a vault of the same tenant is created': () => one.api.call('POST', '/api/vaults', { name: 'of the same' }),
    'an application is registered': async () => {
      const group = await inOther('/api/tde/groups', { name: 'others' });
      return inOther('/api/tde/applications', { name: 'crm', groupId: group.id });
    },
    'an application of the same tenant is registered': () =>
      createGroup(one.api, 'more').then((group) => registerApplication(one.api, 'hr', group)),
    'a key is disabled': () => inOther(`/api/keys/${key.id}/disable`),
    'the tenant is suspended, and resumed': async () => {
      for (const verb of ['suspend', 'resume']) await one.api.call('POST', `/api/tenants/${tenant.id}/${verb}`, {});
    },
    'the tenant is restored to a new one': async () => {
      const begun = await one.api.call<SnapshotOpening>('POST', `/api/snapshots/${made.id}/openings`, {});
      const answer = answerOpening({ ...begun, expiresAt: Date.parse(begun.expiresAt) }, recovery.key);
      const restored = await one.api.call('POST', `/api/snapshots/${made.id}/restore`, {
        ...answer,
        newTenant: 'third',
      });
      // The restore is carried out at once: it waits for no second person.
      expect(restored).toMatchObject({ dryRun: false });
    },
  };
  for (const [name, change] of Object.entries(changes)) {
    const before = await opened();
    await change();
    // The change is answered when both nodes show it.
    const after = await opened();
    expect([name, after, after >= before, before]).toEqual([name, after, true, before]);
  }
  // What is about the keys does take them.
  await one.api.call('POST', `/api/tde/applications/${registered.application.id}/disable`, {});
  await one.api.call('POST', `/api/tde/applications/${registered.application.id}/enable`, {});
  const before = await use();
  const [first] = (
    await one.api.call<{ items: { id: string; name: string }[] }>(
      'GET',
      `/api/tde/applications/${registered.application.id}/master-keys`,
    )
  ).items;
  await one.api.call('POST', `/api/tde/applications/${registered.application.id}/master-keys/${first?.id}/destroy`, {
    confirm: first?.name,
  });
  expect(await opened()).toBe(before - 1);
});
