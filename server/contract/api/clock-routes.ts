// The time that decides deadlines, and what an operator does when the clock has jumped.

import { z } from '@hono/zod-openapi';
import { moment, type RouteGroup } from './row.ts';

export const clockSchema = z
  .strictObject({
    clock: moment.openapi({ description: 'The clock of this host.' }),
    deadlines: moment.openapi({
      description: 'The time that decides whether a deadline has passed. It is never later than the clock.',
    }),
    jumped: z.boolean().openapi({
      description:
        'true: the clocks differ by more than an hour from the elapsed time. Nothing is purged, deleted or pruned by a deadline.',
    }),
    since: moment.nullable(),
    aheadSeconds: z
      .int()
      .nullable()
      .openapi({ description: 'How far the clocks were ahead at that time; negative: behind.' }),
    agreedSeconds: z
      .int()
      .nullable()
      .openapi({ description: 'How long they have differed. After 86400 seconds, the service accepts the clocks.' }),
  })
  .openapi('Clock');
export type ClockState = z.output<typeof clockSchema>;

export const clockRoutes = {
  get: {
    method: 'get',
    path: '/api/clock',
    needs: 'status:read',
    tenancy: 'platform',
    summary: 'Get the clock that decides deadlines',
    answer: clockSchema,
  },
  confirm: {
    method: 'post',
    path: '/api/clock/confirm',
    needs: 'clock:confirm',
    tenancy: 'platform',
    summary: 'Confirm the time after the clock has jumped',
    description: 'Deadlines follow the clock again. What is due is destroyed within the next minute. Audited.',
    body: z.strictObject({
      time: z.iso.datetime({ offset: true }).openapi({
        description:
          'The current time of a clock that you trust. It must be within five minutes of the clock of the service.',
      }),
    }),
    answer: clockSchema,
  },
} as const satisfies RouteGroup;
