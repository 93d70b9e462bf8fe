// The root key: its epoch, what opens it, and its rotation. Providers are changed on the service's host alone (dke root add-provider).

import { z } from '@hono/zod-openapi';
import { identifier, moment, type RouteGroup } from './row.ts';

export const rootSchema = z
  .strictObject({
    epoch: z.int(),
    previousEpoch: z.int().nullable().openapi({ description: 'Set while a run is under way: both are open.' }),
    rotating: z.boolean().openapi({ description: 'A rotation was asked for, or is under way.' }),
    backup: z.strictObject({ epoch: z.int(), at: moment }).nullable().openapi({
      description: 'The newest that `dke root backup` made. Of an older epoch: it can no longer open anything.',
    }),
    waitsFor: z.array(z.string()).readonly().openapi({
      description:
        'Nodes, and standbys, replication slots or the WAL archive of the database, that keep the old root key from being overwritten. On the node that runs the erasure run.',
    }),
    providers: z
      .array(
        z.strictObject({
          name: z.string(),
          type: z.enum(['file', 'passphrase', 'pkcs11']),
          createdAt: moment.nullable(),
          opened: z.boolean().openapi({ description: 'It opened the root key at this start.' }),
        }),
      )
      .readonly(),
    fileSystem: z.string(),
    overwritesInPlace: z.boolean(),
  })
  .openapi('Root');
export type Root = z.output<typeof rootSchema>;

export const rootRoutes = {
  get: {
    method: 'get',
    path: '/api/root',
    needs: 'root:read',
    tenancy: 'platform',
    summary: 'The root key: epoch and providers',
    answer: rootSchema,
  },
  rotate: {
    method: 'post',
    path: '/api/root/rotate',
    needs: 'root:rotate',
    tenancy: 'platform',
    summary: 'Rotate the root key, or the key of one tenant',
    description:
      'Everything is sealed again after the answer, while the service runs. Once this is acknowledged, it will be done, also after a restart.',
    body: z.strictObject({
      tenantId: identifier.optional().openapi({ description: 'The key of this tenant alone; the root key stays.' }),
    }),
    answer: rootSchema,
  },
} as const satisfies RouteGroup;
