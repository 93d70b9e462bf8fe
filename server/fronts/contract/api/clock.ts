// The time that decides deadlines, and what an operator does when the clock has jumped.

import { z } from '@hono/zod-openapi';
import { moment, type RouteGroup } from './row.ts';

export const clockSchema = z
  .strictObject({
    clock: moment.openapi({ description: 'What the clock of this host says.' }),
    deadlines: moment.openapi({
      description: 'What decides whether a deadline has passed: never later than the clock.',
    }),
    doubted: z.boolean().openapi({
      description:
        'true: the clocks differ by more than an hour from the time that has passed. Nothing is purged, deleted or pruned by its deadline.',
    }),
    since: moment.nullable(),
    aheadSeconds: z.int().nullable().openapi({ description: 'How far the clocks were ahead then; negative: behind.' }),
    agreedSeconds: z
      .int()
      .nullable()
      .openapi({ description: 'How long the service has seen them so; after 86400 seconds it follows them.' }),
  })
  .openapi('Clock');
export type ClockState = z.output<typeof clockSchema>;

export const clockRoutes = {
  get: {
    method: 'get',
    path: '/api/clock',
    needs: 'status:read',
    tenancy: 'platform',
    summary: 'The time that decides deadlines',
    answer: clockSchema,
  },
  confirm: {
    method: 'post',
    path: '/api/clock/confirm',
    needs: 'clock:confirm',
    tenancy: 'platform',
    summary: 'Confirm the time after the clock has jumped',
    description: 'Audited. Deadlines end by the clock again: what is due by it is destroyed within the next minute.',
    body: z.strictObject({
      time: z.iso.datetime({ offset: true }).openapi({
        description: 'What time it is by a clock that you trust; within five minutes of the clock of the service.',
      }),
    }),
    answer: clockSchema,
  },
} as const satisfies RouteGroup;
