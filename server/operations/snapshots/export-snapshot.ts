// Gives out the file of a snapshot, under the rules of all vaults of its tenant: any of their keys
// may be in it.

import { newId } from '../../base/ids.ts';
import { toRfc3339 } from '../../base/time.ts';
import { type Actor, inTenant } from '../../domain/actor.ts';
import { newOutsideCopy } from '../../domain/copies.ts';
import type { Ports } from '../../ports/ports.ts';
import { type Approvals, secondIfAny } from '../approvals/governed-operation.ts';
import { vaultsOf } from '../shared/find.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { erasedUntil } from './erase-destroyed.ts';
import { findSnapshot, requireFile, subjectOf } from './find-snapshot.ts';
import type { SnapshotSettings } from './snapshot-settings.ts';
import { inspectFile } from './verify-snapshot.ts';

type ExportPorts = Pick<Ports, 'store' | 'ring' | 'archive' | 'exclusion' | 'clock' | 'log'>;

/** Throws `ApprovalNeeded` where it waits. */
export const exportSnapshot = (
  ports: ExportPorts,
  { withApproval }: Pick<Approvals, 'withApproval'>,
  { exportSecondPerson }: Pick<SnapshotSettings, 'exportSecondPerson'>,
) => {
  const { store, archive, clock } = ports;
  /** Recorded before the first byte leaves. */
  const governedExport = withApproval('snapshot.export', {
    permission: 'snapshots:export',
    by: 'requester',
    plan: async (from, _tenantId, { snapshotId }: { readonly snapshotId: string }, requesterId) => {
      const { tenantId, createdAt, size, counts } = await findSnapshot(from, snapshotId, ['available']);
      await requireFile(archive, snapshotId);
      const at = toRfc3339(createdAt);
      return {
        tenantId,
        subject: { ...subjectOf(snapshotId), name: at },
        vaults: await vaultsOf(from, tenantId),
        second: exportSecondPerson
          ? await secondIfAny(from, 'exports of snapshots', { tenantId, requesterId, now: clock.now() })
          : null,
        impact: { size, keys: counts?.rows.keys ?? 0 },
        state: { at },
      };
    },
    carryOut: async (tx, actor, { snapshotId }) => {
      const { tenantId, createdAt, auditSize, origin, size } = await findSnapshot(tx, snapshotId, ['available']);
      const at = clock.now();
      const isOwn = origin !== 'imported';
      const erased = await erasedUntil(tx);
      await tx.outsideCopies.insert(
        newOutsideCopy({
          ...{ id: newId(at), kind: 'exported-snapshot', tenantId, snapshotId, at },
          ...{ actorId: actor.id, actorName: actor.name },
          stateFrom: isOwn ? createdAt : 0,
          stateUntil: isOwn ? createdAt : Number.MAX_SAFE_INTEGER,
          stateSize: isOwn ? auditSize : null,
          erasedUntil: erased?.at ?? null,
          erasedSize: erased?.size ?? null,
        }),
      );
      await recordEvent(tx, 'snapshot.exported', actor, about('snapshot', { id: snapshotId, tenantId }), { size });
      return { answer: undefined, afterCommit: () => Promise.resolve() };
    },
  });

  return async (actor: Actor, id: string): Promise<AsyncIterable<Uint8Array>> => {
    const snapshot = await findSnapshot(store.read, id, ['available']);
    const { tenantId } = snapshot;
    // A file that is gone is named by the plan.
    if (await archive.has(id)) await inspectFile(ports, actor, snapshot);
    await governedExport.run(inTenant(actor, tenantId), { snapshotId: id });
    return archive.content(id);
  };
};
