// Handlers of what the first page shows, and of the settings.

import { toRfc3339 } from '../../../base/time.ts';
import type { Operations } from '../../../operations/index.ts';
import type { Handlers } from './handler.ts';

export const overviewHandlers = ({ overview }: Operations): Handlers['overview'] => ({
  latency: async ({ actor, query: { endpointId, span = 'hour' } }) => ({
    items: (await overview.latency(actor, { endpointId, span })).map(({ at, ...point }) => ({
      at: toRfc3339(at),
      ...point,
    })),
  }),
});

export const settingsHandlers = ({ settings }: Operations): Handlers['settings'] => ({
  get: async () => settings(),
});
