// What earlier versions knew of files that left the service, once: exports of snapshots as rows without codes, and backups as records of the audit log.

import { newId } from '../../base/ids.ts';
import type { AuditKind } from '../../domain/audit-event.ts';
import { newOutsideCopy } from '../../domain/copies.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Repositories } from '../../ports/store.ts';
import { each } from '../shared/paging.ts';

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
    // Which root key it is sealed under, these records do not say.
    await tx.outsideCopies.insert(
      newOutsideCopy({ id, kind: 'service-backup', at, stateFrom: at, stateUntil: at, stateSize: sequence - 1 }),
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
