// Quarantine: the service shows a database that is not the one of its last checkpoint, until an
// operator takes it as it is.

import { z } from '@hono/zod-openapi';
import type { RouteGroup } from './row.ts';

export const quarantineSchema = z
  .strictObject({
    quarantined: z.boolean(),
    reason: z.string().nullable(),
    finding: z
      .enum(['older', 'incomplete', 'changed', 'rows-changed', 'lost-changes', 'restored', 'copied'])
      .nullable()
      .openapi({
        description:
          'older: records up to the checkpoint next to the root key are missing; incomplete: confirmed records after it are missing; ' +
          'changed: records differ from those that were signed; restored: a backup of the service was restored',
      }),
    size: z.int().nullable().openapi({ description: 'Current number of records in the audit log.' }),
    expected: z.int().nullable().openapi({ description: 'Number of records at the checkpoint next to the root key.' }),
    since: z
      .string()
      .nullable()
      .openapi({ description: 'When the difference was found, or when the service started with it.' }),
    differences: z
      .array(
        z.strictObject({
          what: z.string(),
          found: z.string(),
          foundIn: z.string().openapi({ description: 'A place in the database.' }),
          expected: z.string(),
          expectedIn: z
            .string()
            .openapi({ description: 'A file with its time, a place in the database, or the memory of this process.' }),
        }),
      )
      .readonly()
      .openapi({ description: 'What was compared with what.' }),
    missing: z
      .strictObject({
        count: z.int().openapi({ description: 'Records that a sink has but the database does not.' }),
        signed: z.int().openapi({
          description: 'Sequence number of the last of them that a checkpoint of this service covers; 0: none.',
        }),
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
          .openapi({ description: 'The first 1000 records.' }),
        sinks: z
          .array(
            z.strictObject({
              name: z.string(),
              type: z.string(),
              target: z.string(),
              records: z.int().nullable().openapi({ description: 'Null: DKE cannot read it. Search it yourself.' }),
            }),
          )
          .readonly(),
      })
      .nullable()
      .openapi({ description: 'What the sinks of the audit log have recorded since then.' }),
  })
  .openapi('Quarantine');

export type Quarantine = z.output<typeof quarantineSchema>;

export const quarantineRoutes = {
  get: {
    method: 'get',
    path: '/api/quarantine',
    needs: 'status:read',
    tenancy: 'platform',
    summary: 'Get the quarantine state',
    answer: quarantineSchema,
  },
  confirm: {
    method: 'post',
    path: '/api/quarantine/confirm',
    needs: 'quarantine:confirm',
    tenancy: 'platform',
    summary: 'Accept the database and end the quarantine',
    description: 'The service serves requests when this call returns. Audited.',
    body: z.strictObject({
      code: z
        .string()
        .min(1)
        .max(100)
        .openapi({ description: 'The code that the service printed on its standard output when it started.' }),
    }),
    answer: quarantineSchema,
  },
} as const satisfies RouteGroup;
