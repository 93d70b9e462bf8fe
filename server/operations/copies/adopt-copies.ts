// What earlier versions knew of files that left the service, once: exports of snapshots as rows
// without codes, backups as records of the audit log, and how many keys are erased from files of
// snapshots beside the codes of their rows.

import { newId } from '../../base/ids.ts';
import { newOutsideCopy } from '../../domain/copies.ts';
import type { Repositories } from '../../ports/store.ts';
import { byId, each } from '../shared/paging.ts';
import { decidingRecord, decidingRecords } from '../shared/tree-of-log.ts';

export const adoptedSetting = 'copies-adopted';

/**
 * A copy whose audit record was changed from outside: it counts as a file that may hold every key
 * and that every root key may open.
 */
const unknownCopy = (kind: 'service-backup' | 'root-backup', now: number) =>
  newOutsideCopy({ id: newId(now), kind, at: now, stateFrom: 0, stateUntil: now });

export const adoptCopies = async (tx: Repositories, now: number): Promise<void> => {
  await tx.outsideCopies.adoptExports();
  const timeOf = (value: unknown): number => (typeof value === 'string' ? Date.parse(value) : Number.NaN);
  for await (const { event, proven } of decidingRecords(tx.audit, 'service.backed-up')) {
    if (!proven) {
      await tx.outsideCopies.insert(unknownCopy('service-backup', now));
      continue;
    }
    const { details, sequence } = event;
    const [id, at] = [details.backupId, timeOf(details.at)];
    if (typeof id !== 'string' || Number.isNaN(at) || (await tx.outsideCopies.get(id)) !== undefined) continue;
    // Which root key it is sealed under, these records do not say. Nor do they say how far the log
    // was when its state began: the record was written when the backup was there.
    await tx.outsideCopies.insert(
      newOutsideCopy({ id, kind: 'service-backup', at, stateFrom: 0, stateUntil: at, stateSize: sequence - 1 }),
    );
  }
  for await (const { event, proven } of decidingRecords(tx.audit, 'root.backed-up')) {
    if (!proven) {
      await tx.outsideCopies.insert(unknownCopy('root-backup', now));
      continue;
    }
    const { details } = event;
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
    const imported = await decidingRecord(tx.audit, { kind: 'snapshot.imported', subjectId: id, order: 'newest' });
    // What a changed record said is not known: all of its keys may be.
    const recorded = imported === null ? counts.units : Number(imported?.details.erased ?? 0);
    const erased = Math.max(counts.erased, recorded);
    await tx.snapshots.update({ ...snapshot, counts: { ...counts, erased } });
  }
  await tx.decisions.set(adoptedErasures, 'yes');
};
