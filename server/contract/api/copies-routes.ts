// Files that left the service with its keys: exported snapshots, and backups of the service and of
// the root key. An operator confirms that they are destroyed.

import { z } from '@hono/zod-openapi';
import { outsideKinds } from '../../domain/copies.ts';
import { identifier, listOf, moment, pageOf, pageQuery, queryFlag, type RouteGroup } from './row.ts';

const kinds = z.enum(outsideKinds);

export const copySchema = z
  .strictObject({
    id: identifier,
    kind: kinds,
    tenantId: identifier.nullable().openapi({ description: 'null: of the whole service' }),
    snapshotId: identifier.nullable().openapi({ description: 'Of an exported snapshot.' }),
    at: moment.openapi({ description: 'When the file was made.' }),
    actorId: z.string(),
    actorName: z.string(),
    stateAt: moment.nullable().openapi({ description: 'The time of the state in it; null: not known.' }),
    rootEpoch: z.int().nullable().openapi({ description: 'Of backups: the root key that is in it, or that opens it.' }),
    destroyedAt: moment.nullable().openapi({ description: 'When it was confirmed that the file is destroyed.' }),
    tampered: z.boolean().openapi({
      description: 'The stored row was changed from outside. The copy counts as one that has every key.',
    }),
  })
  .openapi('Copy');
export type Copy = z.output<typeof copySchema>;

export const copyRoutes = {
  list: {
    method: 'get',
    path: '/api/copies',
    needs: 'snapshots:read',
    tenancy: 'both',
    summary: 'List files that left the service with its keys',
    description: 'Exported snapshots, and backups of the service and of the root key that commands on its hosts made.',
    query: pageQuery.extend({
      tenantId: identifier.optional(),
      kind: kinds.optional(),
      left: queryFlag().openapi({ description: 'true: only those that are not confirmed as destroyed' }),
    }),
    answer: pageOf(copySchema),
  },
  get: {
    method: 'get',
    path: '/api/copies/{id}',
    needs: 'snapshots:read',
    tenancy: 'both',
    summary: 'Get a file that left the service',
    answer: copySchema,
  },
  confirmDestroyed: {
    method: 'post',
    path: '/api/copies/{id}/confirm-destroyed',
    needs: 'snapshots:manage',
    tenancy: 'both',
    summary: 'Confirm that a file is destroyed',
    description:
      'You state that the file and all copies of it are destroyed. The service cannot check it. Destroyed keys that waited for the file can then ' +
      'become unrecoverable. Cannot be undone. Backups need the permission for the whole platform.',
    body: z
      .strictObject({
        andOlder: z.boolean().optional().openapi({ description: 'Also all older files of this kind and tenant.' }),
      })
      .openapi('CopyConfirmation'),
    answer: listOf(copySchema),
  },
} as const satisfies RouteGroup;
