// Handlers of the audit log.

import { toBase64 } from '../../../base/bytes.ts';
import { ServiceError } from '../../../base/service-error.ts';
import { toRfc3339 } from '../../../base/time.ts';
import type { AuditLog } from '../../../operations/audit/audit-operations.ts';
import type { Operations } from '../../../operations/index.ts';
import { exportLines } from '../export.ts';
import { representAuditEvent, representCheckpoint, representPage, representSink } from '../represent.ts';
import type { Handlers } from './handler.ts';

const representLog = ({ checkpoint, keySince, rotationDueAt, ...rest }: AuditLog) => ({
  ...rest,
  keySince: keySince === null ? null : toRfc3339(keySince),
  rotationDueAt: rotationDueAt === null ? null : toRfc3339(rotationDueAt),
  checkpoint: checkpoint === null ? null : representCheckpoint(checkpoint),
});

export const auditHandlers = ({ audit }: Operations): Handlers['audit'] => ({
  list: async ({ actor, query }) => representPage(await audit.list(actor, query), representAuditEvent),
  migrations: async ({ actor, query }) =>
    representPage(await audit.migrations(actor, query), ({ at, lastAt, ...rest }) => ({
      ...rest,
      at: toRfc3339(at),
      lastAt: toRfc3339(lastAt),
    })),
  log: async () => representLog(await audit.log()),
  rotateKey: async ({ actor }) => representLog(await audit.rotateKey(actor)),
  checkpoints: async ({ actor, query }) => representPage(await audit.checkpoints(actor, query), representCheckpoint),
  sinks: async ({ actor }) => ({ items: (await audit.sinks(actor)).map(representSink) }),
  export: async ({ actor }) => exportLines(await audit.export(actor), 'dke-audit.ndjson'),
  exportTenant: async ({ actor }) => exportLines(await audit.exportTenant(actor), 'dke-audit-tenant.ndjson'),
  prove: async ({ actor, path: { sequence } }) => {
    if (!/^[1-9][0-9]{0,14}$/.test(sequence)) throw new ServiceError('not-found', 'there is no such audit record');
    const { entry, checkpoint, hashes } = await audit.prove(actor, Number(sequence));
    return { entry, checkpoint: representCheckpoint(checkpoint), hashes: hashes.map(toBase64) };
  },
});
