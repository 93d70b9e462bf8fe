// Quarantine: the service shows a database that is not the one of its last checkpoint, until an operator takes it as it is.

import { z } from '@hono/zod-openapi';
import type { RouteGroup } from './row.ts';

export const quarantineSchema = z
  .strictObject({
    quarantined: z.boolean(),
    reason: z.string().nullable(),
    finding: z
      .enum(['older', 'incomplete', 'changed', 'rows-changed', 'lost-changes'])
      .nullable()
      .openapi({
        description:
          'older: records are missing since the checkpoint beside the root key; incomplete: confirmed ones are missing behind it; ' +
          'changed: they are not those that were signed',
      }),
    size: z.int().nullable().openapi({ description: 'Records of the audit log now.' }),
    expected: z.int().nullable().openapi({ description: 'Records at the checkpoint beside the root key.' }),
  })
  .openapi('Quarantine');

export const quarantineRoutes = {
  get: {
    method: 'get',
    path: '/api/quarantine',
    needs: 'status:read',
    tenancy: 'platform',
    summary: 'Whether the service is in quarantine, and why',
    answer: quarantineSchema,
  },
  confirm: {
    method: 'post',
    path: '/api/quarantine/confirm',
    needs: 'quarantine:confirm',
    tenancy: 'platform',
    summary: 'Take the database as it is',
    description: 'Audited. The service serves when this answers.',
    body: z.strictObject({
      code: z
        .string()
        .min(1)
        .max(100)
        .openapi({ description: 'What the service said on its standard output when it started.' }),
    }),
    answer: quarantineSchema,
  },
} as const satisfies RouteGroup;
