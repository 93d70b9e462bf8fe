// A tenant of its own next to the workload of faults (fault-workload.ts): snapshots of it are made
// and restored, its keys change between them, and other tenants are purged. With a book like the
// workload's: what had no answer is either done or not, and never by half.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { formatRecoveryKey } from '../../server/base/recovery-key.ts';
import type { ProxyConfiguration } from '../../server/contract/api/endpoints-routes.ts';
import type { Snapshot, SnapshotOpening } from '../../server/contract/api/snapshots-routes.ts';
import type { Tenant } from '../../server/contract/api/tenants-routes.ts';
import { type ConsoleApi, openConsoleApi } from './console-api.ts';
import type { ServerProcess } from './server-process.ts';
import { makeRecoveryKey } from './snapshot-files.ts';
import { answerOpening } from './snapshots.ts';
import { callXks, requestMetadata } from './xks-client.ts';

/** The two keys that a restore brings back together: as the snapshot has them both are active. */
interface Keys {
  readonly switched: string;
  readonly removed: string;
}
const asInSnapshot: Keys = { switched: 'active', removed: 'active' };
const text = ({ switched, removed }: Keys): string => `${switched} and ${removed}`;

interface PurgedTenant {
  readonly id: string;
  readonly name: string;
  readonly keyId: string;
  acknowledged: boolean;
  /** Resolves all unknown outcomes. */
  over: boolean;
}

export interface FaultTenant {
  readonly tenantId: string;
  /** Changes keys, so that a restore has something to do. */
  spoil(): Promise<void>;
  restore(): Promise<void>;
  snapshot(): Promise<void>;
  /**
   * Creates and deletes a tenant. The returned function purges it and waits for the end of its
   * erasure run.
   */
  toPurge(): Promise<() => Promise<void>>;
  /** What is wrong. `all`: also what was found right before. */
  check(all: boolean): Promise<readonly string[]>;
}

export const openFaultTenant = async (
  place: { readonly server: ServerProcess },
  token: string,
  seed: number,
  done: (what: string) => void,
  /** Waits for the requested erasure run. */
  untilErased: (isErased: () => Promise<boolean>) => Promise<void>,
): Promise<FaultTenant> => {
  const api = (): ConsoleApi => openConsoleApi(place.server, token);
  const name = `apart ${seed}`;
  const inIt = `?tenant=${encodeURIComponent(name)}`;
  const { id: tenantId } = await api().call<Tenant>('POST', '/api/tenants', { name });
  const recovery = makeRecoveryKey();
  await api().call('POST', '/api/recovery-keys', { name, publicKey: formatRecoveryKey(recovery.publicKey) });
  const vault = await api().call<{ id: string }>('POST', `/api/vaults${inIt}`, { name: 'vault' });
  const newKey = (keyName: string) =>
    api().call<{ id: string }>('POST', `/api/keys${inIt}`, { name: keyName, vaultId: vault.id });
  const ids = { switched: (await newKey('switched')).id, removed: (await newKey('removed')).id };
  const endpoint = await api().call<{ id: string }>('POST', `/api/endpoints${inIt}`, {
    name: 'cloud',
    vaultId: vault.id,
    keyId: ids.removed,
  });
  const credentials = `/api/endpoints/${endpoint.id}/credentials${inIt}`;
  const configuration = await api().call<ProxyConfiguration>('POST', credentials);
  const plaintext = Buffer.alloc(32, 0xa7).toString('base64');
  const xks = (target: string, body: object) =>
    callXks(
      { server: place.server, configuration },
      { target: `/keys/${ids.removed}/${target}`, body: { encryptionAlgorithm: 'AES_GCM', ...body } },
    );
  const sealed = (await xks('encrypt', { requestMetadata: requestMetadata(), plaintext })).body;
  const makeSnapshot = () => api().call<Snapshot>('POST', '/api/snapshots', { tenantId });
  const { id: snapshotId } = await makeSnapshot();
  const later = await newKey('made since');

  let keys: Keys = asInSnapshot;
  /** A call without an answer: it may have had its effect. */
  let pending: Keys | undefined;
  const acknowledged = new Set([snapshotId]);
  const verified = new Set<string>();
  const purged: PurgedTenant[] = [];
  let tenants = 0;

  const become = async (next: Keys, what: string, work: () => Promise<unknown>): Promise<void> => {
    pending = next;
    await work();
    keys = next;
    pending = undefined;
    done(what);
  };

  const checkKeys = async (): Promise<string | undefined> => {
    const stateOf = async (id: string): Promise<string> =>
      (await api().call<{ state: string }>('GET', `/api/keys/${id}${inIt}`)).state;
    const found: Keys = { switched: await stateOf(ids.switched), removed: await stateOf(ids.removed) };
    const possible = [keys, ...(pending === undefined ? [] : [pending])];
    if (!possible.some((each) => text(each) === text(found)))
      return `the keys of the restored tenant are ${text(found)}, the book says ${possible.map(text).join(', or ')}`;
    keys = found;
    pending = undefined;
    if ((await stateOf(later.id)) !== 'active') return 'a key that was made after the snapshot is not active any more';
    const opened = await xks('decrypt', { requestMetadata: requestMetadata({ kmsOperation: 'Decrypt' }), ...sealed });
    const opens = opened.status === 200 && opened.body.plaintext === plaintext;
    return opens === (found.removed === 'active')
      ? undefined
      : `a key that is ${found.removed} answers ${opened.status}: ${JSON.stringify(opened.body)}`;
  };
  const checkSnapshots = async (all: boolean): Promise<readonly string[]> => {
    const wrong: string[] = [];
    const list = async () =>
      (await api().call<{ items: readonly Snapshot[] }>('GET', `/api/snapshots?tenantId=${tenantId}&limit=1000`)).items;
    let items = await list();
    // One that failed on a full disk, where that could not be written down either: the next one
    // settles it.
    if (items.some(({ state }) => state === 'creating')) {
      acknowledged.add((await makeSnapshot()).id);
      items = await list();
    }
    for (const { id, state } of items) {
      if (acknowledged.has(id) && state !== 'available') wrong.push(`snapshot ${id} was acknowledged and is ${state}`);
      if (state === 'creating' || state === 'missing') wrong.push(`snapshot ${id} is ${state}`);
      if (state !== 'available' || (!all && verified.has(id))) continue;
      const seen = await api().call<Snapshot>('POST', `/api/snapshots/${id}/verify`, {});
      if (seen.verification?.valid !== true) wrong.push(`snapshot ${id}: ${seen.verification?.finding}`);
      verified.add(id);
    }
    const listed = new Set(items.map(({ id }) => id));
    for (const id of acknowledged) if (!listed.has(id)) wrong.push(`snapshot ${id} was acknowledged and is not there`);
    const held = items.filter(({ state }) => state === 'available').map(({ id }) => `${id}.dkesnap`);
    const files = readdirSync(join(place.server.dataDirectory, 'snapshots'));
    // The only other file is the mark by which several nodes recognize that they share the folder.
    for (const file of files)
      if (file !== 'folder' && !held.includes(file)) wrong.push(`the file ${file} is of no snapshot`);
    for (const file of held) if (!files.includes(file)) wrong.push(`the file ${file} is not there`);
    return wrong;
  };
  /** A tenant that may not have been purged can be restored completely. */
  const checkPurged = async (entry: PurgedTenant): Promise<string | undefined> => {
    const { state } = await api().call<Tenant>('GET', `/api/tenants/${entry.id}`);
    if (state === 'purged') {
      entry.acknowledged = true;
      const back = await api().send('POST', `/api/tenants/${entry.id}/restore`);
      return back.status === 409 ? undefined : `${entry.name} was purged, and restored: ${back.status}`;
    }
    if (entry.acknowledged || state !== 'deleted') return `${entry.name} is ${state}`;
    entry.over = true;
    await api().call('POST', `/api/tenants/${entry.id}/restore`);
    const there = `?tenant=${encodeURIComponent(entry.name)}`;
    const key = await api().call<{ state: string }>('GET', `/api/keys/${entry.keyId}${there}`);
    return key.state === 'active' ? undefined : `${entry.name} was not purged, and its key is ${key.state}`;
  };

  return {
    tenantId,
    spoil: async () => {
      if (keys.switched === 'active')
        await become({ ...keys, switched: 'disabled' }, 'disable', () =>
          api().call('POST', `/api/keys/${ids.switched}/disable${inIt}`),
        );
      if (keys.removed === 'active')
        await become({ ...keys, removed: 'soft-deleted' }, 'soft-delete', () =>
          api().call('DELETE', `/api/keys/${ids.removed}${inIt}`),
        );
    },
    restore: () =>
      become(asInSnapshot, 'restore a snapshot', async () => {
        const opening = await api().call<SnapshotOpening>('POST', `/api/snapshots/${snapshotId}/openings`, {
          recoveryKeyId: recovery.id,
        });
        const answer = answerOpening({ ...opening, expiresAt: Date.parse(opening.expiresAt) }, recovery.key);
        await api().call('POST', `/api/snapshots/${snapshotId}/restore`, answer);
      }),
    snapshot: async () => {
      acknowledged.add((await makeSnapshot()).id);
      done('make a snapshot');
    },
    toPurge: async () => {
      tenants += 1;
      const own = `purged ${seed} ${tenants}`;
      const there = `?tenant=${encodeURIComponent(own)}`;
      const { id } = await api().call<Tenant>('POST', '/api/tenants', { name: own });
      const { id: vaultId } = await api().call<{ id: string }>('POST', `/api/vaults${there}`, { name: 'vault' });
      const { id: keyId } = await api().call<{ id: string }>('POST', `/api/keys${there}`, { name: 'key', vaultId });
      await api().call('DELETE', `/api/tenants/${id}`);
      const entry: PurgedTenant = { id, name: own, keyId, acknowledged: false, over: false };
      return async () => {
        purged.push(entry);
        await api().call('POST', `/api/tenants/${id}/purge`, { confirm: own });
        entry.acknowledged = true;
        done('purge a tenant');
        await untilErased(async () => (await api().call<Tenant>('GET', `/api/tenants/${id}`)).unrecoverableAt !== null);
      };
    },
    check: async (all) => {
      const wrong: string[] = [];
      const found = await checkKeys();
      if (found !== undefined) wrong.push(found);
      wrong.push(...(await checkSnapshots(all)));
      for (const entry of purged) {
        if (entry.over || (!all && entry !== purged.at(-1))) continue;
        const odd = await checkPurged(entry);
        if (odd !== undefined) wrong.push(odd);
      }
      return wrong;
    },
  };
};
