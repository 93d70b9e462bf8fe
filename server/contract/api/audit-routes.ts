// The audit log. Records have identifiers, names, counts and states; never a secret.

import { z } from '@hono/zod-openapi';
import { type AuditEvent, auditKindNames, auditSeverities, subjectKinds } from '../../domain/audit-event.ts';
import { identifier, listOf, moment, orNull, pageOf, pageQuery, type RouteGroup, timeSpan } from './row.ts';

const auditKind = z.enum(auditKindNames);

export const auditEventSchema = z
  .strictObject({
    sequence: z.int().openapi({ description: 'Defines the order of the records. Times are only for people.' }),
    at: moment,
    kind: auditKind,
    actorKind: z.enum(['user', 'administrator', 'application', 'service'] satisfies AuditEvent['actorKind'][]),
    actorId: z.string(),
    actorName: z.string(),
    peer: z.string().nullable(),
    tenantId: identifier,
    subjectKind: z.enum(subjectKinds),
    subjectId: z.string(),
    requestId: z.string(),
    details: z.record(z.string(), z.json()).openapi({ type: 'object' }),
  })
  .openapi('AuditRecord');
export type AuditRecord = z.output<typeof auditEventSchema>;
export type { AuditKind } from '../../domain/audit-event.ts';

const filterText = z.string().min(1).max(200).optional();

const checkpointSchema = z
  .strictObject({
    size: z.int().openapi({ description: 'Number of records that it covers, starting with the first.' }),
    at: moment,
    note: z.string().openapi({ description: 'The signed note: c2sp.org/tlog-checkpoint.' }),
  })
  .openapi('AuditCheckpoint');
export type AuditCheckpoint = z.output<typeof checkpointSchema>;

const sinkSchema = z
  .strictObject({
    name: z.string(),
    type: z.enum(['file', 'syslog', 'https']),
    target: z.string(),
    log: z.enum(['audit', 'requests']).openapi({ description: 'The log that it receives.' }),
    endpoints: z
      .array(z.string())
      .readonly()
      .openapi({ description: 'Ids of the endpoints whose requests it receives; empty: all.' }),
    forwarded: z.int().openapi({ description: 'Sequence number of the last record that it has.' }),
    lag: z.int().openapi({ description: 'Number of records that it does not have yet.' }),
    lost: z.int().openapi({
      description:
        'Records that it never receives: the retention of the request log removed them before the sink received them.',
    }),
    lostAt: moment.nullable(),
    fork: z.strictObject({ record: z.int(), at: moment }).nullable().openapi({
      description:
        'Another history of the same log was found at the sink: the number of the first record that differs, and when.',
    }),
    deliveredAt: moment.nullable().openapi({ description: 'Last delivery since the service started.' }),
    failure: z.strictObject({ since: moment, message: z.string() }).nullable(),
  })
  .openapi('AuditSink');
export type AuditSink = z.output<typeof sinkSchema>;

export const keyMigrationSchema = z
  .strictObject({
    sequence: z.int().openapi({ description: 'Sequence number of the audit record of the key.' }),
    at: moment,
    tenantId: identifier,
    what: z.enum(['first-key', 'further-key']).openapi({
      description:
        'first-key: the application had no master key here before, as when a database moves from a local wallet.',
    }),
    applicationId: identifier,
    applicationName: z.string(),
    appId: z.string().nullable(),
    host: z.string().nullable(),
    process: z.string().nullable(),
    keyId: identifier,
    keyName: z.string(),
    label: z.string().nullable(),
    origin: z.string().nullable().openapi({ example: 'generated' }),
    uses: z.record(z.string(), z.int()).openapi({
      description:
        'What the application did in the next ten minutes, or until it created its next key. Uses are recorded by the minute.',
    }),
    failures: z.int(),
    lastAt: moment,
    records: z.array(z.int()).readonly().openapi({ description: 'The audit records that this was derived from.' }),
  })
  .openapi('KeyMigration');
export type KeyMigration = z.output<typeof keyMigrationSchema>;

const auditLogSchema = z
  .strictObject({
    origin: z.string(),
    verifierKey: z.string(),
    formerKeys: z
      .array(z.strictObject({ verifierKey: z.string(), through: z.int() }))
      .readonly()
      .openapi({ description: 'Keys that were rotated, newest first, and the last record that each one signed.' }),
    keySince: moment.nullable(),
    rotationDueAt: moment.nullable().openapi({ description: 'When the next rotation of the key is recommended.' }),
    size: z.int(),
    checkpoint: orNull(checkpointSchema),
  })
  .openapi('AuditLog');
export type AuditLog = z.output<typeof auditLogSchema>;

export const auditRoutes = {
  log: {
    method: 'get',
    path: '/api/audit/log',
    needs: 'audit:read',
    tenancy: 'both',
    summary: "Get the audit log's signing keys",
    description: 'Keep `verifierKey` outside the service: anyone who has it can verify an export (`dke audit verify`).',
    answer: auditLogSchema,
  },
  rotateKey: {
    method: 'post',
    path: '/api/audit/log/rotate-key',
    needs: 'root:rotate',
    tenancy: 'platform',
    summary: "Rotate the audit log's signing key",
    description:
      'The former key signs a last checkpoint, which names the new key and covers the record of the rotation: `dke audit verify` accepts the log with either key. ' +
      'The root key is rotated too, so that no older copy of the database opens the former key. Back up the root key again. Audited.',
    answer: auditLogSchema,
  },
  checkpoints: {
    method: 'get',
    path: '/api/audit/checkpoints',
    needs: 'audit:read',
    tenancy: 'platform',
    summary: 'List the checkpoints of the audit log',
    description: 'Newest first. One is created for every thousandth record, and for each minute with records.',
    query: pageQuery,
    answer: pageOf(checkpointSchema),
  },
  sinks: {
    method: 'get',
    path: '/api/audit/sinks',
    needs: 'audit:read',
    tenancy: 'platform',
    summary: 'List the sinks of the audit log',
    description: 'Read-only: sinks are set in dke.toml.',
    answer: listOf(sinkSchema),
  },
  export: {
    method: 'get',
    path: '/api/audit/export',
    needs: 'audit:export',
    tenancy: 'platform',
    summary: 'Export the whole audit log',
    description:
      'From the first record to a checkpoint that is created for the export, one on each line. A checkpoint follows the last record that it covers. ' +
      'Audited. `dke audit verify` reads it.',
    answer: null,
    streams: ['application/x-ndjson'],
  },
  exportTenant: {
    method: 'get',
    path: '/api/audit/tenant-export',
    needs: 'audit:export',
    summary: "Export one tenant's part of the audit log",
    description:
      'The records of the tenant, one on each line. `{"hidden": [[level, hash], ...]}` replaces records of other tenants with the hashes of whole ' +
      'subtrees. A checkpoint that is created for the export is at the end. `dke audit verify` reads it and reveals nothing about other tenants. Audited.',
    answer: null,
    streams: ['application/x-ndjson'],
  },
  prove: {
    method: 'get',
    path: '/api/audit/records/{sequence}/proof',
    needs: 'audit:read',
    tenancy: 'both',
    summary: 'Prove that a record is in the audit log',
    description:
      'Inclusion proof of RFC 9162 section 2.1.3 for the leaf number `sequence` - 1 in the tree of the checkpoint.',
    answer: z
      .strictObject({
        entry: z.string().openapi({ description: 'The leaf is SHA-256 of a zero byte and this text in UTF-8.' }),
        checkpoint: checkpointSchema,
        hashes: z.array(z.base64()).readonly(),
      })
      .openapi('AuditProof'),
  },
  migrations: {
    method: 'get',
    path: '/api/audit/migrations',
    needs: 'audit:read',
    tenancy: 'both',
    summary: 'List key migration activity',
    description:
      'Newest first. Each entry is a master key that a database created, with the uses that followed. A page can be short before the end: ' +
      'continue while `next` is not null.',
    query: pageQuery.extend({ applicationId: filterText, ...timeSpan }),
    answer: pageOf(keyMigrationSchema),
  },
  list: {
    method: 'get',
    path: '/api/audit',
    needs: 'audit:read',
    tenancy: 'both',
    summary: 'List audit records',
    query: pageQuery.extend({
      kind: auditKind.optional(),
      severity: z
        .enum(auditSeverities)
        .optional()
        .openapi({ description: 'Records of kinds that have this severity or a higher one.' }),
      actorId: filterText,
      subjectId: filterText,
      requestId: filterText,
      ...timeSpan,
      order: z.enum(['newest', 'oldest']).optional().openapi({ default: 'newest' }),
    }),
    answer: pageOf(auditEventSchema),
  },
} as const satisfies RouteGroup;
