// The first steps of a service, and how far they are.

import { z } from '@hono/zod-openapi';
import type { ConfirmedStep, SetupStep, SetupStepName } from '../../../domain/setup.ts';
import { moment, type RouteGroup } from './row.ts';

/** Those that a person may confirm or skip. */
export const confirmedStepSchema = z.enum(['root-key', 'administrator', 'audit-sinks'] satisfies ConfirmedStep[]);

export const setupSchema = z
  .strictObject({
    finishedAt: moment
      .nullable()
      .openapi({ description: 'When a snapshot was first opened with a recovery key; null: none yet.' }),
    steps: z
      .array(
        z.strictObject({
          step: z.enum([
            'root-key',
            'administrator',
            'audit-sinks',
            'recovery-key',
            'snapshot',
          ] satisfies SetupStepName[]),
          state: z.enum(['open', 'confirmed', 'done'] satisfies SetupStep['state'][]).openapi({
            description: 'done: the service has verified it; confirmed: a user marked it as complete.',
          }),
          finding: z.string().openapi({ description: 'What the service knows about it.' }),
          confirmed: z.strictObject({ at: moment, by: z.string() }).nullable(),
        }),
      )
      .readonly(),
  })
  .openapi('Setup');
export type Setup = z.output<typeof setupSchema>;

export const setupRoutes = {
  get: {
    method: 'get',
    path: '/api/setup',
    needs: 'status:read',
    tenancy: 'platform',
    summary: 'Get the progress of the setup',
    answer: setupSchema,
  },
  confirm: {
    method: 'put',
    path: '/api/setup',
    needs: 'setup:confirm',
    tenancy: 'platform',
    summary: 'Mark a manual setup step as complete or not complete',
    description:
      'What the service cannot see: a copy of the root key is stored elsewhere, only tokens administer the service, the log is kept locally only.',
    body: z
      .strictObject({
        step: confirmedStepSchema,
        confirmed: z.boolean(),
      })
      .openapi('SetupConfirmation'),
    answer: setupSchema,
  },
} as const satisfies RouteGroup;
