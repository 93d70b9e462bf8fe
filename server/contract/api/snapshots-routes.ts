// Snapshots of tenants: made, kept, verified, taken out, brought back. The service cannot open one:
// who restores has a recovery key, opens the snapshot's own key with it (`openings`), and sends
// that key sealed for this one use.

import { z } from '@hono/zod-openapi';
import type { Snapshot as Held } from '../../domain/snapshot.ts';
import { approvalRuleSchema } from './approvals-routes.ts';
import { copySchema } from './copies-routes.ts';
import { keyCopiesSchema } from './keys-routes.ts';
import { displayName, identifier, listOf, moment, pageOf, pageQuery, queryFlag, type RouteGroup } from './row.ts';

const states = z.enum(['creating', 'available', 'deleted', 'purged', 'failed', 'missing'] satisfies Held['state'][]);

export const snapshotSchema = z
  .strictObject({
    id: identifier,
    tenantId: identifier,
    origin: z.enum(['requested', 'scheduled', 'imported'] satisfies Held['origin'][]),
    state: states.openapi({ description: 'deleted: can be undeleted until `purgeAt`; missing: its file is missing' }),
    at: moment.openapi({ description: 'The time of the state in it.' }),
    size: z.int().nullable(),
    rows: z.record(z.string(), z.int()).openapi({ description: 'Number of rows in each table.' }),
    keys: z.int(),
    omitted: z.int().openapi({ description: 'Rows and keys that were damaged when it was created.' }),
    erased: z.int().openapi({ description: 'Keys that were destroyed since, and erased from it.' }),
    recoveryKeyIds: z.array(z.string()).readonly(),
    signer: z.string().nullable().openapi({ description: 'Verifier key of the service that created it.' }),
    verification: z
      .strictObject({
        at: moment,
        depth: z
          .enum(['sealed', 'opened'])
          .openapi({ description: 'opened: opened with a recovery key, and each key compared' }),
        valid: z.boolean(),
        finding: z.string().nullable(),
      })
      .nullable(),
    verifiedAt: moment.nullable().openapi({ description: 'When it was last verified successfully.' }),
    deletedAt: moment.nullable(),
    purgeAt: moment.nullable().openapi({ description: 'Until when a deletion can be undone.' }),
    purgedAt: moment.nullable(),
    failure: z.string().nullable(),
    tampered: z.boolean(),
  })
  .openapi('Snapshot');
export type Snapshot = z.output<typeof snapshotSchema>;

const openingSchema = z
  .strictObject({
    id: identifier,
    snapshotId: identifier,
    tenantId: identifier,
    recoveryKeyId: z.string(),
    sealedKey: z.string().openapi({ description: "The snapshot's key, sealed to that recovery key (HPKE)." }),
    publicKey: z.string().openapi({ description: 'The public key to which you seal it again after opening (X25519).' }),
    expiresAt: moment,
  })
  .openapi('SnapshotOpening');
export type SnapshotOpening = z.output<typeof openingSchema>;

const openingAnswer = { openingId: identifier, sealedKey: z.string().max(400) };

const counts = z.strictObject({
  created: z.int(),
  changed: z.int(),
  unchanged: z.int(),
  kept: z.int().openapi({ description: 'In the tenant but not in the snapshot. They stay.' }),
  omitted: z.int().openapi({ description: 'Credentials of the original that a copy next to it does not get.' }),
});

export const restoreSchema = z
  .strictObject({
    dryRun: z.boolean(),
    tenantId: identifier,
    newTenant: z.boolean(),
    newIds: z
      .boolean()
      .openapi({ description: 'The ids in the snapshot already belong to another tenant, so everything got new ids.' }),
    counts: z.record(z.string(), counts),
    stayDestroyed: z
      .array(z.strictObject({ id: identifier, name: z.string(), label: z.string().nullable(), destroyedAt: moment }))
      .readonly(),
    withoutValue: z
      .array(z.strictObject({ id: identifier, label: z.string() }))
      .readonly()
      .openapi({
        description:
          'Token objects whose value was damaged before the snapshot was created: they are copied without it. Labels are in Base64.',
      }),
    activated: z
      .array(
        z.strictObject({
          kind: z.enum([
            'application',
            'access-guid',
            'endpoint',
            'credential',
            'vault',
            'key',
            'token-object',
            'dual-control',
          ]),
          change: z.enum(['created', 'reactivated', 'changed']),
          id: identifier,
          name: z.string(),
        }),
      )
      .readonly()
      .openapi({
        description:
          'Applications, credentials and endpoints that the restore creates, reactivates or changes, vaults and keys that it reactivates, and attributes of token objects and dual-control rules that it changes: check them.',
      }),
    newHandles: z.int(),
    rules: z
      .array(approvalRuleSchema)
      .readonly()
      .openapi({ description: 'For a dry run: the dual-control rules that apply. Empty: no approval is needed.' }),
  })
  .openapi('SnapshotRestore');
export type SnapshotRestore = z.output<typeof restoreSchema>;

const dryRun = z.strictObject({
  dryRun: queryFlag(),
});

export const snapshotRoutes = {
  create: {
    method: 'post',
    path: '/api/snapshots',
    needs: 'snapshots:manage',
    tenancy: 'both',
    summary: 'Create a snapshot of a tenant',
    description:
      'A consistent online snapshot of the current tenant. With the permission for the whole platform, you can name any tenant. Answers when the file is durable and has been verified.',
    body: z.strictObject({ tenantId: identifier.optional() }).openapi('NewSnapshot'),
    long: 'changes',
    answer: snapshotSchema,
    creates: true,
  },
  list: {
    method: 'get',
    path: '/api/snapshots',
    needs: 'snapshots:read',
    tenancy: 'both',
    summary: 'List snapshots',
    query: pageQuery.extend({ tenantId: identifier.optional(), state: states.optional() }),
    answer: pageOf(snapshotSchema),
  },
  schedule: {
    method: 'get',
    path: '/api/snapshot-schedule',
    needs: 'snapshots:read',
    tenancy: 'both',
    summary: 'Get the schedule, storage and retention of snapshots',
    description: 'Read-only: set in dke.toml, for all tenants.',
    answer: z
      .strictObject({
        directory: z.string().nullable().openapi({ description: 'A folder of the host; null for users of one tenant' }),
        schedule: z.string().nullable(),
        next: moment.nullable(),
        keepCount: z.int().nullable(),
        keepDays: z.int().nullable(),
        undeleteDays: z.int(),
      })
      .openapi('SnapshotSchedule'),
  },
  get: {
    method: 'get',
    path: '/api/snapshots/{id}',
    needs: 'snapshots:read',
    tenancy: 'both',
    summary: 'Get a snapshot',
    answer: snapshotSchema,
  },
  exports: {
    method: 'get',
    path: '/api/snapshots/{id}/exports',
    needs: 'snapshots:read',
    tenancy: 'both',
    summary: 'List the exported copies of a snapshot',
    answer: listOf(copySchema),
  },
  delete: {
    method: 'delete',
    path: '/api/snapshots/{id}',
    needs: 'snapshots:manage',
    tenancy: 'both',
    summary: 'Delete a snapshot',
    description: '`undelete` restores it within the configured number of days. After that, its file is removed.',
    answer: snapshotSchema,
  },
  undelete: {
    method: 'post',
    path: '/api/snapshots/{id}/undelete',
    needs: 'snapshots:manage',
    tenancy: 'both',
    summary: 'Undelete a snapshot',
    answer: snapshotSchema,
  },
  export: {
    method: 'get',
    path: '/api/snapshots/{id}/file',
    needs: 'snapshots:export',
    tenancy: 'platform',
    summary: 'Export a snapshot',
    description: 'Audited before the first byte is sent. A key that is destroyed later is still in the copy.',
    answer: null,
    streams: ['application/octet-stream'],
    mayWait: true,
  },
  import: {
    method: 'post',
    path: '/api/snapshot-imports',
    needs: 'snapshots:restore',
    tenancy: 'platform',
    summary: 'Import a snapshot',
    description: 'The body is the file. Keys that are destroyed here are erased from it at once.',
    query: z.strictObject({
      signer: z.string().max(500).optional().openapi({
        description: 'Verifier key of the service that created it, if that is another one.',
      }),
    }),
    takes: 'application/octet-stream',
    answer: snapshotSchema,
    creates: true,
  },
  open: {
    method: 'post',
    path: '/api/snapshots/{id}/openings',
    needs: 'snapshots:restore',
    tenancy: 'platform',
    summary: 'Start opening a snapshot',
    description:
      'Returns the key of the snapshot, sealed to a recovery key, and a single-use public key of the service. The holder of the ' +
      'recovery key opens it and seals it to the public key. Valid for ten minutes.',
    body: z.strictObject({ recoveryKeyId: z.string().max(16).optional() }).openapi('NewSnapshotOpening'),
    answer: openingSchema,
    creates: true,
  },
  verify: {
    method: 'post',
    path: '/api/snapshots/{id}/verify',
    needs: 'snapshots:manage',
    tenancy: 'both',
    summary: 'Verify a snapshot',
    description: 'Without a key. Checks the signature, structure, digest and counts.',
    body: z.strictObject({}),
    long: 'reads',
    answer: snapshotSchema,
  },
  verifyOpened: {
    method: 'post',
    path: '/api/snapshots/{id}/verify-opened',
    needs: 'snapshots:restore',
    tenancy: 'platform',
    summary: 'Verify a snapshot with its key',
    body: z.strictObject(openingAnswer).openapi('SnapshotOpeningAnswer'),
    long: 'reads',
    answer: snapshotSchema,
  },
  restore: {
    method: 'post',
    path: '/api/snapshots/{id}/restore',
    needs: 'snapshots:restore',
    tenancy: 'platform',
    summary: 'Restore a snapshot',
    description:
      'Restores to its own tenant, an empty one (`tenantId`) or a new one (`newTenant`, its name). All or nothing. What was created since then ' +
      'stays. Destroyed keys stay destroyed and are listed. dryRun=true does everything and rolls it back.',
    query: dryRun,
    body: z
      .strictObject({ ...openingAnswer, tenantId: identifier.optional(), newTenant: displayName.optional() })
      .refine(({ tenantId, newTenant }) => tenantId === undefined || newTenant === undefined, {
        message: 'send tenantId or newTenant, not both',
        path: ['newTenant'],
      })
      .openapi('SnapshotRestoreRequest', {
        example: { openingId: '01981d2c-7c1f-7b35-9a04-52a1be40c0de', sealedKey: 'text', newTenant: 'restored' },
      }),
    long: 'changes',
    answer: restoreSchema,
    mayWait: true,
  },
  ofKey: {
    method: 'get',
    path: '/api/keys/{id}/snapshots',
    needs: 'keys:read',
    summary: 'List remaining copies of a key',
    namesCopies: true,
    description:
      'Lists every copy that the service knows: in other tenants, in exported snapshots, and in backups. A destroyed key is still in them.',
    answer: keyCopiesSchema,
  },
} as const satisfies RouteGroup;
