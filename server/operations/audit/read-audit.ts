// The audit log: reading, proving, exporting. Order is by sequence, never by time.

import { verifierKey } from '../../base/checkpoint.ts';
import { inclusionProof } from '../../base/merkle-tree.ts';
import { ServiceError } from '../../base/service-error.ts';
import { auditEntry } from '../../domain/audit-event.ts';
import { auditKeyDays, dayMs } from '../../domain/notification.ts';
import type { Ports } from '../../ports/ports.ts';
import { checkSequenceCursor, pageOf } from '../shared/paging.ts';
import { about, aboutService, recordEvent } from '../shared/record-event.ts';
import type { AuditLog, AuditOperations } from './audit-operations.ts';
import { auditOrigin, keySince } from './audit-origin.ts';
import { exportLines, exportTenantLines } from './export-audit.ts';
import type { LogForwarding } from './forward-logs.ts';
import { readMigrations } from './read-key-migrations.ts';
import type { AuditSealer } from './seal-audit-log.ts';

export { readableDetails } from '../../domain/audit-event.ts';

export const readAudit = (
  { store, ring, erasure }: Pick<Ports, 'store' | 'ring' | 'erasure'>,
  sealer: AuditSealer,
  forwarding: LogForwarding,
): AuditOperations => {
  const log = async (): Promise<AuditLog> => {
    await ring.refreshAuditKey(store);
    const origin = await auditOrigin(store.read);
    const since = await keySince(store.read, ring.auditKeySince());
    return {
      origin,
      verifierKey: verifierKey(origin, ring.auditPublicKey()),
      formerKeys: ring
        .auditKeys()
        .flatMap(({ publicKey, until }) =>
          until === null ? [] : [{ verifierKey: verifierKey(until.origin, publicKey), through: until.size }],
        ),
      keySince: since,
      rotationDueAt: since === null ? null : since + auditKeyDays * dayMs,
      size: await store.read.audit.size(),
      checkpoint: (await store.read.audit.latestCheckpoint()) ?? null,
    };
  };

  return {
    list: ({ reach }, query) => {
      checkSequenceCursor(query);
      return pageOf(
        query,
        (window) => store.read.audit.list(reach, { ...query, order: query.order ?? 'newest' }, window),
        (event) => String(event.sequence),
      );
    },

    migrations: readMigrations({ store }),

    log,

    rotateKey: async (actor) => {
      await sealer.rotateKey(actor);
      erasure.schedule();
      return log();
    },

    checkpoints: (_actor, query) => {
      checkSequenceCursor(query);
      return pageOf(
        query,
        (window) => store.read.audit.checkpoints('newest', window),
        ({ size }) => String(size),
      );
    },

    sinks: () => forwarding.state(),

    checkpoint: () => sealer.checkpoint(),

    prove: async ({ reach }, sequence) => {
      const [event] = await store.read.audit.list(
        reach,
        { order: 'oldest' },
        { after: String(sequence - 1), limit: 1 },
      );
      const latest = await store.read.audit.latestCheckpoint();
      const checkpoint = latest !== undefined && latest.size >= sequence ? latest : await sealer.checkpoint();
      if (event?.sequence !== sequence || checkpoint === undefined)
        throw new ServiceError('not-found', `audit record ${sequence} not found`);
      const hashes = await inclusionProof(store.read.audit.subtree, sequence - 1, checkpoint.size);
      return { entry: auditEntry(event), checkpoint, hashes };
    },

    exportTenant: async (actor) => {
      const { tenantId } = actor;
      await store.write(async (tx) => {
        await recordEvent(tx, 'audit-log.exported', actor, about('service', { id: 'audit-log', tenantId }), {
          size: (await tx.audit.size()) + 1,
          records: (await tx.audit.count(tenantId)) + 1,
        });
      });
      const checkpoint = await sealer.checkpoint();
      if (checkpoint === undefined) throw new ServiceError('unavailable', 'the audit log has no checkpoint yet');
      return exportTenantLines({ store, ring }, tenantId, checkpoint.size, checkpoint.note);
    },

    export: async (actor) => {
      await store.write(async (tx) => {
        await recordEvent(tx, 'audit-log.exported', actor, aboutService('audit-log'), {
          size: (await tx.audit.size()) + 1,
        });
      });
      const checkpoint = await sealer.checkpoint();
      return exportLines({ store }, checkpoint?.size ?? 0);
    },
  };
};
