// Quarantine: the service shows a database that is not the one of its last checkpoint, until an operator takes it as it is.

import { z } from '@hono/zod-openapi';
import type { RouteGroup } from './row.ts';

export const quarantineSchema = z
  .strictObject({
    quarantined: z.boolean(),
    reason: z.string().nullable(),
    finding: z
      .enum(['older', 'incomplete', 'changed', 'rows-changed', 'lost-changes', 'restored'])
      .nullable()
      .openapi({
        description:
          'older: records are missing since the checkpoint beside the root key; incomplete: confirmed ones are missing behind it; ' +
          'changed: they are not those that were signed; restored: a backup of the service was restored',
      }),
    size: z.int().nullable().openapi({ description: 'Records of the audit log now.' }),
    expected: z.int().nullable().openapi({ description: 'Records at the checkpoint beside the root key.' }),
    missing: z
      .strictObject({
        count: z.int().openapi({ description: 'Records that a sink has and the database has not.' }),
        signed: z.int().openapi({ description: 'The last of them that a checkpoint of this service covers; 0: none.' }),
        records: z
          .array(
            z.strictObject({
              sequence: z.int(),
              at: z.string(),
              kind: z.string(),
              actorName: z.string(),
              subjectKind: z.string(),
              subjectId: z.string(),
            }),
          )
          .readonly()
          .openapi({ description: 'The first 1000 of them.' }),
        sinks: z
          .array(
            z.strictObject({
              name: z.string(),
              type: z.string(),
              target: z.string(),
              records: z
                .int()
                .nullable()
                .openapi({ description: 'Null: it cannot be read from here; search it yourself.' }),
            }),
          )
          .readonly(),
      })
      .nullable()
      .openapi({ description: 'What the sinks of the audit log know of the time since.' }),
  })
  .openapi('Quarantine');

export type Quarantine = z.output<typeof quarantineSchema>;

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
