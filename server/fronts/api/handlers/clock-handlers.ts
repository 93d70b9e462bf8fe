// Handlers of the time that decides deadlines.

import type { Operations } from '../../../operations/index.ts';
import { representClock } from '../represent.ts';
import type { Handlers } from './handler.ts';

export const clockHandlers = ({ clock }: Operations): Handlers['clock'] => ({
  get: async ({ actor }) => representClock(await clock.get(actor)),
  confirm: async ({ actor, body }) => representClock(await clock.confirm(actor, Date.parse(body.time))),
});
