// The first steps of a service, and how far they are.

import { z } from '@hono/zod-openapi';
import { confirmableSteps, type SetupStep, setupSteps } from '../../domain/setup.ts';
import { moment, type RouteGroup } from './row.ts';

/** Steps of which a person may accept the risk. */
export const confirmedStepSchema = z.enum(confirmableSteps);

export const setupSchema = z
  .strictObject({
    finishedAt: moment
      .nullable()
      .openapi({ description: 'When a snapshot was first opened with a recovery key; null: none yet.' }),
    steps: z
      .array(
        z.strictObject({
          step: z.enum(setupSteps),
          state: z.enum(['open', 'confirmed', 'done'] satisfies SetupStep['state'][]).openapi({
            description:
              'done: the service has verified it; confirmed: it is not done, and a user has accepted the risk.',
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
    summary: 'Accept the risk of a setup step that is not done, or withdraw that',
    description: 'The step is not done. It stays a warning, with the user and the time, and a notification names it.',
    body: z
      .strictObject({
        step: confirmedStepSchema,
        confirmed: z.boolean(),
      })
      .openapi('SetupConfirmation'),
    answer: setupSchema,
  },
} as const satisfies RouteGroup;
