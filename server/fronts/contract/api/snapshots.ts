// Snapshots of tenants: made, kept, verified, taken out, brought back. The service cannot open one: who restores has a recovery key, opens
// the snapshot's own key with it (`openings`), and sends that key sealed for this one use.

import { z } from '@hono/zod-openapi';
import type { Snapshot as Held } from '../../../domain/snapshot.ts';
import { approvalRuleSchema } from './approvals.ts';
import { keyCopiesSchema } from './keys.ts';
import { displayName, identifier, listOf, moment, pageOf, pageQuery, type RouteGroup } from './row.ts';

const states = z.enum(['making', 'held', 'deleted', 'purged', 'failed', 'missing'] satisfies Held['state'][]);

export const snapshotSchema = z
  .strictObject({
    id: identifier,
    tenantId: identifier,
    origin: z.enum(['asked', 'scheduled', 'imported'] satisfies Held['origin'][]),
    state: states.openapi({ description: 'deleted: undone until its time is over; missing: its file is gone' }),
    at: moment.openapi({ description: 'The moment of the state that it holds.' }),
    size: z.int().nullable(),
    rows: z.record(z.string(), z.int()).openapi({ description: 'By table.' }),
    keys: z.int(),
    leftOut: z.int().openapi({ description: 'Rows and keys that were damaged when it was made.' }),
    erased: z.int().openapi({ description: 'Keys that were destroyed since, and taken out of it.' }),
    recoveryKeyIds: z.array(z.string()).readonly(),
    signer: z.string().nullable().openapi({ description: 'Verifier key of the service that made it.' }),
    verification: z
      .strictObject({
        at: moment,
        depth: z.enum(['sealed', 'opened']).openapi({ description: 'opened: with a recovery key, each key compared' }),
        sound: z.boolean(),
        finding: z.string().nullable(),
      })
      .nullable(),
    verifiedAt: moment.nullable().openapi({ description: 'When it was last found sound.' }),
    deletedAt: moment.nullable(),
    purgeAt: moment.nullable().openapi({ description: 'Until when a deletion can be undone.' }),
    purgedAt: moment.nullable(),
    failure: z.string().nullable(),
    tampered: z.boolean(),
  })
  .openapi('Snapshot');
export type Snapshot = z.output<typeof snapshotSchema>;

const exportSchema = z
  .strictObject({
    id: identifier,
    snapshotId: identifier,
    snapshotAt: moment,
    at: moment,
    actorId: z.string(),
    actorName: z.string(),
  })
  .openapi('SnapshotExport');
export type SnapshotExport = z.output<typeof exportSchema>;

const openingSchema = z
  .strictObject({
    id: identifier,
    snapshotId: identifier,
    tenantId: identifier,
    recoveryKeyId: z.string(),
    sealedKey: z.string().openapi({ description: "The snapshot's key, sealed to that recovery key (HPKE)." }),
    publicKey: z.string().openapi({ description: 'To which it is to be sealed, once opened (X25519).' }),
    expiresAt: moment,
  })
  .openapi('SnapshotOpening');
export type SnapshotOpening = z.output<typeof openingSchema>;

const openingAnswer = { openingId: identifier, sealedKey: z.string().max(400) };

const counts = z.strictObject({
  made: z.int(),
  changed: z.int(),
  unchanged: z.int(),
  kept: z.int().openapi({ description: 'In the tenant and not in the snapshot: they stay.' }),
  leftOut: z.int().openapi({ description: 'Credentials of the original, of which a copy beside it has none.' }),
});

export const restoreSchema = z
  .strictObject({
    dryRun: z.boolean(),
    tenantId: identifier,
    newTenant: z.boolean(),
    newIds: z
      .boolean()
      .openapi({ description: "The snapshot's ids are another tenant's here: everything got fresh ones." }),
    counts: z.record(z.string(), counts),
    stayDestroyed: z
      .array(z.strictObject({ id: identifier, name: z.string(), label: z.string().nullable(), destroyedAt: moment }))
      .readonly(),
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
      .openapi({ description: 'Of a dry run: whose dual control has a say. Empty: it is done at once.' }),
  })
  .openapi('SnapshotRestore');
export type SnapshotRestore = z.output<typeof restoreSchema>;

const dryRun = z.strictObject({
  dryRun: z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .optional()
    .openapi({ type: 'boolean' }),
});

export const snapshotRoutes = {
  create: {
    method: 'post',
    path: '/api/snapshots',
    needs: 'snapshots:manage',
    tenancy: 'both',
    summary: 'Make a snapshot of a tenant',
    description:
      'Of the tenant acted in; those who may for the whole platform name any. One state, while others write. Answers when the file is durable and has been read again.',
    body: z.strictObject({ tenantId: identifier.optional() }).openapi('NewSnapshot'),
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
    summary: 'Show when snapshots are made, where they lie, and how long they are kept',
    description: 'Set in the configuration file alone, for every tenant.',
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
    summary: 'Show a snapshot',
    answer: snapshotSchema,
  },
  exports: {
    method: 'get',
    path: '/api/snapshots/{id}/exports',
    needs: 'snapshots:read',
    tenancy: 'both',
    summary: 'List the copies of a snapshot that left the service',
    answer: listOf(exportSchema),
  },
  delete: {
    method: 'delete',
    path: '/api/snapshots/{id}',
    needs: 'snapshots:manage',
    tenancy: 'both',
    summary: 'Delete a snapshot',
    description: 'Undone by `undelete` within the configured days; then its file is removed.',
    answer: snapshotSchema,
  },
  undelete: {
    method: 'post',
    path: '/api/snapshots/{id}/undelete',
    needs: 'snapshots:manage',
    tenancy: 'both',
    summary: 'Bring a deleted snapshot back',
    answer: snapshotSchema,
  },
  export: {
    method: 'get',
    path: '/api/snapshots/{id}/file',
    needs: 'snapshots:export',
    tenancy: 'platform',
    summary: 'Take a copy of a snapshot out of the service',
    description: 'Audited before the first byte. A key that is destroyed afterwards is still in the copy.',
    answer: null,
    streams: ['application/octet-stream'],
    mayWait: true,
  },
  import: {
    method: 'post',
    path: '/api/snapshot-imports',
    needs: 'snapshots:restore',
    tenancy: 'platform',
    summary: 'Bring a copy of a snapshot into the service',
    description: 'The body is the file. Keys that are destroyed here are taken out of it at once.',
    query: z.strictObject({
      signer: z.string().max(500).optional().openapi({
        description: 'Verifier key of the service that made it, when that is not this one.',
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
    summary: 'Begin to open a snapshot',
    description:
      "Answers the snapshot's key as it is sealed to a recovery key, and a public key of the service for this one use. Who has the " +
      'recovery key opens the one and seals it to the other. Valid for ten minutes.',
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
    description: 'Without a key: signature, structure, digest, counts.',
    body: z.strictObject({}),
    answer: snapshotSchema,
  },
  verifyOpened: {
    method: 'post',
    path: '/api/snapshots/{id}/verify-opened',
    needs: 'snapshots:restore',
    tenancy: 'platform',
    summary: 'Verify a snapshot with its key: every row opened, every key compared',
    body: z.strictObject(openingAnswer).openapi('SnapshotOpeningAnswer'),
    answer: snapshotSchema,
  },
  restore: {
    method: 'post',
    path: '/api/snapshots/{id}/restore',
    needs: 'snapshots:restore',
    tenancy: 'platform',
    summary: 'Restore a snapshot',
    description:
      'Into the tenant that it is of, an empty one (`tenantId`), or a new one (`newTenant`, its name). All or nothing. What was made since ' +
      'stays; destroyed keys stay destroyed and are named. dryRun=true does all of it and takes it back.',
    query: dryRun,
    body: z
      .strictObject({ ...openingAnswer, tenantId: identifier.optional(), newTenant: displayName.optional() })
      .refine(({ tenantId, newTenant }) => tenantId === undefined || newTenant === undefined, {
        message: 'give tenantId or newTenant, not both',
        path: ['newTenant'],
      })
      .openapi('SnapshotRestoreRequest'),
    answer: restoreSchema,
    mayWait: true,
  },
  ofKey: {
    method: 'get',
    path: '/api/keys/{id}/snapshots',
    needs: 'keys:read',
    summary: 'List where a key may still be: exported snapshots and copies in other tenants',
    namesCopies: true,
    description:
      'A destroyed key is still in them: a person with one and a recovery key has the key. And its copies in other tenants.',
    answer: z
      .strictObject({ keyId: identifier, exported: z.array(exportSchema).readonly(), copies: keyCopiesSchema })
      .openapi('KeySnapshots'),
  },
} as const satisfies RouteGroup;
