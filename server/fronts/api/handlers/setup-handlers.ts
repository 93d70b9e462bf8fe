// Handlers of the setup.

import { toRfc3339 } from '../../../base/time.ts';
import type { Setup as Answer } from '../../../contract/api/setup-routes.ts';
import type { Setup } from '../../../domain/setup.ts';
import type { Operations } from '../../../operations/index.ts';
import type { Handlers } from './handler.ts';

const represent = ({ finishedAt, steps }: Setup): Answer => ({
  finishedAt: finishedAt === null ? null : toRfc3339(finishedAt),
  steps: steps.map(({ confirmed, ...step }) => ({
    ...step,
    confirmed: confirmed === null ? null : { at: toRfc3339(confirmed.at), by: confirmed.by },
  })),
});

export const setupHandlers = ({ setup }: Operations): Handlers['setup'] => ({
  get: async () => represent(await setup.get()),
  confirm: async ({ actor, body: { step, confirmed } }) => represent(await setup.confirm(actor, step, confirmed)),
});
