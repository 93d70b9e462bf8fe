// Snapshots as they are kept: which there are, which of them may still hold a key, and what can be
// done with one.

import type { TenantActor } from '../../domain/actor.ts';
import type { KeyCopies, OutsideCopy } from '../../domain/copies.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { SnapshotFilter } from '../../ports/snapshots.ts';
import type { Approvals } from '../approvals/governed-operation.ts';
import { copiesOf } from '../copies/copies-of.ts';
import { showKey } from '../shared/find.ts';
import { byId, each, pageOf } from '../shared/paging.ts';
import { deleteSnapshots } from './delete-snapshots.ts';
import { settleUnfinished } from './erase-destroyed.ts';
import { exportSnapshot } from './export-snapshot.ts';
import { findSnapshot } from './find-snapshot.ts';
import { importSnapshot } from './import-snapshot.ts';
import type { SnapshotSettings } from './snapshot-settings.ts';

type ManagePorts = Pick<Ports, 'store' | 'ring' | 'archive' | 'exclusion' | 'clock' | 'deadlines' | 'log' | 'fleet'>;

export const manageSnapshots = (
  ports: ManagePorts,
  approvals: Pick<Approvals, 'withApproval'>,
  settings: SnapshotSettings,
) => {
  const { store } = ports;
  return {
    list: async ({ reach }: TenantActor, query: PageRequest & SnapshotFilter): Promise<Page<Snapshot>> => {
      const tenantId = reach === everyTenant ? query.tenantId : reach;
      // A caller who asks for another tenant than their own gets an empty list.
      if (query.tenantId !== undefined && query.tenantId !== tenantId) return { items: [], next: null };
      return pageOf(query, (window) => store.read.snapshots.list({ ...query, tenantId }, window), byId);
    },
    get: ({ reach }: TenantActor, id: string) => findSnapshot(store.read, id, undefined, reach),
    exports: async ({ reach }: TenantActor, id: string) => {
      await findSnapshot(store.read, id, undefined, reach);
      const found: OutsideCopy[] = [];
      for await (const copy of each((window) => store.read.outsideCopies.list({ snapshotId: id }, window), byId))
        found.push(copy);
      return found;
    },
    settings: () => settings,
    ...deleteSnapshots(ports, settings),
    export: exportSnapshot(ports, approvals, settings),
    import: importSnapshot(ports, settings),
    ofKey: async ({ tenantId, reach }: TenantActor, keyId: string): Promise<KeyCopies> =>
      copiesOf(store.read, await showKey(store.read, tenantId, keyId), reach),

    /** At start: what was being made when the process ended. */
    settle: (): Promise<void> => settleUnfinished(ports),
  };
};
