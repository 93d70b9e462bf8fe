// The root key: its epoch, what opens it, and its rotation. Providers are changed on the service's
// host alone (dke root add-provider).

import { z } from '@hono/zod-openapi';
import { identifier, moment, type RouteGroup } from './row.ts';

export const rootSchema = z
  .strictObject({
    epoch: z.int(),
    previousEpoch: z
      .int()
      .nullable()
      .openapi({ description: 'Set during an erasure run, when both root keys are open.' }),
    rotating: z.boolean().openapi({ description: 'true: a rotation was requested or is in progress.' }),
    backup: z.strictObject({ epoch: z.int(), at: moment }).nullable().openapi({
      description: 'The newest backup by `dke root backup`. A backup of an older epoch can no longer open anything.',
    }),
    waitsFor: z.array(z.string()).readonly().openapi({
      description:
        'Nodes, standbys, replication slots or the WAL archive of the database that prevent the old root key from being overwritten. Set only on the node that does the erasure run.',
    }),
    providers: z
      .array(
        z.strictObject({
          name: z.string(),
          type: z.enum(['file', 'passphrase', 'pkcs11']),
          createdAt: moment.nullable(),
          opened: z.boolean().openapi({ description: 'true: it opened the root key at this start.' }),
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
    summary: 'Get the epoch and providers of the root key',
    answer: rootSchema,
  },
  rotate: {
    method: 'post',
    path: '/api/root/rotate',
    needs: 'root:rotate',
    tenancy: 'platform',
    summary: 'Rotate the root key, or the key of one tenant',
    description:
      'Everything is sealed again in the background, after the answer. An accepted rotation is completed, even after a restart.',
    body: z.strictObject({
      tenantId: identifier.optional().openapi({ description: 'Rotate only the key of this tenant, not the root key.' }),
    }),
    answer: rootSchema,
  },
  releaseCopy: {
    method: 'post',
    path: '/api/root/copies/release',
    needs: 'root:rotate',
    tenancy: 'platform',
    summary: 'Stop waiting for a copy of the database',
    description:
      'For a standby that was removed while it was behind. If it became the database afterwards, no key could be opened. Audited.',
    body: z.strictObject({
      name: z.string().min(1).max(200).openapi({ description: 'As `waitsFor` names it: `standby second`.' }),
    }),
    answer: rootSchema,
  },
} as const satisfies RouteGroup;
