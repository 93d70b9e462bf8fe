// What earlier versions knew of files that left the service, once: exports of snapshots as rows
// without codes, backups as records of the audit log, and how many keys are erased from files of
// snapshots beside the codes of their rows.

import { newId } from '../../base/ids.ts';
import type { AuditKind } from '../../domain/audit-event.ts';
import { newOutsideCopy } from '../../domain/copies.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Repositories } from '../../ports/store.ts';
import { byId, each } from '../shared/paging.ts';

export const adoptedSetting = 'copies-adopted';

export const adoptCopies = async (tx: Repositories): Promise<void> => {
  await tx.outsideCopies.adoptExports();
  const records = (kind: AuditKind) =>
    each(
      (window) => tx.audit.list(everyTenant, { kind, order: 'oldest' }, window),
      ({ sequence }) => String(sequence),
    );
  const timeOf = (value: unknown): number => (typeof value === 'string' ? Date.parse(value) : Number.NaN);
  for await (const { details, sequence } of records('service.backed-up')) {
    const [id, at] = [details.backupId, timeOf(details.at)];
    if (typeof id !== 'string' || Number.isNaN(at) || (await tx.outsideCopies.get(id)) !== undefined) continue;
    // Which root key it is sealed under, these records do not say. Nor do they say how far the log
    // was when its state began: the record was written when the backup was there.
    await tx.outsideCopies.insert(
      newOutsideCopy({ id, kind: 'service-backup', at, stateFrom: 0, stateUntil: at, stateSize: sequence - 1 }),
    );
  }
  for await (const { details } of records('root.backed-up')) {
    const [rootEpoch, at] = [details.rootEpoch, timeOf(details.at)];
    if (typeof rootEpoch !== 'number' || Number.isNaN(at)) continue;
    await tx.outsideCopies.insert(
      newOutsideCopy({
        ...{ id: newId(at), kind: 'root-backup', at, stateFrom: at, stateUntil: at, rootEpoch, oldestRootEpoch: 0 },
      }),
    );
  }
  for (const former of ['service:backup', 'root:backup']) await tx.settings.set(former, null);
  await tx.decisions.set(adoptedSetting, 'yes');
};

export const adoptedErasures = 'erased-adopted';

/**
 * How many keys are erased from the file of a snapshot gets under the code of its row, once. Of an
 * imported file, the record of its import has how many were erased at that time: the counts of the
 * row may have been set back.
 */
export const adoptErasures = async (tx: Repositories): Promise<void> => {
  for await (const snapshot of each((window) => tx.snapshots.list({}, window), byId)) {
    const { id, counts, integrity } = snapshot;
    if (integrity !== 'ok' || counts === null) continue;
    const filter = { kind: 'snapshot.imported', subjectId: id, order: 'newest' } as const;
    const [imported] = await tx.audit.list(everyTenant, filter, { limit: 1 });
    const erased = Math.max(counts.erased, Number(imported?.details.erased ?? 0));
    await tx.snapshots.update({ ...snapshot, counts: { ...counts, erased } });
  }
  await tx.decisions.set(adoptedErasures, 'yes');
};
