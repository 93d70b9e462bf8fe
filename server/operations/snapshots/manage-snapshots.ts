// Snapshots as they are kept: which there are, which of them may still hold a key, and what can be done with one.

import type { TenantActor } from '../../domain/actor.ts';
import type { KeyCopies } from '../../domain/key.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import type { Snapshot, SnapshotExport } from '../../domain/snapshot.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { SnapshotFilter } from '../../ports/snapshots.ts';
import type { Approvals } from '../approvals/governed-operation.ts';
import { findCopies } from '../keys/key-copies.ts';
import { findKey } from '../shared/find.ts';
import { byId, pageOf } from '../shared/paging.ts';
import { deleteSnapshots } from './delete-snapshots.ts';
import { settleUnfinished } from './erase-destroyed.ts';
import { exportSnapshot } from './export-snapshot.ts';
import { findSnapshot } from './find-snapshot.ts';
import { importSnapshot } from './import-snapshot.ts';
import type { SnapshotSettings } from './snapshot-settings.ts';

type ManagePorts = Pick<Ports, 'store' | 'ring' | 'archive' | 'exclusion' | 'clock' | 'deadlines' | 'log' | 'fleet'>;

/** What is known of the whereabouts of a key in snapshots. */
export interface KeySnapshots {
  readonly keyId: string;
  /** Copies that left the service, and may hold the key: those who have one and a recovery key have the key. */
  readonly exported: readonly SnapshotExport[];
  /** What restores have made of it in other tenants. */
  readonly copies: KeyCopies;
}

export const manageSnapshots = (
  ports: ManagePorts,
  approvals: Pick<Approvals, 'withApproval'>,
  settings: SnapshotSettings,
) => {
  const { store } = ports;
  return {
    list: async ({ reach }: TenantActor, query: PageRequest & SnapshotFilter): Promise<Page<Snapshot>> => {
      const tenantId = reach === everyTenant ? query.tenantId : reach;
      // Of another tenant that is asked for, there are none.
      if (query.tenantId !== undefined && query.tenantId !== tenantId) return { items: [], next: null };
      return pageOf(query, (window) => store.read.snapshots.list({ ...query, tenantId }, window), byId);
    },
    get: ({ reach }: TenantActor, id: string) => findSnapshot(store.read, id, undefined, reach),
    exports: async ({ reach }: TenantActor, id: string) => {
      await findSnapshot(store.read, id, undefined, reach);
      return store.read.snapshots.exports(id);
    },
    settings: () => settings,
    ...deleteSnapshots(ports, settings),
    export: exportSnapshot(ports, approvals),
    import: importSnapshot(ports, settings),
    ofKey: async ({ tenantId, reach }: TenantActor, keyId: string): Promise<KeySnapshots> => {
      const key = await findKey(store.read, tenantId, keyId);
      const sizeAt = async (kind: 'key.created' | 'key.destroyed', otherwise: number): Promise<number> =>
        (await store.read.audit.list(everyTenant, { kind, subjectId: keyId, order: 'oldest' }, { limit: 1 }))[0]
          ?.sequence ?? otherwise;
      const from = await sizeAt('key.created', 0);
      const to = await sizeAt('key.destroyed', Number.MAX_SAFE_INTEGER);
      const exported = await store.read.snapshots.exportsBetween(key.tenantId, from, to);
      // A copy that left after the key had been taken out of it is without the key.
      const { unrecoverableAt } = key;
      return {
        keyId,
        exported: exported.filter(({ at }) => unrecoverableAt === null || at < unrecoverableAt),
        copies: await findCopies(store.read, key, reach),
      };
    },

    /** At start: what was being made when the process ended. */
    settle: (): Promise<void> => settleUnfinished(ports),
  };
};
